//! Protobuf to JSON.

use super::wire::{Found, Reader};
use super::{MAX_DEPTH, ProtobufError};
use crate::node::{Field, NodeId, Scalar, Schema, Shape, Struct};
use object::{Map, Value, base64, json, time};

/// Reads the fields of a struct.
pub(super) fn message(schema: &Schema, node: NodeId, bytes: &[u8]) -> Result<Value, ProtobufError> {
    let mut fields = Map::new();
    Decoder { schema, depth: 0 }.fields(node, bytes, &mut fields)?;
    Ok(Value::Object(fields))
}

#[derive(Clone, Copy)]
struct Decoder<'a> {
    schema: &'a Schema,
    depth: usize,
}

impl<'a> Decoder<'a> {
    fn deeper(self) -> Result<Self, ProtobufError> {
        match self.depth < MAX_DEPTH {
            true => Ok(Decoder { depth: self.depth + 1, ..self }),
            false => Err(ProtobufError::new(format!("messages are nested more than {MAX_DEPTH} deep"))),
        }
    }

    fn fields(self, node: NodeId, bytes: &[u8], into: &mut Map) -> Result<(), ProtobufError> {
        let Shape::Struct(known) = self.schema.shape(node) else {
            return Err(ProtobufError::new("a message stands where there is none"));
        };
        self.deeper()?.numbered(known, &[], bytes, into)
    }

    /// The fields of a message that is inlined at `path`; at the top the path is empty.
    fn numbered(self, known: &'a Struct, path: &[u32], bytes: &[u8], into: &mut Map) -> Result<(), ProtobufError> {
        let mut reader = Reader(bytes);
        while let Some((number, found)) = reader.next_field()? {
            let path: Vec<u32> = path.iter().copied().chain([number]).collect();
            match (known.fields.iter().find(|field| field.number == path), found) {
                (Some(field), found) => self.field(field, found, into)?,
                (None, Found::Bytes(bytes)) if known.fields.iter().any(|field| field.number.starts_with(&path)) => {
                    self.deeper()?.numbered(known, &path, bytes, into)?;
                }
                // A field this version does not know.
                (None, _) => {}
            }
        }
        Ok(())
    }

    fn field(self, field: &Field, found: Found<'_>, into: &mut Map) -> Result<(), ProtobufError> {
        match self.schema.shape(field.node) {
            Shape::List(list) => {
                let items = into.entry(field.name.as_ref()).or_insert_with(|| json!([]));
                let Value::Array(items) = items else { return Err(ProtobufError::new("a list is no list")) };
                items.push(self.value(list.items, found)?);
            }
            Shape::Map(map) => {
                let (key, value) = self.entry(map.values, found)?;
                into.entry(field.name.as_ref()).or_insert_with(|| json!({}))[key] = value;
            }
            Shape::Struct(_) => {
                // A message may come in several pieces.
                let merged = into.entry(field.name.as_ref()).or_insert_with(|| json!({}));
                let (Value::Object(merged), Found::Bytes(bytes)) = (merged, found) else { return Err(wrong()) };
                self.fields(field.node, bytes, merged)?;
            }
            Shape::Scalar(_) | Shape::Any => {
                let value = self.value(field.node, found)?;
                // A time may say that there is none.
                if !value.is_null() {
                    into.insert(field.name.to_string(), value);
                }
            }
        }
        Ok(())
    }

    fn entry(self, values: NodeId, found: Found<'_>) -> Result<(String, Value), ProtobufError> {
        let Found::Bytes(bytes) = found else { return Err(wrong()) };
        let (mut key, mut value) = (String::new(), None);
        let mut reader = Reader(bytes);
        while let Some((number, found)) = reader.next_field()? {
            match number {
                1 => key = text(found)?.to_owned(),
                2 => value = Some(self.map_value(values, found)?),
                _ => {}
            }
        }
        let value = match value {
            Some(value) => value,
            None => self.map_value(values, Found::Bytes(&[]))?,
        };
        Ok((key, value))
    }

    /// Protobuf has no maps of lists: the list is a message of its own.
    fn map_value(self, node: NodeId, found: Found<'_>) -> Result<Value, ProtobufError> {
        let (Shape::List(list), Found::Bytes(bytes)) = (self.schema.shape(node), found) else {
            return self.value(node, found);
        };
        let (mut items, mut reader) = (Vec::new(), Reader(bytes));
        while let Some((_, found)) = reader.next_field()? {
            items.push(self.value(list.items, found)?);
        }
        Ok(Value::Array(items))
    }

    fn value(self, node: NodeId, found: Found<'_>) -> Result<Value, ProtobufError> {
        match (self.schema.shape(node), found) {
            (Shape::Scalar(kind), found) => scalar(*kind, found),
            (Shape::Struct(_), Found::Bytes(bytes)) => {
                let mut fields = Map::new();
                self.fields(node, bytes, &mut fields)?;
                Ok(Value::Object(fields))
            }
            (Shape::Any, Found::Bytes(bytes)) => {
                let name = self.schema.node(node).name.as_deref().unwrap_or("");
                self.deeper()?.any(name, bytes)
            }
            _ => Err(wrong()),
        }
    }

