//! Text. Positions count characters.

use crate::cost::Cost;
use crate::environment::{Row, row};
use crate::functions::unsuitable;
use crate::printer::quoted;
use crate::value::{Error, List, Value};

/// No function makes text that is longer than this, in bytes: a few characters can ask for any amount.
const MAX_TEXT: usize = 16 * 1024 * 1024;

const ONE: Cost = Cost::Fixed(1);

pub(crate) const TABLE: &[Row] = &[
    row("contains", "string.(string) -> bool", Cost::Contains, |args| test(args, |text, part| text.contains(part))),
    row("endsWith", "string.(string) -> bool", Cost::StartsWith, |args| test(args, |text, end| text.ends_with(end))),
    row("startsWith", "string.(string) -> bool", Cost::StartsWith, |args| {
        test(args, |text, start| text.starts_with(start))
    }),
    row("charAt", "string.(int) -> string", ONE, |args| match args {
        [Value::String(text), Value::Int(index)] => {
            let out_of_range = *index < 0 || *index > text.chars().count() as i64;
            match usize::try_from(*index) {
                Ok(position) if !out_of_range => {
                    Ok(Value::string(text.chars().nth(position).map(String::from).unwrap_or_default()))
                }
                _ => Err(index_out_of_range(*index)),
            }
        }
        _ => Err(unsuitable()),
    }),
    row("indexOf", "string.(string) -> int", Cost::Elements, |args| index_of(args, 0)),
    row("indexOf", "string.(string, int) -> int", Cost::Elements, |args| {
        let offset = int(args, 2)?;
        index_of(args, offset)
    }),
    row("lastIndexOf", "string.(string) -> int", Cost::Elements, |args| {
        let [Value::String(text), Value::String(part), ..] = args else { return Err(unsuitable()) };
        let length = text.chars().count() as i64;
        match (part.is_empty(), text.len() < part.len()) {
            (true, _) => Ok(Value::Int(length)),
            (_, true) => Ok(Value::Int(-1)),
            _ => last_index_of(args, length - 1),
        }
    }),
    row("lastIndexOf", "string.(string, int) -> int", Cost::Elements, |args| {
        let offset = int(args, 2)?;
        last_index_of(args, offset)
    }),
    row("lowerAscii", "string.() -> string", Cost::Transform, |args| {
        args[0].as_str().map(|text| Value::string(text.to_ascii_lowercase())).ok_or_else(unsuitable)
    }),
    row("upperAscii", "string.() -> string", Cost::Transform, |args| {
        args[0].as_str().map(|text| Value::string(text.to_ascii_uppercase())).ok_or_else(unsuitable)
    }),
    row("trim", "string.() -> string", Cost::Transform, |args| {
        args[0].as_str().map(|text| Value::string(text.trim())).ok_or_else(unsuitable)
    }),
    row("replace", "string.(string, string) -> string", Cost::Replace, |args| replace(args, -1)),
    row("replace", "string.(string, string, int) -> string", Cost::Replace, |args| {
        let times = int(args, 3)?;
        replace(args, times)
    }),
    row("split", "string.(string) -> list(string)", Cost::Split, |args| split(args, -1)),
    row("split", "string.(string, int) -> list(string)", Cost::Split, |args| {
        let limit = int(args, 2)?;
        split(args, limit)
    }),
    row("substring", "string.(int) -> string", Cost::Transform, |args| match args {
        [Value::String(text), Value::Int(start)] => substring(text, *start, None),
        _ => Err(unsuitable()),
    }),
    row("substring", "string.(int, int) -> string", Cost::Transform, |args| match args {
        [Value::String(text), Value::Int(start), Value::Int(end)] => substring(text, *start, Some(*end)),
        _ => Err(unsuitable()),
    }),
    row("strings.quote", "(string) -> string", Cost::Quote, |args| {
        args[0].as_str().map(|text| Value::string(quoted(text))).ok_or_else(unsuitable)
    }),
    row("join", "list(string).() -> string", Cost::Join, |args| match args {
        [Value::List(items)] => join(items, ""),
        _ => Err(unsuitable()),
    }),
    row("join", "list(string).(string) -> string", Cost::Join, |args| match args {
        [Value::List(items), Value::String(separator)] => join(items, separator),
        _ => Err(unsuitable()),
    }),
];

/// For those who write patches.
pub(crate) const PATCHES: &[Row] = &[row("jsonpatch.escapeKey", "(string) -> string", Cost::Transform, |args| {
    let escape = |text: &str| Value::string(text.replace('~', "~0").replace('/', "~1"));
    args[0].as_str().map(escape).ok_or_else(unsuitable)
})];

