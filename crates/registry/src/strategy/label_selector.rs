//! The rules of labels and of selectors over them, wherever they appear inside objects.

use crate::strategy::at::At;
use object::Value;
use object::field::{Errors, Path};
use object::name;

/// Everything that is wrong with a selector in the object form. An absent one is good; whether it must be there is for
/// the kind to say.
pub fn validate(selector: &Value, path: &Path, errors: &mut Errors) {
    validate_at(&At::from(selector, path), errors);
}

pub(crate) fn validate_at(selector: &At, errors: &mut Errors) {
    labels(&selector.field("matchLabels"), errors);
    for expression in selector.field("matchExpressions").items() {
        requirement(&expression, errors);
    }
}

fn requirement(expression: &At, errors: &mut Errors) {
    let values = expression.field("values");
    match expression.field("operator").text() {
        "In" | "NotIn" if values.is_empty() => {
            values.required(errors, "must be specified when `operator` is 'In' or 'NotIn'");
        }
        "Exists" | "DoesNotExist" if !values.is_empty() => {
            values.forbidden(errors, "may not be specified when `operator` is 'Exists' or 'DoesNotExist'");
        }
        "In" | "NotIn" | "Exists" | "DoesNotExist" => {}
        _ => expression.field("operator").invalid(errors, "not a valid selector operator"),
    }
    expression.field("key").named(errors, name::qualified_name);
    values.items().for_each(|value| value.named(errors, name::label_value));
}

/// A map of labels. The path of a mistake is that of the map, and does not name the key.
pub(crate) fn labels(labels: &At, errors: &mut Errors) {
    for (key, value) in labels.entries() {
        for message in name::qualified_name(key) {
            labels.invalid_value(errors, key, message);
        }
        for message in name::label_value(value.text()) {
            labels.invalid_value(errors, value.text(), message);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use object::json;

    #[test]
    fn mistakes_in_selectors_are_named() {
        let operator = |operator: &str, values: Value| json!({ "matchExpressions": [{ "key": "a", "operator": operator, "values": values }] });
        let label = "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and \
                     must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', \
                     regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";
        for (selector, message) in [
            (json!({ "matchLabels": { "a": "b" } }), ""),
            (operator("Exists", json!([])), ""),
            (
                operator("In", json!([])),
                "x.matchExpressions[0].values: Required value: must be specified when `operator` is 'In' or 'NotIn'",
            ),
            (
                operator("Exists", json!(["v"])),
                "x.matchExpressions[0].values: Forbidden: may not be specified when `operator` is 'Exists' or \
                 'DoesNotExist'",
            ),
            (
                operator("Near", json!(["v"])),
                "x.matchExpressions[0].operator: Invalid value: \"Near\": not a valid selector operator",
            ),
            (operator("In", json!(["-"])), &format!("x.matchExpressions[0].values[0]: Invalid value: \"-\": {label}")),
            (json!({ "matchLabels": { "a": "-" } }), &format!("x.matchLabels: Invalid value: \"-\": {label}")),
        ] {
            let mut errors = Errors::new();
            validate(&selector, &Path::new("x"), &mut errors);
            let messages: Vec<_> = errors.iter().map(ToString::to_string).collect();
            assert_eq!(messages.join("\n"), message);
        }
    }
}
