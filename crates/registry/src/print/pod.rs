//! How pods look: one word for what a pod is doing, gathered from its containers.

use super::text::{NONE, age, condition, count, has_condition, is_being_deleted, name, or, seconds, size};
use super::{AGE, NAME, Printer, string, text};
use object::{Value, View};

pub const POD: Printer = Printer {
    columns: &[
        NAME,
        string("Ready", "Containers that are ready, of all"),
        string("Status", "What the pod is doing, or what it waits for"),
        string("Restarts", "How often its containers were started again, and when last"),
        AGE,
        string("IP", "First address of the pod").wide(),
        string("Node", "Node the pod runs on").wide(),
        string("Nominated Node", "Node on which room is being made for the pod").wide(),
        string("Readiness Gates", "Gates that are open, of all").wide(),
    ],
    cells,
};

fn cells(pod: &Value, now: i64) -> Vec<Value> {
    let (spec, status) = (pod.at("spec"), pod.at("status"));
    let summary = Summary::of(pod);
    let ip = status.items("podIPs").first().map_or_else(|| status.text("podIP"), |ip| ip.text("ip"));
    vec![
        name(pod).into(),
        format!("{}/{}", summary.ready, total(spec)).into(),
        summary.status.into(),
        summary.restarts.text(now).into(),
        age(pod, now).into(),
        or(ip, NONE).into(),
        or(spec.text("nodeName"), NONE).into(),
        or(status.text("nominatedNodeName"), NONE).into(),
        readiness_gates(spec, status).into(),
    ]
}

/// The containers that are meant to run as long as the pod does.
fn total(spec: &Value) -> usize {
    size(spec, "containers") + spec.items("initContainers").iter().filter(|container| is_sidecar(container)).count()
}

fn is_sidecar(container: &Value) -> bool {
    container.text("restartPolicy") == "Always"
}

fn readiness_gates(spec: &Value, status: &Value) -> String {
    let gates = spec.items("readinessGates");
    if gates.is_empty() {
        return NONE.to_owned();
    }
    let open = gates.iter().filter(|gate| has_condition(status, gate.text("conditionType"))).count();
    format!("{open}/{}", gates.len())
}

#[derive(Clone, Copy, Default)]
struct Restarts {
    count: i64,
    last: Option<i64>,
}

impl Restarts {
    fn add(&mut self, container: &Value) {
        self.count += count(container, "restartCount");
        self.last = self.last.max(seconds(container.path(&["lastState", "terminated", "finishedAt"])));
    }

    fn text(self, now: i64) -> String {
        match self.last {
            Some(last) if self.count != 0 => {
                format!("{} ({} ago)", self.count, text::duration(now.saturating_sub(last)))
            }
            _ => self.count.to_string(),
        }
    }
}

struct Summary {
    status: String,
    ready: usize,
    restarts: Restarts,
}

impl Summary {
    fn of(pod: &Value) -> Summary {
        let status = pod.at("status");
        let initial = Initial::of(pod);
        let running = initial.waits_for.is_none() || has_condition(status, "Initialized");
        let mut summary = Summary {
            status: initial.waits_for.unwrap_or_else(|| phase(status)),
            ready: initial.ready,
            restarts: initial.restarts,
        };
        if running {
            summary.restarts = initial.sidecar_restarts;
            summary.add_containers(status);
        }
        let terminal = matches!(status.text("phase"), "Succeeded" | "Failed");
        if is_being_deleted(pod) && status.text("reason") == "NodeLost" {
            summary.status = "Unknown".to_owned();
        } else if is_being_deleted(pod) && !terminal {
            summary.status = "Terminating".to_owned();
        }
        summary
    }

    /// The first container that says something wins, so they are taken from the last to the first.
    fn add_containers(&mut self, status: &Value) {
        let (mut running, mut failure) = (false, None);
        for container in status.items("containerStatuses").iter().rev() {
            self.restarts.add(container);
            let state = container.at("state");
            let waits_for = state.at("waiting").text("reason");
            if !waits_for.is_empty() {
                self.status = waits_for.to_owned();
            } else if state.has("terminated") {
                self.status = end(state.at("terminated"));
                if count(state.at("terminated"), "exitCode") != 0 {
                    failure = Some(self.status.clone());
                }
            } else if container.flag("ready") && state.has("running") {
                running = true;
                self.ready += 1;
            }
        }
        // One container that is done does not speak for those that are not.
        if self.status == "Completed" {
            self.status = match failure {
                _ if running && has_condition(status, "Ready") => "Running".to_owned(),
                Some(failure) => failure,
                None if running => "NotReady".to_owned(),
                None => "Completed".to_owned(),
            };
        }
    }
}

