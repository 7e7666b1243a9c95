//! The client that loops are made with, over HTTPS to a real server: what works in the server's process works from
//! another one.

use ambient::{Ambient, Tasks};
use kinds::{ConfigMap, Event as CoreEvent, Key, Kind, Lease, Object, Raw};
use object::{Reason, View};
use object::{Value, json};
use runtime::{Client, DeleteOptions, Election, Event, Events, Https, ListOptions, Note, Recorder, Target, Timing};
use std::sync::Arc;
use testkit::cluster::Cluster;

async fn start() -> (Cluster, Client, Ambient) {
    let (cluster, ambient) = (Cluster::start().await, Ambient::real());
    let https = Https::from_kubeconfig(&cluster.running.kubeconfig, &ambient).unwrap();
    assert_eq!(https.namespace(), "default");
    (cluster, Client::new(Arc::new(https), "remote-test"), ambient)
}

fn config_map(name: &str, value: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": { "namespace": "default", "name": name, "labels": { "test": "remote" } }, "data": { "a": value },
    })
}

fn read(raw: Raw) -> Object<ConfigMap> {
    Object::read(raw).unwrap()
}

fn selected() -> ListOptions {
    ListOptions { label_selector: "test=remote".into(), ..ListOptions::default() }
}

/// The next events of a watch as text, so many of them.
async fn next(events: &mut Box<dyn Events>, count: usize) -> Vec<String> {
    let mut shown = Vec::new();
    while shown.len() < count {
        let batch = events.next().await.expect("the watch goes on").unwrap();
        assert!(!batch.is_empty());
        shown.extend(batch.into_iter().filter_map(|event| match event {
            Event::Added(raw) => Some(format!("+{}", read(raw).key())),
            Event::Modified(raw) => Some(format!("~{}", read(raw).key())),
            Event::Deleted(raw) => Some(format!("-{}", read(raw).key())),
            Event::Bookmark { initial_end: true, version } if !version.is_empty() => Some("end".into()),
            Event::Bookmark { .. } => None,
        }));
    }
    shown
}

#[tokio::test]
async fn objects_are_created_listed_replaced_if_unchanged_and_deleted() {
    let (_cluster, client, _) = start().await;
    for name in ["a", "b", "c"] {
        client.create(&ConfigMap::ID, &config_map(name, "1")).await.unwrap();
    }
    let twice = client.create(&ConfigMap::ID, &config_map("a", "1")).await.unwrap_err();
    assert_eq!(twice.reason(), Reason::AlreadyExists);
    let pages = ListOptions { limit: 2, ..selected() };
    let list = client.list::<ConfigMap>("default", &pages).await.unwrap();
    let names: Vec<String> = list.items.iter().map(|item| item.key().to_string()).collect();
    assert_eq!(names, ["default/a", "default/b", "default/c"]);

    let seen = &list.items[0];
    let mut changed = seen.json();
    changed["data"]["a"] = json!("2");
    client.update(&ConfigMap::ID, "", &changed).await.unwrap();
    let conflict = client.update(&ConfigMap::ID, "", &changed).await.unwrap_err();
    assert_eq!((conflict.reason(), conflict.code()), (Reason::Conflict, 409));
    client.delete(&Target::of(seen), &DeleteOptions::default()).await.unwrap();
    assert!(client.get::<ConfigMap>(&seen.key()).await.unwrap().is_none());
    let nobody = Target { uid: "another".into(), ..Target::of(&list.items[1]) };
    assert_eq!(client.delete(&nobody, &DeleteOptions::default()).await.unwrap_err().reason(), Reason::Conflict);
}

