//! The loops: how fast garbage goes, and what a cluster costs that is at rest.
//!
//! A real cluster in this process on SQLite with fsync; the clients are in process too, as the loops' own are. Each
//! figure stands beside its bound, as the others' do.

use ambient::{Ambient, Clock};
use figures::{Process, Report};
use kinds::{ConfigMap, Kind, Namespace, Pod, ReplicaSet, Secret, Service, ServiceAccount};
use object::{Value, json};
use runtime::{Client, DeleteOptions, Event, ListOptions, Propagation, Target};
use setpoint::{Cluster, Options, StoreChoice, in_process};
use std::process::ExitCode;
use std::time::Duration;

const OWNED: usize = 10_000;
const MIXED: usize = 5_000;
const PODS: usize = 50_000;
/// How long a cluster at rest is watched.
const REST: Duration = Duration::from_secs(30);
const SETTLING: Duration = Duration::from_secs(10);
/// So many requests are on their way at once.
const AT_ONCE: usize = 64;

#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

fn main() -> ExitCode {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime can be made");
    runtime.block_on(run())
}

async fn run() -> ExitCode {
    let mut report = Report::from_arguments("loops");
    let dir = tempfile::tempdir().expect("a temporary directory can be made");
    let options = Options::new(dir.path().to_owned(), StoreChoice::Sqlite);
    let cluster = Cluster::start(&options, Ambient::real(), |_| {}).await.expect("a cluster starts");
    let admin = in_process::client(&cluster.api, apiserver::user("admin", &["system:masters"]), "bench");
    cascade(&mut report, &admin).await;
    namespace(&mut report, &admin).await;
    at_rest(&mut report, &cluster, &admin).await;
    cluster.stop().await;
    report.finish()
}

async fn create_all(admin: &Client, objects: Vec<(kinds::Id, Value)>) {
    for chunk in objects.chunks(AT_ONCE) {
        let creations = chunk.iter().map(|(id, object)| admin.create(id, object));
        for created in futures::future::join_all(creations).await {
            created.expect("an object can be created");
        }
    }
}

/// Waits until so many objects of a kind are selected; the watch tells how many.
async fn until<K: Kind>(admin: &Client, namespace: &str, options: &ListOptions, wanted: usize) {
    let mut events = admin.watch(&K::ID, namespace, options, None).await.expect("a watch can be opened");
    let (mut count, mut listed) = (0, false);
    while !(listed && count == wanted) {
        for event in events.next().await.expect("the watch goes on").expect("the watch goes on") {
            match event {
                Event::Added(_) => count += 1,
                Event::Deleted(_) => count -= 1,
                Event::Modified(_) => {}
                Event::Bookmark { .. } => listed = true,
            }
        }
    }
}

async fn cascade(report: &mut Report, admin: &Client) {
    let owner = json!({ "metadata": { "name": "owner", "namespace": "default" } });
    let raw = admin.create(&ConfigMap::ID, &owner).await.expect("an owner can be created");
    let owner = kinds::Object::<ConfigMap>::read(raw).expect("it can be read");
    let reference = json!({ "apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": owner.metadata.uid });
    let owned = (0..OWNED).map(|number| {
        let metadata = json!({
            "name": format!("owned-{number}"), "namespace": "default", "labels": { "owned": "" },
            "ownerReferences": [reference],
        });
        (ConfigMap::ID, json!({ "metadata": metadata }))
    });
    create_all(admin, owned.collect()).await;
    let started = Clock::system().monotonic();
    let options = DeleteOptions { propagation: Propagation::Background, ..DeleteOptions::default() };
    admin.delete(&Target::of(&owner), &options).await.expect("the owner can be deleted");
    let selected = ListOptions { label_selector: "owned".to_owned(), ..ListOptions::default() };
    until::<ConfigMap>(admin, "default", &selected, 0).await;
    report.at_most("10,000 owned objects deleted in cascade", started.elapsed().as_secs_f64(), "s", 2.0);
}

async fn namespace(report: &mut Report, admin: &Client) {
    let made = json!({ "metadata": { "name": "mixed" } });
    let raw = admin.create(&Namespace::ID, &made).await.expect("a namespace can be created");
    let namespace = kinds::Object::<Namespace>::read(raw).expect("it can be read");
    let objects = (0..MIXED).map(|number| {
        let metadata = json!({ "name": format!("x-{number}"), "namespace": "mixed" });
        match number % 4 {
            0 => (ConfigMap::ID, json!({ "metadata": metadata, "data": { "a": "b" } })),
            1 => (Secret::ID, json!({ "metadata": metadata })),
            2 => (ServiceAccount::ID, json!({ "metadata": metadata })),
            _ => (Service::ID, json!({ "metadata": metadata, "spec": { "ports": [{ "port": 80 }] } })),
        }
    });
    create_all(admin, objects.collect()).await;
    let started = Clock::system().monotonic();
    admin.delete(&Target::of(&namespace), &DeleteOptions::default()).await.expect("a namespace can be deleted");
    let it = ListOptions { field_selector: "metadata.name=mixed".to_owned(), ..ListOptions::default() };
    until::<Namespace>(admin, "", &it, 0).await;
    report.at_most("a namespace of 5,000 mixed objects gone", started.elapsed().as_secs_f64(), "s", 2.0);
}

async fn at_rest(report: &mut Report, cluster: &Cluster, admin: &Client) {
    const SETS: usize = 50;
    for number in 0..SETS {
        let name = format!("set-{number}");
        let set = json!({
            "metadata": { "name": name, "namespace": "default" },
            "spec": {
                "replicas": PODS / SETS, "selector": { "matchLabels": { "app": name } },
                "template": {
                    "metadata": { "labels": { "app": name } },
                    "spec": { "containers": [{ "name": "c", "image": "image" }] },
                },
            },
        });
        admin.create(&ReplicaSet::ID, &set).await.expect("a set can be created");
    }
    let started = Clock::system().monotonic();
    until::<Pod>(admin, "default", &ListOptions::default(), PODS).await;
    report.tell("50,000 pods made by their sets", started.elapsed().as_secs_f64(), "s");
    // The last reports are written meanwhile.
    pass(SETTLING).await;
    let process = Process::this();
    let manager = &cluster.control_plane.manager;
    let cpu = process.cpu_seconds();
    pass(REST).await;
    let share = (process.cpu_seconds() - cpu) / REST.as_secs_f64() * 100.0;
    report.at_most("50,000 pods at rest: CPU of the whole process", share, "% core", 1.0);
    let (asked, read) = (manager.api_reads() as f64, manager.cache_reads() as f64);
    report.at_least("reads from cache of all reads by loops", read / (read + asked) * 100.0, "%", 99.0);
}

/// Lets time pass.
async fn pass(time: Duration) {
    let _ = tokio::time::timeout(time, std::future::pending::<()>()).await;
}
