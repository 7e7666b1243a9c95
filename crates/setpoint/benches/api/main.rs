//! The API over TLS, on SQLite with fsync, with the load generator on the same machine: `cargo bench -p setpoint`.
//!
//! Each figure stands beside the bound it has to reach; a bound that is missed is said, and the exit code says it too.

mod client;

use ambient::Ambient;
use client::{Target, request};
use figures::{Process, Report};
use std::future::Future;
use std::process::ExitCode;
use std::time::Duration;
use testkit::server::Server;

const PROGRAM: &str = env!("CARGO_BIN_EXE_setpoint");
const JSON: &str = "application/json";
const CONFIG_MAPS: &str = "/api/v1/namespaces/default/configmaps";
const PODS: &str = "/api/v1/namespaces/default/pods";
const CONNECTIONS: usize = 32;

fn main() -> ExitCode {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    runtime.expect("a runtime starts").block_on(run())
}

async fn run() -> ExitCode {
    let mut report = Report::from_arguments("api");
    if report.wants("start") {
        let started = Ambient::real().clock.monotonic();
        let server = Server::start(PROGRAM, &[]).await;
        report.at_most("start until the API is ready", started.elapsed().as_secs_f64() * 1_000.0, "ms", 200.0);
        report.at_most("resident memory, idle", resident(&server), "MB", 40.0);
    }
    if report.wants("requests") {
        requests(&mut report).await;
    }
    if report.wants("watch") {
        watchers(&mut report).await;
    }
    if report.wants("list") {
        lists(&mut report).await;
    }
    report.finish()
}

/// In megabytes.
fn resident(server: &Server) -> f64 {
    Process::of(server.id()).resident_mib() * 1.048_576
}

async fn requests(report: &mut Report) {
    let server = Server::start(PROGRAM, &[]).await;
    let target = Target::read(&server.kubeconfig());
    account(&target).await;
    let mut one = load(&target, 1, 2_000, |_, n| create_config_map(&format!("one-{n}"))).await;
    report.at_most("create ConfigMap, one connection, p50", one.percentile(50.0), "ms", 0.6);
    let mut many = load(&target, CONNECTIONS, 40_000, |c, n| create_config_map(&format!("many-{c}-{n}"))).await;
    report.at_least("create ConfigMap, 32 connections", many.rate(), "/s", 20_000.0);
    report.at_most("create ConfigMap, 32 connections, p99", many.percentile(99.0), "ms", 5.0);
    let pods = load(&target, CONNECTIONS, 20_000, |c, n| create_pod(&format!("pod-{c}-{n}"))).await;
    report.at_least("create Pod, 32 connections", pods.rate(), "/s", 10_000.0);
    let gets = load(&target, CONNECTIONS, 100_000, |c, n| {
        request("GET", &format!("{CONFIG_MAPS}/many-{c}-{}", n % 1_000), JSON, "")
    })
    .await;
    report.at_least("get, 32 connections", gets.rate(), "/s", 50_000.0);
    let patches = load(&target, CONNECTIONS, 30_000, |c, n| {
        let body = format!("{{\"data\":{{\"k\":\"{n}\"}}}}");
        request("PATCH", &format!("{CONFIG_MAPS}/many-{c}-{}", n % 100), "application/merge-patch+json", &body)
    })
    .await;
    report.at_least("merge patch, 32 connections", patches.rate(), "/s", 12_000.0);
}

async fn watchers(report: &mut Report) {
    const WATCHERS: usize = 100;
    const CREATES: usize = 2_000;
    let server = Server::start(PROGRAM, &[]).await;
    let target = Target::read(&server.kubeconfig());
    let mut watching = Vec::new();
    for _ in 0..WATCHERS {
        let mut connection = target.connect().await;
        connection.open(&request("GET", &format!("{CONFIG_MAPS}?watch=true&resourceVersion=0"), JSON, "")).await;
        watching.push(connection);
    }
    let clock = Ambient::real().clock;
    let started = clock.monotonic();
    let events = watching.into_iter().map(|mut connection| async move { connection.events(CREATES).await });
    let reading = at_once(events);
    load(&target, CONNECTIONS, CREATES, |c, n| create_config_map(&format!("watched-{c}-{n}"))).await;
    reading.await;
    let rate = (WATCHERS * CREATES) as f64 / (clock.monotonic() - started).as_secs_f64();
    report.at_least("100 watchers, 2,000 creates: events delivered", rate, "/s", 400_000.0);
}

async fn lists(report: &mut Report) {
    let server = Server::start(PROGRAM, &[]).await;
    let target = Target::read(&server.kubeconfig());
    account(&target).await;
    load(&target, CONNECTIONS, 10_000, |c, n| create_config_map(&format!("a-{c}-{n}"))).await;
    load(&target, CONNECTIONS, 10_000, |c, n| create_pod(&format!("a-{c}-{n}"))).await;
    told(&target, 10_000).await;
    report.at_most("resident, 10,000 ConfigMaps and 10,000 Pods", resident(&server), "MB", 190.0);
    report.at_most("list 10,000 pods", list(&target).await, "ms", 60.0);

    let server = Server::start(PROGRAM, &[]).await;
    let target = Target::read(&server.kubeconfig());
    account(&target).await;
    load(&target, CONNECTIONS, 50_000, |c, n| create_pod(&format!("a-{c}-{n}"))).await;
    told(&target, 50_000).await;
    report.at_most("resident, 50,000 Pods", resident(&server), "MB", 450.0);
    report.at_most("list 50,000 pods", list(&target).await, "ms", 300.0);
    list(&target).await;
    report.at_most("resident, 50,000 Pods after lists", resident(&server), "MB", 450.0);
}