#[tokio::test]
async fn a_watch_begins_with_what_is_there_and_another_goes_on_where_it_stopped() {
    let (_cluster, client, _) = start().await;
    let made = read(client.create(&ConfigMap::ID, &config_map("a", "1")).await.unwrap());
    let mut watch = client.watch(&ConfigMap::ID, "default", &selected(), None).await.unwrap();
    assert_eq!(next(&mut watch, 2).await, ["+default/a", "end"]);
    client.create(&ConfigMap::ID, &config_map("b", "1")).await.unwrap();
    assert_eq!(next(&mut watch, 1).await, ["+default/b"]);
    drop(watch);

    let mut changed = made.json();
    changed["data"]["a"] = json!("2");
    client.update(&ConfigMap::ID, "", &changed).await.unwrap();
    client.delete(&Target::of(&made), &DeleteOptions::default()).await.unwrap();
    let after = Some(made.metadata.resource_version.as_str());
    let mut watch = client.watch(&ConfigMap::ID, "default", &selected(), after).await.unwrap();
    assert_eq!(next(&mut watch, 3).await, ["+default/b", "~default/a", "-default/a"]);
    let refused = client.watch(&ConfigMap::ID, "default", &selected(), Some("yesterday")).await.err().unwrap();
    assert_eq!(refused.code(), 400);
}

#[tokio::test]
async fn more_watches_than_fit_on_a_connection_use_several() {
    let (_cluster, client, _) = start().await;
    let mut watches = Vec::new();
    for _ in 0..200 {
        watches.push(client.watch(&ConfigMap::ID, "default", &selected(), None).await.unwrap());
    }
    client.create(&ConfigMap::ID, &config_map("a", "1")).await.unwrap();
    for watch in &mut watches {
        assert_eq!(next(watch, 2).await, ["end", "+default/a"]);
    }
}

#[tokio::test]
async fn a_server_that_stops_ends_its_watches() {
    let (cluster, client, _) = start().await;
    let mut watch = client.watch(&ConfigMap::ID, "default", &selected(), None).await.unwrap();
    assert_eq!(next(&mut watch, 1).await, ["end"]);
    drop(cluster);
    // In an orderly way or not; but it ends.
    while let Some(Ok(_)) = watch.next().await {}
    assert!(watch.next().await.is_none());
}

#[tokio::test]
async fn a_leader_is_elected_tells_so_and_releases_its_lease() {
    let (_cluster, client, ambient) = start().await;
    let key = Key::new("kube-system", "loops");
    let recording = Ambient { tasks: Tasks::new(), ..ambient.clone() };
    let recorder = Recorder::new(client.clone(), "loops", "", &recording, &prometheus::Registry::new());
    let telling = recorder.clone();
    let election = Election {
        client: client.clone(),
        tell: Arc::new(move |note| telling.record(note)),
        namespace: key.namespace.clone(),
        name: key.name.clone(),
        identity: "here".into(),
        timing: Timing::default(),
        clock: ambient.clock.clone(),
        random: ambient.random.clone(),
    };
    let (leading, mut led) = tokio::sync::mpsc::channel(1);
    let tasks = Tasks::new();
    tasks.spawn(
        "candidate",
        election.run(tasks.clone(), move |group| {
            let leading = leading.clone();
            async move {
                leading.send(()).await.unwrap();
                group.stopping().await;
            }
        }),
    );
    led.recv().await.unwrap();
    let lease = client.get::<Lease>(&key).await.unwrap().unwrap();
    assert_eq!((lease.spec.holder_identity.as_str(), lease.spec.lease_duration_seconds), ("here", 15));

    // The same once more is counted, and no second event.
    recorder.record(Note::normal(&lease, "LeaderElection", "here became leader"));
    recording.tasks.stop().await;
    let events = client.list::<CoreEvent>("kube-system", &ListOptions::default()).await.unwrap();
    let is_own = |event: &&Object<CoreEvent>| event.json().at("involvedObject").text("uid") == lease.metadata.uid;
    let told: Vec<_> = events.items.iter().filter(is_own).collect();
    let told: Vec<_> = told.iter().map(|event| (event.count, event.reason.as_str(), event.message.as_str())).collect();
    assert_eq!(told, [(2, "LeaderElection", "here became leader")]);

    tasks.stop().await;
    let lease = client.get::<Lease>(&key).await.unwrap().unwrap();
    assert_eq!((lease.spec.holder_identity.as_str(), lease.spec.lease_duration_seconds), ("", 1));
}
