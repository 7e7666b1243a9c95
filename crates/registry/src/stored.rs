//! An object as it is stored and handed around: its bytes, and the little that is looked up often.
//!
//! The bytes are JSON, serialized once when the object is written, and behind it the owners of the fields in their
//! compact form. The JSON starts with kind, version and metadata, and leaves out the owners and the resource version,
//! which only the commit decides. Whoever sends an object splices both in; so lists and watch events copy bytes and
//! encode nothing.
//!
//! ```text
//! {"kind":"Pod","apiVersion":"v1","metadata":{...},...}  owners, their length in three bytes, 1
//! ```
//!
//! JSON ends with a brace, so bytes that do are an object without owners, or with owners in its metadata.

use crate::{Resource, pruned};
use bytes::{BufMut, Bytes, BytesMut};
use object::{Edit, Map, Value, View};
use schema::apply::Managers;
use std::io::Write;
use std::sync::{Arc, OnceLock};
use store::Revision;

#[derive(Debug)]
pub struct Object {
    /// The key in the store: `pods/default/web`.
    pub key: Bytes,
    /// The resource version.
    pub revision: Revision,
    /// What is stored.
    body: Bytes,
    /// How much of it is JSON.
    json: u32,
    /// Where `"metadata":{` starts and ends in it.
    metadata: (u16, u16),
    facets: OnceLock<Facets>,
    decoded: OnceLock<Arc<Value>>,
}

/// What objects are selected by.
#[derive(Debug, Default)]
struct Facets {
    labels: Box<[(Box<str>, Box<str>)]>,
    /// The values of the selectable fields of its kind, in the order of the row.
    fields: Box<[Box<str>]>,
}

/// Bytes that are no object as this program stores them.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("what is stored at {key} is no object: {why}")]
pub struct Unreadable {
    pub key: String,
    pub why: String,
}

const METADATA: &[u8] = b"\"metadata\":{";
/// Kind and version are names, so this is ample.
const MAX_METADATA_OFFSET: usize = 1024;

/// What bytes with owners end with, behind the length of the owners.
const WITH_OWNERS: u8 = 1;
const LENGTH_BYTES: usize = 3;
/// About how many times longer owners are as JSON, and what else is spliced in.
const OWNERS_GROW: usize = 8;
const SPLICED_BYTES: usize = 64;

impl Object {
    pub fn new(key: Bytes, revision: Revision, body: Bytes) -> Result<Self, Unreadable> {
        let unreadable =
            |why: &str| Unreadable { key: String::from_utf8_lossy(&key).into_owned(), why: why.to_owned() };
        let json = json_of(&body).ok_or_else(|| unreadable("it is cut short"))?;
        let head = &json[..json.len().min(MAX_METADATA_OFFSET)];
        let found = head.windows(METADATA.len()).position(|window| window == METADATA);
        let start = found.and_then(|at| u16::try_from(at).ok()).ok_or_else(|| unreadable("no metadata"))?;
        let metadata = (start, start + METADATA.len() as u16);
        let json = u32::try_from(json.len()).map_err(|_| unreadable("it is too long"))?;
        Ok(Object { key, revision, body, json, metadata, facets: OnceLock::new(), decoded: OnceLock::new() })
    }

    /// The same object at another revision: what a deletion shows.
    pub fn at(&self, revision: Revision) -> Self {
        Object {
            key: self.key.clone(),
            revision,
            body: self.body.clone(),
            json: self.json,
            metadata: self.metadata,
            facets: OnceLock::new(),
            decoded: OnceLock::new(),
        }
    }

    /// What is stored.
    pub fn body(&self) -> &Bytes {
        &self.body
    }

    /// The JSON of the object, without resource version and owners.
    pub fn json(&self) -> Bytes {
        self.body.slice(..self.json as usize)
    }

    /// The owners of its fields, in their compact form; empty if there are none beside the JSON.
    fn packed(&self) -> &[u8] {
        let end = self.body.len().saturating_sub(LENGTH_BYTES + 1);
        self.body.get(self.json as usize..end).unwrap_or_default()
    }

