//! DaemonSet: keeps one pod on every node that it fits.
//!
//! A pod is meant for its node by affinity; placing it there is the scheduler's business, and it stays on nodes that
//! get into trouble because it tolerates what drives others away. Which nodes fit stands in [`nodes`], how pods are
//! replaced in [`update`]; templates of the past are revisions ([`crate::history`]).

mod failures;
mod nodes;
#[cfg(test)]
mod tests;
mod update;

use crate::history::{self, Current, Revision, Wanted};
use crate::replica_set::until_next_available;
use crate::workload::{candidates, claim, create_pod, delete_pod, owners_of, scaled};
use failures::Failures;
use kinds::{ControllerRevision, DaemonSet, Key, Node, Object, Pod, Time};
use nodes::{Daemon, Fit};
use object::{Value, json};
use parking_lot::Mutex;
use runtime::{Caches, Change, Controller, Note, Plan, Request};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// So many pods at most are created, and so many deleted, in one go.
const BURST: usize = 250;

pub(crate) fn controller() -> Controller {
    let failures = Mutex::new(Failures::default());
    Controller::new("daemon-set-controller")
        .reports_as("daemonset-controller")
        .primary::<DaemonSet>()
        .watches::<Pod>(|pod, caches| {
            owners_of(pod, &caches.of::<DaemonSet>(), |set, labels| set.spec.selector.matches(labels))
        })
        .watches::<ControllerRevision>(|revision, caches| {
            owners_of(revision, &caches.of::<DaemonSet>(), |set, labels| set.spec.selector.matches(labels))
        })
        .watches_changes::<Node>(concerned)
        .plans(move |caches, request| {
            let observed = observe(caches, request);
            observed.map(|observed| plan(&observed, request, &mut failures.lock())).unwrap_or_default()
        })
}

/// The sets for which a change of a node makes a difference.
fn concerned(change: &Change<Node>, caches: &Caches) -> Vec<Key> {
    if let (Some(old), Some(new)) = (&change.old, &change.new)
        && old.metadata.labels == new.metadata.labels
        && old.spec.taints == new.spec.taints
    {
        return Vec::new();
    }
    let differs = |set: &Arc<Object<DaemonSet>>| {
        let daemon = Daemon::of(set);
        let fit = |node: &Option<Arc<Object<Node>>>| node.as_ref().map(|node| daemon.fit(node));
        fit(&change.old) != fit(&change.new)
    };
    caches.of::<DaemonSet>().all().iter().filter(|set| differs(set)).map(|set| set.key()).collect()
}

struct Observed {
    set: Arc<Object<DaemonSet>>,
    /// Pods that are its own, or might be.
    candidates: Vec<Arc<Object<Pod>>>,
    revisions: Vec<Revision>,
    /// Whatever has the name that a revision of the current template would get.
    namesake: Option<Revision>,
    nodes: Vec<Arc<Object<Node>>>,
}

fn observe(caches: &Caches, request: &Request) -> Option<Observed> {
    let set = caches.of::<DaemonSet>().get(&request.key)?;
    let (meta, revisions) = (&set.metadata, caches.of::<ControllerRevision>());
    let (name, _) = history::name(&meta.name, &set.spec.template, set.status.collision_count);
    Some(Observed {
        candidates: candidates(&caches.of::<Pod>(), &meta.namespace, &meta.uid),
        namesake: revisions.named(&meta.namespace, &name),
        revisions: candidates(&revisions, &meta.namespace, &meta.uid),
        nodes: caches.of::<Node>().all(),
        set,
    })
}

/// The pods on, or meant for, a node, and whether it should have one.
struct Place<'a> {
    name: &'a str,
    fit: Fit,
    /// Those that are in place first, then the oldest first.
    pods: Vec<&'a Arc<Object<Pod>>>,
}

