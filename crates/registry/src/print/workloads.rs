//! How the kinds that run pods look.

use super::text::{
    NONE, UNSET, age, containers, count, duration, has_condition, is_being_deleted, labels, name, seconds, selector,
    selector_cell, since, size, text_or,
};
use super::{AGE, CONTAINERS, IMAGES, NAME, SELECTOR, boolean, integer, printer, string};
use object::{Value, View};

fn spec(object: &Value) -> &Value {
    object.at("spec")
}

fn status(object: &Value) -> &Value {
    object.at("status")
}

fn template(object: &Value) -> &Value {
    spec(object).at("template")
}

/// Pods that are ready, of those wanted.
fn ready(object: &Value) -> String {
    format!("{}/{}", count(status(object), "readyReplicas"), count(spec(object), "replicas"))
}

printer!(POD_TEMPLATE = |object, _now| {
    NAME => name(object),
    string("Containers", "Names of the containers") => containers(object.at("template"), "name"),
    string("Images", "Images of the containers") => containers(object.at("template"), "image"),
    string("Pod Labels", "Labels of pods made from it") => labels(object.path(&["template", "metadata"]), "labels"),
});

printer!(REPLICATION_CONTROLLER = |object, now| {
    NAME => name(object),
    integer("Desired", "Pods that are wanted") => count(spec(object), "replicas"),
    integer("Current", "Pods that are there") => count(status(object), "replicas"),
    integer("Ready", "Pods that are ready") => count(status(object), "readyReplicas"),
    AGE => age(object, now),
    CONTAINERS => containers(template(object), "name"),
    IMAGES => containers(template(object), "image"),
    SELECTOR => labels(spec(object), "selector"),
});

printer!(REPLICA_SET = |object, now| {
    NAME => name(object),
    integer("Desired", "Pods that are wanted") => count(spec(object), "replicas"),
    integer("Current", "Pods that are there") => count(status(object), "replicas"),
    integer("Ready", "Pods that are ready") => count(status(object), "readyReplicas"),
    AGE => age(object, now),
    CONTAINERS => containers(template(object), "name"),
    IMAGES => containers(template(object), "image"),
    SELECTOR => selector_cell(spec(object).at("selector")),
});

printer!(DEPLOYMENT = |object, now| {
    NAME => name(object),
    string("Ready", "Pods that are ready, of those wanted") => ready(object),
    string("Up-to-date", "Pods made from the present template") => count(status(object), "updatedReplicas"),
    string("Available", "Pods that have been ready long enough") => count(status(object), "availableReplicas"),
    AGE => age(object, now),
    CONTAINERS => containers(template(object), "name"),
    IMAGES => containers(template(object), "image"),
    SELECTOR => selector(spec(object).at("selector")).unwrap_or_else(|| "<invalid>".to_owned()),
});

printer!(STATEFUL_SET = |object, now| {
    NAME => name(object),
    string("Ready", "Pods that are ready, of those wanted") => ready(object),
    AGE => age(object, now),
    CONTAINERS => containers(template(object), "name"),
    IMAGES => containers(template(object), "image"),
});

printer!(DAEMON_SET = |object, now| {
    NAME => name(object),
    integer("Desired", "Nodes that should run a pod") => count(status(object), "desiredNumberScheduled"),
    integer("Current", "Nodes that should and do") => count(status(object), "currentNumberScheduled"),
    integer("Ready", "Nodes on which a pod is ready") => count(status(object), "numberReady"),
    integer("Up-to-date", "Nodes with a pod of the present template") => count(status(object), "updatedNumberScheduled"),
    integer("Available", "Nodes on which a pod has been ready long enough") => count(status(object), "numberAvailable"),
    string("Node Selector", "Labels of the nodes it is for") => labels(template(object).at("spec"), "nodeSelector"),
    AGE => age(object, now),
    CONTAINERS => containers(template(object), "name"),
    IMAGES => containers(template(object), "image"),
    SELECTOR => selector_cell(spec(object).at("selector")),
});

printer!(JOB = |object, now| {
    NAME => name(object),
    string("Status", "How far the job is") => job_status(object),
    string("Completions", "Pods that succeeded, of those that must") => completions(object),
    string("Duration", "How long the job runs, or ran") => job_duration(status(object), now),
    AGE => age(object, now),
    CONTAINERS => containers(template(object), "name"),
    IMAGES => containers(template(object), "image"),
    SELECTOR => selector_cell(spec(object).at("selector")),
});

