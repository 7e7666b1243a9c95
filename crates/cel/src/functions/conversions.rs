//! From one type to another.

use crate::cost::Cost;
use crate::environment::{Row, row};
use crate::functions::unsuitable;
use crate::times::{self, Moment};
use crate::value::{Error, Value, name_of_type};

const ONE: Cost = Cost::Fixed(1);

/// Of constants these are constants too.
pub(crate) const NAMES: [&str; 10] =
    ["bool", "bytes", "double", "duration", "dyn", "int", "string", "timestamp", "type", "uint"];

pub(crate) const TABLE: &[Row] = &[
    row("type", "(A) -> type(A)", ONE, |args| Ok(Value::Type(args[0].type_of()))),
    row("dyn", "(A) -> dyn", ONE, same),
    row("bool", "(bool) -> bool", ONE, same),
    row("bool", "(string) -> bool", ONE, to_bool),
    row("bytes", "(bytes) -> bytes", ONE, same),
    row("bytes", "(string) -> bytes", Cost::Encode, to_bytes),
    row("double", "(double) -> double", ONE, same),
    row("double", "(int) -> double", ONE, to_double),
    row("double", "(string) -> double", ONE, to_double),
    row("double", "(uint) -> double", ONE, to_double),
    row("duration", "(duration) -> duration", ONE, same),
    row("duration", "(int) -> duration", ONE, to_duration),
    row("duration", "(string) -> duration", ONE, to_duration),
    row("int", "(int) -> int", ONE, same),
    row("int", "(double) -> int", ONE, to_int),
    row("int", "(duration) -> int", ONE, to_int),
    row("int", "(string) -> int", ONE, to_int),
    row("int", "(timestamp) -> int", ONE, to_int),
    row("int", "(uint) -> int", ONE, to_int),
    row("string", "(string) -> string", ONE, same),
    row("string", "(bool) -> string", ONE, to_string),
    row("string", "(bytes) -> string", Cost::Decode, to_string),
    row("string", "(double) -> string", ONE, to_string),
    row("string", "(duration) -> string", ONE, to_string),
    row("string", "(int) -> string", ONE, to_string),
    row("string", "(timestamp) -> string", ONE, to_string),
    row("string", "(uint) -> string", ONE, to_string),
    row("string", "(net.IP) -> string", ONE, to_string),
    row("string", "(net.CIDR) -> string", ONE, to_string),
    row("timestamp", "(timestamp) -> timestamp", ONE, same),
    row("timestamp", "(int) -> timestamp", ONE, to_timestamp),
    row("timestamp", "(string) -> timestamp", ONE, to_timestamp),
    row("uint", "(uint) -> uint", ONE, same),
    row("uint", "(double) -> uint", ONE, to_uint),
    row("uint", "(int) -> uint", ONE, to_uint),
    row("uint", "(string) -> uint", ONE, to_uint),
];

fn same<'a>(args: &mut [Value<'a>]) -> Result<Value<'a>, Error> {
    Ok(std::mem::take(&mut args[0]))
}

fn syntax(how: &str, text: &str) -> Error {
    Error::new(format!("strconv.{how}: parsing {text:?}: invalid syntax"))
}

fn to_bool<'a>(args: &mut [Value<'a>]) -> Result<Value<'a>, Error> {
    match args[0].as_str() {
        Some("1" | "t" | "T" | "true" | "TRUE" | "True") => Ok(Value::Bool(true)),
        Some("0" | "f" | "F" | "false" | "FALSE" | "False") => Ok(Value::Bool(false)),
        Some(text) => Err(syntax("ParseBool", text)),
        None => Err(unsuitable()),
    }
}

fn to_bytes<'a>(args: &mut [Value<'a>]) -> Result<Value<'a>, Error> {
    args[0].as_str().map(|text| Value::Bytes(text.as_bytes().into())).ok_or_else(unsuitable)
}

fn to_double<'a>(args: &mut [Value<'a>]) -> Result<Value<'a>, Error> {
    match &args[0] {
        Value::Int(value) => Ok(Value::Double(*value as f64)),
        Value::Uint(value) => Ok(Value::Double(*value as f64)),
        Value::String(text) => text.parse().map(Value::Double).map_err(|_| syntax("ParseFloat", text)),
        _ => Err(unsuitable()),
    }
}

