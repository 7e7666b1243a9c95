//! Simulated nodes: they look like machines to the API, and run nothing.
//!
//! Each has an object, a lease it renews and an identity of its own. A pod that is bound to one starts, becomes ready,
//! ends if it is of a kind that ends, and goes when it is deleted, as [`life`] says.

mod addresses;
mod behavior;
mod fleet;
mod life;
mod logs;
mod machine;
mod meter;
mod occupancy;
mod pod;
mod resize;
mod restart;
mod status;

pub use fleet::{Fleet, Group};
pub use logs::{Logs, Reader};
pub use meter::Meter;

use crate::admission::Refusal;
use addresses::Addresses;
use behavior::Behavior;
use kinds::{ConfigMap, Key, Kind, Lease, Node, Object, Pod, ResourceClaim, SIMULATED_BEHAVIOR};
use object::{ApiError, json};
use occupancy::Occupancy;
use parking_lot::Mutex;
use resize::Resize;
use runtime::{Caches, Client, Context, Controller, DeleteOptions, Note, PatchType, Plan, Request, Target};
use std::sync::Arc;

/// Gives a node its client.
pub type AsNode = Arc<dyn Fn(&str) -> Client + Send + Sync>;

/// So many pods of all nodes are seen to at once: each waits for a write, and writes that come together are cheap.
const PODS_AT_ONCE: usize = 512;
/// Many, since a node whose lease is renewed too late is taken for lost: heartbeats must not queue behind one another when
/// the API is busy.
const NODES_AT_ONCE: usize = 256;

/// The loops of all nodes.
pub fn controllers(fleet: Fleet, as_node: AsNode) -> Vec<Controller> {
    let keepers = Arc::new(Keepers { fleet, as_node, addresses: Mutex::default(), occupancy: Mutex::default() });
    let (of_nodes, of_maps, nodes_of) = (keepers.clone(), keepers.clone(), keepers.clone());
    let mut nodes = Controller::new("simulated-nodes")
        .watches_changes::<Node>(move |change, _| {
            let ours = change.sides().filter(|node| of_nodes.fleet.member(&node.metadata.name).is_some());
            ours.map(|node| node.key()).collect()
        })
        .watches_changes::<ConfigMap>(move |change, _| match behavior::concerned(change) {
            Some(behavior::OF_NODES) => of_maps.fleet.members().map(|member| Key::cluster(member.name())).collect(),
            _ => Vec::new(),
        })
        .reads::<Lease>()
        .workers(NODES_AT_ONCE)
        .plans_with(move |context, request| {
            let keepers = nodes_of.clone();
            async move { keepers.keep_node(&context, &request).await }
        });
    for member in keepers.fleet.members() {
        nodes = nodes.begins_with(Key::cluster(member.name()));
    }
    let (of_pods, of_maps, pods_of) = (keepers.clone(), keepers.clone(), keepers);
    let pods = Controller::new("simulated-pods")
        .account("kube-controller-manager")
        .reports_as("kubelet")
        .watches_changes::<Pod>(move |change, _| {
            let pod = change.new.as_ref().filter(|pod| of_pods.fleet.member(&pod.spec.node_name).is_some());
            pod.map(|pod| pod.key()).into_iter().collect()
        })
        .watches_changes::<ResourceClaim>(|change, caches| {
            let Some(claim) = &change.new else { return Vec::new() };
            let users = caches.of::<Pod>().by("resource-claim", &claim.key().to_string());
            users.iter().map(|pod| pod.key()).collect()
        })
        .watches_changes::<Node>(|change, caches| match (&change.old, &change.new) {
            // One that is made anew may take the place of one that was dead.
            (old, Some(new)) if old.as_ref().is_none_or(|old| behavior::differs(old, new)) => {
                caches.of::<Pod>().by("node", &new.metadata.name).iter().map(|pod| pod.key()).collect()
            }
            _ => Vec::new(),
        })
        .watches_changes::<ConfigMap>(move |change, caches| {
            let pods = match behavior::concerned(change) {
                Some(behavior::OF_NODES) => caches.of::<Pod>().all(),
                Some(namespace) => caches.of::<Pod>().in_namespace(namespace),
                None => Vec::new(),
            };
            let ours = pods.iter().filter(|pod| of_maps.fleet.member(&pod.spec.node_name).is_some());
            ours.map(|pod| pod.key()).collect()
        })
        .workers(PODS_AT_ONCE)
        .plans_with(move |context, request| {
            let keepers = pods_of.clone();
            async move { keepers.run_pod(&context, &request).await }
        });
    let behaviors = Controller::new("simulated-behavior")
        .account("kube-controller-manager")
        .watches::<ConfigMap>(|map, _| match map.metadata.labels.contains_key(SIMULATED_BEHAVIOR) {
            true => vec![map.key()],
            false => Vec::new(),
        })
        .plans(|caches, request| {
            let map = caches.of::<ConfigMap>().get(&request.key);
            let map = map.filter(|map| map.metadata.labels.contains_key(SIMULATED_BEHAVIOR));
            map.map(|map| behavior::review(&map)).unwrap_or_default()
        });
    vec![nodes, pods, behaviors]
}

