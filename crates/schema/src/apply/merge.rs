//! The applied object over the live one, and what an applier gives up.

use super::Invalid;
use super::element::Element;
use super::form::{Fields, Form, Items, Place, form};
use super::set::{Entry, FieldSet};
use crate::node::{NodeId, Schema};
use object::{Map, Value};

/// The live object with everything that the applied one sets.
pub(super) fn merge(schema: &Schema, node: NodeId, live: &Value, applied: &Value) -> Result<Value, Invalid> {
    Merge { schema }.value(Place::root(node), live, applied)
}

struct Merge<'s> {
    schema: &'s Schema,
}

impl Merge<'_> {
    fn value(&self, place: Place, live: &Value, applied: &Value) -> Result<Value, Invalid> {
        match (form(self.schema, place, live), form(self.schema, place, applied)) {
            (Form::Fields(known, live), Form::Fields(_, applied)) => self.fields(known, live, applied),
            (Form::Items(known, live), Form::Items(_, applied)) => self.items(known, live, applied),
            // To apply null is to own the field, not to empty what others have put there.
            (form, _) if applied.is_null() && !form.is_empty() => Ok(live.clone()),
            _ => Ok(applied.clone()),
        }
    }

    fn fields(&self, known: Fields<'_>, live: &Map, applied: &Map) -> Result<Value, Invalid> {
        let mut merged = live.clone();
        for (name, applied) in applied {
            let value = match live.get(name) {
                Some(live) => self
                    .value(known.child(name).place, live, applied)
                    .map_err(|error| error.below(&Element::field(name)))?,
                None => applied.clone(),
            };
            merged.insert(name.clone(), value);
        }
        Ok(Value::Object(merged))
    }

    /// Applied items come in the order of the applied list. A live item that was not applied stays before the one
    /// that followed it, as far as the order of the applied ones leaves room.
    fn items(&self, known: Items<'_>, live: &[Value], applied: &[Value]) -> Result<Value, Invalid> {
        let (live_index, applied_index) = (Index::new(known, live)?, Index::new(known, applied)?);
        let mut merged = Vec::with_capacity(live.len().max(applied.len()));
        let mut shared = applied_index.elements.iter().filter(|element| live_index.find(element).is_some()).peekable();
        let mut waiting = 0;
        for (element, item) in applied_index.elements.iter().zip(applied) {
            while let Some(live_element) = live_index.elements.get(waiting)
                && Some(&live_element) != shared.peek()
            {
                if applied_index.find(live_element).is_none() {
                    merged.push(live[waiting].clone());
                }
                waiting += 1;
            }
            shared.next_if_eq(&element);
            if live_index.elements.get(waiting) == Some(element) {
                waiting += 1;
            }
            merged.push(match live_index.find(element) {
                Some(Found::Once(at)) => {
                    self.value(known.place(), &live[at], item).map_err(|error| error.below(element))?
                }
                Some(Found::Often) | None => item.clone(),
            });
        }
        for (element, item) in live_index.elements.iter().zip(live).skip(waiting) {
            if applied_index.find(element).is_none() {
                merged.push(item.clone());
            }
        }
        Ok(Value::Array(merged))
    }
}

/// The items of a list by what tells them apart.
struct Index {
    /// In the order of the list.
    elements: Vec<Element>,
    /// Positions, sorted by element.
    sorted: Vec<usize>,
}

enum Found {
    Once(usize),
    Often,
}

impl Index {
    fn new(known: Items<'_>, items: &[Value]) -> Result<Self, Invalid> {
        let element = |(at, item)| known.element(item).map_err(|error| error.at_item(at));
        let elements = items.iter().enumerate().map(element).collect::<Result<Vec<_>, _>>()?;
        let mut sorted: Vec<usize> = (0..elements.len()).collect();
        sorted.sort_by(|a, b| elements[*a].cmp(&elements[*b]));
        Ok(Index { elements, sorted })
    }

    fn find(&self, element: &Element) -> Option<Found> {
        let from = self.sorted.partition_point(|at| self.elements[*at] < *element);
        let mut found = self.sorted[from..].iter().take_while(|at| self.elements[**at] == *element);
        let first = found.next()?;
        Some(if found.next().is_some() { Found::Often } else { Found::Once(*first) })
    }
}

