//! JSON to protobuf.

use super::ProtobufError;
use super::wire::Writer;
use crate::node::{Field, NodeId, Scalar, Schema, Shape};
use object::{Value, base64, time};

/// Writes the fields of a struct.
pub(super) fn message(schema: &Schema, node: NodeId, value: &Value, writer: &mut Writer) -> Result<(), ProtobufError> {
    let (Shape::Struct(known), Value::Object(fields)) = (schema.shape(node), value) else {
        return Err(mismatch(schema, node, value));
    };
    for (name, value) in fields.iter().filter(|(_, value)| !value.is_null()) {
        if let Some(known) = known.field(name) {
            field(schema, known, &known.number, value, writer)?;
        }
    }
    Ok(())
}

/// A field, within the inlined messages it stands in.
fn field(
    schema: &Schema,
    known: &Field,
    number: &[u32],
    value: &Value,
    writer: &mut Writer,
) -> Result<(), ProtobufError> {
    match number {
        [] => Ok(()),
        [number] => content(schema, known.node, *number, value, writer),
        [outer, inner @ ..] => writer.message(*outer, |writer| field(schema, known, inner, value, writer)),
    }
}

fn content(
    schema: &Schema,
    node: NodeId,
    number: u32,
    value: &Value,
    writer: &mut Writer,
) -> Result<(), ProtobufError> {
    match (schema.shape(node), value) {
        (Shape::List(list), Value::Array(items)) => {
            items.iter().try_for_each(|item| content(schema, list.items, number, item, writer))
        }
        (Shape::Map(map), Value::Object(entries)) => entries.iter().try_for_each(|(key, value)| {
            writer.message(number, |entry| {
                entry.bytes(1, key.as_bytes());
                match schema.shape(map.values) {
                    // Protobuf has no maps of lists: the list is a message of its own.
                    Shape::List(_) => entry.message(2, |list| content(schema, map.values, 1, value, list)),
                    _ => content(schema, map.values, 2, value, entry),
                }
            })
        }),
        (Shape::Struct(_), value) => writer.message(number, |writer| message(schema, node, value, writer)),
        (Shape::Scalar(kind), value) => {
            scalar(*kind, number, value, writer).ok_or_else(|| mismatch(schema, node, value))?
        }
        (Shape::Any, value) => {
            let name = schema.node(node).name.as_deref().unwrap_or("");
            writer.message(number, |writer| any(schema, name, value, writer))
        }
        (Shape::List(_) | Shape::Map(_), value) => Err(mismatch(schema, node, value)),
    }
}

/// None where the value does not fit.
fn scalar(kind: Scalar, number: u32, value: &Value, writer: &mut Writer) -> Option<Result<(), ProtobufError>> {
    match kind {
        Scalar::String => writer.bytes(number, value.as_str()?.as_bytes()),
        Scalar::Bytes => writer.bytes(number, &base64::decode(value.as_str()?)?),
        Scalar::Bool => writer.integer(number, i64::from(value.as_bool()?)),
        Scalar::Int32 | Scalar::Int64 => writer.integer(number, value.as_i64()?),
        Scalar::Double => writer.double(number, value.as_f64()?),
        Scalar::Quantity => {
            let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            return Some(writer.message(number, |writer| {
                writer.bytes(1, text.as_bytes());
                Ok(())
            }));
        }
        Scalar::IntOrString => {
            let (text, integer) = (value.as_str(), value.as_i64());
            if text.is_none() && integer.is_none() {
                return None;
            }
            return Some(writer.message(number, |writer| {
                writer.integer(1, i64::from(text.is_some()));
                writer.integer(2, integer.unwrap_or(0));
                writer.bytes(3, text.unwrap_or("").as_bytes());
                Ok(())
            }));
        }
        Scalar::Duration => {
            let nanos = i64::try_from(time::parse_duration(value.as_str()?)?.as_nanos()).ok()?;
            return Some(writer.message(number, |writer| {
                writer.integer(1, nanos);
                Ok(())
            }));
        }
        Scalar::Time | Scalar::MicroTime => {
            let (seconds, nanos) = time::parse(value.as_str()?)?;
            return Some(writer.message(number, |writer| {
                writer.integer(1, seconds);
                writer.integer(2, i64::from(nanos));
                Ok(())
            }));
        }
    }
    Some(Ok(()))
}

/// Values that JSON shows as they are and protobuf wraps, each in its own way.
fn any(schema: &Schema, name: &str, value: &Value, writer: &mut Writer) -> Result<(), ProtobufError> {
    let props = || schema.named("apiextensions.v1.JSONSchemaProps").expect("the built-in types have it");
    match (name, value) {
        ("SchemaOrArray", Value::Array(schemas)) => {
            schemas.iter().try_for_each(|one| writer.message(2, |writer| message(schema, props(), one, writer)))
        }
        ("SchemaOrArray" | "SchemaOrStrings", Value::Object(_)) => {
            writer.message(1, |writer| message(schema, props(), value, writer))
        }
        ("SchemaOrStrings", Value::Array(names)) => {
            names.iter().filter_map(Value::as_str).for_each(|name| writer.bytes(2, name.as_bytes()));
            Ok(())
        }
        ("SchemaOrBool", Value::Bool(allows)) => {
            writer.integer(1, i64::from(*allows));
            Ok(())
        }
        ("SchemaOrBool", Value::Object(_)) => {
            writer.integer(1, 1);
            writer.message(2, |writer| message(schema, props(), value, writer))
        }
        (_, value) => {
            writer.bytes(1, value.to_string().as_bytes());
            Ok(())
        }
    }
}

fn mismatch(schema: &Schema, node: NodeId, value: &Value) -> ProtobufError {
    let node = schema.node(node);
    let expected = node.name.as_deref().map_or_else(|| format!("{:?}", node.shape), str::to_owned);
    ProtobufError::new(format!("{value} is no {expected}"))
}
