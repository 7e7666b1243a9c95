//! What takes minutes, days or a year, in virtual time: the whole control plane, and no faults.

use kinds::{CronJob, DaemonSet, Deployment, HorizontalPodAutoscaler, Job, Node, Object, Pod, Time};
use object::{Value, json};
use std::collections::BTreeMap;
use std::time::Duration;
use testkit::simulation::{World, calmly, evict_under_faults};

const MINUTE: Duration = Duration::from_secs(60);
const DAY: Duration = Duration::from_secs(24 * 60 * 60);

fn template(app: &str) -> Value {
    json!({
        "metadata": { "labels": { "app": app }, "annotations": { "simulated.setpoint.dev/cpu": "100m" } },
        "spec": { "containers": [{
            "name": "c", "image": "image:1", "resources": { "requests": { "cpu": "100m" } },
        }] },
    })
}

async fn deploy(world: &World, name: &str, replicas: i32) {
    let selector = json!({ "matchLabels": { "app": name } });
    let spec = json!({ "replicas": replicas, "selector": selector, "template": template(name) });
    world.create::<Deployment>(json!({ "metadata": { "name": name, "namespace": "default" }, "spec": spec })).await;
}

async fn replicas(world: &World) -> i32 {
    world.all::<Deployment>().await.iter().map(|deployment| deployment.spec.replicas).sum()
}

/// The pods that do their work, by node.
async fn ready(world: &World) -> BTreeMap<String, Vec<Object<Pod>>> {
    let mut by_node: BTreeMap<String, Vec<_>> = BTreeMap::new();
    for pod in world.all::<Pod>().await.into_iter().filter(|pod| pod.is_active() && pod.is_ready()) {
        by_node.entry(pod.spec.node_name.clone()).or_default().push(pod);
    }
    by_node
}

async fn number_ready(world: &World) -> usize {
    ready(world).await.values().map(Vec::len).sum()
}

#[test]
fn an_autoscaler_grows_at_once_and_shrinks_when_five_minutes_have_asked_for_less() {
    calmly(3, async |world: &World| {
        deploy(world, "web", 4).await;
        let target = json!({ "apiVersion": "apps/v1", "kind": "Deployment", "name": "web" });
        let half = json!({ "name": "cpu", "target": { "type": "Utilization", "averageUtilization": 50 } });
        let metrics = json!([{ "type": "Resource", "resource": half }]);
        let spec = json!({ "scaleTargetRef": target, "minReplicas": 1, "maxReplicas": 8, "metrics": metrics });
        let metadata = json!({ "name": "web", "namespace": "default" });
        world.create::<HorizontalPodAutoscaler>(json!({ "metadata": metadata, "spec": spec })).await;
        let grown = world.until(2 * MINUTE, async || replicas(world).await == 8).await;
        assert!(grown <= MINUTE, "it took {grown:?} to grow");
        world.until(MINUTE, async || number_ready(world).await == 8).await;

        for pod in world.all::<Pod>().await {
            let quiet = json!({ "metadata": { "annotations": { "simulated.setpoint.dev/cpu": "10m" } } });
            world.patch(&pod, "", &quiet).await;
        }
        let shrunk = world.until(10 * MINUTE, async || replicas(world).await < 8).await;
        assert!(shrunk > 5 * MINUTE - Duration::from_secs(30) && shrunk < 6 * MINUTE, "it took {shrunk:?} to shrink");
        assert_eq!(replicas(world).await, 2, "eight pods use as much as two should");
        world.until(MINUTE, async || number_ready(world).await == 2).await;
    });
}

async fn node(world: &World, name: &str) -> Object<Node> {
    let nodes = world.all::<Node>().await.into_iter();
    nodes.into_iter().find(|node| node.metadata.name == name).expect("the node is there")
}

async fn set_state(world: &World, name: &str, state: Option<&str>) {
    let patch = json!({ "metadata": { "annotations": { "simulated.setpoint.dev/state": state } } });
    world.patch(&node(world, name).await, "", &patch).await;
}

