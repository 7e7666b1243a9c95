//! The cluster that Kubernetes is made for at most: 5,000 nodes and 150,000 pods. It is filled from empty, left alone,
//! started again, and loses a tenth of its nodes.

use crate::world::{self, Following, PROGRAM};
use ambient::Ambient;
use figures::{Process, Report};
use kinds::{ConfigMap, Deployment, Key, Kind, Node, Object, Pod};
use object::json;
use parking_lot::Mutex;
use runtime::{Client, ListOptions, PatchType, Target};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;
use testkit::server::Server;

const NODES: usize = 5_000;
const PODS: usize = 150_000;
const EACH: usize = 1_000;
const LOST: usize = 500;
/// How long a cluster at rest is watched.
const REST: Duration = Duration::from_secs(60);
const SETTLING: Duration = Duration::from_secs(15);

pub(crate) async fn measure(report: &mut Report) {
    // Nodes that are lost would otherwise be given up one in ten seconds.
    let mut server = Server::start_with(PROGRAM, &["--node-eviction-rate", "1000"], format!("simulated={NODES}")).await;
    let client = world::client(&server.kubeconfig());
    let probe = Probe::start(&client).await;
    fill(report, &server, &client).await;
    at_rest(report, &server).await;
    report.at_most("5,000 nodes: get of an object, p99 throughout", probe.stop(99.0), "ms", 5.0);
    restart(report, &mut server).await;
    lose(report, &server).await;
}

/// All Deployments at once, until every pod is ready.
async fn fill(report: &mut Report, server: &Server, client: &Client) {
    let started = world::now();
    world::nodes_are_ready(client, NODES).await;
    report.tell("5,000 nodes: all ready", started.elapsed().as_secs_f64(), "s");
    let process = Process::of(server.id());
    let mut deployments = Following::<Deployment>::start(client).await;
    let count = PODS / EACH;
    let making = client.clone();
    let made = async move {
        for number in 0..count {
            world::create(&making, &format!("web-{number}"), EACH).await;
        }
    };
    let (mut ready, mut memory) = (vec![(0.0, 0.0)], vec![(0.0, process.resident_mib())]);
    let filled = deployments.until(|all| {
        let time = started.elapsed().as_secs_f64();
        if ready.last().is_none_or(|(last, _)| time - last > 0.5) {
            ready.push((time, all.values().map(|one| f64::from(one.status.ready_replicas)).sum()));
            memory.push((time, process.resident_mib()));
        }
        all.len() == count && all.values().all(|one| world::is_complete(one))
    });
    tokio::join!(made, filled);
    report.at_most("5,000 nodes: 150,000 pods ready, from empty", started.elapsed().as_secs_f64(), "s", 90.0);
    report.at_most("5,000 nodes: resident memory with 150,000 pods, peak", process.peak_mib(), "MiB", 3_000.0);
    report.tell("5,000 nodes: CPU until then", process.cpu_seconds(), "s");
    report.plot("From empty to 150,000 pods", ("seconds", "pods ready"), vec![("ready".to_owned(), ready)]);
    report.plot("Memory meanwhile", ("seconds", "MiB"), vec![("resident".to_owned(), memory)]);
}

async fn at_rest(report: &mut Report, server: &Server) {
    let process = Process::of(server.id());
    world::pass(SETTLING).await;
    let cpu = process.cpu_seconds();
    world::pass(REST).await;
    let share = (process.cpu_seconds() - cpu) / REST.as_secs_f64() * 100.0;
    report.at_most("5,000 nodes: CPU at rest, heartbeats only", share, "% core", 15.0);
    report.tell("5,000 nodes: resident memory at rest", process.resident_mib(), "MiB");
}

async fn restart(report: &mut Report, server: &mut Server) {
    server.kill();
    let started = world::now();
    server.restart().await;
    report.at_most("5,000 nodes: killed and started again, until ready", started.elapsed().as_secs_f64(), "s", 5.0);
    let client = world::client(&server.kubeconfig());
    let mut deployments = Following::<Deployment>::start(&client).await;
    world::create(&client, "after", 1).await;
    world::complete(&mut deployments, PODS / EACH + 1).await;
    report.tell("5,000 nodes: until a new Deployment is complete", started.elapsed().as_secs_f64(), "s");
}

