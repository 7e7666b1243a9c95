//! What a decision means for the API: a binding, claims to be bound before it, a report, pods that have to go.

use crate::devices::{Reservation, binding};
use crate::preemption::Room;
use crate::profile::chosen_by;
use crate::scheduler::Decision;
use crate::verdict::{Diagnosis, GroupVerdict};
use crate::volumes::{Preparation, SELECTED_NODE};
use kinds::{Key, Kind, Object, PersistentVolume, PersistentVolumeClaim, Pod, PodGroup, Time};
use object::{ApiError, Reason, Value, json};
use runtime::{Context, DeleteOptions, Note, PatchType, Target};
use std::sync::Arc;

/// What became of a decision.
#[derive(Debug)]
pub enum Outcome {
    Bound(Arc<Object<Pod>>),
    NotBound(Arc<Object<Pod>>),
    /// It is said why it waits.
    Told(Arc<Object<Pod>>),
    /// It is said what became of a group.
    ToldGroup,
}

/// How carrying out a decision goes together with carrying out others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pace {
    /// One write: many at a time.
    Quick,
    /// It waits for something: by itself.
    Slow,
    /// A report that nobody waits for: a few at a time, lest whoever makes more pods than fit waits for them.
    Idle,
}

pub(crate) fn pace(decision: &Decision) -> Pace {
    match decision {
        Decision::Bind { volumes, devices, .. } if volumes.is_empty() && devices.is_empty() => Pace::Quick,
        Decision::Wait { room, diagnosis, .. } if room.is_none() && diagnosis.release.is_none() => Pace::Idle,
        Decision::Bind { .. } | Decision::Wait { .. } => Pace::Slow,
        Decision::Group { .. } => Pace::Quick,
    }
}

pub(crate) async fn carry_out(decision: Decision, context: &Context, now: Time) -> Outcome {
    match decision {
        Decision::Bind { pod, node, volumes, devices, .. } => {
            match bring(&pod, &node, &volumes, &devices, context, now).await {
                Ok(()) => Outcome::Bound(pod),
                Err(error) => {
                    give_up(&pod, &node, &devices, &error, context, now).await;
                    Outcome::NotBound(pod)
                }
            }
        }
        Decision::Wait { pod, diagnosis, room } => {
            if let Err(error) = explain(&pod, &diagnosis, room.as_ref(), context, now).await {
                tracing::debug!(pod = %pod.key(), %error, "what it waits for was not carried out");
            }
            Outcome::Told(pod)
        }
        Decision::Group { group, verdict } => {
            if let Err(error) = report_group(&group, &verdict, context, now).await {
                tracing::debug!(group = %group.key(), %error, "what became of it was not told");
            }
            Outcome::ToldGroup
        }
    }
}

/// Gives a pod what it needs on its node, and binds it.
async fn bring(
    pod: &Object<Pod>,
    node: &str,
    volumes: &Preparation,
    devices: &Reservation,
    context: &Context,
    now: Time,
) -> Result<(), ApiError> {
    expect(pod, node, volumes, devices, context).await;
    bind_claims(volumes, node, context).await?;
    binding::reserve(devices, pod, node, context, now).await?;
    bind(pod, node, context).await
}

/// A pod does not get to its node: it gives back what it had there, and says so.
async fn give_up(pod: &Object<Pod>, node: &str, devices: &Reservation, error: &ApiError, context: &Context, now: Time) {
    tracing::debug!(pod = %pod.key(), node, %error, "not bound");
    binding::undo(devices, pod, context).await;
    (context.tell)(Note::warning(pod, "FailedScheduling", error.message()).by(chosen_by(pod)));
    if let Err(error) = report(pod, "SchedulerError", error.message(), Some(""), context, now).await {
        tracing::debug!(pod = %pod.key(), %error, "that it was not bound was not told");
    }
}

/// Says where a pod is to go before what takes long is done for it, for whoever adds and removes nodes.
async fn expect(pod: &Object<Pod>, node: &str, volumes: &Preparation, devices: &Reservation, context: &Context) {
    let is_soon = volumes.is_empty() && devices.is_empty();
    if is_soon || &*pod.status.nominated_node_name == node {
        return;
    }
    let patch = json!({ "metadata": { "uid": pod.metadata.uid }, "status": { "nominatedNodeName": node } });
    if let Err(error) = patch_status(pod, &patch, context).await {
        tracing::debug!(pod = %pod.key(), node, %error, "where it is to go was not told");
    }
}

