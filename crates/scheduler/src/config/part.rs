//! A part of the file: its value, where it stands, and where what is wrong with it is noted.

use object::field::{Error, Errors, Path};
use object::{Value, View};
use std::cell::RefCell;

#[derive(Clone)]
pub(super) struct Part<'a> {
    pub value: &'a Value,
    pub path: Path,
    errors: &'a RefCell<Errors>,
}

impl<'a> Part<'a> {
    pub(super) fn new(value: &'a Value, errors: &'a RefCell<Errors>) -> Self {
        Part { value, path: Path::default(), errors }
    }

    pub(super) fn field(&self, name: &str) -> Part<'a> {
        Part { value: self.value.at(name), path: self.path.child(name), errors: self.errors }
    }

    pub(super) fn is_set(&self) -> bool {
        !self.value.is_null()
    }

    pub(super) fn note(&self, error: Error) {
        self.errors.borrow_mut().push(error);
    }

    pub(super) fn wrong(&self, detail: &str) {
        self.wrong_value(self.value.clone(), detail);
    }

    /// For what is wrong though it is not said.
    pub(super) fn wrong_value(&self, value: impl Into<Value>, detail: &str) {
        self.note(Error::invalid(&self.path, value, detail));
    }

    pub(super) fn forbid(&self, detail: &str) {
        self.note(Error::forbidden(&self.path, detail));
    }

    /// Nothing but these fields may be there.
    pub(super) fn only(&self, known: &[&str]) {
        match self.value {
            Value::Object(fields) => {
                for field in fields.keys().filter(|field| !known.contains(&field.as_str())) {
                    self.field(field).note(Error::forbidden(&self.path.child(field), "unknown field"));
                }
            }
            Value::Null => {}
            other => self.note(Error::type_invalid(&self.path, other.clone(), "must be an object")),
        }
    }

    pub(super) fn text(&self) -> &'a str {
        if self.is_set() && !self.value.is_string() {
            self.note(Error::type_invalid(&self.path, self.value.clone(), "must be a string"));
        }
        self.value.as_str().unwrap_or_default()
    }

    /// A number that fits 32 bits; `usual` where none is said.
    pub(super) fn int_or(&self, usual: i64) -> i64 {
        if !self.is_set() {
            return usual;
        }
        let number = self.value.as_i64().filter(|number| i32::try_from(*number).is_ok());
        number.unwrap_or_else(|| {
            self.note(Error::type_invalid(&self.path, self.value.clone(), "must be a whole number of 32 bits"));
            usual
        })
    }

    pub(super) fn flag(&self) -> bool {
        if self.is_set() && !self.value.is_boolean() {
            self.note(Error::type_invalid(&self.path, self.value.clone(), "must be true or false"));
        }
        self.value.as_bool().unwrap_or_default()
    }

    pub(super) fn items(&self) -> Vec<Part<'a>> {
        let items = match self.value {
            Value::Array(items) => items.as_slice(),
            Value::Null => &[],
            other => {
                self.note(Error::type_invalid(&self.path, other.clone(), "must be a list"));
                &[]
            }
        };
        let item = |(at, value)| Part { value, path: self.path.index(at), errors: self.errors };
        items.iter().enumerate().map(item).collect()
    }
}
