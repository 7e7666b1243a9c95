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
    Regex::new(&translate(pattern)).map_err(|_| Error::new(format!("error parsing regexp: {pattern:?}")))
}

/// Go's shorthands are about ASCII alone, and a bracket within brackets is itself.
fn translate(pattern: &str) -> String {
    let mut out = String::with_capacity(pattern.len());
    let mut in_class = false;
    let mut characters = pattern.chars().peekable();
    while let Some(character) = characters.next() {
        match character {
            '\\' => {
                let escaped = characters.next();
                out.push_str(match escaped {
                    Some('d') => "[0-9]",
                    Some('D') => "[^0-9]",
                    Some('w') => "[0-9A-Za-z_]",
                    Some('W') => "[^0-9A-Za-z_]",
                    Some('s') => "[\\t\\n\\x0c\\r ]",
                    Some('S') => "[^\\t\\n\\x0c\\r ]",
                    Some('b') if !in_class => "(?-u:\\b)",
                    Some('B') if !in_class => "(?-u:\\B)",
                    _ => "\\",
                });
                if out.ends_with('\\') {
                    out.extend(escaped);
                }
            }
            '[' if !in_class => {
                in_class = true;
                out.push('[');
                if characters.peek() == Some(&'^') {
                    out.extend(characters.next());
                }
                // The first bracket that closes is one of the characters.
                if characters.peek() == Some(&']') {
                    characters.next();
                    out.push_str("\\]");
                }
            }
            '[' if characters.peek() == Some(&':') => {
                out.push('[');
                for character in characters.by_ref() {
                    out.push(character);
                    if character == ']' {
                        break;
                    }
                }
            }
            '[' => out.push_str("\\["),
            ']' => {
                in_class = false;
                out.push(']');
            }
            '&' | '~' if in_class => out.extend(['\\', character]),
            character => out.push(character),
        }
    }
    out
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
        ] {
            let regex = compile(pattern).unwrap_or_else(|error| panic!("{pattern}: {error}"));
            assert_eq!(regex.is_match(text), found, "{pattern} {text}");
        }
        assert!(compile("(").is_err() && compile(r"(?=a)").is_err());
    }
}
