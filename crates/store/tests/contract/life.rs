//! Opening, closing, and the figures in between.

use super::{Backend, commit};
use store::{Error, Range, Txn, WatchRequest};

pub(crate) async fn a_closed_store_refuses_and_ends_its_watches(backend: Backend) {
    let store = &*backend.store;
    let revision = commit(store, Txn::put("k", "v")).await;
    let mut watch = store.watch(WatchRequest::new("k", revision)).await.unwrap();
    let (ended, ()) = tokio::join!(watch.next(), store.close());
    assert_eq!(ended, Err(Error::Closed));
    assert_eq!(store.commit(Txn::put("k", "w")).await, Err(Error::Closed));
    assert!(store.watch(WatchRequest::new("k", revision)).await.is_err());
}

pub(crate) async fn figures_follow_what_is_stored(backend: Backend) {
    let store = &*backend.store;
    let before = store.status().await.unwrap();
    let revision = commit(store, Txn::put("k", vec![b'v'; 99]).and_put("l", "")).await;
    let watch = store.watch(WatchRequest::new("k", revision)).await.unwrap();
    let status = store.status().await.unwrap();
    assert_eq!(status.revision, revision);
    assert_eq!(status.keys, before.keys + 2);
    // etcd counts in pages and does not tell live bytes from history.
    assert!(status.live_bytes > 0, "{status:?}");
    assert_eq!(status.watchers, 1);
    drop(watch);
    assert_eq!(store.status().await.unwrap().watchers, 0);
}

pub(crate) async fn everything_acknowledged_is_there_after_reopening(backend: Backend) {
    let mut last = backend.store.revision().await.unwrap();
    for n in 0..100 {
        last = commit(&*backend.store, Txn::put(format!("k{}", n % 30), format!("{n}"))).await;
    }
    commit(&*backend.store, Txn::delete("k7")).await;
    let before = backend.store.range(Range::default()).await.unwrap();
    let backend = backend.reopened().await;
    let after = backend.store.range(Range::default()).await.unwrap();
    assert_eq!(after, before);
    assert_eq!(commit(&*backend.store, Txn::put("k", "next")).await, last.next().next());
}
