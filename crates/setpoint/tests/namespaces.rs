//! What a namespace gets by itself, and how soon.

use ambient::Tasks;
use http::{Method, StatusCode};
use object::{Value, json};
use testkit::cluster::Cluster;
use testkit::https::{Client, with_body};
use tokio::sync::mpsc;

const AT_ONCE: usize = 40;

/// Creates a namespace and, before any loop can have looked at it, a pod; returns what came of the pod.
async fn create(client: Client, namespace: String) -> Value {
    let post = |path: &str, object: Value| with_body(Method::POST, path, "application/json", object.to_string());
    let mut connection = client.connect().await.unwrap();
    let made = connection.send(post("/api/v1/namespaces", json!({ "metadata": { "name": namespace } }))).await;
    assert_eq!(made.unwrap().status, StatusCode::CREATED);
    let pod = json!({ "metadata": { "name": "a" }, "spec": { "containers": [{ "name": "a", "image": "a" }] } });
    connection.send(post(&format!("/api/v1/namespaces/{namespace}/pods"), pod)).await.unwrap().json()
}

#[tokio::test]
async fn a_pod_may_be_created_right_after_its_namespace() {
    let cluster = Cluster::start().await;
    let tasks = Tasks::new();
    let (sender, mut made) = mpsc::unbounded_channel();
    for number in 0..AT_ONCE {
        let (client, sender) = (cluster.client(), sender.clone());
        tasks.spawn("creator", async move {
            sender.send(create(client, format!("new-{number}")).await).unwrap();
        });
    }
    drop(sender);
    let mut count = 0;
    while let Some(pod) = made.recv().await {
        assert_eq!(pod["spec"]["serviceAccountName"], "default", "{pod}");
        count += 1;
    }
    assert_eq!(count, AT_ONCE);
}

#[tokio::test]
async fn a_pod_does_not_wait_for_an_account_of_its_own() {
    let cluster = Cluster::start().await;
    let spec = json!({ "serviceAccountName": "nobody", "containers": [{ "name": "a", "image": "a" }] });
    let pod = json!({ "metadata": { "name": "a" }, "spec": spec });
    let refused = cluster.client().post("/api/v1/namespaces/default/pods", &pod).await;
    assert_eq!(refused.status, StatusCode::FORBIDDEN, "{refused:?}");
    let message = "serviceaccount \"nobody\" not found";
    assert!(refused.json()["message"].as_str().unwrap().ends_with(message), "{refused:?}");
}
