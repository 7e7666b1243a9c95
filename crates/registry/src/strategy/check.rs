//! For tests: what becomes of a manifest on its way through a kind's rules.
//!
//! A kind is named as in a manifest (`Pod`) or, where several groups have one of that name, by the type of its schema
//! (`events.v1.Event`).

use crate::builtin;
use crate::resource::Resource;
use object::Value;
use object::field::Errors;

fn row(kind: &str) -> &'static Resource {
    let row = builtin().iter().find(|row| row.kind == kind || row.schema_type == kind);
    row.unwrap_or_else(|| panic!("there is no kind {kind}"))
}

/// A manifest with what the schema and the kind fill in.
pub(super) fn filled(kind: &str, manifest: &Value) -> Value {
    let row = row(kind);
    let (schema, node, mut object) = (row.schema(), row.node, manifest.clone());
    let unknown = schema::conform(schema, node, &mut object).expect("the manifest has the types of the schema");
    assert_eq!(unknown, [""; 0], "{kind} has no such fields");
    schema::fill(schema, node, &mut object);
    if let Some(default) = row.strategy.default {
        default(&mut object);
        let once = object.clone();
        default(&mut object);
        assert_eq!(object, once, "defaults that are set twice change something");
    }
    object
}

/// The object a manifest becomes, before it is validated.
pub(super) fn prepared(kind: &str, manifest: &Value, old: Option<&Value>) -> Value {
    let mut object = filled(kind, manifest);
    if let Some(prepare) = row(kind).strategy.prepare {
        prepare(&mut object, old);
    }
    object
}

/// What the rules say of an object, or of updating another one to it.
fn judged(kind: &str, object: &Value, old: Option<&Value>) -> Vec<String> {
    let mut errors = Errors::new();
    let validate = row(kind).strategy.validate.expect("the kind has rules");
    validate(object, old, &mut errors);
    errors.iter().map(ToString::to_string).collect()
}

/// Everything that is wrong with a manifest, or with updating another one to it, as if nothing had been prepared.
pub(super) fn messages(kind: &str, manifest: &Value, old: Option<&Value>) -> Vec<String> {
    judged(kind, &filled(kind, manifest), old.map(|old| filled(kind, old)).as_ref())
}

/// Everything that is wrong with what a manifest becomes, or with updating what another one became to it; a line each.
pub(super) fn mistakes(kind: &str, manifest: &Value, old: Option<&Value>) -> String {
    let old = old.map(|old| prepared(kind, old, None));
    judged(kind, &prepared(kind, manifest, old.as_ref()), old.as_ref()).join("\n")
}

pub(super) fn warnings(kind: &str, manifest: &Value) -> String {
    let warn = row(kind).strategy.warn.expect("the kind has warnings");
    warn(&prepared(kind, manifest, None), None).join("\n")
}

/// The manifest with one more field, given by its path: `spec.containers.0.image`. Null removes it.
pub(super) fn with(manifest: &Value, path: &str, value: &Value) -> Value {
    let mut changed = manifest.clone();
    let mut at = &mut changed;
    for step in path.split('.') {
        at = match (step.parse::<usize>(), at) {
            (Ok(index), Value::Array(items)) => {
                if index == items.len() {
                    items.push(Value::Null);
                }
                &mut items[index]
            }
            (Ok(0), at @ Value::Null) => {
                *at = Value::Array(vec![Value::Null]);
                &mut at[0]
            }
            (_, at) => &mut at[step],
        };
    }
    *at = value.clone();
    changed
}

/// Changing one field of a good manifest makes exactly these mistakes, a line each.
pub(super) fn each_change_makes_its_mistakes(kind: &str, good: &Value, cases: &[(&str, Value, &str)]) {
    assert_eq!(mistakes(kind, good, None), "", "the good {kind}");
    for (path, value, expected) in cases {
        assert_eq!(mistakes(kind, &with(good, path, value), None), *expected, "{kind}: {path} = {value}");
    }
}

/// Changing one field of a good manifest gives exactly these messages.
pub(super) fn each_mistake_has_its_message(kind: &str, good: &Value, cases: &[(&str, Value, &[&str])]) {
    assert_eq!(messages(kind, good, None), [""; 0], "the good {kind}");
    for (path, value, expected) in cases {
        assert_eq!(messages(kind, &with(good, path, value), None), *expected, "{kind}: {path} = {value}");
    }
}

/// Changing one field of an object that is there gives exactly these messages.
pub(super) fn each_change_has_its_message(kind: &str, old: &Value, cases: &[(&str, Value, &[&str])]) {
    assert_eq!(messages(kind, old, Some(old)), [""; 0], "{kind}: no change");
    for (path, value, expected) in cases {
        assert_eq!(messages(kind, &with(old, path, value), Some(old)), *expected, "{kind}: {path} = {value}");
    }
}
