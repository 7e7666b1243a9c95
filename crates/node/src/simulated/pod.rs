//! The life of a simulated pod, as a pure function of what is known of it.
//!
//! Unless it says otherwise it runs, and is ready, as soon as it is bound; that takes one write. All containers of a pod
//! do the same at the same time.

use super::life::Life;
use super::status;
use kinds::{ContainerStatus, Pod, ReadinessGate, Time};
use object::Value;
use std::time::Duration;

/// How long a container that ended waits before it is started again: nothing at first, then ten seconds, doubling.
const FIRST_BACKOFF: Duration = Duration::from_secs(10);
const MAX_BACKOFF: Duration = Duration::from_secs(300);

#[derive(Debug, PartialEq)]
pub(super) enum Step {
    /// This is its status now.
    Report(Value),
    /// It has stopped, and can go.
    Remove,
    /// Nothing to do, for so long.
    Wait(Option<Duration>),
}

/// Where a pod is.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place<'a> {
    pub address: &'a str,
    pub host: &'a str,
    /// Whether it may use what it claims.
    pub has_devices: bool,
}

pub(super) fn step(pod: &Pod, life: &Life, place: Place<'_>, now: Time) -> Step {
    if let Some(deletion) = pod.metadata.deletion_timestamp {
        return stop(pod, life, deletion, now);
    }
    match pod.status.phase.as_str() {
        "Succeeded" | "Failed" => Step::Wait(None),
        "Running" => run(pod, life, now),
        _ => begin(pod, life, place, now),
    }
}

/// What is asked to stop stops when it is done, and at the latest when its time is up.
fn stop(pod: &Pod, life: &Life, deletion: Time, now: Time) -> Step {
    let grace = Duration::from_secs(pod.metadata.deletion_grace_period_seconds.unwrap_or(0).unsigned_abs());
    let left = deletion.since(now);
    let asked_for = grace.saturating_sub(left);
    let rest = life.stop.min(grace).saturating_sub(asked_for);
    if rest.is_zero() { Step::Remove } else { Step::Wait(Some(rest)) }
}

fn begin(pod: &Pod, life: &Life, place: Place<'_>, now: Time) -> Step {
    let waits = !life.is_pullable || !life.delay.is_zero() || !place.has_devices;
    match pod.status.start_time {
        None if waits => Step::Report(status::creating(pod, "ContainerCreating", place, now)),
        _ if !place.has_devices => Step::Wait(None),
        Some(since) if since + life.delay > now => Step::Wait(Some((since + life.delay).since(now))),
        _ if life.is_pullable => Step::Report(status::running(pod, place, is_ready_at_once(life), now)),
        _ if is_waiting_for(pod, "ImagePullBackOff") => Step::Wait(None),
        _ => Step::Report(status::creating(pod, "ImagePullBackOff", place, now)),
    }
}

fn is_ready_at_once(life: &Life) -> bool {
    life.ready.is_some_and(|delay| delay.is_zero())
}

fn is_waiting_for(pod: &Pod, reason: &str) -> bool {
    pod.status.container_statuses.iter().any(|one| one.state.waiting.as_ref().is_some_and(|why| why.reason == reason))
}

fn run(pod: &Pod, life: &Life, now: Time) -> Step {
    let container = pod.status.container_statuses.first();
    let restarts = container.map_or(0, |container| container.restart_count);
    if let Some(ended) = container.and_then(ended_and_waits) {
        let again = ended + backoff(restarts);
        return match again <= now {
            true => Step::Report(status::restarted(pod, restarts, is_ready_at_once(life), now)),
            false => Step::Wait(Some(again.since(now))),
        };
    }
    let running = container.and_then(|container| container.state.running.as_ref()?.started_at);
    let since = running.or(pod.status.start_time).unwrap_or(now);
    let end = life.run.map(|run| since + run);
    if end.is_some_and(|end| end <= now) {
        return Step::Report(end_of_run(pod, life, restarts, now));
    }
    let ready_at = life.ready.map(|delay| since + delay);
    let works = ready_at.is_some_and(|at| at <= now);
    let wanted = works && gates_are_open(pod);
    if pod.is_ready() != wanted || container.is_some_and(|container| container.ready != works) {
        return Step::Report(status::readiness(pod, works, now));
    }
    let next = ready_at.filter(|at| *at > now).into_iter().chain(end).min();
    Step::Wait(next.map(|next| next.since(now)))
}

