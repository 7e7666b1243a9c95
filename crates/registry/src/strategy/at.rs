//! A place in an object: a value, and the way to it.
//!
//! Rules walk an object by places. A place is a chain of borrowed steps, so walking costs nothing; the path is written
//! out only for an error. The checks that many rules share are methods here, with the messages clients know.

use crate::strategy::place::{self, same};
use object::field::{Error, Errors, Path};
use object::{Value, View};
use std::fmt::{self, Write};

#[derive(Clone, Copy, Debug)]
pub struct At<'v, 'p> {
    value: &'v Value,
    parent: Option<&'p At<'v, 'p>>,
    step: Step<'v, 'p>,
}

#[derive(Clone, Copy, Debug)]
enum Step<'v, 'p> {
    /// The object itself.
    Root,
    /// A value whose path is known already.
    From(&'p Path),
    Field(&'static str),
    Index(usize),
    Key(&'v str),
    /// The same place with another value.
    Same,
}

impl<'v> At<'v, '_> {
    pub fn value(&self) -> &'v Value {
        self.value
    }

    pub fn text(&self) -> &'v str {
        self.value.as_str().unwrap_or_default()
    }

    /// A number, or zero.
    pub fn int(&self) -> i64 {
        self.value.as_i64().unwrap_or_default()
    }

    pub fn is_set(&self) -> bool {
        !self.value.is_null()
    }

    /// Whether there is nothing here, or nothing in it: no text, no items, no entries.
    pub fn is_empty(&self) -> bool {
        place::is_empty(self.value)
    }

    pub fn field<'a>(&'a self, name: &'static str) -> At<'v, 'a> {
        At { value: self.value.at(name), parent: Some(self), step: Step::Field(name) }
    }

    /// The items of a list, each with its index.
    pub fn items<'a>(&'a self) -> impl Iterator<Item = At<'v, 'a>> {
        let items = self.value.as_array().map_or(&[][..], Vec::as_slice);
        items.iter().enumerate().map(move |(index, value)| At { value, parent: Some(self), step: Step::Index(index) })
    }

    /// The entries of a map, each with its key.
    pub fn entries<'a>(&'a self) -> impl Iterator<Item = (&'v str, At<'v, 'a>)> {
        self.value
            .as_object()
            .into_iter()
            .flatten()
            .map(move |(key, value)| (key.as_str(), At { value, parent: Some(self), step: Step::Key(key) }))
    }

    /// The same place with another value, where a message names a place that the value is not at.
    pub fn with<'a>(&'a self, value: &'v Value) -> At<'v, 'a> {
        At { value, parent: Some(self), step: Step::Same }
    }

    /// One entry of a map.
    pub fn key<'a>(&'a self, key: &'v str) -> At<'v, 'a> {
        At { value: self.value.at(key), parent: Some(self), step: Step::Key(key) }
    }

    pub fn path(&self) -> Path {
        Path::new(&self.to_string())
    }
}

impl<'v, 'p> At<'v, 'p> {
    pub fn object(value: &'v Value) -> Self {
        At { value, parent: None, step: Step::Root }
    }

    pub fn from(value: &'v Value, path: &'p Path) -> Self {
        At { value, parent: None, step: Step::From(path) }
    }
}

impl fmt::Display for At<'_, '_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(parent) = self.parent {
            parent.fmt(f)?;
        }
        let below_root = self.parent.is_none_or(|parent| matches!(parent.step, Step::Root));
        match self.step {
            Step::Root | Step::Same => Ok(()),
            Step::From(path) => path.fmt(f),
            Step::Field(name) if below_root => f.write_str(name),
            Step::Field(name) => {
                f.write_char('.')?;
                f.write_str(name)
            }
            Step::Index(index) => write!(f, "[{index}]"),
            Step::Key(key) => write!(f, "[{key}]"),
        }
    }
}

/// What is wrong here.
impl At<'_, '_> {
    pub fn required(&self, errors: &mut Errors, detail: impl Into<String>) {
        errors.push(Error::required(&self.path(), detail));
    }

    pub fn invalid(&self, errors: &mut Errors, detail: impl Into<String>) {
        self.invalid_value(errors, self.value.clone(), detail);
    }

    /// For messages that show another value than the one that is here.
    pub fn invalid_value(&self, errors: &mut Errors, value: impl Into<Value>, detail: impl Into<String>) {
        errors.push(Error::invalid(&self.path(), value, detail));
    }

    pub fn forbidden(&self, errors: &mut Errors, detail: impl Into<String>) {
        errors.push(Error::forbidden(&self.path(), detail));
    }

    pub fn duplicate(&self, errors: &mut Errors, value: impl Into<Value>) {
        errors.push(Error::duplicate(&self.path(), value));
    }

    pub fn not_found(&self, errors: &mut Errors, value: impl Into<Value>) {
        errors.push(Error::not_found(&self.path(), value));
    }

