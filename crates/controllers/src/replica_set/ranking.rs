//! Which pods go first when there are too many: those that would be missed least.

use kinds::{Object, Pod, Time};
use std::cmp::Reverse;
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
    let mut ranked: Vec<_> = pods.iter().map(|pod| (worth(pod, company(pod), now), pod)).collect();
    ranked.sort_unstable_by(|(a, _), (b, _)| a.cmp(b));
    ranked.into_iter().take(count).map(|(_, pod)| pod).collect()
}

/// What a pod is worth, the weightiest first; the least goes. Being a key and not a comparison of two, it is a total
/// order whatever times there are.
///
/// Younger ones go first, but ages are told apart only by powers of two, and chance, here the UID, decides between
/// neighbours: otherwise the pods that came last, often all on one new node, would always go together.
fn worth(pod: &Pod, company: usize, now: Time) -> impl Ord {
    let phase = match pod.status.phase.as_str() {
        "Pending" => 0,
        "Unknown" => 1,
        _ => 2,
    };
    let age = |since: Option<Time>| since.and_then(|since| now.since(since).as_nanos().checked_ilog2());
    let merits = (!pod.spec.node_name.is_empty(), phase, pod.is_ready(), cost(pod), Reverse(company));
    let ages = (age(ready_since(pod)), Reverse(restarts(pod)), age(pod.metadata.creation_timestamp));
    (merits, ages, pod.metadata.uid.clone())
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
    fn any_number_of_pods_of_any_ages_has_an_order() {
        let since = |seconds: usize| json!((NOW - std::time::Duration::from_secs(seconds as u64)).to_string());
        let pods: Vec<_> = (0..200)
            .map(|number| {
                pod(&format!("{}", number * 7919 % 200), |pod| {
                    pod["metadata"]["creationTimestamp"] = since(number % 5 + 100);
                    pod["status"]["conditions"][0]["lastTransitionTime"] = since(number % 3 + 90);
                    pod["status"]["containerStatuses"] = json!([{ "restartCount": number % 2 }]);
                })
            })
            .collect();
        let order: Vec<_> = first_to_go(&pods, &[], 200, NOW).iter().map(|pod| pod.metadata.name.clone()).collect();
        let turned: Vec<_> = pods.iter().rev().cloned().collect();
        let again: Vec<_> = first_to_go(&turned, &[], 200, NOW).iter().map(|pod| pod.metadata.name.clone()).collect();
        assert_eq!(order, again);
    }

    #[test]
    fn of_equals_the_one_with_more_company_on_its_node_goes() {
        let on = |name: &str, node: &'static str| pod(name, move |pod| pod["spec"]["nodeName"] = json!(node));
        let pods = [on("a", "n1"), on("b", "n2")];
        let related = [on("a", "n1"), on("b", "n2"), on("c", "n2")];
        assert_eq!(first_to_go(&pods, &related, 1, NOW)[0].metadata.name, "b");
    }
}
