//! The life of simulated pods, told in words.

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
    let restarts = if container.restart_count > 0 { format!(" x{}", container.restart_count) } else { String::new() };
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
    assert!(status.items("conditions").iter().any(|one| one.text("type") == "Ready" && one.text("status") == "True"));
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
