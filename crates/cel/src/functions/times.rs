//! Parts of moments and of spans of time.

use crate::cost::Cost;
use crate::environment::{Row, row};
use crate::functions::unsuitable;
use crate::value::{Error, Value};
use jiff::civil::DateTime;

const ONE: Cost = Cost::Fixed(1);

/// A part of a moment, in Greenwich or at the place the second argument names.
fn part<'a>(args: &[Value<'a>], part: fn(DateTime) -> i64) -> Result<Value<'a>, Error> {
    let (timestamp, zone) = match args {
        [Value::Timestamp(timestamp)] => (timestamp, "UTC"),
        [Value::Timestamp(timestamp), Value::String(zone)] => (timestamp, &**zone),
        _ => return Err(unsuitable()),
    };
    let moment = timestamp.at(zone).ok_or_else(|| Error::new(format!("unknown time zone {zone}")))?;
    Ok(Value::Int(part(moment)))
}

/// A row without a place, and one with it.
macro_rules! part {
    ($name:literal, $part:expr) => {{
        fn get<'a>(args: &mut [Value<'a>]) -> Result<Value<'a>, Error> {
            part(args, $part)
        }
        [row($name, "timestamp.() -> int", ONE, get), row($name, "timestamp.(string) -> int", ONE, get)]
    }};
}

/// A span of time in another unit, without what is left over.
fn whole<'a>(args: &[Value<'a>], in_unit: fn(i64) -> i64) -> Result<Value<'a>, Error> {
    match args {
        [Value::Duration(nanos)] => Ok(Value::Int(in_unit(*nanos))),
        _ => Err(unsuitable()),
    }
}

const PARTS: [[Row; 2]; 10] = [
    part!("getFullYear", |time| i64::from(time.year())),
    part!("getMonth", |time| i64::from(time.month()) - 1),
    part!("getDayOfYear", |time| i64::from(time.day_of_year()) - 1),
    part!("getDayOfMonth", |time| i64::from(time.day()) - 1),
    part!("getDate", |time| i64::from(time.day())),
    part!("getDayOfWeek", |time| i64::from(time.weekday().to_sunday_zero_offset())),
    part!("getHours", |time| i64::from(time.hour())),
    part!("getMinutes", |time| i64::from(time.minute())),
    part!("getSeconds", |time| i64::from(time.second())),
    part!("getMilliseconds", |time| i64::from(time.millisecond())),
];

pub(crate) const TABLE: &[Row] = PARTS.as_flattened();

pub(crate) const SPANS: &[Row] = &[
    row("getHours", "duration.() -> int", ONE, |args| whole(args, |nanos| nanos / 3_600_000_000_000)),
    row("getMinutes", "duration.() -> int", ONE, |args| whole(args, |nanos| nanos / 60_000_000_000)),
    row("getSeconds", "duration.() -> int", ONE, |args| whole(args, |nanos| nanos / 1_000_000_000)),
    row("getMilliseconds", "duration.() -> int", ONE, |args| whole(args, |nanos| nanos / 1_000_000)),
];
