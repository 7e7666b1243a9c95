//! Everything that is no resource: discovery, health, version, metrics, OpenAPI.

use crate::api::Api;
use crate::body::Body;
use crate::media::Format;
use crate::pipeline::{not_served, text};
use crate::request::{Info, Query};
use crate::{openapi, render};
use authz::User;
use http::{HeaderMap, HeaderValue, Response, StatusCode, header};
use object::{ApiError, Value, json};
use registry::discovery;
use std::sync::Arc;

/// The version of the API that clients take this for.
pub(crate) const API_VERSION: (&str, &str) = ("1", "36");

pub(crate) async fn serve(
    api: &Api,
    info: &Info,
    query: &Query,
    headers: &HeaderMap,
    _user: &User,
) -> Result<Response<Body>, ApiError> {
    let segments: Vec<&str> = info.path.split('/').filter(|segment| !segment.is_empty()).collect();
    let resources = api.registry.resources();
    let rows = resources.rows();
    match segments.as_slice() {
        [] => Ok(json_answer(&json!({ "paths": paths(rows, api.debug.topics()) }))),
        ["version"] => Ok(json_answer(&version())),
        ["api"] if wants_aggregated(headers) => Ok(aggregated(api, rows, true, headers)),
        ["apis"] if wants_aggregated(headers) => Ok(aggregated(api, rows, false, headers)),
        ["api"] => Ok(negotiated(headers, &discovery::core_versions(&api.address))),
        ["apis"] => Ok(negotiated(headers, &discovery::groups(rows))),
        ["api", version] if resources.has_version("", version) => {
            Ok(negotiated(headers, &discovery::resources(rows, version)))
        }
        ["apis", group] if resources.has_group(group) && !group.is_empty() => {
            let mut value = discovery::group(rows, group);
            value["kind"] = json!("APIGroup");
            value["apiVersion"] = json!("v1");
            Ok(negotiated(headers, &value))
        }
        ["apis", group, version] if resources.has_version(group, version) => {
            Ok(negotiated(headers, &discovery::resources(rows, &format!("{group}/{version}"))))
        }
        [check @ ("healthz" | "livez" | "readyz"), rest @ ..] => Ok(health(api, check, rest, query).await),
        [".well-known", "openid-configuration"] => Ok(json_answer(&json!({
            "issuer": crate::authn::ISSUER, "jwks_uri": format!("https://{}/openid/v1/jwks", api.address),
            "response_types_supported": ["id_token"], "subject_types_supported": ["public"],
            "id_token_signing_alg_values_supported": ["ES256"],
        }))),
        ["openid", "v1", "jwks"] => {
            let keys = api.authentication.key.key_set().to_string();
            Ok(render::response(StatusCode::OK, "application/jwk-set+json", Body::whole(keys)))
        }
        ["openapi", "v2"] => openapi::serve_v2(api, headers).await,
        ["openapi", "v3"] => openapi::serve_index(api, headers).await,
        ["openapi", "v3", path @ ..] => openapi::serve_section(api, &path.join("/"), query, headers).await,
        ["metrics"] => {
            let status = api.registry.store.status().await;
            let bytes = status.map_or(0, |status| status.disk_bytes.max(status.live_bytes));
            let text = api.metrics.text(&api.registry.cache.counts(), bytes);
            Ok(render::response(StatusCode::OK, "text/plain; version=0.0.4; charset=utf-8", Body::whole(text)))
        }
        ["debug", "api_priority_and_fairness", "dump_priority_levels"] => {
            Ok(render::text(StatusCode::OK, api.flow.dump_levels()))
        }
        ["debug", topic, path @ ..] => match api.debug.answer(topic, path).await {
            // For people to read.
            Some(answer) => Ok(render::respond(Format::Json, StatusCode::OK, &answer?, true)),
            None => Err(not_served()),
        },
        _ => Err(not_served()),
    }
}

pub(crate) fn version() -> Value {
    let (major, minor) = API_VERSION;
    json!({
        "major": major, "minor": minor, "gitVersion": format!("v{major}.{minor}.0+setpoint"), "gitCommit": "",
        "gitTreeState": "clean", "buildDate": "1970-01-01T00:00:00Z", "goVersion": "none", "compiler": "rustc",
        "platform": format!("{}/{}", std::env::consts::OS, match std::env::consts::ARCH { "x86_64" => "amd64", "aarch64" => "arm64", other => other }),
    })
}

fn json_answer(value: &Value) -> Response<Body> {
    render::respond(Format::Json, StatusCode::OK, value, false)
}

/// JSON, YAML or, where the kind has one, the binary form.
fn negotiated(headers: &HeaderMap, value: &Value) -> Response<Body> {
    let format = crate::media::accept(text(headers, header::ACCEPT), true).map_or(Format::Json, |accept| accept.format);
    match render::encode(format, value, false) {
        Ok(bytes) => render::response(StatusCode::OK, format.content_type(), Body::whole(bytes)),
        Err(_) => json_answer(value),
    }
}

