//! `"%s has %d".format([name, count])`.

use crate::cost::Cost;
use crate::environment::{Row, row};
use crate::functions::{conversions, unsuitable};
use crate::printer::quoted;
use crate::value::{Error, List, Value};

/// Digits behind the point if a format does not say how many.
const PRECISION: usize = 6;
/// More digits than a double has; whoever asks for more gets these.
const MAX_PRECISION: usize = 1100;

pub(crate) const TABLE: &[Row] = &[row("format", "string.(list(dyn)) -> string", Cost::Read(1), |args| match args {
    [Value::String(template), Value::List(items)] => format(template, items).map(Value::string),
    _ => Err(unsuitable()),
})];

fn format(template: &str, items: &List<'_>) -> Result<String, Error> {
    let mut text = String::new();
    let mut next = 0;
    let mut rest = template;
    while let Some((before, clause)) = rest.split_once('%') {
        text.push_str(before);
        if let Some(after) = clause.strip_prefix('%') {
            text.push('%');
            rest = after;
            continue;
        }
        if clause.is_empty() {
            return Err(Error::new("unexpected end of string"));
        }
        let item = items.get(next).ok_or_else(|| Error::new(format!("index {next} out of range")))??;
        next += 1;
        let (precision, clause) = precision(clause)?;
        let mut characters = clause.chars();
        let kind = characters.next().ok_or_else(|| Error::new("could not find end of precision specifier"))?;
        let written = write(kind, precision, &item).map_err(|message| match message {
            Error::Failed(message) => Error::Failed(format!("error during formatting: {message}")),
            other => other,
        });
        text.push_str(&written?);
        rest = characters.as_str();
    }
    text.push_str(rest);
    Ok(text)
}

fn precision(clause: &str) -> Result<(usize, &str), Error> {
    let Some(digits) = clause.strip_prefix('.') else { return Ok((PRECISION, clause)) };
    let end = digits.find(|c: char| !c.is_ascii_digit()).unwrap_or(digits.len());
    let precision = digits[..end].parse::<usize>();
    let precision = precision.map_err(|_| Error::new("error while parsing precision: not a number"))?;
    Ok((precision.min(MAX_PRECISION), &digits[end..]))
}

fn write(kind: char, precision: usize, value: &Value<'_>) -> Result<String, Error> {
    let wrong = |what: &str| Err(Error::new(format!("{what}, was given {}", value.type_name())));
    Ok(match (kind, value) {
        ('s', value) => plain(value)?,
        ('d', Value::Int(value)) => value.to_string(),
        ('d', Value::Uint(value)) => value.to_string(),
        ('d', _) => return wrong("decimal clause can only be used on integers"),
        ('f' | 'e', value) => match double(value) {
            Some(value) if kind == 'f' => fixed(value, precision),
            Some(value) => scientific(value),
            None if kind == 'f' => return wrong("fixed-point clause can only be used on doubles"),
            None => return wrong("scientific clause can only be used on doubles"),
        },
        ('b', Value::Int(value)) => signed(*value, |magnitude| format!("{magnitude:b}")),
        ('b', Value::Uint(value)) => format!("{value:b}"),
        ('b', Value::Bool(value)) => u8::from(*value).to_string(),
        ('b', _) => return wrong("only integers and bools can be formatted as binary"),
        ('o', Value::Int(value)) => signed(*value, |magnitude| format!("{magnitude:o}")),
        ('o', Value::Uint(value)) => format!("{value:o}"),
        ('o', _) => return wrong("octal clause can only be used on integers"),
        ('x' | 'X', value) => {
            let text = match value {
                Value::Int(value) => signed(*value, |magnitude| format!("{magnitude:x}")),
                Value::Uint(value) => format!("{value:x}"),
                Value::String(text) => text.bytes().map(|byte| format!("{byte:02x}")).collect(),
                Value::Bytes(bytes) => bytes.iter().map(|byte| format!("{byte:02x}")).collect(),
                _ => return wrong("only integers, byte buffers, and strings can be formatted as hex"),
            };
            if kind == 'X' { text.to_ascii_uppercase() } else { text }
        }
        (kind, _) => return Err(Error::new(format!("unrecognized formatting clause \"{kind}\""))),
    })
}