    /// The owners of its fields. Where they cannot be read there are none: ownership starts again with the first apply.
    pub fn managers(&self) -> Managers {
        Managers::unpack(self.packed()).unwrap_or_else(|error| {
            tracing::error!(key = %String::from_utf8_lossy(&self.key), %error, "nobody owns its fields");
            Managers::default()
        })
    }

    pub fn len(&self) -> usize {
        self.body.len()
    }

    pub fn is_empty(&self) -> bool {
        self.body.is_empty()
    }

    /// About how long the object is as it is sent.
    pub fn sent_len(&self) -> usize {
        self.json as usize + self.packed().len() * OWNERS_GROW + SPLICED_BYTES
    }

    /// Appends the JSON, resource version and owners included.
    pub fn write(&self, out: &mut BytesMut) {
        self.write_from(0, out);
    }

    /// Appends the JSON without kind and version, as items of a list are written.
    pub fn write_item(&self, out: &mut BytesMut) {
        out.put_u8(b'{');
        self.write_from(self.metadata.0, out);
    }

    fn write_from(&self, start: u16, out: &mut BytesMut) {
        let end = usize::from(self.metadata.1);
        out.reserve(self.sent_len());
        out.put_slice(&self.body[usize::from(start)..end]);
        write_resource_version(self.revision, out);
        self.write_owners(out);
        out.put_slice(&self.body[end..self.json as usize]);
    }

    /// Appends `"managedFields":[...],`, or nothing.
    fn write_owners(&self, out: &mut BytesMut) {
        let (before, packed) = (out.len(), self.packed());
        if packed.is_empty() {
            return;
        }
        out.put_slice(b"\"managedFields\":");
        match schema::apply::write_json(packed, out) {
            Ok(()) => out.put_u8(b','),
            Err(error) => {
                tracing::error!(key = %String::from_utf8_lossy(&self.key), %error, "left out");
                out.truncate(before);
            }
        }
    }

    pub fn to_bytes(&self) -> Bytes {
        let mut out = BytesMut::with_capacity(self.sent_len());
        self.write(&mut out);
        out.freeze()
    }

    /// The object as a tree, resource version and owners included.
    pub fn decode(&self) -> Value {
        let mut value = self.tree();
        if let Some(owners) = self.managers().encode() {
            value.object_or_new("metadata").set("managedFields", owners);
        }
        value
    }

    /// The object as a tree, resource version included, without the owners beside it.
    pub fn tree(&self) -> Value {
        let mut value: Value = serde_json::from_slice(&self.body[..self.json as usize]).unwrap_or_default();
        if let Some(metadata) = value.get_mut("metadata").and_then(Value::as_object_mut) {
            metadata.insert("resourceVersion", Value::from(self.revision.to_string()));
        }
        value
    }

    /// That tree, kept for the next who asks: for what is looked at with every request, such as a service account.
    /// It is much larger than the bytes, so this is not for objects of which there are many.
    pub fn shared(&self) -> Arc<Value> {
        self.decoded.get_or_init(|| Arc::new(self.tree())).clone()
    }

    /// The last segment of the key.
    pub fn name(&self) -> &str {
        self.segments().1
    }

    /// The segment before the name; empty if there is none.
    pub fn namespace(&self) -> &str {
        self.segments().0
    }

    fn segments(&self) -> (&str, &str) {
        let key = std::str::from_utf8(&self.key).unwrap_or_default();
        let mut parts = key.splitn(3, '/').skip(1);
        match (parts.next(), parts.next()) {
            (Some(namespace), Some(name)) => (namespace, name),
            (Some(name), None) => ("", name),
            _ => ("", ""),
        }
    }

    pub fn label(&self, resource: &Resource, key: &str) -> Option<&str> {
        let labels = &self.facets(resource).labels;
        let at = labels.binary_search_by(|(label, _)| label.as_ref().cmp(key)).ok()?;
        Some(&labels[at].1)
    }

    /// A field that the kind may be selected by; empty if it is not set.
    pub fn field(&self, resource: &Resource, field: &str) -> &str {
        match field {
            "metadata.name" => self.name(),
            "metadata.namespace" => self.namespace(),
            field => {
                let at = resource.selectable.iter().position(|selectable| selectable == field);
                at.and_then(|at| self.facets(resource).fields.get(at)).map_or("", |value| value)
            }
        }
    }

