//! Who owns what after a create, an update or a patch.

use super::compare::compare;
use super::form::Place;
use super::managers::{Identity, Managed, Managers, Operation};
use super::set::FieldSet;
use super::{Author, Invalid, Kind};
use crate::node::{NodeId, Schema, Shape};
use object::{Map, Value};
use std::sync::LazyLock;

/// So many entries of updates are kept; the oldest of the others are merged.
const MAX_UPDATERS: usize = 10;

/// Who is said to have made the changes that were merged.
const ANCIENT: &str = "ancient-changes";

/// Nobody owns these: they identify the object or belong to the server.
pub(super) static UNOWNED: LazyLock<FieldSet> = LazyLock::new(|| {
    FieldSet::of_fields([
        "apiVersion",
        "kind",
        "metadata",
        "metadata.name",
        "metadata.namespace",
        "metadata.creationTimestamp",
        "metadata.selfLink",
        "metadata.uid",
        "metadata.clusterName",
        "metadata.generation",
        "metadata.managedFields",
        "metadata.resourceVersion",
    ])
});

/// Makes of the owners those after `new` replaced `old`; for an object that is created, `old` is none.
///
/// The author owns what was added or modified, and nobody else does. What was removed has no owner. An author who
/// changed nothing keeps the entry that was there, with its time. An existing object without any owner stays without:
/// somebody has cleared them, and ownership starts again with the first apply.
///
/// An error means that one of the objects does not fit its schema; the owners are those that were there.
pub fn update(
    kind: &Kind<'_>,
    author: &Author<'_>,
    old: Option<&Value>,
    new: &Value,
    managers: &mut Managers,
) -> Result<(), Invalid> {
    match old {
        Some(_) if managers.is_empty() => Ok(()),
        Some(old) => {
            managers.settle(kind);
            track(kind, author, old, new, managers)
        }
        None => track(kind, author, &zero(kind.schema, kind.node), new, managers),
    }
}

pub(super) fn track(
    kind: &Kind<'_>,
    author: &Author<'_>,
    old: &Value,
    new: &Value,
    managers: &mut Managers,
) -> Result<(), Invalid> {
    let changes = compare(kind.schema, kind.node, old, new)?.without(kind.reset);
    let gained = changes.added.union(changes.modified);
    managers.lose(kind, &gained);
    managers.lose(kind, &changes.removed);
    let gained = gained.difference(&UNOWNED);
    if !gained.is_empty() {
        let owner = author.identity(kind, Operation::Update);
        let before = managers.remove(&owner).map(|entry| entry.fields).unwrap_or_default();
        managers.entries.push(Managed { owner, time: Some(author.time.to_owned()), fields: before.union(gained) });
    }
    managers.merge_oldest();
    managers.sort();
    Ok(())
}

impl Managers {
    /// Takes fields away from everyone. Who owns nothing is forgotten.
    pub(super) fn lose(&mut self, kind: &Kind<'_>, fields: &FieldSet) {
        if fields.is_empty() {
            return;
        }
        self.entries.retain_mut(|entry| {
            if kind.comparable(&entry.owner.api_version) {
                entry.fields = std::mem::take(&mut entry.fields).difference(fields);
            }
            !entry.fields.is_empty()
        });
    }

    /// Puts owners in the terms of the current schema: where a type has come to merge as one value, who owned
    /// something in it owns it.
    pub(super) fn settle(&mut self, kind: &Kind<'_>) {
        for entry in self.entries.iter_mut().filter(|entry| kind.comparable(&entry.owner.api_version)) {
            settle(kind.schema, Place::root(kind.node), &mut entry.fields);
        }
    }

    fn merge_oldest(&mut self) {
        let is_update = |entry: &&Managed| entry.owner.operation == Operation::Update;
        let mut excess = self.entries.iter().filter(is_update).count().saturating_sub(MAX_UPDATERS);
        if excess == 0 {
            return;
        }
        let mut oldest: Vec<(Option<String>, Identity)> =
            self.entries.iter().filter(is_update).map(|entry| (entry.time.clone(), entry.owner.clone())).collect();
        oldest.sort();
        // The oldest entry of each version, which becomes the one that others are merged into.
        let mut first: Vec<Identity> = Vec::new();
        for (time, owner) in oldest {
            if excess == 0 {
                return;
            }
            let bucket = Identity {
                manager: ANCIENT.to_owned(),
                operation: Operation::Update,
                api_version: owner.api_version.clone(),
                subresource: String::new(),
            };
            let Some(start) = first.iter().find(|start| start.api_version == owner.api_version) else {
                first.push(owner);
                continue;
            };
            if owner == bucket {
                continue;
            }
            if self.get(&bucket).is_none()
                && let Some(entry) = self.entries.iter_mut().find(|entry| entry.owner == *start)
            {
                entry.owner = bucket.clone();
            }
            let Some(merged) = self.remove(&owner) else { continue };
            if let Some(entry) = self.entries.iter_mut().find(|entry| entry.owner == bucket) {
                entry.fields = std::mem::take(&mut entry.fields).union(merged.fields);
                entry.time = time;
            }
            excess -= 1;
        }
    }
}

