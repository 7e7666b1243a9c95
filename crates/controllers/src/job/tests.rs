//! Whole lives of jobs: the loop against pods that succeed and fail as told.

use super::*;
use crate::fixture::{NOW, World};
use std::cell::RefCell;
use std::time::Duration;

struct Run {
    world: World,
    failures: RefCell<Failures>,
}

impl Run {
    fn new(edit: impl FnOnce(&mut Value)) -> Self {
        let mut world = World::new();
        let mut job = json!({
            "metadata": { "name": "work", "uid": "j" },
            "spec": {
                "parallelism": 2,
                "completions": 3,
                "backoffLimit": 6,
                "completionMode": "NonIndexed",
                "suspend": false,
                "podReplacementPolicy": "TerminatingOrFailed",
                "selector": { "matchLabels": { "job": "j" } },
                "template": {
                    "metadata": { "labels": { "job": "j" } },
                    "spec": { "restartPolicy": "Never", "containers": [{ "name": "main" }] },
                },
            },
        });
        edit(job.object_or_new("spec"));
        world.create::<Job>(job);
        Run { world, failures: RefCell::default() }
    }

    fn indexed(edit: impl FnOnce(&mut Value)) -> Self {
        Run::new(|spec| {
            spec["completionMode"] = json!("Indexed");
            edit(spec);
        })
    }

    fn settle(&mut self) -> Option<Duration> {
        let failures = &self.failures;
        self.world
            .settle("work", &|caches, request| plan(&observe(caches, request), request, &mut failures.borrow_mut()))
    }

    fn update(&mut self, edit: impl FnOnce(&mut Value)) {
        self.world.edit::<Job>("work", |job| edit(job.object_or_new("spec")));
    }

    /// Pods that have not ended, with their indexes.
    fn running(&self) -> Vec<(String, String)> {
        let runs = |pod: &&Value| !matches!(pod.at("status").text("phase"), "Succeeded" | "Failed");
        let describe = |pod: &Value| {
            let metadata = pod.at("metadata");
            (metadata.text("name").to_owned(), metadata.at("annotations").text(tally::INDEX).to_owned())
        };
        let mut running: Vec<_> = self.world.all::<Pod>().iter().filter(runs).map(describe).collect();
        running.sort_by(|a, b| a.1.cmp(&b.1).then_with(|| a.0.cmp(&b.0)));
        running
    }

    fn indexes(&self) -> Vec<String> {
        self.running().into_iter().map(|(_, index)| index).collect()
    }

    fn end(&mut self, name: &str, phase: &str, code: i32) {
        let now = self.world.now;
        self.world.edit::<Pod>(name, |pod| {
            let terminated = json!({ "exitCode": code, "finishedAt": now });
            let containers = json!([{ "name": "main", "state": { "terminated": terminated } }]);
            pod["status"] = json!({ "phase": phase, "containerStatuses": containers });
        });
    }

    fn end_all(&mut self, phase: &str) {
        for (name, _) in self.running() {
            self.end(&name, phase, i32::from(phase == "Failed"));
        }
    }

    fn end_index(&mut self, index: &str, phase: &str, code: i32) {
        let found = self.running().into_iter().find(|(_, other)| other == index);
        let (name, _) = found.unwrap_or_else(|| panic!("no pod with index {index}: {:?}", self.running()));
        self.end(&name, phase, code);
    }

    fn pass(&mut self, seconds: u64) {
        self.world.now = self.world.now + Duration::from_secs(seconds);
    }

    fn status(&self) -> Value {
        self.world.get::<Job>("work").at("status").clone()
    }

    /// The reason of a condition that is true.
    fn reason(&self, kind: &str) -> String {
        let status = self.status();
        let is = |condition: &&Value| condition.text("type") == kind && condition.text("status") == "True";
        status.items("conditions").iter().find(is).map_or("", |condition| condition.text("reason")).to_owned()
    }
}

