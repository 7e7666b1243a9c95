//! Kubernetes' protobuf encoding of the built-in kinds, driven by the field numbers in the schema.
//!
//! An object travels in an envelope: four magic bytes and a message with its apiVersion and kind beside the encoded
//! object itself. Fields that are absent or null are not written; clients read them as empty either way.

mod decode;
mod encode;
pub mod wire;

use crate::node::{NodeId, Schema};
use object::Value;
use wire::{Found, Reader, Writer};

pub const CONTENT_TYPE: &str = "application/vnd.kubernetes.protobuf";
const MAGIC: &[u8] = b"k8s\0";
/// Deeper messages are refused: reading them would cost stack.
const MAX_DEPTH: usize = 64;

/// Bytes that are no such message, or a value that does not fit the schema.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ProtobufError(String);

impl ProtobufError {
    fn new(what: impl Into<String>) -> Self {
        ProtobufError(what.into())
    }
}

/// What is in an envelope, not yet decoded: the kind has to be known first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Envelope<'a> {
    pub api_version: &'a str,
    pub kind: &'a str,
    pub raw: &'a [u8],
}

impl<'a> Envelope<'a> {
    pub fn open(bytes: &'a [u8]) -> Result<Self, ProtobufError> {
        let message = bytes.strip_prefix(MAGIC).ok_or_else(|| ProtobufError::new("the magic bytes are missing"))?;
        let mut envelope = Envelope { api_version: "", kind: "", raw: &[] };
        let mut reader = Reader(message);
        while let Some((field, found)) = reader.next_field()? {
            match (field, found) {
                (1, Found::Bytes(bytes)) => envelope.read_type(bytes)?,
                (2, Found::Bytes(bytes)) => envelope.raw = bytes,
                _ => {}
            }
        }
        Ok(envelope)
    }

    fn read_type(&mut self, bytes: &'a [u8]) -> Result<(), ProtobufError> {
        let text = |bytes| std::str::from_utf8(bytes).map_err(|_| ProtobufError::new("a type is no UTF-8"));
        let mut reader = Reader(bytes);
        while let Some((field, found)) = reader.next_field()? {
            match (field, found) {
                (1, Found::Bytes(bytes)) => self.api_version = text(bytes)?,
                (2, Found::Bytes(bytes)) => self.kind = text(bytes)?,
                _ => {}
            }
        }
        Ok(())
    }

    /// The object, with apiVersion and kind put in.
    pub fn decode(&self, schema: &Schema, node: NodeId) -> Result<Value, ProtobufError> {
        let mut value = decode::message(schema, node, self.raw)?;
        for (key, text) in [("apiVersion", self.api_version), ("kind", self.kind)] {
            if !text.is_empty() {
                value[key] = Value::from(text);
            }
        }
        Ok(value)
    }
}

/// An object of the type `node` in its envelope.
pub fn encode(schema: &Schema, node: NodeId, value: &Value) -> Result<Vec<u8>, ProtobufError> {
    let text = |key: &str| value.get(key).and_then(Value::as_str).unwrap_or("");
    let mut writer = Writer(MAGIC.to_vec());
    writer.message(1, |kind| {
        kind.bytes(1, text("apiVersion").as_bytes());
        kind.bytes(2, text("kind").as_bytes());
        Ok::<_, ProtobufError>(())
    })?;
    writer.message(2, |raw| encode::message(schema, node, value, raw))?;
    writer.bytes(3, b"");
    writer.bytes(4, b"");
    Ok(writer.0)
}

