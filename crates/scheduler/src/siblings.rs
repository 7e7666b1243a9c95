//! Which pods belong together with one, by the service in front of them or the set that keeps them: they are spread
//! even if nobody says so.

use kinds::{
    Key, Labels, Object, OwnerReference, Pod, ReplicaSet, ReplicationController, Selector, Service, StatefulSet,
};
use object::selector::{Requirement, Test};
use runtime::Caches;
use std::collections::{BTreeSet, HashMap};

/// Services by what they select, so that those in front of a pod are found without looking at the others.
#[derive(Debug, Default)]
pub(crate) struct Services {
    /// What each selects, and under which pair it is found.
    selectors: HashMap<Key, (Labels, String)>,
    by_pair: HashMap<String, BTreeSet<Key>>,
}

impl Services {
    pub(crate) fn put(&mut self, service: &Object<Service>) {
        let key = service.key();
        self.remove(&key);
        let selector = &service.spec.selector;
        // Under the pair that the fewest others are found under: it tells the most.
        let pairs = selector.iter().map(|(label, value)| pair(&key.namespace, label, value));
        let Some(rarest) = pairs.min_by_key(|pair| self.by_pair.get(pair).map_or(0, BTreeSet::len)) else { return };
        self.by_pair.entry(rarest.clone()).or_default().insert(key.clone());
        self.selectors.insert(key, (selector.clone(), rarest));
    }

    pub(crate) fn remove(&mut self, key: &Key) {
        let Some((_, pair)) = self.selectors.remove(key) else { return };
        if let Some(keys) = self.by_pair.get_mut(&pair) {
            keys.remove(key);
            if keys.is_empty() {
                self.by_pair.remove(&pair);
            }
        }
    }

    /// What services select that may be in front of a pod.
    fn candidates(&self, namespace: &str, labels: &Labels) -> impl Iterator<Item = &Labels> {
        let keys = labels.iter().filter_map(move |(label, value)| self.by_pair.get(&pair(namespace, label, value)));
        keys.flatten().filter_map(|key| self.selectors.get(key)).map(|(selector, _)| selector)
    }
}

fn pair(namespace: &str, label: &str, value: &str) -> String {
    format!("{namespace}/{label}={value}")
}

/// Selects them; none if the pod belongs to nothing.
pub(crate) fn selector(pod: &Pod, services: &Services, caches: &Caches) -> Option<Selector> {
    let labels = &pod.metadata.labels;
    if labels.is_empty() || !pod.spec.topology_spread_constraints.is_empty() {
        return None;
    }
    let mut selector = Selector::everything();
    for wanted in services.candidates(&pod.metadata.namespace, labels) {
        if wanted.iter().all(|(key, value)| labels.get(key) == Some(value)) {
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

#[cfg(test)]
mod tests {
    use super::*;
    use object::json;

    fn service(name: &str, selector: &object::Value) -> Object<Service> {
        Object::of(&json!({ "metadata": { "name": name, "namespace": "n" }, "spec": { "selector": selector } }))
    }

    fn labels(app: &str) -> Labels {
        [("app", app), ("env", "production")].map(|(key, value)| (key.to_owned(), value.to_owned())).into()
    }

    #[test]
    fn thousands_of_services_cost_a_pod_no_more_than_its_own() {
        let mut services = Services::default();
        for number in 0..5_000 {
            let selector = json!({ "app": format!("app-{number}"), "env": "production" });
            services.put(&service(&format!("service-{number}"), &selector));
        }
        let looked_at = services.candidates("n", &labels("app-7")).count();
        assert!(looked_at <= 2, "{looked_at} services were looked at");
        assert!(
            services
                .candidates("n", &labels("app-7"))
                .any(|selector| selector.get("app").is_some_and(|app| app == "app-7"))
        );
        assert_eq!(services.candidates("other", &labels("app-7")).count(), 0);
    }

    #[test]
    fn a_service_is_found_by_what_it_selects_now() {
        let mut services = Services::default();
        services.put(&service("s", &json!({ "app": "a" })));
        services.put(&service("s", &json!({ "app": "b" })));
        services.put(&service("everything", &json!({})));
        let found = |services: &Services, app: &str| services.candidates("n", &labels(app)).count();
        assert_eq!((found(&services, "a"), found(&services, "b")), (0, 1));
        services.remove(&Key::new("n", "s"));
        assert_eq!(found(&services, "b"), 0);
        assert!(services.by_pair.is_empty());
    }
}
