//! Members and connections that go away and come back.

use super::{ambient, commit, connect, read_until};
use ambient::Tasks;
use bytes::Bytes;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use store::{Error, Etcd, EtcdOptions, Outcome, Revision, Store, Txn, WatchRequest};
use testkit::etcd::{Cluster, Etcd as Server, Version, available_versions};
use testkit::proxy::Proxy;
use tokio::sync::mpsc;

/// The longest that any request may take, with some time for a busy machine.
const BOUND: Duration = Duration::from_secs(8);

/// Writes keys of its own, one after the other, and reports those that were acknowledged, until nobody listens.
async fn write(store: Arc<Etcd>, writer: usize, acknowledged: mpsc::Sender<(Revision, Bytes)>) {
    for n in 0.. {
        let key = Bytes::from(format!("writer-{writer}/{n}"));
        match store.commit(Txn::create(key.clone(), "v")).await {
            Ok(Outcome::Committed(revision)) => {
                if acknowledged.send((revision, key)).await.is_err() {
                    return;
                }
            }
            Ok(conflict) => panic!("every key is written once, but {conflict:?}"),
            Err(Error::Unknown(_) | Error::Unavailable(_)) => {}
            Err(error) => panic!("a member was killed, but {error}"),
        }
    }
}

#[tokio::test]
async fn a_watch_sees_every_acknowledged_write_once_and_in_order_while_members_are_killed() {
    // At once, because what a leader takes with it is only missed when the request has timed out.
    futures::future::join_all(available_versions().into_iter().map(watch_while_members_are_killed)).await;
}

async fn watch_while_members_are_killed(version: Version) {
    const WRITERS: usize = 3;
    const BETWEEN_EVENTS: usize = 40;
    let mut cluster = Cluster::start(version, 3).await;
    let store = Arc::new(connect(cluster.endpoints()).await);
    let mut watch = store.watch(WatchRequest::new("", store.revision().await.unwrap())).await.unwrap();
    let (sender, mut acknowledgements) = mpsc::channel(1);
    let writers = Tasks::new();
    for writer in 0..WRITERS {
        writers.spawn("writer", write(store.clone(), writer, sender.clone()));
    }
    drop(sender);

    let mut acknowledged = Vec::new();
    for event in 0..4 {
        match event {
            1 => cluster.members[0].kill(),
            2 => cluster.members[0].restart().await,
            3 => cluster.members[1].kill(),
            _ => {}
        }
        for _ in 0..BETWEEN_EVENTS {
            acknowledged.push(acknowledgements.recv().await.expect("the writers go on"));
        }
    }
    drop(acknowledgements);
    writers.stop().await;

    let newest = acknowledged.iter().map(|(revision, _)| *revision).max().unwrap();
    let seen = read_until(&mut watch, newest).await;
    assert!(seen.windows(2).all(|pair| pair[0].revision < pair[1].revision), "each revision has one change");
    let seen: BTreeMap<Revision, Bytes> = seen.into_iter().map(|change| (change.revision, change.key)).collect();
    for (revision, key) in acknowledged {
        assert_eq!(seen.get(&revision), Some(&key), "{version:?}");
    }
    store.close().await;
}

#[tokio::test]
async fn a_watch_goes_on_after_a_lost_connection_as_if_nothing_had_happened() {
    for version in available_versions() {
        let server = Server::start(version).await;
        let proxy = Proxy::to(server.endpoint()).await;
        let store = connect(vec![proxy.endpoint()]).await;
        let mut watch = store.watch(WatchRequest::new("", store.revision().await.unwrap())).await.unwrap();
        for round in 0..5 {
            proxy.cut().await;
            let mut elsewhere = server.client().await;
            for n in 0..3 {
                elsewhere.put(format!("/setpoint/{round}-{n}"), "v", None).await.unwrap();
            }
            proxy.mend();
            let mut keys = Vec::new();
            while keys.len() < 3 {
                keys.extend(watch.next().await.unwrap().changes.into_iter().map(|change| change.key));
            }
            assert_eq!(keys, [0, 1, 2].map(|n| format!("{round}-{n}")));
        }
        store.close().await;
    }
}

