//! One of three pods is deleted: how soon is another there, and ready?

use crate::world::{self, Following, PROGRAM};
use figures::Report;
use kinds::{Deployment, Object, Pod};
use runtime::{DeleteOptions, Target};
use std::time::Duration;
use testkit::server::Server;

const TIMES: usize = 200;
const SETTLING: Duration = Duration::from_millis(50);

pub(crate) async fn measure(report: &mut Report) {
    let server = Server::on_disk_with_nodes(PROGRAM, 3).await;
    let client = world::client(&server.kubeconfig());
    let mut deployments = Following::<Deployment>::start(&client).await;
    world::create(&client, "web", 3).await;
    world::complete(&mut deployments, 1).await;
    let mut pods = Following::<Pod>::start(&client).await;
    let (mut created, mut ready): (Vec<Duration>, Vec<Duration>) = Default::default();
    for _ in 0..TIMES {
        pods.until(|pods| pods.len() == 3 && pods.values().all(runs)).await;
        // What there is to report is reported meanwhile.
        world::pass(SETTLING).await;
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
    report.at_most(
        "one of three pods deleted: another is there, p50",
        figures::percentile(&mut created, 50.0),
        "ms",
        1.5,
    );
    report.at_most(
        "one of three pods deleted: another is ready, p50",
        figures::percentile(&mut ready, 50.0),
        "ms",
        5.0,
    );
}

fn runs(pod: &Object<Pod>) -> bool {
    pod.is_ready() && pod.metadata.deletion_timestamp.is_none()
}