/// When a container ended that is to be started again.
fn ended_and_waits(container: &ContainerStatus) -> Option<Time> {
    container.state.waiting.as_ref()?;
    container.last_state.terminated.as_ref()?.finished_at
}

/// How long after its end a container is started for the n-th time again.
fn backoff(restarts: i32) -> Duration {
    match u32::try_from(restarts).unwrap_or(0) {
        0 | 1 => Duration::ZERO,
        more => FIRST_BACKOFF.saturating_mul(2_u32.saturating_pow(more - 2)).min(MAX_BACKOFF),
    }
}

fn end_of_run(pod: &Pod, life: &Life, restarts: i32, now: Time) -> Value {
    let code = life.code(pod, restarts);
    let again = match pod.spec.restart_policy.as_str() {
        "Never" => false,
        "OnFailure" => code != 0,
        _ => true,
    };
    if !again {
        return status::finished(pod, code, now);
    }
    match backoff(restarts + 1).is_zero() {
        true => status::restarted_after(pod, code, restarts + 1, now),
        false => status::backing_off(pod, code, restarts + 1, backoff(restarts + 1), now),
    }
}

pub(super) fn gates_are_open(pod: &Pod) -> bool {
    let open =
        |gate: &ReadinessGate| pod.condition(&gate.condition_type).is_some_and(|condition| condition.status == "True");
    pod.spec.readiness_gates.iter().all(open)
}

#[cfg(test)]
mod tests {
    use super::super::behavior::Behavior;
    use super::*;
    use kinds::{ConfigMap, Object};
    use object::{View, json};
    use runtime::Caches;

    const NOW: Time = Time::from_seconds(1_767_225_600);
    const PLACE: Place<'static> = Place { address: "10.0.0.1", host: "10.1.0.1", has_devices: true };

