//! A pod that is resized while it runs: what it has, what it asks for, and whether it can have that.

use crate::admission;
use kinds::{Amounts, Container, ContainerStatus, Dict, Pod, Resources};
use object::Quantity;

/// What became of a resize that is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Resize {
    /// It can be done at once.
    Granted,
    /// Not now, or never, and why.
    Pending { reason: &'static str, message: String },
}

pub(super) const DEFERRED: &str = "Deferred";
pub(super) const INFEASIBLE: &str = "Infeasible";

/// Whether a pod can have what it asks for, on a node that has so much and of which others take so much.
pub(super) fn decide(asked: &Amounts, used: &Amounts, capacity: &Amounts) -> Resize {
    let Some(short) = admission::shortage(asked, used, capacity) else { return Resize::Granted };
    if !short.is_for_good() {
        return Resize::Pending { reason: DEFERRED, message: short.message() };
    }
    let (resource, requested, capacity) = (short.resource, short.requested, short.capacity);
    let message = format!("Node didn't have enough capacity: {resource}, requested: {requested}, capacity: {capacity}");
    Resize::Pending { reason: INFEASIBLE, message }
}

/// What a container has, and what of that it was promised: what was reported last, or what it asks for if nothing was.
pub(super) fn held<'a>(
    pod: &Pod,
    container: &'a Container,
    before: Option<&'a ContainerStatus>,
) -> (&'a Resources, &'a Dict<Quantity>) {
    match before.filter(|_| has_reported(pod)) {
        Some(before) => (&before.resources, &before.allocated_resources),
        None => (&container.resources, &container.resources.requests),
    }
}

/// Whether it was told what the pod's containers have. That goes with the generation.
pub(super) fn has_reported(pod: &Pod) -> bool {
    pod.status.phase == "Running" && pod.status.observed_generation > 0
}

/// Whether a pod that runs asks for something else than it has.
pub(super) fn is_wanted(pod: &Pod) -> bool {
    let status = &pod.status;
    let differs = |one: &Container, statuses: &[ContainerStatus]| {
        is_different(pod, one, statuses.iter().find(|status| status.name == one.name))
    };
    let whole = |asked: &Resources| *asked != *status.resources || asked.requests != *status.allocated_resources;
    let mut sidecars = pod.spec.init_containers.iter().filter(|container| container.is_sidecar());
    has_reported(pod)
        && (pod.spec.containers.iter().any(|one| differs(one, &status.container_statuses))
            || sidecars.any(|one| differs(one, &status.init_container_statuses))
            || pod.spec.resources.as_deref().is_some_and(whole))
}

fn is_different(pod: &Pod, container: &Container, before: Option<&ContainerStatus>) -> bool {
    let (has, promised) = held(pod, container, before);
    *has != container.resources || *promised != container.resources.requests
}

/// Whether a container has to be started again to have what it asks for.
pub(super) fn needs_restart(pod: &Pod, container: &Container, before: Option<&ContainerStatus>) -> bool {
    let (has, _) = held(pod, container, before);
    let asks = &container.resources;
    let differs =
        |name: &str| asks.requests.get(name) != has.requests.get(name) || asks.limits.get(name) != has.limits.get(name);
    let mut policies = container.resize_policy.iter();
    policies.any(|policy| policy.restart_policy == "RestartContainer" && differs(&policy.resource_name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use kinds::Object;
    use object::json;

    #[test]
    fn what_fits_is_granted_and_what_never_can_is_told_apart() {
        let cpu = |cpu: i64| Amounts { cpu, ..Amounts::default() };
        let deferred = "Node didn't have enough resource: cpu, requested: 3000, used: 2000, capacity: 4000";
        let never = "Node didn't have enough capacity: cpu, requested: 5000, capacity: 4000";
        for (asked, used, expected) in [
            (2000, 2000, Resize::Granted),
            (3000, 2000, Resize::Pending { reason: DEFERRED, message: deferred.to_owned() }),
            (5000, 0, Resize::Pending { reason: INFEASIBLE, message: never.to_owned() }),
        ] {
            assert_eq!(decide(&cpu(asked), &cpu(used), &cpu(4000)), expected);
        }
    }

    #[test]
    fn only_what_the_policy_names_takes_a_restart() {
        let policy = json!([{ "resourceName": "memory", "restartPolicy": "RestartContainer" },
                            { "resourceName": "cpu", "restartPolicy": "NotRequired" }]);
        for (cpu, memory, wanted, restart) in [
            ("1", "1Gi", false, false),
            ("1000m", "1024Mi", false, false),
            ("2", "1Gi", true, false),
            ("1", "2Gi", true, true),
        ] {
            let requests = json!({ "cpu": cpu, "memory": memory });
            let had = json!({ "cpu": "1", "memory": "1Gi" });
            let pod: Object<Pod> = Object::of(&json!({
                "spec": { "containers": [{ "name": "c", "resources": { "requests": requests }, "resizePolicy": policy }] },
                "status": {
                    "phase": "Running", "observedGeneration": 1,
                    "containerStatuses": [{ "name": "c", "resources": { "requests": had }, "allocatedResources": had }],
                },
            }));
            let (container, before) = (&pod.spec.containers[0], pod.status.container_statuses.first());
            assert_eq!((is_wanted(&pod), needs_restart(&pod, container, before)), (wanted, restart), "{requests}");
        }
    }
}
