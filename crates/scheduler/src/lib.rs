//! Which pod runs on which node.
//!
//! Plain for now: of the nodes that are ready, tolerated, have room and reach its volumes, the one with the fewest pods.

mod volumes;

use kinds::{Key, Node, Object, PersistentVolume, PersistentVolumeClaim, Pod, Resources, StorageClass, Taint};
use object::{Quantity, json};
use runtime::{Caches, Change, Controller, Plan};
use std::collections::BTreeMap;
use std::sync::Arc;
use volumes::Volumes;

/// All pods are placed in one go.
const EVERYTHING: &str = "pods";

pub fn controller() -> Controller {
    Controller::new("default-scheduler")
        .workers(1)
        .watches_changes::<Pod>(|change, _| wakes(change).then(|| Key::cluster(EVERYTHING)).into_iter().collect())
        .watches::<Node>(|_, _| vec![Key::cluster(EVERYTHING)])
        .watches::<PersistentVolumeClaim>(|_, _| vec![Key::cluster(EVERYTHING)])
        .watches::<PersistentVolume>(|_, _| vec![Key::cluster(EVERYTHING)])
        .watches::<StorageClass>(|_, _| vec![Key::cluster(EVERYTHING)])
        .plans(|caches, _| plan(&observe(caches)))
}

/// Whether a pod is waiting, or has made room.
fn wakes(change: &Change<Pod>) -> bool {
    let makes_room = |pod: &Object<Pod>| !pod.spec.node_name.is_empty() && !pod.is_finished();
    change.new.as_ref().is_some_and(|pod| waits(pod))
        || change
            .old
            .as_ref()
            .is_some_and(|old| makes_room(old) && !change.new.as_ref().is_some_and(|new| makes_room(new)))
}

fn waits(pod: &Pod) -> bool {
    pod.spec.node_name.is_empty()
        && pod.is_active()
        && pod.spec.scheduling_gates.is_empty()
        && matches!(pod.spec.scheduler_name.as_str(), "" | "default-scheduler")
}

struct Observed {
    pending: Vec<(Arc<Object<Pod>>, Volumes)>,
    nodes: Vec<Place>,
}

/// A node and what is left of it.
struct Place {
    node: Arc<Object<Node>>,
    free: BTreeMap<String, Quantity>,
    pods: usize,
}

fn observe(caches: &Caches) -> Observed {
    let pods = caches.of::<Pod>();
    let mut pending: Vec<_> = pods.by("node", "").into_iter().filter(|pod| waits(pod)).collect();
    pending.sort_by_key(|pod| (std::cmp::Reverse(pod.spec.priority.unwrap_or(0)), pod.metadata.creation_timestamp));
    let pending = pending.into_iter().filter_map(|pod| volumes::observe(caches, &pod).map(|volumes| (pod, volumes)));
    let pending = pending.collect();
    let nodes = caches.of::<Node>().all().into_iter().filter(|node| node.is_ready());
    let nodes = nodes.map(|node| {
        let running: Vec<_> =
            pods.by("node", &node.metadata.name).into_iter().filter(|pod| !pod.is_finished()).collect();
        let mut place = Place { free: node.status.allocatable.clone(), pods: 0, node };
        running.iter().for_each(|pod| place.take(pod));
        place
    });
    Observed { pending, nodes: nodes.collect() }
}

fn plan(observed: &Observed) -> Plan {
    let mut plan = Plan::default();
    let mut places: Vec<Place> = observed.nodes.iter().map(Place::copy).collect();
    for (pod, volumes) in &observed.pending {
        let fitting = places.iter_mut().filter(|place| place.fits(pod) && volumes.reach(&place.node));
        let best = fitting.min_by_key(|place| (!volumes.prefer(&place.node), place.pods));
        let Some(place) = best else { continue };
        place.take(pod);
        if volumes.ask_for(&mut plan, &place.node) {
            continue;
        }
        plan.post(
            pod,
            "binding",
            json!({
                "apiVersion": "v1", "kind": "Binding",
                "metadata": { "name": pod.metadata.name, "namespace": pod.metadata.namespace, "uid": pod.metadata.uid },
                "target": { "apiVersion": "v1", "kind": "Node", "name": place.node.metadata.name },
            }),
        );
    }
    plan
}

impl Place {
    fn copy(&self) -> Place {
        Place { node: self.node.clone(), free: self.free.clone(), pods: self.pods }
    }

    fn take(&mut self, pod: &Pod) {
        self.pods += 1;
        for (name, amount) in requests(pod) {
            if let Some(free) = self.free.get_mut(&name) {
                *free = *free - amount;
            }
        }
    }

