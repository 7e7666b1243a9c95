//! The scheduler alone: how many pods it places in a second, without the API.
//!
//! 5,000 nodes in ten zones, each with room for 110 pods; pods of one shape or of many, plain, spread and apart. And a
//! cluster that is full: how soon pods are told so, and what it costs to place them one by one as others go.

use ambient::Clock;
use figures::Report;
use kinds::{Namespace, Node, Object, Pod, ReplicaSet};
use object::{Value, json};
use runtime::Change;
use scheduler::{Configuration, Decision, Scheduler};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

const NODES: usize = 5_000;
const ZONES: usize = 10;

#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

fn main() -> ExitCode {
    let mut report = Report::from_arguments("placing");
    place(&mut report, "each with a label of its own", numbered(10_000), 10_000.0, 1);
    let mut run =
        |what, pods, bound, sets, spec: &Value| place(&mut report, what, plain(pods, sets, spec), bound, sets);
    run("plain pods of one set", 10_000, 10_000.0, 1, &json!({}));
    run("plain pods of 100 sets, mixed", 10_000, 10_000.0, 100, &json!({}));
    let constraint = |topology: &str| {
        json!({ "maxSkew": 1, "topologyKey": topology, "whenUnsatisfiable": "DoNotSchedule",
            "labelSelector": { "matchLabels": { "app": "set-0" } } })
    };
    let zones = json!({ "topologySpreadConstraints": [constraint("topology.kubernetes.io/zone")] });
    run("spread over zones", 10_000, 2_000.0, 1, &zones);
    let term =
        json!({ "topologyKey": "kubernetes.io/hostname", "labelSelector": { "matchLabels": { "app": "set-0" } } });
    let required = "requiredDuringSchedulingIgnoredDuringExecution";
    let apart = json!({ "affinity": { "podAntiAffinity": { required: [term] } } });
    run("apart from each other, by node", 5_000, 2_000.0, 1, &apart);
    let preferred = json!({ "preferredDuringSchedulingIgnoredDuringExecution":
        [{ "weight": 10, "podAffinityTerm": { "topologyKey": "topology.kubernetes.io/zone",
            "labelSelector": { "matchLabels": { "app": "set-0" } } } }] });
    run("rather near each other, by zone", 10_000, 2_000.0, 1, &json!({ "affinity": { "podAffinity": preferred } }));
    wait(&mut report, 1);
    wait(&mut report, 100);
    report.finish()
}

fn plain(pods: usize, sets: usize, spec: &Value) -> Vec<Arc<Object<Pod>>> {
    (0..pods).map(|number| Arc::new(Object::of(&pod(number, sets, spec)))).collect()
}

/// Pods like those of a StatefulSet or an indexed Job: labels number them, and nobody selects by that.
fn numbered(pods: usize) -> Vec<Arc<Object<Pod>>> {
    let numbered = |number: usize| {
        let mut pod = pod(number, 1, &json!({}));
        pod["metadata"]["labels"]["apps.kubernetes.io/pod-index"] = json!(number.to_string());
        Arc::new(Object::of(&pod))
    };
    (0..pods).map(numbered).collect()
}

fn place(report: &mut Report, what: &str, pods: Vec<Arc<Object<Pod>>>, bound: f64, sets: usize) {
    let mut scheduler = cluster(sets, 110);
    let started = Clock::system().monotonic();
    pods.into_iter().for_each(|pod| scheduler.pod_changed(&Change::new(pod)));
    let mut placed = 0;
    while let Some(decision) = scheduler.next(started) {
        match decision {
            Decision::Bind { .. } => placed += 1,
            Decision::Wait { diagnosis, .. } => panic!("{}", diagnosis.message()),
            Decision::Group { .. } => {}
        }
    }
    let rate = f64::from(placed) / started.elapsed().as_secs_f64();
    report.at_least(what, rate, "pods/s", bound);
}

