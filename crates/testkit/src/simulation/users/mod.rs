//! Users, who edit at random: a few kinds and a few names in each run, so that edits meet.

mod specs;

use super::World;
use super::deletions::delete;
use kinds::{Endpoints, Id, Key, Kind, Node, Object, PersistentVolumeClaim, Pod, Raw, ResourceQuota};
use object::{ApiError, Value, json};
use runtime::{DeleteOptions, PatchType, Propagation, Target};
use specs::INTERESTS;
pub(super) use specs::LAST_DUE;

/// One kind that users edit.
struct Subject {
    id: Id,
    /// What objects of it are called, before a number.
    name: &'static str,
    /// What the spec of a new one looks like.
    make: fn(&str, &World) -> Value,
    /// An edit of one that is there.
    change: fn(&str, &World) -> Value,
}

/// By this a node leaves it to others to attach volumes to it.
pub(super) const MANAGED: &str = "volumes.kubernetes.io/controller-managed-attach-detach";
/// Where users work: this one is there for good, and the others come and go.
const NAMESPACES: [&str; 3] = ["default", "team-0", "team-1"];
/// So much interests users in one run.
const INTERESTS_AT_ONCE: usize = 6;

/// The users of one run, with what they are interested in.
pub(super) struct Users {
    /// What belongs together is edited together.
    interests: Vec<&'static [Subject]>,
}

impl Users {
    pub(super) fn new(world: &World) -> Self {
        let mut rest: Vec<_> = INTERESTS.to_vec();
        let interests = (0..INTERESTS_AT_ONCE.min(rest.len())).map(|_| rest.swap_remove(pick(world, rest.len())));
        Users { interests: interests.collect() }
    }

    /// Does one thing to one object. Whether it succeeds does not matter: users make mistakes too.
    pub(super) async fn edit(&self, world: &World) {
        let interest = self.interests[pick(world, self.interests.len())];
        let subject = &interest[pick(world, interest.len())];
        let (namespace, name) = (namespace(world), format!("{}-{}", subject.name, pick(world, 2)));
        let target = target(&subject.id, namespace, &name);
        let _ = match pick(world, 21) {
            0..8 => world.admin.create(&subject.id, &object(subject, &target, world)).await,
            8..15 => world.admin.patch(&target, "", PatchType::Merge, &(subject.change)(&name, world)).await,
            15..17 => delete(world, &target, &delete_options(world)).await,
            17 => delete_some_pod(world).await,
            18 => evict_some_pod(world).await,
            19 => grow_some_claim(world).await,
            _ => do_something_to_a_node(world).await,
        };
    }
}

/// How many steps a plain life has.
pub(super) const STEPS: usize = 4;
/// How many plain lives there are: each is about a part of the kinds.
pub(super) const LIVES: usize = INTERESTS.len().div_ceil(INTERESTS_IN_A_LIFE);
const INTERESTS_IN_A_LIFE: usize = 4;

fn subjects(interests: &'static [&'static [Subject]]) -> impl Iterator<Item = &'static Subject> {
    interests.iter().copied().flatten()
}

/// A plain life: one of each of some kinds is made, changed, and, at the end, some are deleted.
pub(super) async fn step(world: &World, life: usize, step: usize) {
    let first = life * INTERESTS_IN_A_LIFE;
    let interests = &INTERESTS[first..INTERESTS.len().min(first + INTERESTS_IN_A_LIFE)];
    live(world, subjects(interests), step, |number| number % 2 == 0).await;
}

/// The same of what is called so, all of which is deleted.
pub(super) async fn step_of(world: &World, names: &[&str], step: usize) {
    live(world, subjects(INTERESTS).filter(|subject| names.contains(&subject.name)), step, |_| true).await;
}

async fn live(
    world: &World,
    subjects: impl Iterator<Item = &'static Subject>,
    step: usize,
    is_deleted: impl Fn(usize) -> bool,
) {
    for (number, subject) in subjects.enumerate() {
        let name = format!("{}-0", subject.name);
        let target = target(&subject.id, NAMESPACES[0], &name);
        // A change may be refused: that is a user's mistake.
        let _ = match step {
            0 => world.admin.create(&subject.id, &object(subject, &target, world)).await,
            1 | 2 => world.admin.patch(&target, "", PatchType::Merge, &(subject.change)(&name, world)).await,
            _ if is_deleted(number) => delete(world, &target, &delete_options(world)).await,
            _ => continue,
        };
    }
    if step == 2 {
        drop(grow_some_claim(world).await);
    }
}

/// Whatever users did to machines, they undo, and nothing is too much any more.
pub(super) async fn calm_down(world: &World) {
    for node in 0..super::world::NODES {
        let annotations = json!({ "simulated.setpoint.dev/state": null, MANAGED: "true" });
        let well = json!({ "metadata": { "annotations": annotations }, "spec": { "unschedulable": null } });
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
    Target::named(id.clone(), Key::new(namespace, name))
}

fn object(subject: &Subject, target: &Target, world: &World) -> Value {
    let Key { namespace, name } = &target.key;
    let mut metadata = json!({ "name": name });
    if !namespace.is_empty() {
        metadata["namespace"] = json!(namespace);
    }
    let part = if subject.id == Endpoints::ID { "subsets" } else { "spec" };
    let made = (subject.make)(name, world);
    json!({ "kind": subject.id.kind, "apiVersion": subject.id.api_version, "metadata": metadata, (part): made })
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

/// Asks for more space: that is refused if less would be meant, or nobody could give it.
async fn grow_some_claim(world: &World) -> Result<Raw, ApiError> {
    let mut claims = world.all::<PersistentVolumeClaim>().await;
    claims.retain(|claim| !claim.spec.volume_name.is_empty());
    if claims.is_empty() {
        return Ok(Raw::default());
    }
    let claim = &claims[pick(world, claims.len())];
    let size = format!("{}Gi", 2 + pick(world, 4));
    let patch = json!({ "spec": { "resources": { "requests": { "storage": size } } } });
    world.admin.patch(&Target::of(claim), "", PatchType::Merge, &patch).await
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
            let patch = json!({
                "metadata": { "annotations": { "simulated.setpoint.dev/state": state, MANAGED: "true" } },
            });
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
