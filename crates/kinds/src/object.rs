//! An object in a cache: its view, and its bytes.

use crate::Meta;
use bytes::Bytes;
use object::{Edit, Value, View};
use serde::de::{DeserializeOwned, Deserializer, Error as _, IgnoredAny, MapAccess, Visitor};
use std::borrow::Cow;
use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

/// Which resource: what is needed to write its URLs and its objects.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Id {
    /// `v1`, `apps/v1`.
    pub api_version: Cow<'static, str>,
    pub kind: Cow<'static, str>,
    pub plural: Cow<'static, str>,
    pub namespaced: bool,
}

impl Id {
    pub const fn new(api_version: &'static str, kind: &'static str, plural: &'static str, namespaced: bool) -> Self {
        Id {
            api_version: Cow::Borrowed(api_version),
            kind: Cow::Borrowed(kind),
            plural: Cow::Borrowed(plural),
            namespaced,
        }
    }

    /// Empty for the core group.
    pub fn group(&self) -> &str {
        self.api_version.split_once('/').map_or("", |(group, _)| group)
    }

    /// The resource with its group, as in messages: `jobs.batch`.
    pub fn resource(&self) -> String {
        match self.group() {
            "" => self.plural.to_string(),
            group => format!("{}.{group}", self.plural),
        }
    }

    /// The URL of a collection, or of an object in it if `name` is not empty.
    pub fn path(&self, namespace: &str, name: &str) -> String {
        let root = if self.api_version.contains('/') { "/apis" } else { "/api" };
        let mut path = format!("{root}/{}", self.api_version);
        if self.namespaced && !namespace.is_empty() {
            path += "/namespaces/";
            path += namespace;
        }
        path.push('/');
        path += &self.plural;
        if !name.is_empty() {
            path.push('/');
            path += name;
        }
        path
    }
}

/// Names an object of a known kind. The namespace is empty for those that are in none.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Key {
    pub namespace: String,
    pub name: String,
}

impl Key {
    pub fn new(namespace: impl Into<String>, name: impl Into<String>) -> Self {
        Key { namespace: namespace.into(), name: name.into() }
    }

    /// Of an object in no namespace.
    pub fn cluster(name: impl Into<String>) -> Self {
        Key::new("", name)
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.namespace.as_str() {
            "" => f.write_str(&self.name),
            namespace => write!(f, "{namespace}/{}", self.name),
        }
    }
}

/// What caches can look objects up by: its name, and the values that an object is found under.
pub type Index<K> = (&'static str, fn(&K) -> Vec<String>);

/// A view of a kind.
pub trait Kind: DeserializeOwned + fmt::Debug + Send + Sync + 'static {
    const ID: Id;
    /// What caches can look objects up by, besides their names and owners.
    const INDEXES: &'static [Index<Self>];
    fn meta(&self) -> &Meta;
    fn meta_mut(&mut self) -> &mut Meta;
}

/// The JSON of an object, as the server sent it.
#[derive(Clone, Debug, Default)]
pub struct Raw {
    pub json: Bytes,
    /// The resource version, where the JSON leaves it out: within a process, where the bytes are the stored ones.
    pub version: Option<u64>,
}

impl From<Bytes> for Raw {
    fn from(json: Bytes) -> Self {
        Raw { json, version: None }
    }
}

/// An object that is not what its kind says.
#[derive(Debug)]
pub struct Unreadable {
    pub kind: Cow<'static, str>,
    pub cause: serde_json::Error,
}

impl fmt::Display for Unreadable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "no {}: {}", self.kind, self.cause)
    }
}

impl std::error::Error for Unreadable {}

/// An object as a loop sees it. The view is read through it; it stands for the moment at which it was observed.
#[derive(Debug)]
pub struct Object<K> {
    view: K,
    raw: Raw,
    /// Shared by whoever keeps objects by their names.
    key: Arc<Key>,
}

impl<K: Kind> Object<K> {
    pub fn read(raw: Raw) -> Result<Self, Unreadable> {
        let read = serde_json::from_slice::<K>(&raw.json);
        let mut view = read.map_err(|cause| Unreadable { kind: K::ID.kind, cause })?;
        if let Some(version) = raw.version {
            view.meta_mut().resource_version = version.to_string();
        }
        let key = Arc::new(Key::new(view.meta().namespace.as_str(), view.meta().name.as_str()));
        Ok(Object { view, raw, key })
    }

    /// For tests of plans: an object written down as JSON.
    pub fn of(value: &Value) -> Self {
        let read = Object::read(Raw::from(Bytes::from(value.to_string())));
        read.unwrap_or_else(|error| panic!("{error}: {value}"))
    }

    pub fn key(&self) -> Key {
        self.key.as_ref().clone()
    }

    /// Its key, for whoever keeps it.
    pub fn shared_key(&self) -> &Arc<Key> {
        &self.key
    }

    /// The whole object, to be edited and sent back; with kind and version, which items of lists lack.
    pub fn json(&self) -> Value {
        let mut value: Value = serde_json::from_slice(&self.raw.json).unwrap_or_default();
        value.set("kind", K::ID.kind.as_ref());
        value.set("apiVersion", K::ID.api_version.as_ref());
        value.object_or_new("metadata").set("resourceVersion", self.view.meta().resource_version.as_str());
        value
    }
}

impl<K> Object<K> {
    /// A field that the view leaves out. Nothing if it is not there, or not what it should be.
    pub(crate) fn part<T: DeserializeOwned + Default>(&self, field: &str) -> T {
        let value: Value = serde_json::from_slice(&self.raw.json).unwrap_or_default();
        object::from_value(value.at(field)).unwrap_or_default()
    }
}

impl<K> Deref for Object<K> {
    type Target = K;
    fn deref(&self) -> &K {
        &self.view
    }
}

/// What all kinds have: for loops that treat them alike.
#[derive(Clone, Debug, Default)]
pub struct Partial {
    pub api_version: String,
    pub kind: String,
    pub metadata: Meta,
}

impl Partial {
    pub fn read(raw: &Raw) -> Result<Self, Unreadable> {
        let mut head = Head::default();
        let read = serde_json::Deserializer::from_slice(&raw.json).deserialize_map(&mut head);
        let mut partial = head.partial;
        match read {
            Err(cause) if !head.is_complete => return Err(Unreadable { kind: Cow::Borrowed("object"), cause }),
            _ => {}
        }
        if let Some(version) = raw.version {
            partial.metadata.resource_version = version.to_string();
        }
        Ok(partial)
    }
}

/// Reads an object as far as its metadata, which objects are written to begin with, and gives up there.
#[derive(Default)]
struct Head {
    partial: Partial,
    is_complete: bool,
}

impl<'de> Visitor<'de> for &mut Head {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<(), A::Error> {
        while let Some(key) = access.next_key::<object::FieldName>()? {
            match key.as_str() {
                "apiVersion" => self.partial.api_version = access.next_value()?,
                "kind" => self.partial.kind = access.next_value()?,
                "metadata" => {
                    self.partial.metadata = access.next_value()?;
                    self.is_complete = true;
                    return Err(A::Error::custom("the rest does not matter"));
                }
                _ => drop(access.next_value::<IgnoredAny>()?),
            }
        }
        Ok(())
    }
}
