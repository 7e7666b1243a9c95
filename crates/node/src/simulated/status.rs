//! What a simulated pod reports of itself.

use super::pod::{Place, gates_are_open};
use super::resize;
use crate::admission::Refusal;
use kinds::{Condition, Container, ContainerState, ContainerStatus, Dict, Pod, Resources, Time};
use object::{Quantity, Value, View, json};
use std::time::Duration;

pub(super) const RESIZE_PENDING: &str = "PodResizePending";

/// Containers that have not started: why not.
pub(super) fn creating(pod: &Pod, reason: &str, place: Place<'_>, now: Time) -> Value {
    let waiting = json!({ "waiting": waiting(reason, &pod.spec.containers) });
    let start = pod.status.start_time.unwrap_or(now);
    let state = |_: &Container, _: Option<&ContainerStatus>| State {
        ready: false,
        restarts: 0,
        state: waiting.clone(),
        last: json!({}),
    };
    json!({
        "phase": "Pending", "startTime": start, "hostIP": place.host, "hostIPs": [{ "ip": place.host }],
        "conditions": conditions(pod, "False", "ContainersNotReady", now),
        "containerStatuses": containers(pod, state),
    })
}

fn waiting(reason: &str, containers: &[Container]) -> Value {
    match reason {
        "ImagePullBackOff" => {
            let image = containers.first().map_or("", |container| container.image.as_str());
            json!({ "reason": reason, "message": format!("Back-off pulling image \"{image}\"") })
        }
        _ => json!({ "reason": reason }),
    }
}

/// The node does not take it.
pub(super) fn rejected(pod: &Pod, refusal: &Refusal, now: Time) -> Value {
    let start = pod.status.start_time.unwrap_or(now);
    let message = format!("Pod was rejected: {}", refusal.message);
    json!({ "phase": "Failed", "reason": refusal.reason, "message": message, "startTime": start })
}

pub(super) fn running(pod: &Pod, place: Place<'_>, ready: bool, now: Time) -> Value {
    let address = if pod.spec.host_network { place.host } else { place.address };
    let start = pod.status.start_time.unwrap_or(now);
    let state = |_: &Container, _: Option<&ContainerStatus>| State {
        ready,
        restarts: 0,
        state: json!({ "running": { "startedAt": now } }),
        last: json!({}),
    };
    let mut status = json!({
        "phase": "Running", "startTime": start, "hostIP": place.host, "hostIPs": [{ "ip": place.host }],
        "podIP": address, "podIPs": [{ "ip": address }],
        "conditions": readiness_conditions(pod, ready, now),
        "containerStatuses": containers(pod, state),
    });
    if !pod.spec.init_containers.is_empty() {
        status["initContainerStatuses"] = init_containers(pod, now);
    }
    take_on_size(pod, &mut status);
    status
}

/// What the pod as a whole asks for, it has.
fn take_on_size(pod: &Pod, status: &mut Value) {
    if let Some(whole) = &pod.spec.resources {
        size(status, whole, &whole.requests);
    }
}

/// Running again after a wait.
pub(super) fn restarted(pod: &Pod, ready: bool, now: Time) -> Value {
    let state = |_: &Container, before: Option<&ContainerStatus>| State {
        ready,
        restarts: restarts(before),
        state: json!({ "running": { "startedAt": now } }),
        last: last(before),
    };
    json!({
        "conditions": readiness_conditions(pod, ready, now),
        "containerStatuses": containers(pod, state),
    })
}

/// Ended, and running again at once.
pub(super) fn restarted_after(pod: &Pod, code: i32, now: Time) -> Value {
    let ready = pod.is_ready();
    let state = |_: &Container, before: Option<&ContainerStatus>| again(pod, before, code, ready, now);
    json!({ "containerStatuses": containers(pod, state) })
}

/// A container that ended and runs again.
fn again(pod: &Pod, before: Option<&ContainerStatus>, code: i32, ready: bool, now: Time) -> State {
    State {
        ready,
        restarts: restarts(before) + 1,
        state: json!({ "running": { "startedAt": now } }),
        last: json!({ "terminated": terminated(code, started(pod, before), Some(now)) }),
    }
}

/// Ended, and to be started again after a while.
pub(super) fn backing_off(pod: &Pod, code: i32, wait: Duration, now: Time) -> Value {
    let state = |container: &Container, before: Option<&ContainerStatus>| {
        let message = format!(
            "back-off {}s restarting failed container={} pod={}",
            wait.as_secs(),
            container.name,
            described(pod)
        );
        let state = json!({ "waiting": { "reason": "CrashLoopBackOff", "message": message } });
        State { state, ready: false, ..again(pod, before, code, false, now) }
    };
    json!({
        "conditions": conditions(pod, "False", "ContainersNotReady", now),
        "containerStatuses": containers(pod, state),
    })
}

/// A pod as kubelets name it to people.
pub(super) fn described(pod: &Pod) -> String {
    format!("{}_{}({})", pod.metadata.name, pod.metadata.namespace, pod.metadata.uid)
}

