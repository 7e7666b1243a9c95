//! What is done to which member, and when: members are brought up from the first to the last, taken away from the last
//! to the first, and replaced from the last to the first; one at a time if the set is ordered.

use super::claims::{self, Claims};
use super::members::{Member, Members};
use crate::history::POD_LABEL;
use crate::workload::scaled;
use kinds::{Object, Pod, StatefulSet};
use object::View;
use runtime::{Note, Plan};
use std::sync::Arc;

/// Plans what is next. Claims come before the pods that mount them.
pub(super) fn act(plan: &mut Plan, members: &Members, claims: &Claims) {
    let mut made = Plan::default();
    let mut done = Plan::default();
    let waits = bring_up(&mut made, &mut done, members, claims) || take_away(&mut done, members, claims);
    if !waits && members.set.spec.update_strategy.kind != "OnDelete" {
        replace(&mut done, members);
    }
    for part in [made, done] {
        plan.writes.extend(part.writes);
        plan.events.extend(part.events);
    }
}

/// Creates members that are missing and repairs those that are there. Returns whether there is one to be waited for
/// before anything else is done.
fn bring_up(made: &mut Plan, done: &mut Plan, members: &Members, claims: &Claims) -> bool {
    for member in &members.replicas {
        let waits = match member.pod {
            None => create(made, done, members, claims, member.ordinal),
            Some(pod) => tend(made, done, members, claims, member.ordinal, pod),
        };
        if waits && members.is_ordered() {
            return true;
        }
    }
    false
}

fn create(made: &mut Plan, done: &mut Plan, members: &Members, claims: &Claims, ordinal: i32) -> bool {
    let set = members.set;
    if claims::are_usable(set, claims, ordinal) {
        claims::create_missing(made, set, claims, ordinal);
        let pod = members.pod(ordinal);
        let name = pod.at("metadata").text("name").to_owned();
        tell(done.create::<Pod>(pod), set, "Create", &name);
    }
    true
}

fn tend(
    made: &mut Plan,
    done: &mut Plan,
    members: &Members,
    claims: &Claims,
    ordinal: i32,
    pod: &Arc<Object<Pod>>,
) -> bool {
    let set = members.set;
    if pod.is_finished() {
        // Whatever ended it, it should be running; its successor is created when it is gone.
        delete(done, set, pod);
        return true;
    }
    if pod.status.phase == "Pending" && claims::are_usable(set, claims, ordinal) {
        claims::create_missing(made, set, claims, ordinal);
    }
    if members.is_ordered() && members.holds_up(pod) {
        return true;
    }
    claims::keep_owners(made, set, claims, ordinal, pod);
    if let Some(patch) = members.identity(pod, ordinal) {
        tell(done.patch(pod, patch), set, "Update", &pod.metadata.name);
    }
    false
}

/// Deletes members that there should not be. Returns whether there is one to be waited for.
fn take_away(done: &mut Plan, members: &Members, claims: &Claims) -> bool {
    let first = members.first_unavailable();
    for (ordinal, pod) in &members.condemned {
        claims::keep_owners(done, members.set, claims, *ordinal, pod);
    }
    for (_, pod) in &members.condemned {
        let may_be_broken = first == Some(pod.metadata.uid.as_str()) && !pod.metadata.is_being_deleted();
        if members.is_ordered() && members.holds_up(pod) && !may_be_broken {
            return true;
        }
        delete(done, members.set, pod);
        if members.is_ordered() {
            return true;
        }
    }
    false
}

/// Deletes members that are not of the new revision, as many as may be missing.
fn replace(done: &mut Plan, members: &Members) {
    let set = members.set;
    let update = &set.spec.update_strategy.rolling_update;
    let allowed = match &update.max_unavailable {
        object::Value::Null => 1,
        allowed => scaled(allowed, set.spec.replicas, false).max(1),
    };
    let is_missing = |member: &&Member| member.pod.is_none_or(|pod| members.is_unavailable(pod));
    let missing = members.replicas.iter().filter(is_missing).count();
    let mut budget = usize::try_from(allowed).unwrap_or(0).saturating_sub(missing);
    let from = usize::try_from(update.partition).unwrap_or(0);
    let targets = members.replicas.iter().skip(from).rev().filter_map(|member| member.pod);
    for pod in targets {
        let is_old = pod.metadata.label(POD_LABEL) != members.update;
        if !is_old || pod.metadata.is_being_deleted() {
            continue;
        }
        // What does not work is missing already.
        let costs = usize::from(members.is_ordered() || !members.is_unavailable(pod));
        if budget >= costs {
            budget -= costs;
            delete(done, set, pod);
        }
    }
}

fn delete(plan: &mut Plan, set: &Object<StatefulSet>, pod: &Object<Pod>) {
    if !pod.metadata.is_being_deleted() {
        tell(plan.delete(pod), set, "Delete", &pod.metadata.name);
    }
}

fn tell(plan: &mut Plan, set: &Object<StatefulSet>, verb: &str, pod: &str) {
    let message = format!("{verb} Pod {pod} in StatefulSet {} successful", set.metadata.name);
    let failure = format!("{verb} Pod {pod} in StatefulSet {} failed error: {{error}}", set.metadata.name);
    plan.on_success(Note::normal(set, &format!("Successful{verb}"), message)).on_failure(Note::warning(
        set,
        &format!("Failed{verb}"),
        failure,
    ));
}
