//! The life of a simulated pod, as a pure function of what is known of it.
//!
//! Unless it says otherwise it runs, and is ready, as soon as it is bound; that takes one write. All containers of a pod
//! do the same at the same time.

use super::life::Life;
use super::resize::{self, Resize};
use super::{restart, status};
use crate::admission::Refusal;
use kinds::{ContainerStatus, Pod, ReadinessGate, Time};
use object::{Edit, Value};
use std::time::Duration;

/// How often a resize is tried again for which there is no room.
const RESIZE_RETRY: Duration = Duration::from_secs(3);

#[derive(Debug, PartialEq)]
pub(super) enum Step {
    /// This is its status now, and what people are told.
    Report(Value, Vec<Remark>),
    /// It has stopped, and can go.
    Remove,
    /// Nothing to do, for so long.
    Wait(Option<Duration>),
}

/// What becomes an event. Pods to which nothing happens have none: there may be very many of them.
#[derive(Debug, PartialEq)]
pub(super) struct Remark {
    pub warning: bool,
    pub reason: String,
    pub message: String,
}

impl Remark {
    fn new(warning: bool, reason: &str, message: impl Into<String>) -> Self {
        Remark { warning, reason: reason.to_owned(), message: message.into() }
    }
}

/// Where a pod is.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place<'a> {
    pub address: &'a str,
    pub host: &'a str,
    /// Whether it may use what it claims.
    pub has_devices: bool,
    /// Why it cannot start there.
    pub refusal: Option<&'a Refusal>,
    /// Whether it can have what it asks for, if that is not what it has.
    pub resize: Option<&'a Resize>,
}

pub(super) fn step(pod: &Pod, life: &Life, place: Place<'_>, now: Time) -> Step {
    let mut step = match pod.metadata.deletion_timestamp {
        Some(deletion) => stop(pod, life, deletion, now),
        None if pod.is_finished() => Step::Wait(None),
        None => live(pod, life, place, now),
    };
    if let Step::Report(status, _) = &mut step {
        status.set("observedGeneration", pod.metadata.generation);
    }
    step
}

fn report(status: Value) -> Step {
    Step::Report(status, Vec::new())
}

/// What is asked to stop stops when it is done, and at the latest when its time is up.
fn stop(pod: &Pod, life: &Life, deletion: Time, now: Time) -> Step {
    let grace = Duration::from_secs(pod.metadata.deletion_grace_period_seconds.unwrap_or(0).unsigned_abs());
    let left = deletion.since(now);
    let asked_for = grace.saturating_sub(left);
    let rest = life.stop.min(grace).saturating_sub(asked_for);
    if !rest.is_zero() {
        return Step::Wait(Some(rest));
    }
    // How it ended is only told where somebody keeps the pod and can see it: all others go with a single write, which
    // decides how fast many pods go at once.
    if pod.metadata.finalizers.is_empty() || pod.is_finished() {
        return Step::Remove;
    }
    let code = if life.stop > grace { status::KILLED } else { status::STOPPED };
    report(status::ended(pod, code, now))
}

/// Until it has been active for as long as it may.
fn live(pod: &Pod, life: &Life, place: Place<'_>, now: Time) -> Step {
    if let Some(refusal) = place.refusal {
        let remark = Remark::new(true, &refusal.reason, &refusal.message);
        return Step::Report(status::rejected(pod, refusal, now), vec![remark]);
    }
    let seconds = pod.spec.active_deadline_seconds.map(|seconds| Duration::from_secs(seconds.unsigned_abs()));
    let deadline = pod.status.start_time.zip(seconds).map(|(start, seconds)| start + seconds);
    if deadline.is_some_and(|deadline| deadline <= now) {
        let remark = Remark::new(false, "DeadlineExceeded", status::OVERDUE);
        return Step::Report(status::overdue(pod, status::KILLED, now), vec![remark]);
    }
    let step = match pod.status.phase.as_str() {
        "Running" => run(pod, life, place, now),
        _ => begin(pod, life, place, now),
    };
    match (step, deadline.map(|deadline| deadline.since(now))) {
        (Step::Wait(rest), Some(left)) => Step::Wait(Some(rest.map_or(left, |rest| rest.min(left)))),
        (step, _) => step,
    }
}

