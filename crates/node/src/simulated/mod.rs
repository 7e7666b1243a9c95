//! Simulated nodes: they look like machines to the API, and run nothing.
//!
//! Each has an object, a lease it renews and an identity of its own. A pod that is bound to one starts, becomes ready,
//! ends if it is of a kind that ends, and goes when it is deleted.

mod addresses;
mod machine;
mod meter;
mod pod;

pub use meter::Meter;

use addresses::Addresses;
use kinds::{Key, Kind, Lease, Node, Pod};
use object::{ApiError, json};
use parking_lot::Mutex;
use runtime::{Client, Context, Controller, DeleteOptions, PatchType, Plan, Request, Target};
use std::sync::Arc;

/// Gives a node its client.
pub type AsNode = Arc<dyn Fn(&str) -> Client + Send + Sync>;

/// The loops of `count` nodes.
pub fn controllers(count: usize, as_node: AsNode) -> Vec<Controller> {
    let fleet = Arc::new(Fleet { count, as_node, addresses: Mutex::default() });
    let (for_nodes, for_pods) = (fleet.clone(), fleet);
    let mut nodes = Controller::new("simulated-nodes")
        .watches::<Node>(
            |node, _| if machine::index(&node.metadata.name).is_some() { vec![node.key()] } else { vec![] },
        )
        .reads::<Lease>()
        .workers(8)
        .plans_with(move |context, request| {
            let fleet = for_nodes.clone();
            async move { fleet.keep_node(&context, &request).await }
        });
    for index in 0..count {
        nodes = nodes.begins_with(Key::cluster(machine::name(index)));
    }
    let pods = Controller::new("simulated-pods")
        .watches::<Pod>(|pod, _| match machine::index(&pod.spec.node_name) {
            Some(_) => vec![pod.key()],
            None => vec![],
        })
        .watches_changes::<Node>(|change, caches| {
            let was_dead = change.old.as_ref().is_some_and(|node| machine::is_dead(node));
            match change.new.as_ref().filter(|node| was_dead && !machine::is_dead(node)) {
                Some(node) => caches.of::<Pod>().by("node", &node.metadata.name).iter().map(|pod| pod.key()).collect(),
                None => Vec::new(),
            }
        })
        .workers(8)
        .plans_with(move |context, request| {
            let fleet = for_pods.clone();
            async move { fleet.run_pod(&context, &request).await }
        });
    vec![nodes, pods]
}

struct Fleet {
    count: usize,
    as_node: AsNode,
    addresses: Mutex<Addresses>,
}

impl Fleet {
    /// Sees to it that a node is there and known to be alive.
    async fn keep_node(&self, context: &Context, request: &Request) -> Result<Plan, ApiError> {
        let name = &request.key.name;
        let Some(index) = machine::index(name).filter(|index| *index < self.count) else { return Ok(Plan::default()) };
        let client = (self.as_node)(name);
        let node = context.caches.of::<Node>().get(&request.key);
        if node.as_ref().is_some_and(|node| machine::is_dead(node)) {
            return Ok(Plan::default());
        }
        match node {
            None => {
                client.create(&Node::ID, &machine::node(index, request.now)).await?;
            }
            Some(node) if machine::needs_report(&node, request.now) => {
                let status = json!({ "status": machine::status(index, &node, request.now) });
                client.patch(&Target::of(&*node), "status", PatchType::Merge, &status).await?;
            }
            Some(_) => {}
        }
        let lease = context.caches.of::<Lease>().named(machine::LEASES, name);
        let written = match machine::renewal(name, lease.as_deref(), request.now) {
            Some(machine::Renewal::Create(lease)) => Some(client.create(&Lease::ID, &lease).await?),
            Some(machine::Renewal::Update(lease)) => Some(client.update(&Lease::ID, "", &lease).await?),
            None => None,
        };
        // What happens to the node wakes this loop again at once; it must not find the lease as it was before.
        if let Some(lease) = written {
            context.caches.seen(&Lease::ID, &lease).await;
        }
        let mut plan = Plan::default();
        plan.requeue_after(machine::HEARTBEAT);
        Ok(plan)
    }

    /// Takes a pod one step further in its life.
    async fn run_pod(&self, context: &Context, request: &Request) -> Result<Plan, ApiError> {
        let mut plan = Plan::default();
        let Some(pod) = context.caches.of::<Pod>().get(&request.key) else { return Ok(plan) };
        let Some(index) = machine::index(&pod.spec.node_name).filter(|index| *index < self.count) else {
            return Ok(plan);
        };
        let node = context.caches.of::<Node>().named("", &pod.spec.node_name);
        if node.is_some_and(|node| machine::is_dead(&node)) {
            return Ok(plan);
        }
        let client = (self.as_node)(&pod.spec.node_name);
        let neighbours = || context.caches.of::<Pod>().by("node", &pod.spec.node_name);
        let address = self.addresses.lock().get(index, &pod, neighbours);
        match pod::step(&pod, &address, &machine::address(index), request.now) {
            pod::Step::Report(status) => {
                let patch = json!({ "metadata": { "uid": pod.metadata.uid }, "status": status });
                match client.patch(&Target::of(&*pod), "status", PatchType::Merge, &patch).await {
                    Err(error) if !is_outrun(&error) => return Err(error),
                    _ => {}
                }
            }
            pod::Step::Remove => {
                self.addresses.lock().forget(&pod.metadata.uid);
                let at_once = DeleteOptions { grace_seconds: Some(0), ..DeleteOptions::default() };
                match client.delete(&Target::of(&*pod), &at_once).await {
                    Err(error) if !is_outrun(&error) => return Err(error),
                    _ => {}
                }
            }
            pod::Step::Wait(Some(delay)) => {
                plan.requeue_after(delay);
            }
            pod::Step::Wait(None) => {}
        }
        Ok(plan)
    }
}

/// Whether the object has changed or gone meanwhile; its next event brings the loop back.
fn is_outrun(error: &ApiError) -> bool {
    matches!(error.reason(), object::Reason::NotFound | object::Reason::Conflict)
}
