//! What the scenarios are made of: Deployments, and waiting until they are as they should be.

use ambient::{Ambient, Clock};
use kinds::{Deployment, Key, Kind, Node, Object};
use object::{Value, json};
use runtime::{Client, Event, Events, Https, ListOptions, PatchType, Target};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

pub(crate) const PROGRAM: &str = env!("CARGO_BIN_EXE_setpoint");

pub(crate) fn now() -> tokio::time::Instant {
    Clock::system().monotonic()
}

pub(crate) fn client(kubeconfig: &Path) -> Client {
    let https = Https::from_kubeconfig(kubeconfig, &Ambient::real()).expect("the kubeconfig is good");
    Client::new(Arc::new(https), "bench")
}

/// A Deployment whose pods leave a node that is lost at once.
pub(crate) fn deployment(name: &str, replicas: usize) -> Value {
    let tolerate =
        |key: &str| json!({ "key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 0 });
    json!({
        "metadata": { "name": name, "namespace": "default" },
        "spec": {
            "replicas": replicas, "selector": { "matchLabels": { "app": name } },
            "template": {
                "metadata": { "labels": { "app": name } },
                "spec": {
                    "containers": [{ "name": "c", "image": "registry.example/app:1",
                        "resources": { "requests": { "cpu": "100m", "memory": "128Mi" } } }],
                    "tolerations": [tolerate("node.kubernetes.io/not-ready"), tolerate("node.kubernetes.io/unreachable")],
                    "terminationGracePeriodSeconds": 1,
                },
            },
        },
    })
}

pub(crate) async fn create(client: &Client, name: &str, replicas: usize) {
    client.create(&Deployment::ID, &deployment(name, replicas)).await.expect("a Deployment can be created");
}

/// Changes a Deployment, and waits until that is seen.
pub(crate) async fn patch(client: &Client, deployments: &mut Following<Deployment>, name: &str, patch: &Value) {
    let target = Target::named(Deployment::ID, Key::new("default", name));
    let patched = client.patch(&target, "", PatchType::Merge, patch).await.expect("a Deployment can be patched");
    let generation = Object::<Deployment>::read(patched).expect("it can be read").metadata.generation;
    deployments.until(|all| all[name].metadata.generation >= generation).await;
}

/// Lets time pass.
pub(crate) async fn pass(time: Duration) {
    let _ = tokio::time::timeout(time, std::future::pending::<()>()).await;
}

/// The objects of a kind, kept up to date by a watch.
pub(crate) struct Following<K: Kind> {
    events: Box<dyn Events>,
    pub objects: BTreeMap<String, Object<K>>,
    listed: bool,
}

impl<K: Kind> Following<K> {
    /// Those in `default`.
    pub(crate) async fn start(client: &Client) -> Self {
        Self::start_in(client, "default").await
    }

    pub(crate) async fn start_in(client: &Client, namespace: &str) -> Self {
        let events = client.watch(&K::ID, namespace, &ListOptions::default(), None).await;
        let events = events.expect("a watch can be opened");
        let mut following = Following { events, objects: BTreeMap::new(), listed: false };
        while !following.listed {
            following.step().await;
        }
        following
    }

    async fn step(&mut self) {
        for event in self.events.next().await.expect("the watch goes on").expect("the watch goes on") {
            match event {
                Event::Added(raw) | Event::Modified(raw) => {
                    let object = Object::<K>::read(raw).expect("an object can be read");
                    self.objects.insert(object.meta().name.clone(), object);
                }
                Event::Deleted(raw) => {
                    let object = Object::<K>::read(raw).expect("an object can be read");
                    self.objects.remove(&object.meta().name);
                }
                Event::Bookmark { .. } => self.listed = true,
            }
        }
    }

    /// Waits until the objects are as they should be; `is_done` is asked after every change.
    pub(crate) async fn until(&mut self, mut is_done: impl FnMut(&BTreeMap<String, Object<K>>) -> bool) {
        while !is_done(&self.objects) {
            self.step().await;
        }
    }
}

pub(crate) async fn nodes_are_ready(client: &Client, count: usize) {
    let mut nodes = Following::<Node>::start_in(client, "").await;
    let takes_pods = |node: &Object<Node>| node.is_ready() && node.spec.taints.is_empty();
    nodes.until(|nodes| nodes.len() == count && nodes.values().all(takes_pods)).await;
}

/// Whether all pods of a Deployment are there, up to date and ready, and no others.
pub(crate) fn is_complete(deployment: &Deployment) -> bool {
    let (status, wanted) = (&deployment.status, deployment.spec.replicas);
    status.observed_generation == deployment.metadata.generation
        && [status.replicas, status.updated_replicas, status.ready_replicas, status.available_replicas]
            .iter()
            .all(|count| *count == wanted)
}

/// Waits until so many Deployments are complete: how long that took.
pub(crate) async fn complete(deployments: &mut Following<Deployment>, count: usize) -> f64 {
    let started = now();
    deployments.until(|all| all.len() == count && all.values().all(|one| is_complete(one))).await;
    started.elapsed().as_secs_f64()
}
