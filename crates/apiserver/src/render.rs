//! Answers: objects, lists and errors in the representation that the client asked for.

use crate::body::Body;
use crate::media::{Accept, Format, Guise};
use crate::table;
use bytes::{BufMut, Bytes, BytesMut};
use http::{Response, StatusCode, header};
use object::{ApiError, Edit, Map, Value, View, json};
use registry::print::Printer;
use registry::{Object, Resource};
use schema::protobuf;
use std::sync::Arc;
use store::Revision;

/// Frames of streamed lists are about this long: long enough that their overhead does not matter.
const FRAME_BYTES: usize = 64 << 10;

/// What a request wants to see, and of what.
#[derive(Clone, Debug)]
pub(crate) struct Viewer {
    pub accept: Accept,
    /// The version that was asked for.
    pub resource: Arc<Resource>,
    /// What table rows carry of their objects.
    pub include: table::Include,
    /// Wall time in seconds, for ages.
    pub now: i64,
    pub pretty: bool,
}

/// Some objects of a resource, in the order of their keys.
#[derive(Debug)]
pub(crate) struct Page {
    pub revision: Revision,
    pub items: Vec<Arc<Object>>,
    /// Where the next page starts, if there is one.
    pub token: Option<String>,
    pub remaining: Option<u64>,
}

impl Viewer {
    fn is_native(&self) -> bool {
        self.accept == Accept::JSON && !self.pretty && !self.is_converted()
    }

    /// Whether the version asked for is not the one that is stored.
    pub(crate) fn is_converted(&self) -> bool {
        self.resource.is_converted()
    }

    /// The object in the version that was asked for.
    pub(crate) fn decode(&self, object: &Object) -> Value {
        let mut value = object.decode();
        self.serve(&mut value);
        value
    }

    /// Turns a value of the stored version into one of the version that was asked for.
    pub(crate) fn serve(&self, value: &mut Value) {
        if self.is_converted() {
            self.resource.to_served(value);
        }
    }

    pub(crate) fn object(&self, code: StatusCode, object: &Object) -> Response<Body> {
        if self.is_native() {
            return json_response(code, object.to_bytes());
        }
        self.value(code, self.decode(object))
    }

    /// An object that is in no store, or not yet: it has been converted already.
    pub(crate) fn value(&self, code: StatusCode, value: Value) -> Response<Body> {
        self.value_printed_by(self.resource.printer, code, value)
    }

    /// The same for what is not of the resource's own kind.
    pub(crate) fn value_printed_by(&self, printer: &Printer, code: StatusCode, value: Value) -> Response<Body> {
        match self.accept.guise {
            Guise::Itself => respond(self.accept.format, code, &value, self.pretty),
            Guise::Metadata => respond(self.accept.format, code, &partial(self.accept.meta, &value), self.pretty),
            Guise::Table => {
                let revision = value.at("metadata").text("resourceVersion").to_owned();
                let metadata = json!({ "resourceVersion": revision });
                let table = table::table(self.accept.meta, printer, &metadata, [value], self.include, self.now, true);
                respond(self.accept.format, code, &table, self.pretty)
            }
        }
    }

    pub(crate) fn list(&self, page: Page, is_custom: bool) -> Response<Body> {
        if self.is_native() && !is_custom {
            return self.native_list(page);
        }
        let metadata = page.metadata();
        let items = page.items.iter().map(|object| self.decode(object));
        let value = match self.accept.guise {
            Guise::Itself => {
                let items: Vec<Value> = items.map(|item| if is_custom { item } else { without_type(item) }).collect();
                json!({
                    "kind": format!("{}List", self.resource.kind), "apiVersion": self.resource.api_version(),
                    "metadata": metadata, "items": items,
                })
            }
            Guise::Metadata => {
                let items: Vec<Value> = items.map(|item| without_type(partial(self.accept.meta, &item))).collect();
                json!({
                    "kind": "PartialObjectMetadataList", "apiVersion": self.accept.meta,
                    "metadata": metadata, "items": items,
                })
            }
            Guise::Table => {
                let printer = self.resource.printer;
                table::table(self.accept.meta, printer, &metadata, items, self.include, self.now, true)
            }
        };
        respond(self.accept.format, StatusCode::OK, &value, self.pretty)
    }