/// Takes out of an object what its applier owned before (`last`) and nobody owns now, the applier included.
///
/// A field that the schema names counts as owned with anything in it; a key of a map or an item of a list must be
/// owned itself. So an item goes with all that is in it once nobody who owns the item itself is left.
pub(super) fn give_up(schema: &Schema, node: NodeId, object: &mut Value, last: &FieldSet, owned: &FieldSet) {
    GivingUp { schema }.value(Place::root(node), object, last, owned);
}

struct GivingUp<'s> {
    schema: &'s Schema,
}

impl GivingUp<'_> {
    fn value(&self, place: Place, value: &mut Value, last: &FieldSet, owned: &FieldSet) {
        if last.is_empty() {
            return;
        }
        match form(self.schema, place, value) {
            Form::Leaf => {}
            Form::Fields(known, _) => {
                let Value::Object(fields) = value else { return };
                fields.retain(|name, value| {
                    let child = known.child(name);
                    let (last, owned) = (last.field(name), owned.field(name));
                    self.keep(child.place, value, child.declared, last, owned)
                });
            }
            Form::Items(known, _) => {
                let Value::Array(items) = value else { return };
                items.retain_mut(|item| match known.element(item) {
                    Ok(element) => self.keep(known.place(), item, false, last.child(&element), owned.child(&element)),
                    Err(_) => true,
                });
            }
        }
    }

    fn keep(
        &self,
        place: Place,
        value: &mut Value,
        declared: bool,
        last: Option<&Entry>,
        owned: Option<&Entry>,
    ) -> bool {
        let counts = |entry: Option<&Entry>| entry.is_some_and(|entry| entry.member || declared);
        if counts(last) && !counts(owned) {
            return false;
        }
        if let Some(last) = last {
            self.value(place, value, &last.children, owned.map_or(&FieldSet::EMPTY, |owned| &owned.children));
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::builtin;
    use object::json;

    #[test]
    fn applied_items_keep_their_order_and_live_ones_their_place() {
        let node = builtin().named("meta.v1.ObjectMeta").unwrap();
        for (live, applied, merged) in [
            ("", "a b", "a b"),
            ("a b", "", "a b"),
            ("a b c", "b", "a b c"),
            ("a x b y", "b a", "x b y a"),
            ("a b", "b a", "b a"),
            ("x", "a b", "x a b"),
            ("a x", "b a", "b a x"),
            ("a b c d", "d c b a", "d c b a"),
            ("x a y b z", "a n b", "x a y n b z"),
            ("a a x", "x", "a a x"),
            ("a a x", "a", "a x"),
        ] {
            let list = |text: &str| json!({ "finalizers": text.split_whitespace().collect::<Vec<_>>() });
            let found = merge(builtin(), node, &list(live), &list(applied)).unwrap();
            assert_eq!(found, list(merged), "{applied} over {live}");
        }
    }

    #[test]
    fn values_are_merged_as_their_place_says() {
        for (kind, live, applied, merged) in [
            (
                "core.v1.PodSpec",
                json!({ "hostname": "a" }),
                json!({ "nodeName": "b" }),
                json!({ "hostname": "a", "nodeName": "b" }),
            ),
            (
                "core.v1.PodSpec",
                json!({ "nodeSelector": { "a": "1" } }),
                json!({ "nodeSelector": { "b": "2" } }),
                json!({ "nodeSelector": { "b": "2" } }),
            ),
            (
                "core.v1.PodSpec",
                json!({ "tolerations": [{ "key": "a" }] }),
                json!({ "tolerations": [] }),
                json!({ "tolerations": [] }),
            ),
            ("core.v1.PodSpec", json!({ "hostname": "a" }), json!({ "hostname": null }), json!({ "hostname": null })),
            (
                "meta.v1.ObjectMeta",
                json!({ "labels": { "a": "1" } }),
                json!({ "labels": null }),
                json!({ "labels": { "a": "1" } }),
            ),
            (
                "meta.v1.ObjectMeta",
                json!({ "labels": { "a": "1" } }),
                json!({ "labels": {} }),
                json!({ "labels": { "a": "1" } }),
            ),
            (
                "core.v1.Container",
                json!({ "ports": [{ "containerPort": 80, "protocol": "TCP", "name": "x" }] }),
                json!({ "ports": [{ "containerPort": 80, "hostPort": 8080 }] }),
                json!({ "ports": [{ "containerPort": 80, "protocol": "TCP", "name": "x", "hostPort": 8080 }] }),
            ),
        ] {
            let node = builtin().named(kind).unwrap();
            assert_eq!(merge(builtin(), node, &live, &applied).unwrap(), merged, "{applied} over {live}");
        }
    }
}
