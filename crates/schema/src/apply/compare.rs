//! What has changed between two versions of an object, by field.

use super::Invalid;
use super::element::{Element, same};
use super::form::{Fields, Form, Items, Place, form, take_group};
use super::set::{Entry, FieldSet};
use crate::node::{NodeId, Schema};
use object::{Map, Value};
use std::cmp::Ordering;

/// Whatever has appeared or gone is listed with all that contains it as far as that has appeared or gone too.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Changes {
    pub added: FieldSet,
    pub modified: FieldSet,
    pub removed: FieldSet,
}

impl Changes {
    pub fn is_empty(&self) -> bool {
        self.added.is_empty() && self.modified.is_empty() && self.removed.is_empty()
    }

    /// Takes out what is in a set or below it.
    pub fn without(self, set: &FieldSet) -> Changes {
        Changes {
            added: self.added.without(set),
            modified: self.modified.without(set),
            removed: self.removed.without(set),
        }
    }

    /// Adds the changes of a child, which may have been modified itself.
    fn below(&mut self, element: &Element, modified: bool, changes: Changes) {
        for (set, member, children) in [
            (&mut self.added, false, changes.added),
            (&mut self.modified, modified, changes.modified),
            (&mut self.removed, false, changes.removed),
        ] {
            if member || !children.is_empty() {
                set.add(Entry { element: element.clone(), member, children });
            }
        }
    }
}

pub fn compare(schema: &Schema, node: NodeId, old: &Value, new: &Value) -> Result<Changes, Invalid> {
    let mut changes = Changes::default();
    Comparison { schema }.value(Place::root(node), old, new, &mut changes)?;
    Ok(changes)
}

struct Comparison<'s> {
    schema: &'s Schema,
}