fn plan(observed: &Observed, request: &Request, failures: &mut Failures) -> Plan {
    let set = &observed.set;
    let mut plan = Plan::default();
    if set.metadata.is_being_deleted() {
        return plan;
    }
    if set.spec.selector.is_everything() {
        let message = "This daemon set is selecting all pods. A non-empty selector is required.";
        plan.event(Note::warning(set, "SelectingAll", message));
        return plan;
    }
    let revisions = history::revisions(&mut plan, set, &observed.revisions, &set.spec.selector);
    let claimed = claim(&mut plan, set, &observed.candidates, |pod| set.spec.selector.matches(&pod.metadata.labels));
    if !plan.writes.is_empty() {
        return plan;
    }
    let wanted = Wanted {
        template: &set.spec.template,
        collisions: set.status.collision_count,
        namesake: observed.namesake.as_ref(),
        hash_label: history::POD_LABEL,
    };
    let current = match history::current(&mut plan, set, &revisions, &wanted) {
        Current::Known(revision) => revision,
        Current::Pending => return plan,
        Current::Collides => {
            history::report_collision(&mut plan, set, set.status.collision_count);
            return plan;
        }
    };
    let hash = current.metadata.label(history::POD_LABEL);
    // A pod that has ended and is going is nobody's concern any more.
    let pods: Vec<_> =
        claimed.into_iter().filter(|pod| !(pod.is_finished() && pod.metadata.is_being_deleted())).collect();
    let daemon = Daemon::of(set);
    let places = places(&daemon, &observed.nodes, &pods);
    let view = View { set, hash, now: request.now, places: &places };
    let mut steps = view.keep(&mut plan, failures);
    steps.delete.extend(stranded(&pods, &observed.nodes));
    if steps.is_empty() && set.spec.update_strategy.kind == "RollingUpdate" {
        steps = update::steps(&view);
    }
    for node in steps.create.iter().take(BURST) {
        create_pod(&mut plan, set, daemon.pod(set, node, hash));
    }
    for pod in steps.delete.iter().take(BURST) {
        delete_pod(&mut plan, set, pod);
    }
    plan.status(set, view.status());
    let mut live: BTreeSet<&str> = pods.iter().map(|pod| pod.metadata.label(history::POD_LABEL)).collect();
    live.insert(hash);
    let in_use = |revision: &&Revision| live.contains(revision.metadata.label(history::POD_LABEL));
    let live = revisions.iter().filter(in_use).map(|revision| revision.metadata.name.as_str()).collect();
    history::truncate(&mut plan, &revisions, &live, set.spec.revision_history_limit);
    if let Some(delay) = until_next_available(&pods, set.spec.min_ready_seconds, request.now) {
        plan.requeue_after(delay);
    }
    plan
}

fn places<'a>(daemon: &Daemon, nodes: &'a [Arc<Object<Node>>], pods: &'a [Arc<Object<Pod>>]) -> Vec<Place<'a>> {
    let mut by_node: BTreeMap<String, Vec<_>> = BTreeMap::new();
    for pod in pods {
        by_node.entry(nodes::target(pod)).or_default().push(pod);
    }
    let place = |node: &'a Arc<Object<Node>>| {
        let name = node.metadata.name.as_str();
        let mut pods: Vec<_> = by_node.remove(name).unwrap_or_default();
        pods.sort_by_key(|pod| {
            let meta = &pod.metadata;
            (pod.spec.node_name.is_empty(), meta.creation_timestamp, meta.name.clone())
        });
        Place { name, fit: daemon.fit(node), pods }
    };
    nodes.iter().map(place).collect()
}

/// Pods that were meant for a node that is gone, and can therefore never be placed.
fn stranded<'a>(pods: &'a [Arc<Object<Pod>>], nodes: &[Arc<Object<Node>>]) -> Vec<&'a Arc<Object<Pod>>> {
    let known: BTreeSet<_> = nodes.iter().map(|node| node.metadata.name.as_str()).collect();
    let is_stranded = |pod: &&Arc<Object<Pod>>| {
        pod.spec.node_name.is_empty()
            && !pod.metadata.is_being_deleted()
            && !known.contains(nodes::target(pod).as_str())
    };
    pods.iter().filter(is_stranded).collect()
}

/// What is decided on.
struct View<'a> {
    set: &'a Object<DaemonSet>,
    /// That of the current template.
    hash: &'a str,
    now: Time,
    places: &'a [Place<'a>],
}

#[derive(Default)]
struct Steps<'a> {
    /// Nodes on which to create a pod.
    create: Vec<&'a str>,
    delete: Vec<&'a Arc<Object<Pod>>>,
}

impl Steps<'_> {
    fn is_empty(&self) -> bool {
        self.create.is_empty() && self.delete.is_empty()
    }
}

impl<'a> View<'a> {
    fn is_new(&self, pod: &Pod) -> bool {
        pod.metadata.label(history::POD_LABEL) == self.hash
    }

    fn is_available(&self, pod: &Pod) -> bool {
        pod.is_available(self.set.spec.min_ready_seconds, self.now)
    }

