//! Users, who edit at random: a few kinds and a few names in each run, so that edits meet.

mod specs;

use super::World;
use kinds::{Id, Key, Kind, Node, Object, Pod, Raw, ResourceQuota};
use object::{ApiError, Value, json};
use runtime::{DeleteOptions, PatchType, Propagation, Target};
use specs::SUBJECTS;

/// One kind that users edit.
struct Subject {
    id: Id,
    /// What the spec of a new one looks like.
    make: fn(&str, &World) -> Value,
    /// An edit of one that is there.
    change: fn(&str, &World) -> Value,
}

/// Where users work: this one is there for good, and the others come and go.
const NAMESPACES: [&str; 3] = ["default", "team-0", "team-1"];
/// So many kinds are edited in one run.
const KINDS_AT_ONCE: usize = 6;

/// The users of one run, with what they are interested in.
pub(super) struct Users {
    subjects: Vec<&'static Subject>,
}

impl Users {
    pub(super) fn new(world: &World) -> Self {
        let mut rest: Vec<_> = SUBJECTS.iter().collect();
        let subjects = (0..KINDS_AT_ONCE.min(rest.len())).map(|_| rest.swap_remove(pick(world, rest.len())));
        Users { subjects: subjects.collect() }
    }

    /// Does one thing to one object. Whether it succeeds does not matter: users make mistakes too.
    pub(super) async fn edit(&self, world: &World) {
        let subject = self.subjects[pick(world, self.subjects.len())];
        let (namespace, name) = (namespace(world), format!("{}-{}", subject.id.kind.to_lowercase(), pick(world, 2)));
        let target = target(&subject.id, namespace, &name);
        let _ = match pick(world, 20) {
            0..8 => world.admin.create(&subject.id, &object(subject, &target, world)).await,
            8..15 => world.admin.patch(&target, "", PatchType::Merge, &(subject.change)(&name, world)).await,
            15..17 => world.admin.delete(&target, &delete_options(world)).await,
            17 => delete_some_pod(world).await,
            18 => evict_some_pod(world).await,
            _ => do_something_to_a_node(world).await,
        };
    }
}

/// How many steps a plain life has.
pub(super) const STEPS: usize = 4;
/// How many plain lives there are: each is about a part of the kinds.
pub(super) const LIVES: usize = SUBJECTS.len().div_ceil(KINDS_IN_A_LIFE);
const KINDS_IN_A_LIFE: usize = 4;

/// A plain life: one of each of some kinds is made, changed, and, at the end, some are deleted.
pub(super) async fn step(world: &World, life: usize, step: usize) {
    let subjects = SUBJECTS.iter().skip(life * KINDS_IN_A_LIFE).take(KINDS_IN_A_LIFE);
    for (number, subject) in subjects.enumerate() {
        let name = format!("{}-0", subject.id.kind.to_lowercase());
        let target = target(&subject.id, NAMESPACES[0], &name);
        // A change may be refused: that is a user's mistake.
        let _ = match step {
            0 => world.admin.create(&subject.id, &object(subject, &target, world)).await,
            1 | 2 => world.admin.patch(&target, "", PatchType::Merge, &(subject.change)(&name, world)).await,
            _ if number % 2 == 0 => world.admin.delete(&target, &delete_options(world)).await,
            _ => continue,
        };
    }
}

/// Whatever users did to machines, they undo, and nothing is too much any more.
pub(super) async fn calm_down(world: &World) {
    for node in 0..super::world::NODES {
        let well = json!({
            "metadata": { "annotations": { "simulated.setpoint.dev/state": null } }, "spec": { "unschedulable": null },
        });
        drop(patch_node(world, node, &well).await);
    }
    for quota in world.all::<ResourceQuota>().await {
        let hard: object::Map = quota.spec.hard.keys().map(|name| (name.clone(), json!("1k"))).collect();
        let patch = json!({ "spec": { "hard": hard } });
        drop(world.admin.patch(&Target::of(&quota), "", PatchType::Merge, &patch).await);
    }
}

fn pick(world: &World, bound: usize) -> usize {
    usize::try_from(world.random.below(bound as u64)).unwrap_or(0)
}

fn namespace(world: &World) -> &'static str {
    match pick(world, 10) {
        0..6 => NAMESPACES[0],
        6..8 => NAMESPACES[1],
        _ => NAMESPACES[2],
    }
}

fn target(id: &Id, namespace: &str, name: &str) -> Target {
    let namespace = if id.namespaced { namespace } else { "" };
    // Those that users work in.
    let name = if id.kind == "Namespace" { name.replace("namespace", "team") } else { name.to_owned() };
    Target::named(id.clone(), Key::new(namespace, name))
}

fn object(subject: &Subject, target: &Target, world: &World) -> Value {
    let Key { namespace, name } = &target.key;
    let mut metadata = json!({ "name": name });
    if !namespace.is_empty() {
        metadata["namespace"] = json!(namespace);
    }
    let spec = (subject.make)(name, world);
    json!({ "kind": subject.id.kind, "apiVersion": subject.id.api_version, "metadata": metadata, "spec": spec })
}

fn delete_options(world: &World) -> DeleteOptions {
    let ways = [Propagation::Background, Propagation::Foreground, Propagation::Orphan];
    DeleteOptions { propagation: ways[pick(world, ways.len())], ..DeleteOptions::default() }
}

async fn some_pod(world: &World) -> Option<Object<Pod>> {
    let mut pods = world.all::<Pod>().await;
    if pods.is_empty() { None } else { Some(pods.swap_remove(pick(world, pods.len()))) }
}

async fn delete_some_pod(world: &World) -> Result<Raw, ApiError> {
    let Some(pod) = some_pod(world).await else { return Ok(Raw::default()) };
    world.admin.delete(&Target::of(&pod), &DeleteOptions::default()).await
}

async fn evict_some_pod(world: &World) -> Result<Raw, ApiError> {
    let Some(pod) = some_pod(world).await else { return Ok(Raw::default()) };
    evict(world, &pod).await
}

/// Asks for a pod to be evicted, which its budget may not allow.
pub(super) async fn evict(world: &World, pod: &Object<Pod>) -> Result<Raw, ApiError> {
    let (name, namespace) = (&pod.metadata.name, &pod.metadata.namespace);
    let eviction = json!({
        "apiVersion": "policy/v1", "kind": "Eviction", "metadata": { "name": name, "namespace": namespace },
    });
    world.admin.post(&Target::of(pod), "eviction", &eviction).await
}

/// Lets a simulated node die or live again, closes or opens it, or forgets it: then it registers anew.
async fn do_something_to_a_node(world: &World) -> Result<Raw, ApiError> {
    let node = pick(world, super::world::NODES);
    let yes = world.random.chance(0.5);
    match pick(world, 5) {
        0..2 => {
            let state = if yes { json!("dead") } else { Value::Null };
            let patch = json!({ "metadata": { "annotations": { "simulated.setpoint.dev/state": state } } });
            patch_node(world, node, &patch).await
        }
        2..4 => patch_node(world, node, &json!({ "spec": { "unschedulable": yes } })).await,
        _ => world.admin.delete(&node_target(node), &DeleteOptions::default()).await,
    }
}

fn node_target(node: usize) -> Target {
    target(&Node::ID, "", &format!("node-{node}"))
}

async fn patch_node(world: &World, node: usize, patch: &Value) -> Result<Raw, ApiError> {
    world.admin.patch(&node_target(node), "", PatchType::Merge, patch).await
}
