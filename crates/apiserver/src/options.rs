//! The options of writes, as query parameters.

use crate::request::Query;
use object::field::{Error, Path};
use object::{ApiError, Value};

/// What becomes of fields that are unknown or there twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FieldValidation {
    Ignore,
    Warn,
    Strict,
}

#[derive(Clone, Debug)]
pub(crate) struct Options {
    /// Everything but the write itself.
    pub dry_run: bool,
    /// Who owns the fields that are written; empty: named after the client.
    pub manager: String,
    pub validation: FieldValidation,
    /// Take fields over from others.
    pub force: Option<bool>,
}

const MAX_MANAGER_CHARS: usize = 128;

impl Options {
    /// Reads them; `kind` is what Kubernetes calls the set of options, for messages.
    pub(crate) fn parse(query: &Query, kind: &str) -> Result<Self, ApiError> {
        let mut errors = Vec::new();
        let dry_run = dry_run(query.all("dryRun").filter(|value| !value.is_empty()), &mut errors);
        let manager = query.get("fieldManager").unwrap_or_default();
        let path = Path::new("fieldManager");
        if manager.chars().count() > MAX_MANAGER_CHARS {
            errors.push(Error::too_long(&path, MAX_MANAGER_CHARS));
        }
        if let Some(at) = manager.chars().position(|c| c.is_control()) {
            errors.push(Error::invalid(&path, manager, format!("should only contain printable characters: {at}")));
        }
        let validation = match query.get("fieldValidation") {
            None | Some("Warn") => FieldValidation::Warn,
            Some("Ignore") => FieldValidation::Ignore,
            Some("Strict") => FieldValidation::Strict,
            Some(other) => {
                let supported = ["Ignore", "Strict", "Warn"];
                errors.push(Error::not_supported(&Path::new("fieldValidation"), other, &supported));
                FieldValidation::Warn
            }
        };
        if !errors.is_empty() {
            return Err(ApiError::invalid("meta.k8s.io", kind, "", &errors));
        }
        let force = query.has("force").then(|| query.flag("force"));
        Ok(Options { dry_run, manager: manager.to_owned(), validation, force })
    }
}

/// Whether a write is only tried; the one value that means yes is `All`.
pub(crate) fn dry_run<'a>(values: impl Iterator<Item = &'a str>, errors: &mut Vec<Error>) -> bool {
    let mut dry_run = false;
    for value in values {
        match value {
            "All" => dry_run = true,
            other => errors.push(Error::not_supported(&Path::new("dryRun"), Value::from([other].as_slice()), &["All"])),
        }
    }
    dry_run
}
