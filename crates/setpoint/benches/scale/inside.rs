//! Deployments on simulated nodes in the server's own process: nothing but the control plane costs anything.

use crate::world::{self, Following, PROGRAM};
use figures::Report;
use kinds::Deployment;
use object::json;
use testkit::server::Server;

const NODES: usize = 1_000;
const PODS: usize = 10_000;

pub(crate) async fn measure(report: &mut Report) {
    let server = Server::on_disk_with_nodes(PROGRAM, NODES).await;
    let client = world::client(&server.kubeconfig());
    world::nodes_are_ready(&client, NODES).await;
    let mut deployments = Following::<Deployment>::start(&client).await;
    world::create(&client, "web", PODS).await;
    let took = world::complete(&mut deployments, 1).await;
    report.at_least("simulated nodes: Deployment of 10,000 pods, pods ready", PODS as f64 / took, "/s", 4_000.0);

    let image = json!([{ "name": "c", "image": "registry.example/app:2" }]);
    world::patch(
        &client,
        &mut deployments,
        "web",
        &json!({ "spec": { "template": { "spec": { "containers": image } } } }),
    )
    .await;
    let took = world::complete(&mut deployments, 1).await;
    report.tell("simulated nodes: rolling update of 10,000 pods", took, "s");
}
