//! PriorityClasses.

use crate::strategy::place::Place;
use crate::strategy::{PLAIN, Strategy};
use object::field::Errors;
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
    let class = Place::object(new);
    let (value, policy) = (class.field("value"), class.field("preemptionPolicy"));
    if let Some(old) = old {
        if value.int() != old.int("value").unwrap_or_default() {
            value.forbidden(errors, "may not be changed in an update.");
        }
        policy.unchanged(errors, old.at("preemptionPolicy"));
        return;
    }
    let name = class.descend(&["metadata", "name"]);
    if name.text().starts_with(SYSTEM_PREFIX) {
        if let Some(problem) = not_the_system_class(new, name.text()) {
            let detail = format!(
                "priority class names with '{SYSTEM_PREFIX}' prefix are reserved for system use only. error: {problem}"
            );
            name.forbidden(errors, detail);
        }
    } else if value.int() > HIGHEST {
        let detail = format!("maximum allowed value of a user defined priority is {HIGHEST}");
        value.forbidden(errors, detail);
    }
    if policy.is_set() {
        policy.require_one_of(errors, &["PreemptLowerPriority", "Never"]);
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

    use crate::strategy::check::{each_change_has_its_message, each_mistake_has_its_message};
    use object::json;

    #[test]
    fn users_stay_below_the_system() {
        let good = json!({ "metadata": { "name": "high" }, "value": 1000 });
        each_mistake_has_its_message(
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
            "scheduling.v1.PriorityClass",
            &good,
            &[
                ("value", json!(1), &["value: Forbidden: may not be changed in an update."]),
                ("description", json!("x"), &[]),
            ],
        );
    }
}
