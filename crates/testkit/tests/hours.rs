//! What takes minutes and hours, in virtual time: machines that die, schedules, what runs out.

use kinds::{CronJob, Deployment, Event, HorizontalPodAutoscaler, Job, Key, Kind, Node, Pod, ReplicaSet};
use object::{Value, json};
use runtime::{DeleteOptions, ListOptions, PatchType, Target};
use std::collections::BTreeMap;
use std::time::Duration;
use testkit::simulation::World;

/// How many nodes there are.
const NODES: usize = 3;
const STATE: &str = "simulated.setpoint.dev/state";
/// As many as each of three nodes gets about fifty.
const PODS: usize = 150;

fn deployment() -> Value {
    let labels = json!({ "app": "web" });
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": { "name": "web", "namespace": "default" },
        "spec": {
            "replicas": PODS, "selector": { "matchLabels": labels },
            "template": {
                "metadata": { "labels": labels }, "spec": { "containers": [{ "name": "web", "image": "nginx" }] },
            },
        },
    })
}

/// How many pods each node has that run and are not being deleted.
async fn running(world: &World) -> BTreeMap<String, usize> {
    let pods = world.admin.list::<Pod>("default", &ListOptions::default()).await.unwrap();
    let mut running = BTreeMap::new();
    for pod in pods.items.iter().filter(|pod| pod.is_ready() && !pod.metadata.is_being_deleted()) {
        *running.entry(pod.spec.node_name.clone()).or_default() += 1;
    }
    running
}

/// What is known of a node: the status of its condition, and the keys of its taints.
async fn node(world: &World, name: &str) -> (String, Vec<String>) {
    let node = world.admin.get::<Node>(&Key::cluster(name)).await.unwrap().unwrap();
    let ready = node.condition("Ready").map(|ready| ready.status.clone()).unwrap_or_default();
    (ready, node.spec.taints.iter().map(|taint| format!("{}:{}", taint.key, taint.effect)).collect())
}

