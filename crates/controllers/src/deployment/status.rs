//! What a deployment reports: numbers, and whether it is available, gets on, or fails.

use super::revision::{REVISION, REVISION_HISTORY};
use super::rollout::{Rollout, Set};
use super::size::Limits;
use kinds::{Condition, Deployment, DeploymentStatus, Object, Time};
use object::{Edit, Value, View, json};
use runtime::{Plan, Request};
use std::time::Duration;

const AVAILABLE: &str = "Available";
const PROGRESSING: &str = "Progressing";
const REPLICA_FAILURE: &str = "ReplicaFailure";
const SUCCEEDED: &str = "NewReplicaSetAvailable";
const TIMED_OUT: &str = "ProgressDeadlineExceeded";
const PAUSED: &str = "DeploymentPaused";

/// Conditions, which change only if their status or reason does.
struct Conditions {
    list: Vec<Condition>,
    now: Time,
}

impl Conditions {
    fn get(&self, kind: &str) -> Option<&Condition> {
        kinds::condition(&self.list, kind)
    }

    fn remove(&mut self, kind: &str) {
        self.list.retain(|condition| condition.kind != kind);
    }

    fn set(&mut self, kind: &str, status: &str, reason: &str, message: impl Into<String>) {
        if !self.get(kind).is_some_and(|old| old.status == status && old.reason == reason) {
            self.renew(kind, status, reason, message);
        }
    }

    /// Sets a condition even if it is the same as before, and so notes that something has happened.
    fn renew(&mut self, kind: &str, status: &str, reason: &str, message: impl Into<String>) {
        let same = self.get(kind).filter(|old| old.status == status);
        let since = same.and_then(|old| old.last_transition_time).unwrap_or(self.now);
        self.remove(kind);
        self.list.push(Condition {
            kind: kind.to_owned(),
            status: status.to_owned(),
            reason: reason.to_owned(),
            message: message.into(),
            last_transition_time: Some(since),
            last_update_time: Some(self.now),
            ..Condition::default()
        });
    }

    fn json(&self) -> Vec<Value> {
        let json = |condition: &Condition| {
            let mut json = json!({
                "type": condition.kind,
                "status": condition.status,
                "reason": condition.reason,
                "message": condition.message,
            });
            let times = [
                ("lastUpdateTime", condition.last_update_time),
                ("lastTransitionTime", condition.last_transition_time),
            ];
            times.into_iter().for_each(|(field, time)| time.into_iter().for_each(|time| json.set(field, time)));
            json
        };
        self.list.iter().map(json).collect()
    }
}

/// Reports how things are; `rolling` says whether progress is expected.
pub(super) fn report(plan: &mut Plan, rollout: &Rollout, rolling: bool, request: &Request) {
    let deployment = rollout.deployment;
    let numbers = numbers(rollout);
    let mut conditions = Conditions { list: deployment.status.conditions.clone(), now: request.now };
    if !deployment.metadata.is_being_deleted() {
        note_pause(deployment, &mut conditions);
        note_new_set(rollout, &mut conditions, request);
    }
    note_availability(rollout, &numbers, &mut conditions);
    if rolling {
        note_progress(rollout, &numbers, &mut conditions);
        note_failure(rollout, &mut conditions);
    }
    let mut object = deployment.json();
    let existing = rollout.new.as_ref().filter(|set| set.observed.is_some());
    if let Some(revision) = existing.and_then(|set| set.annotations.get(REVISION)) {
        object.object_or_new("metadata").object_or_new("annotations").set(REVISION, revision.as_str());
    }
    plan.status_with(deployment, object, json(&numbers, &conditions));
    if rolling && let Some(delay) = until_deadline(deployment, &numbers, &conditions) {
        plan.requeue_after(delay);
    }
}

/// Another set has the name that the new one would get: the next name is another one.
pub(super) fn report_collision(plan: &mut Plan, deployment: &Object<Deployment>) {
    let count = deployment.status.collision_count.unwrap_or(0) + 1;
    let mut status = deployment.json().at("status").clone();
    if !status.is_object() {
        status = json!({});
    }
    status.set("collisionCount", count);
    plan.status(deployment, status);
}