/// What a pod is said to do before its containers are asked.
fn phase(status: &Value) -> String {
    let gated = |condition: &Value| condition.text("reason") == "SchedulingGated";
    if condition(status, "PodScheduled").is_some_and(gated) {
        return "SchedulingGated".to_owned();
    }
    or(status.text("reason"), status.text("phase")).to_owned()
}

/// How a container ended.
fn end(terminated: &Value) -> String {
    match (terminated.text("reason"), count(terminated, "signal")) {
        ("", 0) => format!("ExitCode:{}", count(terminated, "exitCode")),
        ("", signal) => format!("Signal:{signal}"),
        (reason, _) => reason.to_owned(),
    }
}

/// What the init containers say, up to the first that is not done.
#[derive(Default)]
struct Initial {
    waits_for: Option<String>,
    ready: usize,
    restarts: Restarts,
    sidecar_restarts: Restarts,
}

impl Initial {
    fn of(pod: &Value) -> Initial {
        let declared = pod.at("spec").items("initContainers");
        let mut initial = Initial::default();
        for (at, container) in pod.at("status").items("initContainerStatuses").iter().enumerate() {
            initial.restarts.add(container);
            let name = container.text("name");
            let sidecar = declared.iter().any(|declared| declared.text("name") == name && is_sidecar(declared));
            if sidecar {
                initial.sidecar_restarts.add(container);
            }
            let (terminated, waits_for) = (container.path(&["state", "terminated"]), waiting_reason(container));
            if !terminated.is_null() && count(terminated, "exitCode") == 0 {
                continue;
            }
            if sidecar && container.flag("started") {
                initial.ready += usize::from(container.flag("ready"));
                continue;
            }
            initial.waits_for = Some(match waits_for {
                _ if !terminated.is_null() => format!("Init:{}", end(terminated)),
                "" | "PodInitializing" => format!("Init:{at}/{}", declared.len()),
                reason => format!("Init:{reason}"),
            });
            break;
        }
        initial
    }
}

fn waiting_reason(container: &Value) -> &str {
    container.path(&["state", "waiting"]).text("reason")
}

#[cfg(test)]
mod tests {
    use super::super::tests::{cells, check};
    use super::*;
    use object::json;

    fn running() -> Value {
        json!({ "name": "a", "ready": true, "restartCount": 0, "state": { "running": {} } })
    }

    fn waiting(reason: &str) -> Value {
        json!({ "name": "a", "restartCount": 0, "state": { "waiting": { "reason": reason } } })
    }

    fn ended(reason: &str, exit_code: i32, signal: i32) -> Value {
        let terminated = json!({ "reason": reason, "exitCode": exit_code, "signal": signal });
        json!({ "name": "a", "restartCount": 0, "state": { "terminated": terminated } })
    }

    /// The ready and status cells of a pod with two init containers, the second a sidecar, and two containers.
    fn shown(status: &Value, metadata: &Value) -> (String, String) {
        let spec = json!({
            "initContainers": [{ "name": "i" }, { "name": "s", "restartPolicy": "Always" }],
            "containers": [{ "name": "a" }, { "name": "b" }],
        });
        let cells = cells(&POD, json!({ "metadata": metadata, "spec": spec, "status": status }));
        (text::plain(&cells[1]), text::plain(&cells[2]))
    }

