//! Formats that text can be checked against, by name.

use crate::cost::Cost;
use crate::environment::{Row, row};
use crate::functions::{unsuitable, url};
use crate::times::Moment;
use crate::value::{Error, Opaque, Value};
use object::{base64, name};
use std::any::Any;

pub(crate) const FORMAT: &str = "kubernetes.NamedFormat";

const ONE: Cost = Cost::Fixed(1);

struct Format {
    name: &'static str,
    /// How long an expression for it would be, which is what it costs.
    size: u64,
    /// What is wrong with a text; nothing, if it is of the format.
    check: fn(&str) -> Vec<String>,
}

static ALL: [Format; 13] = [
    Format { name: "dns1123Label", size: 30, check: name::dns_label },
    Format { name: "dns1123Subdomain", size: 60, check: name::dns_subdomain },
    Format { name: "dns1035Label", size: 30, check: name::dns_1035_label },
    Format { name: "qualifiedName", size: 60, check: name::qualified_name },
    Format { name: "dns1123LabelPrefix", size: 30, check: |text| name::dns_label(&masked(text)) },
    Format { name: "dns1123SubdomainPrefix", size: 60, check: |text| name::dns_subdomain(&masked(text)) },
    Format { name: "dns1035LabelPrefix", size: 30, check: |text| name::dns_1035_label(&masked(text)) },
    Format { name: "labelValue", size: 40, check: name::label_value },
    Format { name: "uri", size: 1103, check: |text| url::parse(text).err().into_iter().collect() },
    Format { name: "uuid", size: 79, check: |text| unless(is_uuid(text), "does not match the UUID format") },
    Format { name: "byte", size: 84, check: |text| unless(base64::decode(text).is_some(), "invalid base64") },
    Format { name: "date", size: 79, check: |text| unless(Moment::parse_date(text).is_some(), "invalid date") },
    Format { name: "datetime", size: 79, check: |text| unless(Moment::parse(text).is_some(), "invalid datetime") },
];

/// A prefix may end with a dash, since something will follow.
fn masked(text: &str) -> String {
    match text.strip_suffix('-') {
        Some(prefix) if !prefix.is_empty() => format!("{prefix}a"),
        _ => text.to_owned(),
    }
}

fn unless(good: bool, message: &str) -> Vec<String> {
    if good { Vec::new() } else { vec![message.to_owned()] }
}

/// Groups of 8, 4, 4, 4 and 12 digits; each dash between them may be missing.
fn is_uuid(text: &str) -> bool {
    let mut rest = text;
    for (index, length) in [8, 4, 4, 4, 12].into_iter().enumerate() {
        if index > 0 {
            rest = rest.strip_prefix('-').unwrap_or(rest);
        }
        match rest.get(..length) {
            Some(digits) if digits.bytes().all(|digit| digit.is_ascii_hexdigit()) => rest = &rest[length..],
            _ => return false,
        }
    }
    rest.is_empty()
}

impl Opaque for &'static Format {
    fn type_name(&self) -> &str {
        FORMAT
    }
    fn equals(&self, other: &dyn Opaque) -> bool {
        other.as_any().downcast_ref::<&Format>().is_some_and(|other| other.name == self.name)
    }
    fn as_any(&self) -> &dyn Any {
        self
    }
    fn size(&self) -> u64 {
        self.size
    }
}

impl std::fmt::Debug for Format {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}

/// A function for each of them.
macro_rules! named {
    ($($index:literal: $name:literal),*) => {
        [$(row($name, "() -> kubernetes.NamedFormat", ONE, |_| Ok(Value::opaque(&ALL[$index])))),*]
    };
}

pub(crate) const NAMED: [Row; 13] = named!(
    0: "format.dns1123Label", 1: "format.dns1123Subdomain", 2: "format.dns1035Label", 3: "format.qualifiedName",
    4: "format.dns1123LabelPrefix", 5: "format.dns1123SubdomainPrefix", 6: "format.dns1035LabelPrefix",
    7: "format.labelValue", 8: "format.uri", 9: "format.uuid", 10: "format.byte", 11: "format.date",
    12: "format.datetime"
);

pub(crate) const TABLE: &[Row] = &[
    row("format.named", "(string) -> optional(kubernetes.NamedFormat)", ONE, |args| {
        let name = args[0].as_str().ok_or_else(unsuitable)?;
        let found = ALL.iter().find(|format| format.name == name);
        Ok(found.map_or(Value::Optional(None), |format| Value::some(Value::opaque(format))))
    }),
    row("validate", "kubernetes.NamedFormat.(string) -> optional(list(string))", Cost::Validate, validate),
];

fn validate<'a>(args: &mut [Value<'a>]) -> Result<Value<'a>, Error> {
    let [format, Value::String(text)] = args else { return Err(unsuitable()) };
    let format: &&Format = format.as_opaque().ok_or_else(unsuitable)?;
    let wrong = (format.check)(text);
    if wrong.is_empty() {
        return Ok(Value::Optional(None));
    }
    Ok(Value::some(Value::list(wrong.into_iter().map(Value::string).collect())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_format_has_a_function_of_its_name() {
        for (format, Row(name, ..)) in ALL.iter().zip(&NAMED) {
            assert_eq!(format!("format.{}", format.name), *name);
        }
    }
}