struct Keepers {
    fleet: Fleet,
    as_node: AsNode,
    addresses: Mutex<Addresses>,
    occupancy: Mutex<Occupancy>,
}

impl Keepers {
    /// Sees to it that a node is there and known to be alive.
    async fn keep_node(&self, context: &Context, request: &Request) -> Result<Plan, ApiError> {
        let name = &request.key.name;
        let Some(member) = self.fleet.member(name) else { return Ok(Plan::default()) };
        let client = (self.as_node)(name);
        let node = context.caches.of::<Node>().get(&request.key);
        if node.as_ref().is_some_and(|node| Behavior::of_node(node, &context.caches).is_dead()) {
            return Ok(Plan::default());
        }
        match node {
            None => {
                client.create(&Node::ID, &machine::node(&member, request.now)).await?;
            }
            Some(node) if machine::needs_report(&node, request.now) => {
                let status = json!({ "status": machine::status(&member, &node, request.now) });
                client.patch(&Target::of(&*node), "status", PatchType::Merge, &status).await?;
            }
            Some(_) => {}
        }
        let lease = context.caches.of::<Lease>().named(machine::LEASES, name);
        let written = match machine::renewal(name, lease.as_deref(), request.now) {
            Some(machine::Renewal::Create(lease)) => Some(client.create(&Lease::ID, &lease).await?),
            Some(machine::Renewal::Patch(patch)) => {
                let target = Target::named(Lease::ID, Key::new(machine::LEASES, name.as_str()));
                Some(client.patch(&target, "", PatchType::Merge, &patch).await?)
            }
            None => None,
        };
        // What happens to the node wakes this loop again at once; it must not find the lease as it was before.
        if let Some(lease) = written {
            context.caches.seen(&Lease::ID, &lease).await;
        }
        let mut plan = Plan::default();
        plan.requeue_after(machine::until_renewal(request.now));
        Ok(plan)
    }

    /// Takes a pod one step further in its life.
    async fn run_pod(&self, context: &Context, request: &Request) -> Result<Plan, ApiError> {
        let mut plan = Plan::default();
        let Some(pod) = context.caches.of::<Pod>().get(&request.key) else { return Ok(plan) };
        let Some(member) = self.fleet.member(&pod.spec.node_name) else { return Ok(plan) };
        let node = context.caches.of::<Node>().named("", &pod.spec.node_name);
        let of_node = node.as_ref().map(|node| Behavior::of_node(node, &context.caches)).unwrap_or_default();
        if of_node.is_dead() {
            return Ok(plan);
        }
        let behavior = Behavior::of_pod(&pod, &of_node, &context.caches);
        let client = (self.as_node)(&pod.spec.node_name);
        let room = Room { caches: &context.caches, index: member.index, node: node.as_deref(), pod: &pod };
        let refusal = self.refusal(&room, &client, request).await?;
        let resize = self.resize(&room);
        let address = if refusal.is_none() { self.address(&room) } else { String::new() };
        let place = pod::Place {
            address: &address,
            host: &machine::address(member.index),
            has_devices: has_devices(&pod, &context.caches),
            refusal: refusal.as_ref(),
            resize: resize.as_ref(),
        };
        let life = life::Life::of(&pod, &behavior);
        let written = match pod::step(&pod, &life, place, request.now) {
            pod::Step::Report(status, remarks) => {
                for pod::Remark { warning, reason, message } in remarks {
                    plan.event(Note { warning, ..Note::normal(&*pod, &reason, message) });
                }
                let patch = json!({ "metadata": { "uid": pod.metadata.uid }, "status": status });
                client.patch(&Target::of(&*pod), "status", PatchType::Merge, &patch).await
            }
            pod::Step::Remove => {
                self.addresses.lock().forget(member.index, &pod);
                self.occupancy.lock().settle(member.index, &pod);
                let at_once = DeleteOptions { grace_seconds: Some(0), ..DeleteOptions::default() };
                client.delete(&Target::of(&*pod), &at_once).await
            }
            pod::Step::Wait(delay) => {
                plan.requeue_after = delay;
                return Ok(plan);
            }
        };
        match written {
            Err(error) if !is_outrun(&error) => Err(error),
            _ => Ok(plan),
        }
    }

