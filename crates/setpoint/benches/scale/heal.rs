//! One of three pods is deleted: how soon is another there, and ready?
//!
//! Both one after the other and after a rest, which takes longer. What the machine needs for the same way with nothing
//! computed is told beside it: on a virtual machine that varies by the minute. So it can also be measured in turns with
//! another cluster: `cargo bench -p setpoint --bench scale -- heal against=KUBECONFIG`.

use crate::outside::Nodes;
use crate::way::Way;
use crate::world::{self, Following, PROGRAM};
use ambient::Ambient;
use figures::Report;
use kinds::{Deployment, Key, Kind, Object, Pod};
use runtime::{Client, DeleteOptions, Target};
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;
use testkit::server::Server;
use tokio::runtime::Handle;

const TIMES: usize = 200;
/// Two clusters take turns so many times.
const TURNS: usize = 4;
const NODES: usize = 3;
/// Between a pod that is ready and the next that is deleted: nothing is left to report by then.
const BREATH: Duration = Duration::from_millis(5);
/// For so long nothing happens at all, and the cores sleep.
const REST: Duration = Duration::from_millis(50);
const RHYTHMS: [(Duration, &str); 2] = [(REST, "after a rest"), (BREATH, "one after the other")];

/// How long it took each time until another pod was there, and until it was ready.
#[derive(Default)]
struct Healed {
    created: Vec<Duration>,
    ready: Vec<Duration>,
}

pub(crate) async fn measure(report: &mut Report) {
    let server = Server::on_disk_with_nodes(PROGRAM, NODES).await;
    let mut web = Web::deploy(world::client(&server.kubeconfig())).await;
    let mut way = Way::open().expect("a connection and a file can be opened");
    for (rest, when) in RHYTHMS {
        let mut healed = Healed::default();
        web.heal(TIMES, rest, &mut healed).await;
        let [created, ready] = healed.medians();
        let mut floor = way.measure(TIMES, rest).await.expect("the connection and the disk work");
        let floor = figures::percentile(&mut floor, 50.0);
        report.at_most(&format!("pods deleted {when}: another is there, p50"), created, "ms", 1.5);
        report.at_most(&format!("pods deleted {when}: another is ready, p50"), ready, "ms", 5.0);
        report.tell(&format!("the bare way of a change, {when}, p50"), floor, "ms");
        report.tell(&format!("pods deleted {when}: created, times the bare way"), created / floor, "x");
    }
    way.close().await;
}

/// In turns with another cluster, which has no nodes of its own: how many times as fast is ours?
///
/// The nodes of both are driven from outside, `apart` from who measures.
pub(crate) async fn compare(report: &mut Report, other: &Path, apart: &Handle) {
    let server = Server::start(PROGRAM, &[]).await;
    let ambient = Ambient::real();
    let nodes = Ambient { tasks: ambient.tasks.on(apart), ..ambient.clone() };
    let mut clusters = Vec::new();
    for kubeconfig in [&*server.kubeconfig(), other] {
        let client = world::client(kubeconfig);
        let driven = Nodes::start(&client, NODES, &nodes);
        world::nodes_are_ready(&client, NODES).await;
        clusters.push((Web::deploy(client).await, driven, Healed::default()));
    }
    for (rest, when) in RHYTHMS {
        for _ in 0..TURNS {
            for (web, _, healed) in &mut clusters {
                web.heal(TIMES / TURNS, rest, healed).await;
            }
        }
        let [ours, theirs]: [[f64; 2]; 2] = std::array::from_fn(|at| std::mem::take(&mut clusters[at].2).medians());
        for (at, (what, bound)) in [("is there", 12.9 / 1.5), ("is ready", 28.7 / 5.0)].into_iter().enumerate() {
            let (what, unit) = (format!("pods deleted {when}: another {what}, p50"), "ms");
            report.tell(&format!("{what}, here"), ours[at], unit);
            report.tell(&format!("{what}, in the other cluster"), theirs[at], unit);
            report.at_least(&format!("{what}, times as fast"), theirs[at] / ours[at], "x", bound);
        }
    }
    for (web, ..) in clusters {
        web.remove().await;
    }
    ambient.tasks.stop().await;
}

impl Healed {
    fn medians(mut self) -> [f64; 2] {
        [&mut self.created, &mut self.ready].map(|times| figures::percentile(times, 50.0))
    }
}

/// A Deployment of three pods.
struct Web {
    client: Client,
    pods: Following<Pod>,
}

impl Web {
    async fn deploy(client: Client) -> Self {
        let mut deployments = Following::<Deployment>::start(&client).await;
        world::create(&client, "web", 3).await;
        world::complete(&mut deployments, 1).await;
        Web { pods: Following::start(&client).await, client }
    }

    /// Deletes a pod so many times, each after a rest, and waits until another is ready.
    async fn heal(&mut self, times: usize, rest: Duration, healed: &mut Healed) {
        for _ in 0..times {
            self.pods.until(|pods| pods.len() == 3 && pods.values().all(runs)).await;
            world::pass(rest).await;
            let others: Vec<String> = self.pods.objects.keys().cloned().collect();
            let victim = self.pods.objects.values().next().map(Target::of).expect("there are three");
            let at_once = DeleteOptions { grace_seconds: Some(0), ..DeleteOptions::default() };
            let started = world::now();
            self.client.delete(&victim, &at_once).await.expect("a pod can be deleted");
            self.pods.until(|pods| pods.keys().any(|name| !others.contains(name))).await;
            healed.created.push(started.elapsed());
            self.pods.until(|pods| pods.len() == 3 && pods.values().all(runs)).await;
            healed.ready.push(started.elapsed());
        }
    }

    async fn remove(mut self) {
        let web = Target::named(Deployment::ID, Key::new("default", "web"));
        self.client.delete(&web, &DeleteOptions::default()).await.expect("a Deployment can be deleted");
        self.pods.until(BTreeMap::is_empty).await;
    }
}

fn runs(pod: &Object<Pod>) -> bool {
    pod.is_ready() && pod.metadata.deletion_timestamp.is_none()
}
