//! Nodes: taints, the subnets their pods live in, and what they have to give.

use crate::strategy::place::Place;
use crate::strategy::value::same;
use crate::strategy::{PLAIN, Strategy, address, resource_name};
use object::field::{Error, Errors};
use object::{Edit, Value, View, json, name};

pub const STRATEGY: Strategy = Strategy {
    created_with_status: true,
    default: Some(default),
    prepare: Some(prepare),
    validate: Some(validate),
    validate_status: Some(validate_change),
    warn: Some(warn),
    ..PLAIN
};

pub const TAINT_EFFECTS: [&str; 3] = ["NoSchedule", "PreferNoSchedule", "NoExecute"];

/// Labels of nodes that should not be relied on, and what to say to those who do.
pub const DEPRECATED_LABELS: [(&str, &str); 8] = [
    ("beta.kubernetes.io/arch", "deprecated since v1.14; use \"kubernetes.io/arch\" instead"),
    ("beta.kubernetes.io/os", "deprecated since v1.14; use \"kubernetes.io/os\" instead"),
    (
        "failure-domain.beta.kubernetes.io/region",
        "deprecated since v1.17; use \"topology.kubernetes.io/region\" instead",
    ),
    ("failure-domain.beta.kubernetes.io/zone", "deprecated since v1.17; use \"topology.kubernetes.io/zone\" instead"),
    ("beta.kubernetes.io/instance-type", "deprecated since v1.17; use \"node.kubernetes.io/instance-type\" instead"),
    ("app.kubernetes.io/created-by", "deprecated since v1.9"),
    ("scheduler.alpha.kubernetes.io/preferAvoidPods", "deprecated since v1.22; use Taints and Tolerations instead"),
    ("node-role.kubernetes.io/master", "use \"node-role.kubernetes.io/control-plane\" instead"),
];

pub fn deprecated_label(key: &str) -> Option<&'static str> {
    DEPRECATED_LABELS.iter().find(|(label, _)| *label == key).map(|(_, message)| *message)
}

/// Warnings of deprecated labels in a term of a node selector.
pub fn selector_term_warnings(term: &Place) -> Vec<String> {
    let warning = |expression: Place| {
        let key = expression.field("key");
        deprecated_label(key.text()).map(|message| format!("{key}: {} is {message}", key.text()))
    };
    term.field("matchExpressions").items().filter_map(warning).collect()
}

/// The first subnet is also there by itself, for clients of old; either form fills the other.
fn default(node: &mut Value) {
    if let Some(spec) = node.object("spec") {
        let first = spec.text("podCIDR").to_owned();
        match spec.items("podCIDRs").first().cloned() {
            Some(subnet) => spec.set("podCIDR", subnet),
            None if !first.is_empty() => spec.set("podCIDRs", json!([first])),
            None => {}
        }
    }
    if let Some(status) = node.object("status") {
        let capacity = status.at("capacity").clone();
        if !capacity.is_null() {
            status.set_default("allocatable", capacity);
        }
    }
}

fn prepare(new: &mut Value, old: Option<&Value>) {
    if !old.is_some_and(|old| old.at("spec").has("configSource")) {
        new.object_or_new("spec").remove("configSource");
    }
    if let (None, Some(status)) = (old, new.object("status")) {
        status.remove("config");
    }
}

fn validate(new: &Value, old: Option<&Value>, errors: &mut Errors) {
    let spec = Place::field_of(new, "spec");
    validate_subnets(&spec, errors);
    match old {
        None => {
            validate_taints(new, errors);
            validate_resources(new, errors);
        }
        Some(old) => validate_change(new, old, errors),
    }
}

fn validate_subnets(spec: &Place, errors: &mut Errors) {
    address::each_in(spec, "podCIDRs", None, address::subnet, errors);
    let subnets = spec.field("podCIDRs").values();
    if subnets.len() > 1 && !address::is_dual_stack(subnets.iter().filter_map(Value::as_str)) {
        spec.field("podCIDRs").invalid(errors, "may specify no more than one CIDR for each IP family");
    }
}

fn validate_taints(node: &Value, errors: &mut Errors) {
    // Kubernetes reports them as if they stood in the metadata.
    let metadata = Place::named(node.at("spec"), "metadata");
    let mut seen: Vec<(&str, &str)> = Vec::new();
    for taint in metadata.field("taints").items() {
        taint.field("key").follows(errors, name::qualified_name);
        let value = taint.field("value");
        match name::label_value(value.text()) {
            wrong if wrong.is_empty() => {}
            wrong => value.invalid(errors, wrong.join(";")),
        }
        taint.field("effect").require_one_of(errors, &TAINT_EFFECTS);
        let identity = (taint.field("effect").text(), taint.field("key").text());
        if seen.contains(&identity) {
            let detail = "taints must be unique by key and effect pair".to_owned();
            errors.push(Error { detail, ..Error::duplicate(&taint.to_path(), taint.value().clone()) });
        }
        seen.push(identity);
    }
}

