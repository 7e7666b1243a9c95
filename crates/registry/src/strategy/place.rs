//! A place in an object: a value, and the way to it.
//!
//! Rules walk an object by places. A place is a chain of borrowed steps, so walking costs nothing; the path is written
//! out only for an error. What is wrong somewhere is said by the place itself; the checks that many rules share are in
//! [`super::rule`].
//!
//! A place borrows the one it was reached from, so a rule that goes on from a place gives it a name first.

use crate::strategy::value;
use object::field::{Error, Errors, Path};
use object::{Value, View};
use std::fmt::{self, Write};

#[derive(Clone, Copy, Debug)]
pub struct Place<'v, 'p> {
    value: &'v Value,
    parent: Option<&'p Place<'v, 'p>>,
    step: Step<'v>,
}

#[derive(Clone, Copy, Debug)]
enum Step<'v> {
    /// The object itself.
    Root,
    Field(&'v str),
    Fields(&'v [&'v str]),
    Index(usize),
    Key(&'v str),
}

const NOTHING: &Value = &Value::Null;

/// The beginning of a walk.
impl<'v> Place<'v, '_> {
    pub fn object(object: &'v Value) -> Self {
        Place { value: object, parent: None, step: Step::Root }
    }

    /// A field of the object itself.
    pub fn field_of(object: &'v Value, name: &'v str) -> Self {
        Place::named(object.at(name), name)
    }

    /// A value that messages know by this path, wherever it is.
    pub fn named(value: &'v Value, path: &'v str) -> Self {
        Place { value, parent: None, step: Step::Field(path) }
    }
}

/// Steps. A place that is not there is as good as any other: it has no value.
impl<'v, 'p> Place<'v, 'p> {
    pub fn field<'a>(&'a self, name: &'v str) -> Place<'v, 'a> {
        self.step(self.value.at(name), Step::Field(name))
    }

    /// A field of fields.
    pub fn descend<'a>(&'a self, names: &'v [&'v str]) -> Place<'v, 'a> {
        self.step(self.value.path(names), Step::Fields(names))
    }

    /// One item of a list.
    pub fn item<'a>(&'a self, index: usize) -> Place<'v, 'a> {
        self.step(self.value.get(index).unwrap_or(NOTHING), Step::Index(index))
    }

    /// One entry of a map.
    pub fn key<'a>(&'a self, key: &'v str) -> Place<'v, 'a> {
        self.step(self.value.at(key), Step::Key(key))
    }

    /// The items of a list, each with its index.
    pub fn items<'a>(&'a self) -> impl DoubleEndedIterator<Item = Place<'v, 'a>> + ExactSizeIterator {
        self.values().iter().enumerate().map(move |(index, value)| self.step(value, Step::Index(index)))
    }

    /// The entries of a map, each with its key.
    pub fn entries<'a>(&'a self) -> impl Iterator<Item = (&'v str, Place<'v, 'a>)> {
        let entries = self.value.as_object().into_iter().flatten();
        entries.map(move |(key, value)| (key.as_str(), self.step(value, Step::Key(key))))
    }

    /// The same place with another value, where a message names a place that the value is not at.
    pub fn with(&self, value: &'v Value) -> Place<'v, 'p> {
        Place { value, ..*self }
    }

    fn step<'a>(&'a self, value: &'v Value, step: Step<'v>) -> Place<'v, 'a> {
        Place { value, parent: Some(self), step }
    }
}

/// What is here.
impl<'v> Place<'v, '_> {
    pub fn value(&self) -> &'v Value {
        self.value
    }

    /// A text, or the empty one.
    pub fn text(&self) -> &'v str {
        self.value.as_str().unwrap_or_default()
    }

    /// A number, or zero.
    pub fn int(&self) -> i64 {
        self.number().unwrap_or_default()
    }

    pub fn number(&self) -> Option<i64> {
        self.value.as_i64()
    }

    /// A boolean, or false.
    pub fn flag(&self) -> bool {
        self.value.as_bool().unwrap_or_default()
    }

    /// The items of a list as they are, or none.
    pub fn values(&self) -> &'v [Value] {
        self.value.as_array().map_or(&[], Vec::as_slice)
    }

    pub fn is_set(&self) -> bool {
        !self.value.is_null()
    }

    /// Whether there is nothing here, or nothing in it: no text, no items, no entries.
    pub fn is_empty(&self) -> bool {
        value::is_empty(self.value)
    }
}

