//! Volumes: a pod runs where its volumes are. Where one is yet to be made, the node chosen for the pod decides where.
//!
//! Binding a claim to a volume is left to the controller of volumes; this says only for which node one is wanted.

use kinds::{Labels, Node, Object, PersistentVolume, PersistentVolumeClaim, Pod, Selector, StorageClass};
use object::{Value, View, json};
use runtime::{Caches, Plan};
use std::sync::Arc;

/// The node that a volume is wanted for.
const SELECTED_NODE: &str = "volume.kubernetes.io/selected-node";
/// A claim that has it has its volume.
const BIND_COMPLETED: &str = "pv.kubernetes.io/bind-completed";

/// What the volumes of a pod mean for where it can run.
#[derive(Default)]
pub(crate) struct Volumes {
    /// Volumes that are there; each may be confined to some nodes.
    bound: Vec<Arc<Object<PersistentVolume>>>,
    /// Claims whose volume is made once a node is chosen.
    unbound: Vec<Arc<Object<PersistentVolumeClaim>>>,
}

/// The volumes of a pod; none if it has to wait for a claim or a volume, whatever node it would run on.
pub(crate) fn observe(caches: &Caches, pod: &Pod) -> Option<Volumes> {
    let mut volumes = Volumes::default();
    for name in pod.claims() {
        let claim = caches.of::<PersistentVolumeClaim>().named(&pod.metadata.namespace, &name)?;
        if claim.metadata.is_being_deleted() {
            return None;
        }
        if claim.metadata.annotations.contains_key(BIND_COMPLETED) {
            volumes.bound.push(caches.of::<PersistentVolume>().named("", &claim.spec.volume_name)?);
            continue;
        }
        let class = caches.of::<StorageClass>().named("", claim.class());
        class.filter(|class| class.waits_for_consumer())?;
        volumes.unbound.push(claim);
    }
    Some(volumes)
}

impl Volumes {
    /// Whether every volume that is there can be reached from a node.
    pub(crate) fn reach(&self, node: &Node) -> bool {
        let reaches = |volume: &Arc<Object<PersistentVolume>>| {
            let required = volume.spec.node_affinity.as_ref().unwrap_or(&Value::Null).at("required");
            let mut terms = required.items("nodeSelectorTerms").iter();
            required.is_null() || terms.any(|term| selects(term, &node.metadata.labels))
        };
        self.bound.iter().all(reaches)
    }

    /// Whether the volumes of a node were asked for before. What is being made there would go to waste elsewhere.
    pub(crate) fn prefer(&self, node: &Node) -> bool {
        self.unbound.iter().any(|claim| claim.metadata.annotation(SELECTED_NODE) == node.metadata.name)
    }

    /// Asks for the volumes that are missing to be made on a node. Whether there are any: then the pod has to wait.
    pub(crate) fn ask_for(&self, plan: &mut Plan, node: &Node) -> bool {
        let name = &node.metadata.name;
        for claim in self.unbound.iter().filter(|claim| claim.metadata.annotation(SELECTED_NODE) != name) {
            plan.patch(claim, json!({ "metadata": { "annotations": { SELECTED_NODE: name } } }));
        }
        !self.unbound.is_empty()
    }
}

fn selects(term: &Value, labels: &Labels) -> bool {
    let selector = Selector::from_object(&json!({ "matchExpressions": term.items("matchExpressions") }));
    selector.is_ok_and(|selector| selector.matches(|key| labels.get(key).map(String::as_str)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(name: &str) -> Object<Node> {
        Object::of(&json!({ "metadata": { "name": name, "labels": { "kubernetes.io/hostname": name } } }))
    }

    fn claim(annotations: &Value) -> Object<PersistentVolumeClaim> {
        Object::of(&json!({
            "metadata": { "name": "data", "namespace": "default", "annotations": annotations },
            "spec": { "storageClassName": "local", "volumeName": "v" },
        }))
    }

    fn pod() -> Object<Pod> {
        let volume = json!({ "name": "v", "persistentVolumeClaim": { "claimName": "data" } });
        Object::of(&json!({ "metadata": { "namespace": "default" }, "spec": { "volumes": [volume] } }))
    }

    fn caches() -> Caches {
        let mut caches =
            Caches::default().with::<PersistentVolumeClaim>().with::<PersistentVolume>().with::<StorageClass>();
        caches.put(Object::<StorageClass>::of(&json!({
            "metadata": { "name": "local" }, "volumeBindingMode": "WaitForFirstConsumer",
        })));
        caches
    }

    #[test]
    fn a_pod_waits_for_its_claims_and_for_their_volumes() {
        let mut caches = caches();
        assert!(observe(&caches, &pod()).is_none(), "there is no claim");
        caches.put(claim(&json!({ BIND_COMPLETED: "yes" })));
        assert!(observe(&caches, &pod()).is_none(), "there is no volume");
    }

    #[test]
    fn a_pod_runs_where_its_volume_is() {
        let mut caches = caches();
        caches.put(claim(&json!({ BIND_COMPLETED: "yes" })));
        let here = json!({ "key": "kubernetes.io/hostname", "operator": "In", "values": ["a"] });
        caches.put(Object::<PersistentVolume>::of(&json!({
            "metadata": { "name": "v" },
            "spec": { "nodeAffinity": { "required": { "nodeSelectorTerms": [{ "matchExpressions": [here] }] } } },
        })));
        let volumes = observe(&caches, &pod()).unwrap();
        assert!(volumes.reach(&node("a")) && !volumes.reach(&node("b")));
        assert!(!volumes.ask_for(&mut Plan::default(), &node("a")));
    }

    #[test]
    fn a_volume_is_asked_for_once_where_the_pod_shall_run() {
        let mut caches = caches();
        caches.put(claim(&json!({})));
        let volumes = observe(&caches, &pod()).unwrap();
        let mut plan = Plan::default();
        assert!(volumes.ask_for(&mut plan, &node("a")) && !volumes.prefer(&node("a")));
        assert_eq!(plan.summary(), ["patch persistentvolumeclaims data"]);
        caches.put(claim(&json!({ SELECTED_NODE: "a" })));
        let volumes = observe(&caches, &pod()).unwrap();
        let mut plan = Plan::default();
        assert!(volumes.ask_for(&mut plan, &node("a")) && volumes.prefer(&node("a")));
        assert_eq!(plan.summary(), [""; 0]);
    }
}
