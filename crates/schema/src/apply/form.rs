//! How a value is taken apart: field by field, item by item, or not at all.
//!
//! A schema says that for its own places. Where it says nothing, objects have fields of their own and lists are one
//! value, as for custom resources without a schema.

use super::Invalid;
use super::element::Element;
use super::set::MAX_DEPTH;
use crate::node::{Field, List, ListMerge, NodeId, Schema, Shape, Struct};
use object::{Map, Value};
use std::sync::Arc;

/// Where a value stands.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    /// None: the schema does not know.
    node: Option<NodeId>,
    /// The field is merged more finely than its type says.
    granular: bool,
    depth: usize,
}

impl Place {
    pub(super) fn root(node: NodeId) -> Self {
        Place { node: Some(node), granular: false, depth: 0 }
    }

    fn below(self, node: Option<NodeId>, granular: bool) -> Self {
        Place { node, granular, depth: self.depth + 1 }
    }

    pub(super) fn shape(self, schema: &Schema) -> &Shape {
        self.node.map_or(&Shape::Any, |node| schema.shape(node))
    }

    /// The place of a field, which the schema may not know.
    pub(super) fn of_field(self, field: Option<&Field>) -> Self {
        match field {
            Some(field) => self.below(Some(field.node), field.granular),
            None => self.below(None, false),
        }
    }

    /// The place of the values of a map or the items of a list.
    pub(super) fn of(self, node: NodeId) -> Self {
        self.below(Some(node), false)
    }

    /// Whether whatever stands here is one value. Unlike [`form`], this needs no value to look at.
    pub(super) fn is_whole(self, schema: &Schema) -> bool {
        match self.shape(schema) {
            Shape::Struct(known) => known.atomic && !self.granular,
            Shape::Map(map) => map.atomic && !self.granular,
            Shape::List(list) => list.merge == ListMerge::Atomic,
            Shape::Any | Shape::Scalar(_) => false,
        }
    }

    /// The place that a path element leads to.
    pub(super) fn at(self, schema: &Schema, element: &Element) -> Self {
        match (self.shape(schema), element) {
            (Shape::Struct(known), Element::Field(name)) => self.of_field(known.field(name)),
            (Shape::Map(map), Element::Field(_)) => self.of(map.values),
            (Shape::List(list), _) => self.of(list.items),
            _ => self.below(None, false),
        }
    }
}

/// What a value in a place consists of.
pub(super) enum Form<'s, 'v> {
    /// One value with one set of owners.
    Leaf,
    Fields(Fields<'s>, &'v Map),
    Items(Items<'s>, &'v [Value]),
}

impl Form<'_, '_> {
    pub(super) fn is_empty(&self) -> bool {
        match self {
            Form::Leaf => true,
            Form::Fields(_, fields) => fields.is_empty(),
            Form::Items(_, items) => items.is_empty(),
        }
    }
}

pub(super) fn form<'s, 'v>(schema: &'s Schema, place: Place, value: &'v Value) -> Form<'s, 'v> {
    match (place.shape(schema), value) {
        _ if place.depth >= MAX_DEPTH => Form::Leaf,
        (Shape::Struct(known), Value::Object(fields)) if !known.atomic || place.granular => {
            Form::Fields(Fields { place, known: Known::Struct(known) }, fields)
        }
        (Shape::Map(map), Value::Object(fields)) if !map.atomic || place.granular => {
            Form::Fields(Fields { place, known: Known::Values(map.values) }, fields)
        }
        (Shape::Any, Value::Object(fields)) => Form::Fields(Fields { place, known: Known::Nothing }, fields),
        (Shape::List(list), Value::Array(items)) => match &list.merge {
            ListMerge::Atomic => Form::Leaf,
            ListMerge::Set => Form::Items(Items { schema, place, list, keys: None }, items),
            ListMerge::Map(keys) => Form::Items(Items { schema, place, list, keys: Some(keys) }, items),
        },
        _ => Form::Leaf,
    }
}

/// The fields that an object may have.
#[derive(Clone, Copy)]
pub(super) struct Fields<'s> {
    place: Place,
    known: Known<'s>,
}

