//! Keys that go away by themselves.

use super::{Backend, commit};
use ambient::Clock;
use std::time::Duration;
use store::{Revision, Store, Txn, WatchRequest};

/// etcd counts in whole seconds and has a minimum of two.
const TTL: Duration = Duration::from_secs(2);

/// Waits for the deletion of a key.
async fn deleted(store: &dyn Store, key: &'static str, after: Revision) -> Revision {
    let mut watch = store.watch(WatchRequest::new(key, after)).await.unwrap();
    loop {
        let batch = watch.next().await.unwrap();
        if let Some(change) = batch.changes.iter().find(|change| change.current.is_none()) {
            return change.revision;
        }
    }
}

pub(crate) async fn a_key_with_a_ttl_goes_away_by_itself_and_not_early(backend: Backend) {
    let store = &*backend.store;
    let start = Clock::system().monotonic();
    let put = commit(store, Txn::default().and_put_for("k", "v", TTL).and_put("stays", "v")).await;
    let gone = deleted(store, "k", put).await;
    assert!(start.elapsed() >= TTL, "expired after {:?}", start.elapsed());
    assert!(gone > put);
    assert_eq!(store.get(b"k", None).await.unwrap().item, None);
    assert_eq!(store.get(b"k", Some(put)).await.unwrap().item.unwrap().value, "v");
    assert!(store.get(b"stays", None).await.unwrap().item.is_some());
}

pub(crate) async fn putting_again_replaces_the_ttl(backend: Backend) {
    let store = &*backend.store;
    commit(store, Txn::default().and_put_for("k", "short", TTL).and_put_for("l", "short", TTL)).await;
    let put = commit(store, Txn::put("k", "for good").and_put_for("l", "long", Duration::from_secs(3600))).await;
    commit(store, Txn::default().and_put_for("marker", "later", TTL)).await;
    deleted(store, "marker", put).await;
    assert_eq!(store.get(b"k", None).await.unwrap().item.unwrap().value, "for good");
    assert_eq!(store.get(b"l", None).await.unwrap().item.unwrap().value, "long");
}

pub(crate) async fn a_deadline_survives_reopening(backend: Backend) {
    let put = commit(&*backend.store, Txn::default().and_put_for("k", "v", TTL)).await;
    let backend = backend.reopened().await;
    deleted(&*backend.store, "k", put).await;
}
