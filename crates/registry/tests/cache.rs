//! The watch cache over a real store: what readers and watchers may rely on.

use ambient::Ambient;
use bytes::Bytes;
use object::{View, json};
use registry::cache::{EventKind, Lost};
use registry::{Committed, Plain, Registry, Write, encode};
use std::sync::Arc;
use store::{Memory, Retention, Revision};

async fn registry() -> Registry {
    let ambient = Ambient::real();
    let store = Arc::new(Memory::new(&ambient, Retention::default()));
    Registry::start(store, Arc::new(Plain), &ambient).await.unwrap()
}

/// Writes a ConfigMap of about that size, new or in place of the one at a revision.
async fn put(registry: &Registry, name: &str, expected: Option<Revision>, bytes: usize) -> Revision {
    let object = json!({ "metadata": { "name": name }, "data": { "k": "x".repeat(bytes) } });
    let body = encode("v1", "ConfigMap", object.as_object().unwrap());
    let key = Bytes::from(format!("configmaps/default/{name}"));
    match registry.commit(&[Write { key, expected, body: Some(body), ttl: None }]).await.unwrap() {
        Committed::At(revision) => revision,
        Committed::Conflict(current) => panic!("somebody else wrote {current:?}"),
    }
}

#[tokio::test]
async fn a_read_shows_every_write_that_was_acknowledged_before_it() {
    let registry = registry().await;
    let mut expected = None;
    for round in 0..200 {
        let revision = put(&registry, "a", expected, round).await;
        let object = registry.get(b"configmaps/default/a").await.unwrap().unwrap();
        assert_eq!((object.revision, object.decode()["data"].text("k").len()), (revision, round));
        expected = Some(revision);
    }
}

#[tokio::test]
async fn a_snapshot_stays_as_it_was() {
    let registry = registry().await;
    let first = put(&registry, "a", None, 1).await;
    registry.cache.reached(first).await;
    let snapshot = registry.cache.snapshot("configmaps");
    let second = put(&registry, "b", None, 1).await;
    registry.cache.reached(second).await;
    let names = |snapshot: &registry::cache::Snapshot| {
        snapshot.under(b"configmaps/default/", b"").map(|object| object.name().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!((names(&snapshot), snapshot.revision), (vec!["a".to_owned()], first));
    assert_eq!(names(&registry.cache.snapshot("configmaps")), ["a", "b"]);
}

#[tokio::test]
async fn a_watch_from_the_past_reads_what_memory_no_longer_holds_and_then_follows() {
    const OBJECTS: usize = 10;
    let registry = registry().await;
    let start = registry.cache.revision();
    // Together more than the cache keeps of recent events.
    for n in 0..OBJECTS {
        put(&registry, &format!("old-{n:02}"), None, 1 << 20).await;
    }
    let mut watch = registry.cache.watch("configmaps", start);
    let mut seen = Vec::new();
    while seen.len() < OBJECTS {
        seen.extend(watch.next().await.unwrap().iter().map(|event| event.object.name().to_owned()));
    }
    let expected: Vec<String> = (0..OBJECTS).map(|n| format!("old-{n:02}")).collect();
    assert_eq!(seen, expected);

    let revision = put(&registry, "new", None, 1).await;
    let events = watch.next().await.unwrap();
    assert_eq!(
        events.iter().map(|event| (event.kind, event.revision())).collect::<Vec<_>>(),
        [(EventKind::Added, revision)]
    );
    put(&registry, "new", Some(revision), 2).await;
    let events = watch.next().await.unwrap();
    let event = &events[0];
    assert_eq!((event.kind, event.previous.as_ref().unwrap().revision), (EventKind::Modified, revision));
}

#[tokio::test]
async fn a_watch_that_would_miss_something_says_so() {
    let registry = registry().await;
    let first = put(&registry, "a", None, 1).await;
    for n in 0..10 {
        put(&registry, &format!("b-{n}"), None, 1 << 20).await;
    }
    let last = registry.cache.current().await.unwrap();
    registry.store.compact(last).await.unwrap();
    let lost = registry.cache.watch("configmaps", first).next().await.unwrap_err();
    assert_eq!(lost, Lost::TooOld { requested: first, oldest: last });
}

#[tokio::test]
async fn of_two_who_write_at_once_one_is_shown_what_the_other_wrote() {
    let registry = registry().await;
    let first = put(&registry, "a", None, 1).await;
    let second = put(&registry, "a", Some(first), 2).await;
    let write =
        Write { key: Bytes::from_static(b"configmaps/default/a"), expected: Some(first), body: None, ttl: None };
    match registry.commit(&[write]).await.unwrap() {
        Committed::Conflict(current) => assert_eq!(current[0].as_ref().unwrap().revision, second),
        Committed::At(revision) => panic!("an old writer won at {revision}"),
    }
}