#[test]
fn a_job_runs_as_many_pods_as_it_may_until_enough_have_succeeded() {
    let mut run = Run::new(|_| {});
    run.settle();
    assert_eq!(run.running().len(), 2);
    assert_eq!(
        run.status(),
        json!({ "active": 2, "ready": 0, "terminating": 0, "startTime": NOW, "uncountedTerminatedPods": {} })
    );
    let pod = run.world.all::<Pod>()[0].clone();
    assert_eq!(pod["metadata"]["finalizers"], json!([JOB_TRACKING]));
    run.end_all("Succeeded");
    run.settle();
    assert_eq!((run.running().len(), run.status()["succeeded"].clone()), (1, json!(2)));
    run.pass(60);
    run.end_all("Succeeded");
    run.settle();
    let status = run.status();
    assert_eq!(run.reason("Complete"), "CompletionsReached");
    assert_eq!(run.reason("SuccessCriteriaMet"), "CompletionsReached");
    assert_eq!((&status["succeeded"], &status["completionTime"]), (&json!(3), &json!(NOW + Duration::from_secs(60))));
    assert_eq!(run.world.events.last().unwrap(), "Normal Completed Job completed");
    assert!(run.world.all::<Pod>().iter().all(|pod| pod["metadata"]["finalizers"] == json!([])));
}

#[test]
fn without_a_number_one_success_is_enough_once_the_others_have_ended() {
    let mut run = Run::new(|spec| spec["completions"] = Value::Null);
    run.settle();
    let name = run.running()[0].0.clone();
    run.end(&name, "Succeeded", 0);
    run.settle();
    assert_eq!((run.running().len(), run.reason("Complete")), (1, String::new()));
    run.end_all("Failed");
    run.settle();
    assert_eq!(run.reason("Complete"), "CompletionsReached");
}

#[test]
fn failed_pods_are_replaced_ever_later_until_there_are_too_many() {
    let mut run = Run::new(|spec| {
        spec["parallelism"] = json!(1);
        spec["backoffLimit"] = json!(2);
    });
    run.settle();
    for seconds in [10, 20] {
        run.end_all("Failed");
        assert_eq!(run.settle(), Some(Duration::from_secs(seconds)));
        assert!(run.running().is_empty());
        run.pass(seconds);
        run.settle();
        assert_eq!(run.running().len(), 1);
    }
    run.end_all("Failed");
    run.settle();
    assert_eq!(
        (run.reason("FailureTarget"), run.reason("Failed")),
        ("BackoffLimitExceeded".into(), "BackoffLimitExceeded".into())
    );
    assert_eq!(run.status()["failed"], 3);
    assert_eq!(
        run.world.events.last().unwrap(),
        "Warning BackoffLimitExceeded Job has reached the specified backoff limit"
    );
}

#[test]
fn a_job_has_ended_only_when_its_last_pod_is_gone() {
    let mut run = Run::new(|spec| spec["activeDeadlineSeconds"] = json!(30));
    assert_eq!(run.settle(), Some(Duration::from_secs(30)));
    for pod in run.world.all::<Pod>() {
        // A node takes its time.
        run.world.edit::<Pod>(pod.at("metadata").text("name"), |pod| {
            pod["metadata"]["finalizers"] = json!([JOB_TRACKING, "node"]);
            pod["status"] = json!({ "phase": "Running" });
        });
    }
    run.pass(30);
    run.settle();
    assert_eq!((run.reason("FailureTarget"), run.reason("Failed")), ("DeadlineExceeded".into(), String::new()));
    assert_eq!((&run.status()["terminating"], &run.status()["failed"]), (&json!(2), &json!(2)));
    for name in run.world.names::<Pod>().iter().map(|name| (*name).to_owned()).collect::<Vec<_>>() {
        run.world.remove::<Pod>(&name);
    }
    run.settle();
    assert_eq!(run.reason("Failed"), "DeadlineExceeded");
}

#[test]
fn a_job_that_may_take_no_time_ends_before_it_begins() {
    let mut run = Run::new(|spec| spec["activeDeadlineSeconds"] = json!(0));
    run.settle();
    assert_eq!(run.reason("Failed"), "DeadlineExceeded");
    assert!(!run.world.writes.iter().any(|write| write.starts_with("create pods")), "{:?}", run.world.writes);
}

#[test]
fn restarts_in_place_count_as_failures() {
    let mut run = Run::new(|spec| {
        spec["template"]["spec"]["restartPolicy"] = json!("OnFailure");
        spec["backoffLimit"] = json!(3);
    });
    run.settle();
    for pod in run.world.all::<Pod>() {
        run.world.edit::<Pod>(pod.at("metadata").text("name"), |pod| {
            pod["status"] = json!({ "phase": "Running", "containerStatuses": [{ "name": "main", "restartCount": 2 }] });
        });
    }
    run.settle();
    assert_eq!(run.reason("Failed"), "BackoffLimitExceeded");
    assert!(run.running().is_empty());
}

