//! What a container that has ended may become again: nothing, unless it is to be restarted.

use crate::strategy::place::Place;
use object::field::Errors;
use object::{Value, View};

const LISTS: [(&str, &str); 3] = [
    ("containerStatuses", "containers"),
    ("initContainerStatuses", "initContainers"),
    ("ephemeralContainerStatuses", "ephemeralContainers"),
];

pub(super) fn validate(status: &Place, before: &Value, spec: &Value, errors: &mut Errors) {
    let restarts_all = ["containers", "initContainers"].iter().any(|list| {
        let mut rules = spec.items(list).iter().flat_map(|container| container.items("restartPolicyRules"));
        rules.any(|rule| rule.text("action") == "RestartAllContainers")
    });
    for (statuses, containers) in LISTS {
        let is_ephemeral = containers == "ephemeralContainers";
        if restarts_all && !is_ephemeral {
            continue;
        }
        for (index, old) in before.items(statuses).iter().enumerate() {
            let name = old.text("name");
            let Some(code) = old.path(&["state", "terminated", "exitCode"]).as_i64() else { continue };
            let revived = status
                .field(statuses)
                .values()
                .iter()
                .any(|new| new.text("name") == name && !new.at("state").has("terminated"));
            let mut containers = spec.items(containers).iter();
            let container = containers.find(|container| container.text("name") == name);
            let may = !is_ephemeral && container.is_some_and(|container| restarts(container, spec, code));
            if revived && !may {
                let detail = "may not be transitioned to non-terminated state";
                status.field(statuses).item(index).field("state").forbidden(errors, detail);
            }
        }
    }
}

fn restarts(container: &Value, spec: &Value, code: i64) -> bool {
    let by_rule = container.items("restartPolicyRules").iter().any(|rule| {
        let codes = rule.at("exitCodes");
        let listed = codes.items("values").iter().any(|value| value.as_i64() == Some(code));
        rule.text("action") == "Restart" && listed == (codes.text("operator") == "In")
    });
    let policy = match container.text("restartPolicy") {
        "" => spec.text("restartPolicy"),
        own => own,
    };
    by_rule || policy == "Always" || (policy == "OnFailure" && code != 0)
}
