//! Transactions, leases, sizes, and the end.

use super::{commit, connect, read_until};
use ambient::Clock;
use etcd_client::{Compare, CompareOp, TxnOp};
use futures::{StreamExt, stream};
use std::time::Duration;
use store::{Error, MAX_TXN_BYTES, Outcome, Range, Revision, Store, Txn, WatchRequest};
use testkit::etcd::{Etcd as Server, available_versions};

#[tokio::test]
async fn keys_with_about_the_same_time_to_live_share_leases() {
    const HOUR: Duration = Duration::from_secs(3600);
    let server = Server::start(available_versions()[0]).await;
    let store = connect(server.endpoints()).await;
    let txn = |n: usize| (0..100).fold(Txn::default(), |txn, key| txn.and_put_for(format!("{n}/{key}"), "v", HOUR));
    stream::iter((0..25).map(|n| commit(&store, txn(n)))).buffer_unordered(8).collect::<Vec<_>>().await;
    let mut client = server.client().await;
    let leases = client.leases().await.unwrap();
    assert_eq!(leases.leases().len(), 3, "2500 keys, at most 1000 to a lease");

    // A lease that is gone before its time costs nobody more than another request.
    for lease in leases.leases() {
        client.lease_revoke(lease.id()).await.unwrap();
    }
    commit(&store, txn(0)).await;
    assert_eq!(store.status().await.unwrap().keys, 100);
    store.close().await;
}

#[tokio::test]
async fn a_key_never_expires_before_its_time() {
    const TTL: Duration = Duration::from_millis(1500);
    let server = Server::start(available_versions()[0]).await;
    let store = connect(server.endpoints()).await;
    let put_at = Clock::system().monotonic();
    let revision = commit(&store, Txn::default().and_put_for("k", "v", TTL).and_put("stays", "v")).await;
    let mut watch = store.watch(WatchRequest::new("", revision).with_previous()).await.unwrap();
    let expired = watch.next().await.unwrap().changes;
    assert!(put_at.elapsed() >= TTL);
    assert_eq!((expired.len(), expired[0].key.as_ref(), &expired[0].current), (1, b"k".as_slice(), &None));
    store.close().await;
}

#[tokio::test]
async fn values_and_lists_may_be_large() {
    const VALUES: usize = 7;
    const BYTES: usize = 1_400_000;
    for version in available_versions() {
        let server = Server::start(version).await;
        let store = connect(server.endpoints()).await;
        let start = store.revision().await.unwrap();
        let mut watch = store.watch(WatchRequest::new("", start)).await.unwrap();
        let mut last = start;
        for n in 0..VALUES {
            last = commit(&store, Txn::put(format!("k{n}"), vec![7; BYTES])).await;
        }
        let all = store.range(Range::prefix("k")).await.unwrap().items;
        assert_eq!(all.iter().map(|item| item.value.len()).sum::<usize>(), VALUES * BYTES);
        let some = store.range(Range::prefix("k").limit(2)).await.unwrap();
        assert_eq!((some.items.len(), some.remaining), (2, VALUES as u64 - 2));
        assert_eq!(read_until(&mut watch, last).await.len(), VALUES);

        // Within our limit, but not within etcd's, which counts the whole request.
        let bytes = MAX_TXN_BYTES;
        let error = store.commit(Txn::put("k", vec![0; bytes - 1])).await;
        assert_eq!(error, Err(Error::TooLarge { bytes, limit: MAX_TXN_BYTES }), "{version:?}");
        store.close().await;
    }
}

#[tokio::test]
async fn a_condition_on_a_key_that_others_changed_does_not_hold() {
    let server = Server::start(available_versions()[0]).await;
    let store = connect(server.endpoints()).await;
    let revision = commit(&store, Txn::put("k", "ours")).await;
    let theirs = etcd_client::Txn::new()
        .when([Compare::version("/setpoint/k", CompareOp::Equal, 1)])
        .and_then([TxnOp::put("/setpoint/k", "theirs", None)]);
    assert!(server.client().await.txn(theirs).await.unwrap().succeeded());
    let txn = Txn::update("k", "ours again", revision).when_absent("absent");
    let Outcome::Conflict { revision: at, current } = store.commit(txn).await.unwrap() else {
        panic!("the key has changed")
    };
    assert_eq!((at, current.len(), &current[1]), (revision.next(), 2, &None));
    assert_eq!(current[0].as_ref().map(|item| (item.value.as_ref(), item.version)), Some((b"theirs".as_slice(), 2)));
    let never = Txn::put("absent", "v").when_unmodified("absent", Revision::ZERO);
    assert!(matches!(store.commit(never).await, Ok(Outcome::Conflict { .. })), "nothing was modified at zero");
    store.close().await;
}

#[tokio::test]
async fn a_closed_store_ends_its_watches_and_refuses_everything() {
    let server = Server::start(available_versions()[0]).await;
    let store = connect(server.endpoints()).await;
    let mut watch = store.watch(WatchRequest::new("", Revision::ZERO)).await.unwrap();
    store.close().await;
    assert_eq!(watch.next().await, Err(Error::Closed));
    assert_eq!(store.get(b"k", None).await, Err(Error::Closed));
    assert_eq!(store.commit(Txn::put("k", "v")).await, Err(Error::Closed));
    assert_eq!(store.watch(WatchRequest::new("", Revision::ZERO)).await.map(drop), Err(Error::Closed));
    assert_eq!(store.revision().await, Err(Error::Closed));
    store.close().await;
}