/// Ended for good. What was told to end has failed, whatever its code.
pub(super) fn ended(pod: &Pod, code: i32, now: Time) -> Value {
    let (phase, reason) = if code == 0 { ("Succeeded", "PodCompleted") } else { ("Failed", "PodFailed") };
    let state = |_: &Container, before: Option<&ContainerStatus>| State {
        ready: false,
        restarts: restarts(before),
        state: json!({ "terminated": terminated(code, started(pod, before), Some(now)) }),
        last: last(before),
    };
    json!({
        "phase": phase,
        "conditions": conditions(pod, "False", reason, now),
        "containerStatuses": containers(pod, state),
    })
}

/// It ran for longer than it may.
pub(super) fn overdue(pod: &Pod, code: i32, now: Time) -> Value {
    let mut status = ended(pod, code, now);
    status["reason"] = json!("DeadlineExceeded");
    status["message"] = json!(OVERDUE);
    status
}

pub(super) const OVERDUE: &str = "Pod was active on the node longer than the specified deadline";

/// As it was, but ready or not.
pub(super) fn readiness(pod: &Pod, ready: bool, now: Time) -> Value {
    json!({
        "conditions": readiness_conditions(pod, ready, now),
        "containerStatuses": containers(pod, |_, before| same(pod, before, ready)),
    })
}

fn same(pod: &Pod, before: Option<&ContainerStatus>, ready: bool) -> State {
    let since = started(pod, before);
    State { ready, restarts: restarts(before), state: json!({ "running": { "startedAt": since } }), last: last(before) }
}

/// As it was, with what it asks for. Containers that cannot take that on while they run are started again.
pub(super) fn resized(pod: &Pod, ready: bool, now: Time) -> Value {
    let state = |container: &Container, before: Option<&ContainerStatus>| {
        if resize::needs_restart(pod, container, before) {
            return again(pod, before, STOPPED, ready, now);
        }
        same(pod, before, ready)
    };
    let mut own = readiness_conditions(pod, ready, now);
    own.retain(|condition| condition.text("type") != RESIZE_PENDING);
    let mut status = json!({ "conditions": own, "containerStatuses": containers(pod, state) });
    set_sizes(&pod.spec.containers, &mut status["containerStatuses"]);
    if pod.spec.init_containers.iter().any(Container::is_sidecar) {
        let statuses = &pod.status.init_container_statuses;
        let list = list(pod, &pod.spec.init_containers, statuses, |container, before| match before {
            Some(before) if !container.is_sidecar() => State {
                ready: before.ready,
                restarts: before.restart_count,
                state: state_of(&before.state),
                last: last(Some(before)),
            },
            _ => state(container, before),
        });
        status["initContainerStatuses"] = Value::Array(list);
        set_sizes(&pod.spec.init_containers, &mut status["initContainerStatuses"]);
    }
    take_on_size(pod, &mut status);
    status
}

/// What they ask for, they have.
fn set_sizes(containers: &[Container], statuses: &mut Value) {
    for (container, status) in containers.iter().zip(statuses.as_array_mut().into_iter().flatten()) {
        if status.get("resources").is_some() {
            size(status, &container.resources, &container.resources.requests);
        }
    }
}

/// As it was: what it asks for it cannot have, or not yet.
pub(super) fn pending(pod: &Pod, ready: bool, reason: &str, message: &str, now: Time) -> Value {
    let mut status = readiness(pod, ready, now);
    let since = pod.condition(RESIZE_PENDING).and_then(|before| before.last_transition_time).unwrap_or(now);
    let condition = json!({
        "type": RESIZE_PENDING, "status": "True", "reason": reason, "message": message,
        "lastTransitionTime": since, "observedGeneration": pod.metadata.generation,
    });
    if let Some(conditions) = status["conditions"].as_array_mut() {
        conditions.retain(|condition| condition.text("type") != RESIZE_PENDING);
        conditions.push(condition);
    }
    status
}

/// How a container ends that is told to, and one that is killed.
pub(super) const STOPPED: i32 = 143;
pub(super) const KILLED: i32 = 137;

fn restarts(before: Option<&ContainerStatus>) -> i32 {
    before.map_or(0, |before| before.restart_count)
}

fn started(pod: &Pod, before: Option<&ContainerStatus>) -> Option<Time> {
    before.and_then(|before| before.state.running.as_ref()?.started_at).or(pod.status.start_time)
}

fn last(before: Option<&ContainerStatus>) -> Value {
    before.map_or(json!({}), |before| state_of(&before.last_state))
}

fn state_of(state: &ContainerState) -> Value {
    match (&state.running, &state.terminated) {
        (Some(running), _) => json!({ "running": { "startedAt": running.started_at } }),
        (_, Some(ended)) => {
            json!({ "terminated": terminated(ended.exit_code, ended.started_at, ended.finished_at) })
        }
        (None, None) => json!({}),
    }
}

fn terminated(code: i32, since: Option<Time>, until: Option<Time>) -> Value {
    let reason = if code == 0 { "Completed" } else { "Error" };
    json!({ "exitCode": code, "reason": reason, "startedAt": since, "finishedAt": until })
}

/// What a container is in.
struct State {
    ready: bool,
    restarts: i32,
    state: Value,
    last: Value,
}

