//! One of three pods is deleted: how soon is another there, and ready?
//!
//! Both one after the other and after a rest, which takes longer. What the machine needs for the same way with nothing
//! computed is told beside it: on a virtual machine that varies by the minute.

use crate::way::Way;
use crate::world::{self, Following, PROGRAM};
use figures::Report;
use kinds::{Deployment, Object, Pod};
use runtime::{Client, DeleteOptions, Target};
use std::time::Duration;
use testkit::server::Server;

const TIMES: usize = 200;
/// Between a pod that is ready and the next that is deleted: nothing is left to report by then.
const BREATH: Duration = Duration::from_millis(5);
/// For so long nothing happens at all, and the cores sleep.
const REST: Duration = Duration::from_millis(50);

pub(crate) async fn measure(report: &mut Report) {
    let server = Server::on_disk_with_nodes(PROGRAM, 3).await;
    let client = world::client(&server.kubeconfig());
    let mut deployments = Following::<Deployment>::start(&client).await;
    world::create(&client, "web", 3).await;
    world::complete(&mut deployments, 1).await;
    let mut pods = Following::<Pod>::start(&client).await;
    let mut way = Way::open().expect("a connection and a file can be opened");
    for (rest, when) in [(REST, "after a rest"), (BREATH, "one after the other")] {
        let (mut created, mut ready) = heal(&client, &mut pods, rest).await;
        let (created, ready) = (figures::percentile(&mut created, 50.0), figures::percentile(&mut ready, 50.0));
        let mut floor = way.measure(TIMES, rest).await.expect("the connection and the disk work");
        let floor = figures::percentile(&mut floor, 50.0);
        report.at_most(&format!("pods deleted {when}: another is there, p50"), created, "ms", 1.5);
        report.at_most(&format!("pods deleted {when}: another is ready, p50"), ready, "ms", 5.0);
        report.tell(&format!("the bare way of a change, {when}, p50"), floor, "ms");
        report.tell(&format!("pods deleted {when}: created, times the bare way"), created / floor, "x");
    }
    way.close().await;
}

/// How long it takes until another pod is there, and until it is ready, each time after a rest.
async fn heal(client: &Client, pods: &mut Following<Pod>, rest: Duration) -> (Vec<Duration>, Vec<Duration>) {
    let (mut created, mut ready): (Vec<Duration>, Vec<Duration>) = Default::default();
    for _ in 0..TIMES {
        pods.until(|pods| pods.len() == 3 && pods.values().all(runs)).await;
        world::pass(rest).await;
        let others: Vec<String> = pods.objects.keys().cloned().collect();
        let victim = pods.objects.values().next().map(Target::of).expect("there are three");
        let at_once = DeleteOptions { grace_seconds: Some(0), ..DeleteOptions::default() };
        let started = world::now();
        client.delete(&victim, &at_once).await.expect("a pod can be deleted");
        pods.until(|pods| pods.keys().any(|name| !others.contains(name))).await;
        created.push(started.elapsed());
        pods.until(|pods| pods.len() == 3 && pods.values().all(runs)).await;
        ready.push(started.elapsed());
    }
    (created, ready)
}

fn runs(pod: &Object<Pod>) -> bool {
    pod.is_ready() && pod.metadata.deletion_timestamp.is_none()
}
