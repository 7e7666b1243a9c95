//! Field sets as `FieldsV1`: an object per path element, `{}` for a member, `"."` for one that has members below it.
//!
//! ```text
//! {"f:spec":{"f:containers":{"k:{\"name\":\"c\"}":{".":{},"f:image":{}}}}}
//! ```
//!
//! Elements of a kind that is not known are dropped with all below them: a later version may write such.

use super::element::{Element, Key};
use super::set::{Entry, FieldSet, MAX_DEPTH};
use object::{Map, Value};
use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, Visitor};
use std::borrow::Cow;
use std::fmt;

/// A `FieldsV1` that cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct FieldsError(#[from] serde_json::Error);

impl FieldSet {
    pub fn parse(text: &[u8]) -> Result<Self, FieldsError> {
        let mut deserializer = serde_json::Deserializer::from_slice(text);
        let set = Reader { depth: 0 }.deserialize(&mut deserializer)?.below;
        deserializer.end()?;
        Ok(set)
    }

    pub fn from_value(value: &Value) -> Result<Self, FieldsError> {
        Ok(Reader { depth: 0 }.deserialize(value)?.below)
    }

    pub fn to_value(&self) -> Value {
        Value::Object(self.to_map(false))
    }

    fn to_map(&self, itself: bool) -> Map {
        let mut map = Map::new();
        if itself {
            map.insert(".", Value::Object(Map::new()));
        }
        for entry in &self.entries {
            let mut name = String::new();
            write_element(&entry.element, &mut name);
            map.insert(name, Value::Object(entry.children.to_map(entry.names_itself())));
        }
        map
    }
}

impl Entry {
    fn names_itself(&self) -> bool {
        self.member && !self.children.is_empty()
    }
}

pub(super) fn write_element(element: &Element, out: &mut String) {
    match element {
        Element::Field(name) => {
            out.push_str("f:");
            out.push_str(name);
        }
        Element::Key(fields) => {
            out.push_str("k:{");
            for (at, (name, value)) in fields.iter().enumerate() {
                out.push_str(if at > 0 { ",\"" } else { "\"" });
                push_escaped(name, out);
                out.push_str("\":");
                write_canonical(value, out);
            }
            out.push('}');
        }
        Element::Value(value) => {
            out.push_str("v:");
            write_canonical(value, out);
        }
        Element::Index(at) => {
            out.push_str("i:");
            out.push_str(&at.to_string());
        }
    }
}

/// JSON as other servers write it into elements: no fraction that is zero, and nothing that HTML knows.
fn write_canonical(value: &Value, out: &mut String) {
    const EXACT: f64 = 9_007_199_254_740_992.0;
    match value {
        Value::Number(number) => match number.as_f64() {
            Some(float) if !number.is_i64() && !number.is_u64() && float.fract() == 0.0 && float.abs() < EXACT => {
                out.push_str(&(float as i64).to_string());
            }
            _ => out.push_str(&number.to_string()),
        },
        Value::String(text) => {
            out.push('"');
            let start = out.len();
            push_escaped(text, out);
            let special = |c| matches!(c, '<' | '>' | '&' | '\u{2028}' | '\u{2029}');
            if out[start..].contains(special) {
                let escape = |c| if special(c) { format!("\\u{:04x}", u32::from(c)) } else { c.to_string() };
                let escaped: String = out[start..].chars().map(escape).collect();
                out.truncate(start);
                out.push_str(&escaped);
            }
            out.push('"');
        }
        // Not in elements that this server makes.
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => out.push_str(&value.to_string()),
    }
}

/// The inside of a JSON string.
pub(super) fn push_escaped(text: &str, out: &mut String) {
    let mut rest = text;
    while let Some(at) = rest.bytes().position(|byte| byte < 0x20 || byte == b'"' || byte == b'\\') {
        let (plain, special) = rest.split_at(at);
        let (special, behind) = special.split_at(1);
        out.push_str(plain);
        match special {
            "\"" => out.push_str("\\\""),
            "\\" => out.push_str("\\\\"),
            control => {
                let quoted = Value::from(control).to_string();
                out.push_str(&quoted[1..quoted.len() - 1]);
            }
        }
        rest = behind;
    }
    out.push_str(rest);
}

/// `None` for an element of a kind that is not known.
pub(super) fn read_element(text: &str) -> Result<Option<Element>, String> {
    let (kind, rest) = text.split_once(':').ok_or_else(|| format!("missing colon: {text}"))?;
    let json = |text| serde_json::from_str::<Value>(text).map_err(|error| format!("{text}: {error}"));
    Ok(match kind {
        "f" => Some(Element::field(rest)),
        "k" => match json(rest)? {
            // The map is sorted by name, as keys are.
            Value::Object(fields) => {
                Some(Element::Key(fields.into_iter().map(|(name, value)| (name.into(), value)).collect::<Key>()))
            }
            _ => return Err(format!("not an object: {rest}")),
        },
        "v" => Some(Element::Value(json(rest)?)),
        "i" => Some(Element::Index(rest.parse().map_err(|_| format!("not an index: {rest}"))?)),
        other if other.len() == 1 => None,
        _ => return Err(format!("missing colon: {text}")),
    })
}

