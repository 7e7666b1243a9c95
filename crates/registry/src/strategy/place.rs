//! A value of an object together with the way to it, and the checks that most rules are made of.
//!
//! A check looks at the place it is called on and adds what is wrong there. It reads as the rules of Kubernetes do:
//! an empty string, list or map is the same as none.

use object::field::{Error, Errors, Path};
use object::{Edit, Quantity, Value, View};
use std::ops::Deref;

pub const IMMUTABLE: &str = "field is immutable";
const NEGATIVE: &str = "must be greater than or equal to 0";

/// What is wrong with a text.
pub type Rule = fn(&str) -> Vec<String>;

#[derive(Clone, Debug)]
pub struct Place<'a> {
    pub value: &'a Value,
    pub path: Path,
}

impl Deref for Place<'_> {
    type Target = Value;

    fn deref(&self) -> &Value {
        self.value
    }
}

impl<'a> Place<'a> {
    pub fn root(value: &'a Value) -> Self {
        Place { value, path: Path::default() }
    }

    pub fn new(value: &'a Value, path: &Path) -> Self {
        Place { value, path: path.clone() }
    }

    pub fn child(&self, field: &str) -> Place<'a> {
        Place { value: self.value.at(field), path: self.path.child(field) }
    }

    /// A field of fields.
    pub fn descend(&self, fields: &[&str]) -> Place<'a> {
        fields.iter().fold(self.clone(), |place, field| place.child(field))
    }

    /// The entry of a map, whether it is there or not.
    pub fn key(&self, key: &str) -> Place<'a> {
        Place { value: self.value.at(key), path: self.path.key(key) }
    }

    /// The items of a list field.
    pub fn list(&self, field: &str) -> impl Iterator<Item = Place<'a>> + use<'a> {
        let list = self.child(field);
        let items = list.value.as_array().map_or(&[][..], Vec::as_slice);
        items.iter().enumerate().map(move |(index, value)| Place { value, path: list.path.index(index) })
    }

    /// The entries of a map field.
    pub fn map(&self, field: &str) -> impl Iterator<Item = (&'a str, Place<'a>)> + use<'a> {
        let map = self.child(field);
        let entries = map.value.as_object().into_iter().flatten();
        entries.map(move |(key, value)| (key.as_str(), Place { value, path: map.path.key(key) }))
    }

    /// The text that stands here, or the empty one.
    pub fn string(&self) -> &'a str {
        self.value.as_str().unwrap_or_default()
    }

    pub fn is_empty(&self) -> bool {
        is_empty(self.value)
    }

    pub fn invalid(&self, detail: impl Into<String>) -> Error {
        Error::invalid(&self.path, self.value.clone(), detail)
    }
}