fn to_int<'a>(args: &mut [Value<'a>]) -> Result<Value<'a>, Error> {
    let overflow = || Error::new("integer overflow");
    match &args[0] {
        // The largest integers are no doubles, and what is next to them is out of range.
        Value::Double(value) if value.abs() < i64::MAX as f64 => Ok(Value::Int(*value as i64)),
        Value::Double(_) => Err(overflow()),
        Value::Uint(value) => i64::try_from(*value).map(Value::Int).map_err(|_| overflow()),
        Value::Duration(nanos) => Ok(Value::Int(*nanos)),
        Value::Timestamp(timestamp) => Ok(Value::Int(timestamp.seconds())),
        Value::String(text) => text.parse().map(Value::Int).map_err(|_| syntax("ParseInt", text)),
        _ => Err(unsuitable()),
    }
}

fn to_uint<'a>(args: &mut [Value<'a>]) -> Result<Value<'a>, Error> {
    let overflow = || Error::new("unsigned integer overflow");
    match &args[0] {
        Value::Double(value) if (0.0..u64::MAX as f64).contains(value) => Ok(Value::Uint(*value as u64)),
        Value::Double(_) => Err(overflow()),
        Value::Int(value) => u64::try_from(*value).map(Value::Uint).map_err(|_| overflow()),
        Value::String(text) => text.parse().map(Value::Uint).map_err(|_| syntax("ParseUint", text)),
        _ => Err(unsuitable()),
    }
}

fn to_duration<'a>(args: &mut [Value<'a>]) -> Result<Value<'a>, Error> {
    match &args[0] {
        Value::Int(nanos) => Ok(Value::Duration(*nanos)),
        Value::String(text) => times::parse_duration(text)
            .map(Value::Duration)
            .ok_or_else(|| Error::new(format!("time: invalid duration {text:?}", text = &**text))),
        _ => Err(unsuitable()),
    }
}

fn to_timestamp<'a>(args: &mut [Value<'a>]) -> Result<Value<'a>, Error> {
    let timestamp = match &args[0] {
        Value::Int(seconds) => Moment::from_seconds(*seconds),
        Value::String(text) => match Moment::parse(text) {
            Some(timestamp) => Some(timestamp),
            None => return Err(Error::new(format!("cannot parse {:?} as a timestamp of RFC 3339", &**text))),
        },
        _ => return Err(unsuitable()),
    };
    timestamp.map(Value::Timestamp).ok_or_else(|| Error::new("timestamp overflow"))
}

fn to_string<'a>(args: &mut [Value<'a>]) -> Result<Value<'a>, Error> {
    to_text(&args[0]).map(Value::string)
}

/// As `string()` has it.
pub(crate) fn to_text(value: &Value<'_>) -> Result<String, Error> {
    Ok(match value {
        Value::String(text) => text.to_string(),
        Value::Bool(value) => value.to_string(),
        Value::Int(value) => value.to_string(),
        Value::Uint(value) => value.to_string(),
        Value::Double(value) => double_text(*value),
        Value::Bytes(bytes) => String::from_utf8(bytes.to_vec())
            .map_err(|_| Error::new("invalid UTF-8 in bytes, cannot convert to string"))?,
        Value::Timestamp(timestamp) => timestamp.to_string(),
        Value::Duration(nanos) => times::format_duration(*nanos),
        Value::Type(of) => name_of_type(of),
        Value::Null => "null".to_owned(),
        Value::Opaque(opaque) => opaque.text().ok_or_else(|| no_conversion(value))?,
        _ => return Err(no_conversion(value)),
    })
}

fn no_conversion(value: &Value<'_>) -> Error {
    Error::new(format!("type conversion error from '{}' to 'string'", value.type_name()))
}

/// The shortest text that is this number: as Go's `%g`, with an exponent for what is very large or very small.
pub(crate) fn double_text(value: f64) -> String {
    if value.is_nan() {
        return "NaN".to_owned();
    }
    if value.is_infinite() {
        return if value > 0.0 { "+Inf" } else { "-Inf" }.to_owned();
    }
    let scientific = format!("{value:e}");
    let Some((mantissa, exponent)) = scientific.split_once('e') else { return scientific };
    let power: i32 = exponent.parse().unwrap_or(0);
    if value == 0.0 || (-4..21).contains(&power) {
        return value.to_string();
    }
    let sign = if power < 0 { '-' } else { '+' };
    format!("{mantissa}e{sign}{:02}", power.abs())
}
