//! Requests and the answers that clients insist on: codes, reasons, representations. On a store in memory.

use ambient::Ambient;
use apiserver::{
    Api, Authentication, Authorization, Local, Peer, Sample, SigningKey, StaticTokens, Usage, UsageSource, bootstrap,
    user,
};
use http::{Request, header};
use http_body_util::{BodyExt, Full};
use object::{Value, View, json};
use registry::Registry;
use std::sync::Arc;

const JSON: &str = "application/json";
const TABLE: &str = "application/json;as=Table;v=v1;g=meta.k8s.io";

struct Client(Api);

impl Client {
    async fn start() -> Self {
        let ambient = Ambient::seeded(1);
        Client::over(Arc::new(store::Memory::new(&ambient, store::Retention::default())), ambient).await
    }

    /// A server over what is there already.
    async fn over(store: Arc<store::Memory>, ambient: Ambient) -> Self {
        let registry = Registry::start(store, Arc::new(registry::Plain), &ambient).await.unwrap();
        let directory = tempfile::tempdir().unwrap();
        let key = SigningKey::open(&directory.path().join("sa.key")).unwrap();
        let authentication = Authentication::new(key, StaticTokens::default());
        let address = "192.0.2.1:6443".to_owned();
        let api = Api::new(registry, ambient, authentication, Authorization::default(), None, address);
        bootstrap(&api).await.unwrap();
        Client(api)
    }

