//! Making an object conform to its schema, as decoding into Kubernetes' own types would.
//!
//! Fields the schema does not know are dropped and named, so that a request can warn of them or refuse them. Nulls are
//! dropped, since they mean "not set", and so are zeros where the schema says that they mean the same. Quantities and times are rewritten to their canonical form. What has the wrong
//! type ends it: there is no telling what was meant.

use crate::node::{NodeId, Scalar, Schema, Shape};
use object::{Map, Quantity, Value, base64, time};
use std::fmt;

/// A value that cannot be what the schema says. The message is the one Kubernetes' decoder gives.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Mismatch(String);

/// Makes `value` conform to `node` and returns the paths of what it dropped because it is unknown.
pub fn conform(schema: &Schema, node: NodeId, value: &mut Value) -> Result<Vec<String>, Mismatch> {
    conform_changed(schema, node, value, &Value::Null)
}

/// The same for a value that was made from `known`, which conforms: what the two still share is not looked at.
pub fn conform_changed(
    schema: &Schema,
    node: NodeId,
    value: &mut Value,
    known: &Value,
) -> Result<Vec<String>, Mismatch> {
    let mut walk = Walk { schema, unknown: Vec::new(), owner: "" };
    walk.value(node, value, known, &Place::Root)?;
    Ok(walk.unknown)
}

/// Where the walk is. A chain of borrowed steps, turned into text only for messages.
enum Place<'a> {
    Root,
    Field(&'a Place<'a>, &'a str),
    Index(&'a Place<'a>, usize),
    /// An entry of a map.
    Key(&'a Place<'a>, &'a str),
}

impl Place<'_> {
    /// The way Go's decoder names a place: fields only, no items of lists and no keys of maps.
    fn without_indexes(&self) -> String {
        match self {
            Place::Root => String::new(),
            Place::Field(Place::Root, name) => (*name).to_owned(),
            Place::Field(parent, name) => format!("{}.{name}", parent.without_indexes()),
            Place::Index(parent, _) | Place::Key(parent, _) => parent.without_indexes(),
        }
    }
}

impl fmt::Display for Place<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::Root => Ok(()),
            Place::Field(Place::Root, name) => f.write_str(name),
            Place::Field(parent, name) | Place::Key(parent, name) => write!(f, "{parent}.{name}"),
            Place::Index(parent, index) => write!(f, "{parent}[{index}]"),
        }
    }
}

struct Walk<'a> {
    schema: &'a Schema,
    unknown: Vec<String>,
    /// The type whose field is being looked at.
    owner: &'a str,
}

impl<'a> Walk<'a> {
    fn value(&mut self, node: NodeId, value: &mut Value, known: &Value, place: &Place<'_>) -> Result<(), Mismatch> {
        match (self.schema.shape(node), value) {
            (Shape::Any, _) => Ok(()),
            (Shape::Struct(_) | Shape::Map(_), value) if value.is_shared_with(known) => Ok(()),
            (Shape::Struct(_), Value::Object(fields)) => self.object(node, fields, known, place),
            (Shape::List(list), Value::Array(items)) => {
                for (index, item) in items.iter_mut().enumerate() {
                    self.value(list.items, item, &known[index], &Place::Index(place, index))?;
                }
                Ok(())
            }
            (Shape::Map(map), Value::Object(entries)) => {
                for (key, value) in entries.iter_mut() {
                    // A null here is an empty value, not an absent one: the key was given.
                    if value.is_null() {
                        *value = empty(self.schema.shape(map.values));
                    }
                    self.value(map.values, value, &known[key.as_str()], &Place::Key(place, key))?;
                }
                Ok(())
            }
            (Shape::Scalar(kind), value) => match scalar(*kind, value)? {
                true => Ok(()),
                false => Err(self.mismatch(node, value, place)),
            },
            (Shape::Struct(_) | Shape::List(_) | Shape::Map(_), value) => Err(self.mismatch(node, value, place)),
        }
    }

    fn object(&mut self, node: NodeId, fields: &mut Map, before: &Value, place: &Place<'_>) -> Result<(), Mismatch> {
        let Shape::Struct(known) = self.schema.shape(node) else { return Ok(()) };
        let outer = std::mem::replace(&mut self.owner, self.schema.node(node).name.as_deref().unwrap_or(""));
        let mut dropped = Vec::new();
        for (name, value) in fields.iter_mut() {
            match known.field(name) {
                Some(_) if value.is_null() => dropped.push(name.clone()),
                Some(field) => {
                    self.value(field.node, value, &before[name.as_str()], &Place::Field(place, name))?;
                    if !field.keeps_zero && is_zero(self.schema.shape(field.node), value) {
                        dropped.push(name.clone());
                    }
                }
                None if known.open => {}
                None => {
                    self.unknown.push(Place::Field(place, name).to_string());
                    dropped.push(name.clone());
                }
            }
        }
        dropped.iter().for_each(|name| drop(fields.remove(name)));
        self.owner = outer;
        Ok(())
    }