/// Checks. Each adds what is wrong and says no more.
impl Place<'_> {
    /// Something has to stand here. Returns whether it does.
    pub fn required(&self, detail: &str, errors: &mut Errors) -> bool {
        if self.is_empty() {
            errors.push(Error::required(&self.path, detail));
        }
        !self.is_empty()
    }

    /// Nothing may stand here.
    pub fn forbidden(&self, detail: &str, errors: &mut Errors) {
        if !self.is_empty() {
            errors.push(Error::forbidden(&self.path, detail));
        }
    }

    /// One of these words, and the empty one is none of them.
    pub fn one_of(&self, supported: &[&str], errors: &mut Errors) {
        if !supported.contains(&self.string()) {
            errors.push(Error::not_supported(&self.path, self.string(), supported));
        }
    }

    pub fn required_one_of(&self, supported: &[&str], errors: &mut Errors) {
        if self.required("", errors) {
            self.one_of(supported, errors);
        }
    }

    pub fn optional_one_of(&self, supported: &[&str], errors: &mut Errors) {
        if !self.is_null() {
            self.one_of(supported, errors);
        }
    }

    pub fn follows(&self, rule: Rule, errors: &mut Errors) {
        errors.extend(rule(self.string()).into_iter().map(|message| self.invalid(message)));
    }

    pub fn required_follows(&self, rule: Rule, errors: &mut Errors) {
        if self.required("", errors) {
            self.follows(rule, errors);
        }
    }

    pub fn optional_follows(&self, rule: Rule, errors: &mut Errors) {
        if !self.is_empty() {
            self.follows(rule, errors);
        }
    }

    pub fn unchanged(&self, old: &Value, errors: &mut Errors) {
        if !same(self.value, old) {
            errors.push(self.invalid(IMMUTABLE));
        }
    }

    pub fn non_negative(&self, errors: &mut Errors) {
        if self.as_i64().is_some_and(|number| number < 0) {
            errors.push(self.invalid(NEGATIVE));
        }
    }

    /// Greater than zero, if there is a number at all.
    pub fn positive(&self, errors: &mut Errors) {
        if self.as_i64().is_some_and(|number| number <= 0) {
            errors.push(self.invalid("must be greater than 0"));
        }
    }

    pub fn within(&self, low: i64, high: i64, errors: &mut Errors) {
        if !(low..=high).contains(&self.as_i64().unwrap_or_default()) {
            errors.push(Error::invalid(
                &self.path,
                self.as_i64().unwrap_or_default(),
                format!("must be between {low} and {high}, inclusive"),
            ));
        }
    }

    /// The number of a port; none counts as 0, which is no port.
    pub fn port(&self, errors: &mut Errors) {
        self.within(1, 65535, errors);
    }

    pub fn port_or_name(&self, errors: &mut Errors) {
        if self.is_string() {
            self.follows(object::name::port_name, errors);
        } else {
            self.port(errors);
        }
    }

    /// The names and values of labels.
    pub fn labels(&self, errors: &mut Errors) {
        for (key, value) in self.as_object().into_iter().flatten() {
            let wrong = object::name::qualified_name(key).into_iter();
            errors.extend(wrong.map(|message| Error::invalid(&self.path, key.as_str(), message)));
            Place::new(value, &self.path).follows(object::name::label_value, errors);
        }
    }

    /// No item of the list field may be there twice.
    pub fn unique(&self, field: &str, errors: &mut Errors) {
        let mut seen: Vec<&Value> = Vec::new();
        for item in self.list(field) {
            if seen.contains(&item.value) {
                errors.push(Error::duplicate(&item.path, item.value.clone()));
            }
            seen.push(item.value);
        }
    }

    /// No two items of the list field may have the same text in `key`.
    pub fn unique_by(&self, field: &str, key: &str, errors: &mut Errors) {
        let mut seen: Vec<&str> = Vec::new();
        for item in self.list(field) {
            let name = item.child(key);
            if !name.is_empty() && seen.contains(&name.string()) {
                errors.push(Error::duplicate(&name.path, name.string()));
            }
            seen.push(name.string());
        }
    }

    /// At most so many items.
    pub fn at_most(&self, max: usize, errors: &mut Errors) {
        let length = self.as_array().map_or(0, Vec::len);
        if length > max {
            errors.push(Error::too_many(&self.path, length, max));
        }
    }

    pub fn shorter_than(&self, max_bytes: usize, errors: &mut Errors) {
        if self.string().len() > max_bytes {
            errors.push(Error::too_long(&self.path, max_bytes));
        }
    }
}

/// Nothing, or nothing in it.
pub fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
        Value::Bool(_) | Value::Number(_) => false,
    }
}

/// Whether two values mean the same: fields that are empty count as absent.
pub fn same(left: &Value, right: &Value) -> bool {
    match (left, right) {
        (Value::Object(left), Value::Object(right)) => {
            left.iter().all(|(field, value)| same(value, right.at(field)))
                && right.iter().all(|(field, value)| left.contains_key(field) || is_empty(value))
        }
        (Value::Array(left), Value::Array(right)) => {
            left.len() == right.len() && left.iter().zip(right).all(|(left, right)| same(left, right))
        }
        (left, right) => left == right || (is_empty(left) && is_empty(right)),
    }
}

/// Sets a field that is absent or empty.
pub fn set_if_empty(value: &mut Value, field: &str, default: impl Into<Value>) {
    if is_empty(value.at(field)) {
        value.set(field, default);
    }
}

/// An amount that has been read and written by the schema, so it can be read again; anything else counts as zero.
pub fn quantity(value: &Value) -> Quantity {
    value.as_str().and_then(|text| text.parse().ok()).unwrap_or_default()
}

#[cfg(test)]
pub(crate) mod testing {
    use super::*;
    use crate::strategy::Strategy;

