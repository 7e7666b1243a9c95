//! An object as it is stored and handed around: its bytes, and the little that is looked up often.
//!
//! The bytes are JSON, serialized once when the object is written. They start with kind, version and metadata, and
//! leave out the resource version, which only the commit decides. Whoever sends an object splices the version in; so
//! lists and watch events copy bytes and encode nothing.

use crate::{Resource, pruned};
use bytes::{BufMut, Bytes, BytesMut};
use object::{Map, Value, View};
use std::io::Write;
use std::sync::{Arc, OnceLock};
use store::Revision;

#[derive(Debug)]
pub struct Object {
    /// The key in the store: `pods/default/web`.
    pub key: Bytes,
    /// The resource version.
    pub revision: Revision,
    /// JSON without the resource version.
    body: Bytes,
    /// Where `"metadata":{` starts and ends in the body.
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

impl Object {
    pub fn new(key: Bytes, revision: Revision, body: Bytes) -> Result<Self, Unreadable> {
        let head = &body[..body.len().min(MAX_METADATA_OFFSET)];
        let found = head.windows(METADATA.len()).position(|window| window == METADATA);
        let unreadable =
            || Unreadable { key: String::from_utf8_lossy(&key).into_owned(), why: "no metadata".to_owned() };
        let start = u16::try_from(found.ok_or_else(unreadable)?).map_err(|_| unreadable())?;
        let end = start + METADATA.len() as u16;
        Ok(Object { key, revision, body, metadata: (start, end), facets: OnceLock::new(), decoded: OnceLock::new() })
    }

    /// The same object at another revision: what a deletion shows.
    pub fn at(&self, revision: Revision) -> Self {
        Object {
            key: self.key.clone(),
            revision,
            body: self.body.clone(),
            metadata: self.metadata,
            facets: OnceLock::new(),
            decoded: OnceLock::new(),
        }
    }

    pub fn body(&self) -> &Bytes {
        &self.body
    }

    pub fn len(&self) -> usize {
        self.body.len()
    }

    pub fn is_empty(&self) -> bool {
        self.body.is_empty()
    }

    /// Appends the JSON, resource version included.
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
        out.reserve(self.body.len() + 48);
        out.put_slice(&self.body[usize::from(start)..end]);
        write_resource_version(self.revision, out);
        out.put_slice(&self.body[end..]);
    }

    pub fn to_bytes(&self) -> Bytes {
        let mut out = BytesMut::with_capacity(self.body.len() + 48);
        self.write(&mut out);
        out.freeze()
    }

    /// The object as a tree, resource version included.
    pub fn decode(&self) -> Value {
        let mut value: Value = serde_json::from_slice(&self.body).unwrap_or_default();
        if let Some(metadata) = value.get_mut("metadata").and_then(Value::as_object_mut) {
            metadata.insert("resourceVersion", Value::from(self.revision.to_string()));
        }
        value
    }

    /// The same tree, kept for the next who asks: for what is looked at with every request, such as a service account.
    /// It is much larger than the bytes, so this is not for objects of which there are many.
    pub fn shared(&self) -> Arc<Value> {
        self.decoded.get_or_init(|| Arc::new(self.decode())).clone()
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
            Facets::of(resource, &pruned::read(&self.body, &paths))
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

/// The bytes to store for an object. They are kept for as long as the object lives, so they have no room to spare.
pub fn encode(api_version: &str, kind: &str, object: &Map) -> Bytes {
    let managed = object.get("metadata").and_then(|metadata| metadata.get("managedFields"));
    encode_managed(api_version, kind, object, managed.map(Value::to_string).as_deref())
}

/// The same for an object whose managed fields are already written as JSON; those in its metadata do not count.
pub fn encode_managed(api_version: &str, kind: &str, object: &Map, managed: Option<&str>) -> Bytes {
    let mut out = Vec::with_capacity(4096);
    out.extend_from_slice(format!("{{\"kind\":\"{kind}\",\"apiVersion\":\"{api_version}\",\"metadata\":{{").as_bytes());
    let mut comma = false;
    for (name, value) in object.get("metadata").and_then(Value::as_object).into_iter().flatten() {
        if !matches!(name.as_str(), "resourceVersion" | "selfLink" | "managedFields") {
            write_field(&mut out, comma, name, value);
            comma = true;
        }
    }
    if let Some(managed) = managed {
        out.extend_from_slice(if comma { b",\"managedFields\":" } else { b"\"managedFields\":" });
        out.extend_from_slice(managed.as_bytes());
    }
    out.push(b'}');
    for (name, value) in object {
        if !matches!(name.as_str(), "kind" | "apiVersion" | "metadata") {
            write_field(&mut out, true, name, value);
        }
    }
    out.push(b'}');
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
    fn what_is_no_object_is_refused() {
        for bytes in ["", "{}", "nonsense", "{\"kind\":\"A\"}"] {
            assert!(Object::new(Bytes::from_static(b"a/b"), Revision(1), Bytes::from(bytes)).is_err(), "{bytes}");
        }
    }
}