    fn mismatch(&self, node: NodeId, value: &Value, place: &Place<'_>) -> Mismatch {
        let found = match value {
            Value::Null => "null".to_owned(),
            Value::Bool(_) => "bool".to_owned(),
            Value::Number(number) if number.is_f64() || number.as_i64().is_none() => format!("number {number}"),
            Value::Number(number) => match self.schema.shape(node) {
                Shape::Scalar(Scalar::Int32) => format!("number {number}"),
                _ => "number".to_owned(),
            },
            Value::String(_) => "string".to_owned(),
            Value::Array(_) => "array".to_owned(),
            Value::Object(_) => "object".to_owned(),
        };
        let owner = self.owner.rsplit('.').next().unwrap_or("");
        let (field, wanted) = (place.without_indexes(), self.go_type(node));
        Mismatch(match field.is_empty() {
            true => format!("json: cannot unmarshal {found} into Go value of type {wanted}"),
            false => format!("json: cannot unmarshal {found} into Go struct field {owner}.{field} of type {wanted}"),
        })
    }

    /// The type as Go writes it, since that is what users of Kubernetes have learned to read.
    fn go_type(&self, node: NodeId) -> String {
        match self.schema.shape(node) {
            Shape::Any => "interface {}".to_owned(),
            Shape::List(list) => format!("[]{}", self.go_type(list.items)),
            Shape::Map(map) => format!("map[string]{}", self.go_type(map.values)),
            Shape::Struct(_) => {
                let name = self.schema.node(node).name.as_deref().unwrap_or("struct");
                name.splitn(2, '.').last().unwrap_or(name).to_owned()
            }
            Shape::Scalar(kind) => match kind {
                Scalar::String => "string",
                Scalar::Bytes => "[]uint8",
                Scalar::Bool => "bool",
                Scalar::Int32 => "int32",
                Scalar::Int64 => "int64",
                Scalar::Double => "float64",
                Scalar::Quantity => "resource.Quantity",
                Scalar::IntOrString => "intstr.IntOrString",
                Scalar::Time => "v1.Time",
                Scalar::MicroTime => "v1.MicroTime",
                Scalar::Duration => "v1.Duration",
            }
            .to_owned(),
        }
    }
}

/// False if the value has the wrong type; an error if it has the right type and makes no sense.
fn scalar(kind: Scalar, value: &mut Value) -> Result<bool, Mismatch> {
    Ok(match kind {
        Scalar::String => value.is_string(),
        Scalar::Bool => value.is_boolean(),
        Scalar::Int32 => value.as_i64().is_some_and(|number| i32::try_from(number).is_ok()),
        Scalar::Int64 => value.is_i64(),
        Scalar::Double => value.is_number(),
        Scalar::IntOrString => value.is_string() || value.as_i64().is_some_and(|number| i32::try_from(number).is_ok()),
        Scalar::Bytes => match value.as_str().map(base64::decode) {
            Some(Some(_)) => true,
            Some(None) => {
                let at = value.as_str().map_or(0, base64::first_mistake);
                return Err(Mismatch(format!("illegal base64 data at input byte {at}")));
            }
            None => false,
        },
        Scalar::Quantity => {
            let text = match value {
                Value::String(text) => text.clone(),
                Value::Number(number) => number.to_string(),
                _ => return Ok(false),
            };
            let quantity: Quantity =
                text.parse().map_err(|error: object::quantity::InvalidQuantity| Mismatch(error.to_string()))?;
            *value = Value::from(quantity.to_string());
            true
        }
        Scalar::Duration => {
            let Some(text) = value.as_str() else { return Ok(false) };
            let span = time::parse_duration(text);
            let span = span.ok_or_else(|| Mismatch(format!("time: invalid duration {text:?}")))?;
            *value = Value::from(time::format_duration(span));
            true
        }
        Scalar::Time | Scalar::MicroTime => {
            let Some(text) = value.as_str() else { return Ok(false) };
            let parsed = time::parse(text).and_then(|(seconds, nanos)| match kind {
                Scalar::Time => time::format(seconds),
                _ => time::format_micros(seconds, nanos),
            });
            let canonical = parsed.ok_or_else(|| {
                let layout = "2006-01-02T15:04:05Z07:00";
                Mismatch(format!("parsing time {text:?} as {layout:?}: cannot parse {text:?} as \"2006\""))
            })?;
            *value = Value::from(canonical);
            true
        }
    })
}