fn begin(pod: &Pod, life: &Life, place: Place<'_>, now: Time) -> Step {
    let waits = !life.is_pullable || !life.delay.is_zero() || !place.has_devices;
    let wait = |rest: Option<Duration>| match waiting_for(pod) {
        // Whoever has changed it wants to know that this was seen.
        Some(reason) if is_behind(pod) => report(status::creating(pod, reason, place, now)),
        _ => Step::Wait(rest),
    };
    match pod.status.start_time {
        None if waits => report(status::creating(pod, "ContainerCreating", place, now)),
        _ if !place.has_devices => wait(None),
        Some(since) if since + life.delay > now => wait(Some((since + life.delay).since(now))),
        _ if life.is_pullable => report(status::running(pod, place, is_ready_at_once(life), now)),
        _ if waiting_for(pod) == Some(NO_IMAGE) => wait(None),
        _ => Step::Report(status::creating(pod, NO_IMAGE, place, now), without_images(pod)),
    }
}

const NO_IMAGE: &str = "ImagePullBackOff";

fn without_images(pod: &Pod) -> Vec<Remark> {
    let image = pod.spec.containers.first().map_or("", |container| container.image.as_str());
    vec![
        Remark::new(false, "BackOff", format!("Back-off pulling image {image:?}")),
        Remark::new(true, "Failed", format!("Error: {NO_IMAGE}")),
    ]
}

fn is_ready_at_once(life: &Life) -> bool {
    life.ready.is_some_and(|delay| delay.is_zero())
}

fn waiting_for(pod: &Pod) -> Option<&str> {
    let container = pod.status.container_statuses.first()?;
    container.state.waiting.as_ref().map(|waiting| waiting.reason.as_str())
}

/// Whether what was reported is of an earlier version of what is wanted.
fn is_behind(pod: &Pod) -> bool {
    pod.status.observed_generation != pod.metadata.generation
}

fn run(pod: &Pod, life: &Life, place: Place<'_>, now: Time) -> Step {
    let container = pod.status.container_statuses.first();
    let restarts = container.map_or(0, |container| container.restart_count);
    if let Some(ended) = container.and_then(ended_and_waits) {
        let again = ended + restart::backoff(restarts);
        return match again <= now {
            true => report(status::restarted(pod, is_ready_at_once(life), now)),
            false => Step::Wait(Some(again.since(now))),
        };
    }
    let running = container.and_then(|container| container.state.running.as_ref()?.started_at);
    let since = running.or(pod.status.start_time).unwrap_or(now);
    let end = life.run.map(|run| since + run);
    if end.is_some_and(|end| end <= now) {
        return end_of_run(pod, life, restarts, now.since(since), now);
    }
    let ready_at = life.ready.map(|delay| since + delay);
    let works = ready_at.is_some_and(|at| at <= now);
    if let Some(step) = place.resize.and_then(|resize| take_on_size(pod, life, resize, works, now)) {
        return step;
    }
    let wanted = works && gates_are_open(pod);
    if pod.is_ready() != wanted || container.is_some_and(|container| container.ready != works) || is_behind(pod) {
        return report(status::readiness(pod, works, now));
    }
    let retry = matches!(place.resize, Some(Resize::Pending { reason: resize::DEFERRED, .. }));
    let retry = retry.then(|| now + RESIZE_RETRY);
    let next = ready_at.filter(|at| *at > now).into_iter().chain(end).chain(retry).min();
    Step::Wait(next.map(|next| next.since(now)))
}

/// A resize is done, or it is told why it is not, unless that is known.
fn take_on_size(pod: &Pod, life: &Life, resize: &Resize, works: bool, now: Time) -> Option<Step> {
    match resize {
        Resize::Granted => {
            let restarts = || pod.spec.containers.iter().zip(pod.status.container_statuses.iter());
            let restarted = restarts().any(|(one, before)| resize::needs_restart(pod, one, Some(before)));
            let ready = works && (!restarted || is_ready_at_once(life));
            Some(report(status::resized(pod, ready, now)))
        }
        Resize::Pending { reason, message } => {
            let known = pod.condition(status::RESIZE_PENDING).is_some_and(|told| {
                told.reason == *reason
                    && told.message == *message
                    && told.observed_generation == pod.metadata.generation
            });
            (!known).then(|| report(status::pending(pod, works, reason, message, now)))
        }
    }
}

