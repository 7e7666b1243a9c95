//! Reads of an object only what is asked for; the rest is passed over, which costs a fraction of making a tree of it.

use object::{FieldName, Map, Value};
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use std::fmt;

/// The part of a JSON object that some paths, such as `spec.nodeName`, lead to. What cannot be read is null.
pub(crate) fn read(json: &[u8], paths: &[&str]) -> Value {
    Pruned(paths).deserialize(&mut serde_json::Deserializer::from_slice(json)).unwrap_or_default()
}

/// What is wanted below some place.
struct Pruned<'p>(&'p [&'p str]);

impl<'de> DeserializeSeed<'de> for Pruned<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Pruned<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any JSON value")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Value, A::Error> {
        let mut fields = Map::new();
        while let Some(key) = access.next_key::<FieldName>()? {
            // What is left of a path behind this key: nothing means all of its value.
            let below = self.0.iter().filter_map(|path| match path.strip_prefix(key.as_str())? {
                "" => Some(""),
                rest => rest.strip_prefix('.'),
            });
            let below: Vec<&str> = below.collect();
            match below.as_slice() {
                [] => drop(access.next_value::<IgnoredAny>()?),
                below if below.contains(&"") => drop(fields.insert(key, access.next_value()?)),
                below => drop(fields.insert(key, access.next_value_seed(Pruned(below))?)),
            }
        }
        Ok(Value::Object(fields))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut access: A) -> Result<Value, A::Error> {
        while access.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Value::Null)
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, _: bool) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_i64<E>(self, _: i64) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_u64<E>(self, _: u64) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_f64<E>(self, _: f64) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_str<E>(self, _: &str) -> Result<Value, E> {
        Ok(Value::Null)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use object::json;

    #[test]
    fn only_what_is_asked_for_is_there() {
        let object = json!({
            "metadata": { "name": "a", "labels": { "b": "c" }, "annotations": { "d": "e" } },
            "spec": { "nodeName": "n", "node": 1, "list": [1, { "nodeName": "x" }] }, "status": "none", "kind": "Pod",
        });
        let paths = ["metadata.labels", "spec.nodeName", "status.phase", "kind", "spec.list.x"];
        let expected = json!({
            "metadata": { "labels": { "b": "c" } }, "spec": { "nodeName": "n", "list": null }, "status": null,
            "kind": "Pod",
        });
        assert_eq!(read(object.to_string().as_bytes(), &paths), expected);
        assert_eq!(read(b"{", &paths), Value::Null);
    }
}