/// Reads what stands behind one element.
struct Reader {
    depth: usize,
}

#[derive(Default)]
struct Read {
    itself: bool,
    below: FieldSet,
}

impl<'de> DeserializeSeed<'de> for Reader {
    type Value = Read;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Read, D::Error> {
        if self.depth > MAX_DEPTH {
            return Err(D::Error::custom(format_args!("deeper than {MAX_DEPTH} levels")));
        }
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Reader {
    type Value = Read;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object of path elements")
    }

    fn visit_unit<E>(self) -> Result<Read, E> {
        Ok(Read { itself: true, below: FieldSet::default() })
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Read, A::Error> {
        let mut read = Read::default();
        while let Some(name) = map.next_key::<Cow<'_, str>>()? {
            if name == "." {
                map.next_value::<IgnoredAny>()?;
                read.itself = true;
                continue;
            }
            match read_element(&name).map_err(A::Error::custom)? {
                Some(element) => {
                    let Read { itself, below } = map.next_value_seed(Reader { depth: self.depth + 1 })?;
                    read.below.add(Entry { element, member: itself, children: below });
                }
                None => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        read.itself |= read.below.is_empty();
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use object::json;
    use proptest::prelude::*;

    fn written(set: &FieldSet) -> String {
        set.to_value().to_string()
    }

    #[test]
    fn sets_are_written_as_other_servers_write_them() {
        for text in [
            r#"{}"#,
            r#"{"f:metadata":{"f:labels":{".":{},"f:app":{}}},"f:spec":{"f:replicas":{}}}"#,
            r#"{"f:ports":{"k:{\"containerPort\":443,\"protocol\":\"TCP\"}":{},"k:{\"containerPort\":80,\"protocol\":\"TCP\"}":{".":{},"f:containerPort":{}}}}"#,
            r#"{"f:finalizers":{".":{},"v:\"a\"":{},"v:\"b\\u003cc\"":{}}}"#,
            r#"{"f:a\"b":{},"i:3":{},"v:null":{},"v:true":{}}"#,
        ] {
            let set = FieldSet::parse(text.as_bytes()).unwrap();
            assert_eq!(written(&set), text);
            assert_eq!(FieldSet::from_value(&set.to_value()).unwrap(), set);
        }
    }

    #[test]
    fn what_is_written_otherwise_is_put_in_order() {
        for (text, expected) in [
            (r#"{"f:b":{},"f:a":null}"#, r#"{"f:a":{},"f:b":{}}"#),
            (r#"{"f:a":{"f:b":{}},"f:a":{".":{}}}"#, r#"{"f:a":{".":{},"f:b":{}}}"#),
            (r#"{"k:{\"b\":1.0,\"a\":\"x\"}":{}}"#, r#"{"k:{\"a\":\"x\",\"b\":1}":{}}"#),
            (r#"{"x:new":{"f:a":{}},"f:b":{"x:c":{}}}"#, r#"{"f:b":{}}"#),
            (r#"{".":{}}"#, "{}"),
        ] {
            assert_eq!(written(&FieldSet::parse(text.as_bytes()).unwrap()), expected, "{text}");
        }
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        let deep = |levels: usize| format!("{}{}", r#"{"f:a":"#.repeat(levels), "{}".to_owned() + &"}".repeat(levels));
        assert!(FieldSet::parse(deep(MAX_DEPTH).as_bytes()).is_ok());
        for text in [
            "",
            "[]",
            "1",
            "{",
            r#"{"f:a":1}"#,
            r#"{"a":{}}"#,
            r#"{"abc:d":{}}"#,
            r#"{"k:[1]":{}}"#,
            r#"{"k:{":{}}"#,
            r#"{"v:":{}}"#,
            r#"{"i:x":{}}"#,
            r#"{"v:1 2":{}}"#,
            r#"{"é":{}}"#,
            r#"{} {}"#,
        ] {
            assert!(FieldSet::parse(text.as_bytes()).is_err(), "{text}");
        }
        assert!(FieldSet::parse(deep(MAX_DEPTH + 1).as_bytes()).is_err());
        assert!(FieldSet::parse(deep(100_000).as_bytes()).is_err());
        let mut value = json!({});
        for _ in 0..=MAX_DEPTH {
            value = json!({ "f:a": value });
        }
        assert!(FieldSet::from_value(&value).is_err());
    }

    proptest! {
        #[test]
        fn nothing_makes_the_reader_panic(text in r#"(\{|\}|"|:|,|\.|f:|k:\{|v:|i:|x:|\\"|1|a|null|é){0,24}"#) {
            if let Ok(set) = FieldSet::parse(text.as_bytes()) {
                prop_assert_eq!(FieldSet::parse(written(&set).as_bytes()).unwrap(), set);
            }
        }

        #[test]
        fn any_name_survives(name in ".*", key in ".*", value in ".*") {
            let mut set = FieldSet::default();
            set.insert(&[Element::field(&name), Element::key([(key.as_str(), json!(value))])]);
            set.insert(&[Element::Value(json!(value))]);
            prop_assert_eq!(&FieldSet::parse(written(&set).as_bytes()).unwrap(), &set);
            prop_assert_eq!(&FieldSet::from_value(&set.to_value()).unwrap(), &set);
        }
    }
}
