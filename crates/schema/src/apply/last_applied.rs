//! From client-side to server-side apply, for users of `kubectl apply --server-side`.
//!
//! Client-side apply keeps in an annotation what was applied last. Its author updated those fields, so that a first
//! server-side apply by `kubectl` would be in conflict with what the same user did before. Such conflicts are
//! forgiven; and as long as the annotation is there it is kept up to date, so that users may go back.

use super::compare::compare;
use super::conflict::{Conflict, Conflicts};
use super::element::Element;
use super::fields::fields_of;
use super::set::FieldSet;
use super::{Invalid, Kind};
use object::Value;

/// The name under which `kubectl` applies. Who does not want any of this applies under another one.
const KUBECTL: &str = "kubectl";

const ANNOTATION: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// What all annotations of an object may take together.
const MAX_ANNOTATIONS_BYTES: usize = 256 * 1024;

fn annotation(object: &Value) -> Option<&str> {
    object.get("metadata")?.get("annotations")?.get(ANNOTATION)?.as_str().filter(|text| !text.is_empty())
}

/// The fields over which `manager` has no conflicts: those of the annotation that still are as it says.
pub(super) fn forgiven(kind: &Kind<'_>, manager: &str, live: &Value) -> FieldSet {
    if manager != KUBECTL {
        return FieldSet::default();
    }
    let last = annotation(live).and_then(|text| text.parse::<Value>().ok());
    match last.filter(|last| last.get("apiVersion").and_then(Value::as_str) == Some(kind.api_version)) {
        // An annotation that cannot be read forgives nothing.
        Some(last) => unchanged(kind, &last, live).unwrap_or_default(),
        None => FieldSet::default(),
    }
}

fn unchanged(kind: &Kind<'_>, last: &Value, live: &Value) -> Result<FieldSet, Invalid> {
    let changes = compare(kind.schema, kind.node, last, live)?;
    let fields = fields_of(kind.schema, kind.node, last)?;
    Ok(fields.difference(&changes.modified).difference(&changes.added).difference(&changes.removed))
}

/// Writes what was applied into the annotation, if there is one.
pub(super) fn refresh(manager: &str, applied: &Value, merged: &mut Value) {
    if manager != KUBECTL || annotation(merged).is_none() {
        return;
    }
    let mut applied = applied.clone();
    if let Some(Value::Object(annotations)) = applied.pointer_mut("/metadata/annotations") {
        annotations.remove(ANNOTATION);
    }
    let Some(Value::Object(annotations)) = merged.pointer_mut("/metadata/annotations") else { return };
    annotations.insert(ANNOTATION.to_owned(), format!("{applied}\n").into());
    let bytes: usize = annotations.iter().map(|(name, value)| name.len() + value.as_str().map_or(0, str::len)).sum();
    if bytes > MAX_ANNOTATIONS_BYTES {
        annotations.remove(ANNOTATION);
    }
}

/// A conflict with the path that it is about.
pub(super) type Located = (Vec<Element>, Conflict);

/// What remains of some conflicts.
pub(super) fn remaining(conflicts: Vec<Located>, forgiven: &FieldSet) -> Option<Conflicts> {
    let open = conflicts.into_iter().filter(|(path, _)| !forgiven.contains(path));
    Conflicts::new(open.map(|(_, conflict)| conflict).collect())
}