    /// Values that JSON shows as they are and protobuf wraps, each in its own way.
    fn any(self, name: &str, bytes: &[u8]) -> Result<Value, ProtobufError> {
        let props = || self.schema.named("apiextensions.v1.JSONSchemaProps").expect("the built-in types have it");
        let (mut allowed, mut list, mut reader) = (None, Vec::new(), Reader(bytes));
        while let Some((number, found)) = reader.next_field()? {
            match (name, number, found) {
                ("SchemaOrArray" | "SchemaOrStrings", 1, found) | ("SchemaOrBool", 2, found) => {
                    return self.value(props(), found);
                }
                ("SchemaOrArray", 2, found) => list.push(self.value(props(), found)?),
                ("SchemaOrStrings", 2, found) => list.push(Value::from(text(found)?)),
                ("SchemaOrBool", 1, Found::Varint(number)) => allowed = Some(Value::from(number != 0)),
                (_, 1, Found::Bytes(bytes)) => {
                    return object::json::parse(bytes)
                        .map_err(|error| ProtobufError::new(format!("raw JSON in a message: {error}")));
                }
                _ => {}
            }
        }
        Ok(match name {
            "SchemaOrArray" | "SchemaOrStrings" => Value::Array(list),
            "SchemaOrBool" => allowed.unwrap_or(Value::from(false)),
            _ => Value::Null,
        })
    }
}

fn scalar(kind: Scalar, found: Found<'_>) -> Result<Value, ProtobufError> {
    let integer = || match found {
        Found::Varint(number) => Ok(number as i64),
        _ => Err(wrong()),
    };
    Ok(match kind {
        Scalar::String => Value::from(text(found)?),
        Scalar::Bytes => Value::from(base64::encode(bytes(found)?)),
        Scalar::Bool => Value::from(integer()? != 0),
        Scalar::Int32 => Value::from(integer()? as i32),
        Scalar::Int64 => Value::from(integer()?),
        Scalar::Double => match found {
            Found::Fixed64(bytes) => Value::from(f64::from_le_bytes(bytes)),
            _ => return Err(wrong()),
        },
        Scalar::Quantity => match Parts::read(found)? {
            Parts { text: Some(text), .. } => Value::from(text),
            _ => Value::from("0"),
        },
        Scalar::IntOrString => match Parts::read(found)? {
            // The first number says which of the two it is.
            Parts { first: 1, third, .. } => Value::from(third),
            Parts { second, .. } => Value::from(second as i32),
        },
        Scalar::Duration => {
            let nanos = u64::try_from(Parts::read(found)?.first).map_err(|_| wrong())?;
            Value::from(time::format_duration(std::time::Duration::from_nanos(nanos)))
        }
        // No time at all is an empty message.
        Scalar::Time | Scalar::MicroTime if matches!(found, Found::Bytes([])) => Value::Null,
        Scalar::Time | Scalar::MicroTime => {
            let Parts { first: seconds, second: nanos, .. } = Parts::read(found)?;
            let nanos = u32::try_from(nanos).map_err(|_| wrong())?;
            let formatted =
                if kind == Scalar::Time { time::format(seconds) } else { time::format_micros(seconds, nanos) };
            formatted.map_or(Value::Null, Value::from)
        }
    })
}

/// The small messages that are scalars in JSON: up to two numbers, and a text in field 1 or 3.
#[derive(Default)]
struct Parts<'a> {
    first: i64,
    second: i64,
    third: &'a str,
    text: Option<&'a str>,
}

impl<'a> Parts<'a> {
    fn read(found: Found<'a>) -> Result<Self, ProtobufError> {
        let (mut parts, mut reader) = (Parts::default(), Reader(bytes(found)?));
        while let Some((number, found)) = reader.next_field()? {
            match (number, found) {
                (1, Found::Varint(number)) => parts.first = number as i64,
                (2, Found::Varint(number)) => parts.second = number as i64,
                (1, found) => parts.text = Some(text(found)?),
                (3, found) => parts.third = text(found)?,
                _ => {}
            }
        }
        Ok(parts)
    }
}

fn bytes(found: Found<'_>) -> Result<&[u8], ProtobufError> {
    match found {
        Found::Bytes(bytes) => Ok(bytes),
        _ => Err(wrong()),
    }
}

fn text(found: Found<'_>) -> Result<&str, ProtobufError> {
    std::str::from_utf8(bytes(found)?).map_err(|_| ProtobufError::new("a text is no UTF-8"))
}

fn wrong() -> ProtobufError {
    ProtobufError::new("a field has the wrong wire type")
}