fn numbers(rollout: &Rollout) -> DeploymentStatus {
    let deployment = rollout.deployment;
    let sum = |number: fn(&Set) -> i32| rollout.sets().map(number).sum::<i32>();
    let available = rollout.available();
    let terminating = rollout.sets().map(|set| match set.status.terminating_replicas {
        None if set.status.observed_generation == 0 => Some(0),
        reported => reported,
    });
    DeploymentStatus {
        observed_generation: deployment.metadata.generation,
        replicas: sum(|set| set.status.replicas),
        updated_replicas: rollout.new.as_ref().map_or(0, |set| set.status.replicas),
        ready_replicas: sum(|set| set.status.ready_replicas),
        available_replicas: available,
        unavailable_replicas: (rollout.total() - available).max(0),
        terminating_replicas: terminating.sum(),
        conditions: Vec::new(),
        collision_count: deployment.status.collision_count,
    }
}

fn json(numbers: &DeploymentStatus, conditions: &Conditions) -> Value {
    let some = |number: i32| (number != 0).then_some(number);
    let conditions = conditions.json();
    json!({
        "observedGeneration": Some(numbers.observed_generation).filter(|generation| *generation != 0),
        "replicas": some(numbers.replicas),
        "updatedReplicas": some(numbers.updated_replicas),
        "readyReplicas": some(numbers.ready_replicas),
        "availableReplicas": some(numbers.available_replicas),
        "unavailableReplicas": some(numbers.unavailable_replicas),
        "terminatingReplicas": numbers.terminating_replicas,
        "collisionCount": numbers.collision_count,
        "conditions": Some(conditions).filter(|conditions| !conditions.is_empty()),
    })
}

fn deadline(deployment: &Deployment) -> Option<i64> {
    deployment.spec.progress_deadline_seconds.filter(|seconds| *seconds != i32::MAX).map(i64::from)
}

/// A pause is noted, and its end, so that the deadline counts from there.
fn note_pause(deployment: &Deployment, conditions: &mut Conditions) {
    let reason = conditions.get(PROGRESSING).map_or("", |condition| condition.reason.as_str());
    if deadline(deployment).is_none() || reason == TIMED_OUT {
        return;
    }
    match (deployment.spec.paused, reason == PAUSED) {
        (true, false) => conditions.set(PROGRESSING, "Unknown", PAUSED, "Deployment is paused"),
        (false, true) => conditions.set(PROGRESSING, "Unknown", "DeploymentResumed", "Deployment is resumed"),
        _ => {}
    }
}

/// A new set is noted, from which the deadline counts too; or that the server refused it.
fn note_new_set(rollout: &Rollout, conditions: &mut Conditions, request: &Request) {
    let (deployment, Some(set)) = (rollout.deployment, &rollout.new) else { return };
    if deadline(deployment).is_none() {
        return;
    }
    let name = &set.name;
    let Some(observed) = &set.observed else {
        let error = request.failure.as_deref().unwrap_or_default();
        let message = format!("Failed to create new replica set \"{name}\": {error}");
        return conditions.set(PROGRESSING, "False", "ReplicaSetCreateError", message);
    };
    // Its number is copied to the deployment along with this report: a difference means that it is seen first now.
    let is_first_sight = set.annotations.get(REVISION) != deployment.metadata.annotations.get(REVISION);
    let is_own = observed.metadata.creation_timestamp >= deployment.metadata.creation_timestamp;
    let is_young = !set.annotations.contains_key(REVISION_HISTORY) && is_own;
    if is_first_sight && is_young && !deployment.spec.paused {
        let message = format!("Created new replica set \"{name}\"");
        conditions.set(PROGRESSING, "True", "NewReplicaSetCreated", message);
    } else if conditions.get(PROGRESSING).is_none() {
        let message = format!("Found new replica set \"{name}\"");
        conditions.set(PROGRESSING, "True", "FoundNewReplicaSet", message);
    }
}

