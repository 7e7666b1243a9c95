//! What values mean to rules: an empty string, list or map is the same as none.

use object::{Edit, Quantity, Value, View};

/// Nothing, or nothing in it.
pub fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
        Value::Bool(_) | Value::Number(_) => false,
    }
}

/// Whether two values mean the same: fields that are empty count as absent.
pub fn same(left: &Value, right: &Value) -> bool {
    match (left, right) {
        (Value::Object(left), Value::Object(right)) => {
            left.iter().all(|(field, value)| same(value, right.at(field)))
                && right.iter().all(|(field, value)| left.contains_key(field) || is_empty(value))
        }
        (Value::Array(left), Value::Array(right)) => {
            left.len() == right.len() && left.iter().zip(right).all(|(left, right)| same(left, right))
        }
        (left, right) => left == right || (is_empty(left) && is_empty(right)),
    }
}

/// Sets a field that is absent or empty.
pub fn set_if_empty(value: &mut Value, field: &str, default: impl Into<Value>) {
    if is_empty(value.at(field)) {
        value.set(field, default);
    }
}

/// An amount that has been read and written by the schema, so it can be read again; anything else counts as zero.
pub fn quantity(value: &Value) -> Quantity {
    value.as_str().and_then(|text| text.parse().ok()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use object::json;

    #[test]
    fn what_is_empty_is_the_same_as_what_is_absent() {
        let (full, sparse) = (json!({ "a": 1, "b": "", "c": [], "d": { "e": null } }), json!({ "a": 1, "d": {} }));
        assert!(same(&full, &sparse) && same(&sparse, &full));
        assert!(!same(&json!({ "a": 1 }), &json!({})) && !same(&json!({}), &json!({ "a": 0 })));
        assert!(!same(&json!([1]), &json!([1, 2])));
    }
}
