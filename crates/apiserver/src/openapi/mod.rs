//! OpenAPI: what is served at which URL, and of which types, for `kubectl explain`, validation, `apply` and generators.
//!
//! `/openapi/v2` is one document of everything, in JSON or in the binary form that clients in Go ask for.
//! `/openapi/v3` lists documents, one for each version of each group and for each other URL, with a hash in their
//! addresses; a client may keep what it got at such an address for good.

mod cache;
mod draft;
mod gnostic;
mod operation;
mod parameters;
mod paths;
mod sections;
#[cfg(test)]
mod tests;
mod types;
mod v2;
mod v3;

pub(crate) use cache::Documents;

use crate::api::Api;
use crate::body::Body;
use crate::pipeline::{not_served, text};
use crate::request::Query;
use crate::{compress, other, render};
use draft::{Packed, Written};
use http::{HeaderMap, HeaderValue, Response, StatusCode, header};
use object::{ApiError, Map, Reason, Value, json};

const JSON: &str = "application/json";
/// What clients ask for; the at sign is no part of a media type, so it is answered with a dot in its place.
const PROTOBUF: &str = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf";
const PROTOBUF_AS_ASKED: &str = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf";

/// How long a client may keep what it got at an address with a hash.
const KEPT_SECONDS: i64 = 365 * 24 * 60 * 60;

/// Answers `/openapi/v2`.
pub(crate) async fn serve_v2(api: &Api, headers: &HeaderMap) -> Result<Response<Body>, ApiError> {
    let offers = [(JSON, JSON), (PROTOBUF, PROTOBUF), (PROTOBUF_AS_ASKED, PROTOBUF)];
    let content_type = negotiate(headers, &offers)?;
    let document = api.documents.whole(api).await?;
    let written = &document.written;
    let packed = if content_type == PROTOBUF { &written.protobuf } else { &written.json };
    answer(headers, content_type, written, packed)
}

/// Answers `/openapi/v3`.
pub(crate) async fn serve_index(api: &Api, headers: &HeaderMap) -> Result<Response<Body>, ApiError> {
    let mut paths = Map::new();
    for (path, document) in api.documents.sections(api).await? {
        let address = address(&path, &document.written.tag);
        paths.insert(path, json!({ "serverRelativeURL": address }));
    }
    let index = json!({ "paths": paths }).to_string();
    Ok(other::tagged(headers, JSON, index.into()))
}

/// Answers `/openapi/v3/...`.
pub(crate) async fn serve_section(
    api: &Api,
    path: &str,
    query: &Query,
    headers: &HeaderMap,
) -> Result<Response<Body>, ApiError> {
    let content_type = negotiate(headers, &[(JSON, JSON)])?;
    let document = api.documents.section(api, path).await?.ok_or_else(not_served)?;
    let written = &document.written;
    match query.get("hash") {
        None => answer(headers, content_type, written, &written.json),
        Some(hash) if hash == written.tag => {
            let mut response = answer(headers, content_type, written, &written.json)?;
            let now = i64::try_from(api.ambient.clock.wall().0 / 1000).unwrap_or(i64::MAX);
            let expires = object::time::format_http(now.saturating_add(KEPT_SECONDS)).unwrap_or_default();
            set(&mut response, header::CACHE_CONTROL, "public, immutable")?;
            set(&mut response, header::EXPIRES, &expires)?;
            Ok(response)
        }
        Some(_) => {
            let mut response = render::text(StatusCode::MOVED_PERMANENTLY, "");
            set(&mut response, header::LOCATION, &address(path, &written.tag))?;
            Ok(response)
        }
    }
}

/// Where a client finds the document of a path, as long as it is this one.
fn address(path: &str, tag: &str) -> String {
    format!("/openapi/v3/{path}?hash={tag}")
}

/// The document, or that the client has it already.
fn answer(
    headers: &HeaderMap,
    content_type: &'static str,
    written: &Written,
    packed: &Packed,
) -> Result<Response<Body>, ApiError> {
    let mut response = match (other::is_known(headers, &written.tag), compress::accepts_gzip(headers)) {
        (true, _) => render::response(StatusCode::NOT_MODIFIED, content_type, Body::empty()),
        (false, true) => {
            let mut response = render::response(StatusCode::OK, content_type, Body::whole(packed.compressed()));
            set(&mut response, header::CONTENT_ENCODING, "gzip")?;
            response
        }
        (false, false) => {
            let bytes = packed.unpack().map_err(ApiError::internal)?;
            render::response(StatusCode::OK, content_type, Body::whole(bytes))
        }
    };
    set(&mut response, header::ETAG, &format!("\"{}\"", written.tag))?;
    set(&mut response, header::VARY, "Accept, Accept-Encoding")?;
    Ok(response)
}

fn set(response: &mut Response<Body>, name: header::HeaderName, value: &str) -> Result<(), ApiError> {
    let value = HeaderValue::from_str(value).map_err(ApiError::internal)?;
    response.headers_mut().insert(name, value);
    Ok(())
}

/// The first of the media types that a client accepts which is offered; offers are (as asked for, as answered).
fn negotiate(headers: &HeaderMap, offers: &[(&str, &'static str)]) -> Result<&'static str, ApiError> {
    let accept = text(headers, header::ACCEPT).filter(|accept| !accept.is_empty()).unwrap_or("*/*");
    let mut wanted: Vec<(f32, &str)> = accept.split(',').map(wanted).collect();
    wanted.sort_by(|(a, _), (b, _)| b.total_cmp(a));
    let offered = |media: &str| {
        let fits = |asked: &str| media == asked || media == "*/*" || media == "application/*";
        offers.iter().find(|(asked, _)| fits(asked)).map(|(_, answered)| *answered)
    };
    wanted.into_iter().filter(|(weight, _)| *weight > 0.0).find_map(|(_, media)| offered(media)).ok_or_else(|| {
        let names: Vec<&str> = offers.iter().map(|(asked, _)| *asked).collect();
        let message = format!("only the following media types are accepted: {}", names.join(", "));
        ApiError::new(Reason::NotAcceptable, message)
    })
}

/// A media type, without its parameters, and how much it is wanted.
fn wanted(clause: &str) -> (f32, &str) {
    let mut parts = clause.split(';').map(str::trim);
    let media = parts.next().unwrap_or_default();
    let weight = parts.find_map(|parameter| parameter.strip_prefix("q="));
    (weight.map_or(1.0, |weight| weight.parse().unwrap_or(0.0)), media)
}

fn info() -> Value {
    json!({ "title": "Kubernetes", "version": other::version()["gitVersion"] })
}

fn security_schemes() -> Value {
    json!({
        "BearerToken": {
            "type": "apiKey", "name": "authorization", "in": "header", "description": "A token, after the word Bearer.",
        },
    })
}

/// What an operation does, in Kubernetes' words.
fn add_extensions(described: &mut Value, operation: &operation::Operation) {
    if let Some(action) = operation.action {
        described["x-kubernetes-action"] = json!(action);
    }
    if let Some(kind) = &operation.kind {
        described["x-kubernetes-group-version-kind"] = kind.to_value();
    }
}

/// What a status code means.
fn meaning(code: u16) -> &'static str {
    StatusCode::from_u16(code).ok().and_then(|code| code.canonical_reason()).unwrap_or_default()
}
