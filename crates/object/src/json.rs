//! Reading JSON: of bounded depth, and without silently swallowing fields that are there twice.
//!
//! The parser recurses, so depth is a matter of safety: without a bound one request could end the whole process.

use crate::{FieldName, Reader, Value};
use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use std::fmt;

/// The bound on nesting, which is serde_json's own.
pub const MAX_DEPTH: usize = 127;

/// Why bytes are not taken for JSON.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidJson {
    #[error("the JSON is nested more than {MAX_DEPTH} deep")]
    TooDeep,
    #[error("{0}")]
    Syntax(String),
}

/// Parses JSON; of a field that is there twice, the last one counts.
pub fn parse(bytes: &[u8]) -> Result<Value, InvalidJson> {
    parse_noting(bytes, &mut || ()).map_err(|error| invalid(&error))
}

/// Parses JSON and names the fields that are there more than once, such as `spec.containers[0].name`.
pub fn parse_strictly(bytes: &[u8]) -> Result<(Value, Vec<String>), InvalidJson> {
    let mut twice = false;
    let value = parse_noting(bytes, &mut || twice = true).map_err(|error| invalid(&error))?;
    // Knowing where costs more than knowing whether, and hardly ever matters.
    Ok((value, if twice { duplicates(bytes)? } else { Vec::new() }))
}

fn invalid(error: &serde_json::Error) -> InvalidJson {
    match error.to_string() {
        message if message.starts_with("recursion limit exceeded") => InvalidJson::TooDeep,
        message => InvalidJson::Syntax(message),
    }
}

fn parse_noting(bytes: &[u8], note: &mut dyn FnMut()) -> Result<Value, serde_json::Error> {
    let mut deserializer = serde_json::Deserializer::from_slice(bytes);
    let value = Reader(note).deserialize(&mut deserializer)?;
    deserializer.end()?;
    Ok(value)
}

/// Reads again, this time keeping track of where it is.
fn duplicates(bytes: &[u8]) -> Result<Vec<String>, InvalidJson> {
    let found = mistakes(bytes, &[])?.into_iter();
    Ok(found.map(|Mistake { path, .. }| path).collect())
}

/// A field that should not be where it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mistake {
    /// Such as `spec.containers[0].name`.
    pub path: String,
    /// Nobody knows it; otherwise it is there twice.
    pub unknown: bool,
}

/// The fields that are there twice and those that are known to be `unknown`, in the order of the text. What is in an
/// unknown field, and how often it is there, does not matter any more.
pub fn mistakes(bytes: &[u8], unknown: &[String]) -> Result<Vec<Mistake>, InvalidJson> {
    let mut found = Vec::new();
    let mut deserializer = serde_json::Deserializer::from_slice(bytes);
    Locate { path: String::new(), unknown, found: Some(&mut found) }
        .deserialize(&mut deserializer)
        .map_err(|error| invalid(&error))?;
    Ok(found)
}

struct Locate<'f> {
    path: String,
    unknown: &'f [String],
    /// None: nothing here is of interest.
    found: Option<&'f mut Vec<Mistake>>,
}

impl Locate<'_> {
    /// Notes the field at `path` if it should not be there. Returns whether what is in it is of interest.
    fn note(&mut self, path: &str, again: bool) -> bool {
        let Some(found) = &mut self.found else { return false };
        let unknown = self.unknown.iter().any(|unknown| unknown == path);
        if (unknown || again) && !found.iter().any(|mistake| mistake.path == path) {
            found.push(Mistake { path: path.to_owned(), unknown });
        }
        !unknown
    }
}

impl<'de> DeserializeSeed<'de> for Locate<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Locate<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any JSON value")
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_i64<E>(self, _: i64) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E>(self, _: u64) -> Result<(), E> {
        Ok(())
    }

    fn visit_f64<E>(self, _: f64) -> Result<(), E> {
        Ok(())
    }

    fn visit_str<E>(self, _: &str) -> Result<(), E> {
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut access: A) -> Result<(), A::Error> {
        let Locate { path, unknown, mut found } = self;
        for index in 0.. {
            let element = Locate { path: format!("{path}[{index}]"), unknown, found: found.as_deref_mut() };
            if access.next_element_seed(element)?.is_none() {
                break;
            }
        }
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut access: A) -> Result<(), A::Error> {
        let mut seen = std::collections::BTreeSet::new();
        while let Some(key) = access.next_key::<FieldName>()? {
            let path = if self.path.is_empty() { key.to_string() } else { format!("{}.{key}", self.path) };
            let again = !seen.insert(key);
            let of_interest = self.note(&path, again);
            let found = self.found.as_deref_mut().filter(|_| of_interest);
            access.next_value_seed(Locate { path, unknown: self.unknown, found })?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json;

    #[test]
    fn depth_is_bounded() {
        let nested = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        assert!(parse(nested(MAX_DEPTH).as_bytes()).is_ok());
        assert_eq!(parse(nested(MAX_DEPTH + 1).as_bytes()), Err(InvalidJson::TooDeep));
        assert_eq!(parse("{\"a\":".repeat(1_000_000).as_bytes()), Err(InvalidJson::TooDeep));
        for bad in ["{", "", "[1,]", "{} {}", "nul", "{\"a\" 1}"] {
            assert!(matches!(parse(bad.as_bytes()), Err(InvalidJson::Syntax(_))), "{bad}");
        }
    }

    #[test]
    fn fields_that_come_twice_are_named() {
        let text = br#"{"a":1,"b":{"c":[{"d":1,"d":2,"d":3}]},"a":{"x":[true,null,1.5,"s"]}}"#;
        let (value, duplicates) = parse_strictly(text).unwrap();
        assert_eq!(value, json!({ "a": { "x": [true, null, 1.5, "s"] }, "b": { "c": [{ "d": 3 }] } }));
        assert_eq!(duplicates, ["b.c[0].d", "a"]);
        assert_eq!(parse_strictly(b"{}").unwrap().1, [""; 0]);
    }

    #[test]
    fn mistakes_come_in_the_order_of_the_text_and_none_within_what_is_unknown() {
        let text = br#"{"z":1,"z":2,"a":{"u":{"x":1,"x":2},"u":3,"k":[{"v":1}]}}"#;
        let unknown = ["a.k[0].v".to_owned(), "a.u".to_owned()];
        let found = mistakes(text, &unknown).unwrap();
        let found: Vec<_> = found.iter().map(|mistake| (mistake.path.as_str(), mistake.unknown)).collect();
        assert_eq!(found, [("z", false), ("a.u", true), ("a.k[0].v", true)]);
    }
}
