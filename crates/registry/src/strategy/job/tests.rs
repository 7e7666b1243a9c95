//! Mistakes in manifests of jobs and cron jobs, and the words for them.

use crate::strategy::check::{each_change_makes_its_mistakes, prepared, with};
use object::field::Errors;
use object::{Value, json};

fn job() -> Value {
    json!({
        "metadata": { "name": "a", "namespace": "n", "uid": "1" },
        "spec": { "template": { "spec": {
            "containers": [{ "name": "a", "image": "nginx" }], "restartPolicy": "Never",
        } } },
    })
}

fn cron_job() -> Value {
    json!({
        "metadata": { "name": "a", "namespace": "n" },
        "spec": { "schedule": "*/5 * * * *", "jobTemplate": { "spec": job()["spec"] } },
    })
}

#[test]
fn a_job_selects_its_pods_by_its_own_uid() {
    let object = prepared("Job", &job(), None);
    assert_eq!(object["spec"]["selector"], json!({ "matchLabels": { "batch.kubernetes.io/controller-uid": "1" } }));
    let labels = json!({ "batch.kubernetes.io/controller-uid": "1", "batch.kubernetes.io/job-name": "a",
        "controller-uid": "1", "job-name": "a" });
    assert_eq!(object["spec"]["template"]["metadata"]["labels"], labels);
    assert_eq!(object["spec"]["backoffLimit"], 6);
    assert_eq!((&object["spec"]["completions"], &object["spec"]["parallelism"]), (&json!(1), &json!(1)));
    assert_eq!(object["spec"]["podReplacementPolicy"], "TerminatingOrFailed");
    let manual = with(&job(), "spec.manualSelector", &json!(true));
    assert_eq!(prepared("Job", &manual, None)["spec"].get("selector"), None);
}

#[test]
fn jobs_end_and_say_how() {
    let indexed = with(&with(&job(), "spec.completionMode", &json!("Indexed")), "spec.completions", &json!(3));
    let indexed = with(&indexed, "spec.parallelism", &json!(1));
    let policy = |rule: Value| json!({ "rules": [rule] });
    each_change_makes_its_mistakes(
        "Job",
        &job(),
        &[
            (
                "spec.template.spec.restartPolicy",
                Value::Null,
                "spec.template.spec.restartPolicy: Required value: valid values: \"OnFailure\", \"Never\"",
            ),
            ("spec.parallelism", json!(-1), "spec.parallelism: Invalid value: -1: must be greater than or equal to 0"),
            (
                "spec.completionMode",
                json!("Sorted"),
                "spec.completionMode: Unsupported value: \"Sorted\": supported values: \"NonIndexed\", \"Indexed\"",
            ),
            (
                "spec.backoffLimitPerIndex",
                json!(1),
                "spec.backoffLimitPerIndex: Invalid value: 1: requires indexed completion mode",
            ),
            (
                "spec.managedBy",
                json!("me"),
                "spec.managedBy: Invalid value: \"me\": must be a domain-prefixed path (such as \"acme.io/foo\")",
            ),
            (
                "spec.podFailurePolicy",
                policy(json!({ "action": "Retry", "onExitCodes": { "operator": "In", "values": [1] } })),
                "spec.podFailurePolicy.rules[0].action: Unsupported value: \"Retry\": supported values: \"Count\", \"FailIndex\", \"FailJob\", \"Ignore\"",
            ),
            (
                "spec.podFailurePolicy",
                policy(json!({ "action": "Ignore" })),
                "spec.podFailurePolicy.rules[0]: Invalid value: specifying one of OnExitCodes and OnPodConditions is required",
            ),
            (
                "spec.podFailurePolicy",
                policy(
                    json!({ "action": "FailJob", "onExitCodes": { "operator": "In", "values": [2, 1], "containerName": "b" } }),
                ),
                "spec.podFailurePolicy.rules[0].onExitCodes.containerName: Invalid value: \"b\": must be one of the container or initContainer names in the pod template\nspec.podFailurePolicy.rules[0].onExitCodes.values: Invalid value: [2,1]: must be ordered",
            ),
            (
                "spec.template.metadata.labels",
                json!({ "job-name": "b" }),
                "spec.template.metadata.labels[job-name]: Invalid value: {\"batch.kubernetes.io/controller-uid\":\"1\",\"batch.kubernetes.io/job-name\":\"a\",\"controller-uid\":\"1\",\"job-name\":\"b\"}: must be 'a'",
            ),
        ],
    );
    each_change_makes_its_mistakes(
        "Job",
        &indexed,
        &[
            ("spec.completions", Value::Null, "spec.completions: Required value: when completion mode is Indexed"),
            (
                "spec.maxFailedIndexes",
                json!(1),
                "spec.backoffLimitPerIndex: Required value: when maxFailedIndexes is specified",
            ),
            (
                "spec.successPolicy",
                policy(json!({ "succeededIndexes": "0-3" })),
                "spec.successPolicy.rules[0].succeededIndexes: Invalid value: \"0-3\": error parsing succeededIndexes: too large index: \"3\"",
            ),
            (
                "spec.successPolicy",
                policy(json!({ "succeededIndexes": "0-1", "succeededCount": 3 })),
                "spec.successPolicy.rules[0].succeededCount: Invalid value: 3: must be less than or equal to 2 (the number of indexes in the specified succeededIndexes field)",
            ),
        ],
    );
}