#[derive(Clone, Copy)]
enum Known<'s> {
    Struct(&'s Struct),
    Values(NodeId),
    Nothing,
}

/// A field of an object.
pub(super) struct Child {
    pub(super) name: Arc<str>,
    pub(super) place: Place,
    /// The schema names this field; it is not merely one of the keys of a map. Who sets something in such a field need
    /// not own the field itself.
    pub(super) declared: bool,
}

impl Fields<'_> {
    pub(super) fn child(&self, name: &str) -> Child {
        let field = match self.known {
            Known::Struct(known) => known.field(name),
            Known::Values(_) | Known::Nothing => None,
        };
        match (field, self.known) {
            (Some(found), _) => Child { name: found.name.clone(), place: self.place.of_field(field), declared: true },
            (None, Known::Values(node)) => Child { name: name.into(), place: self.place.of(node), declared: false },
            (None, Known::Struct(_) | Known::Nothing) => {
                Child { name: name.into(), place: self.place.of_field(None), declared: false }
            }
        }
    }
}

/// The items of a list that are told apart.
#[derive(Clone, Copy)]
pub(super) struct Items<'s> {
    schema: &'s Schema,
    place: Place,
    list: &'s List,
    /// None: a set.
    keys: Option<&'s [Arc<str>]>,
}

impl Items<'_> {
    pub(super) fn place(&self) -> Place {
        self.place.of(self.list.items)
    }

    /// What tells an item from the others.
    pub(super) fn element(&self, item: &Value) -> Result<Element, Invalid> {
        match (self.keys, item) {
            (None, Value::Null) => {
                Err(Invalid::new("associative list without keys has an element that's an explicit null"))
            }
            (None, Value::Array(_)) => Err(Invalid::new("not supported: associative list with lists as elements")),
            (None, Value::Object(_)) => {
                Err(Invalid::new("associative list without keys has an element that's a map type"))
            }
            (None, value) => Ok(Element::Value(value.clone())),
            (Some(keys), Value::Object(fields)) => self.key(keys, fields),
            (Some(_), Value::Null) => Err(Invalid::new("associative list with keys may not have a null element")),
            (Some(_), _) => Err(Invalid::new("associative list with keys may not have non-map elements")),
        }
    }

    fn key(&self, keys: &[Arc<str>], fields: &Map) -> Result<Element, Invalid> {
        let value = |name: &str| fields.get(name).or_else(|| self.default(name));
        let mut found: Vec<(Arc<str>, Value)> =
            keys.iter().filter_map(|name| Some((name.clone(), value(name)?.clone()))).collect();
        if found.is_empty() {
            return Err(Invalid::new(format!(
                "associative list with keys has an element that omits all key fields {keys:?} (and doesn't have \
                 default values for any key fields)"
            )));
        }
        found.sort_by(|a, b| a.0.cmp(&b.0));
        Ok(Element::Key(found.into()))
    }

    fn default(&self, name: &str) -> Option<&Value> {
        match self.schema.shape(self.list.items) {
            Shape::Struct(known) => known.field(name)?.default.as_ref(),
            Shape::Any | Shape::Scalar(_) | Shape::List(_) | Shape::Map(_) => None,
        }
    }

    /// The items with what tells them apart, sorted by that; items that are not told apart stay in their order.
    pub(super) fn sorted<'v>(&self, items: &'v [Value]) -> Result<Vec<(Element, &'v Value)>, Invalid> {
        let mut sorted = Vec::with_capacity(items.len());
        for (at, item) in items.iter().enumerate() {
            sorted.push((self.element(item).map_err(|error| error.at_item(at))?, item));
        }
        sorted.sort_by(|a, b| a.0.cmp(&b.0));
        Ok(sorted)
    }
}

/// Takes the items off the front of a sorted list that are not told apart from the first one.
pub(super) fn take_group<'a, 'v>(sorted: &mut &'a [(Element, &'v Value)]) -> &'a [(Element, &'v Value)] {
    let length = sorted.first().map_or(0, |first| sorted.iter().take_while(|item| item.0 == first.0).count());
    let (group, rest) = sorted.split_at(length);
    *sorted = rest;
    group
}
