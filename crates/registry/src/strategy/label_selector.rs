//! The rules of selectors over labels, wherever they appear inside objects.

use crate::strategy::place::Place;
use object::field::Errors;
use object::name;

/// Everything that is wrong with a selector in the object form. An absent one is good; whether it must be there is for
/// the kind to say.
pub fn validate(selector: &Place, errors: &mut Errors) {
    selector.field("matchLabels").labels(errors);
    for expression in selector.field("matchExpressions").items() {
        requirement(&expression, errors);
    }
}

fn requirement(expression: &Place, errors: &mut Errors) {
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
    expression.field("key").follows(errors, name::qualified_name);
    values.items().for_each(|value| value.follows(errors, name::label_value));
}

#[cfg(test)]
mod tests {
    use super::*;
    use object::{Value, json};

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
            validate(&Place::named(&selector, "x"), &mut errors);
            let messages: Vec<_> = errors.iter().map(ToString::to_string).collect();
            assert_eq!(messages.join("\n"), message);
        }
    }
}
