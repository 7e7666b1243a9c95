//! Users, who edit at random: a few names, so that edits meet.

use super::World;
use kinds::{
    CronJob, DaemonSet, Deployment, Id, Job, Key, Kind, Node, Pod, Raw, ReplicaSet, ReplicationController, StatefulSet,
};
use object::{ApiError, Value, json};
use runtime::{DeleteOptions, ListOptions, PatchType, Propagation, Target};

const NAMESPACE: &str = "default";

/// One kind that users edit.
struct Subject {
    id: Id,
    /// What the spec of a new one looks like.
    make: fn(&str, &World) -> Value,
    /// An edit of one that is there.
    change: fn(&World) -> Value,
}

const SUBJECTS: &[Subject] = &[
    Subject { id: ReplicaSet::ID, make: replicated, change: scale },
    Subject { id: ReplicationController::ID, make: replication_controller, change: scale },
    Subject { id: Deployment::ID, make: deployment, change: scale_or_roll },
    Subject { id: StatefulSet::ID, make: stateful_set, change: scale_or_roll },
    Subject { id: DaemonSet::ID, make: daemon_set, change: roll },
    Subject { id: Job::ID, make: job, change: |world| json!({ "spec": { "parallelism": world.random.below(4) } }) },
    Subject {
        id: CronJob::ID,
        make: cron_job,
        change: |world| json!({ "spec": { "suspend": world.random.chance(0.5) } }),
    },
];

/// Does one thing to one object.
pub(super) async fn edit(world: &World) {
    let pick = |bound: usize| usize::try_from(world.random.below(bound as u64)).unwrap_or(0);
    let subject = &SUBJECTS[pick(SUBJECTS.len())];
    let name = format!("{}-{}", subject.id.kind.to_lowercase(), pick(2));
    let target = Target {
        id: subject.id.clone(),
        key: Key::new(NAMESPACE, name.as_str()),
        uid: String::new(),
        version: String::new(),
    };
    // Whether an edit succeeds does not matter: users make mistakes too.
    let _ = match pick(10) {
        0..4 => world.admin.create(&subject.id, &object(subject, &name, world)).await,
        4..8 => world.admin.patch(&target, "", PatchType::Merge, &(subject.change)(world)).await,
        8 => world.admin.delete(&target, &delete_options(world)).await,
        _ if world.random.chance(0.3) => set_node_dead(world, pick(3), world.random.chance(0.5)).await,
        _ => delete_some_pod(world).await,
    };
}

/// How many steps a plain life has.
pub(super) const STEPS: usize = 4;

/// A plain life: one of each kind is made, changed, and, at the end, some are deleted.
pub(super) async fn step(world: &World, step: usize) {
    for (number, subject) in SUBJECTS.iter().enumerate() {
        let name = subject.id.kind.to_lowercase();
        let target = Target {
            id: subject.id.clone(),
            key: Key::new(NAMESPACE, name.as_str()),
            uid: String::new(),
            version: String::new(),
        };
        let done = match step {
            0 => world.admin.create(&subject.id, &object(subject, &name, world)).await,
            1 | 2 => world.admin.patch(&target, "", PatchType::Merge, &(subject.change)(world)).await,
            _ if number % 2 == 0 => world.admin.delete(&target, &delete_options(world)).await,
            _ => continue,
        };
        // A cron job or a job may have refused the change: that is a user's mistake too.
        drop(done);
    }
}

/// Whatever users did to machines, they undo.
pub(super) async fn calm_down(world: &World) {
    for node in 0..3 {
        drop(set_node_dead(world, node, false).await);
    }
}

/// Lets a simulated node die, or live again.
async fn set_node_dead(world: &World, node: usize, dead: bool) -> Result<Raw, ApiError> {
    let target =
        Target { id: Node::ID, key: Key::cluster(format!("node-{node}")), uid: String::new(), version: String::new() };
    let state = if dead { json!("dead") } else { Value::Null };
    let patch = json!({ "metadata": { "annotations": { "simulated.setpoint.dev/state": state } } });
    world.admin.patch(&target, "", PatchType::Merge, &patch).await
}

fn object(subject: &Subject, name: &str, world: &World) -> Value {
    json!({
        "kind": subject.id.kind, "apiVersion": subject.id.api_version,
        "metadata": { "name": name, "namespace": NAMESPACE }, "spec": (subject.make)(name, world),
    })
}

