//! Reading what objects are made of as values, as it was declared.

use crate::declaration::{Declaration, Equality, Shape};
use crate::functions::conversions;
use crate::times::{self, Moment};
use crate::types::Type;
use crate::value::{Error, Fields, List, Map, Text, Value};
use object::{Map as JsonMap, Value as Json, View, base64};
use std::sync::LazyLock;

/// What nothing is declared about is read as what it is.
pub(crate) static ANYTHING: LazyLock<Declaration> =
    LazyLock::new(|| Declaration { nullable: true, ..Declaration::plain(Type::Dyn) });

/// The value; an error if it is not as declared.
pub(crate) fn read<'a>(json: &'a Json, declared: &'a Declaration) -> Result<Value<'a>, Error> {
    match (&declared.shape, json) {
        (_, Json::Null) if declared.nullable || matches!(declared.shape, Shape::Plain(Type::Dyn)) => Ok(Value::Null),
        (_, Json::Null) => Err(Error::new("invalid data, got null for schema with nullable=false")),
        (Shape::Plain(of), json) => read_plain(json, of),
        (Shape::Date, Json::String(text)) => Moment::parse_date(text)
            .map(Value::Timestamp)
            .ok_or_else(|| Error::new(format!("Invalid date formatted string {text}"))),
        (Shape::IntOrString, Json::String(text)) => Ok(Value::String(Text::Borrowed(text))),
        (Shape::IntOrString, Json::Number(number)) if number.is_i64() => read_plain(json, &Type::Int),
        (Shape::IntOrString, _) => {
            Err(Error::new("invalid data, expected XIntOrString value to be either a string or integer"))
        }
        (Shape::List { items: declared, equality }, Json::Array(items)) => {
            Ok(Value::List(List::Json { items, declared, equality }))
        }
        (Shape::Map { .. } | Shape::Object { .. }, Json::Object(entries)) => {
            Ok(Value::Map(Map::Json { entries, declared }))
        }
        (Shape::List { .. }, _) => Err(expected("an array for the provided schema with type=array")),
        (Shape::Map { .. } | Shape::Object { .. }, _) => {
            Err(expected("a map for the provided schema with type=object"))
        }
        (Shape::Date, _) => Err(expected("string")),
    }
}

fn expected(what: &str) -> Error {
    Error::new(format!("invalid data, expected {what}"))
}

fn read_plain<'a>(json: &'a Json, of: &Type) -> Result<Value<'a>, Error> {
    let text = || json.as_str().ok_or_else(|| expected("string"));
    let invalid = |what: &str, text: &str| Error::new(format!("Invalid {what} formatted string {text}"));
    match of {
        Type::Bool => json.as_bool().map(Value::Bool).ok_or_else(|| expected("bool")),
        Type::Int => json.as_i64().map(Value::Int).ok_or_else(|| expected("int")),
        Type::Uint => json.as_u64().map(Value::Uint).ok_or_else(|| expected("uint")),
        Type::Double => json.as_f64().map(Value::Double).ok_or_else(|| expected("float")),
        Type::String => Ok(Value::String(Text::Borrowed(text()?))),
        Type::Bytes => match base64::decode(text()?) {
            Some(bytes) => Ok(Value::Bytes(bytes.into())),
            None => Err(invalid("byte", text()?)),
        },
        Type::Timestamp => match Moment::parse(text()?) {
            Some(timestamp) => Ok(Value::Timestamp(timestamp)),
            None => Err(invalid("date-time", text()?)),
        },
        Type::Duration => match times::parse_duration(text()?) {
            Some(duration) => Ok(Value::Duration(duration)),
            None => Err(Error::new(format!("Invalid duration {}", text()?))),
        },
        _ => Ok(read_anything(json)),
    }
}