    fn fits(&self, pod: &Pod) -> bool {
        let tolerated = |taint: &Taint| {
            taint.effect == "PreferNoSchedule"
                || pod.spec.tolerations.iter().any(|toleration| toleration.tolerates(taint))
        };
        let labels = &self.node.metadata.labels;
        let room = requests(pod)
            .into_iter()
            .all(|(name, amount)| amount.is_zero() || self.free.get(&name).is_some_and(|free| amount <= *free));
        let wanted = node_name_of(pod);
        room && wanted.is_none_or(|name| name == self.node.metadata.name)
            && self.node.spec.taints.iter().chain(cordon(&self.node).as_ref()).all(tolerated)
            && pod.spec.node_selector.iter().all(|(key, value)| labels.get(key) == Some(value))
    }
}

/// A node that takes no new pods takes those of daemons, which tolerate the taint that says so. It counts from the
/// moment the node is cordoned, whether or not the taint is there yet.
fn cordon(node: &Node) -> Option<Taint> {
    let taint =
        || Taint { key: "node.kubernetes.io/unschedulable".into(), effect: "NoSchedule".into(), ..Taint::default() };
    node.spec.unschedulable.then(taint)
}

/// The one node that the pod of a daemon is meant for.
fn node_name_of(pod: &Pod) -> Option<&str> {
    let affinity = pod.spec.affinity.as_deref()?;
    let path =
        "/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution/nodeSelectorTerms/0/matchFields/0/values/0";
    affinity.pointer(path)?.as_str()
}

/// What a pod needs, itself included.
fn requests(pod: &Pod) -> BTreeMap<String, Quantity> {
    let mut sum = BTreeMap::from([("pods".to_owned(), Quantity::from_units(1))]);
    for Resources { requests, .. } in pod.spec.containers.iter().map(|container| &container.resources) {
        for (name, amount) in requests {
            let total = sum.entry(name.clone()).or_insert(Quantity::from_units(0));
            *total = *total + *amount;
        }
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;
    use object::Value;

    fn node(name: &str, edit: impl Fn(&mut Value)) -> Place {
        let mut value = json!({
            "metadata": { "name": name },
            "status": {
                "allocatable": { "cpu": "2", "pods": "2" },
                "conditions": [{ "type": "Ready", "status": "True" }],
            },
        });
        edit(&mut value);
        let node: Arc<Object<Node>> = Arc::new(Object::of(&value));
        Place { free: node.status.allocatable.clone(), node, pods: 0 }
    }

    fn pod(name: &str, cpu: &str) -> Arc<Object<Pod>> {
        Arc::new(Object::of(&json!({
            "metadata": { "name": name, "namespace": "default", "uid": name },
            "spec": { "containers": [{ "name": "c", "resources": { "requests": { "cpu": cpu } } }] },
        })))
    }

    fn bound(pending: Vec<Arc<Object<Pod>>>, nodes: Vec<Place>) -> Vec<String> {
        let pending = pending.into_iter().map(|pod| (pod, Volumes::default())).collect();
        let plan = plan(&Observed { pending, nodes });
        let target = |write: &runtime::Write| match write {
            runtime::Write::Post { target, object, .. } => {
                format!("{}={}", target.key.name, object["target"]["name"].as_str().unwrap_or_default())
            }
            other => panic!("{other:?}"),
        };
        plan.writes.iter().map(target).collect()
    }

    #[test]
    fn pods_go_where_there_is_room() {
        let nodes = || vec![node("a", |_| {}), node("b", |_| {})];
        assert_eq!(bound(vec![pod("x", "1"), pod("y", "1"), pod("z", "1")], nodes()), ["x=a", "y=b", "z=a"]);
        assert_eq!(bound(vec![pod("x", "3")], nodes()), [""; 0]);
        let tainted = node("a", |node| node["spec"] = json!({ "taints": [{ "key": "k", "effect": "NoSchedule" }] }));
        assert_eq!(bound(vec![pod("x", "1")], vec![tainted, node("b", |_| {})]), ["x=b"]);
    }

    #[test]
    fn a_cordoned_node_takes_only_pods_that_tolerate_it() {
        let cordoned = || vec![node("a", |node| node["spec"] = json!({ "unschedulable": true }))];
        assert_eq!(bound(vec![pod("x", "1")], cordoned()), [""; 0]);
        let daemon: Object<Pod> = Object::of(&json!({
            "metadata": { "name": "d", "namespace": "default", "uid": "d" },
            "spec": {
                "containers": [{ "name": "c" }],
                "tolerations": [{ "key": "node.kubernetes.io/unschedulable", "operator": "Exists", "effect": "NoSchedule" }],
            },
        }));
        assert_eq!(bound(vec![Arc::new(daemon)], cordoned()), ["d=a"]);
    }
}
