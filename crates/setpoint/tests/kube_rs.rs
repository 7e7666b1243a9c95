//! kube-rs, the client that operators in Rust are written with: typed objects, watchers, reflectors, finalizers.

use futures::{StreamExt, TryStreamExt};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::core::Status;
use kube::runtime::finalizer::{Event, finalizer};
use kube::runtime::reflector::{self, ObjectRef};
use kube::runtime::{WatchStreamExt, watcher};
use kube::{Api, Client, Config, ResourceExt};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;
use testkit::server::Server;

const PATIENCE: Duration = Duration::from_secs(20);

async fn start() -> (Server, Client) {
    let server = Server::in_memory(env!("CARGO_BIN_EXE_setpoint")).await;
    let kubeconfig = Kubeconfig::read_from(server.kubeconfig()).unwrap();
    let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await.unwrap();
    let client = Client::try_from(config).unwrap();
    (server, client)
}

fn config_map(name: &str, value: &str) -> ConfigMap {
    typed(json!({ "metadata": { "name": name, "labels": { "test": "yes" } }, "data": { "a": value } }))
}

fn typed<T: serde::de::DeserializeOwned>(value: Value) -> T {
    serde_json::from_value(value).unwrap()
}

fn refusal(error: kube::Error) -> Status {
    match error {
        kube::Error::Api(response) => *response,
        other => panic!("not an answer of the server: {other:?}"),
    }
}

#[tokio::test]
async fn typed_objects_are_created_read_replaced_and_deleted() {
    let (_server, client) = start().await;
    let api: Api<ConfigMap> = Api::default_namespaced(client.clone());
    let made = api.create(&PostParams::default(), &config_map("one", "1")).await.unwrap();
    let mut read = api.get("one").await.unwrap();
    assert_eq!(read, made);
    read.data.get_or_insert_default().insert("a".to_owned(), "2".to_owned());
    let replaced = api.replace("one", &PostParams::default(), &read).await.unwrap();
    assert_ne!(replaced.resource_version(), made.resource_version());

    let stale = api.replace("one", &PostParams::default(), &made).await.unwrap_err();
    assert_eq!(refusal(stale).code, 409);
    let twice = refusal(api.create(&PostParams::default(), &config_map("one", "1")).await.unwrap_err());
    assert_eq!((twice.code, twice.reason.as_str()), (409, "AlreadyExists"));
    let unknown = refusal(api.get("nobody").await.unwrap_err());
    assert_eq!((unknown.code, unknown.message.as_str()), (404, "configmaps \"nobody\" not found"));
    assert!(api.get_opt("nobody").await.unwrap().is_none());

    let all = api.list(&ListParams::default().labels("test=yes")).await.unwrap();
    assert_eq!(all.items.iter().map(ResourceExt::name_any).collect::<Vec<_>>(), ["one"]);
    let deleted = api.delete("one", &DeleteParams::default()).await.unwrap();
    assert!(deleted.is_right(), "what has no finalizer is gone at once");
}

#[tokio::test]
async fn fields_are_applied_and_fought_over() {
    let (_server, client) = start().await;
    let api: Api<Deployment> = Api::default_namespaced(client);
    let deployment = |replicas: i32| {
        json!({
            "apiVersion": "apps/v1", "kind": "Deployment", "metadata": { "name": "web" },
            "spec": {
                "replicas": replicas,
                "selector": { "matchLabels": { "app": "web" } },
                "template": {
                    "metadata": { "labels": { "app": "web" } },
                    "spec": { "containers": [{ "name": "web", "image": "nginx" }] },
                },
            },
        })
    };
    let made = api.patch("web", &PatchParams::apply("one"), &Patch::Apply(deployment(2))).await.unwrap();
    assert_eq!(made.spec.unwrap().replicas, Some(2));
    let conflict =
        refusal(api.patch("web", &PatchParams::apply("two"), &Patch::Apply(deployment(3))).await.unwrap_err());
    assert_eq!((conflict.code, conflict.reason.as_str()), (409, "Conflict"));
    assert!(conflict.message.contains("conflict with \"one\": .spec.replicas"), "{}", conflict.message);
    let forced = api.patch("web", &PatchParams::apply("two").force(), &Patch::Apply(deployment(3))).await.unwrap();
    assert_eq!(forced.spec.unwrap().replicas, Some(3));

    let status = json!({ "status": { "readyReplicas": 1, "replicas": 3 } });
    let with_status = api.patch_status("web", &PatchParams::default(), &Patch::Merge(status)).await.unwrap();
    assert_eq!(with_status.status.unwrap().ready_replicas, Some(1));
    assert_eq!(api.get_scale("web").await.unwrap().spec.unwrap().replicas, Some(3));
    let wrong = json!({ "spec": { "replicas": -1 } });
    let invalid = refusal(api.patch("web", &PatchParams::default(), &Patch::Merge(wrong)).await.unwrap_err());
    assert_eq!((invalid.code, invalid.reason.as_str()), (422, "Invalid"));
}