    /// The code, the warnings and the body of an answer.
    async fn send(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> (u16, Vec<String>, Value) {
        let peer = Peer { user: Some(Arc::new(user("admin", &["system:masters"]))), address: None };
        let request = Request::builder().method(method).uri(path);
        let request = headers.iter().fold(request, |request, (name, value)| request.header(*name, *value));
        let response = self.0.handle(&peer, request.body(Full::new(body.to_owned().into())).unwrap()).await;
        let code = response.status().as_u16();
        let warnings = response.headers().get_all(header::WARNING).iter();
        let warnings = warnings.map(|text| text.to_str().unwrap().replace('\\', "")).collect();
        let bytes = response.into_body().collect().await.unwrap().to_bytes();
        (code, warnings, object::json::parse(&bytes).unwrap())
    }

    async fn get(&self, path: &str) -> (u16, Value) {
        let (code, _, value) = self.send("GET", path, &[], "").await;
        (code, value)
    }

    async fn post(&self, path: &str, accept: &str, body: &Value) -> (u16, Value) {
        let headers = [("content-type", "application/json"), ("accept", accept)];
        let (code, _, value) = self.send("POST", path, &headers, &body.to_string()).await;
        (code, value)
    }
}

#[tokio::test]
async fn what_is_only_answered_has_no_table() {
    let client = Client::start().await;
    let path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
    let review = json!({ "spec": { "nonResourceAttributes": { "path": "/", "verb": "get" } } });
    let (code, status) = client.post(path, TABLE, &review).await;
    assert_eq!((code, status.text("reason")), (406, "NotAcceptable"));
    let (code, review) = client.post(path, &format!("{TABLE},application/json"), &review).await;
    assert_eq!((code, review.text("kind")), (201, "SelfSubjectAccessReview"));
}

#[tokio::test]
async fn a_table_and_the_metadata_in_it_are_of_the_version_that_was_asked_for() {
    let client = Client::start().await;
    for version in ["v1", "v1beta1"] {
        let accept = format!("application/json;as=Table;v={version};g=meta.k8s.io");
        let (_, _, table) = client.send("GET", "/api/v1/namespaces", &[("accept", &accept)], "").await;
        let expected = format!("meta.k8s.io/{version}");
        assert_eq!(table.text("apiVersion"), expected);
        assert_eq!(table.items("rows")[0].at("object").text("apiVersion"), expected);
    }
}

#[tokio::test]
async fn all_namespaces_at_once_can_be_read_and_nothing_else() {
    let client = Client::start().await;
    for (method, path, code) in [
        ("GET", "/api/v1/pods", 200),
        ("POST", "/api/v1/pods", 405),
        ("PUT", "/api/v1/pods", 405),
        ("DELETE", "/api/v1/pods", 405),
        ("GET", "/api/v1/pods/a", 404),
        ("PUT", "/api/v1/namespaces/default/pods", 405),
        ("POST", "/api/v1/namespaces/default/pods/a", 405),
        ("POST", "/apis/authorization.k8s.io/v1/localsubjectaccessreviews", 404),
        ("PUT", "/api/v1/nodes", 405),
    ] {
        let (found, _, answer) = client.send(method, path, &[("content-type", "application/json")], "{}").await;
        assert_eq!(found, code, "{method} {path}: {answer}");
    }
}

#[tokio::test]
async fn a_timeout_that_is_none_is_refused_before_anything_else() {
    let client = Client::start().await;
    let (code, status) = client.get("/version?timeout=invalid").await;
    assert_eq!((code, status.text("reason")), (400, "BadRequest"));
    for timeout in ["3m", "0s"] {
        assert_eq!(client.get(&format!("/version?timeout={timeout}")).await.0, 200, "{timeout}");
    }
}

#[tokio::test]
async fn a_field_that_cannot_be_selected_by_is_refused_in_the_words_of_the_kind() {
    let client = Client::start().await;
    for (plural, message) in [
        ("pods", "field label not supported: foo"),
        ("configmaps", "\"foo\" is not a known field selector: only \"metadata.name\", \"metadata.namespace\""),
    ] {
        let (code, status) = client.get(&format!("/api/v1/{plural}?fieldSelector=foo%3Dbar")).await;
        assert_eq!((code, status.text("message")), (400, message));
    }
}

#[tokio::test]
async fn a_review_of_no_token_is_refused_and_one_of_oneself_says_when_it_was_made() {
    let client = Client::start().await;
    let (code, _) = client.post("/apis/authentication.k8s.io/v1/tokenreviews", "*/*", &json!({ "spec": {} })).await;
    assert_eq!(code, 400);
    let (code, review) = client.post("/apis/authentication.k8s.io/v1/selfsubjectreviews", "*/*", &json!({})).await;
    assert_eq!(code, 201);
    assert!(!review.at("metadata").text("creationTimestamp").is_empty());
}

#[tokio::test]
async fn a_new_cluster_has_the_flow_control_of_kubernetes_and_says_where_its_api_is() {
    let client = Client::start().await;
    let flow = "/apis/flowcontrol.apiserver.k8s.io/v1";
    let (_, schemas) = client.get(&format!("{flow}/flowschemas")).await;
    assert_eq!(schemas.items("items").len(), 11);
    for schema in schemas.items("items") {
        let level = schema.path(&["spec", "priorityLevelConfiguration", "name"]).as_str().unwrap();
        assert_eq!(client.get(&format!("{flow}/prioritylevelconfigurations/{level}")).await.0, 200, "{level}");
    }
    let (_, endpoints) = client.get("/api/v1/namespaces/default/endpoints/kubernetes").await;
    assert_eq!(endpoints.items("subsets")[0].items("addresses")[0].text("ip"), "192.0.2.1");
    let (_, slice) = client.get("/apis/discovery.k8s.io/v1/namespaces/default/endpointslices/kubernetes").await;
    assert_eq!(slice.items("endpoints")[0].at("addresses"), &json!(["192.0.2.1"]));
    let (_, range) = client.get("/apis/networking.k8s.io/v1/servicecidrs/kubernetes").await;
    assert_eq!(range.at("status").items("conditions")[0].text("type"), "Ready");
    // A restart finds everything as it should be.
    let before = slice.at("metadata").text("resourceVersion").to_owned();
    bootstrap(&client.0).await.unwrap();
    let (_, slice) = client.get("/apis/discovery.k8s.io/v1/namespaces/default/endpointslices/kubernetes").await;
    assert_eq!(slice.at("metadata").text("resourceVersion"), before);
}

/// A deployment in YAML with a key that is set twice, on line 7.
const TWICE: &str = r"apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
spec:
  replicas: 1
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers: [{name: c, image: i}]
";

#[tokio::test]
async fn a_key_that_is_set_twice_in_yaml_is_refused_or_warned_about_by_its_line() {
    let client = Client::start().await;
    let collection = "/apis/apps/v1/namespaces/default/deployments";
    let line = "line 7: key \"replicas\" already set in map";
    let created = ("POST", collection.to_owned(), "application/yaml");
    let applied = ("PATCH", format!("{collection}/web"), "application/apply-patch+yaml");
    for (method, path, media) in [created, applied] {
        let send = async |validation: &str| {
            let path = format!("{path}?dryRun=All&fieldManager=test&fieldValidation={validation}");
            client.send(method, &path, &[("content-type", media)], TWICE).await
        };
        let (code, _, status) = send("Strict").await;
        assert_eq!(code, 400, "{media}");
        assert!(status.text("message").contains(line), "{}", status.text("message"));
        for (validation, warnings) in [("Warn", vec![format!("299 - \"{line}\"")]), ("Ignore", Vec::new())] {
            let (code, found, object) = send(validation).await;
            assert_eq!((code, found), (201, warnings), "{media}: {object}");
            assert_eq!(object.at("spec").int("replicas"), Some(2));
        }
    }
}

#[tokio::test]
async fn mistakes_are_named_in_the_order_of_the_body_and_those_of_a_patch_first() {
    let client = Client::start().await;
    let path = "/api/v1/namespaces/default/configmaps";
    let body = r#"{"metadata":{"name":"a","name":"b","wrong":1},"data":{"k":"v"},"data":{},"also":{"x":1,"x":2}}"#;
    let headers = [("content-type", "application/json")];
    let (code, _, status) = client.send("POST", &format!("{path}?fieldValidation=Strict"), &headers, body).await;
    assert_eq!(code, 400);
    let expected = "ConfigMap in version \"v1\" cannot be handled as a ConfigMap: strict decoding error: \
        duplicate field \"metadata.name\", unknown field \"metadata.wrong\", duplicate field \"data\", \
        unknown field \"also\"";
    assert_eq!(status.text("message"), expected);
    let existing = "/api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication?dryRun=All";
    for (media, patch, expected) in [
        (
            "application/merge-patch+json",
            r#"{"wrong":1,"data":{},"data":{}}"#,
            ["duplicate field \"data\"", "unknown field \"wrong\""],
        ),
        (
            "application/json-patch+json",
            r#"[{"op":"add","path":"/wrong","value":1,"value":2}]"#,
            ["json patch duplicate field \"[0].value\"", "unknown field \"wrong\""],
        ),
    ] {
        let (code, warnings, answer) = client.send("PATCH", existing, &[("content-type", media)], patch).await;
        assert_eq!((code, warnings), (200, expected.map(|text| format!("299 - \"{text}\"")).to_vec()), "{answer}");
    }
}

#[tokio::test]
async fn what_is_reported_with_a_status_is_no_change_of_what_is_wanted() {
    let client = Client::start().await;
    let path = "/apis/apps/v1/namespaces/default/deployments";
    let deployment = json!({
        "metadata": { "name": "web" },
        "spec": {
            "selector": { "matchLabels": { "app": "web" } },
            "template": {
                "metadata": { "labels": { "app": "web" } },
                "spec": { "containers": [{ "name": "main", "image": "web" }] },
            },
        },
    });
    let (code, mut made) = client.post(path, JSON, &deployment).await;
    assert_eq!((code, made["metadata"]["generation"].as_i64()), (201, Some(1)), "{made}");
    let headers = [("content-type", JSON)];
    for (subresource, generation) in [("/status", 1), ("", 2)] {
        made["metadata"]["annotations"] = json!({ "a": subresource });
        let (code, _, written) =
            client.send("PUT", &format!("{path}/web{subresource}"), &headers, &made.to_string()).await;
        assert_eq!((code, written["metadata"]["generation"].as_i64()), (200, Some(generation)), "{written}");
        assert_eq!(written["metadata"]["annotations"]["a"], subresource);
        made = written;
    }
}

/// Everything uses the same, but for what is called `idle`, of which nothing is known.
#[derive(Debug)]
struct Same;

impl UsageSource for Same {
    fn node(&self, name: &str) -> Option<Sample<Usage>> {
        let usage = Usage { cpu_millis: 250, memory_bytes: 64 << 20 };
        let window = std::time::Duration::from_secs(90);
        (name != "idle").then_some(Sample { at: 1_767_225_600, window, usage })
    }