#[test]
fn a_suspended_job_runs_nothing_and_starts_anew_when_it_is_resumed() {
    let mut run = Run::new(|_| {});
    run.settle();
    run.update(|spec| spec["suspend"] = json!(true));
    run.settle();
    let status = run.status();
    assert_eq!((run.running().len(), run.reason("Suspended")), (0, "JobSuspended".into()));
    assert!(!status.has("startTime") && !status.has("failed"), "{status}");
    run.pass(100);
    run.update(|spec| spec["suspend"] = json!(false));
    run.settle();
    assert_eq!((run.running().len(), run.status()["startTime"].clone()), (2, json!(NOW + Duration::from_secs(100))));
    let told: Vec<_> = run.world.events.iter().filter(|event| event.contains("Job ")).collect();
    assert_eq!(told, ["Normal Suspended Job suspended", "Normal Resumed Job resumed"]);
}

#[test]
fn pods_that_were_not_wanted_any_more_delay_nothing() {
    let mut run = Run::new(|_| {});
    run.settle();
    for (name, _) in run.running() {
        run.world.edit::<Pod>(&name, |pod| pod["metadata"]["finalizers"] = json!([JOB_TRACKING, "node"]));
    }
    for suspended in [true, false] {
        run.update(|spec| spec["suspend"] = json!(suspended));
        run.settle();
    }
    let status = run.status();
    assert_eq!((&status["active"], &status["terminating"], status.has("failed")), (&json!(2), &json!(2), false));
}

#[test]
fn fewer_pods_run_when_fewer_are_wanted_and_that_is_no_failure() {
    let mut run = Run::new(|_| {});
    run.settle();
    run.update(|spec| spec["parallelism"] = json!(1));
    run.settle();
    assert_eq!(run.running().len(), 1);
    assert!(!run.status().has("failed"));
}

#[test]
fn every_index_succeeds_once() {
    let mut run = Run::indexed(|spec| spec["completions"] = json!(4));
    run.settle();
    assert_eq!(run.indexes(), ["0", "1"]);
    let pod = run.world.all::<Pod>()[0].clone();
    assert_eq!(pod["metadata"]["labels"][tally::INDEX], "0");
    assert!(pod["metadata"]["name"].as_str().unwrap().starts_with("work-0-"));
    assert_eq!(pod["spec"]["hostname"], "work-0");
    assert_eq!(pod["spec"]["containers"][0]["env"][0]["name"], "JOB_COMPLETION_INDEX");
    run.end_index("1", "Succeeded", 0);
    run.settle();
    assert_eq!((run.indexes(), run.status()["completedIndexes"].clone()), (vec!["0".into(), "2".into()], json!("1")));
    run.end_all("Succeeded");
    run.settle();
    run.end_all("Succeeded");
    run.settle();
    assert_eq!((run.status()["completedIndexes"].clone(), run.status()["succeeded"].clone()), (json!("0-3"), json!(4)));
    assert_eq!(run.reason("Complete"), "CompletionsReached");
}

#[test]
fn of_two_pods_with_the_same_index_one_goes() {
    let mut run = Run::indexed(|_| {});
    run.settle();
    let mut twin = run.world.all::<Pod>()[0].clone();
    let metadata = twin.object_or_new("metadata");
    metadata.set("name", "twin");
    metadata.set("uid", "twin");
    run.world.create::<Pod>(twin);
    run.settle();
    assert_eq!(run.indexes(), ["0", "1"]);
}

#[test]
fn indexes_fail_each_by_themselves_if_they_have_limits_of_their_own() {
    let mut run = Run::indexed(|spec| {
        spec["backoffLimitPerIndex"] = json!(1);
        spec["backoffLimit"] = json!(i32::MAX);
        spec["completions"] = json!(2);
    });
    run.settle();
    run.end_index("0", "Failed", 1);
    assert_eq!(run.settle(), Some(Duration::from_secs(10)));
    assert_eq!(run.indexes(), ["1"]);
    run.pass(10);
    run.settle();
    assert_eq!(run.indexes(), ["0", "1"]);
    let again = run.running()[0].0.clone();
    assert_eq!(run.world.get::<Pod>(&again)["metadata"]["annotations"][tally::INDEX_FAILURES], "1");
    run.end_index("0", "Failed", 1);
    run.settle();
    assert_eq!((run.status()["failedIndexes"].clone(), run.indexes()), (json!("0"), vec!["1".to_owned()]));
    run.end_index("1", "Succeeded", 0);
    run.settle();
    assert_eq!((run.reason("Failed"), run.status()["failed"].clone()), ("FailedIndexes".into(), json!(2)));
}