/// When a container ended that is to be started again.
fn ended_and_waits(container: &ContainerStatus) -> Option<Time> {
    container.state.waiting.as_ref()?;
    container.last_state.terminated.as_ref()?.finished_at
}

fn end_of_run(pod: &Pod, life: &Life, restarts: i32, ran: Duration, now: Time) -> Step {
    let code = life.code(pod, restarts);
    if !restart::is_due(pod, code) {
        return report(status::ended(pod, code, now));
    }
    let wait = restart::backoff_after(ran, restarts + 1);
    if wait.is_zero() {
        return report(status::restarted_after(pod, code, now));
    }
    let remark = |name: &str| {
        let message = format!("Back-off restarting failed container {name} in pod {}", status::described(pod));
        Remark::new(true, "BackOff", message)
    };
    let remarks = pod.spec.containers.iter().map(|container| remark(&container.name)).collect();
    Step::Report(status::backing_off(pod, code, wait, now), remarks)
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
    use std::cell::Cell;

    const NOW: Time = Time::from_seconds(1_767_225_600);
    const PLACE: Place<'static> =
        Place { address: "10.0.0.1", host: "10.1.0.1", has_devices: true, refusal: None, resize: None };

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
            "metadata": {
                "name": "a", "namespace": "default", "uid": "u", "generation": 1, "annotations": annotations,
            },
            "spec": { "restartPolicy": policy, "containers": [{ "name": "c", "image": "web" }] },
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
        let Step::Report(status, _) = step(&read, &life(&read), without, NOW) else { panic!("it says nothing") };
        waiting["status"] = status;
        let read: Object<Pod> = Object::of(&waiting);
        assert_eq!(words(&read), "Pending ContainerCreating");
        assert_eq!(step(&read, &life(&read), without, NOW), Step::Wait(None));
        assert_eq!(live(&mut waiting, 1), ["0: Running running ready"]);
    }

    /// Lets a pod live until nothing happens any more or `until` has passed: what it reports and when, in words.
    fn live(pod: &mut Value, until: u64) -> Vec<String> {
        live_with(pod, until, |_, _| None)
    }

    /// The same where `resize` says what becomes of a resize, so many seconds after the beginning.
    fn live_with(pod: &mut Value, until: u64, resize: impl Fn(&Pod, u64) -> Option<Resize>) -> Vec<String> {
        let mut told = Vec::new();
        let mut now = NOW;
        while now <= NOW + seconds(until) {
            let read: Object<Pod> = Object::of(pod);
            let resize = resize(&read, now.since(NOW).as_secs());
            match step(&read, &life(&read), Place { resize: resize.as_ref(), ..PLACE }, now) {
                Step::Report(status, remarks) => {
                    for (field, value) in status.as_object().unwrap() {
                        pod["status"][field] = value.clone();
                    }
                    told.push(format!("{}: {}", now.since(NOW).as_secs(), words(&Object::of(pod))));
                    told.extend(remarks.into_iter().map(|remark| format!("{}: {}", remark.reason, remark.message)));
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
        let expected = [
            "0: Pending ContainerCreating",
            "0: Pending ImagePullBackOff",
            "BackOff: Back-off pulling image \"web\"",
            "Failed: Error: ImagePullBackOff",
        ];
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
                "BackOff: Back-off restarting failed container c in pod a_default(u)",
                "12: Running running ready x2",
                "13: Running CrashLoopBackOff x3",
                "BackOff: Back-off restarting failed container c in pod a_default(u)",
                "33: Running running ready x3",
                "34: Running CrashLoopBackOff x4",
                "BackOff: Back-off restarting failed container c in pod a_default(u)",
            ]
        );
        let long = &[("run-seconds", "600"), ("exit-code", "1")];
        assert_eq!(live(&mut pod("Always", long), 1300).last().unwrap(), "1200: Running running ready x2");
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
        let Step::Report(status, _) = step(&read, &life(&read), PLACE, NOW) else { panic!() };
        assert!(
            status.items("conditions").iter().any(|one| one.text("type") == "Ready" && one.text("status") == "True")
        );
    }

    #[test]
    fn a_pod_is_active_for_as_long_as_it_may() {
        for (said, expected) in [
            (&[][..], &["0: Running running ready", "5: Failed Error 137"][..]),
            (&[("start-seconds", "9")], &["0: Pending ContainerCreating", "5: Failed Error 137"]),
            (
                &[("run-seconds", "3"), ("exit-code", "1")],
                &["0: Running running ready", "3: Running running ready x1", "5: Failed Error 137 x1"],
            ),
        ] {
            let mut pod = pod("Always", said);
            pod["spec"]["activeDeadlineSeconds"] = json!(5);
            let mut told = live(&mut pod, 99);
            let why = "DeadlineExceeded: Pod was active on the node longer than the specified deadline";
            assert_eq!(told.pop().as_deref(), Some(why));
            assert_eq!(told, expected);
            assert_eq!(pod["status"].text("reason"), "DeadlineExceeded");
        }
    }

    #[test]
    fn a_pod_that_somebody_keeps_tells_how_it_ended_before_it_goes() {
        for (takes, grace, expected) in [(0, 30, "0: Failed Error 143"), (60, 30, "30: Failed Error 137")] {
            let mut leaving = pod("Always", &[("stop-seconds", &takes.to_string())]);
            live(&mut leaving, 0);
            leaving["metadata"]["finalizers"] = json!(["example.com/kept"]);
            leaving["metadata"]["deletionTimestamp"] = json!((NOW + seconds(grace)).to_string());
            leaving["metadata"]["deletionGracePeriodSeconds"] = json!(grace);
            let removed = format!("{}: removed", expected.split_once(':').unwrap().0);
            assert_eq!(live(&mut leaving, 99), [expected.to_owned(), removed]);
        }
    }

    #[test]
    fn a_pod_that_is_not_taken_has_failed() {
        let refused: Object<Pod> = Object::of(&pod("Always", &[]));
        let refusal = Refusal { reason: "OutOfcpu".to_owned(), message: "none left".to_owned() };
        let place = Place { refusal: Some(&refusal), ..PLACE };
        let Step::Report(status, remarks) = step(&refused, &life(&refused), place, NOW) else { panic!() };
        assert_eq!([status.text("phase"), status.text("reason")], ["Failed", "OutOfcpu"]);
        assert_eq!(status.text("message"), "Pod was rejected: none left");
        assert_eq!(remarks, [Remark::new(true, "OutOfcpu", "none left")]);
    }

    #[test]
    fn every_report_says_which_version_it_is_about() {
        let mut changed = pod("Always", &[]);
        changed["status"] =
            json!({ "conditions": [{ "type": "PodScheduled", "status": "True", "observedGeneration": 1 }] });
        for generation in [1, 2] {
            changed["metadata"]["generation"] = json!(generation);
            assert_eq!(live(&mut changed, 9), ["0: Running running ready"]);
            let read: Object<Pod> = Object::of(&changed);
            assert_eq!(read.status.observed_generation, generation);
            let of = |kind: &str| read.condition(kind).unwrap().observed_generation;
            assert_eq!((of("Ready"), of("PodScheduled")), (generation, 1));
        }
        let mut waiting = pod("Always", &[("pull", "fail")]);
        live(&mut waiting, 9);
        waiting["metadata"]["generation"] = json!(2);
        assert_eq!(live(&mut waiting, 9), ["0: Pending ImagePullBackOff"]);
    }

    /// A pod that runs and asks for other amounts than it has: two containers, of which one has to be started again.
    fn resizing(cpu: &str) -> Value {
        let mut pod = pod("Always", &[]);
        let restart = json!([{ "resourceName": "cpu", "restartPolicy": "RestartContainer" }]);
        let container = |name: &str, cpu: &str, policy: &Value| {
            let requests = json!({ "cpu": cpu, "memory": "1Gi" });
            json!({ "name": name, "resources": { "requests": requests }, "resizePolicy": policy })
        };
        pod["spec"]["containers"] = json!([container("c", "1", &json!([])), container("d", "1", &restart)]);
        live(&mut pod, 0);
        pod["spec"]["containers"] = json!([container("c", cpu, &json!([])), container("d", cpu, &restart)]);
        pod["metadata"]["generation"] = json!(2);
        pod
    }

    fn sizes(pod: &Value) -> Vec<String> {
        let size = |status: &Value| {
            let has = status.path(&["resources", "requests", "cpu"]).as_str().unwrap_or_default();
            let promised = status.path(&["allocatedResources", "cpu"]).as_str().unwrap_or_default();
            format!("{has}/{promised} x{}", status["restartCount"])
        };
        pod["status"].items("containerStatuses").iter().map(size).collect()
    }

    #[test]
    fn a_resize_starts_only_those_again_that_need_it() {
        let mut pod = resizing("2");
        let granted = |pod: &Pod, _: u64| resize::is_wanted(pod).then_some(Resize::Granted);
        assert_eq!(live_with(&mut pod, 9, granted), ["0: Running running ready"]);
        assert_eq!(sizes(&pod), ["2/2 x0", "2/2 x1"]);
        let read: Object<Pod> = Object::of(&pod);
        let [kept, again] = &read.status.container_statuses[..] else { panic!() };
        assert!(kept.last_state.terminated.is_none());
        assert_eq!(again.last_state.terminated.as_ref().unwrap().exit_code, status::STOPPED);
        assert!(!read.is_resizing());
    }

    #[test]
    fn a_resize_without_room_is_tried_again_and_told_meanwhile() {
        let mut pod = resizing("2");
        let tries = Cell::new(0);
        let later = |pod: &Pod, second: u64| {
            tries.set(tries.get() + 1);
            let deferred = Resize::Pending { reason: resize::DEFERRED, message: "no room".to_owned() };
            resize::is_wanted(pod).then_some(if second < 6 { deferred } else { Resize::Granted })
        };
        assert_eq!(live_with(&mut pod, 5, later), ["0: Running running ready"]);
        assert_eq!(sizes(&pod), ["1/1 x0", "1/1 x0"]);
        let read: Object<Pod> = Object::of(&pod);
        let pending = read.condition(status::RESIZE_PENDING).unwrap();
        let said = (pending.reason.as_str(), pending.message.as_str(), pending.observed_generation);
        assert_eq!(said, (resize::DEFERRED, "no room", 2));
        assert_eq!(tries.get(), 3, "once to tell, then every three seconds");
        assert_eq!(live_with(&mut pod, 99, later), ["6: Running running ready"]);
        assert_eq!(sizes(&pod), ["2/2 x0", "2/2 x1"]);
        assert!(Object::<Pod>::of(&pod).condition(status::RESIZE_PENDING).is_none());
    }

    #[test]
    fn a_resize_that_is_taken_back_is_not_pending_any_more() {
        let mut pod = resizing("64");
        let never = || Resize::Pending { reason: resize::INFEASIBLE, message: "too much".to_owned() };
        let decide = |pod: &Pod, _: u64| resize::is_wanted(pod).then(never);
        assert_eq!(live_with(&mut pod, 99, decide), ["0: Running running ready"]);
        assert_eq!(sizes(&pod), ["1/1 x0", "1/1 x0"]);
        pod["spec"] = resizing("1")["spec"].clone();
        pod["metadata"]["generation"] = json!(3);
        assert_eq!(live_with(&mut pod, 99, decide), ["0: Running running ready"]);
        assert!(Object::<Pod>::of(&pod).condition(status::RESIZE_PENDING).is_none());
    }

    #[test]
    fn a_pod_with_amounts_of_its_own_says_what_it_has() {
        let mut pod = pod("Always", &[]);
        pod["spec"]["resources"] = json!({ "requests": { "cpu": "2" }, "limits": { "cpu": "3" } });
        live(&mut pod, 0);
        assert_eq!(pod["status"]["resources"], pod["spec"]["resources"]);
        assert_eq!(pod["status"]["allocatedResources"], json!({ "cpu": "2" }));
        assert_eq!(pod["status"]["containerStatuses"][0]["resources"], json!({}));
    }
}
