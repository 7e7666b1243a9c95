//! Values while an expression is evaluated. What comes from an object is borrowed from it and converted when it is
//! looked at, so that a rule about one field of a large object costs no more than that field.

use crate::declaration::{Declaration, Equality};
use crate::json;
use crate::times::Moment;
use crate::types::Type;
use object::{Map as JsonMap, Value as Json};
use std::any::Any;
use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::fmt::Debug;
use std::ops::Deref;
use std::rc::Rc;

/// Why there is no value.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    #[error("{0}")]
    Failed(String),
    /// One evaluation went on for too long.
    #[error("operation cancelled: actual cost limit exceeded")]
    CallCostExceeded,
    /// All evaluations together did.
    #[error("validation failed due to running out of cost budget, no further validation rules will be run")]
    OutOfBudget,
}

impl Error {
    pub fn new(message: impl Into<String>) -> Error {
        Error::Failed(message.into())
    }

    /// Whether `||` and the like may go on in spite of it.
    pub(crate) fn is_absorbable(&self) -> bool {
        matches!(self, Error::Failed(_))
    }
}

#[derive(Clone, Debug, Default)]
pub enum Value<'a> {
    #[default]
    Null,
    Bool(bool),
    Int(i64),
    Uint(u64),
    Double(f64),
    String(Text<'a>),
    Bytes(Rc<[u8]>),
    Timestamp(Moment),
    /// In nanoseconds.
    Duration(i64),
    List(List<'a>),
    Map(Map<'a>),
    Type(Type),
    Optional(Option<Rc<Value<'a>>>),
    Opaque(Rc<dyn Opaque>),
}

/// A value that only functions can look into: quantities, addresses, an authorizer.
pub trait Opaque: Debug {
    fn type_name(&self) -> &str;
    fn equals(&self, other: &dyn Opaque) -> bool;
    fn as_any(&self) -> &dyn Any;
    /// For the cost of functions that read all of it.
    fn size(&self) -> u64 {
        1
    }
    /// What `string()` gives, if it gives anything.
    fn text(&self) -> Option<String> {
        None
    }
}

#[derive(Clone, Debug)]
pub enum Text<'a> {
    Borrowed(&'a str),
    Shared(Rc<str>),
}

impl Deref for Text<'_> {
    type Target = str;
    fn deref(&self) -> &str {
        match self {
            Text::Borrowed(text) => text,
            Text::Shared(text) => text,
        }
    }
}

/// Keys of maps. Numbers are the same key if they are the same number.
#[derive(Clone, Debug)]
pub enum Key<'a> {
    Bool(bool),
    Int(i64),
    Uint(u64),
    String(Text<'a>),
}

impl Key<'_> {
    fn rank(&self) -> (u8, i128, &str) {
        match self {
            Key::Bool(value) => (0, i128::from(*value), ""),
            Key::Int(value) => (1, i128::from(*value), ""),
            Key::Uint(value) => (1, i128::from(*value), ""),
            Key::String(text) => (2, 0, text),
        }
    }
}

impl PartialEq for Key<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.rank() == other.rank()
    }
}

impl Eq for Key<'_> {}

impl PartialOrd for Key<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Key<'_> {
    fn cmp(&self, other: &Self) -> Ordering {
        self.rank().cmp(&other.rank())
    }
}

#[derive(Clone, Debug)]
pub enum List<'a> {
    Owned { items: Rc<Vec<Value<'a>>>, equality: &'a Equality },
    Json { items: &'a [Json], declared: &'a Declaration, equality: &'a Equality },
}

#[derive(Clone, Debug)]
pub enum Map<'a> {
    Owned(Rc<BTreeMap<Key<'a>, Value<'a>>>),
    /// A map or an object, as it was declared.
    Json {
        entries: &'a JsonMap,
        declared: &'a Declaration,
    },
    /// Fields that are worked out when they are looked at.
    Lazy(Rc<dyn Fields<'a> + 'a>),
}

/// Fields that need not be there before they are looked at, such as the variables of an admission policy.
pub trait Fields<'a>: Debug {
    /// None if there is no such field.
    fn get(&self, name: &str) -> Option<Result<Value<'a>, Error>>;

    /// Whether `name in fields` holds, which may be less than what can be looked at.
    fn contains(&self, name: &str) -> bool {
        self.get(name).is_some()
    }

    /// The names that loops go over.
    fn names(&self) -> Vec<Text<'a>> {
        Vec::new()
    }
}

impl<'a> List<'a> {
    pub fn len(&self) -> usize {
        match self {
            List::Owned { items, .. } => items.len(),
            List::Json { items, .. } => items.len(),
        }
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub fn get(&self, index: usize) -> Option<Result<Value<'a>, Error>> {
        match self {
            List::Owned { items, .. } => items.get(index).cloned().map(Ok),
            List::Json { items, declared, .. } => items.get(index).map(|item| json::read(item, declared)),
        }
    }

    pub fn iter(&self) -> impl Iterator<Item = Result<Value<'a>, Error>> {
        (0..self.len()).map_while(|index| self.get(index))
    }

    /// All items; the list itself if nobody else has it.
    pub(crate) fn into_vec(self) -> Result<Vec<Value<'a>>, Error> {
        match self {
            List::Owned { items, .. } => Ok(Rc::try_unwrap(items).unwrap_or_else(|shared| (*shared).clone())),
            borrowed @ List::Json { .. } => borrowed.iter().collect(),
        }
    }
}

