//! YAML as bodies of requests: of bounded depth, with the lines of keys that are set twice.

use object::{ApiError, Value};
use serde::de::{Deserialize, DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_saphyr::options::DuplicateKeyPolicy;
use serde_saphyr::{Options, Spanned};
use std::collections::BTreeSet;
use std::fmt;

/// What nests deeper is refused before anything recurses into it.
const MAX_DEPTH: usize = 100;

/// Parses a document. Of a key that is set twice the last value counts, and the line it is on is named.
pub(crate) fn parse(bytes: &[u8]) -> Result<(Value, Vec<String>), ApiError> {
    let text = std::str::from_utf8(bytes).map_err(ApiError::bad_request_from)?;
    // Whether a key is set twice is found out by the way; where, hardly ever matters.
    if let Ok(value) = serde_saphyr::from_str_with_options(text, options(DuplicateKeyPolicy::Error)) {
        return Ok((value, Vec::new()));
    }
    let value = serde_saphyr::from_str_with_options(text, options(DuplicateKeyPolicy::LastWins))
        .map_err(|error| refused(&error))?;
    Ok((value, twice(text)?))
}

/// The lines that set a key again.
pub(crate) fn twice(text: &str) -> Result<Vec<String>, ApiError> {
    let mut found = Vec::new();
    let options = options(DuplicateKeyPolicy::LastWins);
    let located = serde_saphyr::with_deserializer_from_str_with_options(text, options, |deserializer| {
        Locate(&mut found).deserialize(deserializer)
    });
    located.map_err(|error| refused(&error))?;
    Ok(found)
}

fn options(duplicate_keys: DuplicateKeyPolicy) -> Options {
    let mut options = Options::default();
    options.duplicate_keys = duplicate_keys;
    if let Some(budget) = &mut options.budget {
        budget.max_depth = MAX_DEPTH;
    }
    options
}

fn refused(error: &serde_saphyr::Error) -> ApiError {
    let why = error.to_string();
    ApiError::bad_request(format!("error converting YAML to JSON: {}", why.lines().next().unwrap_or_default()))
}

/// All lines in one message.
pub(crate) fn summary(lines: &[String]) -> String {
    format!("yaml: unmarshal errors:\n  {}", lines.join("\n  "))
}

struct Locate<'f>(&'f mut Vec<String>);

impl<'de> DeserializeSeed<'de> for Locate<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Locate<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any YAML value")
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_none<E>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        self.deserialize(deserializer)
    }

    fn visit_newtype_struct<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        IgnoredAny::deserialize(deserializer).map(drop)
    }

    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_i64<E>(self, _: i64) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E>(self, _: u64) -> Result<(), E> {
        Ok(())
    }

    fn visit_f64<E>(self, _: f64) -> Result<(), E> {
        Ok(())
    }

    fn visit_str<E>(self, _: &str) -> Result<(), E> {
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut access: A) -> Result<(), A::Error> {
        while access.next_element_seed(Locate(self.0))?.is_some() {}
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<(), A::Error> {
        let mut seen = BTreeSet::new();
        while let Some(key) = access.next_key::<Spanned<String>>()? {
            if seen.contains(&key.value) {
                self.0.push(format!("line {}: key {:?} already set in map", key.referenced.line(), key.value));
            }
            seen.insert(key.value);
            access.next_value_seed(Locate(self.0))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use object::json;

    #[test]
    fn the_last_of_two_counts_and_its_line_is_named() {
        let text = "a: 1\nb:\n- c: one\n  c: two\n  d: [1.5, null, true]\na: 2\n";
        let (value, lines) = parse(text.as_bytes()).unwrap();
        assert_eq!(value, json!({ "a": 2, "b": [{ "c": "two", "d": [1.5, null, true] }] }));
        assert_eq!(lines, ["line 4: key \"c\" already set in map", "line 6: key \"a\" already set in map"]);
        assert_eq!(parse(b"a: 1").unwrap(), (json!({ "a": 1 }), Vec::new()));
    }

    #[test]
    fn what_is_no_yaml_or_nests_too_deep_is_refused() {
        let deep = "[".repeat(MAX_DEPTH * 2);
        for bad in ["a: [", "a: b: c", deep.as_str()] {
            assert_eq!(parse(bad.as_bytes()).unwrap_err().code(), 400, "{bad}");
        }
    }
}