/// The conditions that say how far a job is, the most telling first.
fn job_status(job: &Value) -> &'static str {
    let find = |kinds: &[&'static str]| kinds.iter().copied().find(|kind| has_condition(status(job), kind));
    match find(&["Complete", "Failed"]) {
        Some(end) => end,
        None if is_being_deleted(job) => "Terminating",
        None => find(&["Suspended", "FailureTarget", "SuccessCriteriaMet"]).unwrap_or("Running"),
    }
}

fn completions(job: &Value) -> String {
    let succeeded = count(status(job), "succeeded");
    match (spec(job).int("completions"), count(spec(job), "parallelism")) {
        (Some(completions), _) => format!("{succeeded}/{completions}"),
        (None, parallelism @ 2..) => format!("{succeeded}/1 of {parallelism}"),
        (None, _) => format!("{succeeded}/1"),
    }
}

fn job_duration(status: &Value, now: i64) -> String {
    let end = seconds(status.at("completionTime")).unwrap_or(now);
    seconds(status.at("startTime")).map_or_else(String::new, |start| duration(end.saturating_sub(start)))
}

printer!(CRON_JOB = |object, now| {
    NAME => name(object),
    string("Schedule", "When jobs are started") => spec(object).text("schedule"),
    string("Timezone", "Time zone the schedule is in") => text_or(spec(object), "timeZone", NONE),
    boolean("Suspend", "Whether no more jobs are started") => suspended(spec(object)),
    integer("Active", "Jobs that are running") => size(status(object), "active"),
    string("Last Schedule", "Time since a job was started last") => last_schedule(status(object), now),
    AGE => age(object, now),
    CONTAINERS => containers(template(spec(object).at("jobTemplate")), "name"),
    IMAGES => containers(template(spec(object).at("jobTemplate")), "image"),
    SELECTOR => selector_cell(spec(object).path(&["jobTemplate", "spec", "selector"])),
});

fn suspended(spec: &Value) -> &'static str {
    match spec.at("suspend").as_bool() {
        Some(true) => "True",
        Some(false) => "False",
        None => UNSET,
    }
}

fn last_schedule(status: &Value, now: i64) -> String {
    if status.has("lastScheduleTime") { since(status.at("lastScheduleTime"), now) } else { NONE.to_owned() }
}

printer!(CONTROLLER_REVISION = |object, now| {
    NAME => name(object),
    string("Controller", "What this is a revision of") => controller(object),
    string("Revision", "Number of the revision") => count(object, "revision"),
    AGE => age(object, now),
});

