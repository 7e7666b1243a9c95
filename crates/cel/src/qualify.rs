//! What is found in a value under an index or a name.

use crate::ast::operator;
use crate::functions::conversions;
use crate::types::Type;
use crate::value::{Error, Key, Value};

/// What was found under an index.
pub(crate) enum Found<'a> {
    Missing,
    Value(Result<Value<'a>, Error>),
    /// In an optional, and so it is one itself.
    Wrapped(Option<Result<Value<'a>, Error>>),
}

impl<'a> Found<'a> {
    /// The value; what to say if there is none.
    pub(crate) fn required(self, missing: impl FnOnce() -> String) -> Result<Value<'a>, Error> {
        match self {
            Found::Missing => Err(Error::new(missing())),
            Found::Value(value) => value,
            Found::Wrapped(None) => Ok(Value::Optional(None)),
            Found::Wrapped(Some(value)) => value.map(Value::some),
        }
    }
}

pub(crate) fn qualify<'a>(operand: &Value<'a>, index: &Value<'a>) -> Result<Found<'a>, Error> {
    let found = match operand {
        Value::List(items) => {
            let position = match index.as_key() {
                Some(Key::Int(position)) => usize::try_from(position).ok(),
                Some(Key::Uint(position)) => usize::try_from(position).ok(),
                _ => return Err(no_such_overload(operator::INDEX, &[operand.clone(), index.clone()])),
            };
            position.and_then(|position| items.get(position))
        }
        Value::Map(map) => match index.as_key() {
            Some(key) => map.get(&key),
            None => return Err(no_such_overload(operator::INDEX, &[operand.clone(), index.clone()])),
        },
        Value::Optional(None) => return Ok(Found::Wrapped(None)),
        Value::Optional(Some(inner)) => {
            return Ok(match qualify(inner, index)? {
                Found::Missing => Found::Wrapped(None),
                Found::Value(value) => Found::Wrapped(Some(value)),
                wrapped @ Found::Wrapped(_) => wrapped,
            });
        }
        _ => return Err(Error::new("no such overload")),
    };
    Ok(found.map_or(Found::Missing, Found::Value))
}

/// Whether a value may stand where this type is wanted. Of lists and maps, what is in them is not looked at.
pub(crate) fn accepts(of: &Type, value: &Value<'_>) -> bool {
    match (of, value) {
        (Type::Dyn | Type::Param(_), _)
        | (Type::Null, Value::Null)
        | (Type::Bool, Value::Bool(_))
        | (Type::Int, Value::Int(_))
        | (Type::Uint, Value::Uint(_))
        | (Type::Double, Value::Double(_))
        | (Type::String, Value::String(_))
        | (Type::Bytes, Value::Bytes(_))
        | (Type::Timestamp, Value::Timestamp(_))
        | (Type::Duration, Value::Duration(_))
        | (Type::List(_), Value::List(_))
        | (Type::Map(_), Value::Map(_))
        | (Type::Optional(_), Value::Optional(_))
        | (Type::Type(_), Value::Type(_)) => true,
        (Type::Abstract(name), Value::Opaque(opaque)) => **name == *opaque.type_name(),
        _ => false,
    }
}

pub(crate) fn no_such_overload(function: &str, values: &[Value<'_>]) -> Error {
    let types: Vec<String> = values.iter().map(Value::type_name).collect();
    Error::new(format!("no such overload: {function}({})", types.join(", ")))
}

/// A value in a message.
pub(crate) fn text_of(value: &Value<'_>) -> String {
    conversions::to_text(value).unwrap_or_else(|_| value.type_name())
}
