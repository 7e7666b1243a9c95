//! Filling in what a schema says a field is when nobody has set it.
//!
//! For the built-in kinds these are the values that decoding into Kubernetes' own types and encoding again would show:
//! structs that are no pointers (`status: {}`), required scalars, and the defaults of the API. Defaults that depend on
//! other fields are the kinds' own.

use crate::node::{NodeId, Schema, Shape};
use object::Value;

/// Sets every field below `value` that is absent and has a default.
pub fn fill(schema: &Schema, node: NodeId, value: &mut Value) {
    match (schema.shape(node), value) {
        (Shape::Struct(known), Value::Object(fields)) => {
            for field in &known.fields {
                match fields.get_mut(&*field.name) {
                    Some(value) => fill(schema, field.node, value),
                    None => {
                        let Some(default) = &field.default else { continue };
                        // A time that is not set is shown as an empty struct by the facts, and not at all by the API.
                        if default.is_object() && matches!(schema.shape(field.node), Shape::Scalar(_)) {
                            continue;
                        }
                        let mut value = default.clone();
                        fill(schema, field.node, &mut value);
                        fields.insert(field.name.to_string(), value);
                    }
                }
            }
        }
        (Shape::List(list), Value::Array(items)) => {
            items.iter_mut().for_each(|item| fill(schema, list.items, item));
        }
        (Shape::Map(map), Value::Object(entries)) => {
            entries.values_mut().for_each(|value| fill(schema, map.values, value));
        }
        _ => {}
    }
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
