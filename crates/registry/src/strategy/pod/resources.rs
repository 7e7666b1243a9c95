//! How much a pod asks for: sums over its containers, what follows from them, and its quality of service.

use crate::strategy::resource_name::can_overcommit;
use crate::strategy::value::quantity;
use object::{Edit, Map, Quantity, Value, View};
use std::collections::BTreeMap;

/// Amounts by the name of a resource.
pub(super) type Amounts<'v> = BTreeMap<&'v str, Quantity>;

pub(super) const HUGE_PAGES: &str = "hugepages-";

/// A resource that may be asked for by the pod as a whole.
pub(super) fn is_pod_level(name: &str) -> bool {
    matches!(name, "cpu" | "memory") || name.starts_with(HUGE_PAGES)
}

/// An init container that goes on running beside those that follow.
pub(super) fn is_sidecar(container: &Value) -> bool {
    container.text("restartPolicy") == "Always"
}

/// What has no request asks for its limit.
pub(super) fn requests_from_limits(resources: &mut Value) {
    let Some(limits) = resources.at("limits").as_object() else { return };
    let requests = resources.at("requests");
    let missing: Vec<_> = limits.iter().filter(|(name, _)| !requests.has(name)).collect();
    if missing.is_empty() && requests.is_object() {
        return;
    }
    let missing: Map = missing.into_iter().map(|(name, limit)| (name.clone(), limit.clone())).collect();
    if let Value::Object(requests) = resources.object_or_new("requests") {
        requests.extend(missing);
    }
}

/// What all containers need at once, at the worst moment: `list` is `requests` or `limits`.
pub(super) fn aggregate<'v>(spec: &'v Value, list: &str) -> Amounts<'v> {
    let mut total = Amounts::new();
    for container in spec.items("containers") {
        add(&mut total, container, list);
    }
    let (mut sidecars, mut starting) = (Amounts::new(), Amounts::new());
    for container in spec.items("initContainers") {
        if is_sidecar(container) {
            add(&mut total, container, list);
            add(&mut sidecars, container, list);
            raise(&mut starting, &sidecars);
        } else {
            let mut moment = sidecars.clone();
            add(&mut moment, container, list);
            raise(&mut starting, &moment);
        }
    }
    raise(&mut total, &starting);
    total
}

fn add<'v>(total: &mut Amounts<'v>, container: &'v Value, list: &str) {
    for (name, amount) in container.at("resources").entries(list) {
        let sum = total.entry(name).or_default();
        *sum = *sum + quantity(amount);
    }
}

fn raise<'v>(total: &mut Amounts<'v>, least: &Amounts<'v>) {
    for (name, amount) in least {
        let most = total.entry(name).or_insert(*amount);
        *most = (*most).max(*amount);
    }
}

/// The requests and limits of the pod as a whole, where some of them are given.
pub(super) fn default_pod_level(spec: &mut Value) {
    let resources = spec.at("resources");
    let (limits, requests) = (resources.at("limits"), resources.at("requests"));
    let is_some = |list: &Value| list.as_object().is_some_and(|list| !list.is_empty());
    if !is_some(limits) && !is_some(requests) {
        return;
    }
    let mut limits = limits.as_object().cloned().unwrap_or_default();
    let mut requests = requests.as_object().cloned().unwrap_or_default();
    for (name, amount) in aggregate(spec, "limits") {
        // Huge pages cannot be overcommitted, so what the containers may use is what the pod needs.
        if name.starts_with(HUGE_PAGES) && !requests.contains_key(name) && !limits.contains_key(name) {
            limits.insert(name, Value::from(amount.to_string()));
        }
    }
    if !limits.is_empty() {
        for (name, amount) in aggregate(spec, "requests") {
            if is_pod_level(name) && can_overcommit(name) && !requests.contains_key(name) {
                requests.insert(name, Value::from(amount.to_string()));
            }
        }
        for (name, limit) in &limits {
            if is_pod_level(name) && !requests.contains_key(name) {
                requests.insert(name.clone(), limit.clone());
            }
        }
    }
    let Some(resources) = spec.object("resources") else { return };
    for (list, amounts) in [("limits", limits), ("requests", requests)] {
        if !amounts.is_empty() {
            resources.set(list, amounts);
        }
    }
}

