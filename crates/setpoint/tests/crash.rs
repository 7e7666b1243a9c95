//! The program killed under load: what was acknowledged is there afterwards, revisions go on growing, and a watch goes
//! on from where it was, with no gap and no repeat.

use ambient::Tasks;
use object::{Value, json};
use std::collections::BTreeMap;
use testkit::https::{Client, Watch, with_body};
use testkit::server::Server;
use tokio::sync::mpsc;

const CONFIG_MAPS: &str = "/api/v1/namespaces/default/configmaps";
/// Only those of this test.
const OURS: &str = "/api/v1/namespaces/default/configmaps?labelSelector=crash";
const WRITERS: usize = 6;
/// The server is killed when so many writes were acknowledged, and others are on their way.
const WRITES: usize = 300;
const ROUNDS: usize = 3;

/// What the server has acknowledged or shown: names and the revisions of their objects.
type Seen = BTreeMap<String, u64>;

fn name_and_version(object: &Value) -> (String, u64) {
    let metadata = &object["metadata"];
    let version = metadata["resourceVersion"].as_str().and_then(|version| version.parse().ok());
    (metadata["name"].as_str().unwrap_or_default().to_owned(), version.expect("an object has a version"))
}

fn metadata(name: &str) -> Value {
    json!({ "name": name, "labels": { "crash": "" } })
}

/// Creates objects one after the other until the server is gone.
async fn write(client: Client, writer: String, acknowledged: mpsc::UnboundedSender<(String, u64)>) {
    let Ok(mut connection) = client.connect().await else { return };
    for number in 0.. {
        let object = json!({ "metadata": metadata(&format!("{writer}-{number}")), "data": { "a": "x".repeat(500) } });
        let request = with_body(http::Method::POST, CONFIG_MAPS, "application/json", object.to_string());
        let Ok(answer) = connection.send(request).await else { return };
        assert_eq!(answer.status, 201, "{answer:?}");
        if acknowledged.send(name_and_version(&answer.json())).is_err() {
            return;
        }
    }
}

/// Follows the watch until it ends, or until it has shown `last`; events must come in order.
async fn follow(watch: &mut Watch, seen: &mut Seen, newest: &mut u64, last: Option<&str>) {
    while let Some(event) = watch.next().await {
        let (name, version) = name_and_version(&event["object"]);
        assert!(version > *newest, "revision {version} comes after {newest}: {event}");
        *newest = version;
        if event["type"] == "BOOKMARK" {
            continue;
        }
        assert_eq!(event["type"], "ADDED", "{event}");
        assert_eq!(seen.insert(name.clone(), version), None, "{name} comes twice");
        if last == Some(name.as_str()) {
            return;
        }
    }
}

async fn watch_from(server: &Server, version: u64) -> Watch {
    let path = format!("{OURS}&watch=true&allowWatchBookmarks=true&resourceVersion={version}");
    let watch = server.client().connect().await.unwrap().watch(&path).await.unwrap();
    assert_eq!(watch.status, 200);
    watch
}

#[tokio::test]
async fn nothing_that_was_acknowledged_is_lost_and_no_watch_misses_or_repeats_anything() {
    let mut server = Server::start(env!("CARGO_BIN_EXE_setpoint"), &[]).await;
    let start = server.client().get(OURS).await.json();
    let mut newest: u64 = start["metadata"]["resourceVersion"].as_str().unwrap().parse().unwrap();
    let (mut acknowledged, mut watched) = (Seen::new(), Seen::new());
    for round in 0..ROUNDS {
        let mut watch = watch_from(&server, newest).await;
        let tasks = Tasks::new();
        let (sender, mut written) = mpsc::unbounded_channel();
        for writer in 0..WRITERS {
            tasks.spawn("writer", write(server.client(), format!("r{round}-w{writer}"), sender.clone()));
        }
        drop(sender);
        let mut count = 0;
        let killing = async {
            while let Some((name, version)) = written.recv().await {
                assert_eq!(acknowledged.insert(name, version), None);
                count += 1;
                if count == WRITES {
                    server.kill();
                }
            }
        };
        tokio::join!(killing, follow(&mut watch, &mut watched, &mut newest, None));
        assert!(count >= WRITES, "the writers stopped after {count} writes");

        server.restart().await;
        let list = server.client().get(OURS).await.json();
        let items: Seen = list["items"].as_array().unwrap().iter().map(name_and_version).collect();
        for (name, version) in &acknowledged {
            assert_eq!(items.get(name), Some(version), "{name} was acknowledged at {version}");
        }
        let end = json!({ "metadata": metadata(&format!("r{round}-end")) });
        let (end, version) = name_and_version(&server.client().post(CONFIG_MAPS, &end).await.json());
        let before = items.values().max().copied().unwrap_or_default().max(newest);
        assert!(version > before, "revision {version} comes after {before}");
        follow(&mut watch_from(&server, newest).await, &mut watched, &mut newest, Some(&end)).await;
        acknowledged.insert(end.clone(), version);
        let expected: Seen = items.into_iter().chain([(end, version)]).collect();
        assert_eq!(watched, expected, "the watch has shown exactly what is there");
    }
}

#[tokio::test]
async fn a_server_that_is_asked_to_end_does_so_and_keeps_everything() {
    let mut server = Server::start(env!("CARGO_BIN_EXE_setpoint"), &[]).await;
    let made = server.client().post(CONFIG_MAPS, &json!({ "metadata": { "name": "kept" } })).await.json();
    // A watch and an idle connection do not hold it up.
    let _idle = server.client().connect().await.unwrap();
    let _watch = watch_from(&server, 1).await;
    server.stop();
    server.restart().await;
    let kept = server.client().get(&format!("{CONFIG_MAPS}/kept")).await.json();
    assert_eq!(kept["metadata"], made["metadata"]);
}
