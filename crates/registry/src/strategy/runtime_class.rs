//! RuntimeClasses.

use crate::strategy::place::Place;
use crate::strategy::{PLAIN, Strategy, node, resource_name};
use object::field::{Error, Errors};
use object::{Value, View, name};

pub const STRATEGY: Strategy = Strategy {
    validate: Some(validate),
    warn: Some(warn),
    unconditional_update: false,
    create_on_update: true,
    ..PLAIN
};

fn validate(new: &Value, old: Option<&Value>, errors: &mut Errors) {
    let class = Place::root(new);
    class.child("handler").required_follows(name::dns_label, errors);
    let overhead = class.child("overhead");
    for (name, amount) in overhead.value.entries("podFixed") {
        // Kubernetes judges them as if they were limits.
        let amount = Place::new(amount, &overhead.path.child("limits").key(name));
        resource_name::validate_container(name, &amount.path, errors);
        resource_name::validate_amount(name, &amount, errors);
    }
    let scheduling = class.child("scheduling");
    scheduling.child("nodeSelector").labels(errors);
    scheduling.list("tolerations").for_each(|toleration| validate_toleration(&toleration, errors));
    let identity =
        |toleration: &Value| ["key", "operator", "value", "effect"].map(|field| toleration.text(field).to_owned());
    let mut seen = Vec::new();
    for toleration in scheduling.list("tolerations") {
        if seen.contains(&identity(toleration.value)) {
            errors.push(Error::duplicate(&toleration.path, toleration.value.clone()));
        }
        seen.push(identity(toleration.value));
    }
    if let Some(old) = old {
        class.child("handler").unchanged(old.at("handler"), errors);
    }
}

fn validate_toleration(toleration: &Place, errors: &mut Errors) {
    let (key, value, effect) = (toleration.child("key"), toleration.text("value"), toleration.child("effect"));
    let operator = toleration.child("operator");
    let wrong = |shown: &str, detail: String| Error::invalid(&operator.path, shown, detail);
    key.optional_follows(name::qualified_name, errors);
    if key.is_empty() && operator.string() != "Exists" {
        let detail = "operator must be Exists when `key` is empty, which means \"match all values and all keys\"";
        errors.push(wrong(operator.string(), detail.to_owned()));
    }
    if toleration.has("tolerationSeconds") && effect.string() != "NoExecute" {
        let detail = "effect must be 'NoExecute' when `tolerationSeconds` is set";
        errors.push(Error::invalid(&effect.path, effect.string(), detail));
    }
    match operator.string() {
        "Equal" | "" => match name::label_value(value) {
            messages if messages.is_empty() => {}
            messages => errors.push(wrong(value, messages.join(";"))),
        },
        "Exists" if value.is_empty() => {}
        "Exists" => errors.push(wrong(value, "value must be empty when `operator` is 'Exists'".to_owned())),
        _ => operator.one_of(&["Equal", "Exists"], errors),
    }
    if !effect.is_empty() {
        effect.one_of(&node::TAINT_EFFECTS, errors);
    }
}

fn warn(new: &Value, _old: Option<&Value>) -> Vec<String> {
    let selector = new.at("scheduling");
    let messages = selector.entries("nodeSelector").filter_map(|(key, _)| node::deprecated_label(key));
    messages.map(|message| format!("scheduling.nodeSelector: {message}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::strategy::place::testing::{each_change_has_its_message, each_mistake_has_its_message};
    use object::json;

    #[test]
    fn each_mistake_is_reported() {
        let good = json!({ "handler": "runc", "overhead": { "podFixed": { "cpu": "10m" } } });
        each_mistake_has_its_message(
            &STRATEGY,
            "node.v1.RuntimeClass",
            &good,
            &[
                ("handler", json!(""), &["handler: Required value"]),
                (
                    "overhead.podFixed.pods",
                    json!("1"),
                    &["overhead.limits[pods]: Invalid value: \"pods\": must be a standard resource for containers"],
                ),
                (
                    "scheduling",
                    json!({ "tolerations": [{ "operator": "Equal" }] }),
                    &[
                        "scheduling.tolerations[0].operator: Invalid value: \"Equal\": operator must be Exists when `key` is empty, \
                   which means \"match all values and all keys\"",
                    ],
                ),
            ],
        );
        each_change_has_its_message(
            &STRATEGY,
            "node.v1.RuntimeClass",
            &good,
            &[("handler", json!("kata"), &["handler: Invalid value: \"kata\": field is immutable"])],
        );
    }
}
