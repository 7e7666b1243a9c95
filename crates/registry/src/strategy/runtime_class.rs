//! RuntimeClasses.

use crate::strategy::place::Place;
use crate::strategy::{PLAIN, Strategy, node, pod, resource_name};
use object::field::Errors;
use object::{Value, View, name};

pub const STRATEGY: Strategy = Strategy {
    validate: Some(validate),
    warn: Some(warn),
    unconditional_update: false,
    create_on_update: true,
    ..PLAIN
};

fn validate(new: &Value, old: Option<&Value>, errors: &mut Errors) {
    let class = Place::object(new);
    class.field("handler").require_follows(errors, name::dns_label);
    let overhead = class.field("overhead");
    // Kubernetes judges them as if they were limits.
    let limits = overhead.field("limits").with(overhead.field("podFixed").value());
    for (name, amount) in limits.entries() {
        resource_name::validate_container(name, &amount, errors);
        resource_name::validate_amount(name, &amount, errors);
    }
    let scheduling = class.field("scheduling");
    scheduling.field("nodeSelector").labels(errors);
    pod::validate_tolerations(&scheduling.field("tolerations"), errors);
    let identity =
        |toleration: &Value| ["key", "operator", "value", "effect"].map(|field| toleration.text(field).to_owned());
    let mut seen = Vec::new();
    for toleration in scheduling.field("tolerations").items() {
        if seen.contains(&identity(toleration.value())) {
            toleration.duplicate(errors, toleration.value().clone());
        }
        seen.push(identity(toleration.value()));
    }
    if let Some(old) = old {
        class.field("handler").unchanged(errors, old.at("handler"));
    }
}

fn warn(new: &Value, _old: Option<&Value>) -> Vec<String> {
    let selector = new.at("scheduling");
    let messages = selector.entries("nodeSelector").filter_map(|(key, _)| node::deprecated_label(key));
    messages.map(|message| format!("scheduling.nodeSelector: {message}")).collect()
}

#[cfg(test)]
mod tests {

    use crate::strategy::check::{each_change_has_its_message, each_mistake_has_its_message};
    use object::json;

    #[test]
    fn each_mistake_is_reported() {
        let good = json!({ "handler": "runc", "overhead": { "podFixed": { "cpu": "10m" } } });
        each_mistake_has_its_message(
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
            "node.v1.RuntimeClass",
            &good,
            &[("handler", json!("kata"), &["handler: Invalid value: \"kata\": field is immutable"])],
        );
    }
}