    /// Splices stored bytes, frame by frame, as fast as the client takes them.
    fn native_list(&self, page: Page) -> Response<Body> {
        let head = format!(
            "{{\"kind\":\"{}List\",\"apiVersion\":\"{}\",\"metadata\":{},\"items\":[",
            self.resource.kind,
            self.resource.api_version(),
            page.metadata()
        );
        // One buffer for all frames: once a frame has been sent, its memory is used for the next but one.
        let mut out = BytesMut::with_capacity(FRAME_BYTES * 2);
        out.put_slice(head.as_bytes());
        let mut written = 0;
        let mut frame = move || -> Option<Bytes> {
            out.reserve(FRAME_BYTES);
            while out.len() < FRAME_BYTES {
                match page.items.get(written) {
                    Some(object) => {
                        if written > 0 {
                            out.put_u8(b',');
                        }
                        object.write_item(&mut out);
                    }
                    None if written == page.items.len() => out.put_slice(b"]}\n"),
                    None => break,
                }
                written += 1;
            }
            (!out.is_empty()).then(|| out.split().freeze())
        };
        let first = frame().unwrap_or_default();
        if first.ends_with(b"]}\n") && first.len() < FRAME_BYTES {
            return json_response(StatusCode::OK, first);
        }
        let rest = std::iter::from_fn(frame);
        let frames = futures::stream::iter(std::iter::once(first).chain(rest));
        response(StatusCode::OK, Format::Json.content_type(), Body::stream(frames))
    }
}

impl Page {
    fn metadata(&self) -> Value {
        let mut metadata = json!({ "resourceVersion": self.revision.to_string() });
        if let Some(token) = &self.token {
            metadata.set("continue", token.as_str());
        }
        if let Some(remaining) = self.remaining {
            metadata.set("remainingItemCount", remaining);
        }
        metadata
    }
}

/// Metadata only, in a version of metadata.
pub(crate) fn partial(version: &str, value: &Value) -> Value {
    json!({
        "kind": "PartialObjectMetadata", "apiVersion": version, "metadata": value.at("metadata").clone(),
    })
}

/// Items of a list leave out what the list says.
fn without_type(mut value: Value) -> Value {
    value.remove("kind");
    value.remove("apiVersion");
    value
}

/// Any value that names its kind.
pub(crate) fn respond(format: Format, code: StatusCode, value: &Value, pretty: bool) -> Response<Body> {
    match encode(format, value, pretty) {
        Ok(bytes) => response(code, format.content_type(), Body::whole(bytes)),
        Err(error) => respond(Format::Json, StatusCode::INTERNAL_SERVER_ERROR, &error.to_status(), false),
    }
}

pub(crate) fn encode(format: Format, value: &Value, pretty: bool) -> Result<Bytes, ApiError> {
    let text = match format {
        Format::Json if pretty => serde_json::to_vec_pretty(value).map_err(ApiError::internal)?,
        Format::Json => serde_json::to_vec(value).map_err(ApiError::internal)?,
        Format::Yaml => serde_saphyr::to_string(value).map_err(ApiError::internal)?.into_bytes(),
        Format::Protobuf => {
            let node = schema_type(value.text("apiVersion"), value.text("kind"));
            let node = node.ok_or_else(|| {
                let message = "the object has no protobuf representation, ask for JSON";
                ApiError::new(object::Reason::NotAcceptable, message)
            })?;
            protobuf::encode(schema::builtin(), node, value).map_err(ApiError::internal)?
        }
    };
    Ok(text.into())
}

/// The built-in type of a kind.
pub(crate) fn schema_type(api_version: &str, kind: &str) -> Option<schema::NodeId> {
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    let package = match group.split('.').next().unwrap_or_default() {
        "" if kind == "Status" || kind.starts_with("API") => "meta",
        "" => "core",
        package => package,
    };
    // The older version of metadata has the same fields.
    let version = if package == "meta" { "v1" } else { version };
    schema::builtin().named(&format!("{package}.{version}.{kind}"))
}

pub(crate) fn error(format: Format, error: &ApiError) -> Response<Body> {
    let code = StatusCode::from_u16(error.code()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let mut response = respond(format, code, &error.to_status(), false);
    if let Some(seconds) = error.retry_after_seconds() {
        response.headers_mut().insert(header::RETRY_AFTER, seconds.into());
    }
    response
}

/// `Success`, as deletions answer.
pub(crate) fn success(resource: &Resource, name: &str, uid: &str) -> Value {
    let mut details = Map::new();
    for (field, value) in [("name", name), ("group", &resource.group), ("kind", &resource.plural), ("uid", uid)] {
        if !value.is_empty() {
            details.insert(field.to_owned(), value.into());
        }
    }
    json!({ "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details })
}

pub(crate) fn json_response(code: StatusCode, bytes: Bytes) -> Response<Body> {
    response(code, Format::Json.content_type(), Body::whole(bytes))
}

pub(crate) fn text(code: StatusCode, text: impl Into<Bytes>) -> Response<Body> {
    response(code, "text/plain; charset=utf-8", Body::whole(text))
}

pub(crate) fn response(code: StatusCode, content_type: &'static str, body: Body) -> Response<Body> {
    let mut response = Response::new(body);
    *response.status_mut() = code;
    response.headers_mut().insert(header::CONTENT_TYPE, http::HeaderValue::from_static(content_type));
    response.headers_mut().insert(header::CACHE_CONTROL, http::HeaderValue::from_static("no-cache, private"));
    response
}
