//! The operator of docs/operators.md, against a real server over HTTPS.

#[allow(dead_code, unreachable_pub, reason = "the example is a program of its own")]
#[path = "../../runtime/examples/expose.rs"]
mod expose;

use ambient::Ambient;
use kinds::{Deployment, Event, Kind, Service};
use object::{Value, json};
use runtime::{Client, Https, ListOptions, PatchType, Target};
use std::sync::Arc;
use std::time::Duration;
use testkit::cluster::Cluster;

/// Waits until the Services are as wanted; the watch tells when to look.
async fn services(client: &Client, wanted: impl Fn(&[kinds::Object<Service>]) -> bool) {
    let waiting = async {
        let mut events = client.watch(&Service::ID, "default", &ListOptions::default(), None).await.unwrap();
        while let Some(Ok(_)) = events.next().await {
            if wanted(&client.list::<Service>("default", &ListOptions::default()).await.unwrap().items) {
                return;
            }
        }
    };
    tokio::time::timeout(Duration::from_secs(30), waiting).await.expect("the services come to be as wanted");
}

fn deployment(port: &Value) -> Value {
    json!({
        "metadata": { "name": "web", "namespace": "default", "annotations": { "example.com/expose": port } },
        "spec": {
            "selector": { "matchLabels": { "app": "web" } },
            "template": {
                "metadata": { "labels": { "app": "web" } }, "spec": { "containers": [{ "name": "c", "image": "i" }] },
            },
        },
    })
}

#[tokio::test]
async fn the_operator_of_the_documents_does_what_they_say() {
    let cluster = Cluster::start().await;
    let ambient = Ambient::real();
    let (kubeconfig, tasks) = (cluster.running.kubeconfig.clone(), ambient.clone());
    ambient.tasks.spawn("operator", async move {
        expose::run(&kubeconfig, "one", &tasks).await.expect("the operator runs");
    });
    let transport = Https::from_kubeconfig(&cluster.running.kubeconfig, &ambient).unwrap();
    let client = Client::new(Arc::new(transport), "test");

    let made = client.create(&Deployment::ID, &deployment(&json!("8080"))).await.unwrap();
    let made = kinds::Object::<Deployment>::read(made).unwrap();
    let port_of = |services: &[kinds::Object<Service>], port: i32| {
        services.iter().any(|service| service.metadata.name == "web" && service.spec.ports[0].port == port)
    };
    services(&client, |services| port_of(services, 8080)).await;
    let annotate = |port: Value| json!({ "metadata": { "annotations": { "example.com/expose": port } } });
    client.patch(&Target::of(&made), "", PatchType::Merge, &annotate(json!("9090"))).await.unwrap();
    services(&client, |services| port_of(services, 9090)).await;
    client.patch(&Target::of(&made), "", PatchType::Merge, &annotate(Value::Null)).await.unwrap();
    services(&client, |services| services.iter().all(|service| service.metadata.name != "web")).await;
    let events = client.list::<Event>("default", &ListOptions::default()).await.unwrap().items;
    assert!(events.iter().any(|event| event.reason == "Exposed"), "{events:?}");
    ambient.tasks.stop().await;
}

#[test]
fn the_document_shows_the_code_that_is_tested() {
    let document = include_str!("../../../docs/operators.md");
    let example = include_str!("../../runtime/examples/expose.rs");
    let mut shown = 0;
    for block in document.split("```rust\n").skip(1) {
        let code = block.split("```").next().unwrap_or_default();
        assert!(example.contains(code.trim()), "this is shown and not in the example:\n{code}");
        shown += 1;
    }
    assert!(shown > 0);
}
