//! Which pods belong together with one, by the service in front of them or the set that keeps them: they are spread
//! even if nobody says so.

use kinds::{Object, OwnerReference, Pod, ReplicaSet, ReplicationController, Selector, Service, StatefulSet};
use object::selector::{Requirement, Test};
use runtime::Caches;
use std::sync::Arc;

/// Selects them; none if the pod belongs to nothing.
pub(crate) fn selector(pod: &Pod, caches: &Caches) -> Option<Selector> {
    let labels = &pod.metadata.labels;
    if labels.is_empty() || !pod.spec.topology_spread_constraints.is_empty() {
        return None;
    }
    let mut selector = Selector::everything();
    let services: Vec<Arc<Object<Service>>> = caches.of::<Service>().in_namespace(&pod.metadata.namespace);
    for service in services {
        let wanted = &service.spec.selector;
        if !wanted.is_empty() && wanted.iter().all(|(key, value)| labels.get(key) == Some(value)) {
            for (key, value) in wanted {
                selector = selector.and(Requirement { key: key.clone(), test: Test::In([value.clone()].into()) });
            }
        }
    }
    if let Some(set) = pod.metadata.controller().and_then(|owner| of_set(owner, &pod.metadata.namespace, caches)) {
        selector = set.requirements().iter().cloned().fold(selector, Selector::and);
    }
    (!selector.is_everything()).then_some(selector)
}

fn of_set(owner: &OwnerReference, namespace: &str, caches: &Caches) -> Option<Selector> {
    let name = owner.name.as_str();
    match owner.kind.as_str() {
        "ReplicaSet" => caches.of::<ReplicaSet>().named(namespace, name)?.spec.selector.ready(),
        "StatefulSet" => caches.of::<StatefulSet>().named(namespace, name)?.spec.selector.ready(),
        "ReplicationController" => {
            let set = caches.of::<ReplicationController>().named(namespace, name)?;
            kinds::LabelSelector::from_labels(&set.spec.selector).ready()
        }
        _ => None,
    }
}
