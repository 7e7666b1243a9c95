//! Values that may not be there.

use crate::cost::Cost;
use crate::environment::{Row, row};
use crate::functions::unsuitable;
use crate::times::Moment;
use crate::value::{Error, Value};

const ONE: Cost = Cost::Fixed(1);

pub(crate) const TABLE: &[Row] = &[
    row("optional.of", "(A) -> optional(A)", ONE, |args| Ok(Value::some(std::mem::take(&mut args[0])))),
    row("optional.ofNonZeroValue", "(A) -> optional(A)", ONE, |args| match std::mem::take(&mut args[0]) {
        value if is_zero(&value) => Ok(Value::Optional(None)),
        value => Ok(Value::some(value)),
    }),
    row("optional.none", "() -> optional(A)", ONE, |_| Ok(Value::Optional(None))),
    row("value", "optional(A).() -> A", ONE, |args| match &args[0] {
        Value::Optional(Some(value)) => Ok((**value).clone()),
        Value::Optional(None) => Err(Error::new("optional.none() dereference")),
        _ => Err(unsuitable()),
    }),
    row("hasValue", "optional(A).() -> bool", ONE, |args| match &args[0] {
        Value::Optional(value) => Ok(Value::Bool(value.is_some())),
        _ => Err(unsuitable()),
    }),
    row("optional.unwrap", "(list(optional(A))) -> list(A)", ONE, unwrap),
    row("unwrapOpt", "list(optional(A)).() -> list(A)", ONE, unwrap),
    row("first", "list(A).() -> optional(A)", ONE, |args| match &args[0] {
        Value::List(items) => items.get(0).map_or(Ok(Value::Optional(None)), |item| item.map(Value::some)),
        _ => Err(unsuitable()),
    }),
    row("last", "list(A).() -> optional(A)", ONE, |args| match &args[0] {
        Value::List(items) => {
            let last = items.len().checked_sub(1).and_then(|last| items.get(last));
            last.map_or(Ok(Value::Optional(None)), |item| item.map(Value::some))
        }
        _ => Err(unsuitable()),
    }),
];

fn unwrap<'a>(args: &mut [Value<'a>]) -> Result<Value<'a>, Error> {
    let Value::List(items) = &args[0] else { return Err(unsuitable()) };
    let mut values = Vec::new();
    for item in items.iter() {
        match item? {
            Value::Optional(value) => values.extend(value.map(|value| (*value).clone())),
            _ => return Err(unsuitable()),
        }
    }
    Ok(Value::list(values))
}

fn is_zero(value: &Value<'_>) -> bool {
    match value {
        Value::Null | Value::Bool(false) | Value::Int(0) | Value::Uint(0) | Value::Duration(0) => true,
        Value::Double(value) => *value == 0.0,
        Value::Timestamp(moment) => *moment == Moment::FIRST,
        Value::String(_) | Value::Bytes(_) | Value::List(_) | Value::Map(_) => value.size() == 0,
        Value::Optional(value) => value.is_none(),
        _ => false,
    }
}