/// What each container is in, by what it was in before.
fn containers(pod: &Pod, state: impl Fn(&Container, Option<&ContainerStatus>) -> State) -> Vec<Value> {
    list(pod, &pod.spec.containers, &pod.status.container_statuses, state)
}

fn list(
    pod: &Pod,
    containers: &[Container],
    statuses: &[ContainerStatus],
    state: impl Fn(&Container, Option<&ContainerStatus>) -> State,
) -> Vec<Value> {
    let one = |container: &Container| {
        let before = statuses.iter().find(|status| status.name == container.name);
        let state = state(container, before);
        let is_running = state.state.get("running").is_some();
        let has_run = state.state.get("waiting").is_none() || state.restarts > 0;
        let mut status = json!({
            "name": container.name, "image": container.image, "imageID": "", "ready": state.ready,
            "started": is_running, "restartCount": state.restarts, "state": state.state, "lastState": state.last,
        });
        if has_run {
            status["imageID"] = json!(container.image);
            status["containerID"] = json!(format!("simulated://{}/{}", pod.metadata.uid, container.name));
        }
        if is_running || before.is_some_and(|_| resize::has_reported(pod)) && has_run {
            let (resources, promised) = resize::held(pod, container, before);
            size(&mut status, resources, promised);
        }
        status
    };
    containers.iter().map(one).collect()
}

/// Says what something has, and what it was promised.
fn size(status: &mut Value, resources: &Resources, promised: &Dict<Quantity>) {
    let amounts = |amounts: &Dict<Quantity>| {
        let amount = |(name, amount): (&String, &Quantity)| (name.clone(), Value::String(amount.to_string()));
        Value::Object(amounts.iter().map(amount).collect())
    };
    let mut has = json!({});
    for (field, of_field) in [("limits", &resources.limits), ("requests", &resources.requests)] {
        if !of_field.is_empty() {
            has[field] = amounts(of_field);
        }
    }
    status["resources"] = has;
    if !promised.is_empty() {
        status["allocatedResources"] = amounts(promised);
    }
}

/// They have done what they are for; sidecars go on.
fn init_containers(pod: &Pod, now: Time) -> Value {
    let container = |container: &Container| {
        let state = match container.is_sidecar() {
            true => json!({ "running": { "startedAt": now } }),
            false => json!({ "terminated": terminated(0, Some(now), Some(now)) }),
        };
        let mut status = json!({
            "name": container.name, "image": container.image, "imageID": container.image, "ready": true,
            "started": container.is_sidecar(), "restartCount": 0, "state": state, "lastState": {},
            "containerID": format!("simulated://{}/{}", pod.metadata.uid, container.name),
        });
        if container.is_sidecar() {
            size(&mut status, &container.resources, &container.resources.requests);
        }
        status
    };
    Value::Array(pod.spec.init_containers.iter().map(container).collect())
}

fn readiness_conditions(pod: &Pod, ready: bool, now: Time) -> Vec<Value> {
    match ready {
        true => conditions(pod, "True", "", now),
        false => conditions(pod, "False", "ContainersNotReady", now),
    }
}

/// What else is known of the pod stays: gates and the scheduler have conditions of their own.
fn conditions(pod: &Pod, ready: &str, reason: &str, now: Time) -> Vec<Value> {
    let gates = gates_are_open(pod);
    let pod_ready = if gates { ready } else { "False" };
    let pod_reason = if ready == "True" && !gates { "ReadinessGatesNotReady" } else { reason };
    let done = matches!(reason, "PodCompleted" | "PodFailed");
    let own = [
        ("PodReadyToStartContainers", if done { "False" } else { "True" }, ""),
        ("Initialized", "True", if done { reason } else { "" }),
        ("Ready", pod_ready, pod_reason),
        ("ContainersReady", ready, reason),
    ];
    let mut conditions: Vec<Value> = own
        .into_iter()
        .map(|(kind, status, reason)| {
            let before = pod.condition(kind).filter(|before| before.status == status);
            let since = before.and_then(|before| before.last_transition_time).unwrap_or(now);
            let mut condition = json!({
                "type": kind, "status": status, "lastTransitionTime": since,
                "observedGeneration": pod.metadata.generation,
            });
            if !reason.is_empty() {
                condition["reason"] = json!(reason);
            }
            condition
        })
        .collect();
    let is_over = |kind: &str| kind == RESIZE_PENDING && (done || !resize::is_wanted(pod));
    let others = pod.status.conditions.iter().filter(|other| !own.iter().any(|(kind, ..)| *kind == other.kind));
    conditions.extend(others.filter(|other| !is_over(&other.kind)).map(untouched));
    conditions
}

fn untouched(other: &Condition) -> Value {
    let text = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
    let mut condition = json!({
        "type": other.kind, "status": other.status, "lastTransitionTime": other.last_transition_time,
        "reason": text(&other.reason), "message": text(&other.message),
        "observedGeneration": Some(other.observed_generation).filter(|generation| *generation > 0),
    });
    if let Value::Object(fields) = &mut condition {
        fields.retain(|_, field| !field.is_null());
    }
    condition
}
