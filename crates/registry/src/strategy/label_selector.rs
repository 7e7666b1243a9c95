//! The rules of label selectors in their object form.

use crate::strategy::place::Place;
use object::field::{Error, Errors, Path};
use object::{Value, View, name};

/// Everything that is wrong with a selector; one that is not there is fine.
pub fn validate(selector: &Value, path: &Path, errors: &mut Errors) {
    let selector = Place::new(selector, path);
    selector.child("matchLabels").labels(errors);
    for expression in selector.list("matchExpressions") {
        let values = expression.child("values");
        match expression.text("operator") {
            "In" | "NotIn" => {
                values.required("must be specified when `operator` is 'In' or 'NotIn'", errors);
            }
            "Exists" | "DoesNotExist" => {
                values.forbidden("may not be specified when `operator` is 'Exists' or 'DoesNotExist'", errors);
            }
            other => {
                errors.push(Error::invalid(&expression.child("operator").path, other, "not a valid selector operator"));
            }
        }
        expression.child("key").follows(name::qualified_name, errors);
        expression.list("values").for_each(|value| value.follows(name::label_value, errors));
    }
}
