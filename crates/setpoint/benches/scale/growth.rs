//! How cost grows with size: ten times the pods should be ten times the work.

use crate::world::{self, Following, PROGRAM};
use figures::{Process, Report};
use kinds::Deployment;
use testkit::server::Server;

const NODES: usize = 1_000;
/// In Deployments of at most 1,000 pods.
const SIZES: [usize; 4] = [1_000, 3_000, 10_000, 30_000];
const LARGEST: usize = 1_000;

pub(crate) async fn measure(report: &mut Report) {
    let (mut times, mut work, mut memory) = (Vec::new(), Vec::new(), Vec::new());
    for pods in SIZES {
        let server = Server::on_disk_with_nodes(PROGRAM, NODES).await;
        let process = Process::of(server.id());
        let client = world::client(&server.kubeconfig());
        world::nodes_are_ready(&client, NODES).await;
        let mut deployments = Following::<Deployment>::start(&client).await;
        let (cpu, resident) = (process.cpu_seconds(), process.resident_mib());
        let started = world::now();
        for number in 0..pods / LARGEST {
            world::create(&client, &format!("web-{number}"), LARGEST).await;
        }
        world::complete(&mut deployments, pods / LARGEST).await;
        times.push((pods as f64, started.elapsed().as_secs_f64()));
        work.push((pods as f64, process.cpu_seconds() - cpu));
        memory.push((pods as f64, process.resident_mib() - resident));
    }
    let growth = |back: usize| work[work.len() - 1].1 / work[work.len() - 1 - back].1;
    report.tell("growth: CPU of 30,000 pods over that of 10,000 (3 is linear)", growth(1), "times");
    report.tell("growth: CPU of 30,000 pods over that of 3,000 (10 is linear)", growth(2), "times");
    report.tell("growth: CPU for a pod, of 30,000", work[work.len() - 1].1 / 30_000.0 * 1e6, "us");
    report.tell("growth: memory for a pod, of 30,000", memory[memory.len() - 1].1 / 30_000.0 * 1024.0, "KiB");
    report.plot(
        "Time and work until all pods are ready",
        ("pods", "seconds"),
        vec![("time".to_owned(), times), ("CPU of the server".to_owned(), work)],
    );
    report.plot("Memory that pods take", ("pods", "MiB"), vec![("resident".to_owned(), memory)]);
}