fn delete_options(world: &World) -> DeleteOptions {
    let ways = [Propagation::Background, Propagation::Foreground, Propagation::Orphan];
    let way = ways[usize::try_from(world.random.below(3)).unwrap_or(0)];
    DeleteOptions { propagation: way, ..DeleteOptions::default() }
}

async fn delete_some_pod(world: &World) -> Result<Raw, ApiError> {
    let pods = world.admin.list::<Pod>(NAMESPACE, &ListOptions::default()).await?.items;
    if pods.is_empty() {
        return Ok(Raw::default());
    }
    let pod = &pods[usize::try_from(world.random.below(pods.len() as u64)).unwrap_or(0)];
    world.admin.delete(&Target::of(pod), &DeleteOptions::default()).await
}

fn replicas(world: &World) -> u64 {
    world.random.below(6)
}

fn template(app: &str) -> Value {
    json!({ "metadata": { "labels": { "app": app } }, "spec": { "containers": [{ "name": "c", "image": "image:1" }] } })
}

/// A template of pods that end, some of them badly.
fn ending(world: &World) -> Value {
    let exit_code = if world.random.chance(0.3) { "1" } else { "0" };
    json!({
        "metadata": { "annotations": {
            "simulated.setpoint.dev/run-seconds": world.random.below(20).to_string(),
            "simulated.setpoint.dev/exit-code": exit_code,
        } },
        "spec": { "restartPolicy": "Never", "containers": [{ "name": "c", "image": "image:1" }] },
    })
}

fn replicated(name: &str, world: &World) -> Value {
    json!({ "replicas": replicas(world), "selector": { "matchLabels": { "app": name } }, "template": template(name) })
}

fn replication_controller(name: &str, world: &World) -> Value {
    json!({ "replicas": replicas(world), "selector": { "app": name }, "template": template(name) })
}

fn deployment(name: &str, world: &World) -> Value {
    let mut spec = replicated(name, world);
    spec["revisionHistoryLimit"] = json!(2);
    spec["strategy"] = match world.random.below(3) {
        0 => json!({ "type": "Recreate" }),
        _ => json!({
            "type": "RollingUpdate",
            "rollingUpdate": { "maxSurge": world.random.below(3), "maxUnavailable": 1 + world.random.below(2) },
        }),
    };
    spec
}

fn stateful_set(name: &str, world: &World) -> Value {
    let mut spec = replicated(name, world);
    spec["serviceName"] = json!(name);
    spec["podManagementPolicy"] = json!(if world.random.chance(0.5) { "Parallel" } else { "OrderedReady" });
    spec
}

fn daemon_set(name: &str, world: &World) -> Value {
    let update = match world.random.below(2) {
        0 => json!({ "maxSurge": 1, "maxUnavailable": 0 }),
        _ => json!({ "maxUnavailable": 1 + world.random.below(2) }),
    };
    json!({
        "selector": { "matchLabels": { "app": name } }, "template": template(name),
        "updateStrategy": { "type": "RollingUpdate", "rollingUpdate": update },
    })
}

fn job(_name: &str, world: &World) -> Value {
    let mut spec = json!({
        "parallelism": 1 + world.random.below(3), "completions": 1 + world.random.below(4),
        "backoffLimit": world.random.below(3), "template": ending(world),
    });
    match world.random.below(3) {
        0 => spec["completionMode"] = json!("Indexed"),
        1 => spec["ttlSecondsAfterFinished"] = json!(world.random.below(60)),
        _ => {}
    }
    spec
}

fn cron_job(_name: &str, world: &World) -> Value {
    let policy = ["Allow", "Forbid", "Replace"][usize::try_from(world.random.below(3)).unwrap_or(0)];
    // It runs while faults happen, and not again within the time that is watched.
    json!({
        "schedule": "0-2 0 1 1 *", "concurrencyPolicy": policy,
        "jobTemplate": { "spec": { "backoffLimit": 0, "template": ending(world) } },
    })
}

fn scale(world: &World) -> Value {
    json!({ "spec": { "replicas": replicas(world) } })
}

fn roll(world: &World) -> Value {
    let image = format!("image:{}", world.random.below(4));
    json!({ "spec": { "template": { "metadata": { "annotations": { "image": image } } } } })
}

fn scale_or_roll(world: &World) -> Value {
    if world.random.chance(0.5) { scale(world) } else { roll(world) }
}