    /// How many pods more than wanted there may be, of `wanted`.
    fn surge(&self, wanted: i32) -> i32 {
        match self.set.spec.update_strategy.kind.as_str() {
            "RollingUpdate" => scaled(&self.set.spec.update_strategy.rolling_update.max_surge, wanted, true),
            _ => 0,
        }
    }

    /// One pod where there should be one and none elsewhere; what has ended is deleted, to be replaced.
    fn keep(&self, plan: &mut Plan, failures: &mut Failures) -> Steps<'a> {
        let mut steps = Steps::default();
        for place in self.places {
            match place.fit {
                Fit::Runs if place.pods.is_empty() => steps.create.push(place.name),
                Fit::Runs | Fit::Stays => self.keep_one(plan, failures, place, &mut steps),
                Fit::No => steps.delete.extend(place.pods.iter().filter(|pod| !pod.metadata.is_being_deleted())),
            }
        }
        steps
    }

    fn keep_one(&self, plan: &mut Plan, failures: &mut Failures, place: &Place<'a>, steps: &mut Steps<'a>) {
        let mut running = Vec::new();
        for pod in place.pods.iter().filter(|pod| !pod.metadata.is_being_deleted()) {
            match pod.status.phase.as_str() {
                "Failed" => self.replace_failed(plan, failures, place.name, pod, steps),
                "Succeeded" => {
                    plan.event(self.ended(place.name, pod, "succeeded", "delete", "SucceededDaemonPod"));
                    steps.delete.push(pod);
                }
                _ => running.push(*pod),
            }
        }
        if self.surge(1) == 0 {
            steps.delete.extend(running.into_iter().skip(1));
            return;
        }
        if running.is_empty() && place.fit == Fit::Runs {
            steps.create.push(place.name);
        }
        // Two may be there while the new one is not available and the old one still works.
        let (new, old): (Vec<_>, Vec<_>) = running.into_iter().partition(|pod| self.is_new(pod));
        if let (Some(new), Some(old)) = (new.first(), old.first())
            && (!old.is_ready() || self.is_available(new))
        {
            steps.delete.push(old);
        }
        steps.delete.extend(new.into_iter().skip(1).chain(old.into_iter().skip(1)));
    }

    /// A node that keeps refusing pods gets the next one after longer and longer.
    fn replace_failed(
        &self,
        plan: &mut Plan,
        failures: &mut Failures,
        node: &str,
        pod: &'a Arc<Object<Pod>>,
        steps: &mut Steps<'a>,
    ) {
        match failures.wait(&self.set.metadata.uid, node, self.now) {
            Some(delay) => {
                plan.requeue_after(delay);
            }
            None => {
                let mut note = self.ended(node, pod, "failed", "kill", "FailedDaemonPod");
                note.warning = true;
                plan.event(note);
                steps.delete.push(pod);
            }
        }
    }

    fn ended(&self, node: &str, pod: &Pod, how: &str, what: &str, reason: &str) -> Note {
        let key = format!("{}/{}", pod.metadata.namespace, pod.metadata.name);
        Note::normal(self.set, reason, format!("Found {how} daemon pod {key} on node {node}, will try to {what} it"))
    }

    fn status(&self) -> Value {
        let wanted: Vec<_> = self.places.iter().filter(|place| place.fit == Fit::Runs).collect();
        let there: Vec<_> = wanted.iter().filter_map(|place| place.pods.first()).collect();
        let misplaced = self.places.iter().filter(|place| place.fit != Fit::Runs && !place.pods.is_empty()).count();
        let count = |test: &dyn Fn(&Pod) -> bool| there.iter().filter(|pod| test(pod)).count();
        let available = count(&|pod| self.is_available(pod));
        let some = |number: usize| (number > 0).then_some(number);
        let before = self.set.json();
        json!({
            "currentNumberScheduled": there.len(),
            "numberMisscheduled": misplaced,
            "desiredNumberScheduled": wanted.len(),
            "numberReady": count(&Pod::is_ready),
            "observedGeneration": Some(self.set.metadata.generation).filter(|generation| *generation > 0),
            "updatedNumberScheduled": some(count(&|pod| self.is_new(pod))),
            "numberAvailable": some(available),
            "numberUnavailable": some(wanted.len() - available),
            "collisionCount": self.set.status.collision_count,
            "conditions": object::View::path(&before, &["status", "conditions"]),
        })
    }
}