    /// Why a pod that has not started cannot start where it is.
    async fn refusal(&self, room: &Room<'_>, client: &Client, request: &Request) -> Result<Option<Refusal>, ApiError> {
        let Some(node) = room.node.filter(|_| room.pod.is_active() && room.pod.status.start_time.is_none()) else {
            return Ok(None);
        };
        let admit = |node: &Node| {
            let mut occupancy = self.occupancy.lock();
            occupancy.admit(room.index, room.pod, node, || room.neighbours(), request.now).err()
        };
        if admit(node).is_none() {
            return Ok(None);
        }
        // Whoever bound the pod may have seen a newer state of the node than the cache has.
        let newest = client.get::<Node>(&Key::cluster(node.metadata.name.as_str())).await?;
        Ok(newest.and_then(|newest| admit(&newest)))
    }

    /// What becomes of a resize of a pod that runs, if one is asked for.
    fn resize(&self, room: &Room<'_>) -> Option<Resize> {
        let pod = room.pod;
        if !resize::is_wanted(pod) {
            if pod.status.start_time.is_some() {
                self.occupancy.lock().settle(room.index, pod);
            }
            return None;
        }
        let node = room.node.filter(|_| pod.is_active())?;
        Some(self.occupancy.lock().resize(room.index, pod, node, &room.neighbours()))
    }

    /// The address of a pod. What has ended without one needs none.
    fn address(&self, room: &Room<'_>) -> String {
        if room.pod.is_finished() && room.pod.status.pod_ip.is_empty() {
            return String::new();
        }
        self.addresses.lock().get(room.index, room.pod, || room.neighbours())
    }
}

/// A pod and what is around it.
struct Room<'a> {
    caches: &'a Caches,
    index: usize,
    node: Option<&'a Object<Node>>,
    pod: &'a Object<Pod>,
}

impl Room<'_> {
    /// All pods of its node.
    fn neighbours(&self) -> Vec<Arc<Object<Pod>>> {
        self.caches.of::<Pod>().by("node", &self.pod.spec.node_name)
    }
}

/// Whether all that a pod claims is there and reserved for it. What it needs no claim for has an entry without a name.
fn has_devices(pod: &Pod, caches: &Caches) -> bool {
    let is_known = |name: &str| pod.status.resource_claim_statuses.iter().any(|status| status.name == name);
    let claims = caches.of::<ResourceClaim>();
    let is_ready = |name: &str| {
        let claim = claims.named(&pod.metadata.namespace, name);
        claim.is_some_and(|claim| claim.status.allocation.is_some() && claim.is_reserved_for(&pod.metadata.uid))
    };
    let mut entries = pod.spec.resource_claims.iter();
    entries.all(|entry| entry.resource_claim_name.is_some() || is_known(&entry.name))
        && pod.resource_claim_names().all(is_ready)
}

/// Whether the object has changed or gone meanwhile; its next event brings the loop back.
fn is_outrun(error: &ApiError) -> bool {
    matches!(error.reason(), object::Reason::NotFound | object::Reason::Conflict)
}

#[cfg(test)]
mod tests {
    use super::*;
    use kinds::Object;

    #[test]
    fn a_claim_has_to_be_allocated_and_reserved_for_the_very_pod() {
        let pod = |entry: &object::Value, status: &object::Value| -> Object<Pod> {
            Object::of(&json!({
                "metadata": { "name": "p", "namespace": "default", "uid": "u" },
                "spec": { "resourceClaims": [entry] }, "status": { "resourceClaimStatuses": status },
            }))
        };
        let named = json!({ "name": "gpu", "resourceClaimName": "c" });
        let templated = json!({ "name": "gpu", "resourceClaimTemplateName": "t" });
        let made = json!([{ "name": "gpu", "resourceClaimName": "c" }]);
        let none = json!([{ "name": "gpu" }]);
        let reserved = |uid: &str| json!({ "allocation": {}, "reservedFor": [{ "resource": "pods", "uid": uid }] });
        for (pod, status, expected) in [
            (pod(&named, &json!([])), json!({}), false),
            (pod(&named, &json!([])), json!({ "allocation": {} }), false),
            (pod(&named, &json!([])), reserved("other"), false),
            (pod(&named, &json!([])), reserved("u"), true),
            (pod(&templated, &json!([])), reserved("u"), false),
            (pod(&templated, &made), reserved("u"), true),
            (pod(&templated, &none), json!({}), true),
        ] {
            let mut caches = Caches::default().with::<ResourceClaim>();
            caches.put(Object::<ResourceClaim>::of(&json!({
                "metadata": { "name": "c", "namespace": "default" }, "status": status,
            })));
            assert_eq!(has_devices(&pod, &caches), expected, "{status}");
        }
    }
}
