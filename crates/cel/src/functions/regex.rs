//! Regular expressions, as Go understands them.

use crate::cost::Cost;
use crate::environment::{Row, Run};
use crate::functions::unsuitable;
use crate::value::{Error, Value};
use ::regex::Regex;

pub(crate) const TABLE: &[Row] = &[
    Row("matches", "(string, string) -> bool", Cost::Regex, Run::Regex(matches)),
    Row("matches", "string.(string) -> bool", Cost::Regex, Run::Regex(matches)),
    Row("find", "string.(string) -> string", Cost::Find, Run::Regex(find)),
    Row("findAll", "string.(string) -> list(string)", Cost::Find, Run::Regex(find_all)),
    Row("findAll", "string.(string, int) -> list(string)", Cost::Find, Run::Regex(find_all)),
];

fn matches<'a>(regex: &Regex, args: &mut [Value<'a>]) -> Result<Value<'a>, Error> {
    args[0].as_str().map(|text| Value::Bool(regex.is_match(text))).ok_or_else(unsuitable)
}

fn find<'a>(regex: &Regex, args: &mut [Value<'a>]) -> Result<Value<'a>, Error> {
    let text = args[0].as_str().ok_or_else(unsuitable)?;
    Ok(Value::string(regex.find(text).map_or("", |found| found.as_str())))
}

fn find_all<'a>(regex: &Regex, args: &mut [Value<'a>]) -> Result<Value<'a>, Error> {
    let text = args[0].as_str().ok_or_else(unsuitable)?;
    let limit = match args.get(2) {
        Some(Value::Int(limit)) => usize::try_from(*limit).unwrap_or(usize::MAX),
        _ => usize::MAX,
    };
    Ok(Value::list(regex.find_iter(text).take(limit).map(|found| Value::string(found.as_str())).collect()))
}

/// An expression in Go's words.
pub(crate) fn compile(pattern: &str) -> Result<Regex, Error> {
    let regex = translate(pattern).and_then(|translated| Regex::new(&translated).ok());
    regex.ok_or_else(|| Error::new(format!("error parsing regexp: {pattern:?}")))
}

/// In Go, shorthands are about ASCII alone, a bracket within brackets is itself, as is a brace that repeats nothing, and
/// what is repeated cannot be repeated again.
fn translate(pattern: &str) -> Option<String> {
    let mut out = String::with_capacity(pattern.len());
    let mut rest = pattern;
    let mut repeated = false;
    while let Some(character) = rest.chars().next() {
        let was_repeated = std::mem::take(&mut repeated);
        let length = match character {
            '\\' => escape(rest, false, &mut out),
            '[' => class(rest, &mut out),
            '*' | '+' | '?' | '{' => match repetition(rest) {
                Some(_) if was_repeated => return None,
                Some(length) => {
                    repeated = true;
                    out.push_str(&rest[..length]);
                    length
                }
                None => {
                    out.push_str("\\{");
                    1
                }
            },
            character => {
                out.push(character);
                character.len_utf8()
            }
        };
        rest = &rest[length..];
    }
    Some(out)
}

/// How long the operator is that the text starts with, and the question mark behind it that makes it modest. None if a
/// brace is just a brace.
fn repetition(text: &str) -> Option<usize> {
    let length = match text.strip_prefix('{') {
        None => 1,
        Some(counts) => {
            let end = counts.find('}')?;
            let (least, most) = counts[..end].split_once(',').unwrap_or((&counts[..end], ""));
            let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
            (!least.is_empty() && digits(least) && digits(most)).then_some(end + 2)?
        }
    };
    Some(length + usize::from(text[length..].starts_with('?')))
}

/// A backslash and what follows it. Returns how long that is.
fn escape(text: &str, in_class: bool, out: &mut String) -> usize {
    let escaped = text[1..].chars().next();
    let ours = match escaped {
        Some('d') => "[0-9]",
        Some('D') => "[^0-9]",
        Some('w') => "[0-9A-Za-z_]",
        Some('W') => "[^0-9A-Za-z_]",
        Some('s') => "[\\t\\n\\x0c\\r ]",
        Some('S') => "[^\\t\\n\\x0c\\r ]",
        Some('b') if !in_class => "(?-u:\\b)",
        Some('B') if !in_class => "(?-u:\\B)",
        _ => "",
    };
    // What stands in braces behind some letters is a part of them.
    let braces = match escaped {
        Some('p' | 'P' | 'x') if text[2..].starts_with('{') => text[2..].find('}').map_or(0, |end| end + 1),
        _ => 0,
    };
    let length = 1 + escaped.map_or(0, char::len_utf8) + braces;
    out.push_str(if ours.is_empty() { &text[..length] } else { ours });
    length
}

/// Characters between brackets. Returns how long that is.
fn class(text: &str, out: &mut String) -> usize {
    let mut position = if text[1..].starts_with('^') { 2 } else { 1 };
    out.push_str(&text[..position]);
    // The first bracket that closes is one of the characters.
    if text[position..].starts_with(']') {
        out.push_str("\\]");
        position += 1;
    }
    while let Some(character) = text[position..].chars().next() {
        let rest = &text[position..];
        position += match character {
            '\\' => escape(rest, true, out),
            '[' if rest.starts_with("[:") => {
                let length = rest.find(']').map_or(rest.len(), |end| end + 1);
                out.push_str(&rest[..length]);
                length
            }
            ']' => {
                out.push(']');
                return position + 1;
            }
            _ => {
                out.push_str(if "[&~".contains(character) { "\\" } else { "" });
                out.push(character);
                character.len_utf8()
            }
        };
    }
    position
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expressions_mean_what_they_mean_in_go() {
        for (pattern, text, found) in [
            (r"^\d+$", "12", true),
            (r"^\d+$", "٣", false),
            (r"^\w$", "ä", false),
            (r"^.$", "ä", true),
            (r"(?i)^ä$", "Ä", true),
            (r"^[[:alpha:]_-]+$", "a_b-", true),
            (r"^[[]$", "[", true),
            (r"^[]a]$", "]", true),
            (r"^[\w.-]+$", "a.b-c", true),
            (r"^[^\d]$", "a", true),
            (r"\bfoo\b", "a foo b", true),
            (r"^a[&&]b$", "a&b", true),
            (r"^\p{Greek}$", "λ", true),
            (r"^\.\/$", "./", true),
            (r"^a{2}b{1,}?$", "aab", true),
            (r"^{a{,2}$", "{a{,2}", true),
            (r"^[{}]+$", "{}", true),
        ] {
            let regex = compile(pattern).unwrap_or_else(|error| panic!("{pattern}: {error}"));
            assert_eq!(regex.is_match(text), found, "{pattern} {text}");
        }
        for bad in ["(", ")", "x++", "x**", "x{2}{3}", "a???", "[a", "(?=a)", "*", r"\"] {
            assert!(compile(bad).is_err(), "{bad}");
        }
    }
}
