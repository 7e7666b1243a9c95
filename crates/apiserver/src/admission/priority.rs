//! Priority: the name of a priority class becomes the number that the scheduler compares.

use super::{Operation, Review};
use object::{ApiError, Edit, Value, View};
use std::sync::Arc;

const CLASSES: &str = "priorityclasses.scheduling.k8s.io";

/// What a pod gets from its class.
#[derive(Debug, PartialEq)]
struct Priority {
    class: String,
    value: i64,
    preemption: Option<String>,
}

pub(super) fn mutate(review: &mut Review<'_>) -> Result<(), ApiError> {
    if review.is("pods", Operation::Create) {
        let priority = match review.object.at("spec").text("priorityClassName") {
            "" => default_priority(review),
            name => named_priority(review, name)?,
        };
        return assign(review.object, &priority).map_err(|cause| review.forbid(&cause));
    }
    if review.is("pods", Operation::Update)
        && let Some(old) = review.old
    {
        // Clients that do not know these fields leave them out.
        for field in ["priority", "preemptionPolicy"] {
            let before = old.at("spec").at(field);
            if !before.is_null() {
                review.object.object_or_new("spec").set_default(field, before.clone());
            }
        }
    }
    Ok(())
}

pub(super) fn validate(review: &mut Review<'_>) -> Result<(), ApiError> {
    let written = review.is(CLASSES, Operation::Create) || review.is(CLASSES, Operation::Update);
    if !written || !review.object.flag("globalDefault") {
        return Ok(());
    }
    match default_class(review) {
        Some(class) if review.operation == Operation::Create || class.at("metadata").text("name") != review.name() => {
            let name = class.at("metadata").text("name");
            let cause = format!("PriorityClass {name} is already marked as default. Only one default can exist");
            Err(review.forbid(&cause))
        }
        _ => Ok(()),
    }
}

/// The class for pods that name none; the lowest, should there be several.
fn default_class(review: &Review<'_>) -> Option<Arc<Value>> {
    let classes = review.all(CLASSES);
    let marked = classes.iter().map(|class| class.shared()).filter(|class| class.flag("globalDefault"));
    marked.min_by_key(|class| class.int("value"))
}

fn default_priority(review: &Review<'_>) -> Priority {
    match default_class(review) {
        Some(class) => priority_of(&class),
        None => Priority { class: String::new(), value: 0, preemption: Some("PreemptLowerPriority".to_owned()) },
    }
}

fn named_priority(review: &Review<'_>, name: &str) -> Result<Priority, ApiError> {
    match review.find(&format!("{CLASSES}/{name}")) {
        Some(class) => Ok(priority_of(&class.shared())),
        None => Err(review.forbid(&format!("no PriorityClass with name {name} was found"))),
    }
}

fn priority_of(class: &Value) -> Priority {
    Priority {
        class: class.at("metadata").text("name").to_owned(),
        value: class.int("value").unwrap_or(0),
        preemption: class.at("preemptionPolicy").as_str().map(str::to_owned),
    }
}

/// Writes the priority into a pod; what the pod says itself must not be something else.
fn assign(pod: &mut Value, priority: &Priority) -> Result<(), String> {
    let spec = pod.object_or_new("spec");
    let computed = priority.value;
    if let Some(given) = spec.int("priority").filter(|given| *given != computed) {
        return Err(format!(
            "the integer value of priority ({given}) must not be provided in pod spec; priority admission controller computed {computed} from the given PriorityClass name"
        ));
    }
    spec.set("priority", computed);
    if !priority.class.is_empty() {
        spec.set("priorityClassName", priority.class.as_str());
    }
    let Some(policy) = &priority.preemption else { return Ok(()) };
    if let Some(given) = spec.at("preemptionPolicy").as_str().filter(|given| given != policy) {
        return Err(format!(
            "the string value of PreemptionPolicy ({given}) must not be provided in pod spec; priority admission controller computed {policy} from the given PriorityClass name"
        ));
    }
    spec.set("preemptionPolicy", policy.as_str());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use object::json;

    #[test]
    fn a_pod_gets_the_priority_of_its_class_and_may_not_claim_another() {
        let class = Priority { class: "high".to_owned(), value: 7, preemption: Some("Never".to_owned()) };
        let all = json!({ "priority": 7, "priorityClassName": "high", "preemptionPolicy": "Never" });
        for (spec, expected) in [
            (json!({}), Ok(all.clone())),
            (json!({ "priority": 7 }), Ok(all)),
            (
                json!({ "priority": 8 }),
                Err(
                    "the integer value of priority (8) must not be provided in pod spec; priority admission controller computed 7 from the given PriorityClass name",
                ),
            ),
            (
                json!({ "preemptionPolicy": "PreemptLowerPriority" }),
                Err(
                    "the string value of PreemptionPolicy (PreemptLowerPriority) must not be provided in pod spec; priority admission controller computed Never from the given PriorityClass name",
                ),
            ),
        ] {
            let mut pod = json!({ "spec": spec });
            let assigned = assign(&mut pod, &class).map(|()| pod["spec"].clone());
            assert_eq!(assigned, expected.map_err(str::to_owned));
        }
    }
}
