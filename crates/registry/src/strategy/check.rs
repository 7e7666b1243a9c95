//! For tests: what becomes of a manifest on its way through a kind's rules.

#![cfg(test)]

use crate::builtin;
use object::Value;
use object::field::Errors;

/// The object a manifest becomes, before it is validated.
pub(super) fn prepared(kind: &str, manifest: &Value, old: Option<&Value>) -> Value {
    let row = builtin().iter().find(|row| row.kind == kind).unwrap_or_else(|| panic!("there is no kind {kind}"));
    let (schema, node, mut object) = (row.schema(), row.node, manifest.clone());
    let unknown = schema::conform(schema, node, &mut object).unwrap();
    assert_eq!(unknown, [""; 0], "{kind}");
    schema::fill(schema, node, &mut object);
    if let Some(default) = row.strategy.default {
        default(&mut object);
        let once = object.clone();
        default(&mut object);
        assert_eq!(object, once, "defaults that are set twice change something");
    }
    if let Some(prepare) = row.strategy.prepare {
        prepare(&mut object, old);
    }
    object
}

/// Everything that is wrong with a manifest, or with updating what another one became to it; a line each.
pub(super) fn mistakes(kind: &str, manifest: &Value, old: Option<&Value>) -> String {
    let row = builtin().iter().find(|row| row.kind == kind).unwrap();
    let old = old.map(|old| prepared(kind, old, None));
    let object = prepared(kind, manifest, old.as_ref());
    let mut errors = Errors::new();
    row.strategy.validate.unwrap()(&object, old.as_ref(), &mut errors);
    errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
}

pub(super) fn warnings(kind: &str, manifest: &Value) -> String {
    let row = builtin().iter().find(|row| row.kind == kind).unwrap();
    row.strategy.warn.unwrap()(&prepared(kind, manifest, None), None).join("\n")
}

/// The manifest with one more field, given by its path: `spec.containers.0.image`. Null removes it.
pub(super) fn with(manifest: &Value, path: &str, value: &Value) -> Value {
    let mut changed = manifest.clone();
    let mut at = &mut changed;
    for step in path.split('.') {
        // A step may contain dots of its own, written as `~`.
        let step = step.replace('~', ".");
        at = match step.parse::<usize>() {
            Ok(index) if at.is_array() => {
                let items = at.as_array_mut().unwrap();
                if index == items.len() {
                    items.push(Value::Null);
                }
                &mut items[index]
            }
            Ok(0) if at.is_null() => {
                *at = Value::Array(vec![Value::Null]);
                &mut at[0]
            }
            _ => &mut at[step],
        };
    }
    *at = value.clone();
    changed
}