    #[test]
    fn the_status_is_what_the_first_interesting_container_says() {
        let ready = json!([{ "type": "Ready", "status": "True" }]);
        let sidecar = json!({ "name": "s", "started": true, "ready": true, "state": { "running": {} } });
        for (status, expected) in [
            (json!({ "phase": "Pending" }), ("0/3", "Pending")),
            (json!({ "phase": "Failed", "reason": "Evicted" }), ("0/3", "Evicted")),
            (
                json!({ "phase": "Pending", "conditions": [{ "type": "PodScheduled", "reason": "SchedulingGated" }] }),
                ("0/3", "SchedulingGated"),
            ),
            (json!({ "phase": "Running", "containerStatuses": [running(), running()] }), ("2/3", "Running")),
            (
                json!({ "phase": "Running", "containerStatuses": [waiting("CrashLoopBackOff"), running()] }),
                ("1/3", "CrashLoopBackOff"),
            ),
            (
                json!({ "phase": "Running", "containerStatuses": [running(), waiting("ImagePullBackOff")] }),
                ("1/3", "ImagePullBackOff"),
            ),
            (
                json!({ "phase": "Running", "containerStatuses": [ended("Completed", 0, 0), running()] }),
                ("1/3", "NotReady"),
            ),
            (
                json!({ "phase": "Running", "conditions": ready, "containerStatuses": [ended("Completed", 0, 0), running()] }),
                ("1/3", "Running"),
            ),
            (
                json!({ "phase": "Failed", "containerStatuses": [ended("Completed", 0, 0), ended("Error", 1, 0)] }),
                ("0/3", "Error"),
            ),
            (json!({ "phase": "Failed", "containerStatuses": [ended("", 3, 0)] }), ("0/3", "ExitCode:3")),
            (json!({ "phase": "Failed", "containerStatuses": [ended("", 137, 9)] }), ("0/3", "Signal:9")),
            (json!({ "phase": "Succeeded", "containerStatuses": [ended("Completed", 0, 0)] }), ("0/3", "Completed")),
            (json!({ "phase": "Pending", "initContainerStatuses": [running()] }), ("0/3", "Init:0/2")),
            (
                json!({ "phase": "Pending", "initContainerStatuses": [ended("Completed", 0, 0), waiting("PodInitializing")] }),
                ("0/3", "Init:1/2"),
            ),
            (
                json!({ "phase": "Pending", "initContainerStatuses": [waiting("ErrImagePull")] }),
                ("0/3", "Init:ErrImagePull"),
            ),
            (json!({ "phase": "Pending", "initContainerStatuses": [ended("Error", 1, 0)] }), ("0/3", "Init:Error")),
            (json!({ "phase": "Pending", "initContainerStatuses": [ended("", 1, 0)] }), ("0/3", "Init:ExitCode:1")),
            (json!({ "phase": "Pending", "initContainerStatuses": [ended("", 1, 9)] }), ("0/3", "Init:Signal:9")),
            (
                json!({
                    "phase": "Running",
                    "initContainerStatuses": [ended("Completed", 0, 0), sidecar],
                    "containerStatuses": [running(), waiting("PodInitializing")],
                }),
                ("2/3", "PodInitializing"),
            ),
        ] {
            let (ready, word) = shown(&status, &json!({}));
            assert_eq!((&*ready, &*word), expected, "{status}");
        }
    }

    #[test]
    fn a_pod_that_is_being_deleted_is_terminating_unless_it_is_done_or_its_node_is_lost() {
        let deleted = json!({ "deletionTimestamp": "2026-02-28T12:00:00Z" });
        for (status, word) in [
            (json!({ "phase": "Running" }), "Terminating"),
            (json!({ "phase": "Succeeded" }), "Succeeded"),
            (json!({ "phase": "Running", "reason": "NodeLost" }), "Unknown"),
        ] {
            assert_eq!(shown(&status, &deleted).1, word, "{status}");
        }
    }

    #[test]
    fn restarts_say_when_the_last_one_was() {
        let restarted = |count: i64, at: &str| json!({ "restartCount": count, "lastState": { "terminated": { "finishedAt": at } } });
        for (statuses, text) in [
            (json!([restarted(2, "2026-02-28T23:55:00Z"), restarted(1, "2026-02-28T12:00:00Z")]), "3 (5m ago)"),
            (json!([restarted(0, "2026-02-28T12:00:00Z")]), "0"),
            (json!([{ "restartCount": 4 }]), "4"),
        ] {
            assert_eq!(cells(&POD, json!({ "status": { "containerStatuses": statuses } }))[3], text);
        }
        let status = json!({
            "initContainerStatuses": [restarted(7, "2026-02-28T23:55:00Z")],
            "conditions": [{ "type": "Initialized", "status": "True" }],
        });
        assert_eq!(cells(&POD, json!({ "status": status }))[3], "0", "once initialized, only what runs counts");
    }

    #[test]
    fn wide_cells_name_places() {
        check(
            &POD,
            &[
                (json!({}), json!(["0/0", "", "0", NONE, NONE, NONE, NONE])),
                (
                    json!({
                        "spec": { "nodeName": "n", "readinessGates": [{ "conditionType": "A" }, { "conditionType": "B" }] },
                        "status": {
                            "phase": "Running",
                            "podIPs": [{ "ip": "10.0.0.1" }, { "ip": "fd00::1" }],
                            "nominatedNodeName": "m",
                            "conditions": [{ "type": "B", "status": "True" }],
                        },
                    }),
                    json!(["0/0", "Running", "0", "10.0.0.1", "n", "m", "1/2"]),
                ),
            ],
        );
    }
}
