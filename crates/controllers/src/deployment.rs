//! Deployment: replaces pods by those of a new template, a few at a time or all at once.
//!
//! Every template it has had is a ReplicaSet; it keeps the sizes and annotations of these sets, and their number, and
//! leaves pods to them. What is to become of each set is worked out on a model ([`rollout`]), and written as one
//! update per set. Sizes are [`size`]'s business, revisions [`revision`]'s, what is reported [`status`]'s.

mod revision;
mod rollout;
mod size;
mod status;
#[cfg(test)]
mod tests;

use crate::workload::{candidates, claim, owners_of};
use kinds::{Deployment, Key, Object, Pod, ReplicaSet};
use object::{Edit, View, json};
use rollout::{Rollout, Set};
use runtime::{Caches, Change, Controller, Note, Plan, Request, controller_key};
use std::sync::Arc;

pub(crate) fn controller() -> Controller {
    Controller::new("deployment-controller")
        .primary::<Deployment>()
        .watches::<ReplicaSet>(|set, caches| {
            owners_of(set, &caches.of::<Deployment>(), |deployment, labels| deployment.spec.selector.matches(labels))
        })
        .watches_changes::<Pod>(waits_for)
        .plans(|caches, request| observe(caches, request).map(|observed| plan(&observed, request)).unwrap_or_default())
}

/// A deployment that recreates its pods waits for the end of the old ones, which its sets do not tell.
fn waits_for(change: &Change<Pod>, caches: &Caches) -> Vec<Key> {
    let Some(old) = change.old.as_ref().filter(|old| !old.is_finished()) else { return Vec::new() };
    if change.new.as_ref().is_some_and(|new| !new.is_finished()) {
        return Vec::new();
    }
    let set = controller_key::<ReplicaSet>(&old.metadata).and_then(|key| caches.of::<ReplicaSet>().get(&key));
    let key = set.and_then(|set| controller_key::<Deployment>(&set.metadata));
    let recreates = |key: &Key| {
        let deployment = caches.of::<Deployment>().get(key);
        deployment.is_some_and(|deployment| deployment.spec.strategy.kind == "Recreate")
    };
    key.into_iter().filter(recreates).collect()
}

struct Observed {
    deployment: Arc<Object<Deployment>>,
    /// Sets that are its own, or might be.
    candidates: Vec<Arc<Object<ReplicaSet>>>,
    /// The pods of its sets, where it has to wait for their end.
    pods: Vec<Arc<Object<Pod>>>,
    /// Whatever has the name that a set for the current template would get.
    namesake: Option<Arc<Object<ReplicaSet>>>,
}

fn observe(caches: &Caches, request: &Request) -> Option<Observed> {
    let (sets, pods) = (caches.of::<ReplicaSet>(), caches.of::<Pod>());
    let deployment = caches.of::<Deployment>().get(&request.key)?;
    let meta = &deployment.metadata;
    let candidates = candidates(&sets, &meta.namespace, &meta.uid);
    let pods = match deployment.spec.strategy.kind.as_str() {
        "Recreate" => sets.owned_by(&meta.uid).iter().flat_map(|set| pods.owned_by(&set.metadata.uid)).collect(),
        _ => Vec::new(),
    };
    let namesake = sets.named(&meta.namespace, &revision::name(&deployment));
    Some(Observed { deployment, candidates, pods, namesake })
}

fn plan(observed: &Observed, request: &Request) -> Plan {
    let deployment = &observed.deployment;
    let mut plan = Plan::default();
    if deployment.spec.selector.is_everything() {
        refuse(&mut plan, deployment);
        return plan;
    }
    let sets = claim(&mut plan, deployment, &observed.candidates, |set| {
        deployment.spec.selector.matches(&set.metadata.labels)
    });
    if !plan.writes.is_empty() {
        // A set is looked at again once it is, or is no longer, its own: in the version it has then.
        return plan;
    }
    let mut rollout = Rollout::new(deployment, &sets);
    if deployment.metadata.is_being_deleted() {
        status::report(&mut plan, &rollout, false, request);
        return plan;
    }
    revision::keep(&mut rollout);
    let scaling = deployment.spec.paused || size::was_rescaled(&rollout);
    let creates = !scaling && roll(&mut rollout, &observed.pods);
    if scaling {
        size::scale_in_proportion(&mut rollout);
    }
    if creates && observed.namesake.is_some() {
        status::report_collision(&mut plan, deployment);
        return plan;
    }
    rollout.write(&mut plan);
    if deployment.spec.paused || !scaling && status::is_complete(&rollout) {
        clean_up(&mut plan, &rollout);
    }
    // That a set was created is reported when it is there, and that it could not be when that is known.
    if !creates || request.failure.is_some() {
        status::report(&mut plan, &rollout, !scaling, request);
    }
    plan
}

/// Goes a step towards the new template. Returns whether a set is to be created for it.
fn roll(rollout: &mut Rollout, pods: &[Arc<Object<Pod>>]) -> bool {
    let creates = rollout.new.is_none();
    if rollout.deployment.spec.strategy.kind != "Recreate" {
        if creates {
            revision::create(rollout);
        }
        if creates || !size::grow_new(rollout) {
            size::shrink_old(rollout);
        }
        return creates;
    }
    let old_is_gone = rollout.old.iter().all(|set| set.replicas == 0 && set.status.replicas == 0);
    rollout.old.iter_mut().for_each(|set| set.replicas = 0);
    let new_uid = rollout.new.as_ref().map(Set::uid).unwrap_or_default();
    let runs = |pod: &Arc<Object<Pod>>| !pod.is_finished() && !pod.metadata.is_controlled_by(&new_uid);
    if !old_is_gone || pods.iter().any(runs) {
        return false;
    }
    if creates {
        revision::create(rollout);
    }
    let wanted = rollout.deployment.spec.replicas;
    rollout.new.iter_mut().for_each(|set| set.replicas = wanted);
    creates
}

/// Only so many old sets are kept, the newest of those that are empty.
fn clean_up(plan: &mut Plan, rollout: &Rollout) {
    let limit = rollout.deployment.spec.revision_history_limit.filter(|limit| *limit != i32::MAX);
    let Some(limit) = limit.and_then(|limit| usize::try_from(limit).ok()) else { return };
    let mut old: Vec<_> = rollout.old.iter().filter(|set| !set.is_being_deleted()).collect();
    let excess = old.len().saturating_sub(limit);
    old.sort_by_key(|set| set.revision());
    for set in old.into_iter().take(excess).filter(|set| set.is_abandoned()) {
        if let Some(object) = &set.observed {
            plan.delete(object);
        }
    }
}

/// A selector of everything would take over the pods of everybody.
fn refuse(plan: &mut Plan, deployment: &Object<Deployment>) {
    if deployment.status.observed_generation >= deployment.metadata.generation {
        return;
    }
    let message = "This deployment is selecting all pods. A non-empty selector is required.";
    plan.event(Note::warning(deployment, "SelectingAll", message));
    let mut reported = json!({ "status": deployment.json().at("status") });
    reported.object_or_new("status").set("observedGeneration", deployment.metadata.generation);
    plan.status(deployment, reported.remove("status"));
}