    pub fn not_supported(&self, errors: &mut Errors, supported: &[&str]) {
        errors.push(Error::not_supported(&self.path(), self.value.clone(), supported));
    }

    pub fn too_long(&self, errors: &mut Errors, max_bytes: usize) {
        errors.push(Error::too_long(&self.path(), max_bytes));
    }

    pub fn too_many(&self, errors: &mut Errors, actual: usize, max: usize) {
        errors.push(Error::too_many(&self.path(), actual, max));
    }
}

/// Checks that many rules share. Those that say whether something is wrong do so for rules that then stop.
impl At<'_, '_> {
    /// Something must be here.
    pub fn require(&self, errors: &mut Errors) -> bool {
        let missing = self.is_empty();
        if missing {
            self.required(errors, "");
        }
        !missing
    }

    /// A text must follow a rule of names.
    pub fn named(&self, errors: &mut Errors, rule: fn(&str) -> Vec<String>) {
        rule(self.text()).into_iter().for_each(|message| self.invalid(errors, message));
    }

    /// The same, where nothing is allowed too.
    pub fn named_if_set(&self, errors: &mut Errors, rule: fn(&str) -> Vec<String>) {
        if !self.is_empty() {
            self.named(errors, rule);
        }
    }

    /// The same, where nothing is a mistake of its own.
    pub fn require_named(&self, errors: &mut Errors, rule: fn(&str) -> Vec<String>) {
        if self.require(errors) {
            self.named(errors, rule);
        }
    }

    /// One of a few words, if it is there at all.
    pub fn one_of(&self, errors: &mut Errors, supported: &[&str]) {
        if self.is_set() && !supported.contains(&self.text()) {
            self.not_supported(errors, supported);
        }
    }

    /// One of a few words, of which nothing is none.
    pub fn must_be_one_of(&self, errors: &mut Errors, supported: &[&str]) {
        if !supported.contains(&self.text()) {
            errors.push(Error::not_supported(&self.path(), self.text(), supported));
        }
    }

    pub fn require_one_of(&self, errors: &mut Errors, supported: &[&str]) {
        if self.require(errors) {
            self.one_of(errors, supported);
        }
    }

    pub fn not_negative(&self, errors: &mut Errors) {
        if self.int() < 0 {
            self.invalid(errors, "must be greater than or equal to 0");
        }
    }

    pub fn positive(&self, errors: &mut Errors) {
        if self.int() <= 0 {
            self.invalid_value(errors, self.int(), "must be greater than zero");
        }
    }

    pub fn within(&self, errors: &mut Errors, least: i64, most: i64) {
        if self.int() < least || self.int() > most {
            self.invalid_value(errors, self.int(), format!("must be between {least} and {most}, inclusive"));
        }
    }

    pub fn port(&self, errors: &mut Errors) {
        self.within(errors, 1, 65535);
    }

    /// The number or the name of a port.
    pub fn port_or_name(&self, errors: &mut Errors) {
        match self.value {
            Value::String(_) => self.named(errors, object::name::port_name),
            _ => self.port(errors),
        }
    }

    /// Must be what it was.
    pub fn immutable(&self, errors: &mut Errors, old: &Value) {
        if !same(self.value, old) {
            self.invalid(errors, "field is immutable");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use object::json;

    #[test]
    fn a_place_knows_its_path() {
        let object = json!({ "spec": { "list": [{ "name": "a" }], "map": { "k/x": 1 } } });
        let (root, path) = (At::object(&object), Path::new("spec.template"));
        let spec = root.field("spec");
        let list = spec.field("list");
        let item = list.items().next().unwrap();
        assert_eq!(item.field("name").to_string(), "spec.list[0].name");
        assert_eq!(item.field("name").text(), "a");
        assert_eq!(spec.field("map").key("k/x").path(), Path::new("spec.map[k/x]"));
        assert_eq!(At::from(&object, &path).field("spec").to_string(), "spec.template.spec");
        assert!(spec.field("absent").field("more").is_empty());
    }

    #[test]
    fn shared_checks_say_what_clients_know() {
        let object = json!({ "word": "C", "negative": -1, "port": 0, "name": "A", "empty": "" });
        let at = At::object(&object);
        let mut errors = Errors::new();
        at.field("word").one_of(&mut errors, &["A", "B"]);
        at.field("negative").not_negative(&mut errors);
        at.field("port").port(&mut errors);
        at.field("empty").require_one_of(&mut errors, &["A"]);
        at.field("name").immutable(&mut errors, &json!("B"));
        at.field("absent").one_of(&mut errors, &["A"]);
        let messages: Vec<_> = errors.iter().map(Error::to_string).collect();
        assert_eq!(
            messages,
            [
                "word: Unsupported value: \"C\": supported values: \"A\", \"B\"",
                "negative: Invalid value: -1: must be greater than or equal to 0",
                "port: Invalid value: 0: must be between 1 and 65535, inclusive",
                "empty: Required value",
                "name: Invalid value: \"A\": field is immutable",
            ]
        );
    }
}
