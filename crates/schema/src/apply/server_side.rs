//! Server-side apply.

use super::check::check;
use super::compare::compare;
use super::conflict::{Conflict, Conflicts};
use super::fields::fields_of;
use super::last_applied::{self, Located};
use super::managers::{Managed, Managers, Operation};
use super::merge::{give_up, merge};
use super::set::FieldSet;
use super::update::{UNOWNED, track, zero};
use super::{Author, Invalid, Kind};
use crate::{NodeId, Schema};
use object::Value;

/// To whom all fields are ascribed of an object without owners that is applied for the first time.
const BEFORE_FIRST_APPLY: &str = "before-first-apply";

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ApplyError {
    /// Others own fields that would change.
    #[error("{0}")]
    Conflicts(Conflicts),
    /// What is applied must not be: a bad request.
    #[error("{0}")]
    BadRequest(String),
    /// What is applied, or the object that it is applied to, does not fit the schema. Other servers call this an
    /// internal error.
    #[error("{0}")]
    Invalid(String),
}

impl From<Invalid> for ApplyError {
    fn from(invalid: Invalid) -> Self {
        ApplyError::Invalid(invalid.to_string())
    }
}

/// Whether something can be applied at all: every field is known and of its type, and no two items have the same key.
pub fn check_applied(schema: &Schema, node: NodeId, applied: &Value) -> Result<(), ApplyError> {
    check(schema, node, applied).map_err(|mistakes| {
        ApplyError::Invalid(format!("failed to create typed patch object ({}): {mistakes}", name(applied)))
    })
}

/// The live object with what is applied, and its owners then.
///
/// - The author comes to own exactly what is applied, here and nowhere else.
/// - A field that others own and that keeps its value has several owners. One that would change is a conflict; with
///   `force` the others lose it.
/// - What the author applied before and now leaves out goes, unless somebody else owns it.
///
/// The result is without `managedFields`, and not defaulted yet. Nulls that were applied are in it. A map or list
/// that loses its last item but that somebody else owns stays, empty. The time of the author's entry is new if the
/// object or the fields in the entry have changed.
pub fn apply(
    kind: &Kind<'_>,
    author: &Author<'_>,
    live: Option<&Value>,
    applied: &Value,
    mut managers: Managers,
    force: bool,
) -> Result<(Value, Managers), ApplyError> {
    let managed_fields = applied.pointer("/metadata/managedFields");
    if managed_fields.is_some_and(|fields| !fields.is_null()) {
        return Err(ApplyError::BadRequest("metadata.managedFields must be nil".to_owned()));
    }
    check_applied(kind.schema, kind.node, applied)?;
    let owner = author.identity(kind, Operation::Apply);
    managers.settle(kind);
    let fields = fields_of(kind.schema, kind.node, applied)?.without(kind.reset);
    let Some(live) = live else {
        managers.own(Managed { owner, time: Some(author.time.to_owned()), fields });
        return Ok((without_managed_fields(applied.clone()), managers));
    };
    if managers.is_empty() {
        let before = Author { manager: BEFORE_FIRST_APPLY, ..*author };
        track(kind, &before, &zero(kind.schema, kind.node), live, &mut managers)?;
    }

    let last = managers.remove(&owner);
    let mut merged = merge(kind.schema, kind.node, live, applied)?;
    if let Some(last) = &last {
        let others = managers.iter().map(|entry| entry.fields.clone());
        let owned = others.fold(fields.clone(), FieldSet::union);
        give_up(kind.schema, kind.node, &mut merged, &last.fields, &owned);
    }
    let changes = compare(kind.schema, kind.node, live, &merged)?.without(kind.reset);
    let gained = changes.added.union(changes.modified);
    if !force {
        let forgiven = || last_applied::forgiven(kind, author.manager, live);
        let conflicts = managers.conflicts(kind, &gained);
        if !conflicts.is_empty()
            && let Some(conflicts) = last_applied::remaining(conflicts, &forgiven())
        {
            return Err(ApplyError::Conflicts(conflicts));
        }
    }
    managers.lose(kind, &gained);
    managers.lose(kind, &changes.removed);

    let fields = fields.difference(&UNOWNED);
    let time = match last {
        Some(last) if last.fields == fields && merged == *live => last.time,
        _ => Some(author.time.to_owned()),
    };
    managers.own(Managed { owner, time, fields });
    last_applied::refresh(author.manager, applied, &mut merged);
    Ok((without_managed_fields(merged), managers))
}

fn without_managed_fields(mut object: Value) -> Value {
    if let Some(Value::Object(metadata)) = object.get_mut("metadata") {
        metadata.remove("managedFields");
    }
    object
}

/// The object in question, as error messages name it.
fn name(applied: &Value) -> String {
    let text = |pointer| applied.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    let (version, kind) = (text("/apiVersion"), text("/kind"));
    let slash = if version.contains('/') { "" } else { "/" };
    format!("{}/{}; {slash}{version}, Kind={kind}", text("/metadata/namespace"), text("/metadata/name"))
}

impl Managers {
    /// Adds an entry of an owner who has none, unless it comes out empty.
    fn own(&mut self, entry: Managed) {
        let fields = entry.fields.difference(&UNOWNED);
        if !fields.is_empty() {
            self.entries.push(Managed { fields, ..entry });
            self.sort();
        }
    }

    /// Who owns some of these fields.
    fn conflicts(&self, kind: &Kind<'_>, fields: &FieldSet) -> Vec<Located> {
        let mut conflicts = Vec::new();
        for entry in self.iter().filter(|entry| kind.comparable(&entry.owner.api_version)) {
            entry.fields.clone().intersection(fields).visit(|path| {
                let shown = path.iter().map(ToString::to_string).collect();
                let conflict = Conflict { path: shown, owner: entry.owner.clone(), time: entry.time.clone() };
                conflicts.push((path.iter().map(|element| (*element).clone()).collect(), conflict));
            });
        }
        conflicts
    }
}
