//! Root certificate: every namespace has the certificate by which its pods know the API server.

use crate::Settings;
use kinds::{ConfigMap, Key, Namespace, Object};
use object::{Edit, json};
use runtime::{Caches, Controller, Plan, Request};
use std::sync::Arc;

const NAME: &str = "kube-root-ca.crt";
const DESCRIPTION: &str = "kubernetes.io/description";
const WORDS: &str = "Contains a CA bundle that can be used to verify the kube-apiserver when using internal endpoints \
                     such as the internal service IP or kubernetes.default.svc. No other usage is guaranteed across \
                     distributions of Kubernetes clusters.";

pub(crate) fn controller(settings: &Settings) -> Controller {
    let authority = settings.authority.clone();
    Controller::new("root-ca-cert-publisher")
        .primary::<Namespace>()
        .watches::<ConfigMap>(|map, _| match map.metadata.name.as_str() {
            NAME => vec![Key::cluster(map.metadata.namespace.as_str())],
            _ => vec![],
        })
        .plans(move |caches, request| observe(caches, request).map(|map| plan(map, &authority)).unwrap_or_default())
}

struct Observed {
    namespace: String,
    map: Option<Arc<Object<ConfigMap>>>,
}

fn observe(caches: &Caches, request: &Request) -> Option<Observed> {
    let namespace = caches.of::<Namespace>().get(&request.key)?;
    if namespace.metadata.is_being_deleted() {
        return None;
    }
    let map = caches.of::<ConfigMap>().named(&request.key.name, NAME);
    Some(Observed { namespace: request.key.name.clone(), map })
}

fn plan(observed: Observed, authority: &str) -> Plan {
    let mut plan = Plan::default();
    // Nobody has said what to publish.
    if authority.is_empty() {
        return plan;
    }
    let data = json!({ "ca.crt": authority });
    match observed.map {
        None => {
            let annotations = json!({ DESCRIPTION: WORDS });
            let metadata = json!({ "name": NAME, "namespace": observed.namespace, "annotations": annotations });
            plan.create::<ConfigMap>(json!({ "metadata": metadata, "data": data }));
        }
        Some(map) => {
            let mut object = map.json();
            object.set("data", data);
            let annotations = object.object_or_new("metadata").object_or_new("annotations");
            annotations.set_default(DESCRIPTION, WORDS);
            plan.update(&map, object);
        }
    }
    plan
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_namespace_has_the_certificate_and_nothing_else_under_its_name() {
        let planned = |map: Option<object::Value>| {
            let map = map.map(|map| Arc::new(Object::of(&map)));
            plan(Observed { namespace: "a".into(), map }, "PEM").summary()
        };
        let map = |data: object::Value| {
            let annotations = json!({ DESCRIPTION: "my own words" });
            Some(json!({ "metadata": { "name": NAME, "namespace": "a", "annotations": annotations }, "data": data }))
        };
        assert_eq!(planned(None), ["create configmaps kube-root-ca.crt"]);
        assert!(planned(map(json!({ "ca.crt": "PEM" }))).is_empty());
        for wrong in [json!({ "ca.crt": "old" }), json!({ "ca.crt": "PEM", "more": "" })] {
            assert_eq!(planned(map(wrong)), ["update configmaps kube-root-ca.crt"]);
        }
    }

    #[test]
    fn a_namespace_on_its_way_out_gets_nothing() {
        let mut caches = Caches::default().with::<Namespace>().with::<ConfigMap>();
        let going = json!({ "metadata": { "name": "a", "deletionTimestamp": "2026-01-01T00:00:00Z" } });
        caches.put(Object::<Namespace>::of(&going));
        let request = Request { key: Key::cluster("a"), now: kinds::Time(0), failure: None };
        assert!(observe(&caches, &request).is_none());
    }
}
