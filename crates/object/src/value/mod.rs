//! Objects on the generic path: a tree of JSON.
//!
//! Most of what the API does is to build such trees, look into them and throw them away, so their form decides what a
//! request costs. Maps are small and their keys come again and again: a map is a sorted list in one piece, and the names
//! of fields are kept once and for all (see [`FieldName`]).

mod access;
mod convert;
mod de;
mod macros;
mod map;
mod name;
mod ser;

pub(crate) use de::Reader;
pub use map::Map;
pub use name::FieldName;
pub use serde_json::Number;

use std::fmt;

/// Any JSON.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub enum Value {
    #[default]
    Null,
    Bool(bool),
    Number(Number),
    String(String),
    Array(Vec<Value>),
    Object(Map),
}

/// What serializes itself, as a tree. What cannot be JSON, which nothing of ours is, becomes null.
pub fn to_value(what: &(impl serde::Serialize + ?Sized)) -> Value {
    what.serialize(ser::Builder).unwrap_or_default()
}

/// Reads a type out of a tree.
pub fn from_value<T: serde::de::DeserializeOwned>(value: &Value) -> Result<T, serde_json::Error> {
    T::deserialize(value)
}

/// As compact JSON.
impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = match f.alternate() {
            true => serde_json::to_string_pretty(self),
            false => serde_json::to_string(self),
        };
        f.write_str(&text.map_err(|_| fmt::Error)?)
    }
}

impl std::str::FromStr for Value {
    type Err = serde_json::Error;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        serde_json::from_str(text)
    }
}

#[cfg(test)]
mod tests;
