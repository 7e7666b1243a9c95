//! What users say about failures and successes that are not simply counted.

use super::indexes::Indexes;
use kinds::{ContainerStatus, Pod};
use object::{Value, View};

/// What the failure of a pod means.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Failure {
    Counts,
    Ignored,
    FailsIndex,
    /// The job fails, with this message.
    FailsJob(String),
}

impl Failure {
    pub(super) fn is_counted(&self) -> bool {
        *self != Failure::Ignored
    }
}

/// The first rule that matches a failed pod says what its failure means.
pub(super) fn failure(policy: Option<&Value>, pod: &Pod) -> Failure {
    let rules = policy.map_or(&[][..], |policy| policy.items("rules"));
    for (index, rule) in rules.iter().enumerate() {
        let Some(reason) = matches(rule, pod) else { continue };
        match rule.text("action") {
            "Ignore" => return Failure::Ignored,
            "FailIndex" => return Failure::FailsIndex,
            "Count" => return Failure::Counts,
            "FailJob" => return Failure::FailsJob(format!("{reason} matching FailJob rule at index {index}")),
            _ => {}
        }
    }
    Failure::Counts
}

/// How a rule matches, in words.
fn matches(rule: &Value, pod: &Pod) -> Option<String> {
    let name = format!("{}/{}", pod.metadata.namespace, pod.metadata.name);
    if rule.has("onExitCodes") {
        let mut statuses = pod.status.container_statuses.iter().chain(&pod.status.init_container_statuses);
        let (container, code) = statuses.find_map(|status| exit_code(rule.at("onExitCodes"), status))?;
        return Some(format!("Container {container} for pod {name} failed with exit code {code}"));
    }
    let patterns = rule.items("onPodConditions");
    let found = pod.status.conditions.iter().find(|condition| {
        let is = |pattern: &Value| pattern.text("type") == condition.kind && pattern.text("status") == condition.status;
        patterns.iter().any(is)
    })?;
    Some(format!("Pod {name} has condition {}", found.kind))
}

fn exit_code<'a>(requirement: &Value, status: &'a ContainerStatus) -> Option<(&'a str, i32)> {
    let code = status.state.terminated.as_ref()?.exit_code;
    let is_named = !requirement.has("containerName") || requirement.text("containerName") == status.name;
    let listed = requirement.items("values").iter().any(|value| value.as_i64() == Some(code.into()));
    let fits = match requirement.text("operator") {
        "In" => listed,
        "NotIn" => !listed,
        _ => false,
    };
    (code != 0 && is_named && fits).then_some((status.name.as_str(), code))
}

/// Which rule says that these indexes are enough, in words.
pub(super) fn success(policy: Option<&Value>, completions: i32, succeeded: &Indexes) -> Option<String> {
    let rules = policy.map_or(&[][..], |policy| policy.items("rules"));
    if succeeded.is_empty() {
        return None;
    }
    let is_met = |rule: &Value| {
        let enough = |number: i32| rule.int("succeededCount").is_some_and(|count| i64::from(number) >= count);
        if !rule.has("succeededIndexes") {
            return enough(succeeded.len());
        }
        let required = Indexes::parse(rule.text("succeededIndexes"), completions);
        let shared = required.shared(succeeded);
        !required.is_empty() && (shared == required.len() || enough(shared))
    };
    rules.iter().position(is_met).map(|index| format!("Matched rules at index {index}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use kinds::Object;
    use object::json;

    #[test]
    fn the_first_rule_that_matches_decides() {
        let policy = json!({ "rules": [
            { "action": "Ignore", "onPodConditions": [{ "type": "DisruptionTarget", "status": "True" }] },
            { "action": "FailJob", "onExitCodes": { "containerName": "main", "operator": "In", "values": [42] } },
            { "action": "FailIndex", "onExitCodes": { "operator": "In", "values": [7, 8] } },
            { "action": "Count", "onExitCodes": { "operator": "NotIn", "values": [9] } },
            { "action": "FailJob", "onPodConditions": [{ "type": "ConfigIssue", "status": "True" }] },
        ] });
        let pod = |container: &str, code: i32, condition: &str| {
            Object::<Pod>::of(&json!({
                "metadata": { "name": "p", "namespace": "n" },
                "status": {
                    "conditions": [{ "type": condition, "status": "True" }],
                    "containerStatuses": [{ "name": container, "state": { "terminated": { "exitCode": code } } }],
                },
            }))
        };
        let exit = "Container main for pod n/p failed with exit code 42 matching FailJob rule at index 1";
        let condition = "Pod n/p has condition ConfigIssue matching FailJob rule at index 4";
        for (container, code, kind, expected) in [
            ("main", 42, "DisruptionTarget", Failure::Ignored),
            ("main", 42, "", Failure::FailsJob(exit.to_owned())),
            ("side", 42, "", Failure::Counts),
            ("main", 7, "", Failure::FailsIndex),
            ("main", 9, "", Failure::Counts),
            ("main", 9, "ConfigIssue", Failure::FailsJob(condition.to_owned())),
            ("main", 0, "", Failure::Counts),
        ] {
            assert_eq!(failure(Some(&policy), &pod(container, code, kind)), expected, "{container} {code} {kind}");
        }
        assert_eq!(failure(None, &pod("main", 1, "")), Failure::Counts);
    }

    #[test]
    fn some_successes_may_be_enough() {
        let rules = |rules: Value| json!({ "rules": rules });
        let met = |rule: Value, succeeded: &str| {
            success(Some(&rules(json!([rule]))), 10, &Indexes::parse(succeeded, 10)).is_some()
        };
        assert!(met(json!({ "succeededIndexes": "0,2-3" }), "0-3"));
        assert!(!met(json!({ "succeededIndexes": "0,2-3" }), "0-2"));
        assert!(met(json!({ "succeededIndexes": "0,2-3", "succeededCount": 2 }), "0-2"));
        assert!(met(json!({ "succeededCount": 2 }), "5,7"));
        assert!(!met(json!({ "succeededCount": 2 }), "5"));
        assert!(!met(json!({ "succeededIndexes": "20" }), "0-9"));
        let second = rules(json!([{ "succeededCount": 5 }, { "succeededCount": 1 }]));
        assert_eq!(success(Some(&second), 10, &Indexes::parse("3", 10)).unwrap(), "Matched rules at index 1");
    }
}
