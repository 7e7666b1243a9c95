//! The life of a simulated pod, as a pure function of what is known of it.
//!
//! It runs as soon as it is bound. One that is meant to end does so after a while; annotations say after how many
//! seconds, and with which code.

use kinds::{Pod, Time};
use object::{Value, json};
use std::time::Duration;

/// How long a pod that ends runs, and how it ends, unless these say otherwise.
const RUN_SECONDS: &str = "simulated.setpoint.dev/run-seconds";
const EXIT_CODE: &str = "simulated.setpoint.dev/exit-code";
const DEFAULT_RUN: Duration = Duration::from_secs(1);

#[derive(Debug, PartialEq)]
pub(super) enum Step {
    /// This is its status now.
    Report(Value),
    /// It has stopped, and can go.
    Remove,
    /// Nothing to do, for so long.
    Wait(Option<Duration>),
}

pub(super) fn step(pod: &Pod, address: &str, host: &str, now: Time) -> Step {
    if pod.metadata.is_being_deleted() {
        return Step::Remove;
    }
    match pod.status.phase.as_str() {
        "Succeeded" | "Failed" => Step::Wait(None),
        "Running" => match ends(pod) {
            Some(end) if end <= now => Step::Report(finished(pod, now)),
            // While the node was not heard of, its pods counted as not ready.
            _ if pod.is_ready() != gates_are_open(pod) => {
                Step::Report(json!({ "conditions": conditions(pod, "True", "", now) }))
            }
            None => Step::Wait(None),
            Some(end) => Step::Wait(Some(end.since(now))),
        },
        _ => Step::Report(running(pod, address, host, now)),
    }
}

/// When the pod ends; none if it runs for ever.
fn ends(pod: &Pod) -> Option<Time> {
    let annotated = pod.metadata.annotation(RUN_SECONDS).parse().ok().map(Duration::from_secs_f64);
    let run = match pod.spec.restart_policy.as_str() {
        "Always" | "" => annotated?,
        _ => annotated.unwrap_or(DEFAULT_RUN),
    };
    Some(pod.status.start_time? + run)
}

fn running(pod: &Pod, address: &str, host: &str, now: Time) -> Value {
    let host_network = pod.spec.host_network;
    let address = if host_network { host } else { address };
    let container = |container: &kinds::Container| {
        json!({
            "name": container.name, "image": container.image, "imageID": container.image, "ready": true,
            "started": true, "restartCount": 0, "state": { "running": { "startedAt": now } },
            "containerID": format!("simulated://{}/{}", pod.metadata.uid, container.name),
        })
    };
    json!({
        "phase": "Running", "startTime": now, "hostIP": host, "hostIPs": [{ "ip": host }],
        "podIP": address, "podIPs": [{ "ip": address }],
        "conditions": conditions(pod, "True", "", now),
        "containerStatuses": pod.spec.containers.iter().map(container).collect::<Vec<_>>(),
    })
}

fn finished(pod: &Pod, now: Time) -> Value {
    let code: i32 = pod.metadata.annotation(EXIT_CODE).parse().unwrap_or(0);
    let (phase, reason) = if code == 0 { ("Succeeded", "Completed") } else { ("Failed", "Error") };
    let container = |container: &kinds::Container| {
        json!({
            "name": container.name, "image": container.image, "imageID": container.image, "ready": false,
            "started": false, "restartCount": 0,
            "containerID": format!("simulated://{}/{}", pod.metadata.uid, container.name),
            "state": { "terminated": {
                "exitCode": code, "reason": reason, "startedAt": pod.status.start_time, "finishedAt": now,
            } },
        })
    };
    json!({
        "phase": phase,
        "conditions": conditions(pod, "False", if code == 0 { "PodCompleted" } else { "PodFailed" }, now),
        "containerStatuses": pod.spec.containers.iter().map(container).collect::<Vec<_>>(),
    })
}

fn gates_are_open(pod: &Pod) -> bool {
    let open = |gate: &kinds::ReadinessGate| {
        pod.condition(&gate.condition_type).is_some_and(|condition| condition.status == "True")
    };
    pod.spec.readiness_gates.iter().all(open)
}

/// What else is known of the pod stays: gates and the scheduler have conditions of their own.
fn conditions(pod: &Pod, ready: &str, reason: &str, now: Time) -> Vec<Value> {
    let pod_ready = if gates_are_open(pod) { ready } else { "False" };
    let own = [
        ("PodReadyToStartContainers", ready, ""),
        ("Initialized", "True", if ready == "True" { "" } else { reason }),
        ("Ready", pod_ready, reason),
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

#[cfg(test)]
mod tests {
    use super::*;
    use kinds::Object;
    use object::View;

    const NOW: Time = Time::from_seconds(1_767_225_600);

    fn pod(policy: &str, status: &Value) -> Object<Pod> {
        Object::of(&json!({
            "metadata": { "name": "a", "namespace": "default", "uid": "u" },
            "spec": { "restartPolicy": policy, "containers": [{ "name": "c" }] },
            "status": status,
        }))
    }

    #[test]
    fn a_pod_runs_and_ends_if_it_is_meant_to() {
        let Step::Report(status) = step(&pod("Never", &json!({})), "10.0.0.1", "10.1.0.1", NOW) else { panic!() };
        assert_eq!((status.text("phase"), status.text("podIP")), ("Running", "10.0.0.1"));
        let running = pod("Never", &status);
        assert_eq!(step(&running, "", "", NOW), Step::Wait(Some(DEFAULT_RUN)));
        let Step::Report(status) = step(&running, "", "", NOW + DEFAULT_RUN) else { panic!() };
        assert_eq!(status.text("phase"), "Succeeded");
        let Step::Report(status) = step(&pod("Always", &json!({})), "", "", NOW) else { panic!() };
        assert_eq!(step(&pod("Always", &status), "", "", NOW), Step::Wait(None));
    }

    #[test]
    fn a_pod_that_was_counted_as_not_ready_is_ready_again() {
        let lost = json!({ "phase": "Running", "conditions": [{ "type": "Ready", "status": "False" }] });
        let Step::Report(status) = step(&pod("Always", &lost), "", "", NOW) else { panic!() };
        assert!(pod("Always", &json!({ "conditions": status["conditions"] })).is_ready());
    }
}