fn signed(value: i64, write: impl Fn(u64) -> String) -> String {
    let sign = if value < 0 { "-" } else { "" };
    format!("{sign}{}", write(value.unsigned_abs()))
}

fn double(value: &Value<'_>) -> Option<f64> {
    match value {
        Value::Double(value) => Some(*value),
        Value::String(text) if ["NaN", "Infinity", "-Infinity"].contains(&&**text) => text.parse().ok(),
        _ => None,
    }
}

fn not_finite(value: f64) -> Option<&'static str> {
    match value {
        value if value.is_nan() => Some("NaN"),
        f64::INFINITY => Some("∞"),
        f64::NEG_INFINITY => Some("-∞"),
        _ => None,
    }
}

/// With commas between groups of digits, as in English.
fn fixed(value: f64, precision: usize) -> String {
    if let Some(text) = not_finite(value) {
        return text.to_owned();
    }
    let text = format!("{:.precision$}", value.abs());
    let (whole, fraction) = text.split_once('.').map_or((text.as_str(), None), |(whole, rest)| (whole, Some(rest)));
    let mut grouped = String::from(if value < 0.0 { "-" } else { "" });
    for (index, digit) in whole.chars().enumerate() {
        if index > 0 && (whole.len() - index) % 3 == 0 {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    if let Some(fraction) = fraction {
        grouped.push('.');
        grouped.push_str(fraction);
    }
    grouped
}

/// `1.052033×10⁰³`.
fn scientific(value: f64) -> String {
    if let Some(text) = not_finite(value) {
        return text.to_owned();
    }
    let text = format!("{value:.PRECISION$e}");
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let (sign, digits) = exponent.strip_prefix('-').map_or(("", exponent), |digits| ("⁻", digits));
    let raised =
        format!("{digits:0>2}").bytes().map(|digit| SUPERSCRIPT[usize::from(digit - b'0')]).collect::<String>();
    format!("{mantissa}×10{sign}{raised}")
}

const SUPERSCRIPT: [char; 10] = ['⁰', '¹', '²', '³', '⁴', '⁵', '⁶', '⁷', '⁸', '⁹'];

/// A value as `%s` has it.
fn plain(value: &Value<'_>) -> Result<String, Error> {
    match value {
        Value::List(items) => {
            let items = items.iter().map(|item| within(&item?)).collect::<Result<Vec<_>, Error>>()?;
            Ok(format!("[{}]", items.join(", ")))
        }
        Value::Map(map) => {
            let entries = map.entries().map(|entry| {
                let (key, value) = entry?;
                Ok(format!("{}:{}", within(&Value::from_key(key))?, within(&value)?))
            });
            let mut entries = entries.collect::<Result<Vec<_>, Error>>()?;
            entries.sort();
            Ok(format!("{{{}}}", entries.join(", ")))
        }
        Value::Optional(_) | Value::Opaque(_) => Err(Error::new(format!(
            "string clause can only be used on strings, bools, bytes, ints, doubles, maps, lists, types, durations, and \
             timestamps, was given {}",
            value.type_name()
        ))),
        value => conversions::to_text(value),
    }
}

/// A value in a list or a map: as it would be written in an expression.
fn within(value: &Value<'_>) -> Result<String, Error> {
    let text = plain(value)?;
    Ok(match value {
        Value::String(_) => quoted(&text),
        Value::Bytes(_) => format!("b{}", quoted(&text)),
        Value::Timestamp(_) => format!("timestamp({})", quoted(&text)),
        Value::Duration(_) => format!("duration({})", quoted(&text)),
        Value::Double(value) if value.is_finite() => format!("{value:.PRECISION$}"),
        Value::Double(_) => quoted(&text),
        _ => text,
    })
}