    /// The messages of a kind's rules, with its defaults and the schema's applied as they are in a request.
    pub(crate) fn messages(strategy: &Strategy, kind: &str, new: &Value, old: Option<&Value>) -> Vec<String> {
        let (new, old) = (filled(strategy, kind, new), old.map(|old| filled(strategy, kind, old)));
        let mut errors = Errors::new();
        if let Some(validate) = strategy.validate {
            validate(&new, old.as_ref(), &mut errors);
        }
        errors.iter().map(ToString::to_string).collect()
    }

    pub(crate) fn filled(strategy: &Strategy, kind: &str, value: &Value) -> Value {
        let schema = schema::builtin();
        let node = schema.named(kind).unwrap_or_else(|| panic!("there is no type {kind}"));
        let mut value = value.clone();
        let unknown = schema::conform(schema, node, &mut value).unwrap();
        assert!(unknown.is_empty(), "{kind} has no {unknown:?}");
        schema::fill(schema, node, &mut value);
        if let Some(default) = strategy.default {
            default(&mut value);
            let once = value.clone();
            default(&mut value);
            assert_eq!(value, once, "defaults change what they have set");
        }
        value
    }

    /// A value with one field changed: `with(&pod, "spec.nodeName", json!("a"))`.
    pub(crate) fn with(value: &Value, path: &str, field: Value) -> Value {
        let mut changed = value.clone();
        let pointer = format!("/{}", path.replace('.', "/"));
        match pointer.rsplit_once('/') {
            Some((parent, name)) => {
                let parent = changed.pointer_mut(parent).unwrap_or_else(|| panic!("there is no {parent}"));
                match (parent, name.parse::<usize>()) {
                    (Value::Array(items), Ok(index)) if index < items.len() => items[index] = field,
                    (Value::Array(items), _) => items.push(field),
                    (parent, _) => parent[name] = field,
                }
            }
            None => changed = field,
        }
        changed
    }

    /// Checks that changing one field of a good object gives exactly these messages.
    pub(crate) fn each_mistake_has_its_message(
        strategy: &Strategy,
        kind: &str,
        good: &Value,
        cases: &[(&str, Value, &[&str])],
    ) {
        assert_eq!(messages(strategy, kind, good, None), [""; 0], "the good one");
        for (path, value, expected) in cases {
            let bad = with(good, path, value.clone());
            assert_eq!(messages(strategy, kind, &bad, None), *expected, "{path} = {value}");
        }
    }

    /// Checks that changing one field of an object that is there gives exactly these messages.
    pub(crate) fn each_change_has_its_message(
        strategy: &Strategy,
        kind: &str,
        old: &Value,
        cases: &[(&str, Value, &[&str])],
    ) {
        assert_eq!(messages(strategy, kind, old, Some(old)), [""; 0], "no change");
        for (path, value, expected) in cases {
            let new = with(old, path, value.clone());
            assert_eq!(messages(strategy, kind, &new, Some(old)), *expected, "{path} = {value}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use object::json;

    #[test]
    fn what_is_empty_is_the_same_as_what_is_absent() {
        let (full, sparse) = (json!({ "a": 1, "b": "", "c": [], "d": { "e": null } }), json!({ "a": 1, "d": {} }));
        assert!(same(&full, &sparse) && same(&sparse, &full));
        assert!(!same(&json!({ "a": 1 }), &json!({})) && !same(&json!({}), &json!({ "a": 0 })));
        assert!(!same(&json!([1]), &json!([1, 2])));
    }

    #[test]
    fn places_know_the_way_to_themselves() {
        let object = json!({ "spec": { "ports": [{ "port": 0 }], "selector": { "a": "b" } } });
        let spec = Place::root(&object).child("spec");
        let mut errors = Errors::new();
        spec.list("ports").for_each(|port| port.child("port").port(&mut errors));
        spec.child("type").required("", &mut errors);
        spec.map("selector").for_each(|(_, value)| value.one_of(&["c"], &mut errors));
        let messages: Vec<_> = errors.iter().map(ToString::to_string).collect();
        assert_eq!(
            messages,
            [
                "spec.ports[0].port: Invalid value: 0: must be between 1 and 65535, inclusive",
                "spec.type: Required value",
                "spec.selector[a]: Unsupported value: \"b\": supported values: \"c\"",
            ]
        );
    }
}
