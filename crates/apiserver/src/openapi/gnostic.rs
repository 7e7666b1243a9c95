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

/// Appends a document, or a part of one, as a message. Parts may be appended one after the other: readers of a message
/// put together what comes in pieces.
pub(super) fn encode(out: &mut Writer, document: &Value) -> Result<(), Misfit> {
    content(out, &DOCUMENT, document)
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

#[cfg(test)]
mod tests {
    use super::*;
    use object::{Map, json};
    use schema::protobuf::wire::{Found, Reader};

    /// Reads a message by the table, so that what was written is seen to be all of the document.
    fn decode(form: &'static Form, bytes: &[u8]) -> Value {
        let mut value = Value::Null;
        let mut reader = Reader(bytes);
        while let Some((number, found)) = reader.next_field().unwrap() {
            match form {
                Form::Message(fields) => {
                    let (key, _, form) = fields.iter().find(|(_, known, _)| *known == number).unwrap();
                    match *key {
                        EXTENSIONS => read(&mut value, &Form::Map(EXTENSION), found),
                        key => read(&mut value[key], form, found),
                    }
                }
                Form::In(known, form) if *known == number => read(&mut value, form, found),
                Form::OneOf(choices) => {
                    let (_, _, form) = choices.iter().find(|(_, known, _)| *known == number).unwrap();
                    read(&mut value, form, found);
                }
                other => panic!("{other:?} has no field {number}"),
            }
        }
        // A message without fields is an object without members.
        if value.is_null() && matches!(form, Form::Message(_)) { json!({}) } else { value }
    }

    /// Reads one field into what is there of the value.
    fn read(value: &mut Value, form: &'static Form, found: Found<'_>) {
        match (form, found) {
            (Form::Text, Found::Bytes(bytes)) => *value = json!(std::str::from_utf8(bytes).unwrap()),
            (Form::Yaml, Found::Bytes(bytes)) => *value = serde_json::from_slice(bytes).unwrap(),
            (Form::Flag, Found::Varint(number)) => *value = json!(number != 0),
            (Form::Integer, Found::Varint(number)) => *value = json!(number),
            (Form::Number, Found::Fixed64(bytes)) => *value = json!(f64::from_le_bytes(bytes)),
            (Form::List(items), found) => {
                let mut item = Value::Null;
                read(&mut item, items, found);
                value.as_array_mut().map(|list| list.push(item.clone())).unwrap_or_else(|| *value = json!([item]));
            }
            (Form::Map(values), Found::Bytes(bytes)) => {
                let (name, inner) = entry(bytes, values);
                value[name] = inner;
            }
            // What comes in pieces is put together.
            (form, Found::Bytes(bytes)) => merge(value, decode(form, bytes)),
            (form, found) => panic!("{found:?} is no {form:?}"),
        }
    }

    fn entry(bytes: &[u8], form: &'static Form) -> (String, Value) {
        let (mut name, mut value) = (Value::Null, Value::Null);
        let mut reader = Reader(bytes);
        while let Some((number, found)) = reader.next_field().unwrap() {
            match number {
                1 => read(&mut name, &Form::Text, found),
                _ => read(&mut value, form, found),
            }
        }
        (name.as_str().unwrap().to_owned(), value)
    }

    fn merge(value: &mut Value, more: Value) {
        match (value.as_object_mut(), more) {
            (Some(members), Value::Object(mut more)) => members.append(&mut more),
            (_, more) => *value = more,
        }
    }

    #[test]
    fn what_is_written_in_pieces_is_read_as_one_document() {
        let parts = [
            json!({ "swagger": "2.0", "info": { "title": "t", "version": "v" } }),
            json!({ "security": [{ "BearerToken": ["a", "b"] }] }),
            json!({ "definitions": { "a": {
                "type": "object", "required": ["n"], "maxLength": 7, "maximum": 1.5, "default": { "x": [1, null] },
                "properties": { "n": { "$ref": "#/definitions/b" }, "l": { "type": "array", "items": { "type": "string" } } },
                "additionalProperties": { "type": "string" }, "allOf": [{ "title": "t" }],
                "x-kubernetes-group-version-kind": [{ "group": "", "kind": "K", "version": "v1" }],
            } } }),
            json!({ "definitions": { "b": { "additionalProperties": true, "enum": ["x", 1], "x-kubernetes-list-type": "set" } } }),
            json!({ "parameters": {
                "q": { "in": "query", "name": "q", "type": "boolean", "uniqueItems": true },
                "p": { "in": "path", "name": "p", "type": "string", "uniqueItems": true, "required": true },
            } }),
            json!({ "paths": { "/a": { "parameters": [{ "$ref": "#/parameters/q" }], "get": {
                "operationId": "get", "tags": ["t"], "schemes": ["https"], "produces": ["a/b"], "consumes": ["*/*"],
                "parameters": [{ "in": "body", "name": "body", "required": true, "schema": { "$ref": "#/definitions/a" } }],
                "responses": { "200": { "description": "OK", "schema": { "type": "string" } } },
                "x-kubernetes-action": "get",
            } } } }),
        ];
        let (mut out, mut whole) = (Writer::default(), json!({}));
        for part in &parts {
            encode(&mut out, part).unwrap();
            for (key, value) in part.as_object().unwrap() {
                merge(&mut whole[key], value.clone());
            }
        }
        assert_eq!(decode(&DOCUMENT, &out.0), whole);
    }

    #[test]
    fn what_the_table_does_not_know_is_no_part_of_the_message() {
        for (part, what) in [
            (json!({ "host": "a" }), "host"),
            (json!({ "definitions": { "a": { "oneOf": [] } } }), "oneOf"),
            (json!({ "definitions": { "a": { "type": 1 } } }), "1"),
            (json!({ "parameters": { "a": { "in": "header" } } }), "header"),
        ] {
            let misfit = encode(&mut Writer::default(), &part).unwrap_err();
            assert!(misfit.to_string().contains(what), "{misfit}");
        }
    }

    #[test]
    fn the_whole_document_survives() {
        let mut draft = super::super::draft::Draft::new(super::super::draft::Forms::JsonAndProtobuf);
        super::super::v2::write(registry::builtin(), &mut draft);
        let written = draft.finish().unwrap();
        let text: Value = serde_json::from_slice(&written.json.unpack().unwrap()).unwrap();
        let binary = decode(&DOCUMENT, &written.protobuf.unpack().unwrap());
        for member in ["definitions", "paths", "parameters"] {
            let (text, binary): (&Map, &Map) = (text[member].as_object().unwrap(), binary[member].as_object().unwrap());
            assert_eq!(text.len(), binary.len(), "{member}");
            for (name, value) in text {
                assert_eq!(&binary[name], value, "{member} {name}");
            }
        }
        assert_eq!(text["info"], binary["info"]);
        assert_eq!(text["securityDefinitions"], binary["securityDefinitions"]);
    }
}
