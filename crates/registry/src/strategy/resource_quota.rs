//! ResourceQuotas: names of what is limited, amounts, and the scopes a limit applies to.

use crate::strategy::place::Place;
use crate::strategy::rule::IMMUTABLE;
use crate::strategy::{PLAIN, Strategy, resource_name};
use object::field::Errors;
use object::{Value, View};

pub const STRATEGY: Strategy = Strategy { validate: Some(validate), validate_status: Some(validate_status), ..PLAIN };

const POD_RESOURCES: [&str; 7] =
    ["pods", "cpu", "memory", "limits.cpu", "limits.memory", "requests.cpu", "requests.memory"];
const CLAIM_RESOURCES: [&str; 2] = ["persistentvolumeclaims", "requests.storage"];
/// Each scope, the resources it can narrow, and whether it is asked for by being there rather than by a value.
const SCOPES: [(&str, &[&str], bool); 7] = [
    ("Terminating", &POD_RESOURCES, true),
    ("NotTerminating", &POD_RESOURCES, true),
    ("BestEffort", &["pods"], true),
    ("NotBestEffort", &POD_RESOURCES, true),
    ("CrossNamespacePodAffinity", &POD_RESOURCES, true),
    ("PriorityClass", &POD_RESOURCES, false),
    ("VolumeAttributesClass", &CLAIM_RESOURCES, false),
];
const CONFLICTS: [[&str; 2]; 2] = [["BestEffort", "NotBestEffort"], ["Terminating", "NotTerminating"]];

fn validate(new: &Value, old: Option<&Value>, errors: &mut Errors) {
    let spec = Place::field_of(new, "spec");
    validate_amounts(&spec, "hard", errors);
    validate_scopes(&spec, errors);
    validate_selector(&spec, errors);
    if let Some(old) = old {
        let (now, was) = (spec.field("scopes").values(), old.at("spec").items("scopes"));
        if now.iter().any(|scope| !was.contains(scope)) || was.iter().any(|scope| !now.contains(scope)) {
            spec.field("scopes").invalid(errors, IMMUTABLE);
        }
    }
}

fn validate_status(new: &Value, _old: &Value, errors: &mut Errors) {
    let status = Place::field_of(new, "status");
    ["hard", "used"].iter().for_each(|field| validate_amounts(&status, field, errors));
}

fn validate_amounts(place: &Place, field: &str, errors: &mut Errors) {
    for (name, amount) in place.field(field).entries() {
        resource_name::validate_quota(name, &amount, errors);
        resource_name::validate_amount(name, &amount, errors);
    }
}

/// Whether a quota with this scope can limit everything it names.
fn narrows_all(scope: &str, spec: &Place) -> bool {
    let known = SCOPES.iter().find(|(name, ..)| *name == scope);
    let mut limited = spec.value().entries("hard").map(|(name, _)| name).filter(|name| resource_name::is_quota(name));
    known.is_none_or(|(_, resources, _)| limited.all(|name| resources.contains(&name)))
}

fn is_known(scope: &str) -> bool {
    SCOPES.iter().any(|(name, ..)| *name == scope)
}

fn conflicts(names: &[&str]) -> usize {
    CONFLICTS.iter().filter(|pair| pair.iter().all(|scope| names.contains(scope))).count()
}

fn validate_scopes(spec: &Place, errors: &mut Errors) {
    let scopes = spec.field("scopes");
    let names: Vec<&str> = spec.field("scopes").values().iter().filter_map(Value::as_str).collect();
    for scope in &names {
        if !is_known(scope) {
            scopes.invalid(errors, "unsupported scope");
        }
        if !narrows_all(scope, spec) {
            scopes.invalid(errors, "unsupported scope applied to resource");
        }
    }
    (0..conflicts(&names)).for_each(|_| scopes.invalid(errors, "conflicting scopes"));
}