#[tokio::test]
async fn an_unreachable_etcd_is_named_with_the_cause() {
    let mut server = Server::start(available_versions()[0]).await;
    server.kill();
    let error = Etcd::connect(&ambient(), EtcdOptions::new(server.endpoints())).await.expect_err("nobody listens");
    let Error::Unavailable(cause) = &error else { panic!("{error}") };
    assert!(cause.contains(server.endpoint()) && cause.contains("refused"), "{cause}");
}

#[tokio::test]
async fn an_etcd_that_was_killed_is_unavailable_until_it_is_back() {
    for version in available_versions() {
        let mut server = Server::start(version).await;
        let store = connect(server.endpoints()).await;
        let start = commit(&store, Txn::put("k", "v")).await;
        let mut watch = store.watch(WatchRequest::new("", start)).await.unwrap();
        server.kill();
        // The first write may still go out on the old connection, so what became of it would be unknown.
        let error = store.get(b"k", None).await.expect_err("nobody listens");
        assert!(matches!(&error, Error::Unavailable(cause) if cause.contains(server.endpoint())), "{error}");
        let error = store.commit(Txn::put("k", "w")).await.expect_err("nobody listens");
        assert!(matches!(error, Error::Unavailable(_)), "{error}");

        server.restart().await;
        assert_eq!(store.get(b"k", None).await.unwrap().item.unwrap().value, "v");
        let next = commit(&store, Txn::put("k", "x")).await;
        assert_eq!(watch.next().await.unwrap().revision, next);
        store.close().await;
    }
}

#[tokio::test]
async fn an_etcd_that_halts_is_reported_in_time_and_goes_on_afterwards() {
    let server = Server::start(available_versions()[0]).await;
    let store = connect(server.endpoints()).await;
    let start = commit(&store, Txn::put("k", "v")).await;
    let mut watch = store.watch(WatchRequest::new("", start)).await.unwrap();
    server.stop();
    let asked = async {
        tokio::join!(
            store.commit(Txn::put("k", "w")),
            store.get(b"k", None),
            store.status(),
            store.compact(start),
            store.commit(Txn::default().and_put_for("e", "v", Duration::from_secs(60))),
        )
    };
    let answers = tokio::time::timeout(BOUND, asked).await.expect("no request takes longer than its deadline");
    let (write, get, status, compact, expiring) = answers;
    assert!(matches!(write, Err(Error::Unknown(_))), "{write:?}");
    assert!(matches!(get, Err(Error::Unavailable(_))), "{get:?}");
    assert!(matches!(status, Err(Error::Unavailable(_))), "{status:?}");
    assert!(matches!(compact, Err(Error::Unavailable(_))), "{compact:?}");
    assert!(matches!(expiring, Err(Error::Unavailable(_))), "{expiring:?}: no lease, so nothing was written");

    server.resume();
    let last = loop {
        // The connection may have been given up meanwhile, in which case the first word on it is lost.
        match store.commit(Txn::put("last", "v")).await {
            Ok(Outcome::Committed(revision)) => break revision,
            Err(Error::Unknown(_) | Error::Unavailable(_)) => {}
            other => panic!("{other:?}"),
        }
    };
    let changes = read_until(&mut watch, last).await;
    // The write whose outcome was unknown may even happen now, before this one or after it.
    assert!(changes.iter().any(|change| change.key == "last" && change.revision == last), "{changes:?}");
    store.close().await;
}

/// Whichever of them leads is among those that are killed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn while_a_new_leader_is_elected_requests_wait_for_it() {
    for version in available_versions() {
        let mut cluster = Cluster::start(version, 3).await;
        let store = connect(cluster.endpoints()).await;
        for member in 0..3 {
            cluster.members[member].kill();
            // Some of them are under way when the old leader is missed, and some when there is a new one.
            let reads = futures::future::join_all((0..32).map(|_| async { connect(cluster.endpoints()).await }));
            for reader in reads.await {
                reader.close().await;
            }
            store.revision().await.expect("two of three members are enough to read");
            cluster.members[member].restart().await;
        }
        store.close().await;
    }
}
