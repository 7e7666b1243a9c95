//! Values from what Rust has, and comparing the two.

use super::{FieldName, Map, Number, Value};
use std::borrow::Cow;

impl From<bool> for Value {
    fn from(value: bool) -> Self {
        Value::Bool(value)
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Value::String(text.to_owned())
    }
}

impl From<String> for Value {
    fn from(text: String) -> Self {
        Value::String(text)
    }
}

impl From<&String> for Value {
    fn from(text: &String) -> Self {
        Value::String(text.clone())
    }
}

impl From<FieldName> for Value {
    fn from(name: FieldName) -> Self {
        Value::String(name.into())
    }
}

impl From<Cow<'_, str>> for Value {
    fn from(text: Cow<'_, str>) -> Self {
        Value::String(text.into_owned())
    }
}

impl From<Number> for Value {
    fn from(number: Number) -> Self {
        Value::Number(number)
    }
}

/// What is not finite is no JSON, and becomes null.
impl From<f64> for Value {
    fn from(number: f64) -> Self {
        Number::from_f64(number).map_or(Value::Null, Value::Number)
    }
}

impl From<Map> for Value {
    fn from(fields: Map) -> Self {
        Value::Object(fields)
    }
}

impl<T: Into<Value>> From<Vec<T>> for Value {
    fn from(items: Vec<T>) -> Self {
        items.into_iter().collect()
    }
}

impl<T: Into<Value>, const N: usize> From<[T; N]> for Value {
    fn from(items: [T; N]) -> Self {
        items.into_iter().collect()
    }
}

impl<T: Clone + Into<Value>> From<&[T]> for Value {
    fn from(items: &[T]) -> Self {
        items.iter().cloned().collect()
    }
}

impl<T: Into<Value>> From<Option<T>> for Value {
    fn from(value: Option<T>) -> Self {
        value.map_or(Value::Null, Into::into)
    }
}

impl<T: Into<Value>> FromIterator<T> for Value {
    fn from_iter<I: IntoIterator<Item = T>>(items: I) -> Self {
        Value::Array(items.into_iter().map(Into::into).collect())
    }
}

impl<K: Into<FieldName>, V: Into<Value>> FromIterator<(K, V)> for Value {
    fn from_iter<I: IntoIterator<Item = (K, V)>>(entries: I) -> Self {
        Value::Object(entries.into_iter().collect())
    }
}

macro_rules! numbers {
    ($($number:ty)*) => {
        $(
            impl From<$number> for Value {
                fn from(number: $number) -> Self {
                    Value::Number(number.into())
                }
            }

            impl PartialEq<$number> for Value {
                fn eq(&self, number: &$number) -> bool {
                    matches!(self, Value::Number(own) if *own == Number::from(*number))
                }
            }

            impl PartialEq<$number> for &Value {
                fn eq(&self, number: &$number) -> bool {
                    **self == *number
                }
            }
        )*
    };
}

numbers!(i8 i16 i32 i64 isize u8 u16 u32 u64 usize);

impl PartialEq<str> for Value {
    fn eq(&self, text: &str) -> bool {
        self.as_str() == Some(text)
    }
}

impl PartialEq<&str> for Value {
    fn eq(&self, text: &&str) -> bool {
        self.as_str() == Some(*text)
    }
}

impl PartialEq<String> for Value {
    fn eq(&self, text: &String) -> bool {
        self.as_str() == Some(text.as_str())
    }
}

impl PartialEq<Value> for &str {
    fn eq(&self, value: &Value) -> bool {
        value == self
    }
}

impl PartialEq<Value> for String {
    fn eq(&self, value: &Value) -> bool {
        value == self
    }
}

impl PartialEq<bool> for Value {
    fn eq(&self, other: &bool) -> bool {
        self.as_bool() == Some(*other)
    }
}

impl PartialEq<bool> for &Value {
    fn eq(&self, other: &bool) -> bool {
        **self == *other
    }
}

impl PartialEq<f64> for Value {
    fn eq(&self, number: &f64) -> bool {
        self.as_f64() == Some(*number)
    }
}