    fn facets(&self, resource: &Resource) -> &Facets {
        self.facets.get_or_init(|| {
            let fields = resource.selectable.iter().map(|field| path_of(field));
            let paths: Vec<&str> = fields.chain(["metadata.labels", "reportingComponent"]).collect();
            Facets::of(resource, &pruned::read(&self.body[..self.json as usize], &paths))
        })
    }
}

impl Facets {
    fn of(resource: &Resource, object: &Value) -> Self {
        let labels = object.at("metadata").entries("labels");
        let labels = labels.map(|(key, value)| (key.into(), value.as_str().unwrap_or_default().into()));
        let fields = resource.selectable.iter().map(|field| selectable_text(object, field).into());
        Facets { labels: labels.collect(), fields: fields.collect() }
    }
}

/// The value of a field as selectors compare it.
pub fn selectable_text(object: &Value, field: &str) -> String {
    match path_of(field).split('.').fold(object, |value, name| value.at(name)) {
        Value::String(text) => text.clone(),
        Value::Object(source) if field == "source" => match source.text("component") {
            "" => object.text("reportingComponent").to_owned(),
            component => component.to_owned(),
        },
        Value::Null if FLAGS.contains(&field) => "false".to_owned(),
        Value::Null if COUNTS.contains(&field) => "0".to_owned(),
        Value::Null | Value::Array(_) | Value::Object(_) => String::new(),
        scalar => scalar.to_string(),
    }
}

fn path_of(field: &str) -> &str {
    RENAMED.iter().find(|(name, _)| *name == field).map_or(field, |(_, path)| path)
}

/// Selectable fields that are called otherwise in the object.
const RENAMED: [(&str, &str); 1] = [("status.successful", "status.succeeded")];
/// Selectable fields that are no text, so that leaving them out is a value too.
const FLAGS: [&str; 2] = ["spec.hostNetwork", "spec.unschedulable"];
const COUNTS: [&str; 2] = ["status.replicas", "status.successful"];

/// Appends `"resourceVersion":"7",`.
fn write_resource_version(revision: Revision, out: &mut BytesMut) {
    write!(out.writer(), "\"resourceVersion\":\"{revision}\",").expect("memory can be written to");
}

/// The part of stored bytes that is JSON; none if they are cut short.
fn json_of(body: &[u8]) -> Option<&[u8]> {
    let Some((&WITH_OWNERS, rest)) = body.split_last() else { return Some(body) };
    let (rest, length) = rest.split_last_chunk::<LENGTH_BYTES>()?;
    let length = u32::from_le_bytes([length[0], length[1], length[2], 0]) as usize;
    rest.get(..rest.len().checked_sub(length)?)
}

/// The bytes to store for an object that has the owners of its fields in its metadata, if any.
pub fn encode(api_version: &str, kind: &str, object: &Map) -> Bytes {
    let owners = object.get("metadata").and_then(|metadata| metadata.get("managedFields"));
    encode_owned(api_version, kind, object, &Managers::decode(owners).unwrap_or_default())
}

/// The same for an object whose owners are known; those in its metadata do not count. The bytes are kept for as long as
/// the object lives, so they have no room to spare.
pub fn encode_owned(api_version: &str, kind: &str, object: &Map, owners: &Managers) -> Bytes {
    let mut out = Vec::with_capacity(4096);
    out.extend_from_slice(format!("{{\"kind\":\"{kind}\",\"apiVersion\":\"{api_version}\",\"metadata\":{{").as_bytes());
    let mut comma = false;
    for (name, value) in object.get("metadata").and_then(Value::as_object).into_iter().flatten() {
        if !matches!(name.as_str(), "resourceVersion" | "selfLink" | "managedFields") {
            write_field(&mut out, comma, name, value);
            comma = true;
        }
    }
    out.push(b'}');
    for (name, value) in object {
        if !matches!(name.as_str(), "kind" | "apiVersion" | "metadata") {
            write_field(&mut out, true, name, value);
        }
    }
    out.push(b'}');
    if !owners.is_empty() {
        let json = out.len();
        owners.pack(&mut out);
        let length = u32::try_from(out.len() - json).unwrap_or(u32::MAX).to_le_bytes();
        out.extend_from_slice(&length[..LENGTH_BYTES]);
        out.push(WITH_OWNERS);
    }
    Bytes::copy_from_slice(&out)
}

