//! Whether an object may be applied: every field is known and of its type, and no two items have the same key.
//!
//! An applied object states what its author owns, so what cannot be owned is refused rather than guessed at. Stored
//! objects are not held to this: they may be older than a rule.

use super::Invalid;
use super::element::Element;
use super::form::{Form, Place, form, take_group};
use crate::node::{NodeId, Scalar, Schema, Shape};
use object::Value;

/// So many mistakes are told at most.
const MAX_MISTAKES: usize = 20;

/// All that is wrong with an applied object, in one message.
pub(super) fn check(schema: &Schema, node: NodeId, applied: &Value) -> Result<(), String> {
    let mut mistakes = Vec::new();
    Check { schema, mistakes: &mut mistakes }.value(Place::root(node), applied, &mut Vec::new());
    match mistakes.as_slice() {
        [] => Ok(()),
        [one] => Err(one.to_string()),
        several => Err(several.iter().fold("errors:".to_owned(), |all, mistake| format!("{all}\n  {mistake}"))),
    }
}

struct Check<'a> {
    schema: &'a Schema,
    mistakes: &'a mut Vec<Invalid>,
}

impl Check<'_> {
    fn mistake(&mut self, path: &[Element], mistake: Invalid) {
        if self.mistakes.len() < MAX_MISTAKES {
            self.mistakes.push(path.iter().rev().fold(mistake, Invalid::below));
        }
    }

    fn value(&mut self, place: Place, value: &Value, path: &mut Vec<Element>) {
        let shape = place.shape(self.schema);
        if let Some(expected) = misfit(shape, value) {
            self.mistake(path, Invalid::new(format!("expected {expected}, got {value}")));
            return;
        }
        match (shape, value) {
            (Shape::Struct(known), Value::Object(fields)) => {
                for (name, value) in fields {
                    let field = known.field(name);
                    path.push(Element::field(name));
                    match field {
                        None if !known.open => self.mistake(path, Invalid::new("field not declared in schema")),
                        _ => self.value(place.of_field(field), value, path),
                    }
                    path.pop();
                }
            }
            (Shape::Map(map), Value::Object(fields)) => {
                for (name, value) in fields {
                    path.push(Element::field(name));
                    self.value(place.of(map.values), value, path);
                    path.pop();
                }
            }
            (Shape::List(list), Value::Array(items)) => {
                self.duplicates(place, value, path);
                for (at, item) in items.iter().enumerate() {
                    path.push(Element::Index(i64::try_from(at).unwrap_or(i64::MAX)));
                    self.value(place.of(list.items), item, path);
                    path.pop();
                }
            }
            _ => {}
        }
    }

    fn duplicates(&mut self, place: Place, list: &Value, path: &[Element]) {
        let Form::Items(known, items) = form(self.schema, place, list) else { return };
        match known.sorted(items) {
            Err(mistake) => self.mistake(path, mistake),
            Ok(sorted) => {
                let mut rest = sorted.as_slice();
                while let [(element, _), duplicates @ ..] = take_group(&mut rest) {
                    if !duplicates.is_empty() {
                        self.mistake(path, Invalid::new(format!("duplicate entries for key {element}")));
                    }
                }
            }
        }
    }
}

/// What a value should have been. Null is anything.
fn misfit(shape: &Shape, value: &Value) -> Option<&'static str> {
    let (fits, expected) = match shape {
        Shape::Any => (true, ""),
        Shape::Struct(_) | Shape::Map(_) => (value.is_object(), "map"),
        Shape::List(_) => (value.is_array(), "list"),
        Shape::Scalar(Scalar::String | Scalar::Bytes) => (value.is_string(), "string"),
        Shape::Scalar(Scalar::Bool) => (value.is_boolean(), "boolean"),
        Shape::Scalar(Scalar::Int32 | Scalar::Int64 | Scalar::Double) => (value.is_number(), "numeric (int or float)"),
        Shape::Scalar(Scalar::Quantity | Scalar::IntOrString | Scalar::Time | Scalar::MicroTime | Scalar::Duration) => {
            (!value.is_object() && !value.is_array(), "any scalar")
        }
    };
    (!fits && !value.is_null()).then_some(expected)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::builtin;
    use object::json;

    #[test]
    fn what_cannot_be_owned_is_refused() {
        let node = builtin().named("core.v1.Pod").unwrap();
        for (pod, expected) in [
            (json!({ "metadata": { "labels": null }, "spec": { "containers": [] } }), Ok(())),
            (json!({ "spec": { "foo": 1 } }), Err(".spec.foo: field not declared in schema")),
            (json!({ "spec": { "hostname": 1 } }), Err(".spec.hostname: expected string, got 1")),
            (json!({ "spec": { "containers": {} } }), Err(".spec.containers: expected list, got {}")),
            (
                json!({ "spec": { "containers": [{ "name": "c" }, { "name": "c" }] } }),
                Err(".spec.containers: duplicate entries for key [name=\"c\"]"),
            ),
            (
                json!({ "metadata": { "finalizers": ["a", "b", "a"] } }),
                Err(".metadata.finalizers: duplicate entries for key [=\"a\"]"),
            ),
            (
                json!({ "spec": { "foo": 1, "tolerations": [{ "bar": 1 }] } }),
                Err(
                    "errors:\n  .spec.foo: field not declared in schema\n  .spec.tolerations[0].bar: field not declared in schema",
                ),
            ),
        ] {
            assert_eq!(check(builtin(), node, &pod), expected.map_err(str::to_owned), "{pod}");
        }
    }
}
