//! What is done to which member, and when: members are brought up from the first to the last, taken away from the last
//! to the first, and replaced from the last to the first; one at a time if the set is ordered.

use super::claims::{self, Claims};
use super::members::Members;
use crate::history::POD_LABEL;
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
    if claims::are_stale(set, claims, ordinal) {
        return true;
    }
    claims::create_missing(made, set, claims, ordinal);
    let pod = members.pod(ordinal);
    let name = pod.at("metadata").text("name").to_owned();
    match claims::obstacle(set, claims, ordinal) {
        Some(why) => {
            let message = format!("Create Pod {name} in StatefulSet {} failed error: {why}", set.metadata.name);
            done.event(Note::warning(set, "FailedCreate", message));
        }
        None => {
            tell(done.create::<Pod>(pod), set, "Create", &name);
            claims::tell_conflicts(done, set, claims, ordinal, "");
        }
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
    if pod.status.phase == "Pending" {
        claims::create_missing(made, set, claims, ordinal);
        claims::tell_conflicts(done, set, claims, ordinal, &pod.metadata.uid);
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

/// Deletes the last member that is not of the new revision, unless one after it is not of use yet. What is broken before
/// it does not keep it from going: in a set without an order nobody else would see to that.
fn replace(done: &mut Plan, members: &Members) {
    let partition = usize::try_from(members.set.spec.update_strategy.rolling_update.partition).unwrap_or(0);
    for member in members.replicas.iter().skip(partition).rev() {
        // One that is about to be created is of the new revision.
        let Some(pod) = member.pod else { return };
        if pod.metadata.label(POD_LABEL) != members.update && !pod.metadata.is_being_deleted() {
            return delete(done, members.set, pod);
        }
        if members.is_unavailable(pod) {
            return;
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
