//! Selectors of nodes by their labels and their name.

use crate::strategy::place::Place;
use object::field::Errors;
use object::name;

/// Everything that is wrong with a node selector.
pub fn validate(selector: &Place, errors: &mut Errors) {
    selector.field("nodeSelectorTerms").require_because(errors, "must have at least one node selector term");
    selector.field("nodeSelectorTerms").items().for_each(|term| validate_term(&term, true, errors));
}

/// One term. Where it is only a preference, a value that no label can have does no harm.
pub fn validate_term(term: &Place, strict: bool, errors: &mut Errors) {
    term.field("matchExpressions").items().for_each(|expression| validate_expression(&expression, strict, errors));
    term.field("matchFields").items().for_each(|field| validate_field(&field, errors));
}

fn validate_expression(expression: &Place, strict: bool, errors: &mut Errors) {
    let values = expression.field("values");
    match expression.field("operator").text() {
        "In" | "NotIn" => {
            values.require_because(errors, "must be specified when `operator` is 'In' or 'NotIn'");
        }
        "Exists" | "DoesNotExist" => {
            values.forbid(errors, "may not be specified when `operator` is 'Exists' or 'DoesNotExist'");
        }
        "Gt" | "Lt" if expression.field("values").values().len() == 1 => {}
        "Gt" | "Lt" => {
            let detail = "must be specified single value when `operator` is 'Lt' or 'Gt'";
            values.required(errors, detail);
        }
        _ => not_an_operator(expression, errors),
    }
    expression.field("key").follows(errors, name::qualified_name);
    if strict {
        expression.field("values").items().for_each(|value| value.follows(errors, name::label_value));
    }
}

fn validate_field(field: &Place, errors: &mut Errors) {
    match field.field("operator").text() {
        "In" | "NotIn" if field.field("values").values().len() == 1 => {}
        "In" | "NotIn" => {
            let detail = "must be only one value when `operator` is 'In' or 'NotIn' for node field selector";
            field.field("values").required(errors, detail);
        }
        _ => not_an_operator(field, errors),
    }
    if field.field("key").text() == "metadata.name" {
        field.field("values").items().for_each(|value| value.follows(errors, name::dns_subdomain));
    } else {
        field.field("key").invalid_value(errors, field.field("key").text(), "not a valid field selector key");
    }
}

fn not_an_operator(requirement: &Place, errors: &mut Errors) {
    let operator = requirement.field("operator");
    operator.invalid_value(errors, operator.text(), "not a valid selector operator");
}
