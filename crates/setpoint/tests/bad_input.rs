//! Requests that no well-behaved client makes. Each is sent over many connections at once, each gets the answer that
//! Kubernetes gives, and the server goes on serving.

mod bad_input {
    pub(crate) mod bodies;
    pub(crate) mod objects;
    pub(crate) mod reads;
    pub(crate) mod row;
}

use bad_input::row::{CONFIG_MAPS, check, config_map};
use futures::StreamExt;
use futures::stream::FuturesUnordered;
use http::{HeaderValue, header};
use object::json;
use testkit::etcd::{Etcd, available_versions};
use testkit::https::{Client, get};
use testkit::server::Server;

async fn server() -> Server {
    let server = Server::in_memory(env!("CARGO_BIN_EXE_setpoint")).await;
    let made = server.client().post(CONFIG_MAPS, &config_map("there")).await;
    assert_eq!(made.status, 201);
    server
}

#[tokio::test]
async fn bodies_that_are_too_large_too_deep_or_no_objects_are_refused() {
    check(&server().await, bad_input::bodies::rows()).await;
}

#[tokio::test]
async fn objects_that_break_the_rules_are_refused() {
    check(&server().await, bad_input::objects::rows()).await;
}

#[tokio::test]
async fn reads_of_what_cannot_be_are_refused() {
    let server = server().await;
    // The visitor may open the shell of a pod in the old way of asking, which is no longer enough.
    let role = json!({
        "metadata": { "name": "visitor" },
        "rules": [{ "apiGroups": [""], "resources": ["pods/exec"], "verbs": ["get"] }],
    });
    let binding = json!({
        "metadata": { "name": "visitor" },
        "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "visitor" },
        "subjects": [{ "apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "visitor" }],
    });
    for (plural, object) in [("clusterroles", role), ("clusterrolebindings", binding)] {
        let made = server.client().post(&format!("/apis/rbac.authorization.k8s.io/v1/{plural}"), &object).await;
        assert_eq!(made.status, 201, "{made:?}");
    }
    check(&server, bad_input::reads::rows()).await;
}

#[tokio::test]
async fn a_long_name_that_is_generated_is_cut() {
    let server = server().await;
    let mut object = config_map("");
    object["metadata"] = json!({ "generateName": "n".repeat(253) });
    let made = server.client().post(CONFIG_MAPS, &object).await;
    assert_eq!(made.status, 201, "{made:?}");
    let name = made.json()["metadata"]["name"].as_str().unwrap().to_owned();
    assert_eq!(name.len(), 63, "{name}");
    assert!(name.starts_with(&"n".repeat(58)), "{name}");
}

#[tokio::test]
async fn who_proves_nothing_is_anonymous_and_who_proves_wrongly_is_nobody() {
    let server = server().await;
    let stranger = Client::anonymous(&server.kubeconfig());
    let mut liar = get("/api/v1/pods");
    liar.headers_mut().insert(header::AUTHORIZATION, "Bearer nonsense".parse().unwrap());
    for (request, status) in [(get("/api/v1/pods"), 403), (get("/livez"), 200), (liar, 401)] {
        let answer = stranger.send(request.clone()).await;
        assert_eq!(answer.status, status, "{request:?} {answer:?}");
    }
}

#[tokio::test]
async fn what_was_compacted_away_is_said_to_be_gone() {
    let etcd = Etcd::start(available_versions()[0]).await;
    let store = format!("etcd={}", etcd.endpoint());
    let mut server = Server::start(env!("CARGO_BIN_EXE_setpoint"), &["--store", &store]).await;
    let client = server.client();
    for name in ["a", "b", "c"] {
        assert_eq!(client.post(CONFIG_MAPS, &config_map(name)).await.status, 201);
    }
    let page = client.get(&format!("{CONFIG_MAPS}?limit=1")).await.json();
    let (token, version) = (page["metadata"]["continue"].clone(), page["metadata"]["resourceVersion"].clone());
    let (token, version) = (token.as_str().unwrap(), version.as_str().unwrap());
    let last = client.post(CONFIG_MAPS, &config_map("d")).await.json();
    let last = last["metadata"]["resourceVersion"].as_str().unwrap().parse().unwrap();
    etcd.client().await.compact(last, None).await.unwrap();

    // A page of a list that is gone, and the token to go on with what is there now.
    let gone = client.get(&format!("{CONFIG_MAPS}?limit=1&continue={token}")).await;
    assert_eq!((gone.status.as_u16(), gone.json()["reason"].as_str()), (410, Some("Expired")), "{gone:?}");
    let fresh = gone.json()["metadata"]["continue"].as_str().unwrap().to_owned();
    let rest = client.get(&format!("{CONFIG_MAPS}?continue={fresh}")).await.json();
    let mut names: Vec<&str> =
        rest["items"].as_array().unwrap().iter().map(|item| item["metadata"]["name"].as_str().unwrap()).collect();
    // Every namespace has one more, made by a loop.
    names.retain(|name| *name != "kube-root-ca.crt");
    assert_eq!(names, ["b", "c", "d"]);

    // What this server saw itself it still knows; one that starts now does not.
    server.stop();
    server.restart().await;
    let path = format!("{CONFIG_MAPS}?watch=true&resourceVersion={version}");
    let mut watch = server.client().connect().await.unwrap().watch(&path).await.unwrap();
    assert_eq!(watch.status, 200);
    let event = watch.next().await.expect("the watch says why it ends");
    assert_eq!((event["type"].as_str(), event["object"]["code"].as_i64()), (Some("ERROR"), Some(410)), "{event}");
    assert_eq!(event["object"]["reason"], "Expired");
    assert_eq!(watch.next().await, None);
}

#[tokio::test]
async fn more_requests_than_can_wait_are_told_to_come_back_and_others_are_served() {
    let server = server().await;
    let binding = json!({
        "metadata": { "name": "crowd" },
        "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view" },
        "subjects": [{ "apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "crowd" }],
    });
    let made = server.client().post("/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", &binding).await;
    assert_eq!(made.status, 201, "{made:?}");
    // Each of these waits for a revision that does not come, and so keeps its place.
    let mut waiting = get(&format!("{CONFIG_MAPS}?resourceVersion=999999999"));
    waiting.headers_mut().insert("impersonate-user", HeaderValue::from_static("crowd"));
    let mut crowd = Vec::new();
    for _ in 0..4 {
        crowd.push(server.client().connect_many().await.unwrap());
    }
    let answers = crowd.iter().flat_map(|connection| (0..900).map(|_| connection.send(waiting.clone())));
    let mut answers: FuturesUnordered<_> = answers.collect();
    loop {
        let answer = answers.next().await.expect("the server lets not all of them wait").unwrap();
        if answer.status == 429 {
            assert_eq!(answer.headers[header::RETRY_AFTER], "1");
            assert_eq!(answer.json()["reason"], "TooManyRequests");
            break;
        }
    }
    // Neither the administrator nor another user of the same level is kept waiting by the crowd.
    for user in [None, Some("ann")] {
        let mut request = get("/version");
        user.map(|user| request.headers_mut().insert("impersonate-user", HeaderValue::from_static(user)));
        assert_eq!(server.client().send(request).await.status, 200, "{user:?}");
    }
}
