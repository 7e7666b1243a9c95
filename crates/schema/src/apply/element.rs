//! One step of a path: how a child is told apart from its siblings.
//!
//! The order of elements is the one in which they are written: fields, then items by key, by value, by position.
//! Numbers are compared as numbers, so `80` and `80.0` name the same item.

use object::Number;
use object::Value;
use std::cmp::Ordering;
use std::fmt;
use std::sync::Arc;

/// The fields that tell an item of a list from the others, sorted by name.
pub type Key = Arc<[(Arc<str>, Value)]>;

#[derive(Clone, Debug)]
pub enum Element {
    /// A field of an object or a key of a map.
    Field(Arc<str>),
    /// The item of a list whose key fields have these values.
    Key(Key),
    /// The item of a set that is this value.
    Value(Value),
    /// An item by its position. Nobody writes these any more; they are understood so that no entry is refused.
    Index(i64),
}

impl Element {
    pub fn field(name: &str) -> Self {
        Element::Field(name.into())
    }

    /// An item of a list by the fields that tell it from the others, in any order.
    pub fn key<'a>(fields: impl IntoIterator<Item = (&'a str, Value)>) -> Self {
        let mut fields: Vec<(Arc<str>, Value)> = fields.into_iter().map(|(name, value)| (name.into(), value)).collect();
        fields.sort_by(|a, b| a.0.cmp(&b.0));
        Element::Key(fields.into())
    }

    fn rank(&self) -> u8 {
        match self {
            Element::Field(_) => 0,
            Element::Key(_) => 1,
            Element::Value(_) => 2,
            Element::Index(_) => 3,
        }
    }
}

impl Ord for Element {
    fn cmp(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Element::Field(a), Element::Field(b)) => a.cmp(b),
            (Element::Key(a), Element::Key(b)) => compare_keys(a, b),
            (Element::Value(a), Element::Value(b)) => compare_values(a, b),
            (Element::Index(a), Element::Index(b)) => a.cmp(b),
            _ => self.rank().cmp(&other.rank()),
        }
    }
}

impl PartialOrd for Element {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Element {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Element {}

fn compare_keys(a: &[(Arc<str>, Value)], b: &[(Arc<str>, Value)]) -> Ordering {
    let fields = a.iter().zip(b).map(|(a, b)| a.0.cmp(&b.0).then_with(|| compare_values(&a.1, &b.1)));
    fields.fold(Ordering::Equal, Ordering::then).then(a.len().cmp(&b.len()))
}

/// A total order of values: numbers, strings, booleans, lists, objects, null.
fn compare_values(a: &Value, b: &Value) -> Ordering {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => compare_numbers(a, b),
        (Value::String(a), Value::String(b)) => a.cmp(b),
        (Value::Bool(a), Value::Bool(b)) => a.cmp(b),
        (Value::Array(a), Value::Array(b)) => {
            let items = a.iter().zip(b).map(|(a, b)| compare_values(a, b));
            items.fold(Ordering::Equal, Ordering::then).then(a.len().cmp(&b.len()))
        }
        (Value::Object(a), Value::Object(b)) => {
            let fields = a.iter().zip(b).map(|(a, b)| a.0.cmp(b.0).then_with(|| compare_values(a.1, b.1)));
            fields.fold(Ordering::Equal, Ordering::then).then(a.len().cmp(&b.len()))
        }
        _ => rank(a).cmp(&rank(b)),
    }
}

fn rank(value: &Value) -> u8 {
    match value {
        Value::Number(_) => 0,
        Value::String(_) => 1,
        Value::Bool(_) => 2,
        Value::Array(_) => 3,
        Value::Object(_) => 4,
        Value::Null => 5,
    }
}

fn compare_numbers(a: &Number, b: &Number) -> Ordering {
    match (a.as_i128(), b.as_i128()) {
        (Some(a), Some(b)) => a.cmp(&b),
        // Adding zero makes one zero of the two that floats have.
        _ => (a.as_f64().unwrap_or(f64::NAN) + 0.0).total_cmp(&(b.as_f64().unwrap_or(f64::NAN) + 0.0)),
    }
}

/// Whether two values are the same to their owners.
pub(super) fn same(a: &Value, b: &Value) -> bool {
    a == b || compare_values(a, b).is_eq()
}

/// As conflicts show it: `.image`, `[name="c"]`, `[="x"]`, `[0]`.
impl fmt::Display for Element {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Element::Field(name) => write!(f, ".{name}"),
            Element::Key(fields) => {
                f.write_str("[")?;
                for (at, (name, value)) in fields.iter().enumerate() {
                    let comma = if at == 0 { "" } else { "," };
                    write!(f, "{comma}{name}={value}")?;
                }
                f.write_str("]")
            }
            Element::Value(value) => write!(f, "[={value}]"),
            Element::Index(at) => write!(f, "[{at}]"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use object::json;

    #[test]
    fn elements_are_sorted_by_kind_and_then_by_what_they_name() {
        let sorted = [
            Element::field("a"),
            Element::field("b"),
            Element::key([("port", json!(80))]),
            Element::key([("port", json!(80)), ("protocol", json!("TCP"))]),
            Element::key([("port", json!(443))]),
            Element::Value(json!(-1)),
            Element::Value(json!(9.5)),
            Element::Value(json!(10)),
            Element::Value(json!("a")),
            Element::Value(json!(false)),
            Element::Value(json!([1])),
            Element::Value(json!({ "a": 1 })),
            Element::Value(json!(null)),
            Element::Index(0),
        ];
        assert!(sorted.is_sorted_by(|a, b| a < b));
        assert_eq!(Element::Value(json!(80)), Element::Value(json!(80.0)));
        assert_eq!(Element::Value(json!(0)), Element::Value(json!(-0.0)));
    }

    #[test]
    fn a_key_is_shown_with_its_fields_in_order() {
        let key = Element::key([("protocol", json!("TCP")), ("containerPort", json!(80))]);
        assert_eq!(key.to_string(), r#"[containerPort=80,protocol="TCP"]"#);
        assert_eq!(Element::Value(json!("a\"b")).to_string(), r#"[="a\"b"]"#);
        assert_eq!(Element::Index(3).to_string(), "[3]");
    }
}