fn validate_resources(node: &Value, errors: &mut Errors) {
    let status = Place::field_of(node, "status");
    for list in ["capacity", "allocatable"] {
        let list = status.field(list);
        for (name, _) in list.entries() {
            resource_name::validate_amount(name, &list.field(name), errors);
        }
    }
}

fn validate_change(new: &Value, old: &Value, errors: &mut Errors) {
    validate_taints(new, errors);
    validate_resources(new, errors);
    Place::field_of(new, "status").field("addresses").unique(errors);
    let (spec, before) = (Place::field_of(new, "spec"), old.at("spec"));
    let once = [
        ("podCIDRs", "node updates may not change podCIDR except from \"\" to valid"),
        ("providerID", "node updates may not change providerID except from \"\" to valid"),
    ];
    for (field, message) in once {
        if !Place::object(before).field(field).is_empty() && !same(spec.field(field).value(), before.at(field)) {
            spec.field(field).forbidden(errors, message);
        }
    }
    if spec.field("externalID").text() != before.text("externalID") {
        spec.field("externalID").forbidden(errors, "may not be updated");
    }
}

fn warn(new: &Value, _old: Option<&Value>) -> Vec<String> {
    let spec = Place::field_of(new, "spec");
    let mut warnings = Vec::new();
    if spec.field("configSource").is_set() {
        warnings.push("spec.configSource: the feature is removed".to_owned());
    }
    if !spec.field("externalID").text().is_empty() {
        warnings.push("spec.externalID: this field is deprecated, and is unused by Kubernetes".to_owned());
    }
    warnings.extend(spec.field("podCIDRs").items().flat_map(|item| address::subnet_warnings(&item)));
    warnings
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::strategy::check::{each_change_has_its_message, each_mistake_has_its_message, filled};

    fn node() -> Value {
        json!({
            "spec": { "podCIDR": "10.0.0.0/24", "providerID": "x", "taints": [{ "key": "a", "effect": "NoSchedule" }] },
            "status": { "capacity": { "cpu": "4", "memory": "8Gi" } },
        })
    }

    #[test]
    fn either_form_of_the_subnets_fills_the_other() {
        let node = filled("core.v1.Node", &node());
        assert_eq!(node["spec"]["podCIDRs"], json!(["10.0.0.0/24"]));
        assert_eq!(node["status"]["allocatable"], node["status"]["capacity"]);
    }

    #[test]
    fn each_mistake_is_reported() {
        each_mistake_has_its_message(
            "core.v1.Node",
            &node(),
            &[
                (
                    "spec.taints.1",
                    json!({ "key": "a", "effect": "NoSchedule" }),
                    &[
                        "metadata.taints[1]: Duplicate value: {\"effect\":\"NoSchedule\",\"key\":\"a\"}: taints must be unique by \
                   key and effect pair",
                    ],
                ),
                (
                    "spec.taints.0.effect",
                    json!("Never"),
                    &["metadata.taints[0].effect: Unsupported value: \"Never\": supported values: \"NoSchedule\", \
                   \"PreferNoSchedule\", \"NoExecute\""],
                ),
                (
                    "spec.podCIDRs",
                    json!(["10.0.0.0/24", "10.1.0.0/24"]),
                    &[
                        "spec.podCIDRs: Invalid value: [\"10.0.0.0/24\",\"10.1.0.0/24\"]: may specify no more than one CIDR for \
                   each IP family",
                    ],
                ),
                (
                    "status.capacity.cpu",
                    json!("-1"),
                    &[
                        "status.capacity.cpu: Invalid value: \"-1\": must be greater than or equal to 0",
                        "status.allocatable.cpu: Invalid value: \"-1\": must be greater than or equal to 0",
                    ],
                ),
            ],
        );
    }

    #[test]
    fn what_was_assigned_once_stays() {
        each_change_has_its_message(
            "core.v1.Node",
            &node(),
            &[
                (
                    "spec.providerID",
                    json!("y"),
                    &["spec.providerID: Forbidden: node updates may not change providerID except from \"\" to valid"],
                ),
                (
                    "spec.podCIDR",
                    json!("10.1.0.0/24"),
                    &["spec.podCIDRs: Forbidden: node updates may not change podCIDR except from \"\" to valid"],
                ),
            ],
        );
    }
}
