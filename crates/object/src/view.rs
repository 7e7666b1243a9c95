//! Looking into objects, and editing them, without an `Option` at every step.
//!
//! Reading follows Go's zero values, which the rules of Kubernetes are written in: a field that is absent, null or of
//! another type reads as empty. Where the difference between absent and empty matters, ask [`View::has`].

use crate::{Map, Value};

/// Reads fields of a JSON object.
pub trait View {
    /// The field, or null.
    fn at(&self, field: &str) -> &Value;

    /// Whether the field is there and not null.
    fn has(&self, field: &str) -> bool {
        !self.at(field).is_null()
    }

    /// A string, or the empty one.
    fn text(&self, field: &str) -> &str {
        self.at(field).as_str().unwrap_or_default()
    }

    fn int(&self, field: &str) -> Option<i64> {
        self.at(field).as_i64()
    }

    /// A boolean, or false.
    fn flag(&self, field: &str) -> bool {
        self.at(field).as_bool().unwrap_or_default()
    }

    /// The items of a list, or none.
    fn items(&self, field: &str) -> &[Value] {
        self.at(field).as_array().map_or(&[], Vec::as_slice)
    }

    /// The entries of a map, sorted by key, or none.
    fn entries(&self, field: &str) -> impl Iterator<Item = (&str, &Value)> {
        self.at(field).as_object().into_iter().flatten().map(|(key, value)| (key.as_str(), value))
    }

    /// A field of fields: `of.path(&["metadata", "name"])`.
    fn path(&self, fields: &[&str]) -> &Value;
}

const NULL: &Value = &Value::Null;

impl View for Value {
    fn at(&self, field: &str) -> &Value {
        self.get(field).unwrap_or(NULL)
    }

    fn path(&self, fields: &[&str]) -> &Value {
        fields.iter().fold(self, |value, field| value.at(field))
    }
}

impl View for Map {
    fn at(&self, field: &str) -> &Value {
        self.get(field).unwrap_or(NULL)
    }

    fn path(&self, fields: &[&str]) -> &Value {
        match fields {
            [] => NULL,
            [first, rest @ ..] => self.at(first).path(rest),
        }
    }
}

/// Changes fields of a JSON object. Where the value is no object, nothing happens.
pub trait Edit {
    fn set(&mut self, field: &str, value: impl Into<Value>);

    /// Sets a field that is absent or null.
    fn set_default(&mut self, field: &str, value: impl Into<Value>);

    /// Removes a field and returns what was there, or null.
    fn remove(&mut self, field: &str) -> Value;

    /// A field that is there and is an object; to be changed.
    fn object(&mut self, field: &str) -> Option<&mut Value>;

    /// A field that is made an empty object if it is none yet.
    fn object_or_new(&mut self, field: &str) -> &mut Value;

    /// Adds an item to a list, which is made if there is none yet.
    fn push(&mut self, field: &str, item: Value);

    /// The items of a list, or none; to be changed.
    fn each(&mut self, field: &str) -> std::slice::IterMut<'_, Value>;
}

impl Edit for Value {
    fn set(&mut self, field: &str, value: impl Into<Value>) {
        if let Value::Object(fields) = self {
            fields.insert(field, value.into());
        }
    }

    fn set_default(&mut self, field: &str, value: impl Into<Value>) {
        if !self.has(field) {
            self.set(field, value);
        }
    }

    fn remove(&mut self, field: &str) -> Value {
        match self {
            Value::Object(fields) => fields.remove(field).unwrap_or_default(),
            _ => Value::Null,
        }
    }

    fn object(&mut self, field: &str) -> Option<&mut Value> {
        self.get_mut(field).filter(|value| value.is_object())
    }

    fn object_or_new(&mut self, field: &str) -> &mut Value {
        if !self.is_object() {
            *self = Value::Object(Map::new());
        }
        // Indexing would do both, but it makes a key each time, and mostly the field is there.
        if !self.at(field).is_object() {
            self.set(field, Map::new());
        }
        self.get_mut(field).expect("the field has been set")
    }

    fn push(&mut self, field: &str, item: Value) {
        match self.get_mut(field) {
            Some(Value::Array(items)) => items.push(item),
            _ => self.set(field, vec![item]),
        }
    }

    fn each(&mut self, field: &str) -> std::slice::IterMut<'_, Value> {
        match self.get_mut(field) {
            Some(Value::Array(items)) => items.iter_mut(),
            _ => [].iter_mut(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json;

    #[test]
    fn what_is_absent_reads_as_empty() {
        let object = json!({ "a": { "b": [1, 2], "c": "text", "d": null }, "e": true });
        assert_eq!(object.path(&["a", "c"]), "text");
        assert_eq!(object.at("a").items("b").len(), 2);
        assert_eq!((object.text("a"), object.at("x").at("y").text("z")), ("", ""));
        assert!(object.flag("e") && !object.flag("x") && !object.at("a").has("d"));
        assert_eq!(object.at("a").entries("c").count(), 0);
    }

    #[test]
    fn a_default_replaces_only_what_is_not_set() {
        let mut object = json!({ "a": 1, "b": null });
        object.set_default("a", 2);
        object.set_default("b", 2);
        object.object_or_new("c").set_default("d", "e");
        assert_eq!(object, json!({ "a": 1, "b": 2, "c": { "d": "e" } }));
        object.object_or_new("c").push("f", json!(1));
        object.object_or_new("c").push("f", json!(2));
        assert_eq!(object["c"], json!({ "d": "e", "f": [1, 2] }));
        assert_eq!(object.remove("a"), 1);
        assert_eq!(object.object("b"), None);
        assert_eq!(Value::from(1).each("x").count(), 0);
    }
}
