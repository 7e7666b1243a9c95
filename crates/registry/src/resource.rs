//! The row: everything there is to know of a resource.

use crate::convert::convert;
use crate::print::Printer;
use crate::strategy::Strategy;
use bytes::Bytes;
use object::{Edit, Value, View};
use schema::{NodeId, Schema};
use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

type Text = Cow<'static, str>;

#[derive(Clone, Debug)]
pub struct Resource {
    /// Empty for the core group.
    pub group: Text,
    pub version: Text,
    pub kind: Text,
    /// The name in URLs and rules: the plural, in lower case.
    pub plural: Text,
    pub singular: Text,
    pub short_names: Cow<'static, [Text]>,
    /// Groups of resources that can be named together, such as `all`.
    pub categories: Cow<'static, [Text]>,
    pub scope: Scope,
    pub verbs: Verbs,
    pub subresources: Cow<'static, [Subresource]>,
    /// The fields that clients may select by, besides name and namespace: `spec.nodeName`.
    pub selectable: Cow<'static, [Text]>,
    /// The name of its type in the schema, such as `apps.v1.Deployment`.
    pub schema_type: Text,
    pub schema: SchemaRef,
    /// Its type in that schema.
    pub node: NodeId,
    /// The first segment of the keys it is stored under. Versions of one kind share it.
    pub table: Text,
    /// The version objects are stored in.
    pub stored_as: Text,
    /// How long objects live, if they are not kept for good.
    pub ttl: Option<Duration>,
    /// What whoever uses it is told, if it should not be used any more.
    pub deprecated: Option<&'static str>,
    /// The rules of its kind.
    pub strategy: &'static Strategy,
    /// How it looks in a table.
    pub printer: &'static Printer,
    /// Fields that are not kept, because what they speak of is not served.
    pub withheld: Cow<'static, [Withheld]>,
}

/// A field that means something only where another version is served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Withheld {
    /// `scheduling.k8s.io/v1alpha2`.
    pub version: &'static str,
    pub path: &'static [&'static str],
}

/// Where a type is described.
#[derive(Clone, Debug)]
pub enum SchemaRef {
    Builtin,
    Custom(Arc<Schema>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    Namespaced,
    Cluster,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verb {
    Create,
    Delete,
    DeleteCollection,
    Get,
    List,
    Patch,
    Update,
    Watch,
}

impl Verb {
    /// The word in discovery and in authorization rules.
    pub fn name(self) -> &'static str {
        match self {
            Verb::Create => "create",
            Verb::Delete => "delete",
            Verb::DeleteCollection => "deletecollection",
            Verb::Get => "get",
            Verb::List => "list",
            Verb::Patch => "patch",
            Verb::Update => "update",
            Verb::Watch => "watch",
        }
    }
}

/// Which verbs a resource has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Verbs(&'static [Verb]);

impl Verbs {
    pub const ALL: Verbs = Verbs(&[
        Verb::Create,
        Verb::Delete,
        Verb::DeleteCollection,
        Verb::Get,
        Verb::List,
        Verb::Patch,
        Verb::Update,
        Verb::Watch,
    ]);
    /// Namespaces cannot be deleted by the collection.
    pub const NO_COLLECTION: Verbs =
        Verbs(&[Verb::Create, Verb::Delete, Verb::Get, Verb::List, Verb::Patch, Verb::Update, Verb::Watch]);
    /// Questions that are answered and not stored.
    pub const CREATE_ONLY: Verbs = Verbs(&[Verb::Create]);
    pub const READ_ONLY: Verbs = Verbs(&[Verb::Get, Verb::List]);

    pub fn contains(self, verb: Verb) -> bool {
        self.0.contains(&verb)
    }

    /// In the order discovery lists them.
    pub fn iter(self) -> impl Iterator<Item = Verb> {
        self.0.iter().copied()
    }
}

/// A part or an aspect of an object that has a URL of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Subresource {
    Approval,
    Attach,
    Binding,
    EphemeralContainers,
    Eviction,
    Exec,
    Finalize,
    Log,
    PortForward,
    Proxy,
    Resize,
    Scale,
    Status,
    Token,
}

impl Subresource {
    /// The segment in URLs.
    pub fn name(self) -> &'static str {
        match self {
            Subresource::Approval => "approval",
            Subresource::Attach => "attach",
            Subresource::Binding => "binding",
            Subresource::EphemeralContainers => "ephemeralcontainers",
            Subresource::Eviction => "eviction",
            Subresource::Exec => "exec",
            Subresource::Finalize => "finalize",
            Subresource::Log => "log",
            Subresource::PortForward => "portforward",
            Subresource::Proxy => "proxy",
            Subresource::Resize => "resize",
            Subresource::Scale => "scale",
            Subresource::Status => "status",
            Subresource::Token => "token",
        }
    }
}

impl Resource {
    /// `v1`, `apps/v1`.
    pub fn api_version(&self) -> String {
        if self.group.is_empty() { self.version.to_string() } else { format!("{}/{}", self.group, self.version) }
    }

    pub fn schema(&self) -> &Schema {
        match &self.schema {
            SchemaRef::Builtin => schema::builtin(),
            SchemaRef::Custom(schema) => schema,
        }
    }

    /// Whether it is part of the program, and not defined by a user.
    pub fn is_builtin(&self) -> bool {
        matches!(self.schema, SchemaRef::Builtin)
    }

    pub fn is_namespaced(&self) -> bool {
        self.scope == Scope::Namespaced
    }

    /// Where an object is stored.
    pub fn key(&self, namespace: &str, name: &str) -> Bytes {
        match self.scope {
            Scope::Namespaced => format!("{}/{namespace}/{name}", self.table).into(),
            Scope::Cluster => format!("{}/{name}", self.table).into(),
        }
    }

    /// What the keys start with in a namespace, or in all where that is empty.
    pub fn key_prefix(&self, namespace: &str) -> Bytes {
        match self.scope {
            Scope::Namespaced if !namespace.is_empty() => format!("{}/{namespace}/", self.table).into(),
            _ => format!("{}/", self.table).into(),
        }
    }

    /// Whether objects are stored in another version than this one.
    pub fn is_converted(&self) -> bool {
        let (group, version) = split_version(&self.stored_as);
        (group, version) != (self.group.as_ref(), self.version.as_ref())
    }

    /// Turns an object of this version into one as it is stored.
    pub fn to_stored(&self, value: &mut Value) {
        convert(value, (&self.group, &self.version), split_version(&self.stored_as));
    }

    /// Turns an object as it is stored into one of this version.
    pub fn to_served(&self, value: &mut Value) {
        convert(value, split_version(&self.stored_as), (&self.group, &self.version));
    }

    /// Drops the fields that are not kept, unless the object has them from before.
    pub fn withhold(&self, new: &mut Value, old: Option<&Value>) {
        for Withheld { path, .. } in self.withheld.iter() {
            let Some((field, parents)) = path.split_last() else { continue };
            if old.is_some_and(|old| !old.path(path).is_null()) || new.path(path).is_null() {
                continue;
            }
            let parent = parents.iter().try_fold(&mut *new, |value, name| value.object(name));
            drop(parent.map(|parent| parent.remove(field)));
        }
    }

    pub fn subresource(&self, name: &str) -> Option<Subresource> {
        self.subresources.iter().copied().find(|subresource| subresource.name() == name)
    }
}

/// The group and version of `apps/v1`.
fn split_version(api_version: &str) -> (&str, &str) {
    api_version.split_once('/').unwrap_or(("", api_version))
}
