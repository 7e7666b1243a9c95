//! Looking into a value, and into the fields and items below it.

use super::{FieldName, Map, Value};
use std::ops::{Index, IndexMut};

static NULL: Value = Value::Null;

impl Value {
    pub fn is_null(&self) -> bool {
        matches!(self, Value::Null)
    }

    pub fn is_object(&self) -> bool {
        matches!(self, Value::Object(_))
    }

    pub fn is_array(&self) -> bool {
        matches!(self, Value::Array(_))
    }

    pub fn is_string(&self) -> bool {
        matches!(self, Value::String(_))
    }

    pub fn is_number(&self) -> bool {
        matches!(self, Value::Number(_))
    }

    pub fn is_boolean(&self) -> bool {
        matches!(self, Value::Bool(_))
    }

    pub fn is_i64(&self) -> bool {
        self.as_i64().is_some()
    }

    pub fn is_u64(&self) -> bool {
        self.as_u64().is_some()
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

    pub fn as_i64(&self) -> Option<i64> {
        match self {
            Value::Number(number) => number.as_i64(),
            _ => None,
        }
    }

    pub fn as_u64(&self) -> Option<u64> {
        match self {
            Value::Number(number) => number.as_u64(),
            _ => None,
        }
    }

    pub fn as_f64(&self) -> Option<f64> {
        match self {
            Value::Number(number) => number.as_f64(),
            _ => None,
        }
    }

    pub fn as_array(&self) -> Option<&Vec<Value>> {
        match self {
            Value::Array(items) => Some(items),
            _ => None,
        }
    }

    pub fn as_array_mut(&mut self) -> Option<&mut Vec<Value>> {
        match self {
            Value::Array(items) => Some(items),
            _ => None,
        }
    }

    /// Whether both are objects, and copies of each other that nobody has changed.
    pub fn is_shared_with(&self, other: &Value) -> bool {
        matches!((self, other), (Value::Object(one), Value::Object(other)) if one.is_same(other))
    }

    pub fn as_object(&self) -> Option<&Map> {
        match self {
            Value::Object(fields) => Some(fields),
            _ => None,
        }
    }

    pub fn as_object_mut(&mut self) -> Option<&mut Map> {
        match self {
            Value::Object(fields) => Some(fields),
            _ => None,
        }
    }

    /// A field by its name, or an item by its number.
    pub fn get(&self, at: impl At) -> Option<&Value> {
        at.of(self)
    }

    pub fn get_mut(&mut self, at: impl At) -> Option<&mut Value> {
        at.of_mut(self)
    }

    /// Leaves null behind.
    pub fn take(&mut self) -> Value {
        std::mem::take(self)
    }

    /// What a JSON pointer (RFC 6901) points to.
    pub fn pointer(&self, pointer: &str) -> Option<&Value> {
        let mut value = self;
        for step in steps(pointer)? {
            value = match value {
                Value::Array(items) => items.get(step.parse::<usize>().ok()?)?,
                _ => value.get(step.as_str())?,
            };
        }
        Some(value)
    }

    pub fn pointer_mut(&mut self, pointer: &str) -> Option<&mut Value> {
        let mut value = self;
        for step in steps(pointer)? {
            value = match value {
                Value::Array(items) => items.get_mut(step.parse::<usize>().ok()?)?,
                _ => value.get_mut(step.as_str())?,
            };
        }
        Some(value)
    }
}

fn steps(pointer: &str) -> Option<impl Iterator<Item = String>> {
    let below = match pointer {
        "" => None,
        _ => Some(pointer.strip_prefix('/')?.split('/')),
    };
    Some(below.into_iter().flatten().map(|step| step.replace("~1", "/").replace("~0", "~")))
}

/// What a value can be looked into by.
pub trait At {
    fn of<'v>(&self, value: &'v Value) -> Option<&'v Value>;
    fn of_mut<'v>(&self, value: &'v mut Value) -> Option<&'v mut Value>;
    /// Makes an object of null, and null of a field that is missing.
    fn of_mut_or_new<'v>(&self, value: &'v mut Value) -> &'v mut Value;
}

impl At for str {
    fn of<'v>(&self, value: &'v Value) -> Option<&'v Value> {
        value.as_object()?.get(self)
    }

    fn of_mut<'v>(&self, value: &'v mut Value) -> Option<&'v mut Value> {
        value.as_object_mut()?.get_mut(self)
    }

    fn of_mut_or_new<'v>(&self, value: &'v mut Value) -> &'v mut Value {
        if value.is_null() {
            *value = Value::Object(Map::new());
        }
        value.as_object_mut().expect("only an object has fields").get_or_null(self)
    }
}

impl At for usize {
    fn of<'v>(&self, value: &'v Value) -> Option<&'v Value> {
        value.as_array()?.get(*self)
    }

    fn of_mut<'v>(&self, value: &'v mut Value) -> Option<&'v mut Value> {
        value.as_array_mut()?.get_mut(*self)
    }

    fn of_mut_or_new<'v>(&self, value: &'v mut Value) -> &'v mut Value {
        self.of_mut(value).expect("the list has so many items")
    }
}

/// What is a text in other words.
macro_rules! as_text {
    ($($text:ty)*) => {
        $(impl At for $text {
            fn of<'v>(&self, value: &'v Value) -> Option<&'v Value> {
                self.as_str().of(value)
            }

            fn of_mut<'v>(&self, value: &'v mut Value) -> Option<&'v mut Value> {
                self.as_str().of_mut(value)
            }

            fn of_mut_or_new<'v>(&self, value: &'v mut Value) -> &'v mut Value {
                self.as_str().of_mut_or_new(value)
            }
        })*
    };
}

as_text!(String FieldName);

impl<T: At + ?Sized> At for &T {
    fn of<'v>(&self, value: &'v Value) -> Option<&'v Value> {
        (**self).of(value)
    }

    fn of_mut<'v>(&self, value: &'v mut Value) -> Option<&'v mut Value> {
        (**self).of_mut(value)
    }

    fn of_mut_or_new<'v>(&self, value: &'v mut Value) -> &'v mut Value {
        (**self).of_mut_or_new(value)
    }
}

/// What is not there is null.
impl<T: At> Index<T> for Value {
    type Output = Value;

    fn index(&self, at: T) -> &Value {
        at.of(self).unwrap_or(&NULL)
    }
}

impl<T: At> IndexMut<T> for Value {
    fn index_mut(&mut self, at: T) -> &mut Value {
        at.of_mut_or_new(self)
    }
}
