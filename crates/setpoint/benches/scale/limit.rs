//! How many pods this machine holds, up to a million: only if asked for by name, `-- limit`, since it takes long.

use crate::world::{self, Following, PROGRAM};
use figures::{Process, Report};
use kinds::Deployment;
use testkit::server::Server;

const NODES: usize = 10_000;
const PODS: usize = 1_000_000;
const STEP: usize = 100_000;
const EACH: usize = 1_000;
/// It ends when so much of the memory of the machine is taken.
const MOST: f64 = 0.8;

pub(crate) async fn measure(report: &mut Report) {
    let server = Server::on_disk_with_nodes(PROGRAM, NODES).await;
    let process = Process::of(server.id());
    let client = world::client(&server.kubeconfig());
    world::nodes_are_ready(&client, NODES).await;
    let mut deployments = Following::<Deployment>::start(&client).await;
    let started = world::now();
    let (mut time, mut memory) = (Vec::new(), Vec::new());
    for step in 1..=PODS / STEP {
        let before = started.elapsed().as_secs_f64();
        for number in (step - 1) * STEP / EACH..step * STEP / EACH {
            world::create(&client, &format!("web-{number}"), EACH).await;
        }
        world::complete(&mut deployments, step * STEP / EACH).await;
        let (pods, seconds, resident) = (step * STEP, started.elapsed().as_secs_f64(), process.resident_mib());
        report.tell(&format!("{NODES} nodes: {pods} pods ready after"), seconds, "s");
        report.tell(&format!("{NODES} nodes: pods a second up to {pods}"), STEP as f64 / (seconds - before), "/s");
        report.tell(&format!("{NODES} nodes: resident memory with {pods} pods"), resident, "MiB");
        time.push((pods as f64, seconds));
        memory.push((pods as f64, resident));
        if resident > MOST * figures::machine_mib() {
            break;
        }
    }
    report.plot("Towards a million pods", ("pods", "seconds"), vec![("ready".to_owned(), time)]);
    report.plot("Memory on the way", ("pods", "MiB"), vec![("resident".to_owned(), memory)]);
}
