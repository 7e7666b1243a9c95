//! How groups of pods look, and the workloads they belong to.

use super::text::{age, name};
use super::{AGE, NAME, printer, string};
use object::{Value, View};

printer!(WORKLOAD = |object, now| {
    NAME => name(object),
    AGE => age(object, now),
});

printer!(POD_GROUP = |object, now| {
    NAME => name(object),
    string("Policy", "How the pods of the group are placed") => policy(object),
    string("Workload", "Name of the referenced Workload object") => workload(object),
    string("Status", "Status of the PodGroup") => status(object),
    AGE => age(object, now),
});

fn policy(group: &Value) -> &'static str {
    if group.path(&["spec", "schedulingPolicy"]).has("gang") { "Gang" } else { "Basic" }
}

fn workload(group: &Value) -> &str {
    let reference = group.path(&["spec", "podGroupTemplateRef"]);
    if reference.is_null() { "<none>" } else { reference.at("workload").text("workloadName") }
}

fn status(group: &Value) -> &str {
    let conditions = group.at("status").items("conditions");
    let find = |kind: &str| conditions.iter().find(|condition| condition.text("type") == kind);
    match (find("DisruptionTarget"), find("PodGroupScheduled")) {
        (Some(disrupted), _) => disrupted.text("reason"),
        (None, Some(scheduled)) if scheduled.text("status") == "True" => "Scheduled",
        (None, Some(_)) => "Unschedulable",
        (None, None) => "Pending",
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::check;
    use super::*;
    use object::json;

    #[test]
    fn groups_say_how_and_whether_they_are_placed() {
        let gang = json!({
            "schedulingPolicy": { "gang": { "minCount": 4 } },
            "podGroupTemplateRef": { "workload": { "workloadName": "training" } },
        });
        let with = |conditions: Value| json!({ "status": { "conditions": conditions } });
        let placed = |status: &str| json!({ "type": "PodGroupScheduled", "status": status });
        let disrupted = json!({ "type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler" });
        check(
            &POD_GROUP,
            &[
                (json!({ "spec": gang }), json!(["Gang", "training", "Pending"])),
                (with(json!([placed("False")])), json!(["Basic", "<none>", "Unschedulable"])),
                (with(json!([placed("True")])), json!(["Basic", "<none>", "Scheduled"])),
                (with(json!([placed("True"), disrupted])), json!(["Basic", "<none>", "PreemptionByScheduler"])),
            ],
        );
        check(&WORKLOAD, &[(json!({}), json!([]))]);
    }
}