/// What an informer does on start, in both ways: as a list and a watch, and as one stream.
async fn a_reflector_follows(config: watcher::Config) {
    let (_server, client) = start().await;
    let api: Api<ConfigMap> = Api::default_namespaced(client);
    for name in ["a", "b"] {
        api.create(&PostParams::default(), &config_map(name, "1")).await.unwrap();
    }
    let (store, writer) = reflector::store();
    let stream = reflector::reflector(writer, watcher::watcher(api.clone(), config.labels("test=yes")));
    let mut changes = Box::pin(stream.touched_objects());
    let mut initial = Vec::new();
    while initial.len() < 2 {
        let object = tokio::time::timeout(PATIENCE, changes.try_next()).await.unwrap().unwrap().unwrap();
        initial.push(object.name_any());
    }
    initial.sort();
    assert_eq!(initial, ["a", "b"]);

    api.patch("a", &PatchParams::default(), &Patch::Merge(json!({ "data": { "a": "2" } }))).await.unwrap();
    let changed = tokio::time::timeout(PATIENCE, changes.try_next()).await.unwrap().unwrap().unwrap();
    assert_eq!((changed.name_any(), changed.data.clone().unwrap()["a"].as_str()), ("a".to_owned(), "2"));
    api.delete("b", &DeleteParams::default()).await.unwrap();
    let gone = tokio::time::timeout(PATIENCE, changes.try_next()).await.unwrap().unwrap().unwrap();
    assert_eq!(gone.name_any(), "b");
    let kept: Vec<String> = store.state().iter().map(|object| object.name_any()).collect();
    assert_eq!(kept, ["a"]);
    assert!(store.get(&ObjectRef::new("a").within("default")).is_some());
}

#[tokio::test]
async fn a_reflector_follows_a_list_and_a_watch() {
    a_reflector_follows(watcher::Config::default()).await;
}

#[tokio::test]
async fn a_reflector_follows_a_list_that_comes_as_a_stream() {
    a_reflector_follows(watcher::Config::default().streaming_lists()).await;
}

#[tokio::test]
async fn a_finalizer_holds_an_object_until_its_work_is_done() {
    const NAME: &str = "example.com/tidy";
    let (_server, client) = start().await;
    let api: Api<ConfigMap> = Api::default_namespaced(client);
    api.create(&PostParams::default(), &config_map("held", "1")).await.unwrap();
    let reconcile = async |wanted: &'static str| {
        let object = Arc::new(api.get("held").await.unwrap());
        let done = finalizer(&api, NAME, object, |event| async move {
            let happened = match event {
                Event::Apply(_) => "apply",
                Event::Cleanup(_) => "cleanup",
            };
            assert_eq!(happened, wanted);
            Ok::<_, std::convert::Infallible>(kube::runtime::controller::Action::await_change())
        });
        done.await.unwrap();
    };
    // The first time it only puts the finalizer there.
    reconcile("apply").await;
    assert_eq!(api.get("held").await.unwrap().finalizers(), [NAME]);
    reconcile("apply").await;
    let deleted = api.delete("held", &DeleteParams::default()).await.unwrap();
    assert!(deleted.left().unwrap().metadata.deletion_timestamp.is_some());
    reconcile("cleanup").await;
    assert!(api.get_opt("held").await.unwrap().is_none());
}

#[tokio::test]
async fn objects_of_no_namespace_and_the_server_itself_are_there() {
    let (_server, client) = start().await;
    let namespaces: Api<Namespace> = Api::all(client.clone());
    let names: Vec<String> =
        namespaces.list(&ListParams::default()).await.unwrap().iter().map(ResourceExt::name_any).collect();
    assert_eq!(names, ["default", "kube-node-lease", "kube-public", "kube-system"]);
    let version = client.apiserver_version().await.unwrap();
    assert_eq!((version.major.as_str(), version.minor.as_str()), ("1", "36"));
    let discovery = kube::Discovery::new(client.clone()).run_aggregated().await.unwrap();
    let apps = discovery.get("apps").unwrap();
    assert!(apps.recommended_kind("Deployment").is_some());
    let mut watched = watcher::watcher(namespaces, watcher::Config::default()).applied_objects().take(4).boxed();
    let mut seen = Vec::new();
    while let Some(namespace) = tokio::time::timeout(PATIENCE, watched.try_next()).await.unwrap().unwrap() {
        seen.push(namespace.name_any());
    }
    assert_eq!(seen.len(), 4);
}