/// Pods that wait in a full cluster, of so many sets.
fn wait(report: &mut Report, sets: usize) {
    let mut scheduler = cluster(sets, FULL / NODES);
    let there: Vec<Arc<Object<Pod>>> = (0..FULL).map(|number| Arc::new(Object::of(&resident(number)))).collect();
    there.iter().for_each(|pod| scheduler.pod_changed(&Change::new(pod.clone())));
    let mut now = Clock::system().monotonic();
    let decisions = |scheduler: &mut Scheduler, now| std::iter::from_fn(|| scheduler.next(now)).collect::<Vec<_>>();

    let started = Clock::system().monotonic();
    let waiting = plain(FULL, sets, &json!({}));
    waiting.into_iter().for_each(|pod| scheduler.pod_changed(&Change::new(pod)));
    let told = decisions(&mut scheduler, now).len();
    assert_eq!(told, FULL, "every pod is told why it waits");
    let rate = FULL as f64 / started.elapsed().as_secs_f64();
    report.tell(&format!("told that they fit nowhere, of {sets} sets"), rate, "pods/s");

    let started = Clock::system().monotonic();
    let (mut placed, mut tried) = (0, 0);
    for gone in there.into_iter().take(1_000) {
        now += STEP;
        scheduler.pod_changed(&Change { old: Some(gone), new: None });
        let decided = decisions(&mut scheduler, now);
        tried += decided.len();
        placed += decided.iter().filter(|decision| matches!(decision, Decision::Bind { .. })).count();
    }
    assert_eq!(placed, 1_000, "whoever goes makes room for one");
    let rate = placed as f64 / started.elapsed().as_secs_f64();
    report.at_least(&format!("placed one by one as others go, of {sets} sets"), rate, "pods/s", 1_000.0);
    report.at_most(&format!("tries for each, of {sets} sets"), tried as f64 / placed as f64, "", 2.0);
}

/// So many pods are there, and as many wait.
const FULL: usize = 10_000;
/// Between two pods that go.
const STEP: Duration = Duration::from_millis(10);

fn resident(number: usize) -> Value {
    let mut pod = pod(number, 1, &json!({ "nodeName": format!("node-{}", number % NODES) }));
    pod["metadata"]["name"] = json!(format!("there-{number}"));
    pod
}

fn cluster(sets: usize, room: usize) -> Scheduler {
    let mut caches = scheduler::caches();
    for number in 0..sets {
        let name = format!("set-{number}");
        caches.put::<ReplicaSet>(Object::of(&json!({
            "metadata": { "name": name, "namespace": "default" },
            "spec": { "selector": { "matchLabels": { "app": name } } },
        })));
    }
    let mut scheduler = Scheduler::new(caches, &Configuration::default());
    let namespace = Object::<Namespace>::of(&json!({ "metadata": { "name": "default" } }));
    scheduler.namespace_changed(&Change::new(Arc::new(namespace)));
    for number in 0..NODES {
        scheduler.node_changed(&Change::new(Arc::new(node(number, room))));
    }
    scheduler
}

fn node(number: usize, room: usize) -> Object<Node> {
    let name = format!("node-{number}");
    let labels = json!({
        "kubernetes.io/hostname": name, "topology.kubernetes.io/zone": format!("zone-{}", number % ZONES),
    });
    Object::of(&json!({
        "metadata": { "name": name, "labels": labels },
        "status": {
            "allocatable": { "cpu": "32", "memory": "256Gi", "pods": room.to_string() },
            "conditions": [{ "type": "Ready", "status": "True" }],
        },
    }))
}

fn pod(number: usize, sets: usize, spec: &Value) -> Value {
    let set = format!("set-{}", number % sets);
    let owner = json!({ "apiVersion": "apps/v1", "kind": "ReplicaSet", "name": set, "uid": set, "controller": true });
    let mut pod = json!({
        "metadata": {
            "name": format!("pod-{number}"), "namespace": "default", "uid": format!("uid-{number}"),
            "labels": { "app": set }, "ownerReferences": [owner],
        },
        "spec": { "containers": [{ "name": "c", "image": "image",
            "resources": { "requests": { "cpu": "100m", "memory": "128Mi" } } }] },
    });
    for (key, value) in spec.as_object().into_iter().flatten() {
        pod["spec"][key] = value.clone();
    }
    pod
}
