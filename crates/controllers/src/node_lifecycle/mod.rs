//! Node lifecycle: what a node reports becomes taints, and one that reports nothing is marked as unknown.
//!
//! Taints that keep pods away, and the readiness of the pods that are there, follow the conditions of a node at once, one
//! key per node. Whether nodes are heard of is looked at all together, every few seconds and when the patience with one
//! of them ends, since how many are silent in a zone decides how fast pods may be driven off. Driving them off is the
//! business of taint eviction.

mod health;
mod pods;
mod taints;
mod zones;

use crate::Settings;
use health::{Health, Verdict};
use kinds::{Key, Lease, Node, Object, Pod, Time};
use object::{Value, View, json};
use parking_lot::Mutex;
use runtime::{Caches, Controller, Note, Plan};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use zones::Zones;

/// How often nodes are looked at.
const PERIOD: Duration = Duration::from_secs(5);
/// How soon to look again at what could not be finished.
const SOON: Duration = Duration::from_millis(100);
/// So many nodes are seen to at once: when thousands join, each waits for its taint to go before it gets any pods.
const WORKERS: usize = 32;
/// The key of that look.
const SWEEP: &str = "";
const LEASES: &str = "kube-node-lease";

pub(crate) fn controller(settings: &Settings) -> Controller {
    let monitor = Mutex::new(Monitor::new(settings.node_eviction_rate));
    Controller::new("node-controller")
        .primary::<Node>()
        .reads::<Lease>()
        .reads::<Pod>()
        .begins_with(Key::cluster(SWEEP))
        .workers(WORKERS)
        .plans(move |caches, request| match request.key.name.as_str() {
            SWEEP => monitor.lock().sweep(caches, request.now),
            _ => caches.of::<Node>().get(&request.key).map(|node| plan(caches, &node, request.now)).unwrap_or_default(),
        })
}

/// What follows from what is said of a node.
fn plan(caches: &Caches, node: &Object<Node>, now: Time) -> Plan {
    let mut plan = taints::plan(node, now);
    pods::mark(&mut plan, node, &caches.of::<Pod>().by("node", &node.metadata.name), now);
    plan
}

/// What is known of nodes that no object says: since when each has been silent, and how fast pods may be driven off.
#[derive(Debug)]
struct Monitor {
    healths: BTreeMap<String, Health>,
    zones: Zones,
}

impl Monitor {
    fn new(rate: f64) -> Self {
        Monitor { healths: BTreeMap::new(), zones: Zones::new(rate) }
    }

    fn sweep(&mut self, caches: &Caches, now: Time) -> Plan {
        let (nodes, leases) = (caches.of::<Node>().all(), caches.of::<Lease>());
        let mut plan = Plan::default();
        self.forget_the_gone(&nodes);
        let mut verdicts = Vec::new();
        for node in &nodes {
            let lease = leases.named(LEASES, &node.metadata.name);
            let health = match self.healths.get_mut(&node.metadata.name) {
                Some(health) if health.uid == node.metadata.uid => health,
                _ => {
                    let name = &node.metadata.name;
                    let message = format!("Node {name} event: Registered Node {name} in Controller");
                    plan.event(Note::normal(node, "RegisteredNode", message));
                    self.healths.entry(name.clone()).insert_entry(Health::new(node, now)).into_mut()
                }
            };
            verdicts.push((node.clone(), health.look(node, lease.as_deref(), now)));
        }
        let allowed = self.zones.allow(&verdicts, now);
        let mut next = self.zones.next_turn(now).map_or(PERIOD, |turn| turn.min(PERIOD));
        for (node, verdict) in &verdicts {
            next = verdict.patience.map_or(next, |patience| patience.min(next));
            if report(&mut plan, node, verdict) {
                // The same object cannot be replaced twice from one look.
                next = SOON;
                continue;
            }
            let due = taints::eviction(verdict.ready).filter(|_| allowed.contains(&node.metadata.name));
            // New pods are kept away before those that are there are driven off.
            let wanted = due.filter(|key| taints::keeps_away(node, key));
            if wanted != due {
                next = SOON;
            }
            let keeps = taints::eviction(verdict.ready).is_some() && !self.zones.are_all_dark();
            taints::set_eviction(&mut plan, node, wanted, keeps, now);
        }
        plan.requeue_after(next.max(SOON));
        plan
    }

    fn forget_the_gone(&mut self, nodes: &[Arc<Object<Node>>]) {
        let known: std::collections::BTreeSet<&str> = nodes.iter().map(|node| node.metadata.name.as_str()).collect();
        self.healths.retain(|name, _| known.contains(name.as_str()));
    }
}

/// A node that is silent is reported as unknown. Tells whether there was something to report.
fn report(plan: &mut Plan, node: &Object<Node>, verdict: &Verdict) -> bool {
    let Some(conditions) = &verdict.conditions else { return false };
    let mut status = node.json().at("status").clone();
    status["conditions"] = merged(status.items("conditions"), conditions);
    plan.status(node, status);
    if verdict.was_ready {
        let name = &node.metadata.name;
        plan.event(Note::normal(node, "NodeNotReady", format!("Node {name} status is now: NodeNotReady")));
    }
    true
}

fn merged(old: &[Value], new: &[Value]) -> Value {
    let mut merged = old.to_vec();
    for condition in new {
        match merged.iter_mut().find(|other| other.text("type") == condition.text("type")) {
            Some(other) => *other = condition.clone(),
            None => merged.push(condition.clone()),
        }
    }
    json!(merged)
}

#[cfg(test)]
mod tests;