/// Says why a pod waits, and sees to it that what is in its way leaves.
async fn explain(
    pod: &Object<Pod>,
    diagnosis: &Diagnosis,
    room: Option<&Room>,
    context: &Context,
    now: Time,
) -> Result<(), ApiError> {
    let message = diagnosis.message();
    (context.tell)(Note::warning(pod, "FailedScheduling", message.as_str()).by(chosen_by(pod)));
    let reason = if diagnosis.error.is_some() { "SchedulerError" } else { "Unschedulable" };
    let node = room.map(|room| room.node.as_str()).or_else(|| diagnosis.is_lost.then_some(""));
    let reported = report(pod, reason, &message, node, context, now).await;
    let cleared = match room {
        Some(room) => preempt(pod, room, context, now).await,
        None => Ok(()),
    };
    let released = match &diagnosis.release {
        Some(release) => binding::release(release, context).await,
        None => Ok(()),
    };
    reported.and(cleared).and(released)
}

/// Says in a group what became of it.
async fn report_group(
    group: &Object<PodGroup>,
    verdict: &GroupVerdict,
    context: &Context,
    now: Time,
) -> Result<(), ApiError> {
    let known = group.condition(GroupVerdict::CONDITION);
    let since = known.filter(|known| known.status == verdict.status()).and_then(|known| known.last_transition_time);
    let mut condition = json!({
        "type": GroupVerdict::CONDITION, "status": verdict.status(), "reason": verdict.reason(),
        "message": verdict.message(), "lastTransitionTime": since.unwrap_or(now).to_string(),
    });
    if group.metadata.generation > 0 {
        condition["observedGeneration"] = json!(group.metadata.generation);
    }
    let patch = json!({ "metadata": { "uid": group.metadata.uid }, "status": { "conditions": [condition] } });
    gone_is_done(context.client.patch(&Target::of(group), "status", PatchType::Strategic, &patch).await.map(|_| ()))
}

async fn bind(pod: &Object<Pod>, node: &str, context: &Context) -> Result<(), ApiError> {
    let meta = &pod.metadata;
    let binding = json!({
        "apiVersion": "v1", "kind": "Binding",
        "metadata": { "name": meta.name, "namespace": meta.namespace, "uid": meta.uid },
        "target": { "apiVersion": "v1", "kind": "Node", "name": node },
    });
    match context.client.post(&Target::of(pod), "binding", &binding).await {
        Ok(_) => {
            let message = format!("Successfully assigned {}/{} to {node}", meta.namespace, meta.name);
            (context.tell)(Note::normal(pod, "Scheduled", message).by(chosen_by(pod)));
            Ok(())
        }
        // It is gone, and needs no node.
        Err(error) if error.reason() == Reason::NotFound => Ok(()),
        Err(error) => Err(error),
    }
}

/// A condition of a pod, as a patch that leaves its other conditions alone.
fn with_condition(pod: &Object<Pod>, condition: &Value) -> Value {
    json!({ "metadata": { "uid": pod.metadata.uid }, "status": { "conditions": [condition] } })
}

async fn patch_status(pod: &Object<Pod>, patch: &Value, context: &Context) -> Result<(), ApiError> {
    context.client.patch(&Target::of(pod), "status", PatchType::Strategic, patch).await.map(|_| ())
}

/// Says in the pod why it waits and, where that is another than before, the node it is to go to; unless it says so
/// already.
async fn report(
    pod: &Object<Pod>,
    reason: &str,
    message: &str,
    node: Option<&str>,
    context: &Context,
    now: Time,
) -> Result<(), ApiError> {
    let is = pod.condition("PodScheduled");
    let same = is.is_some_and(|is| is.status == "False" && is.reason == reason && is.message == message);
    let node = node.filter(|node| *node != &*pod.status.nominated_node_name);
    if same && node.is_none() {
        return Ok(());
    }
    let since = is.filter(|is| is.status == "False").and_then(|is| is.last_transition_time).unwrap_or(now);
    let mut patch = with_condition(
        pod,
        &json!({
            "type": "PodScheduled", "status": "False", "reason": reason, "message": message,
            "lastTransitionTime": since.to_string(), "observedGeneration": pod.metadata.generation,
        }),
    );
    if let Some(node) = node {
        patch["status"]["nominatedNodeName"] = json!((!node.is_empty()).then_some(node));
    }
    patch_status(pod, &patch, context).await
}

/// Makes those go that are in the way.
async fn preempt(pod: &Object<Pod>, room: &Room, context: &Context, now: Time) -> Result<(), ApiError> {
    for other in &room.unseated {
        let patch = json!({ "metadata": { "uid": other.metadata.uid }, "status": { "nominatedNodeName": null } });
        gone_is_done(patch_status(other, &patch, context).await)?;
    }
    for victim in room.victims.iter().filter(|victim| !victim.metadata.is_being_deleted()) {
        let message = format!("{}: preempting to accommodate a higher priority pod", chosen_by(pod));
        let condition = json!({
            "type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler", "message": message,
            "lastTransitionTime": now.to_string(), "observedGeneration": victim.metadata.generation,
        });
        gone_is_done(patch_status(victim, &with_condition(victim, &condition), context).await)?;
        let target = Target { version: String::new(), ..Target::of(victim) };
        gone_is_done(context.client.delete(&target, &DeleteOptions::default()).await.map(|_| ()))?;
        let message = format!("Preempted by pod {} on node {}", pod.metadata.uid, room.node);
        (context.tell)(Note::normal(victim, "Preempted", message).by(chosen_by(pod)));
    }
    for victim in &room.victims {
        until_leaving(victim, context).await;
    }
    Ok(())
}

