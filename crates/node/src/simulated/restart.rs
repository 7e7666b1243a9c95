//! Whether containers that ended are started again, and when.

use kinds::{ExitCodes, Pod};
use std::time::Duration;

/// How long a container that ended waits before it is started again: nothing at first, then ten seconds, doubling.
const FIRST_BACKOFF: Duration = Duration::from_secs(10);
const MAX_BACKOFF: Duration = Duration::from_secs(300);
/// What ran for so long is taken for well: how often it ended before is forgotten.
const FORGOTTEN: Duration = Duration::from_secs(600);

/// The policy of a pod's containers. They all live the same life, so the first one's own goes before the pod's.
pub(super) fn policy(pod: &Pod) -> &str {
    let own = pod.spec.containers.first().map_or("", |container| container.restart_policy.as_str());
    if own.is_empty() { &pod.spec.restart_policy } else { own }
}

/// Whether containers that ended with a code are started again.
pub(super) fn is_due(pod: &Pod, code: i32) -> bool {
    let rules = pod.spec.containers.first().map_or(&[][..], |container| &container.restart_policy_rules);
    let fits = |codes: &ExitCodes| match codes.operator.as_str() {
        "In" => codes.values.contains(&code),
        "NotIn" => !codes.values.contains(&code),
        _ => false,
    };
    let rule = rules.iter().find(|rule| rule.exit_codes.as_ref().is_some_and(fits));
    if rule.is_some_and(|rule| matches!(rule.action.as_str(), "Restart" | "RestartAllContainers")) {
        return true;
    }
    match policy(pod) {
        "Never" => false,
        "OnFailure" => code != 0,
        _ => true,
    }
}

/// How long after its end a container is started for the n-th time again.
pub(super) fn backoff(restarts: i32) -> Duration {
    match u32::try_from(restarts).unwrap_or(0) {
        0 | 1 => Duration::ZERO,
        more => FIRST_BACKOFF.saturating_mul(2_u32.saturating_pow(more - 2)).min(MAX_BACKOFF),
    }
}

/// The same for one that has just run for so long.
pub(super) fn backoff_after(ran: Duration, restarts: i32) -> Duration {
    if ran >= FORGOTTEN { Duration::ZERO } else { backoff(restarts) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kinds::Object;
    use object::{Value, json};

    #[test]
    fn rules_go_before_the_containers_policy_and_that_before_the_pods() {
        let rule = |operator: &str, code: i32, action: &str| json!({ "action": action, "exitCodes": { "operator": operator, "values": [code] } });
        let container = |policy: &str, rules: &[Value]| json!({ "restartPolicy": policy, "restartPolicyRules": rules });
        for (of_pod, container, code, expected) in [
            ("Never", json!({}), 1, false),
            ("OnFailure", json!({}), 1, true),
            ("OnFailure", json!({}), 0, false),
            ("Always", json!({}), 0, true),
            ("Always", container("Never", &[]), 1, false),
            ("Never", container("Always", &[]), 0, true),
            ("Never", container("OnFailure", &[]), 1, true),
            ("Never", container("Never", &[rule("In", 42, "Restart")]), 42, true),
            ("Never", container("Never", &[rule("In", 42, "Restart")]), 1, false),
            ("Never", container("Never", &[rule("NotIn", 42, "RestartAllContainers")]), 1, true),
            ("Never", container("Never", &[rule("NotIn", 42, "RestartAllContainers")]), 42, false),
        ] {
            let pod: Object<Pod> =
                Object::of(&json!({ "spec": { "restartPolicy": of_pod, "containers": [container] } }));
            assert_eq!(is_due(&pod, code), expected, "{of_pod} {container} {code}");
        }
    }

    #[test]
    fn what_ran_for_long_does_not_wait() {
        assert_eq!(backoff_after(FORGOTTEN, 9), Duration::ZERO);
        assert_eq!(backoff_after(Duration::from_secs(1), 9), MAX_BACKOFF);
    }
}