/// An event of a watch: not in an envelope itself, around an object that is.
pub fn watch_event(kind: &str, object: &[u8]) -> Vec<u8> {
    let mut writer = Writer(Vec::with_capacity(object.len() + 32));
    writer.bytes(1, kind.as_bytes());
    let raw = writer.message(2, |raw| {
        raw.bytes(1, object);
        Ok::<_, std::convert::Infallible>(())
    });
    match raw {
        Ok(()) => writer.0,
        Err(never) => match never {},
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::builtin;
    use object::json;

    fn round_trip(kind: &str, value: &Value) -> Value {
        let (schema, node) = (builtin(), builtin().named(kind).unwrap());
        let bytes = encode(schema, node, value).unwrap();
        Envelope::open(&bytes).unwrap().decode(schema, node).unwrap()
    }

    #[test]
    fn a_pod_survives() {
        let pod = json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {
                "name": "web", "labels": { "app": "web", "empty": "" }, "generation": 3,
                "creationTimestamp": "2026-01-02T03:04:05Z",
                "managedFields": [{ "manager": "me", "fieldsType": "FieldsV1", "fieldsV1": { "f:spec": {} } }],
            },
            "spec": {
                "containers": [{
                    "name": "c", "image": "nginx", "stdin": true,
                    "ports": [{ "containerPort": 80, "protocol": "TCP" }],
                    "resources": { "limits": { "cpu": "500m", "memory": "1Gi" } },
                    "livenessProbe": { "httpGet": { "port": "http", "path": "/" }, "periodSeconds": 5 },
                    "readinessProbe": { "tcpSocket": { "port": 80 } },
                }],
                "volumes": [{ "name": "v", "emptyDir": {} }, { "name": "w", "configMap": { "name": "m", "defaultMode": 420 } }],
                "priority": -5,
            },
            "status": { "phase": "Running" },
        });
        assert_eq!(round_trip("core.v1.Pod", &pod), pod);
    }

    #[test]
    fn the_verbs_of_a_resource_are_a_message_of_their_own() {
        let (schema, node) = (builtin(), builtin().named("meta.v1.APIResource").unwrap());
        let resource = json!({ "name": "pods", "verbs": ["get", "list"] });
        let bytes = encode(schema, node, &resource).unwrap();
        let verbs = b"\x22\x0b\x0a\x03get\x0a\x04list";
        assert!(bytes.windows(verbs.len()).any(|part| part == verbs), "{bytes:?}");
        assert_eq!(round_trip("meta.v1.APIResource", &resource).get("verbs"), resource.get("verbs"));
    }

    #[test]
    fn special_types_survive() {
        for (kind, value) in [
            ("core.v1.Secret", json!({ "data": { "k": "AAEC/w==" }, "immutable": true })),
            (
                "coordination.v1.Lease",
                json!({ "spec": { "renewTime": "2026-01-02T03:04:05.000006Z", "leaseDurationSeconds": 15 } }),
            ),
            (
                "apps.v1.ControllerRevision",
                json!({ "data": { "any": ["thing", 1.5, null] }, "revision": 9_007_199_254_740_993_i64 }),
            ),
            (
                "apiextensions.v1.CustomResourceDefinition",
                json!({ "spec": { "versions": [{ "name": "v1", "schema": { "openAPIV3Schema": {
                    "type": "object",
                    "properties": { "a": { "type": "array", "items": { "type": "string", "maxLength": 5 } }, "b": { "additionalProperties": true } },
                    "default": { "a": [] }, "maximum": 1.5, "x-kubernetes-preserve-unknown-fields": true, "$ref": "#/x",
                } } }] } }),
            ),
            ("authorization.v1.SubjectAccessReview", json!({ "spec": { "extra": { "k": ["a", "b"] }, "user": "me" } })),
        ] {
            assert_eq!(round_trip(kind, &value), value, "{kind}");
        }
    }

    #[test]
    fn what_is_null_or_absent_is_not_written() {
        let pod = json!({ "metadata": { "name": "a", "labels": null }, "spec": { "containers": [] } });
        assert_eq!(round_trip("core.v1.Pod", &pod), json!({ "metadata": { "name": "a" }, "spec": {} }));
    }

    #[test]
    fn bad_bytes_are_refused_and_never_panic() {
        let schema = builtin();
        let node = schema.named("core.v1.Pod").unwrap();
        let good =
            encode(schema, node, &json!({ "metadata": { "name": "a" }, "spec": { "containers": [{ "name": "c" }] } }))
                .unwrap();
        assert!(Envelope::open(b"{}").is_err());
        for length in 4..good.len() {
            if let Ok(envelope) = Envelope::open(&good[..length]) {
                let _ = envelope.decode(schema, node);
            }
        }
        // A schema that is not a schema that is not a schema, by the thousand.
        let mut deep = Vec::new();
        for _ in 0..10_000 {
            let mut outer = Writer::default();
            outer.bytes(28, &deep);
            deep = outer.0;
        }
        let props = schema.named("apiextensions.v1.JSONSchemaProps").unwrap();
        assert!(decode::message(schema, props, &deep).is_err());
    }
}