impl fmt::Display for Place<'_, '_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parent = self.parent.filter(|parent| !matches!(parent.step, Step::Root));
        if let Some(parent) = parent {
            parent.fmt(f)?;
        }
        let name = |f: &mut fmt::Formatter<'_>, name: &str, is_first: bool| {
            if !is_first {
                f.write_char('.')?;
            }
            f.write_str(name)
        };
        match self.step {
            Step::Root => Ok(()),
            Step::Field(field) => name(f, field, parent.is_none()),
            Step::Fields(fields) => {
                let mut fields = fields.iter().enumerate();
                fields.try_for_each(|(index, field)| name(f, field, parent.is_none() && index == 0))
            }
            Step::Index(index) => write!(f, "[{index}]"),
            Step::Key(key) => write!(f, "[{key}]"),
        }
    }
}

/// What is wrong here.
impl Place<'_, '_> {
    pub fn required(&self, errors: &mut Errors, detail: impl Into<String>) {
        errors.push(Error::required(&self.to_path(), detail));
    }

    pub fn invalid(&self, errors: &mut Errors, detail: impl Into<String>) {
        self.invalid_value(errors, self.value.clone(), detail);
    }

    /// For messages that show another value than the one that is here.
    pub fn invalid_value(&self, errors: &mut Errors, value: impl Into<Value>, detail: impl Into<String>) {
        errors.push(Error::invalid(&self.to_path(), value, detail));
    }

    /// For messages that show no value.
    pub fn invalid_whole(&self, errors: &mut Errors, detail: impl Into<String>) {
        errors.push(Error::invalid_whole(&self.to_path(), detail));
    }

    pub fn forbidden(&self, errors: &mut Errors, detail: impl Into<String>) {
        errors.push(Error::forbidden(&self.to_path(), detail));
    }

    pub fn duplicate(&self, errors: &mut Errors, value: impl Into<Value>) {
        errors.push(Error::duplicate(&self.to_path(), value));
    }

    pub fn not_found(&self, errors: &mut Errors, value: impl Into<Value>) {
        errors.push(Error::not_found(&self.to_path(), value));
    }

    pub fn not_supported(&self, errors: &mut Errors, supported: &[&str]) {
        self.not_supported_value(errors, self.value.clone(), supported);
    }

    pub fn not_supported_value(&self, errors: &mut Errors, value: impl Into<Value>, supported: &[&str]) {
        errors.push(Error::not_supported(&self.to_path(), value, supported));
    }

    pub fn too_long(&self, errors: &mut Errors, max_bytes: usize) {
        errors.push(Error::too_long(&self.to_path(), max_bytes));
    }

    pub fn too_many(&self, errors: &mut Errors, actual: usize, max: usize) {
        errors.push(Error::too_many(&self.to_path(), actual, max));
    }

    /// The way here, written out.
    pub fn to_path(&self) -> Path {
        Path::new(&self.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use object::json;

    #[test]
    fn a_place_knows_its_path() {
        let object = json!({ "spec": { "list": [{ "name": "a" }], "map": { "k/x": 1 } } });
        let root = Place::object(&object);
        let spec = root.field("spec");
        let list = spec.field("list");
        let item = list.items().next().unwrap();
        assert_eq!(item.field("name").to_string(), "spec.list[0].name");
        assert_eq!(item.field("name").text(), "a");
        assert_eq!(list.item(7).field("name").to_string(), "spec.list[7].name");
        assert_eq!(root.descend(&["spec", "map"]).key("k/x").to_path(), Path::new("spec.map[k/x]"));
        assert_eq!(Place::field_of(&object, "spec").descend(&["map", "k/x"]).int(), 1);
        assert_eq!(Place::named(&object, "spec.template").field("spec").to_string(), "spec.template.spec");
        assert_eq!(list.with(&object).field("spec").field("list").to_string(), "spec.list.spec.list");
        assert!(spec.field("absent").field("more").is_empty());
    }
}