/// How well a pod is treated when its node runs short: the class of a pod as its spec says.
pub fn qos_class(pod: &Value) -> &'static str {
    let spec = pod.at("spec");
    let (mut requests, mut limits) = (Amounts::new(), Amounts::new());
    let mut count = |resources| {
        tally(&mut requests, resources, "requests");
        tally(&mut limits, resources, "limits") == 2
    };
    let mut guaranteed = true;
    if spec.has("resources") {
        let resources = spec.at("resources");
        guaranteed = count(resources) || resources.entries("limits").next().is_none();
    } else {
        for container in spec.items("containers").iter().chain(spec.items("initContainers")) {
            guaranteed &= count(container.at("resources"));
        }
    }
    match (requests.is_empty() && limits.is_empty(), guaranteed && requests == limits) {
        (true, _) => "BestEffort",
        (false, true) => "Guaranteed",
        (false, false) => "Burstable",
    }
}

/// Adds the processors and memory of a list, and says for how many of the two it has any.
fn tally<'v>(total: &mut Amounts<'v>, resources: &'v Value, list: &str) -> usize {
    let mut found = 0;
    for (name, amount) in resources.entries(list) {
        let amount = quantity(amount);
        if matches!(name, "cpu" | "memory") && !amount.is_zero() && !amount.is_negative() {
            let sum = total.entry(name).or_default();
            *sum = *sum + amount;
            found += 1;
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use object::json;

    #[expect(clippy::needless_pass_by_value, reason = "the cases read better")]
    fn container(requests: Value, limits: Value) -> Value {
        json!({ "resources": { "requests": requests, "limits": limits } })
    }

    #[test]
    fn the_class_follows_from_requests_and_limits() {
        let both = json!({ "cpu": "1", "memory": "1Gi" });
        for (containers, class) in [
            (json!([container(json!({}), json!({}))]), "BestEffort"),
            (json!([container(both.clone(), both.clone())]), "Guaranteed"),
            (json!([container(json!({ "cpu": "1000m", "memory": "1024Mi" }), both.clone())]), "Guaranteed"),
            (json!([container(both.clone(), both.clone()), container(json!({}), json!({}))]), "Burstable"),
            (json!([container(json!({ "cpu": "1" }), json!({}))]), "Burstable"),
            (json!([container(json!({ "cpu": "0" }), json!({}))]), "BestEffort"),
            (json!([container(json!({ "cpu": "1" }), json!({ "cpu": "1" }))]), "Burstable"),
        ] {
            assert_eq!(qos_class(&json!({ "spec": { "containers": containers } })), class, "{containers}");
        }
        let pod = json!({ "spec": { "containers": [{}], "resources": { "requests": both, "limits": both } } });
        assert_eq!(qos_class(&pod), "Guaranteed");
    }

    #[test]
    fn sidecars_count_beside_what_follows_them() {
        let init =
            |policy: Value, cpu: &str| json!({ "restartPolicy": policy, "resources": { "requests": { "cpu": cpu } } });
        let spec = json!({
            "containers": [container(json!({ "cpu": "1" }), json!({}))],
            "initContainers": [init(json!("Always"), "500m"), init(Value::Null, "2")],
        });
        assert_eq!(aggregate(&spec, "requests")["cpu"], Quantity::from_millis(2500));
    }

    #[test]
    fn a_pod_with_a_limit_requests_what_its_containers_do() {
        let mut spec = json!({
            "containers": [container(json!({ "cpu": "1" }), json!({ "hugepages-2Mi": "4Mi" }))],
            "resources": { "limits": { "cpu": "4", "memory": "1Gi" } },
        });
        default_pod_level(&mut spec);
        assert_eq!(
            spec["resources"],
            json!({
                "limits": { "cpu": "4", "memory": "1Gi", "hugepages-2Mi": "4Mi" },
                "requests": { "cpu": "1", "memory": "1Gi", "hugepages-2Mi": "4Mi" },
            })
        );
    }
}
