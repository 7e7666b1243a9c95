//! What a simulated pod reports of itself.

use super::pod::{Place, gates_are_open};
use kinds::{Container, Pod, Time};
use object::{Value, json};
use std::time::Duration;

/// Containers that have not started: why not.
pub(super) fn creating(pod: &Pod, reason: &str, place: Place<'_>, now: Time) -> Value {
    let waiting = json!({ "waiting": waiting(reason, &pod.spec.containers) });
    let start = pod.status.start_time.unwrap_or(now);
    json!({
        "phase": "Pending", "startTime": start, "hostIP": place.host, "hostIPs": [{ "ip": place.host }],
        "conditions": conditions(pod, "False", "ContainersNotReady", now),
        "containerStatuses": containers(pod, &State { ready: false, restarts: 0, state: waiting, last: json!({}) }),
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

pub(super) fn running(pod: &Pod, place: Place<'_>, ready: bool, now: Time) -> Value {
    let address = if pod.spec.host_network { place.host } else { place.address };
    let start = pod.status.start_time.unwrap_or(now);
    let state = State { ready, restarts: 0, state: json!({ "running": { "startedAt": now } }), last: json!({}) };
    let mut status = json!({
        "phase": "Running", "startTime": start, "hostIP": place.host, "hostIPs": [{ "ip": place.host }],
        "podIP": address, "podIPs": [{ "ip": address }],
        "conditions": readiness_conditions(pod, ready, now),
        "containerStatuses": containers(pod, &state),
    });
    if !pod.spec.init_containers.is_empty() {
        status["initContainerStatuses"] = init_containers(pod, now);
    }
    status
}

/// Running again after a wait.
pub(super) fn restarted(pod: &Pod, restarts: i32, ready: bool, now: Time) -> Value {
    let before = pod.status.container_statuses.first().and_then(|container| container.last_state.terminated.as_ref());
    let last = before.map_or(json!({}), |before| {
        let (since, until) = (before.started_at, before.finished_at);
        json!({ "terminated": terminated(before.exit_code, since, until) })
    });
    let state = State { ready, restarts, state: json!({ "running": { "startedAt": now } }), last };
    json!({
        "conditions": readiness_conditions(pod, ready, now),
        "containerStatuses": containers(pod, &state),
    })
}

/// Ended, and running again at once.
pub(super) fn restarted_after(pod: &Pod, code: i32, restarts: i32, now: Time) -> Value {
    let last = json!({ "terminated": terminated(code, started(pod), Some(now)) });
    let ready = pod.is_ready();
    let state = State { ready, restarts, state: json!({ "running": { "startedAt": now } }), last };
    json!({ "containerStatuses": containers(pod, &state) })
}

/// Ended, and to be started again after a while.
pub(super) fn backing_off(pod: &Pod, code: i32, restarts: i32, wait: Duration, now: Time) -> Value {
    let names: Vec<&str> = pod.spec.containers.iter().map(|container| container.name.as_str()).collect();
    let message = format!(
        "back-off {}s restarting failed container={} pod={}_{}({})",
        wait.as_secs(),
        names.join(","),
        pod.metadata.name,
        pod.metadata.namespace,
        pod.metadata.uid
    );
    let last = json!({ "terminated": terminated(code, started(pod), Some(now)) });
    let waiting = json!({ "waiting": { "reason": "CrashLoopBackOff", "message": message } });
    json!({
        "conditions": conditions(pod, "False", "ContainersNotReady", now),
        "containerStatuses": containers(pod, &State { ready: false, restarts, state: waiting, last }),
    })
}

pub(super) fn finished(pod: &Pod, code: i32, now: Time) -> Value {
    let (phase, reason) = if code == 0 { ("Succeeded", "PodCompleted") } else { ("Failed", "PodFailed") };
    let restarts = pod.status.container_statuses.first().map_or(0, |container| container.restart_count);
    let state = json!({ "terminated": terminated(code, started(pod), Some(now)) });
    json!({
        "phase": phase,
        "conditions": conditions(pod, "False", reason, now),
        "containerStatuses": containers(pod, &State { ready: false, restarts, state, last: json!({}) }),
    })
}

/// As it was, but ready or not.
pub(super) fn readiness(pod: &Pod, ready: bool, now: Time) -> Value {
    let before = pod.status.container_statuses.first();
    let restarts = before.map_or(0, |container| container.restart_count);
    let since = before.and_then(|container| container.state.running.as_ref()?.started_at).or(pod.status.start_time);
    let last = before.and_then(|container| container.last_state.terminated.as_ref()).map_or(
        json!({}),
        |before| json!({ "terminated": terminated(before.exit_code, before.started_at, before.finished_at) }),
    );
    let state = State { ready, restarts, state: json!({ "running": { "startedAt": since } }), last };
    json!({
        "conditions": readiness_conditions(pod, ready, now),
        "containerStatuses": containers(pod, &state),
    })
}

fn started(pod: &Pod) -> Option<Time> {
    let container = pod.status.container_statuses.first();
    container.and_then(|container| container.state.running.as_ref()?.started_at).or(pod.status.start_time)
}

fn terminated(code: i32, since: Option<Time>, until: Option<Time>) -> Value {
    let reason = if code == 0 { "Completed" } else { "Error" };
    json!({ "exitCode": code, "reason": reason, "startedAt": since, "finishedAt": until })
}

/// What all containers of a pod are in.
struct State {
    ready: bool,
    restarts: i32,
    state: Value,
    last: Value,
}

fn containers(pod: &Pod, state: &State) -> Vec<Value> {
    let is_running = state.state.get("running").is_some();
    let container = |container: &Container| {
        let mut status = json!({
            "name": container.name, "image": container.image, "imageID": "", "ready": state.ready,
            "started": is_running, "restartCount": state.restarts, "state": state.state, "lastState": state.last,
        });
        if state.state.get("waiting").is_none() || state.restarts > 0 {
            status["imageID"] = json!(container.image);
            status["containerID"] = json!(format!("simulated://{}/{}", pod.metadata.uid, container.name));
        }
        status
    };
    pod.spec.containers.iter().map(container).collect()
}

/// They have done what they are for; sidecars go on.
fn init_containers(pod: &Pod, now: Time) -> Value {
    let container = |container: &Container| {
        let state = match container.is_sidecar() {
            true => json!({ "running": { "startedAt": now } }),
            false => json!({ "terminated": terminated(0, Some(now), Some(now)) }),
        };
        json!({
            "name": container.name, "image": container.image, "imageID": container.image, "ready": true,
            "started": container.is_sidecar(), "restartCount": 0, "state": state, "lastState": {},
            "containerID": format!("simulated://{}/{}", pod.metadata.uid, container.name),
        })
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
            let mut condition = json!({ "type": kind, "status": status, "lastTransitionTime": since });
            if !reason.is_empty() {
                condition["reason"] = json!(reason);
            }
            condition
        })
        .collect();
    let others = pod.status.conditions.iter().filter(|condition| !own.iter().any(|(kind, ..)| *kind == condition.kind));
    conditions.extend(others.map(|other| {
        let text = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
        let mut condition = json!({
            "type": other.kind, "status": other.status, "lastTransitionTime": other.last_transition_time,
            "reason": text(&other.reason), "message": text(&other.message),
        });
        if let Value::Object(fields) = &mut condition {
            fields.retain(|_, field| !field.is_null());
        }
        condition
    }));
    conditions
}
