//! The scheduler as a whole, without the API: what goes in are objects, what comes out is where pods go and why not.

mod devices;
mod devices_properties;
mod explanations;
mod figures;
mod gang;
mod gang_properties;
mod neighbours;
mod nodes;
mod preemption;
mod profiles;
mod properties;
mod queue;
mod volumes;

pub(crate) use crate::driver::caches;
use crate::{Configuration, Decision, Outcome, Scheduler};
use kinds::{Kind, Namespace, Node, Object, Pod};
use object::{Value, json};
use runtime::{Caches, Change};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

pub(crate) struct Fixture {
    pub scheduler: Scheduler,
    pub now: Instant,
    /// Whether it takes a while until those who are in the way of others are leaving.
    pub is_slow: bool,
}

/// Merges `more` into an object.
pub(crate) fn merge(into: &mut Value, more: &Value) {
    match (into, more) {
        (Value::Object(into), Value::Object(more)) => {
            for (key, value) in more {
                merge(into.entry(key.as_str()).or_insert(Value::Null), value);
            }
        }
        (into, more) => *into = more.clone(),
    }
}

/// A node of 4 cores, 8 GiB and 10 pods, with whatever else.
pub(crate) fn node(name: &str, more: &Value) -> Value {
    let mut node = json!({
        "metadata": { "name": name, "labels": { "kubernetes.io/hostname": name } },
        "status": {
            "allocatable": { "cpu": "4", "memory": "8Gi", "pods": "10", "ephemeral-storage": "10Gi" },
            "conditions": [{ "type": "Ready", "status": "True" }],
        },
    });
    merge(&mut node, more);
    node
}

pub(crate) fn in_zone(name: &str, zone: &str) -> Value {
    node(name, &json!({ "metadata": { "labels": { "topology.kubernetes.io/zone": zone } } }))
}

/// A pod that asks for nothing, with whatever else.
pub(crate) fn pod(name: &str, more: &Value) -> Value {
    let mut pod = json!({
        "metadata": { "name": name, "namespace": "default", "uid": name },
        "spec": { "containers": [{ "name": "c", "image": "image" }] },
    });
    merge(&mut pod, more);
    pod
}

pub(crate) fn asking(name: &str, cpu: &str) -> Value {
    let container = json!({ "name": "c", "resources": { "requests": { "cpu": cpu } } });
    pod(name, &json!({ "spec": { "containers": [container] } }))
}

impl Fixture {
    pub(crate) fn new(nodes: &[Value]) -> Self {
        Fixture::with(caches(), nodes)
    }

    pub(crate) fn with(caches: Caches, nodes: &[Value]) -> Self {
        Fixture::configured(&Configuration::default(), caches, nodes)
    }

    pub(crate) fn configured(configuration: &Configuration, caches: Caches, nodes: &[Value]) -> Self {
        let scheduler = Scheduler::new(caches, configuration);
        let mut fixture = Fixture { scheduler, now: ambient::Clock::system().monotonic(), is_slow: false };
        fixture.namespace(&json!({ "metadata": { "name": "default" } }));
        nodes.iter().for_each(|node| fixture.node(node));
        fixture
    }

    pub(crate) fn namespace(&mut self, namespace: &Value) {
        self.scheduler.namespace_changed(&Change::new(Arc::new(Object::<Namespace>::of(namespace))));
    }

    pub(crate) fn node(&mut self, node: &Value) {
        self.scheduler.node_changed(&Change::new(Arc::new(Object::<Node>::of(node))));
    }

    /// A pod that is there: waiting, or on a node if it has one.
    pub(crate) fn pod(&mut self, pod: &Value) {
        self.scheduler.pod_changed(&Change::new(read(pod)));
    }

    pub(crate) fn update(&mut self, old: &Value, new: &Value) {
        self.scheduler.pod_changed(&Change { old: Some(read(old)), new: Some(read(new)) });
    }

    pub(crate) fn remove(&mut self, pod: &Value) {
        self.scheduler.pod_changed(&Change { old: Some(read(pod)), new: None });
    }

    pub(crate) fn pass(&mut self, seconds: u64) {
        self.now += Duration::from_secs(seconds);
    }

    pub(crate) fn next(&mut self) -> Option<Decision> {
        let decision = self.scheduler.next(self.now);
        if let Some(Decision::Wait { pod, room: Some(_), .. }) = &decision
            && !self.is_slow
        {
            self.carried_out(pod);
        }
        decision
    }

    /// Whoever was in the way of a pod is leaving.
    pub(crate) fn carried_out(&mut self, pod: &Arc<Object<Pod>>) {
        self.scheduler.carried_out(&Outcome::Told(pod.clone()), self.now);
    }

    /// What is decided until nothing is left to decide, a line for each.
    pub(crate) fn decisions(&mut self) -> Vec<String> {
        std::iter::from_fn(|| self.next()).map(|decision| told(&decision)).collect()
    }

    /// Where a pod goes, or why it does not.
    pub(crate) fn place(&mut self, pod: &Value) -> String {
        self.pod(pod);
        let decision = self.next().expect("a decision about the pod");
        told(&decision)
    }

    pub(crate) fn fail(&mut self, pod: &Value) {
        self.scheduler.carried_out(&Outcome::NotBound(read(pod)), self.now);
    }
}

pub(crate) fn told(decision: &Decision) -> String {
    match decision {
        Decision::Bind { pod, node, .. } => format!("{} on {node}", pod.metadata.name),
        Decision::Wait { diagnosis, room: None, .. } => diagnosis.message(),
        Decision::Wait { pod, room: Some(room), .. } => {
            let victims: Vec<&str> = room.victims.iter().map(|pod| pod.metadata.name.as_str()).collect();
            format!("{} wants {} of {}", pod.metadata.name, room.node, victims.join(" "))
        }
        Decision::Group { group, verdict } => format!("{}: {}", group.metadata.name, verdict.reason()),
    }
}

fn read<K: Kind>(object: &Value) -> Arc<Object<K>> {
    Arc::new(Object::of(object))
}