#[test]
fn too_many_failed_indexes_end_the_job() {
    let mut run = Run::indexed(|spec| {
        spec["backoffLimitPerIndex"] = json!(0);
        spec["maxFailedIndexes"] = json!(0);
    });
    run.settle();
    run.end_index("0", "Failed", 1);
    run.settle();
    assert_eq!(run.reason("Failed"), "MaxFailedIndexesExceeded");
    assert!(run.running().is_empty());
}

#[test]
fn what_failures_mean_can_be_said() {
    for (action, ends, failed) in [("FailJob", true, 2), ("Ignore", false, 0), ("Count", false, 1)] {
        let mut run = Run::new(|spec| {
            spec["podReplacementPolicy"] = json!("Failed");
            spec["podFailurePolicy"] =
                json!({ "rules": [{ "action": action, "onExitCodes": { "operator": "In", "values": [42] } }] });
        });
        run.settle();
        let name = run.running()[0].0.clone();
        run.end(&name, "Failed", 42);
        run.settle();
        let reason = if ends { "PodFailurePolicy" } else { "" };
        assert_eq!(run.reason("Failed"), reason, "{action}");
        assert_eq!(run.status().int("failed").unwrap_or(0), failed, "{action}");
    }
}

#[test]
fn some_indexes_may_be_enough() {
    let mut run = Run::indexed(|spec| spec["successPolicy"] = json!({ "rules": [{ "succeededIndexes": "0" }] }));
    run.settle();
    run.end_index("0", "Succeeded", 0);
    run.settle();
    assert_eq!(run.reason("Complete"), "SuccessPolicy");
    assert!(run.running().is_empty() && !run.status().has("failed"));
}

#[test]
fn a_pod_that_is_leaving_is_replaced_at_once_or_when_it_is_gone() {
    for (policy, replaced, failed) in [("TerminatingOrFailed", false, 1), ("Failed", false, 0)] {
        let mut run = Run::new(|spec| {
            spec["parallelism"] = json!(1);
            spec["podReplacementPolicy"] = json!(policy);
        });
        run.settle();
        let name = run.running()[0].0.clone();
        run.world.edit::<Pod>(&name, |pod| {
            pod["metadata"]["finalizers"] = json!([JOB_TRACKING, "node"]);
            pod["metadata"]["deletionTimestamp"] = json!(NOW);
        });
        run.settle();
        assert_eq!(run.status().int("failed").unwrap_or(0), failed, "{policy}");
        assert_eq!(run.running().len() > 1, replaced, "{policy}");
        run.pass(10);
        run.settle();
        assert_eq!(run.running().len() > 1, policy == "TerminatingOrFailed", "{policy}");
    }
}

#[test]
fn a_pod_that_was_noted_as_failed_and_succeeds_while_it_goes_is_not_counted_twice() {
    for mode in ["NonIndexed", "Indexed"] {
        let mut run = Run::new(|spec| spec["completionMode"] = json!(mode));
        run.settle();
        let (name, _) = run.running()[0].clone();
        let uid = run.world.get::<Pod>(&name)["metadata"]["uid"].clone();
        // Its finalizer could not be removed, since the pod changed just then.
        run.world.edit::<Job>("work", |job| job["status"]["uncountedTerminatedPods"] = json!({ "failed": [uid] }));
        run.world.edit::<Pod>(&name, |pod| pod["metadata"]["deletionTimestamp"] = json!(NOW));
        run.end(&name, "Succeeded", 0);
        for _ in 0..3 {
            run.pass(60);
            run.settle();
            run.end_all("Succeeded");
        }
        run.settle();
        let status = run.status();
        assert_eq!((&status["succeeded"], &status["failed"]), (&json!(3), &json!(1)), "{mode}");
        assert_eq!(run.reason("Complete"), "CompletionsReached", "{mode}");
    }
}

#[test]
fn pods_of_a_job_that_is_gone_or_over_are_let_go() {
    let mut run = Run::new(|_| {});
    run.settle();
    run.world.remove::<Job>("work");
    run.settle();
    assert!(run.world.all::<Pod>().iter().all(|pod| pod["metadata"]["finalizers"] == json!([])));
    // The next job of the name has pods of its own.
    let old = run.world.names::<Pod>().len();
    let mut next = Run::new(|_| {});
    next.settle();
    assert_eq!(next.running().len(), old);
}

