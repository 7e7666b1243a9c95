//! Users, who edit at random: a few names, so that edits meet.

use super::World;
use kinds::{Deployment, Id, Key, Kind, Pod, ReplicaSet, ReplicationController};
use object::{Value, json};
use runtime::{DeleteOptions, PatchType, Propagation, Target};

const NAMESPACE: &str = "default";

/// One kind that users edit.
struct Subject {
    id: Id,
    /// What a new one looks like.
    make: fn(&str, &World) -> Value,
    /// An edit of one that is there.
    change: fn(&World) -> Value,
}

const SUBJECTS: &[Subject] = &[
    Subject { id: ReplicaSet::ID, make: replica_set, change: scale },
    Subject { id: ReplicationController::ID, make: replication_controller, change: scale },
    Subject { id: Deployment::ID, make: deployment, change: scale_or_roll },
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
        0..4 => world.admin.create(&subject.id, &(subject.make)(&name, world)).await,
        4..8 => world.admin.patch(&target, "", PatchType::Merge, &(subject.change)(world)).await,
        8 => world.admin.delete(&target, &delete_options(world)).await,
        _ => delete_some_pod(world).await,
    };
}

fn delete_options(world: &World) -> DeleteOptions {
    let ways = [Propagation::Background, Propagation::Foreground, Propagation::Orphan];
    let way = ways[usize::try_from(world.random.below(3)).unwrap_or(0)];
    DeleteOptions { propagation: way, ..DeleteOptions::default() }
}

async fn delete_some_pod(world: &World) -> Result<kinds::Raw, object::ApiError> {
    let pods = world.admin.list::<Pod>(NAMESPACE, &runtime::ListOptions::default()).await?.items;
    if pods.is_empty() {
        return Ok(kinds::Raw::default());
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

fn replica_set(name: &str, world: &World) -> Value {
    json!({
        "kind": "ReplicaSet", "apiVersion": "apps/v1", "metadata": { "name": name, "namespace": NAMESPACE },
        "spec": {
            "replicas": replicas(world), "selector": { "matchLabels": { "app": name } }, "template": template(name),
        },
    })
}

fn replication_controller(name: &str, world: &World) -> Value {
    json!({
        "kind": "ReplicationController", "apiVersion": "v1", "metadata": { "name": name, "namespace": NAMESPACE },
        "spec": { "replicas": replicas(world), "selector": { "app": name }, "template": template(name) },
    })
}

fn deployment(name: &str, world: &World) -> Value {
    let strategy = match world.random.below(3) {
        0 => json!({ "type": "Recreate" }),
        _ => json!({
            "type": "RollingUpdate",
            "rollingUpdate": { "maxSurge": world.random.below(3), "maxUnavailable": 1 + world.random.below(2) },
        }),
    };
    json!({
        "kind": "Deployment", "apiVersion": "apps/v1", "metadata": { "name": name, "namespace": NAMESPACE },
        "spec": {
            "replicas": replicas(world), "selector": { "matchLabels": { "app": name } }, "template": template(name),
            "strategy": strategy, "revisionHistoryLimit": 2,
        },
    })
}

fn scale(world: &World) -> Value {
    json!({ "spec": { "replicas": replicas(world) } })
}

fn scale_or_roll(world: &World) -> Value {
    match world.random.below(2) {
        0 => scale(world),
        _ => {
            let image = format!("image:{}", world.random.below(4));
            json!({ "spec": { "template": { "metadata": { "annotations": { "image": image } } } } })
        }
    }
}