fn test<'a>(args: &mut [Value<'a>], holds: fn(&str, &str) -> bool) -> Result<Value<'a>, Error> {
    match args {
        [Value::String(text), Value::String(other)] => Ok(Value::Bool(holds(text, other))),
        _ => Err(unsuitable()),
    }
}

fn int(args: &[Value<'_>], index: usize) -> Result<i64, Error> {
    match args.get(index) {
        Some(Value::Int(value)) => Ok(*value),
        _ => Err(unsuitable()),
    }
}

fn index_out_of_range(index: i64) -> Error {
    Error::new(format!("index out of range: {index}"))
}

fn too_long() -> Error {
    Error::new(format!("text is longer than {MAX_TEXT} bytes"))
}

/// Where the character stands in the bytes, if there are so many.
fn byte_offset(text: &str, characters: i64) -> Option<usize> {
    let characters = usize::try_from(characters).ok()?;
    text.char_indices().map(|(offset, _)| offset).chain([text.len()]).nth(characters)
}

fn index_of<'a>(args: &mut [Value<'a>], offset: i64) -> Result<Value<'a>, Error> {
    let [Value::String(text), Value::String(part), ..] = args else { return Err(unsuitable()) };
    if part.is_empty() {
        return Ok(Value::Int(offset));
    }
    if offset < 0 {
        return Err(index_out_of_range(offset));
    }
    let found = byte_offset(text, offset).and_then(|start| Some(start + text[start..].find(&**part)?));
    Ok(Value::Int(found.map_or(-1, |end| text[..end].chars().count() as i64)))
}

fn last_index_of<'a>(args: &mut [Value<'a>], offset: i64) -> Result<Value<'a>, Error> {
    let [Value::String(text), Value::String(part), ..] = args else { return Err(unsuitable()) };
    if part.is_empty() {
        return Ok(Value::Int(offset));
    }
    if offset < 0 {
        return Err(index_out_of_range(offset));
    }
    if offset >= text.chars().count() as i64 {
        return Ok(Value::Int(-1));
    }
    // What starts there may end behind it.
    let end = byte_offset(text, offset.saturating_add(part.chars().count() as i64)).unwrap_or(text.len());
    Ok(Value::Int(text[..end].rfind(&**part).map_or(-1, |found| text[..found].chars().count() as i64)))
}

fn replace<'a>(args: &mut [Value<'a>], times: i64) -> Result<Value<'a>, Error> {
    let [Value::String(text), Value::String(old), Value::String(new), ..] = args else { return Err(unsuitable()) };
    let times = usize::try_from(times).unwrap_or(usize::MAX);
    let found = text.matches(&**old).take(times).count();
    if text.len().saturating_add(found.saturating_mul(new.len())) > MAX_TEXT {
        return Err(too_long());
    }
    Ok(Value::string(text.replacen(&**old, new, times)))
}

fn split<'a>(args: &mut [Value<'a>], limit: i64) -> Result<Value<'a>, Error> {
    let [Value::String(text), Value::String(separator), ..] = args else { return Err(unsuitable()) };
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let mut parts: Vec<&str> = Vec::new();
    if separator.is_empty() {
        // Between all characters.
        let mut rest: &str = text;
        while let Some(first) = rest.chars().next().filter(|_| limit > 0) {
            let length = if parts.len() + 1 == limit { rest.len() } else { first.len_utf8() };
            parts.push(&rest[..length]);
            rest = &rest[length..];
        }
    } else {
        parts.extend(text.splitn(limit, &**separator));
    }
    Ok(Value::list(parts.into_iter().map(Value::string).collect()))
}

fn substring<'a>(text: &str, start: i64, end: Option<i64>) -> Result<Value<'a>, Error> {
    if let Some(end) = end.filter(|end| start > *end) {
        return Err(Error::new(format!("invalid substring range. start: {start}, end: {end}")));
    }
    let from = byte_offset(text, start).ok_or_else(|| index_out_of_range(start))?;
    let to = match end {
        Some(end) => byte_offset(text, end).ok_or_else(|| index_out_of_range(end))?,
        None => text.len(),
    };
    Ok(Value::string(&text[from..to]))
}

fn join<'a>(items: &List<'a>, separator: &str) -> Result<Value<'a>, Error> {
    let mut joined = String::new();
    for (index, item) in items.iter().enumerate() {
        let item = item?;
        let text = item.as_str().ok_or_else(|| Error::new(format!("join: invalid input: {}", item.type_name())))?;
        joined.push_str(if index > 0 { separator } else { "" });
        joined.push_str(text);
        if joined.len() > MAX_TEXT {
            return Err(too_long());
        }
    }
    Ok(Value::string(joined))
}
