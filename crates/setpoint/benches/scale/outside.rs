//! Nodes that are driven from outside: they watch and report over TLS, as kubelets do.

use crate::world::{self, Following, PROGRAM};
use ambient::Ambient;
use figures::Report;
use kinds::{Deployment, Pod};
use node::simulated::{Fleet, Group};
use object::json;
use prometheus::Registry;
use runtime::{Client, Identity, Manager};
use std::sync::Arc;
use testkit::server::Server;

const NODES: usize = 100;

pub(crate) async fn measure(report: &mut Report) {
    let server = Server::start(PROGRAM, &[]).await;
    let client = world::client(&server.kubeconfig());
    let ambient = Ambient::real();
    let nodes = Nodes::start(&client, NODES, &ambient);
    world::nodes_are_ready(&client, NODES).await;
    let mut deployments = Following::<Deployment>::start(&client).await;

    world::create(&client, "small", 1_000).await;
    let took = world::complete(&mut deployments, 1).await;
    report.at_most("nodes over HTTP: Deployment of 1,000 pods until all ready", took, "s", 0.6);
    world::create(&client, "medium", 5_000).await;
    let took = world::complete(&mut deployments, 2).await;
    report.at_most("nodes over HTTP: Deployment of 5,000 pods until all ready", took, "s", 2.5);

    let mut pods = Following::<Pod>::start(&client).await;
    let started = world::now();
    world::patch(&client, &mut deployments, "medium", &json!({ "spec": { "replicas": 0 } })).await;
    pods.until(|pods| pods.len() == 1_000).await;
    report.at_most(
        "nodes over HTTP: scale from 5,000 to 0 until none is left",
        started.elapsed().as_secs_f64(),
        "s",
        1.5,
    );
    drop(nodes);
    ambient.tasks.stop().await;
}

/// The loops of the nodes, in this process.
pub(crate) struct Nodes {
    _manager: Arc<Manager>,
}

impl Nodes {
    pub(crate) fn start(client: &Client, count: usize, ambient: &Ambient) -> Self {
        let fleet = Fleet::new(vec![Group::parse(&count.to_string()).expect("a group")]).expect("a fleet");
        let as_node = {
            let client = client.clone();
            move |_: &str| client.clone()
        };
        let loops = node::simulated::controllers(fleet, Arc::new(as_node));
        let identity = |_: &runtime::Controller| Identity { client: client.clone(), tell: Arc::new(|_| {}) };
        let manager = Arc::new(Manager::start(loops, client, identity, ambient, &Registry::new()));
        let (working, tasks) = (manager.clone(), ambient.tasks.clone());
        ambient.tasks.spawn("nodes", async move { working.work(&tasks).await });
        Nodes { _manager: manager }
    }
}