impl Comparison<'_> {
    /// Whether the value in this place is modified itself; what changed below it goes to `changes`.
    fn value(&self, place: Place, old: &Value, new: &Value, changes: &mut Changes) -> Result<bool, Invalid> {
        match (form(self.schema, place, old), form(self.schema, place, new)) {
            (Form::Fields(known, old), Form::Fields(_, new)) => {
                self.fields(known, old, new, changes)?;
                Ok(false)
            }
            (Form::Items(known, old), Form::Items(_, new)) => {
                self.items(known, old, new, changes)?;
                Ok(false)
            }
            (before, after) => {
                changes.removed = self.all_below(place, old)?;
                changes.added = self.all_below(place, new)?;
                // Between nothing and something in it, the thing itself has not changed, only what is in it.
                let filled = old.is_null() && !after.is_empty() || new.is_null() && !before.is_empty();
                Ok(!filled && !same(old, new))
            }
        }
    }

    fn fields(&self, known: Fields<'_>, old: &Map, new: &Map, changes: &mut Changes) -> Result<(), Invalid> {
        if old.is_same(new) {
            return Ok(());
        }
        let (mut before, mut after) = (old.iter().peekable(), new.iter().peekable());
        loop {
            let order = match (before.peek(), after.peek()) {
                (None, None) => return Ok(()),
                (Some(_), None) => Ordering::Less,
                (None, Some(_)) => Ordering::Greater,
                (Some(before), Some(after)) => before.0.cmp(after.0),
            };
            let old = if order.is_le() { before.next() } else { None };
            let new = if order.is_ge() { after.next() } else { None };
            let Some((name, _)) = old.or(new) else { return Ok(()) };
            let child = known.child(name);
            let element = Element::Field(child.name);
            self.child(child.place, &element, old.map(|old| old.1), new.map(|new| new.1), changes)?;
        }
    }

    fn items(&self, known: Items<'_>, old: &[Value], new: &[Value], changes: &mut Changes) -> Result<(), Invalid> {
        if old == new {
            return Ok(());
        }
        let (old, new) = (known.sorted(old)?, known.sorted(new)?);
        let (mut before, mut after) = (old.as_slice(), new.as_slice());
        loop {
            let order = match (before.first(), after.first()) {
                (None, None) => return Ok(()),
                (Some(_), None) => Ordering::Less,
                (None, Some(_)) => Ordering::Greater,
                (Some(before), Some(after)) => before.0.cmp(&after.0),
            };
            let old = if order.is_le() { take_group(&mut before) } else { &[] };
            let new = if order.is_ge() { take_group(&mut after) } else { &[] };
            let Some((element, _)) = old.first().or(new.first()) else { return Ok(()) };
            self.group(known.place(), element, old, new, changes)?;
        }
    }

    /// The items with one key. Usually that is one item; several are one field without anything below.
    fn group(
        &self,
        place: Place,
        element: &Element,
        old: &[(Element, &Value)],
        new: &[(Element, &Value)],
        changes: &mut Changes,
    ) -> Result<(), Invalid> {
        match (old, new) {
            ([] | [_], [] | [_]) => {
                let (old, new) = (old.first().map(|item| item.1), new.first().map(|item| item.1));
                self.child(place, element, old, new, changes)?;
            }
            ([_, _, ..], [_, _, ..]) => {
                let unchanged = old.len() == new.len() && old.iter().zip(new).all(|(old, new)| same(old.1, new.1));
                if !unchanged {
                    changes.modified.add(Entry::leaf(element.clone()));
                }
            }
            ([_, _, ..], new) => {
                changes.removed.add(Entry::leaf(element.clone()));
                if let [(_, new)] = new {
                    self.child(place, element, None, Some(new), changes)?;
                }
            }
            (old, _) => {
                changes.added.add(Entry::leaf(element.clone()));
                if let [(_, old)] = old {
                    self.child(place, element, Some(old), None, changes)?;
                }
            }
        }
        Ok(())
    }

    fn child(
        &self,
        place: Place,
        element: &Element,
        old: Option<&Value>,
        new: Option<&Value>,
        changes: &mut Changes,
    ) -> Result<(), Invalid> {
        let all = |value| {
            let children = self.all_below(place, value).map_err(|error| error.below(element))?;
            Ok(Entry { element: element.clone(), member: true, children })
        };
        match (old, new) {
            (None, None) => {}
            (Some(old), None) => changes.removed.add(all(old)?),
            (None, Some(new)) => changes.added.add(all(new)?),
            (Some(old), Some(new)) => {
                let mut inner = Changes::default();
                let modified = self.value(place, old, new, &mut inner).map_err(|error| error.below(element))?;
                changes.below(element, modified, inner);
            }
        }
        Ok(())
    }

    /// Everything below a place, structures included: what appears or goes with the value there.
    fn all_below(&self, place: Place, value: &Value) -> Result<FieldSet, Invalid> {
        let mut set = FieldSet::default();
        match form(self.schema, place, value) {
            Form::Leaf => {}
            Form::Fields(known, fields) => {
                set.entries.reserve_exact(fields.len());
                for (name, value) in fields {
                    let child = known.child(name);
                    let element = Element::Field(child.name);
                    let children = self.all_below(child.place, value).map_err(|error| error.below(&element))?;
                    set.entries.push(Entry { element, member: true, children });
                }
            }
            Form::Items(known, items) => {
                let sorted = known.sorted(items)?;
                set.entries.reserve_exact(sorted.len());
                let mut rest = sorted.as_slice();
                while let [(element, item), duplicates @ ..] = take_group(&mut rest) {
                    let children = match duplicates {
                        [] => self.all_below(known.place(), item).map_err(|error| error.below(element))?,
                        _ => FieldSet::default(),
                    };
                    set.entries.push(Entry { element: element.clone(), member: true, children });
                }
            }
        }
        Ok(set)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::builtin;
    use crate::node::Shape;
    use object::json;

    fn changes(schema: &Schema, node: NodeId, old: &Value, new: &Value) -> [String; 3] {
        let changes = compare(schema, node, old, new).unwrap();
        [changes.added, changes.modified, changes.removed].map(|set| set.to_string())
    }

    #[test]
    fn changes_are_told_by_field() {
        for (kind, old, new, [added, modified, removed]) in [
            ("core.v1.Pod", json!({ "spec": {} }), json!({ "spec": {} }), ["", "", ""]),
            (
                "core.v1.PodSpec",
                json!({ "hostname": "a", "nodeName": "n" }),
                json!({ "hostname": "b", "subdomain": "s" }),
                [".subdomain", ".hostname", ".nodeName"],
            ),
            (
                "core.v1.PodSpec",
                json!({}),
                json!({ "containers": [{ "name": "c", "resources": { "limits": { "cpu": "1" } } }] }),
                [
                    ".containers\n.containers[name=\"c\"]\n.containers[name=\"c\"].name\n.containers[name=\"c\"].resources\n.containers[name=\"c\"].resources.limits\n.containers[name=\"c\"].resources.limits.cpu",
                    "",
                    "",
                ],
            ),
            (
                "core.v1.PodSpec",
                json!({ "containers": null, "tolerations": [{ "key": "a" }], "securityContext": {} }),
                json!({ "containers": [{ "name": "c" }], "tolerations": [{ "key": "b" }], "securityContext": null }),
                [".containers[name=\"c\"]\n.containers[name=\"c\"].name", ".securityContext\n.tolerations", ""],
            ),
            (
                "meta.v1.ObjectMeta",
                json!({ "finalizers": ["a", "b"], "labels": { "x": "1" } }),
                json!({ "finalizers": ["b", "c"], "labels": null }),
                [".finalizers[=\"c\"]", "", ".finalizers[=\"a\"]\n.labels.x"],
            ),
        ] {
            let node = builtin().named(kind).unwrap();
            assert_eq!(changes(builtin(), node, &old, &new), [added, modified, removed], "{old} -> {new}");
        }
    }

    #[test]
    fn duplicates_are_one_field() {
        let node = builtin().named("core.v1.Container").unwrap();
        let env = |values: &[&str]| json!({ "env": values.iter().map(|value| json!({ "name": "a", "value": value })).collect::<Vec<_>>() });
        let (item, value) = (".env[name=\"a\"]", ".env[name=\"a\"].name\n.env[name=\"a\"].value");
        let whole = format!("{item}\n{value}");
        for (old, new, expected) in [
            (env(&["1", "2"]), env(&["1", "2"]), ["", "", ""]),
            (env(&["1", "2"]), env(&["2", "1"]), ["", item, ""]),
            (env(&["1", "2"]), env(&["1"]), [whole.as_str(), "", item]),
            (env(&["1"]), env(&["1", "2"]), [item, "", whole.as_str()]),
            (env(&[]), env(&["1", "2"]), [item, "", ""]),
            (env(&["1", "2"]), env(&[]), ["", "", item]),
        ] {
            assert_eq!(changes(builtin(), node, &old, &new), expected, "{old} -> {new}");
        }
    }

    #[test]
    fn a_value_that_changes_its_type_is_modified_and_so_is_what_was_in_it() {
        let mut schema = Schema::default();
        let any = schema.add(Shape::Any);
        for (old, new, expected) in [
            (json!({ "a": { "b": 1 } }), json!({ "a": 1 }), ["", ".a", ".a.b"]),
            (json!({ "a": [1] }), json!({ "a": { "b": 1 } }), [".a.b", ".a", ""]),
            (json!({ "a": 1 }), json!({ "a": 1.0 }), ["", "", ""]),
            (json!({ "a": [1] }), json!({ "a": [2] }), ["", ".a", ""]),
        ] {
            assert_eq!(changes(&schema, any, &old, &new), expected, "{old} -> {new}");
        }
    }
}
