//! Reads of what is not there, not yet there, or not to be seen.

use super::row::{CONFIG_MAPS, Row, row};
use bytes::Bytes;
use http::{HeaderName, Method, Request, header};
use testkit::https::{get, with_body};

pub(crate) fn rows() -> Vec<Row> {
    let list = |query: &str| get(&format!("{CONFIG_MAPS}?{query}"));
    vec![
        row("a continuation that is none", list("limit=1&continue=nonsense"), 400, "continue key is not valid"),
        row("a version that is none", list("resourceVersion=nonsense"), 400, "nonsense"),
        row("a version to come", list("resourceVersion=999999999"), 504, "ResourceVersionTooLarge"),
        row("a selector that is none", list("labelSelector=a%20in"), 400, ""),
        row(
            "a field that cannot be selected by",
            list("fieldSelector=data.a%3Db"),
            400,
            "is not a known field selector",
        ),
        row("a limit that is none", list("limit=many"), 400, ""),
        row("a match without a version", list("resourceVersionMatch=Exact"), 422, "resourceVersionMatch is forbidden"),
        row("what does not exist", get(&format!("{CONFIG_MAPS}/nobody")), 404, "configmaps \\\"nobody\\\" not found"),
        row("a resource that does not exist", get("/api/v1/unicorns"), 404, "could not find the requested resource"),
        row("a group that does not exist", get("/apis/example.com/v1/unicorns"), 404, ""),
        row("a path that leads out", get("/api/v1/namespaces/default/configmaps/..%2f..%2fsecrets"), 404, ""),
        row("a method that does not exist", with_body(Method::TRACE, CONFIG_MAPS, "", ""), 405, ""),
        row(
            "a method that is not for this",
            with_body(Method::POST, &format!("{CONFIG_MAPS}/there"), "application/json", "{}"),
            405,
            "",
        ),
        row(
            "a shell in a pod, for one who may only look",
            as_visitor(web_socket("/api/v1/namespaces/default/pods/web/exec?command=sh")),
            403,
            "cannot create resource \\\"pods/exec\\\"",
        ),
        row(
            "something that only others may see",
            as_visitor(get("/api/v1/secrets")),
            403,
            "cannot list resource \\\"secrets\\\"",
        ),
    ]
}

fn with_header(mut request: Request<Bytes>, name: HeaderName, value: &str) -> Request<Bytes> {
    request.headers_mut().insert(name, value.parse().expect("a header's value"));
    request
}

fn as_visitor(request: Request<Bytes>) -> Request<Bytes> {
    with_header(request, HeaderName::from_static("impersonate-user"), "visitor")
}

fn web_socket(path: &str) -> Request<Bytes> {
    let request = with_header(get(path), header::CONNECTION, "Upgrade");
    let request = with_header(request, header::UPGRADE, "websocket");
    let request = with_header(request, header::SEC_WEBSOCKET_VERSION, "13");
    let request = with_header(request, header::SEC_WEBSOCKET_KEY, "dGhlIHNhbXBsZSBub25jZQ==");
    with_header(request, header::SEC_WEBSOCKET_PROTOCOL, "v5.channel.k8s.io")
}
