//! The schema graph: what may stand where, and how it merges.

use object::Value;
use std::collections::HashMap;
use std::sync::Arc;

/// All types of one origin: the built-in ones, or those of one custom resource.
#[derive(Debug, Default)]
pub struct Schema {
    nodes: Vec<Node>,
    names: HashMap<Arc<str>, NodeId>,
}

/// A node of the schema it was taken from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct NodeId(u32);

/// What may stand in one place.
#[derive(Clone, Debug)]
pub struct Node {
    /// The name of a named type, such as `core.v1.Container`.
    pub name: Option<Arc<str>>,
    pub shape: Shape,
}

#[derive(Clone, Debug)]
pub enum Shape {
    /// Any JSON at all, kept as it is.
    Any,
    Scalar(Scalar),
    Struct(Struct),
    List(List),
    Map(Map),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scalar {
    String,
    /// Base64 in JSON.
    Bytes,
    Bool,
    Int32,
    Int64,
    Double,
    /// A string or a number in JSON, rewritten to its canonical form.
    Quantity,
    IntOrString,
    /// RFC 3339, in seconds.
    Time,
    /// RFC 3339, in microseconds.
    MicroTime,
    /// A span of time as Go writes it: `1m30s`.
    Duration,
}

/// An object with known fields.
#[derive(Clone, Debug, Default)]
pub struct Struct {
    /// Sorted by name.
    pub fields: Vec<Field>,
    /// Merged as one value, never field by field.
    pub atomic: bool,
    /// Unknown fields are kept.
    pub open: bool,
}

impl Struct {
    pub fn field(&self, name: &str) -> Option<&Field> {
        let at = self.fields.binary_search_by(|field| field.name.as_ref().cmp(name)).ok()?;
        Some(&self.fields[at])
    }
}

#[derive(Clone, Debug)]
pub struct Field {
    pub name: Arc<str>,
    pub node: NodeId,
    pub required: bool,
    /// The protobuf field number, behind those of the inlined messages it stands in; empty for custom resources.
    pub number: Vec<u32>,
    pub default: Option<Value>,
    /// Zero or empty is a value of its own here. Elsewhere it is the same as not set, and is not kept.
    pub keeps_zero: bool,
    /// Merged field by field here, though its type says otherwise.
    pub granular: bool,
    pub patch: Patch,
}

/// How strategic merge patch treats a field.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Patch {
    /// Lists are merged by this key, or as sets where it is empty; none: replaced.
    pub merge: Option<Arc<str>>,
    pub replace: bool,
    /// `$retainKeys` may clear what a patch does not name.
    pub retain_keys: bool,
}

#[derive(Clone, Debug)]
pub struct List {
    pub items: NodeId,
    pub merge: ListMerge,
}

/// How server-side apply treats a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ListMerge {
    /// One value with one owner.
    Atomic,
    /// Every item has its owners.
    Set,
    /// Items are told apart by these fields.
    Map(Vec<Arc<str>>),
}

#[derive(Clone, Debug)]
pub struct Map {
    pub values: NodeId,
    /// Merged as one value, never key by key.
    pub atomic: bool,
}

impl Schema {
    pub fn node(&self, id: NodeId) -> &Node {
        &self.nodes[id.0 as usize]
    }

    pub fn shape(&self, id: NodeId) -> &Shape {
        &self.node(id).shape
    }

    /// A named type, such as `apps.v1.Deployment`.
    pub fn named(&self, name: &str) -> Option<NodeId> {
        self.names.get(name).copied()
    }

    /// All named types, in no particular order.
    pub fn types(&self) -> impl Iterator<Item = (&str, NodeId)> {
        self.names.iter().map(|(name, id)| (name.as_ref(), *id))
    }

    pub fn add(&mut self, shape: Shape) -> NodeId {
        let id = NodeId(u32::try_from(self.nodes.len()).expect("a schema has fewer than four billion nodes"));
        self.nodes.push(Node { name: None, shape });
        id
    }

    /// The node of a named type, which may be filled in later: types refer to each other in circles.
    pub fn declare(&mut self, name: &str) -> NodeId {
        if let Some(id) = self.named(name) {
            return id;
        }
        let id = self.add(Shape::Any);
        let name: Arc<str> = name.into();
        self.nodes[id.0 as usize].name = Some(name.clone());
        self.names.insert(name, id);
        id
    }

    pub fn define(&mut self, id: NodeId, shape: Shape) {
        self.nodes[id.0 as usize].shape = shape;
    }
}
