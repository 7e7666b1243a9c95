//! Compaction, by ourselves and by others.

use super::{ambient, commit, compact_elsewhere, connect};
use etcd_client::TxnOp;
use std::time::Duration;
use store::{Error, Etcd, EtcdOptions, Range, Retention, Store, Txn, WatchRequest};
use testkit::etcd::{Etcd as Server, available_versions};
use testkit::proxy::Proxy;

#[tokio::test]
async fn compaction_while_disconnected_ends_watches_and_later_ones_work() {
    for version in available_versions() {
        let server = Server::start(version).await;
        let proxy = Proxy::to(server.endpoint()).await;
        let store = connect(vec![proxy.endpoint()]).await;
        for more in [1, 5] {
            let start = commit(&store, Txn::put("old", "v")).await;
            let mut watch = store.watch(WatchRequest::new("", start)).await.unwrap();

            proxy.cut().await;
            let mut elsewhere = server.client().await;
            for n in 1..more {
                elsewhere.put(format!("/setpoint/{n}"), "v", None).await.unwrap();
            }
            // Compaction leaves a part of this revision: without the delete it would look complete.
            let put = TxnOp::put(format!("/setpoint/new-{more}"), "v", None);
            let both = etcd_client::Txn::new().and_then([put, TxnOp::delete("/setpoint/old", None)]);
            elsewhere.txn(both).await.unwrap();
            let compacted = store::Revision(start.0 + more);
            compact_elsewhere(&server, compacted).await;
            proxy.mend();

            let ended = watch.next().await.expect_err("what came next is gone");
            assert_eq!(ended, Error::Compacted { requested: start, compacted }, "{version:?}");
            let mut later = store.watch(WatchRequest::new("", compacted)).await.unwrap();
            let revision = commit(&store, Txn::put("later", "v")).await;
            let changes = later.next().await.unwrap().changes;
            assert_eq!((changes.len(), changes[0].revision), (1, revision), "{changes:?}");
        }
        store.close().await;
    }
}

#[tokio::test]
async fn compaction_by_others_is_told_with_the_revision_it_reached() {
    for version in available_versions() {
        let server = Server::start(version).await;
        let store = connect(server.endpoints()).await;
        let mut revisions = Vec::new();
        for n in 0..5 {
            revisions.push(commit(&store, Txn::put("k", format!("v{n}"))).await);
        }
        let (requested, compacted, current) = (revisions[2], revisions[3], revisions[4]);
        compact_elsewhere(&server, compacted).await;

        let gone = Error::Compacted { requested, compacted };
        assert_eq!(store.get(b"k", Some(requested)).await, Err(gone.clone()));
        assert_eq!(store.compact(requested).await, Err(gone.clone()));
        assert_eq!(store.compact(compacted).await, Ok(()), "that much has been done already");
        assert_eq!(store.get(b"k", Some(compacted)).await.unwrap().item.unwrap().value, "v3");
        let future = Error::FutureRevision { requested: current.next(), current };
        assert_eq!(store.range(Range::prefix("").at(current.next())).await, Err(future.clone()));
        assert_eq!(store.compact(current.next()).await, Err(future));

        // A store that connects now knows it from the start.
        let late = connect(server.endpoints()).await;
        assert_eq!(late.watch(WatchRequest::new("", requested)).await.map(drop), Err(gone));
        assert_eq!(late.status().await.unwrap().compacted, compacted);
        late.close().await;
        store.close().await;
    }
}

#[tokio::test]
async fn a_watch_from_long_ago_ends_where_others_have_compacted() {
    for version in available_versions() {
        let server = Server::start(version).await;
        let writer = connect(server.endpoints()).await;
        let first = commit(&writer, Txn::put("k", "v")).await;
        let deleted = commit(&writer, Txn::delete("k")).await;
        commit(&writer, Txn::put("l", "v")).await;
        let store = connect(server.endpoints()).await;
        let mut watch = store.watch(WatchRequest::new("", first)).await.unwrap();
        // etcd lets a watch begin at the compacted revision, of which nothing is left here.
        compact_elsewhere(&server, deleted).await;
        let gone = Error::Compacted { requested: first, compacted: deleted };
        assert_eq!(watch.next().await, Err(gone), "{version:?}");
        writer.close().await;
        store.close().await;
    }
}

#[tokio::test]
async fn history_is_compacted_by_age() {
    let server = Server::start(available_versions()[0]).await;
    let retention = Retention { age: Duration::from_secs(1), ..Retention::default() };
    let options = EtcdOptions { retention, ..EtcdOptions::new(server.endpoints()) };
    let store = Etcd::connect(&ambient(), options).await.unwrap();
    let first = commit(&store, Txn::put("k", "1")).await;
    let second = commit(&store, Txn::put("k", "2")).await;
    let compacted = loop {
        match store.get(b"k", Some(first)).await {
            Ok(found) => assert_eq!(found.item.unwrap().value, "1"),
            Err(Error::Compacted { compacted, .. }) => break compacted,
            Err(error) => panic!("{error}"),
        }
    };
    assert_eq!(compacted, second, "the newest revision is kept, however old");
    assert_eq!(store.get(b"k", None).await.unwrap().item.unwrap().value, "2");
    store.close().await;
}