fn wants_aggregated(headers: &HeaderMap) -> bool {
    let accept = text(headers, header::ACCEPT).unwrap_or_default();
    accept.split(',').any(|offer| {
        let parameters: Vec<&str> = offer.split(';').map(str::trim).collect();
        parameters.first() == Some(&"application/json")
            && ["g=apidiscovery.k8s.io", "v=v2", "as=APIGroupDiscoveryList"]
                .iter()
                .all(|wanted| parameters.contains(wanted))
    })
}

fn aggregated(api: &Api, rows: &[Arc<registry::Resource>], core: bool, headers: &HeaderMap) -> Response<Body> {
    let document = api.aggregated.document(rows, core);
    let content_type = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
    tagged_as(headers, content_type, document.json, &document.tag)
}

/// A document that clients keep: it is sent only if theirs is another one.
pub(crate) fn tagged(headers: &HeaderMap, content_type: &'static str, document: bytes::Bytes) -> Response<Body> {
    let tag = digest(&document);
    tagged_as(headers, content_type, document, &tag)
}

fn tagged_as(headers: &HeaderMap, content_type: &'static str, document: bytes::Bytes, tag: &str) -> Response<Body> {
    let mut response = match is_known(headers, tag) {
        true => render::response(StatusCode::NOT_MODIFIED, content_type, Body::empty()),
        false => render::response(StatusCode::OK, content_type, Body::whole(document)),
    };
    if let Ok(tag) = HeaderValue::from_str(&format!("\"{tag}\"")) {
        response.headers_mut().insert(header::ETAG, tag);
    }
    response.headers_mut().insert(header::VARY, HeaderValue::from_static("Accept"));
    response
}

/// Whether the client has the document of this name.
pub(crate) fn is_known(headers: &HeaderMap, tag: &str) -> bool {
    let known = text(headers, header::IF_NONE_MATCH).unwrap_or_default();
    known.split(',').map(|known| known.trim().trim_start_matches("W/").trim_matches('"')).any(|known| known == tag)
}

/// A name for the content of a document: SHA-512, in upper case hexadecimal, as Kubernetes writes it.
pub(crate) fn digest(document: &[u8]) -> String {
    let digest = aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA512, document);
    digest.as_ref().iter().map(|byte| format!("{byte:02X}")).collect()
}

fn paths(rows: &[Arc<registry::Resource>], topics: Vec<String>) -> Vec<String> {
    let mut paths: Vec<String> =
        ["/api", "/apis", "/healthz", "/livez", "/metrics", "/openapi/v2", "/openapi/v3", "/readyz", "/version"]
            .map(str::to_owned)
            .into();
    paths.extend(topics);
    for row in rows {
        match row.group.as_ref() {
            "" => paths.push(format!("/api/{}", row.version)),
            group => paths.extend([format!("/apis/{group}"), format!("/apis/{group}/{}", row.version)]),
        }
    }
    paths.sort();
    paths.dedup();
    paths
}

/// The checks behind the health endpoints, by name.
async fn health(api: &Api, endpoint: &str, rest: &[&str], query: &Query) -> Response<Body> {
    let store = api.registry.store.status().await.map(|_| ()).map_err(|error| error.to_string());
    let stopping = match api.ambient.tasks.is_stopping() {
        true => Err("the server is stopping".to_owned()),
        false => Ok(()),
    };
    let mut checks = vec![("ping", Ok(())), ("log", Ok(())), ("etcd", store)];
    if endpoint == "readyz" {
        checks.extend([("informer-sync", Ok(())), ("shutdown", stopping)]);
    }
    if let [name] = rest {
        let Some((_, result)) = checks.iter().find(|(check, _)| check == name) else {
            return render::text(StatusCode::NOT_FOUND, "404 page not found\n");
        };
        return match result {
            Ok(()) => render::text(StatusCode::OK, "ok"),
            Err(why) => render::text(StatusCode::INTERNAL_SERVER_ERROR, format!("internal server error: {why}\n")),
        };
    }
    let excluded: Vec<&str> = query.all("exclude").collect();
    let mut report = String::new();
    let mut healthy = true;
    for (name, result) in &checks {
        let line = match result {
            _ if excluded.contains(name) => format!("[+]{name} excluded: ok\n"),
            Ok(()) => format!("[+]{name} ok\n"),
            Err(_) => {
                healthy = false;
                format!("[-]{name} failed: reason withheld\n")
            }
        };
        report.push_str(&line);
    }
    match (healthy, query.has("verbose")) {
        (true, false) => render::text(StatusCode::OK, "ok"),
        (true, true) => render::text(StatusCode::OK, format!("{report}{endpoint} check passed\n")),
        (false, _) => render::text(StatusCode::INTERNAL_SERVER_ERROR, format!("{report}{endpoint} check failed\n")),
    }
}