/// Whether a value is what Go leaves out when it writes a field that is no pointer.
fn is_zero(shape: &Shape, value: &Value) -> bool {
    match (shape, value) {
        (Shape::List(_), Value::Array(items)) => items.is_empty(),
        (Shape::Map(_), Value::Object(entries)) => entries.is_empty(),
        // These are structs to Go, which it never leaves out.
        (Shape::Scalar(Scalar::Quantity | Scalar::IntOrString), _) => false,
        (Shape::Scalar(_), Value::String(text)) => text.is_empty(),
        (Shape::Scalar(_), Value::Bool(flag)) => !flag,
        (Shape::Scalar(_), Value::Number(number)) => number.as_f64() == Some(0.0),
        _ => false,
    }
}

/// What Go makes of a null in a map.
fn empty(shape: &Shape) -> Value {
    match shape {
        Shape::Any => Value::Null,
        Shape::Struct(_) | Shape::Map(_) => Value::Object(Map::new()),
        Shape::List(_) => Value::Array(Vec::new()),
        Shape::Scalar(kind) => match kind {
            Scalar::Bool => Value::from(false),
            Scalar::Int32 | Scalar::Int64 | Scalar::Double | Scalar::IntOrString => Value::from(0),
            Scalar::Quantity => Value::from("0"),
            Scalar::String | Scalar::Bytes | Scalar::Time | Scalar::MicroTime | Scalar::Duration => Value::from(""),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::builtin;
    use object::json;

    fn conformed(kind: &str, mut value: Value) -> Result<(Value, Vec<String>), String> {
        let schema = builtin();
        let unknown = conform(schema, schema.named(kind).unwrap(), &mut value).map_err(|error| error.to_string())?;
        Ok((value, unknown))
    }

    #[test]
    fn unknown_fields_are_dropped_and_named() {
        let pod = json!({ "spec": { "containers": [{ "name": "a", "imaeg": "x" }], "colour": {} }, "extra": 1 });
        let (value, unknown) = conformed("core.v1.Pod", pod).unwrap();
        assert_eq!(value, json!({ "spec": { "containers": [{ "name": "a" }] } }));
        assert_eq!(unknown, ["extra", "spec.colour", "spec.containers[0].imaeg"]);
    }

    #[test]
    fn values_take_their_canonical_form() {
        let pod = json!({
            "metadata": { "creationTimestamp": "2026-01-02T05:04:05.9+02:00", "deletionTimestamp": null, "labels": { "a": null } },
            "spec": { "containers": [{ "resources": { "limits": { "cpu": 0.5, "memory": "1024Mi" } } }] },
        });
        let (value, unknown) = conformed("core.v1.Pod", pod).unwrap();
        assert_eq!(unknown, [""; 0]);
        assert_eq!(value["metadata"], json!({ "creationTimestamp": "2026-01-02T03:04:05Z", "labels": { "a": "" } }));
        assert_eq!(value["spec"]["containers"][0]["resources"]["limits"], json!({ "cpu": "500m", "memory": "1Gi" }));
    }

    #[test]
    fn what_cannot_be_meant_is_refused_in_words_users_know() {
        for (kind, value, message) in [
            (
                "core.v1.Pod",
                json!({ "spec": { "containers": [{ "image": 7 }] } }),
                "json: cannot unmarshal number into Go struct field Container.spec.containers.image of type string",
            ),
            (
                "core.v1.Pod",
                json!({ "spec": { "containers": "none" } }),
                "json: cannot unmarshal string into Go struct field PodSpec.spec.containers of type []v1.Container",
            ),
            (
                "apps.v1.Deployment",
                json!({ "spec": { "replicas": "3" } }),
                "json: cannot unmarshal string into Go struct field DeploymentSpec.spec.replicas of type int32",
            ),
            (
                "apps.v1.Deployment",
                json!({ "spec": { "replicas": 1.5 } }),
                "json: cannot unmarshal number 1.5 into Go struct field DeploymentSpec.spec.replicas of type int32",
            ),
            ("core.v1.Pod", json!([]), "json: cannot unmarshal array into Go value of type v1.Pod"),
            (
                "core.v1.Pod",
                json!({ "metadata": { "labels": { "a": 1 } } }),
                "json: cannot unmarshal number into Go struct field ObjectMeta.metadata.labels of type string",
            ),
        ] {
            assert_eq!(conformed(kind, value.clone()), Err(message.to_owned()), "{value}");
        }
        for (kind, value, part) in [
            ("core.v1.Secret", json!({ "data": { "k": "Zm9v*" } }), "illegal base64 data at input byte 4"),
            ("core.v1.Container", json!({ "resources": { "limits": { "cpu": "lots" } } }), "quantities must match"),
            ("meta.v1.ObjectMeta", json!({ "creationTimestamp": "soon" }), "parsing time \"soon\""),
        ] {
            let error = conformed(kind, value).unwrap_err();
            assert!(error.contains(part), "{error}");
        }
    }
}
