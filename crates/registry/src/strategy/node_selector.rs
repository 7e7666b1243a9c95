//! Selectors of nodes by their labels and their name.

use crate::strategy::place::Place;
use object::field::{Error, Errors};
use object::{View, name};

/// Everything that is wrong with a node selector.
pub fn validate(selector: &Place, errors: &mut Errors) {
    selector.child("nodeSelectorTerms").required("must have at least one node selector term", errors);
    selector.list("nodeSelectorTerms").for_each(|term| validate_term(&term, true, errors));
}

/// One term. Where it is only a preference, a value that no label can have does no harm.
pub fn validate_term(term: &Place, strict: bool, errors: &mut Errors) {
    term.list("matchExpressions").for_each(|expression| validate_expression(&expression, strict, errors));
    term.list("matchFields").for_each(|field| validate_field(&field, errors));
}

fn validate_expression(expression: &Place, strict: bool, errors: &mut Errors) {
    let values = expression.child("values");
    match expression.text("operator") {
        "In" | "NotIn" => {
            values.required("must be specified when `operator` is 'In' or 'NotIn'", errors);
        }
        "Exists" | "DoesNotExist" => {
            values.forbidden("may not be specified when `operator` is 'Exists' or 'DoesNotExist'", errors);
        }
        "Gt" | "Lt" if expression.items("values").len() == 1 => {}
        "Gt" | "Lt" => {
            let detail = "must be specified single value when `operator` is 'Lt' or 'Gt'";
            errors.push(Error::required(&values.path, detail));
        }
        _ => not_an_operator(expression, errors),
    }
    expression.child("key").follows(name::qualified_name, errors);
    if strict {
        expression.list("values").for_each(|value| value.follows(name::label_value, errors));
    }
}

fn validate_field(field: &Place, errors: &mut Errors) {
    match field.text("operator") {
        "In" | "NotIn" if field.items("values").len() == 1 => {}
        "In" | "NotIn" => {
            let detail = "must be only one value when `operator` is 'In' or 'NotIn' for node field selector";
            errors.push(Error::required(&field.child("values").path, detail));
        }
        _ => not_an_operator(field, errors),
    }
    if field.text("key") == "metadata.name" {
        field.list("values").for_each(|value| value.follows(name::dns_subdomain, errors));
    } else {
        errors.push(Error::invalid(&field.child("key").path, field.text("key"), "not a valid field selector key"));
    }
}

fn not_an_operator(requirement: &Place, errors: &mut Errors) {
    let operator = requirement.child("operator");
    errors.push(Error::invalid(&operator.path, operator.string(), "not a valid selector operator"));
}
