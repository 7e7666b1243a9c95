//! Arithmetic, concatenation, order, size.

use crate::ast::operator;
use crate::compare::{compare, concatenate};
use crate::cost::Cost;
use crate::declaration::Equality;
use crate::environment::{Row, row};
use crate::functions::unsuitable;
use crate::json::ANYTHING;
use crate::times::Moment;
use crate::value::{Error, List, Value};
use std::cmp::Ordering;

const ONE: Cost = Cost::Fixed(1);
const INT_OVERFLOW: &str = "integer overflow";
const UINT_OVERFLOW: &str = "unsigned integer overflow";
const DURATION_OVERFLOW: &str = "duration overflow";
const TIMESTAMP_OVERFLOW: &str = "timestamp overflow";

fn int<'a>(result: Option<i64>) -> Result<Value<'a>, Error> {
    result.map(Value::Int).ok_or_else(|| Error::new(INT_OVERFLOW))
}

fn uint<'a>(result: Option<u64>) -> Result<Value<'a>, Error> {
    result.map(Value::Uint).ok_or_else(|| Error::new(UINT_OVERFLOW))
}

fn duration<'a>(result: Option<i64>) -> Result<Value<'a>, Error> {
    result.map(Value::Duration).ok_or_else(|| Error::new(DURATION_OVERFLOW))
}

fn moved<'a>(timestamp: Moment, nanos: i128) -> Result<Value<'a>, Error> {
    timestamp.later(nanos).map(Value::Timestamp).ok_or_else(|| Error::new(TIMESTAMP_OVERFLOW))
}

pub(crate) fn add<'a>(args: &mut [Value<'a>]) -> Result<Value<'a>, Error> {
    match args {
        [Value::Int(one), Value::Int(other)] => int(one.checked_add(*other)),
        [Value::Uint(one), Value::Uint(other)] => uint(one.checked_add(*other)),
        [Value::Double(one), Value::Double(other)] => Ok(Value::Double(*one + *other)),
        [Value::String(one), Value::String(other)] => Ok(Value::string([&**one, &**other].concat())),
        [Value::Bytes(one), Value::Bytes(other)] => Ok(Value::Bytes([&**one, &**other].concat().into())),
        [Value::Duration(one), Value::Duration(other)] => duration(one.checked_add(*other)),
        [Value::Timestamp(timestamp), Value::Duration(nanos)]
        | [Value::Duration(nanos), Value::Timestamp(timestamp)] => moved(*timestamp, i128::from(*nanos)),
        [Value::List(one), Value::List(other)] => {
            let nothing = List::Json { items: &[], declared: &ANYTHING, equality: &Equality::Ordered };
            concatenate(std::mem::replace(one, nothing), other).map(Value::List)
        }
        _ => Err(unsuitable()),
    }
}

fn subtract<'a>(args: &mut [Value<'a>]) -> Result<Value<'a>, Error> {
    match args {
        [Value::Int(one), Value::Int(other)] => int(one.checked_sub(*other)),
        [Value::Uint(one), Value::Uint(other)] => uint(one.checked_sub(*other)),
        [Value::Double(one), Value::Double(other)] => Ok(Value::Double(*one - *other)),
        [Value::Duration(one), Value::Duration(other)] => duration(one.checked_sub(*other)),
        [Value::Timestamp(timestamp), Value::Duration(nanos)] => moved(*timestamp, -i128::from(*nanos)),
        [Value::Timestamp(one), Value::Timestamp(other)] => duration(i64::try_from(one.nanos() - other.nanos()).ok()),
        _ => Err(unsuitable()),
    }
}

fn multiply<'a>(args: &mut [Value<'a>]) -> Result<Value<'a>, Error> {
    match args {
        [Value::Int(one), Value::Int(other)] => int(one.checked_mul(*other)),
        [Value::Uint(one), Value::Uint(other)] => uint(one.checked_mul(*other)),
        [Value::Double(one), Value::Double(other)] => Ok(Value::Double(*one * *other)),
        _ => Err(unsuitable()),
    }
}