    fn seconds(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    /// A pod of a policy, with annotations by their short names.
    fn pod(policy: &str, said: &[(&str, &str)]) -> Value {
        let mut annotations = json!({});
        for (name, value) in said {
            annotations[format!("simulated.setpoint.dev/{name}")] = json!(value);
        }
        json!({
            "metadata": { "name": "a", "namespace": "default", "uid": "u", "annotations": annotations },
            "spec": { "restartPolicy": policy, "containers": [{ "name": "c" }] },
        })
    }

    fn life(pod: &Pod) -> Life {
        Life::of(pod, &Behavior::of_pod(pod, &Behavior::default(), &Caches::default().with::<ConfigMap>()))
    }

    #[test]
    fn a_pod_does_not_start_before_it_has_its_devices() {
        let mut waiting = pod("Always", &[]);
        let without = Place { has_devices: false, ..PLACE };
        let read: Object<Pod> = Object::of(&waiting);
        let Step::Report(status) = step(&read, &life(&read), without, NOW) else { panic!("it says nothing") };
        waiting["status"] = status;
        let read: Object<Pod> = Object::of(&waiting);
        assert_eq!(words(&read), "Pending ContainerCreating");
        assert_eq!(step(&read, &life(&read), without, NOW), Step::Wait(None));
        assert_eq!(live(&mut waiting, 1), ["0: Running running ready"]);
    }

    /// Lets a pod live until nothing happens any more or `until` has passed: what it reports and when, in words.
    fn live(pod: &mut Value, until: u64) -> Vec<String> {
        let mut told = Vec::new();
        let mut now = NOW;
        while now <= NOW + seconds(until) {
            let read: Object<Pod> = Object::of(pod);
            match step(&read, &life(&read), PLACE, now) {
                Step::Report(status) => {
                    for (field, value) in status.as_object().unwrap() {
                        pod["status"][field] = value.clone();
                    }
                    told.push(format!("{}: {}", now.since(NOW).as_secs(), words(&Object::of(pod))));
                }
                Step::Wait(Some(delay)) => now = now + delay,
                Step::Wait(None) => break,
                Step::Remove => {
                    told.push(format!("{}: removed", now.since(NOW).as_secs()));
                    break;
                }
            }
        }
        told
    }

    fn words(pod: &Object<Pod>) -> String {
        let container = &pod.status.container_statuses[0];
        let state = match &container.state {
            state if state.running.is_some() => "running".to_owned(),
            state => match (&state.waiting, &state.terminated) {
                (Some(waiting), _) => waiting.reason.clone(),
                (None, Some(terminated)) => format!("{} {}", terminated.reason, terminated.exit_code),
                (None, None) => "nothing".to_owned(),
            },
        };
        let ready = if pod.is_ready() { " ready" } else { "" };
        let restarts =
            if container.restart_count > 0 { format!(" x{}", container.restart_count) } else { String::new() };
        format!("{} {state}{ready}{restarts}", pod.status.phase)
    }

    #[test]
    fn a_pod_runs_at_once_and_ends_if_it_is_meant_to() {
        assert_eq!(live(&mut pod("Always", &[]), 99), ["0: Running running ready"]);
        assert_eq!(live(&mut pod("Never", &[]), 99), ["0: Running running ready", "1: Succeeded Completed 0"]);
        let failing = &[("run-seconds", "5"), ("exit-code", "3")];
        assert_eq!(live(&mut pod("Never", failing), 99), ["0: Running running ready", "5: Failed Error 3"]);
    }

    #[test]
    fn it_takes_as_long_to_come_and_to_be_ready_as_it_says() {
        let slow = &[("pull-seconds", "2"), ("start-seconds", "1"), ("ready-seconds", "4")];
        let expected = ["0: Pending ContainerCreating", "3: Running running", "7: Running running ready"];
        assert_eq!(live(&mut pod("Always", slow), 99), expected);
        assert_eq!(live(&mut pod("Always", &[("ready", "false")]), 99), ["0: Running running"]);
        let expected = ["0: Pending ContainerCreating", "0: Pending ImagePullBackOff"];
        assert_eq!(live(&mut pod("Always", &[("pull", "fail")]), 99), expected);
    }

    #[test]
    fn what_ends_and_should_not_is_started_again_after_ever_longer_waits() {
        let crashing = &[("run-seconds", "1"), ("exit-code", "1")];
        assert_eq!(
            live(&mut pod("Always", crashing), 40),
            [
                "0: Running running ready",
                "1: Running running ready x1",
                "2: Running CrashLoopBackOff x2",
                "12: Running running ready x2",
                "13: Running CrashLoopBackOff x3",
                "33: Running running ready x3",
                "34: Running CrashLoopBackOff x4",
            ]
        );
        let once = live(&mut pod("OnFailure", &[]), 99);
        assert_eq!(once, ["0: Running running ready", "1: Succeeded Completed 0"]);
    }

    #[test]
    fn it_stops_in_the_time_it_takes_or_is_given() {
        for (takes, grace, expected) in [(0, 30, 0), (5, 30, 5), (60, 30, 30), (5, 0, 0)] {
            let mut leaving = pod("Always", &[("stop-seconds", &takes.to_string())]);
            leaving["metadata"]["deletionTimestamp"] = json!((NOW + seconds(grace)).to_string());
            leaving["metadata"]["deletionGracePeriodSeconds"] = json!(grace);
            assert_eq!(live(&mut leaving, 99), [format!("{expected}: removed")], "{takes} of {grace}");
        }
    }

    #[test]
    fn a_pod_that_was_counted_as_not_ready_is_ready_again() {
        let mut lost = pod("Always", &[]);
        live(&mut lost, 1);
        lost["status"]["conditions"] = json!([{ "type": "Ready", "status": "False" }]);
        let read: Object<Pod> = Object::of(&lost);
        let Step::Report(status) = step(&read, &life(&read), PLACE, NOW) else { panic!() };
        assert!(
            status.items("conditions").iter().any(|one| one.text("type") == "Ready" && one.text("status") == "True")
        );
    }
}
