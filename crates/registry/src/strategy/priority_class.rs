//! PriorityClasses.

use crate::strategy::place::Place;
use crate::strategy::{PLAIN, Strategy};
use object::field::{Error, Errors};
use object::{Edit, Value, View};

pub const STRATEGY: Strategy =
    Strategy { default: Some(default), prepare: Some(prepare), validate: Some(validate), ..PLAIN };

const HIGHEST: i64 = 1_000_000_000;
const SYSTEM_PREFIX: &str = "system-";
/// The classes of the system itself, which nobody else may define otherwise.
pub const SYSTEM_CLASSES: [(&str, i64); 2] =
    [("system-node-critical", 2 * HIGHEST + 1000), ("system-cluster-critical", 2 * HIGHEST)];

fn default(class: &mut Value) {
    class.set_default("preemptionPolicy", "PreemptLowerPriority");
}

/// The generation starts and does not count: what matters cannot change.
fn prepare(new: &mut Value, old: Option<&Value>) {
    if old.is_none() {
        new.object_or_new("metadata").set("generation", 1);
    }
}

fn validate(new: &Value, old: Option<&Value>, errors: &mut Errors) {
    let class = Place::root(new);
    let (value, policy) = (class.child("value"), class.child("preemptionPolicy"));
    if let Some(old) = old {
        if value.as_i64().unwrap_or_default() != old.int("value").unwrap_or_default() {
            errors.push(Error::forbidden(&value.path, "may not be changed in an update."));
        }
        policy.unchanged(old.at("preemptionPolicy"), errors);
        return;
    }
    let name = class.descend(&["metadata", "name"]);
    if name.string().starts_with(SYSTEM_PREFIX) {
        if let Some(problem) = not_the_system_class(new, name.string()) {
            let detail = format!(
                "priority class names with '{SYSTEM_PREFIX}' prefix are reserved for system use only. error: {problem}"
            );
            errors.push(Error::forbidden(&name.path, detail));
        }
    } else if value.as_i64().unwrap_or_default() > HIGHEST {
        let detail = format!("maximum allowed value of a user defined priority is {HIGHEST}");
        errors.push(Error::forbidden(&value.path, detail));
    }
    if !policy.is_null() {
        policy.required_one_of(&["PreemptLowerPriority", "Never"], errors);
    }
}

fn not_the_system_class(class: &Value, name: &str) -> Option<String> {
    let Some((_, value)) = SYSTEM_CLASSES.iter().find(|(system, _)| *system == name) else {
        return Some(format!("{name} is not a known system priority class"));
    };
    if class.int("value") != Some(*value) {
        Some(format!("value of {name} PriorityClass must be {value}"))
    } else if class.flag("globalDefault") {
        Some(format!("globalDefault of {name} PriorityClass must be false"))
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::strategy::place::testing::{each_change_has_its_message, each_mistake_has_its_message};
    use object::json;

    #[test]
    fn users_stay_below_the_system() {
        let good = json!({ "metadata": { "name": "high" }, "value": 1000 });
        each_mistake_has_its_message(
            &STRATEGY,
            "scheduling.v1.PriorityClass",
            &good,
            &[
                (
                    "value",
                    json!(1_000_000_001),
                    &["value: Forbidden: maximum allowed value of a user defined priority is 1000000000"],
                ),
                (
                    "metadata.name",
                    json!("system-mine"),
                    &[
                        "metadata.name: Forbidden: priority class names with 'system-' prefix are reserved for system use only. \
                   error: system-mine is not a known system priority class",
                    ],
                ),
                (
                    "preemptionPolicy",
                    json!("Always"),
                    &[
                        "preemptionPolicy: Unsupported value: \"Always\": supported values: \"PreemptLowerPriority\", \"Never\"",
                    ],
                ),
            ],
        );
        each_change_has_its_message(
            &STRATEGY,
            "scheduling.v1.PriorityClass",
            &good,
            &[
                ("value", json!(1), &["value: Forbidden: may not be changed in an update."]),
                ("description", json!("x"), &[]),
            ],
        );
    }
}