fn divide<'a>(args: &mut [Value<'a>]) -> Result<Value<'a>, Error> {
    match args {
        [_, Value::Int(0) | Value::Uint(0)] => Err(Error::new("division by zero")),
        [Value::Int(one), Value::Int(other)] => int(one.checked_div(*other)),
        [Value::Uint(one), Value::Uint(other)] => uint(one.checked_div(*other)),
        [Value::Double(one), Value::Double(other)] => Ok(Value::Double(*one / *other)),
        _ => Err(unsuitable()),
    }
}

fn modulo<'a>(args: &mut [Value<'a>]) -> Result<Value<'a>, Error> {
    match args {
        [_, Value::Int(0) | Value::Uint(0)] => Err(Error::new("modulus by zero")),
        [Value::Int(one), Value::Int(other)] => int(one.checked_rem(*other)),
        [Value::Uint(one), Value::Uint(other)] => uint(one.checked_rem(*other)),
        _ => Err(unsuitable()),
    }
}

fn negate<'a>(args: &mut [Value<'a>]) -> Result<Value<'a>, Error> {
    match args {
        [Value::Int(value)] => int(value.checked_neg()),
        [Value::Double(value)] => Ok(Value::Double(-*value)),
        _ => Err(unsuitable()),
    }
}

fn size<'a>(args: &mut [Value<'a>]) -> Result<Value<'a>, Error> {
    Ok(Value::Int(args.first().map_or(0, Value::size).cast_signed()))
}

pub(crate) const TABLE: &[Row] = &[
    row(operator::ADD, "(bytes, bytes) -> bytes", Cost::AddText, add),
    row(operator::ADD, "(N, N) -> N", ONE, add),
    row(operator::ADD, "(duration, duration) -> duration", ONE, add),
    row(operator::ADD, "(duration, timestamp) -> timestamp", ONE, add),
    row(operator::ADD, "(timestamp, duration) -> timestamp", ONE, add),
    row(operator::ADD, "(list(A), list(A)) -> list(A)", Cost::AddList, add),
    row(operator::ADD, "(string, string) -> string", Cost::AddText, add),
    row("_-_", "(N, N) -> N", ONE, subtract),
    row("_-_", "(duration, duration) -> duration", ONE, subtract),
    row("_-_", "(timestamp, duration) -> timestamp", ONE, subtract),
    row("_-_", "(timestamp, timestamp) -> duration", ONE, subtract),
    row("_*_", "(N, N) -> N", ONE, multiply),
    row("_/_", "(N, N) -> N", ONE, divide),
    row("_%_", "(int, int) -> int", ONE, modulo),
    row("_%_", "(uint, uint) -> uint", ONE, modulo),
    row(operator::NEGATE, "(double) -> double", ONE, negate),
    row(operator::NEGATE, "(int) -> int", ONE, negate),
    row("size", "(bytes) -> int", ONE, size),
    row("size", "bytes.() -> int", ONE, size),
    row("size", "(list(A)) -> int", ONE, size),
    row("size", "list(A).() -> int", ONE, size),
    row("size", "(map(A, B)) -> int", ONE, size),
    row("size", "map(A, B).() -> int", ONE, size),
    row("size", "(string) -> int", ONE, size),
    row("size", "string.() -> int", ONE, size),
];

/// An order of what can be ordered.
macro_rules! comparison {
    ($name:literal, $holds:expr) => {{
        fn holds<'a>(args: &mut [Value<'a>]) -> Result<Value<'a>, Error> {
            let [one, other] = args else { return Err(unsuitable()) };
            let holds: fn(Ordering) -> bool = $holds;
            compare(one, other).unwrap_or_else(|| Err(unsuitable())).map(|order| Value::Bool(holds(order)))
        }
        [
            row($name, "(N, M) -> bool", ONE, holds),
            row($name, "(bool, bool) -> bool", ONE, holds),
            row($name, "(string, string) -> bool", Cost::Compare, holds),
            row($name, "(bytes, bytes) -> bool", Cost::Compare, holds),
            row($name, "(timestamp, timestamp) -> bool", ONE, holds),
            row($name, "(duration, duration) -> bool", ONE, holds),
        ]
    }};
}

const ORDERS: [[Row; 6]; 4] = [
    comparison!("_<_", Ordering::is_lt),
    comparison!("_<=_", Ordering::is_le),
    comparison!("_>_", Ordering::is_gt),
    comparison!("_>=_", Ordering::is_ge),
];

pub(crate) const COMPARISONS: &[Row] = ORDERS.as_flattened();