    fn pod(&self, _namespace: &str, name: &str) -> Option<Sample<Vec<(String, Usage)>>> {
        let Sample { at, window, usage } = self.node(name)?;
        Some(Sample { at, window, usage: vec![("a".to_owned(), usage), ("b".to_owned(), usage)] })
    }
}

#[tokio::test]
async fn what_nodes_and_pods_use_is_told_as_far_as_it_is_known() {
    let client = Client::start().await;
    for name in ["busy", "idle"] {
        let node = json!({ "metadata": { "name": name } });
        assert_eq!(client.post("/api/v1/nodes", "application/json", &node).await.0, 201);
        let containers = json!([{ "name": "a", "image": "a" }, { "name": "b", "image": "b" }]);
        let metadata = json!({ "name": name, "labels": { "app": "web" } });
        let pod =
            json!({ "metadata": metadata, "spec": { "serviceAccountName": "default", "containers": containers } });
        let account = json!({ "metadata": { "name": "default" } });
        client.post("/api/v1/namespaces/default/serviceaccounts", "application/json", &account).await;
        let (code, pod) = client.post("/api/v1/namespaces/default/pods", "application/json", &pod).await;
        assert_eq!(code, 201, "{pod}");
    }
    let root = "/apis/metrics.k8s.io/v1beta1";
    let (code, list) = client.get(&format!("{root}/nodes")).await;
    assert_eq!((code, list.items("items").len()), (200, 0), "nobody has measured anything yet");
    client.0.measure(Arc::new(Same));
    let (_, list) = client.get(&format!("{root}/nodes")).await;
    assert_eq!((list.text("kind"), list.items("items").len()), ("NodeMetricsList", 1));
    let (_, node) = client.get(&format!("{root}/nodes/busy")).await;
    assert_eq!(
        (node.text("kind"), node.text("window"), node.text("timestamp")),
        ("NodeMetrics", "1m30s", "2026-01-01T00:00:00Z")
    );
    assert_eq!(node.at("usage"), &json!({ "cpu": "250m", "memory": "64Mi" }));
    assert_eq!(client.get(&format!("{root}/nodes/idle")).await.0, 404);
    let (_, pods) = client.get(&format!("{root}/namespaces/default/pods?labelSelector=app%3Dweb")).await;
    assert_eq!(pods.items("items")[0].items("containers").len(), 2);
    assert_eq!(pods.items("items")[0].at("metadata").at("labels"), &json!({ "app": "web" }));
    assert_eq!(client.get(&format!("{root}/pods?labelSelector=app%3Ddb")).await.1.items("items").len(), 0);
    let (_, _, table) = client.send("GET", &format!("{root}/pods"), &[("accept", TABLE)], "").await;
    assert_eq!(table.items("rows")[0].at("cells"), &json!(["busy", "500m", "128Mi", "1m30s"]));
    assert_eq!(client.post(&format!("{root}/nodes"), "application/json", &json!({})).await.0, 405);
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_is_read_seldom_shows_events_first_and_an_idle_one_how_far_it_has_come() {
    let client = Client::start().await;
    let peer = Peer { user: Some(Arc::new(user("admin", &["system:masters"]))), address: None };
    let path = "/api/v1/namespaces/default/configmaps?watch=true&resourceVersion=0&allowWatchBookmarks=true";
    let request = Request::builder().uri(path).body(Full::default()).unwrap();
    let mut watch = client.0.handle(&peer, request).await.into_body();
    let mut frames = Vec::new();
    for name in ["a", "b"] {
        let config = json!({ "metadata": { "name": name } });
        assert_eq!(client.post("/api/v1/namespaces/default/configmaps", JSON, &config).await.0, 201);
        tokio::time::advance(std::time::Duration::from_secs(90)).await;
        frames.push(watch.frame().await.unwrap().unwrap().into_data().unwrap());
    }
    // Nothing happens any more, so time goes on by itself.
    frames.push(watch.frame().await.unwrap().unwrap().into_data().unwrap());
    let kinds = frames.iter().map(|frame| object::json::parse(frame).unwrap().text("type").to_owned());
    assert_eq!(kinds.collect::<Vec<_>>(), ["ADDED", "ADDED", "BOOKMARK"]);
}

#[tokio::test(start_paused = true)]
async fn the_pages_of_a_list_are_of_one_revision_for_some_minutes_and_then_of_what_is_there() {
    let client = Client::start().await;
    let path = "/api/v1/namespaces/default/configmaps";
    let make = async |name: &str| {
        let (code, _) = client.post(path, JSON, &json!({ "metadata": { "name": name } })).await;
        assert_eq!(code, 201);
    };
    let names = |list: &Value| -> Vec<String> {
        list.items("items").iter().map(|item| item.at("metadata").text("name").to_owned()).collect()
    };
    for name in ["a", "c", "d"] {
        make(name).await;
    }
    let token = |answer: &Value| answer.at("metadata").text("continue").to_owned();
    let (_, first) = client.get(&format!("{path}?limit=1")).await;
    make("b").await;
    let (_, second) = client.get(&format!("{path}?limit=1&continue={}", token(&first))).await;
    assert_eq!(names(&second), ["c"]);

    tokio::time::advance(std::time::Duration::from_secs(301)).await;
    for page in [&first, &second] {
        let (code, gone) = client.get(&format!("{path}?limit=1&continue={}", token(page))).await;
        assert_eq!((code, gone.text("reason")), (410, "Expired"), "the age of a list is that of its first page");
        let (_, rest) = client.get(&format!("{path}?continue={}", token(&gone))).await;
        assert!(names(&rest).ends_with(&["d".to_owned()]), "{rest:?}");
        assert_eq!(names(&rest).contains(&"b".to_owned()), token(page) == token(&first));
    }
}

#[tokio::test]
async fn what_is_of_the_pods_of_a_node_is_not_refused_to_it_by_a_server_that_has_just_started() {
    let ambient = Ambient::seeded(1);
    let store = Arc::new(store::Memory::new(&ambient, store::Retention::default()));
    let first = Client::over(store.clone(), ambient.clone()).await;
    let admin = Local::new(first.0.clone(), user("admin", &["system:masters"]), "test");
    admin.create("/api/v1/namespaces", &json!({ "metadata": { "name": "n" } })).await.unwrap();
    admin.create("/api/v1/namespaces/n/serviceaccounts", &json!({ "metadata": { "name": "default" } })).await.unwrap();
    for name in ["mounted", "other"] {
        admin.create("/api/v1/namespaces/n/secrets", &json!({ "metadata": { "name": name } })).await.unwrap();
    }
    let pod = json!({
        "metadata": { "name": "p" },
        "spec": {
            "nodeName": "here", "automountServiceAccountToken": false,
            "containers": [{ "name": "c", "image": "i" }],
            "volumes": [{ "name": "s", "secret": { "secretName": "mounted" } }],
        },
    });
    admin.create("/api/v1/namespaces/n/pods", &pod).await.unwrap();

    let second = Client::over(store, ambient).await;
    let groups = ["system:nodes", "system:authenticated"];
    let here = Local::new(second.0.clone(), user("system:node:here", &groups), "kubelet");
    here.get("/api/v1/namespaces/n/secrets/mounted").await.expect("its pod mounts it");
    assert!(here.get("/api/v1/namespaces/n/secrets/other").await.is_err());
    let elsewhere = Local::new(second.0.clone(), user("system:node:elsewhere", &groups), "kubelet");
    assert!(elsewhere.get("/api/v1/namespaces/n/secrets/mounted").await.is_err());
}