impl<'a> Map<'a> {
    pub fn len(&self) -> usize {
        match self {
            Map::Owned(entries) => entries.len(),
            Map::Json { entries, .. } => entries.len(),
            Map::Lazy(fields) => fields.names().len(),
        }
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// None if there is no such entry.
    pub fn get(&self, key: &Key<'a>) -> Option<Result<Value<'a>, Error>> {
        match (self, key) {
            (Map::Owned(entries), key) => entries.get(key).cloned().map(Ok),
            (Map::Json { entries, declared }, Key::String(name)) => json::entry(entries, declared, name),
            (Map::Lazy(fields), Key::String(name)) => fields.get(name),
            _ => None,
        }
    }

    pub fn contains(&self, key: &Key<'a>) -> bool {
        match (self, key) {
            (Map::Lazy(fields), Key::String(name)) => fields.contains(name),
            _ => self.get(key).is_some(),
        }
    }

    pub fn keys(&self) -> Vec<Key<'a>> {
        match self {
            Map::Owned(entries) => entries.keys().cloned().collect(),
            Map::Json { entries, declared } => {
                json::keys(entries, declared).map(Text::Borrowed).map(Key::String).collect()
            }
            Map::Lazy(fields) => fields.names().into_iter().map(Key::String).collect(),
        }
    }

    pub(crate) fn entries(&self) -> impl Iterator<Item = Result<(Key<'a>, Value<'a>), Error>> {
        self.keys().into_iter().filter_map(|key| {
            let value = self.get(&key)?;
            Some(value.map(|value| (key, value)))
        })
    }
}

impl<'a> Value<'a> {
    pub fn string(text: impl Into<Rc<str>>) -> Value<'a> {
        Value::String(Text::Shared(text.into()))
    }

    pub fn list(items: Vec<Value<'a>>) -> Value<'a> {
        Value::List(List::Owned { items: Rc::new(items), equality: &Equality::Ordered })
    }

    pub fn map(entries: BTreeMap<Key<'a>, Value<'a>>) -> Value<'a> {
        Value::Map(Map::Owned(Rc::new(entries)))
    }

    pub fn some(value: Value<'a>) -> Value<'a> {
        Value::Optional(Some(Rc::new(value)))
    }

    pub fn opaque(value: impl Opaque + 'static) -> Value<'a> {
        Value::Opaque(Rc::new(value))
    }

    pub fn as_bool(&self) -> Option<bool> {
        match self {
            Value::Bool(value) => Some(*value),
            _ => None,
        }
    }

    pub fn as_str(&self) -> Option<&str> {
        match self {
            Value::String(text) => Some(text),
            _ => None,
        }
    }

    /// What is within, if it is of this kind.
    pub fn as_opaque<T: 'static>(&self) -> Option<&T> {
        match self {
            Value::Opaque(opaque) => opaque.as_any().downcast_ref(),
            _ => None,
        }
    }

    /// The key of a map that this value stands for. A double is one if it is a whole number.
    pub(crate) fn as_key(&self) -> Option<Key<'a>> {
        match self {
            Value::Bool(value) => Some(Key::Bool(*value)),
            Value::Int(value) => Some(Key::Int(*value)),
            Value::Uint(value) => Some(Key::Uint(*value)),
            Value::Double(value) if value.fract() == 0.0 && (-9.2e18..9.2e18).contains(value) => {
                Some(Key::Int(*value as i64))
            }
            Value::String(text) => Some(Key::String(text.clone())),
            _ => None,
        }
    }

    pub(crate) fn from_key(key: Key<'a>) -> Value<'a> {
        match key {
            Key::Bool(value) => Value::Bool(value),
            Key::Int(value) => Value::Int(value),
            Key::Uint(value) => Value::Uint(value),
            Key::String(text) => Value::String(text),
        }
    }

    /// The type it has at run time; of lists and maps, not of what.
    pub fn type_of(&self) -> Type {
        match self {
            Value::Null => Type::Null,
            Value::Bool(_) => Type::Bool,
            Value::Int(_) => Type::Int,
            Value::Uint(_) => Type::Uint,
            Value::Double(_) => Type::Double,
            Value::String(_) => Type::String,
            Value::Bytes(_) => Type::Bytes,
            Value::Timestamp(_) => Type::Timestamp,
            Value::Duration(_) => Type::Duration,
            Value::List(_) => Type::list(Type::Dyn),
            Value::Map(_) => Type::map(Type::Dyn, Type::Dyn),
            Value::Type(_) => Type::Type(None),
            Value::Optional(_) => Type::optional(Type::Dyn),
            Value::Opaque(opaque) => Type::Abstract(opaque.type_name().into()),
        }
    }

    /// The name of its type, as messages give it and `type()` prints it.
    pub(crate) fn type_name(&self) -> String {
        name_of_type(&self.type_of())
    }

    /// How much of it there is: characters, bytes, items, entries. One for what has no size.
    pub(crate) fn size(&self) -> u64 {
        match self {
            Value::String(text) => text.chars().count() as u64,
            Value::Bytes(bytes) => bytes.len() as u64,
            Value::List(items) => items.len() as u64,
            Value::Map(entries) => entries.len() as u64,
            Value::Optional(Some(value)) => value.size(),
            Value::Opaque(opaque) => opaque.size(),
            _ => 1,
        }
    }
}

/// The name a type has as a value.
pub(crate) fn name_of_type(of: &Type) -> String {
    match of {
        Type::Null => "null_type".to_owned(),
        Type::Timestamp => "google.protobuf.Timestamp".to_owned(),
        Type::Duration => "google.protobuf.Duration".to_owned(),
        Type::List(_) => "list".to_owned(),
        Type::Map(_) => "map".to_owned(),
        Type::Optional(_) => "optional_type".to_owned(),
        Type::Type(_) => "type".to_owned(),
        other => other.to_string(),
    }
}
