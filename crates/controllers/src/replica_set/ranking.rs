//! Which pods go first when there are too many: those that would be missed least.

use kinds::{Object, Pod, Time};
use std::cmp::{Ordering, Reverse};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The `count` pods to delete, those that would be missed least first. `related` are the pods whose nodes are counted:
/// of two that are otherwise alike, the one with more company on its node goes.
pub(crate) fn first_to_go<'a>(
    pods: &'a [Arc<Object<Pod>>],
    related: &[Arc<Object<Pod>>],
    count: usize,
    now: Time,
) -> Vec<&'a Arc<Object<Pod>>> {
    if count == 0 {
        return Vec::new();
    }
    let mut company = BTreeMap::new();
    for pod in related.iter().filter(|pod| pod.is_active()) {
        *company.entry(pod.spec.node_name.as_str()).or_insert(0_usize) += 1;
    }
    let company = |pod: &Pod| company.get(pod.spec.node_name.as_str()).copied().unwrap_or(0);
    let mut ranked: Vec<_> = pods.iter().collect();
    ranked.sort_by(|a, b| compare(a, b, company(a), company(b), now));
    ranked.truncate(count);
    ranked
}

/// Less means that it goes earlier.
fn compare(a: &Pod, b: &Pod, company_a: usize, company_b: usize, now: Time) -> Ordering {
    let phase = |pod: &Pod| match pod.status.phase.as_str() {
        "Pending" => 0,
        "Unknown" => 1,
        _ => 2,
    };
    let coarse =
        |pod: &Pod, company| (!pod.spec.node_name.is_empty(), phase(pod), pod.is_ready(), cost(pod), Reverse(company));
    let by_ready = || match (ready_since(a), ready_since(b)) {
        (Some(a_since), Some(b_since)) if a_since != b_since => by_age(a, b, a_since, b_since, now),
        _ => Ordering::Equal,
    };
    let by_creation = || match (a.metadata.creation_timestamp, b.metadata.creation_timestamp) {
        (Some(a_since), Some(b_since)) if a_since != b_since => by_age(a, b, a_since, b_since, now),
        _ => a.metadata.uid.cmp(&b.metadata.uid),
    };
    coarse(a, company_a)
        .cmp(&coarse(b, company_b))
        .then_with(by_ready)
        .then_with(|| Reverse(restarts(a)).cmp(&Reverse(restarts(b))))
        .then_with(by_creation)
}

/// Younger ones go first, but ages are told apart only by powers of two, and chance, here the UID, decides between
/// neighbours: otherwise the pods that came last, often all on one new node, would always go together.
fn by_age(a: &Pod, b: &Pod, a_since: Time, b_since: Time, now: Time) -> Ordering {
    let magnitude = |since: Time| now.since(since).as_nanos().checked_ilog2();
    magnitude(a_since).cmp(&magnitude(b_since)).then_with(|| a.metadata.uid.cmp(&b.metadata.uid))
}

/// How much a user says the pod would be missed.
fn cost(pod: &Pod) -> i32 {
    pod.metadata.annotation("controller.kubernetes.io/pod-deletion-cost").parse().unwrap_or(0)
}

fn ready_since(pod: &Pod) -> Option<Time> {
    pod.condition("Ready").filter(|ready| ready.status == "True")?.last_transition_time
}

fn restarts(pod: &Pod) -> i32 {
    pod.status.container_statuses.iter().map(|status| status.restart_count).max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use object::{Value, json};

    const NOW: Time = Time::from_seconds(1_767_225_600);

    fn pod(name: &str, edit: impl Fn(&mut Value)) -> Arc<Object<Pod>> {
        let mut value = json!({
            "metadata": { "name": name, "namespace": "default", "uid": name, "creationTimestamp": "2025-12-31T00:00:00Z" },
            "spec": { "nodeName": "n" },
            "status": {
                "phase": "Running",
                "conditions": [{ "type": "Ready", "status": "True", "lastTransitionTime": "2025-12-31T00:00:00Z" }],
            },
        });
        edit(&mut value);
        Arc::new(Object::of(&value))
    }

    #[test]
    fn those_that_would_be_missed_least_go_first() {
        let plain = pod("z", |_| {});
        type Difference = fn(&mut Value);
        let cases: [(&str, Difference); 7] = [
            ("unscheduled", |pod| pod["spec"]["nodeName"] = json!("")),
            ("pending", |pod| pod["status"]["phase"] = json!("Pending")),
            ("not ready", |pod| pod["status"]["conditions"][0]["status"] = json!("False")),
            ("cheap", |pod| {
                pod["metadata"]["annotations"] = json!({ "controller.kubernetes.io/pod-deletion-cost": "-1" });
            }),
            ("ready lately", |pod| {
                pod["status"]["conditions"][0]["lastTransitionTime"] = json!("2025-12-31T23:59:00Z");
            }),
            ("restarting", |pod| pod["status"]["containerStatuses"] = json!([{ "restartCount": 3 }])),
            ("young", |pod| pod["metadata"]["creationTimestamp"] = json!("2025-12-31T23:59:00Z")),
        ];
        for (what, edit) in cases {
            let pods = [plain.clone(), pod("zz", edit)];
            assert_eq!(first_to_go(&pods, &[], 1, NOW)[0].metadata.name, "zz", "{what}");
        }
    }

    #[test]
    fn of_equals_the_one_with_more_company_on_its_node_goes() {
        let on = |name: &str, node: &'static str| pod(name, move |pod| pod["spec"]["nodeName"] = json!(node));
        let pods = [on("a", "n1"), on("b", "n2")];
        let related = [on("a", "n1"), on("b", "n2"), on("c", "n2")];
        assert_eq!(first_to_go(&pods, &related, 1, NOW)[0].metadata.name, "b");
    }
}