fn note_availability(rollout: &Rollout, numbers: &DeploymentStatus, conditions: &mut Conditions) {
    if numbers.available_replicas >= Limits::of(rollout.deployment).least {
        let message = "Deployment has minimum availability.";
        conditions.set(AVAILABLE, "True", "MinimumReplicasAvailable", message);
    } else {
        let message = "Deployment does not have minimum availability.";
        conditions.set(AVAILABLE, "False", "MinimumReplicasUnavailable", message);
    }
}

fn note_progress(rollout: &Rollout, numbers: &DeploymentStatus, conditions: &mut Conditions) {
    let deployment = rollout.deployment;
    let Some(deadline) = deadline(deployment) else { return conditions.remove(PROGRESSING) };
    let current = conditions.get(PROGRESSING);
    let reason = current.map_or("", |condition| condition.reason.as_str());
    if numbers.replicas == numbers.updated_replicas && reason == SUCCEEDED {
        return;
    }
    let what = match &rollout.new {
        Some(set) => format!("ReplicaSet \"{}\"", set.name),
        None => format!("Deployment \"{}\"", deployment.metadata.name),
    };
    let since = current.and_then(|condition| condition.last_update_time);
    let too_late = since.is_some_and(|since| since + seconds(deadline) < conditions.now);
    if complete(deployment, numbers) {
        conditions.set(PROGRESSING, "True", SUCCEEDED, format!("{what} has successfully progressed."));
    } else if has_progressed(&deployment.status, numbers) {
        conditions.renew(PROGRESSING, "True", "ReplicaSetUpdated", format!("{what} is progressing."));
    } else if reason == TIMED_OUT || too_late && reason != SUCCEEDED {
        conditions.set(PROGRESSING, "False", TIMED_OUT, format!("{what} has timed out progressing."));
    }
}

fn seconds(seconds: i64) -> Duration {
    Duration::from_secs(u64::try_from(seconds).unwrap_or(0))
}

/// Whether everything is as the deployment wants it.
pub(super) fn is_complete(rollout: &Rollout) -> bool {
    complete(rollout.deployment, &numbers(rollout))
}

fn complete(deployment: &Deployment, numbers: &DeploymentStatus) -> bool {
    let wanted = deployment.spec.replicas;
    [numbers.updated_replicas, numbers.replicas, numbers.available_replicas].iter().all(|number| *number == wanted)
}

/// Whether there are more new pods, fewer old ones, or more that work.
fn has_progressed(before: &DeploymentStatus, now: &DeploymentStatus) -> bool {
    let old = |status: &DeploymentStatus| status.replicas - status.updated_replicas;
    now.updated_replicas > before.updated_replicas
        || old(now) < old(before)
        || now.ready_replicas > before.ready_replicas
        || now.available_replicas > before.available_replicas
}

/// What keeps a set from its size keeps the deployment from its own; that of the new set is told first.
fn note_failure(rollout: &Rollout, conditions: &mut Conditions) {
    let mut sets = rollout.new.iter().chain(&rollout.old);
    let Some(failure) = sets.find_map(|set| kinds::condition(&set.status.conditions, REPLICA_FAILURE)) else {
        return conditions.remove(REPLICA_FAILURE);
    };
    let same = |old: &&Condition| old.status == failure.status && old.reason == failure.reason;
    if conditions.get(REPLICA_FAILURE).filter(same).is_none() {
        conditions.remove(REPLICA_FAILURE);
        conditions.list.push(Condition { last_update_time: failure.last_transition_time, ..failure.clone() });
    }
}

/// How long until the deadline has passed, a second added because it is kept in whole seconds.
fn until_deadline(deployment: &Deployment, numbers: &DeploymentStatus, conditions: &Conditions) -> Option<Duration> {
    let deadline = deadline(deployment)?;
    let condition = conditions.get(PROGRESSING)?;
    if complete(deployment, numbers) || [SUCCEEDED, TIMED_OUT].contains(&condition.reason.as_str()) {
        return None;
    }
    Some((condition.last_update_time? + seconds(deadline + 1)).since(conditions.now))
}