/// A tenth of the nodes falls silent at once.
async fn lose(report: &mut Report, server: &Server) {
    let client = world::client(&server.kubeconfig());
    let mut deployments = Following::<Deployment>::start(&client).await;
    world::complete(&mut deployments, PODS / EACH + 1).await;
    let before = pods(&client).await;
    let dead = json!({ "metadata": { "annotations": { "simulated.setpoint.dev/state": "dead" } } });
    for number in 0..LOST {
        let target = Target::named(Node::ID, Key::cluster(name(number)));
        client.patch(&target, "", PatchType::Merge, &dead).await.expect("a node can be annotated");
    }
    let mut nodes = Following::<Node>::start_in(&client, "").await;
    deployments.until(|all| all.values().any(|one| !world::is_complete(one))).await;
    let started = world::now();
    // Their last heartbeats lie seconds apart, and so does the moment when each is given up.
    let is_given_up = |node: &&Object<Node>| node.spec.taints.iter().any(|taint| taint.effect == "NoExecute");
    let given_up = async {
        nodes.until(|all| all.values().filter(is_given_up).count() == LOST).await;
        started.elapsed().as_secs_f64()
    };
    let (took, given_up) = tokio::join!(world::complete(&mut deployments, PODS / EACH + 1), given_up);
    report.tell("500 nodes lost: between the first and the last that is given up", given_up, "s");
    report.at_most("500 nodes lost: all pods ready elsewhere after they were given up", took, "s", 20.0);
    let after = pods(&client).await;
    let is_new = |name: &&String| !before.contains_key(*name);
    let on_lost = |pods: &BTreeMap<String, Object<Pod>>| -> BTreeSet<String> {
        pods.iter().filter(|(_, pod)| is_on_lost(pod)).map(|(name, _)| name.clone()).collect()
    };
    // Who is given to a node that is dead, but not known to be, is lost once more.
    let lost = &on_lost(&before) | &on_lost(&after);
    report.tell("500 nodes lost: pods that were on them", lost.len() as f64, "");
    let misled = lost.iter().filter(is_new).count();
    report.tell("500 nodes lost: of these, placed before the node was known to be lost", misled as f64, "");
    let made = after.keys().filter(is_new).count();
    report.at_most("500 nodes lost: pods made for each that was lost", made as f64 / lost.len() as f64, "", 1.0);
}

async fn pods(client: &Client) -> BTreeMap<String, Object<Pod>> {
    let list = client.list::<Pod>("default", &ListOptions::default()).await.expect("pods can be listed");
    list.items.into_iter().map(|pod| (pod.metadata.name.clone(), pod)).collect()
}

fn name(number: usize) -> String {
    format!("node-{number}")
}

fn is_on_lost(pod: &Pod) -> bool {
    let number = pod.spec.node_name.strip_prefix("node-").and_then(|number| number.parse::<usize>().ok());
    number.is_some_and(|number| number < LOST)
}

/// Reads one object again and again, as somebody does who uses the cluster meanwhile.
struct Probe {
    times: Arc<Mutex<Vec<Duration>>>,
    ambient: Ambient,
}

impl Probe {
    const PAUSE: Duration = Duration::from_millis(10);

    async fn start(client: &Client) -> Self {
        let object = json!({ "metadata": { "name": "probe", "namespace": "default" } });
        client.create(&ConfigMap::ID, &object).await.expect("an object can be created");
        let probe = Probe { times: Arc::default(), ambient: Ambient::real() };
        let (times, client) = (probe.times.clone(), client.clone());
        probe.ambient.tasks.spawn_until_stopped("probe", async move {
            loop {
                let started = world::now();
                let found = client.get::<ConfigMap>(&Key::new("default", "probe")).await;
                assert!(found.is_ok_and(|found| found.is_some()), "the object is there");
                times.lock().push(started.elapsed());
                world::pass(Self::PAUSE).await;
            }
        });
        probe
    }

    fn stop(self, percent: f64) -> f64 {
        self.ambient.tasks.cancel();
        figures::percentile(&mut self.times.lock(), percent)
    }
}