#[test]
fn a_pod_that_waits_to_be_counted_and_is_nobodys_any_more_is_let_go_unless_it_is_adopted() {
    for (what, job_is_there, is_deleted, expected) in [
        ("its job is gone", false, false, json!([])),
        ("its job will have it back", true, false, json!([JOB_TRACKING])),
        ("it is being deleted, and so not adopted", true, true, json!(["node"])),
    ] {
        let mut run = Run::new(|spec| spec["parallelism"] = json!(1));
        if !job_is_there {
            run.world.remove::<Job>("work");
        }
        let finalizers = if is_deleted { json!([JOB_TRACKING, "node"]) } else { json!([JOB_TRACKING]) };
        let mut metadata =
            json!({ "name": "orphan", "labels": { "job": "j", JOB_NAME: "work" }, "finalizers": finalizers });
        if is_deleted {
            metadata["deletionTimestamp"] = json!(NOW);
        }
        run.world.create::<Pod>(json!({ "metadata": metadata, "spec": {}, "status": { "phase": "Running" } }));
        run.settle();
        assert_eq!(run.world.get::<Pod>("orphan")["metadata"]["finalizers"], expected, "{what}");
    }
}

#[test]
fn pods_are_adopted_together_with_the_duty_to_count_them() {
    let mut run = Run::new(|spec| spec["parallelism"] = json!(1));
    let metadata = json!({ "name": "orphan", "labels": { "job": "j" } });
    run.world.create::<Pod>(json!({ "metadata": metadata, "spec": {}, "status": { "phase": "Running" } }));
    run.settle();
    let pod = run.world.get::<Pod>("orphan");
    assert_eq!(
        (&pod["metadata"]["finalizers"], &pod["metadata"]["ownerReferences"][0]["uid"]),
        (&json!([JOB_TRACKING]), &json!("j"))
    );
    run.world.edit::<Pod>("orphan", |pod| pod["metadata"]["labels"] = json!({}));
    run.settle();
    assert_eq!(run.world.get::<Pod>("orphan")["metadata"]["finalizers"], json!([]));
}

#[test]
fn what_others_manage_is_left_to_them() {
    let mut run = Run::new(|spec| spec["managedBy"] = json!("example.com/queue"));
    run.settle();
    assert!(run.world.names::<Pod>().is_empty() && run.status().is_null());
}

#[test]
fn a_crash_when_as_many_pods_as_fit_are_noted_does_not_keep_them_for_ever() {
    let mut run = Run::new(|spec| {
        spec["parallelism"] = json!(501);
        spec["completions"] = json!(501);
    });
    run.settle();
    run.end_all("Succeeded");
    // The notes are written, and not one pod is let go.
    run.world.crash_after = Some(run.world.writes.len() + 1);
    run.settle();
    assert_eq!((run.reason("Complete"), &run.status()["succeeded"]), ("CompletionsReached".into(), &json!(501)));
}

#[test]
fn the_deadline_holds_for_a_job_that_is_being_deleted_too() {
    let mut run = Run::new(|spec| spec["activeDeadlineSeconds"] = json!(30));
    run.settle();
    run.world.edit::<Job>("work", |job| {
        job["metadata"]["finalizers"] = json!(["example.com/bill"]);
        job["metadata"]["deletionTimestamp"] = json!(NOW);
    });
    assert_eq!(run.settle(), Some(Duration::from_secs(30)));
    assert_eq!(run.running().len(), 2);
    run.pass(30);
    run.settle();
    assert_eq!((run.running().len(), run.reason("Failed")), (0, "DeadlineExceeded".into()));
}

#[test]
fn a_crash_after_any_write_neither_loses_nor_repeats_a_count() {
    for indexed in [false, true] {
        let edit = |spec: &mut Value| spec["completionMode"] = json!(if indexed { "Indexed" } else { "NonIndexed" });
        for crash in 0..30 {
            let mut run = Run::new(edit);
            run.world.crash_after = Some(crash);
            run.settle();
            let name = run.running()[0].0.clone();
            run.end(&name, "Failed", 1);
            run.settle();
            run.pass(10);
            while run.reason("Complete").is_empty() {
                run.settle();
                assert!(run.running().len() <= 2, "{crash}");
                run.end_all("Succeeded");
                run.settle();
            }
            let status = run.status();
            assert_eq!((&status["succeeded"], &status["failed"]), (&json!(3), &json!(1)), "{crash} {indexed}");
            assert_eq!(run.world.names::<Pod>().len(), 4, "{crash} {indexed}");
        }
    }
}