fn read_anything(json: &Json) -> Value<'_> {
    match json {
        Json::Null => Value::Null,
        Json::Bool(value) => Value::Bool(*value),
        Json::Number(number) => match (number.as_i64(), number.as_f64()) {
            (Some(int), _) => Value::Int(int),
            (None, Some(double)) => Value::Double(double),
            (None, None) => Value::Null,
        },
        Json::String(text) => Value::String(Text::Borrowed(text)),
        Json::Array(items) => Value::List(List::Json { items, declared: &ANYTHING, equality: &Equality::Ordered }),
        Json::Object(entries) => Value::Map(Map::Json { entries, declared: &ANYTHING }),
    }
}

/// The entry of a map, or the field of an object, that has this name in expressions.
pub(crate) fn entry<'a>(
    entries: &'a JsonMap,
    declared: &'a Declaration,
    name: &str,
) -> Option<Result<Value<'a>, Error>> {
    match &declared.shape {
        Shape::Object { fields, .. } => {
            // A field that is null is one that is not there.
            let field = fields.get(name)?;
            Some(read(entries.get(&field.name).filter(|json| !json.is_null())?, &field.declaration))
        }
        Shape::Map { values, .. } => Some(read(entries.get(name)?, values)),
        _ => Some(Ok(read_anything(entries.get(name)?))),
    }
}

/// How the entry of this name in JSON was declared.
pub(crate) fn declared_as<'a>(declared: &'a Declaration, name: &str) -> Option<&'a Declaration> {
    match &declared.shape {
        Shape::Object { fields, .. } => {
            fields.values().find(|field| field.name == name).map(|field| &*field.declaration)
        }
        Shape::Map { values, .. } => Some(values),
        _ => Some(&ANYTHING),
    }
}

/// The names of those entries that expressions can see.
pub(crate) fn keys<'a>(entries: &'a JsonMap, declared: &'a Declaration) -> Box<dyn Iterator<Item = &'a str> + 'a> {
    match &declared.shape {
        Shape::Object { fields, .. } => {
            Box::new(fields.iter().filter(|(_, field)| entries.has(&field.name)).map(|(name, _)| name.as_str()))
        }
        _ => Box::new(entries.keys().map(object::FieldName::as_str)),
    }
}

impl<'a> Value<'a> {
    /// An object nothing is declared about.
    pub fn from_json(json: &'a Json) -> Value<'a> {
        read_anything(json)
    }

    /// A part of an object, as it was declared; an error if it is not so.
    pub fn read(json: &'a Json, declared: &'a Declaration) -> Result<Value<'a>, Error> {
        read(json, declared)
    }

    /// As JSON again; an error for what JSON cannot say.
    pub fn to_json(&self) -> Result<Json, Error> {
        Ok(match self {
            Value::Null => Json::Null,
            Value::Bool(value) => Json::from(*value),
            Value::Int(value) => Json::from(*value),
            Value::Uint(value) => Json::from(*value),
            Value::Double(value) => Json::from(*value),
            Value::String(text) => Json::from(&**text),
            Value::Bytes(bytes) => Json::from(base64::encode(bytes)),
            Value::List(items) => Json::Array(items.iter().map(|item| item?.to_json()).collect::<Result<_, _>>()?),
            Value::Map(map) => {
                let entries = map.entries().map(|entry| {
                    let (key, value) = entry?;
                    Ok((conversions::to_text(&Value::from_key(key))?, value.to_json()?))
                });
                Json::Object(entries.collect::<Result<_, _>>()?)
            }
            Value::Optional(Some(value)) => value.to_json()?,
            Value::Timestamp(_) | Value::Duration(_) | Value::Opaque(_) => Json::from(conversions::to_text(self)?),
            Value::Type(_) | Value::Optional(None) => {
                return Err(Error::new(format!("unsupported type conversion from '{}' to JSON", self.type_name())));
            }
        })
    }
}

/// Fields that were all given before.
impl<'a> Fields<'a> for std::collections::BTreeMap<String, Value<'a>> {
    fn get(&self, name: &str) -> Option<Result<Value<'a>, Error>> {
        self.get(name).cloned().map(Ok)
    }
}
