//! StatefulSet: keeps pods with names of their own, in order, each with its own claims.
//!
//! It creates pods and the claims they mount, and deletes pods to replace them; templates of the past are revisions
//! ([`crate::history`]). Volumes, and deleting claims that are owned by what is gone, are left to others. Who a pod is
//! stands in [`members`], what is done to which pod and when in [`order`], claims are [`claims`]' business.

mod claims;
mod members;
mod order;
#[cfg(test)]
mod tests;

use crate::history::{self, Current, Revision, Wanted};
use crate::replica_set::until_next_available;
use crate::workload::{candidates, claim, owners_of};
use kinds::{ControllerRevision, Key, Object, PersistentVolumeClaim, Pod, StatefulSet, Time};
use members::Members;
use object::{Value, View, json};
use runtime::{Caches, Change, Controller, Plan, Request};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// The label of a revision with its hash.
const HASH_LABEL: &str = "controller.kubernetes.io/hash";

pub(crate) fn controller() -> Controller {
    Controller::new("statefulset-controller")
        .primary::<StatefulSet>()
        .watches::<Pod>(|pod, caches| {
            owners_of(pod, &caches.of::<StatefulSet>(), |set, labels| set.spec.selector.matches(labels))
        })
        .watches::<ControllerRevision>(|revision, caches| {
            owners_of(revision, &caches.of::<StatefulSet>(), |set, labels| set.spec.selector.matches(labels))
        })
        .watches_changes::<PersistentVolumeClaim>(waits_for)
        .plans(|caches, request| observe(caches, request).map(|observed| plan(&observed, request)).unwrap_or_default())
}

/// A claim that is gone may be what a pod waits for, to be created anew.
fn waits_for(change: &Change<PersistentVolumeClaim>, caches: &Caches) -> Vec<Key> {
    let (Some(old), None) = (&change.old, &change.new) else { return Vec::new() };
    let sets = caches.of::<StatefulSet>().in_namespace(&old.metadata.namespace);
    sets.iter().filter(|set| claims::is_of(set, &old.metadata.name)).map(|set| set.key()).collect()
}

pub(crate) struct Observed {
    set: Arc<Object<StatefulSet>>,
    /// Pods that are its own, or might be.
    candidates: Vec<Arc<Object<Pod>>>,
    revisions: Vec<Revision>,
    /// Whatever has the name that a revision of the current template would get.
    namesake: Option<Revision>,
    /// The claims of its pods, by name.
    claims: BTreeMap<String, Arc<Object<PersistentVolumeClaim>>>,
}

fn observe(caches: &Caches, request: &Request) -> Option<Observed> {
    let set = caches.of::<StatefulSet>().get(&request.key)?;
    let (meta, revisions) = (&set.metadata, caches.of::<ControllerRevision>());
    let pods = candidates(&caches.of::<Pod>(), &meta.namespace, &meta.uid);
    let (name, _) = history::name(&meta.name, &set.spec.template, set.status.collision_count);
    let volumes = caches.of::<PersistentVolumeClaim>();
    let ordinals: BTreeSet<i32> =
        members::range(&set).chain(pods.iter().filter_map(|pod| members::ordinal(&set, pod))).collect();
    let names = ordinals.iter().flat_map(|ordinal| claims::names(&set, *ordinal));
    Some(Observed {
        candidates: pods,
        namesake: revisions.named(&meta.namespace, &name),
        revisions: candidates(&revisions, &meta.namespace, &meta.uid),
        claims: names.filter_map(|name| Some((name.clone(), volumes.named(&meta.namespace, &name)?))).collect(),
        set,
    })
}

fn plan(observed: &Observed, request: &Request) -> Plan {
    let set = &observed.set;
    let mut plan = Plan::default();
    let revisions = history::revisions(&mut plan, set, &observed.revisions, &set.spec.selector);
    let is_member = |pod: &Pod| set.spec.selector.matches(&pod.metadata.labels) && members::ordinal(set, pod).is_some();
    let pods = claim(&mut plan, set, &observed.candidates, is_member);
    if !plan.writes.is_empty() {
        return plan;
    }
    let wanted = Wanted {
        template: &set.spec.template,
        collisions: set.status.collision_count,
        namesake: observed.namesake.as_ref(),
        hash_label: HASH_LABEL,
    };
    let deleting = set.metadata.is_being_deleted();
    let update = match history::current(&mut plan, set, &revisions, &wanted) {
        Current::Known(revision) => revision,
        _ if deleting => return Plan::default(),
        Current::Pending => return plan,
        Current::Collides => {
            history::report_collision(&mut plan, set, set.status.collision_count);
            return plan;
        }
    };
    let current = revisions.iter().find(|revision| revision.metadata.name == set.status.current_revision);
    let current = current.unwrap_or(&update);
    if !deleting {
        let members = Members::new(set, &pods, current, &update, request.now);
        order::act(&mut plan, &members, &observed.claims);
    }
    plan.status(set, status(set, &pods, current, &update, request.now));
    if !deleting {
        let mut live: BTreeSet<&str> = pods.iter().map(|pod| pod.metadata.label(history::POD_LABEL)).collect();
        live.extend([current.metadata.name.as_str(), update.metadata.name.as_str()]);
        history::truncate(&mut plan, &revisions, &live, set.spec.revision_history_limit);
    }
    if let Some(delay) = until_next_available(&pods, set.spec.min_ready_seconds, request.now) {
        plan.requeue_after(delay);
    }
    plan
}

fn status(
    set: &Object<StatefulSet>,
    pods: &[Arc<Object<Pod>>],
    current: &Revision,
    update: &Revision,
    now: Time,
) -> Value {
    let count = |test: &dyn Fn(&Pod) -> bool| pods.iter().filter(|pod| test(pod)).count();
    let of = |revision: &Revision| {
        let name = revision.metadata.name.as_str();
        count(&|pod| !pod.metadata.is_being_deleted() && pod.metadata.label(history::POD_LABEL) == name)
    };
    let running_and_ready = |pod: &Pod| pod.status.phase == "Running" && pod.is_ready();
    let ready = count(&running_and_ready);
    let available = count(&|pod| running_and_ready(pod) && pod.is_available(set.spec.min_ready_seconds, now));
    let updated = of(update);
    let wanted = usize::try_from(set.spec.replicas).unwrap_or(0);
    // When every pod is of the new revision, that is the current one; unless it is up to others to replace them.
    let is_rolling = set.spec.update_strategy.kind != "OnDelete";
    let complete = is_rolling && [updated, ready, pods.len()].iter().all(|number| *number == wanted);
    let (current_replicas, current) = if complete { (updated, update) } else { (of(current), current) };
    let some = |number: usize| (number > 0).then_some(number);
    json!({
        "observedGeneration": Some(set.metadata.generation).filter(|generation| *generation > 0),
        "replicas": pods.len(),
        "readyReplicas": some(ready),
        "availableReplicas": available,
        "currentReplicas": some(current_replicas),
        "updatedReplicas": some(updated),
        "currentRevision": current.metadata.name,
        "updateRevision": update.metadata.name,
        "collisionCount": set.status.collision_count.unwrap_or(0),
        // Others' conditions are kept.
        "conditions": set.json().path(&["status", "conditions"]),
    })
}