fn write_field(out: &mut Vec<u8>, comma: bool, name: &str, value: &Value) {
    if comma {
        out.push(b',');
    }
    serde_json::to_writer(&mut *out, name).expect("a string can be written as JSON");
    out.push(b':');
    serde_json::to_writer(&mut *out, value).expect("a JSON value can be written");
}

#[cfg(test)]
mod tests {
    use super::*;
    use object::json;

    fn stored(value: &Value) -> Object {
        let body = encode("v1", "ConfigMap", value.as_object().unwrap());
        Object::new(Bytes::from_static(b"configmaps/default/a"), Revision(7), body).unwrap()
    }

    #[test]
    fn the_resource_version_is_spliced_in_and_never_stored() {
        let object = stored(&json!({
            "metadata": { "name": "a", "resourceVersion": "3", "labels": { "x": "\"metadata\":{" } }, "data": { "k": "v" },
        }));
        assert!(!String::from_utf8_lossy(object.body()).contains("resourceVersion"));
        let expected = r#"{"kind":"ConfigMap","apiVersion":"v1","metadata":{"resourceVersion":"7","labels":{"x":"\"metadata\":{"},"name":"a"},"data":{"k":"v"}}"#;
        assert_eq!(object.to_bytes(), expected);
        let mut item = BytesMut::new();
        object.write_item(&mut item);
        assert_eq!(item, expected.replace(r#""kind":"ConfigMap","apiVersion":"v1","#, ""));
        assert_eq!(object.decode(), serde_json::from_str::<Value>(expected).unwrap());
        assert_eq!((object.namespace(), object.name()), ("default", "a"));
        assert_eq!(object.at(Revision(9)).decode()["metadata"]["resourceVersion"], "9");
    }

    #[test]
    fn owners_are_kept_beside_the_object_and_spliced_in() {
        let value = json!({
            "kind": "ConfigMap", "apiVersion": "v1", "data": { "k": "v" },
            "metadata": { "name": "a", "resourceVersion": "7", "managedFields": [{
                "manager": "me", "operation": "Update", "apiVersion": "v1", "time": "2026-01-02T03:04:05Z",
                "fieldsType": "FieldsV1", "fieldsV1": { "f:data": { ".": {}, "f:k": {} } },
            }] },
        });
        let object = stored(&value);
        assert!(!object.json().windows(9).any(|piece| piece == b"managedFi"));
        assert_eq!(object.decode(), value);
        assert_eq!(serde_json::from_slice::<Value>(&object.to_bytes()).unwrap(), value);
        assert_eq!(Some(object.managers().encode().unwrap()), value.pointer("/metadata/managedFields").cloned());
        assert!(!object.tree()["metadata"].has("managedFields"));
        // As objects with owners in their metadata were once stored.
        let mut inline = value.clone();
        inline.object_or_new("metadata").remove("resourceVersion");
        let inline = Object::new(object.key.clone(), object.revision, Bytes::from(inline.to_string())).unwrap();
        assert_eq!(inline.decode(), value);
        // What is damaged is left out, and the object is there all the same.
        let mut damaged = object.body().to_vec();
        let at = object.json().len();
        damaged[at + 1..at + 3].fill(255);
        let damaged = Object::new(object.key.clone(), object.revision, Bytes::from(damaged)).unwrap();
        assert_eq!(damaged.decode(), object.tree());
        assert_eq!(serde_json::from_slice::<Value>(&damaged.to_bytes()).unwrap(), object.tree());
        let cut = object.body().slice(object.json().len() + 3..);
        assert!(Object::new(object.key.clone(), object.revision, cut).is_err());
    }

    #[test]
    fn what_is_no_object_is_refused() {
        for bytes in ["", "{}", "nonsense", "\u{1}", "{\"kind\":\"A\"}"] {
            assert!(Object::new(Bytes::from_static(b"a/b"), Revision(1), Bytes::from(bytes)).is_err(), "{bytes}");
        }
    }
}