#[test]
fn the_pods_of_a_dead_node_move_after_five_minutes_and_it_is_welcome_when_it_returns() {
    calmly(3, async |world: &World| {
        deploy(world, "web", 6).await;
        let selector = json!({ "matchLabels": { "app": "daemon" } });
        let daemons = json!({ "selector": selector, "template": template("daemon") });
        let metadata = json!({ "name": "daemon", "namespace": "default" });
        world.create::<DaemonSet>(json!({ "metadata": metadata, "spec": daemons })).await;
        world.until(MINUTE, async || number_ready(world).await == 9).await;
        assert_eq!(ready(world).await["node-1"].len(), 3);

        set_state(world, "node-1", Some("dead")).await;
        let noticed = world.until(2 * MINUTE, async || !node(world, "node-1").await.is_ready()).await;
        assert!(noticed >= Duration::from_secs(40) && noticed <= MINUTE, "it took {noticed:?} to notice");
        let condition = node(world, "node-1").await.condition("Ready").cloned().unwrap_or_default();
        assert_eq!((condition.status.as_str(), condition.reason.as_str()), ("Unknown", "NodeStatusUnknown"));
        world.until(MINUTE, async || ready(world).await.keys().eq(["node-0", "node-2"])).await;
        let taints = node(world, "node-1").await.spec.taints.clone();
        assert!(
            taints.iter().any(|taint| taint.key == "node.kubernetes.io/unreachable" && taint.effect == "NoExecute")
        );
        assert_eq!(number_ready(world).await, 6, "two of six and one daemon are lost, and nobody replaces them yet");

        let moved = world.until(10 * MINUTE, async || number_ready(world).await == 8).await;
        assert!(moved > 4 * MINUTE && moved <= 6 * MINUTE, "it took {moved:?} to move");
        assert_eq!(world.all::<Pod>().await.len(), 11, "nobody knows whether the dead node still runs two of them");

        set_state(world, "node-1", None).await;
        world.until(2 * MINUTE, async || node(world, "node-1").await.is_ready()).await;
        world.until(2 * MINUTE, async || world.all::<Pod>().await.len() == 9 && number_ready(world).await == 9).await;
        world.until(MINUTE, async || node(world, "node-1").await.spec.taints.is_empty()).await;
        assert_eq!(ready(world).await["node-1"].len(), 1, "the daemon stayed; the others run elsewhere now");
    });
}

/// Lets the pods of jobs end, as a node would.
async fn end_pods(world: &World) {
    for pod in world.all::<Pod>().await.iter().filter(|pod| !pod.is_finished()) {
        world.patch(pod, "status", &json!({ "status": { "phase": "Succeeded" } })).await;
    }
}

/// When a job at half past two in Berlin is due in 2026, in seconds since 1970.
fn expected_times() -> Vec<i64> {
    const HALF_HOUR: i64 = 30 * 60;
    let day = |text: &str| Time::parse(text).expect("it is a time").seconds();
    let (spring, autumn) = (day("2026-03-29T00:00:00Z"), day("2026-10-25T00:00:00Z"));
    let mut times = Vec::new();
    let mut midnight = day("2026-01-01T00:00:00Z");
    while midnight < day("2027-01-01T00:00:00Z") {
        let (in_summer, in_winter) = (midnight + HALF_HOUR, midnight + 3 * HALF_HOUR);
        match midnight {
            // From two to three o'clock there is nothing; and this hour is there twice.
            _ if midnight == spring => {}
            _ if midnight == autumn => times.extend([in_summer, in_winter]),
            _ if midnight > spring && midnight < autumn => times.push(in_summer),
            _ => times.push(in_winter),
        }
        midnight += i64::try_from(DAY.as_secs()).unwrap_or(0);
    }
    times
}

#[test]
fn a_year_of_a_cron_job_has_a_job_for_each_time_of_its_zone_and_keeps_only_the_last() {
    calmly(0, async |world: &World| {
        let pods = json!({ "spec": { "restartPolicy": "Never", "containers": [{ "name": "c", "image": "i" }] } });
        let spec = json!({
            "schedule": "30 2 * * *", "timeZone": "Europe/Berlin", "successfulJobsHistoryLimit": 3,
            "jobTemplate": { "spec": { "template": pods } },
        });
        let metadata = json!({ "name": "nightly", "namespace": "default" });
        world.create::<CronJob>(json!({ "metadata": metadata, "spec": spec })).await;
        // When each job was due, and when it was made.
        let mut seen: BTreeMap<i64, i64> = BTreeMap::new();
        world.leap(Duration::from_secs(1)).await;
        // What is due is due at one of two times of a day: half past two is one in summer and another in winter.
        let leaps = [30 * MINUTE, 60 * MINUTE, DAY - 90 * MINUTE];
        for leap in leaps.into_iter().cycle().take(365 * leaps.len()) {
            world.leap(leap).await;
            end_pods(world).await;
            let jobs = world.all::<Job>().await;
            assert!(jobs.len() <= 4, "{} jobs are kept", jobs.len());
            for job in jobs {
                let due = job.metadata.annotation("batch.kubernetes.io/cronjob-scheduled-timestamp");
                let due = Time::parse(due).expect("each job says when it was due").seconds();
                let made = job.metadata.creation_timestamp.expect("the server says when").seconds();
                seen.insert(due, made);
            }
        }
        assert_eq!(seen.keys().copied().collect::<Vec<_>>(), expected_times());
        let late = seen.iter().map(|(due, made)| made - due).max().unwrap_or(0);
        assert!(late <= 1, "a job was {late} seconds late");
    });
}

#[test]
fn evictions_never_take_a_budget_below_what_it_promises() {
    for seed in 0..6 {
        let allowed = evict_under_faults(seed).unwrap_or_else(|problem| panic!("seed {seed}: {problem}"));
        assert!(allowed > 3, "seed {seed}: only {allowed} pods were evicted");
    }
}