/// Waits until the cache has seen that a pod is gone or about to: before that, another would be made to go in its place.
async fn until_leaving(victim: &Object<Pod>, context: &Context) {
    let cache = context.caches.of::<Pod>();
    let mut progress = cache.progress();
    loop {
        drop(progress.borrow_and_update());
        let there = cache.get(&victim.key()).filter(|there| there.metadata.uid == victim.metadata.uid);
        if there.is_none_or(|there| there.metadata.is_being_deleted()) || progress.changed().await.is_err() {
            return;
        }
    }
}

/// What is gone need not go.
fn gone_is_done(result: Result<(), ApiError>) -> Result<(), ApiError> {
    match result {
        Err(error) if matches!(error.reason(), Reason::NotFound | Reason::Conflict) => Ok(()),
        other => other,
    }
}

/// Gives claims their volumes, or says which node they are to be made for, and waits until they are bound.
async fn bind_claims(volumes: &Preparation, node: &str, context: &Context) -> Result<(), ApiError> {
    if volumes.is_empty() {
        return Ok(());
    }
    for (volume, key) in &volumes.matched {
        let claim = claim(key, context)?;
        let reference = json!({
            "kind": "PersistentVolumeClaim", "apiVersion": "v1", "namespace": key.namespace, "name": key.name,
            "uid": claim.metadata.uid, "resourceVersion": claim.metadata.resource_version,
        });
        let cache = context.caches.of::<PersistentVolume>();
        let volume = cache.get(&Key::cluster(volume.as_str())).ok_or_else(|| missing::<PersistentVolume>(volume))?;
        let patch = json!({
            "metadata": {
                "resourceVersion": volume.metadata.resource_version,
                "annotations": { "pv.kubernetes.io/bound-by-controller": "yes" },
            },
            "spec": { "claimRef": reference },
        });
        context.client.patch(&Target::of(&volume), "", PatchType::Merge, &patch).await?;
    }
    for key in &volumes.provisioned {
        let claim = claim(key, context)?;
        if claim.metadata.annotation(SELECTED_NODE) == node {
            continue;
        }
        let annotations = json!({ SELECTED_NODE: node });
        let version = &claim.metadata.resource_version;
        let patch = json!({ "metadata": { "resourceVersion": version, "annotations": annotations } });
        context.client.patch(&Target::of(&claim), "", PatchType::Merge, &patch).await?;
    }
    let keys = volumes.matched.iter().map(|(_, key)| key).chain(&volumes.provisioned);
    let bound = async {
        for key in keys {
            until_bound(key, node, volumes.provisioned.contains(key), context).await?;
        }
        Ok(())
    };
    let late = || Err(ApiError::new(Reason::Timeout, "binding volumes: timed out waiting for the condition"));
    tokio::time::timeout(volumes.timeout, bound).await.unwrap_or_else(|_| late())
}

async fn until_bound(key: &Key, node: &str, is_provisioned: bool, context: &Context) -> Result<(), ApiError> {
    let mut progress = context.caches.of::<PersistentVolumeClaim>().progress();
    let mut was_selected = false;
    loop {
        drop(progress.borrow_and_update());
        let claim = claim(key, context)?;
        if !claim.spec.volume_name.is_empty() && claim.status.phase == "Bound" {
            return Ok(());
        }
        let is_selected = claim.metadata.annotation(SELECTED_NODE) == node;
        if is_provisioned && was_selected && !is_selected {
            let message = "binding volumes: provisioning failed for the selected node";
            return Err(ApiError::new(Reason::InternalError, message));
        }
        was_selected |= is_selected;
        if progress.changed().await.is_err() {
            return Err(ApiError::new(Reason::ServiceUnavailable, "the scheduler is being stopped"));
        }
    }
}

fn claim(key: &Key, context: &Context) -> Result<Arc<Object<PersistentVolumeClaim>>, ApiError> {
    let claim = context.caches.of::<PersistentVolumeClaim>().get(key);
    claim.ok_or_else(|| missing::<PersistentVolumeClaim>(&key.name))
}

fn missing<K: Kind>(name: &str) -> ApiError {
    ApiError::not_found(K::ID.group(), &K::ID.plural, name)
}