#[test]
fn a_job_that_runs_does_not_change() {
    let running = prepared("Job", &job(), None);
    for (path, value, message) in [
        ("spec.completions", json!(2), "spec.completions: Invalid value: 2: field is immutable"),
        ("spec.parallelism", json!(2), ""),
        ("spec.suspend", json!(true), ""),
        (
            "spec.completionMode",
            json!("Indexed"),
            "spec.completionMode: Invalid value: \"Indexed\": field is immutable",
        ),
    ] {
        let mut errors = Errors::new();
        super::validate(&with(&running, path, &value), Some(&running), &mut errors);
        let messages: Vec<_> = errors.iter().map(ToString::to_string).collect();
        assert_eq!(messages.join("\n"), message, "{path}");
    }
    let image = with(&running, "spec.template.spec.containers.0.image", &json!("other"));
    let mut errors = Errors::new();
    super::validate(&image, Some(&running), &mut errors);
    assert!(errors[0].to_string().starts_with("spec.template: Invalid value: {\"metadata\":"));
    assert!(errors[0].to_string().ends_with(": field is immutable"));
}

#[test]
fn a_suspended_job_may_be_told_where_to_run() {
    let mut suspended = prepared("Job", &job(), None);
    suspended["spec"]["suspend"] = json!(true);
    suspended["status"] = json!({ "conditions": [{ "type": "Suspended", "status": "True" }] });
    for (path, value, allowed) in [
        ("spec.template.spec.nodeSelector", json!({ "zone": "a" }), true),
        ("spec.template.spec.affinity.nodeAffinity", json!({}), true),
        ("spec.template.spec.containers.0.resources", json!({ "requests": { "cpu": "1" } }), true),
        ("spec.template.spec.containers.0.image", json!("other"), false),
        ("spec.template.spec.hostname", json!("other"), false),
    ] {
        let mut errors = Errors::new();
        super::validate(&with(&suspended, path, &value), Some(&suspended), &mut errors);
        assert_eq!(errors.is_empty(), allowed, "{path}: {errors:?}");
    }
}

#[test]
fn a_job_that_has_ended_stays_ended() {
    let condition = |kind: &str| json!({ "type": kind, "status": "True" });
    let status = |conditions: Value| json!({ "spec": {}, "status": { "conditions": conditions } });
    for (old, new, message) in [
        (
            status(json!([])),
            status(json!([condition("Failed"), condition("FailureTarget")])),
            "status.startTime: Required value: startTime is required for finished job",
        ),
        (
            status(json!([condition("Failed")])),
            status(json!([])),
            "status.conditions: Invalid value: cannot disable the terminal Failed=True condition",
        ),
        (
            json!({ "spec": {}, "status": { "failed": 2 } }),
            json!({ "spec": {}, "status": { "failed": 1 } }),
            "status.failed: Invalid value: 1: cannot decrease the failed counter",
        ),
        (
            json!({ "spec": {}, "status": { "active": 1 } }),
            json!({ "spec": {}, "status": { "active": 1, "ready": 2 } }),
            "status.ready: Invalid value: 2: cannot set more ready pods than active",
        ),
    ] {
        let mut errors = Errors::new();
        super::status::validate(&new, &old, &mut errors);
        let messages: Vec<_> = errors.iter().map(ToString::to_string).collect();
        assert_eq!(messages.join("\n"), message);
    }
}

#[test]
fn cron_jobs_have_a_schedule_and_a_template() {
    each_change_makes_its_mistakes(
        "CronJob",
        &cron_job(),
        &[
            ("spec.schedule", json!(""), "spec.schedule: Required value"),
            (
                "spec.schedule",
                json!("61 * * * *"),
                "spec.schedule: Invalid value: \"61 * * * *\": end of range (61) above maximum (59): 61",
            ),
            (
                "spec.schedule",
                json!("TZ=UTC * * * * *"),
                "spec.schedule: Invalid value: \"TZ=UTC * * * * *\": cannot use TZ or CRON_TZ in schedule, use timeZone field instead",
            ),
            ("spec.timeZone", json!("Europe/Berlin"), ""),
            (
                "spec.timeZone",
                json!("Mars/Base"),
                "spec.timeZone: Invalid value: \"Mars/Base\": unknown time zone Mars/Base",
            ),
            (
                "spec.concurrencyPolicy",
                json!("Never"),
                "spec.concurrencyPolicy: Unsupported value: \"Never\": supported values: \"Allow\", \"Forbid\", \"Replace\"",
            ),
            (
                "spec.jobTemplate.spec.template.spec.restartPolicy",
                json!("Always"),
                "spec.jobTemplate.spec.template.spec.restartPolicy: Required value: valid values: \"OnFailure\", \"Never\"",
            ),
            (
                "metadata.name",
                json!("x".repeat(53)),
                &format!("metadata.name: Invalid value: \"{}\": must be no more than 52 characters", "x".repeat(53)),
            ),
        ],
    );
    let object = prepared("CronJob", &cron_job(), None);
    assert_eq!(object["spec"]["successfulJobsHistoryLimit"], 3);
    assert_eq!(object["spec"]["jobTemplate"]["spec"]["template"]["spec"]["dnsPolicy"], "ClusterFirst");
}