fn validate_selector(spec: &Place, errors: &mut Errors) {
    // Kubernetes names the list and not the item.
    let list = spec.descend(&["scopeSelector", "matchExpressions"]);
    for expression in list.values().iter().map(|item| list.with(item)) {
        let (name, operator) = (expression.field("scopeName"), expression.field("operator"));
        let scope = name.text();
        if !is_known(scope) {
            name.invalid_value(errors, scope, "unsupported scope");
        }
        if !narrows_all(scope, spec) {
            let selector = spec.value().at("scopeSelector").clone();
            list.invalid_value(errors, selector, "unsupported scope applied to resource");
        }
        if operator.text() != "Exists" && SCOPES.iter().any(|(name, _, by_presence)| *name == scope && *by_presence) {
            operator.invalid_value(
                errors,
                operator.text(),
                "must be 'Exists' when scope is any of ResourceQuotaScopeTerminating, ResourceQuotaScopeNotTerminating, \
                 ResourceQuotaScopeBestEffort, ResourceQuotaScopeNotBestEffort or \
                 ResourceQuotaScopeCrossNamespacePodAffinity",
            );
        }
        let values = expression.field("values");
        match operator.text() {
            "In" | "NotIn" => {
                values.require_because(
                    errors,
                    "must be at least one value when `operator` is 'In' or 'NotIn' for scope selector",
                );
            }
            "Exists" | "DoesNotExist" if !values.is_empty() => values
                .invalid(errors, "must be no value when `operator` is 'Exist' or 'DoesNotExist' for scope selector"),
            "Exists" | "DoesNotExist" => {}
            other => operator.invalid_value(errors, other, "not a valid selector operator"),
        }
    }
    let names: Vec<&str> = list.values().iter().map(|expression| expression.text("scopeName")).collect();
    for _ in 0..conflicts(&names) {
        list.invalid_value(errors, spec.field("scopes").value().clone(), "conflicting scopes");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::strategy::check::{each_change_has_its_message, each_mistake_has_its_message};
    use object::json;

    fn quota() -> Value {
        json!({ "spec": { "hard": { "pods": "10", "requests.cpu": "4", "example.com/gpu": "1" }, "scopes": ["NotBestEffort"] } })
    }

    #[test]
    fn each_mistake_is_reported() {
        each_mistake_has_its_message(
            "core.v1.ResourceQuota",
            &quota(),
            &[
                (
                    "spec.hard",
                    json!({ "pod": "1" }),
                    &[
                        "spec.hard[pod]: Invalid value: \"pod\": must be a standard resource type or fully qualified",
                        "spec.hard[pod]: Invalid value: \"pod\": must be a standard resource for quota",
                    ],
                ),
                ("spec.hard.pods", json!("1500m"), &["spec.hard[pods]: Invalid value: \"1500m\": must be an integer"]),
                (
                    "spec.hard.pods",
                    json!("-1"),
                    &["spec.hard[pods]: Invalid value: \"-1\": must be greater than or equal to 0"],
                ),
                (
                    "spec.scopes",
                    json!(["BestEffort"]),
                    &["spec.scopes: Invalid value: [\"BestEffort\"]: unsupported scope applied to resource"],
                ),
                (
                    "spec.scopes",
                    json!(["Terminating", "NotTerminating"]),
                    &["spec.scopes: Invalid value: [\"Terminating\",\"NotTerminating\"]: conflicting scopes"],
                ),
                (
                    "spec.scopeSelector",
                    json!({ "matchExpressions": [{ "scopeName": "PriorityClass", "operator": "In" }] }),
                    &[
                        "spec.scopeSelector.matchExpressions.values: Required value: must be at least one value when `operator` is \
                   'In' or 'NotIn' for scope selector",
                    ],
                ),
            ],
        );
    }

    #[test]
    fn scopes_stay() {
        each_change_has_its_message(
            "core.v1.ResourceQuota",
            &quota(),
            &[
                ("spec.hard.pods", json!("20"), &[]),
                ("spec.scopes", json!([]), &["spec.scopes: Invalid value: null: field is immutable"]),
            ],
        );
    }
}
