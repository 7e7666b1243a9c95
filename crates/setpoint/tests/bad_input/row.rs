//! One request and the answer it must get, however many send it at once.

use bytes::Bytes;
use futures::future::join_all;
use http::{Method, Request};
use object::{Value, json};
use testkit::https::{Answer, with_body};
use testkit::server::Server;

/// So many connections send each request at once.
const CONNECTIONS: usize = 10;

pub(crate) const CONFIG_MAPS: &str = "/api/v1/namespaces/default/configmaps";

#[derive(Debug)]
pub(crate) struct Row {
    pub(crate) what: &'static str,
    pub(crate) request: Request<Bytes>,
    pub(crate) status: u16,
    /// What is in the body, or in a header.
    pub(crate) says: &'static str,
}

pub(crate) fn row(what: &'static str, request: Request<Bytes>, status: u16, says: &'static str) -> Row {
    Row { what, request, status, says }
}

pub(crate) fn config_map(name: &str) -> Value {
    json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": name } })
}

pub(crate) fn json_body(method: Method, path: &str, body: impl Into<Bytes>) -> Request<Bytes> {
    with_body(method, path, "application/json", body)
}

/// A creation that would not be stored, so that each of many has the same answer.
pub(crate) fn dry_run(body: &Value) -> Request<Bytes> {
    json_body(Method::POST, &format!("{CONFIG_MAPS}?dryRun=All"), body.to_string())
}

/// Sends each row over many connections at once and looks at every answer; the server still serves after each.
pub(crate) async fn check(server: &Server, rows: Vec<Row>) {
    let client = server.client();
    let mut wrong = Vec::new();
    for Row { what, request, status, says } in rows {
        let answers = join_all((0..CONNECTIONS).map(|_| client.send(request.clone()))).await;
        let is_wrong = |answer: &&Answer| answer.status != status || !text(answer).contains(says);
        if let Some(answer) = answers.iter().find(is_wrong) {
            let text: String = text(answer).chars().take(500).collect();
            wrong.push(format!("{what}: expected {status} and {says:?}, got {} {text}", answer.status));
        }
        let after = client.get(&format!("{CONFIG_MAPS}/there")).await;
        assert_eq!(after.status, 200, "the server no longer serves after: {what}");
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

fn text(answer: &Answer) -> String {
    format!("{} {}", String::from_utf8_lossy(&answer.body), answer.warnings().join(" "))
}
