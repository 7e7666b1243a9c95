//! Validation errors: where in an object something is wrong, what was found there, and why that is not allowed.

use crate::Value;
use std::fmt;

/// The way to a field: `spec.containers[0].image`, `metadata.annotations[key]`.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Path(String);

impl Path {
    pub fn new(name: &str) -> Self {
        Path(name.to_owned())
    }

    pub fn child(&self, name: impl fmt::Display) -> Self {
        if self.0.is_empty() { Path(name.to_string()) } else { Path(format!("{}.{name}", self.0)) }
    }

    pub fn index(&self, index: usize) -> Self {
        Path(format!("{}[{index}]", self.0))
    }

    pub fn key(&self, key: impl fmt::Display) -> Self {
        Path(format!("{}[{key}]", self.0))
    }
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() { f.write_str("<nil>") } else { f.write_str(&self.0) }
    }
}

/// What kind of mistake it is; the words are those of Kubernetes' status causes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    NotFound,
    Required,
    Duplicate,
    Invalid,
    /// Invalid as a whole, so that showing the value would not help.
    InvalidWhole,
    NotSupported,
    Forbidden,
    TooLong,
    TooMany,
    TypeInvalid,
}

impl Kind {
    /// The reason in a status cause.
    pub fn reason(self) -> &'static str {
        match self {
            Kind::NotFound => "FieldValueNotFound",
            Kind::Required => "FieldValueRequired",
            Kind::Duplicate => "FieldValueDuplicate",
            Kind::Invalid | Kind::InvalidWhole => "FieldValueInvalid",
            Kind::NotSupported => "FieldValueNotSupported",
            Kind::Forbidden => "FieldValueForbidden",
            Kind::TooLong => "FieldValueTooLong",
            Kind::TooMany => "FieldValueTooMany",
            Kind::TypeInvalid => "FieldValueTypeInvalid",
        }
    }

    fn text(self) -> &'static str {
        match self {
            Kind::NotFound => "Not found",
            Kind::Required => "Required value",
            Kind::Duplicate => "Duplicate value",
            Kind::Invalid | Kind::InvalidWhole | Kind::TypeInvalid => "Invalid value",
            Kind::NotSupported => "Unsupported value",
            Kind::Forbidden => "Forbidden",
            Kind::TooLong => "Too long",
            Kind::TooMany => "Too many",
        }
    }

    /// Whether the message shows the value that was found.
    fn shows_value(self) -> bool {
        !matches!(self, Kind::InvalidWhole | Kind::Required | Kind::Forbidden | Kind::TooLong | Kind::TooMany)
    }
}

/// Everything that is wrong with an object.
pub type Errors = Vec<Error>;

#[derive(Clone, Debug, PartialEq)]
pub struct Error {
    pub kind: Kind,
    pub path: Path,
    pub value: Value,
    pub detail: String,
}

impl Error {
    fn new(kind: Kind, path: &Path, value: Value, detail: impl Into<String>) -> Self {
        Error { kind, path: path.clone(), value, detail: detail.into() }
    }

    pub fn required(path: &Path, detail: impl Into<String>) -> Self {
        Error::new(Kind::Required, path, Value::Null, detail)
    }

    pub fn invalid(path: &Path, value: impl Into<Value>, detail: impl Into<String>) -> Self {
        Error::new(Kind::Invalid, path, value.into(), detail)
    }

    pub fn invalid_whole(path: &Path, detail: impl Into<String>) -> Self {
        Error::new(Kind::InvalidWhole, path, Value::Null, detail)
    }

    pub fn type_invalid(path: &Path, value: impl Into<Value>, detail: impl Into<String>) -> Self {
        Error::new(Kind::TypeInvalid, path, value.into(), detail)
    }

    pub fn duplicate(path: &Path, value: impl Into<Value>) -> Self {
        Error::new(Kind::Duplicate, path, value.into(), "")
    }

    pub fn forbidden(path: &Path, detail: impl Into<String>) -> Self {
        Error::new(Kind::Forbidden, path, Value::Null, detail)
    }

    pub fn not_found(path: &Path, value: impl Into<Value>) -> Self {
        Error::new(Kind::NotFound, path, value.into(), "")
    }

    /// The value is none of those that are allowed.
    pub fn not_supported(path: &Path, value: impl Into<Value>, supported: &[&str]) -> Self {
        let supported: Vec<_> = supported.iter().map(|value| format!("{value:?}")).collect();
        Error::new(Kind::NotSupported, path, value.into(), format!("supported values: {}", supported.join(", ")))
    }

    pub fn too_long(path: &Path, max_bytes: usize) -> Self {
        Error::new(Kind::TooLong, path, Value::Null, format!("may not be more than {max_bytes} bytes"))
    }

    pub fn too_many(path: &Path, actual: usize, max: usize) -> Self {
        let items = if max == 1 { "item" } else { "items" };
        Error::new(Kind::TooMany, path, Value::from(actual), format!("must have at most {max} {items}"))
    }

    /// The message without the path, as a status cause has it.
    pub fn body(&self) -> String {
        let mut body = self.kind.text().to_owned();
        match self.kind {
            Kind::TooMany => body.push_str(&format!(": {}", self.value)),
            kind if kind.shows_value() => body.push_str(&format!(": {}", shown(&self.value))),
            _ => {}
        }
        if !self.detail.is_empty() {
            body.push_str(&format!(": {}", self.detail));
        }
        body
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path, self.body())
    }
}

/// A value as messages show it.
fn shown(value: &Value) -> String {
    match value {
        Value::Null => "null".to_owned(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_those_clients_know() {
        let path = Path::new("spec").child("containers").index(0).child("image");
        let cases = [
            (Error::required(&path, ""), "spec.containers[0].image: Required value"),
            (Error::required(&path, "say it"), "spec.containers[0].image: Required value: say it"),
            (Error::invalid(&path, "x", "bad"), "spec.containers[0].image: Invalid value: \"x\": bad"),
            (Error::invalid(&path, 7, "bad"), "spec.containers[0].image: Invalid value: 7: bad"),
            (Error::invalid_whole(&path, "bad"), "spec.containers[0].image: Invalid value: bad"),
            (Error::duplicate(&path, "x"), "spec.containers[0].image: Duplicate value: \"x\""),
            (Error::forbidden(&path, "no"), "spec.containers[0].image: Forbidden: no"),
            (
                Error::not_supported(&path, "x", &["A", "B"]),
                "spec.containers[0].image: Unsupported value: \"x\": supported values: \"A\", \"B\"",
            ),
            (Error::too_long(&path, 63), "spec.containers[0].image: Too long: may not be more than 63 bytes"),
            (Error::too_many(&path, 3, 2), "spec.containers[0].image: Too many: 3: must have at most 2 items"),
        ];
        for (error, message) in cases {
            assert_eq!(error.to_string(), message);
        }
        assert_eq!(Path::new("metadata").child("labels").key("a/b").to_string(), "metadata.labels[a/b]");
    }
}
