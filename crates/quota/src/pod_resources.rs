//! What a pod as a whole asks for: the sum of its containers, or the most that its init containers need, one after the
//! other beside those that keep running.

use crate::Amounts;
use object::{ApiError, Value, View};

/// `requests` or `limits`, as both are counted alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    Requests,
    Limits,
}

impl Side {
    fn field(self) -> &'static str {
        match self {
            Side::Requests => "requests",
            Side::Limits => "limits",
        }
    }
}

/// What a container says of itself.
pub fn of_container(container: &Value, side: Side) -> Result<Amounts, ApiError> {
    Amounts::read(container.at("resources").at(side.field()))
}

/// What the specification of a pod says, as limit ranges see it.
pub fn of_spec(pod: &Value, side: Side) -> Result<Amounts, ApiError> {
    let mut total = of_containers(pod, &|container, _| of_container(container, side))?;
    let whole = Amounts::read(pod.at("spec").at("resources").at(side.field()))?;
    for (name, quantity) in whole.iter().filter(|(name, _)| matches!(*name, "cpu" | "memory")) {
        total.set(name, quantity);
    }
    Ok(total)
}

/// What a pod asks for, with what its runtime adds.
pub fn requested(pod: &Value) -> Result<Amounts, ApiError> {
    with_overhead(pod, Side::Requests, &|container, _| of_container(container, Side::Requests))
}

/// What a pod is charged for: what it asks for or still holds while it is resized, and what its runtime adds.
pub fn charged(pod: &Value, side: Side) -> Result<Amounts, ApiError> {
    with_overhead(pod, side, &|container, status| held(pod, container, status, side))
}

fn with_overhead(pod: &Value, side: Side, count: &Count<'_>) -> Result<Amounts, ApiError> {
    let spec = pod.at("spec");
    let mut total = of_containers(pod, count)?;
    let whole = Amounts::read(spec.at("resources").at(side.field()))?;
    for (name, quantity) in whole.iter().filter(|(name, _)| is_pod_level(name)) {
        total.set(name, quantity);
    }
    let overhead = Amounts::read(spec.at("overhead"))?;
    total.add(&match side {
        Side::Requests => overhead,
        // Where nothing is limited, overhead does not make a limit.
        Side::Limits => overhead.only(|name| total.get(name).is_some_and(|limit| !limit.is_zero())),
    });
    Ok(total)
}

/// Resources that can be given to a pod as a whole.
pub fn is_pod_level(name: &str) -> bool {
    matches!(name, "cpu" | "memory") || name.starts_with("hugepages-")
}

/// Whether a pod says as a whole what it needs.
pub fn has_pod_level(pod: &Value) -> bool {
    let resources = pod.at("spec").at("resources");
    ["requests", "limits"].iter().any(|field| resources.entries(field).any(|(name, _)| is_pod_level(name)))
}

type Count<'a> = dyn Fn(&Value, &Value) -> Result<Amounts, ApiError> + 'a;

/// Counts containers, each together with its status, which is null where it has none that matters.
fn of_containers(pod: &Value, count: &Count<'_>) -> Result<Amounts, ApiError> {
    let (spec, status) = (pod.at("spec"), pod.at("status"));
    let status_of = |list: &str, container: &Value| {
        let found = status.items(list).iter().find(|status| status.text("name") == container.text("name"));
        found.cloned().unwrap_or_default()
    };
    let mut total = Amounts::default();
    for container in spec.items("containers") {
        total.add(&count(container, &status_of("containerStatuses", container))?);
    }
    let (mut running, mut peak) = (Amounts::default(), Amounts::default());
    for container in spec.items("initContainers") {
        if container.text("restartPolicy") == "Always" {
            let own = count(container, &status_of("initContainerStatuses", container))?;
            total.add(&own);
            running.add(&own);
            peak.raise_to(&running);
        } else {
            let mut together = count(container, &Value::Null)?;
            together.add(&running);
            peak.raise_to(&together);
        }
    }
    total.raise_to(&peak);
    Ok(total)
}

/// What a container asks for, or what it has until a resize is done, whichever is more.
fn held(pod: &Value, container: &Value, status: &Value, side: Side) -> Result<Amounts, ApiError> {
    if !status.has("resources") {
        return of_container(container, side);
    }
    let mut held = Amounts::read(status.at("resources").at(side.field()))?;
    if side == Side::Requests {
        held.raise_to(&Amounts::read(status.at("allocatedResources"))?);
    }
    let conditions = pod.at("status").items("conditions");
    let pending = conditions.iter().find(|condition| condition.text("type") == "PodResizePending");
    // A resize that can never be done is not waited for.
    if pending.is_none_or(|condition| condition.text("reason") != "Infeasible") {
        held.raise_to(&of_container(container, side)?);
    }
    Ok(held)
}

#[cfg(test)]
mod tests {
    use super::*;
    use object::json;

    fn container(cpu: &str) -> Value {
        json!({ "name": cpu, "resources": { "requests": { "cpu": cpu }, "limits": { "cpu": cpu } } })
    }

    fn sidecar(cpu: &str) -> Value {
        let mut container = container(cpu);
        container["restartPolicy"] = json!("Always");
        container
    }

    #[test]
    fn init_containers_count_where_they_need_more_than_the_rest() {
        for (containers, init, expected) in [
            (vec![container("1"), container("2")], vec![], "cpu=3"),
            (vec![container("1")], vec![container("2"), container("5")], "cpu=5"),
            (vec![container("4")], vec![container("2")], "cpu=4"),
            (vec![container("1")], vec![sidecar("2")], "cpu=3"),
            (vec![container("1")], vec![sidecar("2"), container("4")], "cpu=6"),
            (vec![container("1")], vec![container("4"), sidecar("2")], "cpu=4"),
        ] {
            let pod = json!({ "spec": { "containers": containers, "initContainers": init } });
            assert_eq!(of_spec(&pod, Side::Requests).unwrap().to_string(), expected, "{pod}");
            assert_eq!(charged(&pod, Side::Limits).unwrap().to_string(), expected, "{pod}");
        }
    }

    #[test]
    fn overhead_is_added_to_requests_and_to_limits_that_are_there() {
        let pod = json!({ "spec": { "containers": [container("1")], "overhead": { "cpu": "250m", "memory": "1Gi" } } });
        assert_eq!(charged(&pod, Side::Requests).unwrap().to_string(), "cpu=1250m,memory=1Gi");
        assert_eq!(charged(&pod, Side::Limits).unwrap().to_string(), "cpu=1250m");
    }

    #[test]
    fn what_the_whole_pod_asks_for_counts_before_its_containers() {
        let pod = json!({ "spec": { "containers": [container("1")], "resources": { "requests": { "cpu": "3" } } } });
        assert_eq!(charged(&pod, Side::Requests).unwrap().to_string(), "cpu=3");
        assert!(has_pod_level(&pod));
    }

    #[test]
    fn while_a_pod_is_resized_the_larger_size_counts() {
        let status = |reason: &str| {
            json!({
                "containerStatuses": [{ "name": "1", "resources": { "requests": { "cpu": "500m" } } }],
                "conditions": [{ "type": "PodResizePending", "reason": reason }],
            })
        };
        for (reason, expected) in [("Deferred", "cpu=1"), ("Infeasible", "cpu=500m")] {
            let pod = json!({ "spec": { "containers": [container("1")] }, "status": status(reason) });
            assert_eq!(charged(&pod, Side::Requests).unwrap().to_string(), expected);
        }
    }
}
