//! The binary form of a Swagger 2.0 document: the messages of google/gnostic's `openapi.v2`.
//!
//! Clients written in Go ask for this form. A table says which key of the JSON document is which field of which
//! message; messages that no document of ours contains are not in it, and a key that is not in it is an error.

use object::Value;
use schema::protobuf::wire::Writer;

/// How a value is written.
#[derive(Debug)]
pub(super) enum Form {
    Text,
    Flag,
    Integer,
    Number,
    /// Any JSON, as text; JSON is YAML.
    Yaml,
    List(&'static Form),
    /// An object as a list of messages with a name (1) and a value (2).
    Map(&'static Form),
    Message(&'static [Field]),
    /// A message of which one field is used.
    In(u32, &'static Form),
    /// A message of which one field is used, the first that fits.
    OneOf(&'static [(When, u32, &'static Form)]),
}

/// A key of an object, the number it has in the message, and its form.
pub(super) type Field = (&'static str, u32, &'static Form);

#[derive(Debug)]
pub(super) enum When {
    Has(&'static str),
    Is(&'static str, &'static str),
    Flag,
    Otherwise,
}

/// Stands in the place of a key for all keys that begin with `x-`.
pub(super) const EXTENSIONS: &str = "x-";
const EXTENSION: &Form = &Form::In(2, &Form::Yaml);

const TEXTS: &Form = &Form::List(&Form::Text);
const ANY: &Form = &Form::In(2, &Form::Yaml);

pub(super) static DOCUMENT: Form = Form::Message(&[
    ("swagger", 1, &Form::Text),
    ("info", 2, &Form::Message(&[("title", 1, &Form::Text), ("version", 2, &Form::Text)])),
    ("paths", 8, &Form::In(2, &Form::Map(&PATH_ITEM))),
    ("definitions", 9, &Form::In(1, &Form::Map(&SCHEMA))),
    ("parameters", 10, &Form::In(1, &Form::Map(&PARAMETER))),
    ("security", 12, &Form::List(&Form::In(1, &Form::Map(&Form::In(1, TEXTS))))),
    ("securityDefinitions", 13, &Form::In(1, &Form::Map(&Form::In(2, &API_KEY)))),
]);

static API_KEY: Form = Form::Message(&[
    ("type", 1, &Form::Text),
    ("name", 2, &Form::Text),
    ("in", 3, &Form::Text),
    ("description", 4, &Form::Text),
]);

static PATH_ITEM: Form = Form::Message(&[
    ("get", 2, &OPERATION),
    ("put", 3, &OPERATION),
    ("post", 4, &OPERATION),
    ("delete", 5, &OPERATION),
    ("options", 6, &OPERATION),
    ("head", 7, &OPERATION),
    ("patch", 8, &OPERATION),
    ("parameters", 9, &Form::List(&PARAMETERS_ITEM)),
]);

static OPERATION: Form = Form::Message(&[
    ("tags", 1, TEXTS),
    ("description", 3, &Form::Text),
    ("operationId", 5, &Form::Text),
    ("produces", 6, TEXTS),
    ("consumes", 7, TEXTS),
    ("parameters", 8, &Form::List(&PARAMETERS_ITEM)),
    ("responses", 9, &Form::In(1, &Form::Map(&Form::In(1, &RESPONSE)))),
    ("schemes", 10, TEXTS),
    (EXTENSIONS, 13, EXTENSION),
]);

static RESPONSE: Form = Form::Message(&[("description", 1, &Form::Text), ("schema", 2, &Form::In(1, &SCHEMA))]);

static PARAMETERS_ITEM: Form = Form::OneOf(&[
    (When::Has("$ref"), 2, &Form::Message(&[("$ref", 1, &Form::Text)])),
    (When::Otherwise, 1, &PARAMETER),
]);

static PARAMETER: Form = Form::OneOf(&[(When::Is("in", "body"), 1, &BODY), (When::Otherwise, 2, &NO_BODY)]);

static BODY: Form = Form::Message(&[
    ("description", 1, &Form::Text),
    ("name", 2, &Form::Text),
    ("in", 3, &Form::Text),
    ("required", 4, &Form::Flag),
    ("schema", 5, &SCHEMA),
]);

static NO_BODY: Form = Form::OneOf(&[(When::Is("in", "query"), 3, &QUERY), (When::Is("in", "path"), 4, &PATH)]);

static QUERY: Form = Form::Message(&[
    ("required", 1, &Form::Flag),
    ("in", 2, &Form::Text),
    ("description", 3, &Form::Text),
    ("name", 4, &Form::Text),
    ("type", 6, &Form::Text),
    ("uniqueItems", 20, &Form::Flag),
]);

static PATH: Form = Form::Message(&[
    ("required", 1, &Form::Flag),
    ("in", 2, &Form::Text),
    ("description", 3, &Form::Text),
    ("name", 4, &Form::Text),
    ("type", 5, &Form::Text),
    ("uniqueItems", 19, &Form::Flag),
]);

static SCHEMA: Form = Form::Message(&[
    ("$ref", 1, &Form::Text),
    ("format", 2, &Form::Text),
    ("title", 3, &Form::Text),
    ("description", 4, &Form::Text),
    ("default", 5, ANY),
    ("multipleOf", 6, &Form::Number),
    ("maximum", 7, &Form::Number),
    ("exclusiveMaximum", 8, &Form::Flag),
    ("minimum", 9, &Form::Number),
    ("exclusiveMinimum", 10, &Form::Flag),
    ("maxLength", 11, &Form::Integer),
    ("minLength", 12, &Form::Integer),
    ("pattern", 13, &Form::Text),
    ("maxItems", 14, &Form::Integer),
    ("minItems", 15, &Form::Integer),
    ("uniqueItems", 16, &Form::Flag),
    ("maxProperties", 17, &Form::Integer),
    ("minProperties", 18, &Form::Integer),
    ("required", 19, TEXTS),
    ("enum", 20, &Form::List(ANY)),
    ("additionalProperties", 21, &Form::OneOf(&[(When::Flag, 2, &Form::Flag), (When::Otherwise, 1, &SCHEMA)])),
    ("type", 22, &Form::In(1, &Form::Text)),
    ("items", 23, &Form::In(1, &SCHEMA)),
    ("allOf", 24, &Form::List(&SCHEMA)),
    ("properties", 25, &Form::In(1, &Form::Map(&SCHEMA))),
    ("example", 30, ANY),
    (EXTENSIONS, 31, EXTENSION),
]);

/// A value that the table has no place for.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} has no place in the binary form of the document")]
pub(super) struct Misfit(String);

/// The document as a message.
pub(super) fn encode(document: &Value) -> Result<Vec<u8>, Misfit> {
    let mut out = Writer::default();
    content(&mut out, &DOCUMENT, document)?;
    Ok(out.0)
}

impl When {
    fn holds(&self, value: &Value) -> bool {
        match self {
            When::Has(key) => value.get(key).is_some(),
            When::Is(key, expected) => value.get(key).is_some_and(|found| found == expected),
            When::Flag => value.is_boolean(),
            When::Otherwise => true,
        }
    }
}

/// Writes a value as a field, or as several if it is a list.
fn field(out: &mut Writer, number: u32, form: &'static Form, value: &Value) -> Result<(), Misfit> {
    let misfit = || Misfit(value.to_string());
    match form {
        Form::Text => out.bytes(number, value.as_str().ok_or_else(misfit)?.as_bytes()),
        Form::Flag => out.integer(number, i64::from(value.as_bool().ok_or_else(misfit)?)),
        Form::Integer => out.integer(number, value.as_i64().ok_or_else(misfit)?),
        Form::Number => out.double(number, value.as_f64().ok_or_else(misfit)?),
        Form::Yaml => out.bytes(number, value.to_string().as_bytes()),
        Form::List(items) => {
            for item in value.as_array().ok_or_else(misfit)? {
                field(out, number, items, item)?;
            }
        }
        Form::Map(values) => {
            for (name, value) in value.as_object().ok_or_else(misfit)? {
                named(out, number, name, values, value)?;
            }
        }
        Form::Message(_) | Form::In(..) | Form::OneOf(_) => {
            out.message(number, |out| content(out, form, value))?;
        }
    }
    Ok(())
}

/// Writes what is inside a message.
fn content(out: &mut Writer, form: &'static Form, value: &Value) -> Result<(), Misfit> {
    match form {
        Form::Message(fields) => {
            for (key, value) in value.as_object().ok_or_else(|| Misfit(value.to_string()))? {
                member(out, fields, key, value)?;
            }
            Ok(())
        }
        Form::In(number, form) => field(out, *number, form, value),
        Form::OneOf(choices) => {
            let choice = choices.iter().find(|(when, ..)| when.holds(value));
            let (_, number, form) = choice.ok_or_else(|| Misfit(value.to_string()))?;
            field(out, *number, form, value)
        }
        Form::Text | Form::Flag | Form::Integer | Form::Number | Form::Yaml | Form::List(_) | Form::Map(_) => {
            Err(Misfit(value.to_string()))
        }
    }
}

fn member(out: &mut Writer, fields: &'static [Field], key: &str, value: &Value) -> Result<(), Misfit> {
    if let Some((_, number, form)) = fields.iter().find(|(name, ..)| *name == key) {
        return field(out, *number, form, value);
    }
    let extensions = fields.iter().find(|(name, ..)| *name == EXTENSIONS && key.starts_with(EXTENSIONS));
    let (_, number, form) = extensions.ok_or_else(|| Misfit(key.to_owned()))?;
    named(out, *number, key, form, value)
}

fn named(out: &mut Writer, number: u32, name: &str, form: &'static Form, value: &Value) -> Result<(), Misfit> {
    out.message(number, |out| {
        out.bytes(1, name.as_bytes());
        field(out, 2, form, value)
    })
}
