//! Limits that hold before anything is parsed: a decoder that recurses or allocates without bound would let one
//! request end the whole process.

use serde_json::Value;

/// Objects and lists nested deeper than this are refused.
pub const MAX_DEPTH: usize = 100;

/// Why bytes were not parsed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidJson {
    #[error("the JSON is nested more than {MAX_DEPTH} deep")]
    TooDeep,
    #[error("{0}")]
    Syntax(String),
}

/// Parses JSON of bounded depth.
pub fn parse_json(bytes: &[u8]) -> Result<Value, InvalidJson> {
    check_depth(bytes)?;
    serde_json::from_slice(bytes).map_err(|error| InvalidJson::Syntax(error.to_string()))
}

/// Counts brackets outside strings; what is not JSON at all is left to the parser.
pub fn check_depth(bytes: &[u8]) -> Result<(), InvalidJson> {
    let (mut depth, mut in_string, mut escaped) = (0_usize, false, false);
    for byte in bytes {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_string => escaped = true,
            b'"' => in_string = !in_string,
            _ if in_string => {}
            b'{' | b'[' => {
                depth += 1;
                if depth > MAX_DEPTH {
                    return Err(InvalidJson::TooDeep);
                }
            }
            b'}' | b']' => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn depth_is_bounded_and_brackets_in_strings_do_not_count() {
        let nested = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        assert!(parse_json(nested(MAX_DEPTH).as_bytes()).is_ok());
        assert_eq!(parse_json(nested(MAX_DEPTH + 1).as_bytes()), Err(InvalidJson::TooDeep));
        assert_eq!(parse_json("[".repeat(1_000_000).as_bytes()), Err(InvalidJson::TooDeep));
        let brackets = format!("\"{}\\\"[\"", "[".repeat(MAX_DEPTH * 2));
        assert!(parse_json(brackets.as_bytes()).is_ok());
        assert!(matches!(parse_json(b"{"), Err(InvalidJson::Syntax(_))));
    }
}
