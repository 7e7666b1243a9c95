//! One of three pods is deleted: how soon is another there, and ready?
//!
//! Two writes and some hand-overs between threads lie in between, on a machine that was at rest. How long it takes for
//! these alone is told beside it: on a virtual machine that varies by the minute.

use crate::world::{self, Following, PROGRAM};
use ambient::Tasks;
use figures::Report;
use kinds::{Deployment, Object, Pod};
use runtime::{Client, DeleteOptions, Target};
use std::os::unix::fs::FileExt;
use std::sync::mpsc::channel;
use std::time::Duration;
use testkit::server::Server;

const TIMES: usize = 200;
/// For so long nothing happens before a pod is deleted: there is nothing left to report by then, and the cores sleep.
const REST: Duration = Duration::from_millis(50);
/// The same without the sleep.
const BREATH: Duration = Duration::from_millis(5);
/// So often the machine itself is measured.
const PROBES: usize = 50;
/// What a small commit writes.
const PAGE_BYTES: usize = 8192;

pub(crate) async fn measure(report: &mut Report) {
    let server = Server::on_disk_with_nodes(PROGRAM, 3).await;
    let client = world::client(&server.kubeconfig());
    let mut deployments = Following::<Deployment>::start(&client).await;
    world::create(&client, "web", 3).await;
    world::complete(&mut deployments, 1).await;
    let mut pods = Following::<Pod>::start(&client).await;
    for (rest, when) in [(REST, "one of three pods deleted"), (BREATH, "one after the other")] {
        let (mut created, mut ready) = heal(&client, &mut pods, rest).await;
        report.at_most(&format!("{when}: another is there, p50"), figures::percentile(&mut created, 50.0), "ms", 1.5);
        report.at_most(&format!("{when}: another is ready, p50"), figures::percentile(&mut ready, 50.0), "ms", 5.0);
    }
    measure_machine(report).await;
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

/// What a machine at rest needs to wake a thread that wakes this one, and for a write that is synced.
async fn measure_machine(report: &mut Report) {
    let (tasks, dir) = (Tasks::new(), tempfile::tempdir().expect("a directory can be made"));
    let (call, calls) = channel::<()>();
    let (reply, replies) = channel::<()>();
    let answering = move || calls.iter().for_each(|()| reply.send(()).expect("somebody waits for it"));
    tasks.thread("answers", answering).expect("the system can start a thread");
    let file = std::fs::File::create(dir.path().join("page")).expect("a file can be made");
    let (mut wakes, mut syncs): (Vec<Duration>, Vec<Duration>) = Default::default();
    for _ in 0..PROBES {
        world::pass(REST).await;
        let started = world::now();
        call.send(()).expect("the thread is there");
        replies.recv().expect("the thread answers");
        wakes.push(started.elapsed());
        let started = world::now();
        file.write_all_at(&[7; PAGE_BYTES], 0).expect("the disk has room");
        file.sync_data().expect("the disk works");
        syncs.push(started.elapsed());
    }
    drop(call);
    tasks.stop().await;
    report.tell("the machine: a thread woken and back, p50", 1000.0 * figures::percentile(&mut wakes, 50.0), "us");
    report.tell("the machine: a page written and synced, p50", 1000.0 * figures::percentile(&mut syncs, 50.0), "us");
}

fn runs(pod: &Object<Pod>) -> bool {
    pod.is_ready() && pod.metadata.deletion_timestamp.is_none()
}
