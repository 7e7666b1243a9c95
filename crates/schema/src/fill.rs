//! Filling in what a schema says a field is when nobody has set it.
//!
//! For the built-in kinds these are the values that decoding into Kubernetes' own types and encoding again would show:
//! structs that are no pointers (`status: {}`), required scalars, and the defaults of the API. Defaults that depend on
//! other fields are the kinds' own.

use crate::node::{Field, NodeId, Schema, Shape};
use object::{Map, Value};

/// Sets every field below `value` that is absent and has a default.
pub fn fill(schema: &Schema, node: NodeId, value: &mut Value) {
    fill_changed(schema, node, value, &Value::Null);
}

/// The same for a value that was made from `before`, which is filled: what the two still share is not looked at.
pub fn fill_changed(schema: &Schema, node: NodeId, value: &mut Value, before: &Value) {
    match (schema.shape(node), value) {
        (_, value) if value.is_shared_with(before) => {}
        (Shape::Struct(known), Value::Object(fields)) => {
            for field in fill_present(schema, &known.fields, fields, before) {
                let Some(default) = &field.default else { continue };
                let mut value = default.clone();
                fill(schema, field.node, &mut value);
                fields.insert(field.name.to_string(), value);
            }
        }
        (Shape::List(list), Value::Array(items)) => {
            let items = items.iter_mut().enumerate();
            items.for_each(|(index, item)| fill_changed(schema, list.items, item, &before[index]));
        }
        (Shape::Map(map), Value::Object(entries)) => {
            let entries = entries.iter_mut();
            entries.for_each(|(key, value)| fill_changed(schema, map.values, value, &before[key.as_str()]));
        }
        _ => {}
    }
}

/// Fills what is there, and returns the fields with a default that are not. Both are sorted by name, so one walk along
/// both finds all.
fn fill_present<'s>(schema: &Schema, known: &'s [Field], fields: &mut Map, before: &Value) -> Vec<&'s Field> {
    let mut missing = Vec::new();
    let mut present = fields.iter_mut().peekable();
    for field in known {
        while present.next_if(|(name, _)| name.as_str() < &*field.name).is_some() {}
        match present.next_if(|(name, _)| name.as_str() == &*field.name) {
            Some((name, value)) => fill_changed(schema, field.node, value, &before[name.as_str()]),
            None => {
                // A time that is not set is shown as an empty struct by the facts, and not at all by the API.
                let no_time =
                    |default: &Value| !default.is_object() || !matches!(schema.shape(field.node), Shape::Scalar(_));
                if field.default.as_ref().is_some_and(no_time) {
                    missing.push(field);
                }
            }
        }
    }
    missing
}

/// What a field of a type is when nobody has set it.
pub fn default_of(schema: &Schema, node: NodeId, field: &str) -> Option<Value> {
    let Shape::Struct(known) = schema.shape(node) else { return None };
    let field = known.field(field)?;
    let mut value = field.default.clone()?;
    fill(schema, field.node, &mut value);
    Some(value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::builtin;
    use object::json;

    #[test]
    fn structs_and_defaults_appear_and_what_is_set_stays() {
        let mut service = json!({ "spec": { "ports": [{ "port": 80 }, { "port": 53, "protocol": "UDP" }] } });
        fill(builtin(), builtin().named("core.v1.Service").unwrap(), &mut service);
        assert_eq!(service["status"], json!({ "loadBalancer": {} }));
        assert_eq!(service["metadata"], json!({}));
        assert_eq!(service["spec"]["ports"][0]["protocol"], "TCP");
        assert_eq!(service["spec"]["ports"][1]["protocol"], "UDP");
    }

    #[test]
    fn filling_twice_is_filling_once() {
        for (name, node) in builtin().types() {
            let mut once = json!({});
            fill(builtin(), node, &mut once);
            let mut twice = once.clone();
            fill(builtin(), node, &mut twice);
            assert_eq!(once, twice, "{name}");
        }
    }
}