/// The best of three lists, in milliseconds.
async fn list(target: &Target) -> f64 {
    let mut connection = target.connect().await;
    let (mut best, clock) = (f64::MAX, Ambient::real().clock);
    for _ in 0..3 {
        let started = clock.monotonic();
        let (code, _) = connection.send(&request("GET", PODS, JSON, "")).await;
        assert_eq!(code, 200);
        best = best.min((clock.monotonic() - started).as_secs_f64() * 1000.0);
    }
    best
}

/// Waits until the scheduler has said of the last pods that no node is there: what it says takes memory too.
async fn told(target: &Target, pods: usize) {
    let mut connection = target.connect().await;
    let last = pods.div_ceil(CONNECTIONS) - 1;
    for number in 0..CONNECTIONS {
        let get = request("GET", &format!("{PODS}/a-{number}-{last}"), JSON, "");
        while !connection.ask(&get).await.windows(12).any(|text| text == b"PodScheduled") {}
    }
}

/// Pods need the service account that a controller would make.
async fn account(target: &Target) {
    let body = r#"{"metadata":{"name":"default"}}"#;
    target.connect().await.send(&request("POST", "/api/v1/namespaces/default/serviceaccounts", JSON, body)).await;
}

fn create_config_map(name: &str) -> Vec<u8> {
    let text = "x".repeat(900);
    request(
        "POST",
        CONFIG_MAPS,
        JSON,
        &format!(r#"{{"apiVersion":"v1","kind":"ConfigMap","metadata":{{"name":"{name}"}},"data":{{"k":"{text}"}}}}"#),
    )
}

fn create_pod(name: &str) -> Vec<u8> {
    let body = format!(
        r#"{{"apiVersion":"v1","kind":"Pod","metadata":{{"name":"{name}","labels":{{"app":"web","tier":"front","team":"a"}},"annotations":{{"note":"{note}"}}}},"spec":{{"containers":[{{"name":"web","image":"registry.example.com/team/web:1.2.3","command":["/bin/web","--port=8080"],"env":[{{"name":"MODE","value":"production"}},{{"name":"NODE","valueFrom":{{"fieldRef":{{"fieldPath":"spec.nodeName"}}}}}}],"ports":[{{"containerPort":8080,"name":"http"}}],"resources":{{"requests":{{"cpu":"100m","memory":"128Mi"}},"limits":{{"memory":"256Mi"}}}},"readinessProbe":{{"httpGet":{{"path":"/ready","port":"http"}},"periodSeconds":5}},"volumeMounts":[{{"name":"config","mountPath":"/etc/web"}}]}}],"volumes":[{{"name":"config","configMap":{{"name":"web"}}}}]}}}}"#,
        note = "n".repeat(300)
    );
    request("POST", PODS, JSON, &body)
}

/// How long each request took, and all of them together.
struct Load {
    took: Vec<Duration>,
    elapsed: Duration,
}

impl Load {
    fn rate(&self) -> f64 {
        self.took.len() as f64 / self.elapsed.as_secs_f64()
    }

    fn percentile(&mut self, percent: f64) -> f64 {
        figures::percentile(&mut self.took, percent)
    }
}

/// Sends `total` requests over some connections; `make` gets the connection and the number of the request on it.
async fn load(target: &Target, connections: usize, total: usize, make: fn(usize, usize) -> Vec<u8>) -> Load {
    let mut open = Vec::new();
    for _ in 0..connections {
        open.push(target.connect().await);
    }
    let each = total.div_ceil(connections);
    let clock = Ambient::real().clock;
    let started = clock.monotonic();
    let all = at_once(open.into_iter().enumerate().map(|(c, mut connection)| {
        let clock = clock.clone();
        async move {
            let mut took = Vec::with_capacity(each);
            for n in 0..each {
                let request = make(c, n);
                let started = clock.monotonic();
                let (code, _) = connection.send(&request).await;
                took.push(clock.monotonic() - started);
                assert!(code < 300, "a request was answered {code}");
            }
            took
        }
    }));
    let took = all.await.into_iter().flatten().collect();
    Load { took, elapsed: started.elapsed() }
}

/// Starts all of them on all cores; the result waits for them.
fn at_once<T: Send + 'static>(
    work: impl Iterator<Item = impl Future<Output = T> + Send + 'static>,
) -> impl Future<Output = Vec<T>> {
    let tasks = Ambient::real().tasks;
    let (sender, mut receiver) = tokio::sync::mpsc::unbounded_channel();
    for each in work {
        let sender = sender.clone();
        tasks.spawn("load", async move {
            let _ = sender.send(each.await);
        });
    }
    drop(sender);
    async move {
        let mut results = Vec::new();
        while let Some(result) = receiver.recv().await {
            results.push(result);
        }
        results
    }
}