fn settle(schema: &Schema, place: Place, fields: &mut FieldSet) {
    for entry in fields.entries.iter_mut().filter(|entry| !entry.children.is_empty()) {
        let place = place.at(schema, &entry.element);
        if place.is_whole(schema) {
            entry.member = true;
            entry.children = FieldSet::default();
        } else {
            settle(schema, place, &mut entry.children);
        }
    }
}

/// What an object of a built-in kind holds before anybody has set a field. In other servers these are the fields of
/// its Go type that cannot be left out. Nobody who creates an object owns them themselves, only what is in them.
pub fn zero(schema: &Schema, node: NodeId) -> Value {
    let mut fields = Map::new();
    if let Shape::Struct(known) = schema.shape(node) {
        // Custom resources have no such fields, nor protobuf numbers.
        for field in known.fields.iter().filter(|field| !field.number.is_empty()) {
            let value = match &field.default {
                Some(Value::Object(default)) if default.is_empty() => zero(schema, field.node),
                default if field.required => default.clone().unwrap_or_default(),
                _ => continue,
            };
            fields.insert(field.name.to_string(), value);
        }
    }
    Value::Object(fields)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::builtin;
    use object::json;

    fn managers(entries: &[(&str, &str, &str)]) -> Managers {
        let entry = |(manager, version, time): &(&str, &str, &str)| {
            let fields = json!({ "f:data": { (format!("f:{manager}")): {} } });
            json!({
                "manager": manager, "operation": "Update", "apiVersion": version, "time": time,
                "fieldsType": "FieldsV1", "fieldsV1": fields,
            })
        };
        Managers::decode(Some(&entries.iter().map(entry).collect())).unwrap()
    }

    #[test]
    fn only_what_cannot_be_left_out_is_there_from_the_start() {
        let kind = |name: &str| zero(builtin(), builtin().named(name).unwrap());
        assert_eq!(kind("core.v1.Pod"), json!({ "metadata": {}, "spec": { "containers": null }, "status": {} }));
        assert_eq!(
            kind("apps.v1.Deployment")["spec"],
            json!({ "selector": null, "strategy": {}, "template": { "metadata": {}, "spec": { "containers": null } } })
        );
    }

    #[test]
    fn updaters_are_merged_by_version_oldest_first() {
        let names = ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l"];
        let entries: Vec<_> = names.iter().map(|name| (*name, if *name == "a" { "v2" } else { "v1" }, *name)).collect();
        let mut merged = managers(&entries);
        merged.merge_oldest();
        let left: Vec<_> = merged.iter().map(|entry| (entry.owner.manager.as_str(), entry.fields.len())).collect();
        assert_eq!(left.len(), 10);
        assert!(left.contains(&("a", 1)), "the only one in its version stays");
        let ancient = merged.iter().find(|entry| entry.owner.manager == ANCIENT).unwrap();
        assert_eq!(ancient.fields, FieldSet::of_fields(["data.b", "data.c", "data.d"]));
        assert_eq!(ancient.time.as_deref(), Some("d"));
        merged.merge_oldest();
        assert_eq!(merged.iter().count(), 10);
    }

    #[test]
    fn who_owned_a_part_of_what_now_is_one_value_owns_it() {
        let node = builtin().named("core.v1.Pod").unwrap();
        let mut fields =
            FieldSet::of_fields(["spec.nodeSelector.a", "spec.tolerations", "spec.hostname", "spec.nodeSelector.b"]);
        settle(builtin(), Place::root(node), &mut fields);
        assert_eq!(fields, FieldSet::of_fields(["spec.hostname", "spec.nodeSelector", "spec.tolerations"]));
    }
}