/// The owner that controls the object: `daemonset.apps/web`.
fn controller(object: &Value) -> String {
    let owners = object.at("metadata").items("ownerReferences");
    let Some(owner) = owners.iter().find(|owner| owner.flag("controller")) else { return NONE.to_owned() };
    let kind = owner.text("kind").to_lowercase();
    match owner.text("apiVersion").split_once('/') {
        Some((group, _)) => format!("{kind}.{group}/{}", owner.text("name")),
        None => format!("{kind}/{}", owner.text("name")),
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::check;
    use super::*;
    use object::json;

    fn template() -> Value {
        json!({ "spec": { "containers": [{ "name": "a", "image": "i:1" }, { "name": "b", "image": "i:2" }] } })
    }

    #[test]
    fn replicas_are_counted() {
        let selector = json!({ "matchLabels": { "app": "web" } });
        let object = json!({
            "spec": { "replicas": 3, "selector": selector, "template": template() },
            "status": { "replicas": 2, "readyReplicas": 1, "updatedReplicas": 2, "availableReplicas": 1 },
        });
        let invalid = json!({ "spec": { "selector": { "matchLabels": { "-": "" } } } });
        check(
            &DEPLOYMENT,
            &[
                (object.clone(), json!(["1/3", 2, 1, "a,b", "i:1,i:2", "app=web"])),
                (invalid.clone(), json!(["0/0", 0, 0, "", "", "<invalid>"])),
            ],
        );
        check(
            &REPLICA_SET,
            &[
                (object.clone(), json!([3, 2, 1, "a,b", "i:1,i:2", "app=web"])),
                (invalid, json!([0, 0, 0, "", "", "<error>"])),
            ],
        );
        check(&STATEFUL_SET, &[(object, json!(["1/3", "a,b", "i:1,i:2"]))]);
        let controller = json!({ "spec": { "replicas": 3, "selector": { "a": "b" }, "template": template() } });
        check(&REPLICATION_CONTROLLER, &[(controller, json!([3, 0, 0, "a,b", "i:1,i:2", "a=b"]))]);
    }

    #[test]
    fn daemon_sets_count_nodes() {
        let mut template = template();
        template["spec"]["nodeSelector"] = json!({ "disk": "ssd" });
        let status = json!({
            "desiredNumberScheduled": 5, "currentNumberScheduled": 4, "numberReady": 3, "updatedNumberScheduled": 2,
            "numberAvailable": 1,
        });
        check(
            &DAEMON_SET,
            &[
                (
                    json!({ "spec": { "template": template }, "status": status }),
                    json!([5, 4, 3, 2, 1, "disk=ssd", "a,b", "i:1,i:2", NONE]),
                ),
                (json!({}), json!([0, 0, 0, 0, 0, NONE, "", "", NONE])),
            ],
        );
    }

    #[test]
    fn jobs_say_how_far_they_are() {
        let holds = |kinds: &[&str]| -> Value {
            let conditions = kinds.iter().map(|kind| json!({ "type": kind, "status": "True" }));
            json!({ "conditions": conditions.collect::<Value>() })
        };
        for (conditions, deleted, text) in [
            (&["Complete", "SuccessCriteriaMet"][..], false, "Complete"),
            (&["Failed"], true, "Failed"),
            (&["Suspended"], true, "Terminating"),
            (&["Suspended"], false, "Suspended"),
            (&["FailureTarget"], false, "FailureTarget"),
            (&["SuccessCriteriaMet"], false, "SuccessCriteriaMet"),
            (&[], false, "Running"),
        ] {
            let metadata = if deleted { json!({ "deletionTimestamp": "2026-02-28T00:00:00Z" }) } else { json!({}) };
            assert_eq!(job_status(&json!({ "metadata": metadata, "status": holds(conditions) })), text);
        }
        let times = |end: Value| json!({ "startTime": "2026-02-28T23:00:00Z", "completionTime": end, "succeeded": 1 });
        check(
            &JOB,
            &[
                (
                    json!({ "spec": { "completions": 2 }, "status": times(json!("2026-02-28T23:00:30Z")) }),
                    json!(["Running", "1/2", "30s", "", "", NONE]),
                ),
                (
                    json!({ "spec": { "parallelism": 3 }, "status": times(json!(null)) }),
                    json!(["Running", "1/1 of 3", "60m", "", "", NONE]),
                ),
                (json!({ "spec": { "parallelism": 1 } }), json!(["Running", "0/1", "", "", "", NONE])),
            ],
        );
    }

    #[test]
    fn cron_jobs_say_when_they_ran_last() {
        check(
            &CRON_JOB,
            &[
                (
                    json!({
                        "spec": {
                            "schedule": "* * * * *", "timeZone": "Etc/UTC", "suspend": false,
                            "jobTemplate": { "spec": { "template": template() } },
                        },
                        "status": { "active": [{}], "lastScheduleTime": "2026-02-28T23:59:00Z" },
                    }),
                    json!(["* * * * *", "Etc/UTC", "False", 1, "60s", "a,b", "i:1,i:2", NONE]),
                ),
                (json!({ "spec": { "schedule": "@daily" } }), json!(["@daily", NONE, UNSET, 0, NONE, "", "", NONE])),
            ],
        );
    }

    #[test]
    fn revisions_name_their_controller_and_templates_their_labels() {
        let owners = json!([{ "apiVersion": "apps/v1", "kind": "DaemonSet", "name": "d", "controller": true }]);
        check(
            &CONTROLLER_REVISION,
            &[
                (json!({ "metadata": { "ownerReferences": owners }, "revision": 3 }), json!(["daemonset.apps/d", 3])),
                (json!({ "revision": 1 }), json!([NONE, 1])),
            ],
        );
        let mut template = template();
        template["metadata"] = json!({ "labels": { "a": "b" } });
        check(&POD_TEMPLATE, &[(json!({ "template": template }), json!(["a,b", "i:1,i:2", "a=b"]))]);
    }
}