async fn set_state(world: &World, name: &str, state: Value) {
    let target = Target::named(Node::ID, Key::cluster(name));
    let patch = json!({ "metadata": { "annotations": { STATE: state } } });
    world.admin.patch(&target, "", PatchType::Merge, &patch).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn the_pods_of_a_dead_node_move_after_a_while_and_all_at_once() {
    let mut world = World::start(1, 1, NODES).await;
    world.pause(Duration::from_secs(10)).await;
    world.admin.create(&Deployment::ID, &deployment()).await.unwrap();
    world.pause(Duration::from_secs(30)).await;
    let mut others = running(&world).await;
    let lost = others.remove("node-0").unwrap_or(0);
    assert!(lost > PODS / 4 && lost + others.values().sum::<usize>() == PODS, "{lost} and {others:?}");
    assert_eq!(node(&world, "node-0").await, ("True".to_owned(), vec![]));

    // Silence is nothing special at first.
    set_state(&world, "node-0", json!("dead")).await;
    world.pause(Duration::from_secs(35)).await;
    assert_eq!(node(&world, "node-0").await, ("True".to_owned(), vec![]));

    // Then nobody knows how it is. Its pods are no longer ready, and stay for as long as they tolerate that.
    world.pause(Duration::from_secs(30)).await;
    let unreachable = ["NoSchedule", "NoExecute"].map(|effect| format!("node.kubernetes.io/unreachable:{effect}"));
    let (ready, mut taints) = node(&world, "node-0").await;
    taints.sort_by(|a, b| b.cmp(a));
    assert_eq!((ready.as_str(), taints.as_slice()), ("Unknown", &unreachable[..]));
    assert_eq!(running(&world).await, others);
    world.pause(Duration::from_secs(200)).await;
    assert_eq!(running(&world).await, others);

    // After five minutes they are given up, and there are as many as before, elsewhere.
    world.pause(Duration::from_secs(120)).await;
    let moved = running(&world).await;
    assert_eq!((moved.values().sum::<usize>(), moved.len()), (PODS, 2), "{moved:?}");

    // Back again, it lets go of what it was told to end meanwhile.
    set_state(&world, "node-0", Value::Null).await;
    world.pause(Duration::from_secs(60)).await;
    assert_eq!(node(&world, "node-0").await, ("True".to_owned(), vec![]));
    let pods = world.admin.list::<Pod>("default", &ListOptions::default()).await.unwrap();
    assert_eq!(pods.items.len(), PODS);
    world.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_server_that_was_suspended_leads_again_and_does_all_it_did_before() {
    let mut world = World::start(4, 1, NODES).await;
    world.faults.only_crash_after(u64::MAX);
    let deployment = world.create::<Deployment>(deployment()).await;
    world.pause(Duration::from_secs(30)).await;
    assert_eq!(running(&world).await.values().sum::<usize>(), PODS);
    world.faults.cut_off(0, Duration::from_secs(60));
    world.pause(Duration::from_secs(90)).await;
    let said = world.all::<Event>().await;
    assert!(said.iter().any(|event| event.message.ends_with("stopped leading")), "it is another term");

    world.admin.delete(&Target::of(&deployment), &DeleteOptions::default()).await.unwrap();
    world.pause(Duration::from_secs(30)).await;
    assert_eq!((world.all::<ReplicaSet>().await.len(), world.all::<Pod>().await.len()), (0, 0));
    world.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_machine_in_the_place_of_a_dead_one_runs_its_pods() {
    let mut world = World::start(5, 1, NODES).await;
    world.pause(Duration::from_secs(10)).await;
    set_state(&world, "node-0", json!("dead")).await;
    let spec = json!({ "nodeName": "node-0", "containers": [{ "name": "web", "image": "nginx" }] });
    let pod = json!({ "metadata": { "name": "web", "namespace": "default" }, "spec": spec });
    world.create::<Pod>(pod).await;
    world.pause(Duration::from_secs(5)).await;
    assert!(running(&world).await.is_empty());
    let dead = Target::named(Node::ID, Key::cluster("node-0"));
    world.admin.delete(&dead, &DeleteOptions::default()).await.unwrap();
    world.pause(Duration::from_secs(20)).await;
    assert_eq!(running(&world).await, BTreeMap::from([("node-0".to_owned(), 1)]));
    world.stop().await;
}

#[tokio::test(start_paused = true)]
async fn of_a_hundred_reads_of_the_loops_ninety_nine_are_served_from_memory() {
    let mut world = World::start(2, 1, NODES).await;
    world.admin.create(&Deployment::ID, &deployment()).await.unwrap();
    world.pause(Duration::from_secs(60)).await;
    assert_eq!(running(&world).await.values().sum::<usize>(), PODS);
    let (cache, api) = world.reads();
    assert!(cache > 99 * api, "{cache} reads from caches, {api} from the API");
    world.stop().await;
}

/// Starts a job every ten minutes by the clocks of Kathmandu, which are a quarter of an hour off those of others.
fn cron_job(policy: &str, seconds: u64) -> Value {
    let pod = json!({
        "metadata": { "annotations": { "simulated.setpoint.dev/run-seconds": seconds.to_string() } },
        "spec": { "restartPolicy": "Never", "containers": [{ "name": "main", "image": "busybox" }] },
    });
    json!({
        "apiVersion": "batch/v1", "kind": "CronJob",
        "metadata": { "name": policy.to_lowercase(), "namespace": "default" },
        "spec": {
            "schedule": "*/10 * * * *", "timeZone": "Asia/Kathmandu", "concurrencyPolicy": policy,
            "successfulJobsHistoryLimit": 3, "jobTemplate": { "spec": { "template": pod } },
        },
    })
}

#[tokio::test(start_paused = true)]
async fn a_schedule_is_kept_and_what_happens_if_jobs_overlap_is_chosen() {
    let mut world = World::start(3, 1, NODES).await;
    for policy in ["Allow", "Forbid", "Replace"] {
        world.admin.create(&CronJob::ID, &cron_job(policy, 3600)).await.unwrap();
    }
    let mut brief = cron_job("Allow", 1);
    brief["metadata"]["name"] = json!("brief");
    world.admin.create(&CronJob::ID, &brief).await.unwrap();
    // The clock starts on the hour, so that it is time at 5, 15 and 25 past.
    world.pause(Duration::from_secs(30 * 60)).await;
    let jobs = world.admin.list::<Job>("default", &ListOptions::default()).await.unwrap().items;
    let count = |name: &str, active: bool| {
        let prefix = format!("{name}-");
        let mine = jobs.iter().filter(|job| job.metadata.name.starts_with(&prefix));
        mine.filter(|job| job.finished().is_none() == active).count()
    };
    let counts = ["allow", "forbid", "replace", "brief"].map(|name| (count(name, true), count(name, false)));
    assert_eq!(counts, [(3, 0), (1, 0), (1, 0), (0, 3)]);
    world.stop().await;
}

#[tokio::test(start_paused = true)]
async fn events_are_gone_after_an_hour() {
    let mut world = World::start(4, 1, NODES).await;
    world.admin.create(&Deployment::ID, &deployment()).await.unwrap();
    world.pause(Duration::from_secs(50 * 60)).await;
    let events =
        async |world: &World| world.admin.list::<Event>("default", &ListOptions::default()).await.unwrap().items;
    assert!(!events(&world).await.is_empty());
    world.pause(Duration::from_secs(15 * 60)).await;
    assert_eq!(events(&world).await.len(), 0);
    world.stop().await;
}

async fn replicas(world: &World) -> i32 {
    world.admin.get::<Deployment>(&Key::new("default", "web")).await.unwrap().unwrap().spec.replicas
}

/// Lets every pod of the deployment use so much from now on.
async fn use_cpu(world: &World, cpu: &str) {
    let pods = world.admin.list::<Pod>("default", &ListOptions::default()).await.unwrap();
    for pod in &pods.items {
        let patch = json!({ "metadata": { "annotations": { "simulated.setpoint.dev/cpu": cpu } } });
        world.admin.patch(&Target::of::<Pod>(pod), "", PatchType::Merge, &patch).await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn an_autoscaler_goes_up_at_once_and_down_when_five_minutes_have_borne_it_out() {
    let mut world = World::start(5, 1, NODES).await;
    let mut web = deployment();
    web["spec"]["replicas"] = json!(4);
    web["spec"]["template"]["spec"]["containers"][0]["resources"] = json!({ "requests": { "cpu": "100m" } });
    web["spec"]["template"]["metadata"]["annotations"] = json!({ "simulated.setpoint.dev/cpu": "75m" });
    world.admin.create(&Deployment::ID, &web).await.unwrap();
    world.pause(Duration::from_secs(60)).await;
    let target = json!({ "type": "Utilization", "averageUtilization": 50 });
    let scaler = json!({
        "apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler",
        "metadata": { "name": "web", "namespace": "default" },
        "spec": {
            "scaleTargetRef": { "apiVersion": "apps/v1", "kind": "Deployment", "name": "web" },
            "minReplicas": 1, "maxReplicas": 20,
            "metrics": [{ "type": "Resource", "resource": { "name": "cpu", "target": target } }],
        },
    });
    // Four at 75 % where half is wanted: six, within the fifteen seconds between looks.
    world.admin.create(&HorizontalPodAutoscaler::ID, &scaler).await.unwrap();
    world.pause(Duration::from_secs(15)).await;
    assert_eq!(replicas(&world).await, 6);
    use_cpu(&world, "50m").await;
    world.pause(Duration::from_secs(120)).await;
    assert_eq!(replicas(&world).await, 6, "that is what was wanted");
    use_cpu(&world, "10m").await;
    world.pause(Duration::from_secs(250)).await;
    assert_eq!(replicas(&world).await, 6, "it was needed not long ago");
    // Six at 10 % do the work of two at most at half.
    world.pause(Duration::from_secs(70)).await;
    assert_eq!(replicas(&world).await, 2);
    world.stop().await;
}
