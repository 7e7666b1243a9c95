//! Compaction: what is forgotten, what is not, and who is told.

use super::{Backend, commit, compacted_in};
use store::{Error, Range, Revision, Store, Txn, WatchRequest};

/// Ten values of one key, and where each was put.
async fn overwrite(store: &dyn Store) -> Vec<Revision> {
    let mut revisions = Vec::new();
    for n in 0..10 {
        revisions.push(commit(store, Txn::put("k", format!("{n}"))).await);
    }
    revisions
}

pub(crate) async fn what_was_compacted_cannot_be_read_or_watched(backend: Backend) {
    let store = &*backend.store;
    let revisions = overwrite(store).await;
    store.compact(revisions[5]).await.unwrap();
    for gone in &revisions[..5] {
        assert_eq!(compacted_in(store.get(b"k", Some(*gone)).await), revisions[5]);
        assert_eq!(compacted_in(store.range(Range::prefix("k").at(*gone)).await), revisions[5]);
        let watched = match store.watch(WatchRequest::new("k", *gone)).await {
            Ok(mut watch) => watch.next().await.map(|_| ()),
            Err(error) => Err(error),
        };
        assert_eq!(compacted_in(watched), revisions[5]);
    }
    assert_eq!(store.status().await.unwrap().compacted, revisions[5]);
}

pub(crate) async fn the_compacted_revision_itself_stays_readable(backend: Backend) {
    let store = &*backend.store;
    let revisions = overwrite(store).await;
    store.compact(revisions[5]).await.unwrap();
    for (n, revision) in revisions.iter().enumerate().skip(5) {
        assert_eq!(store.get(b"k", Some(*revision)).await.unwrap().item.unwrap().value, n.to_string());
    }
    let mut watch = store.watch(WatchRequest::new("k", revisions[5]).with_previous()).await.unwrap();
    let batch = watch.next().await.unwrap();
    assert_eq!(batch.changes[0].revision, revisions[6]);
    assert_eq!(batch.changes[0].previous.as_ref().unwrap().value, "5");
}

pub(crate) async fn compaction_keeps_current_values_however_old(backend: Backend) {
    let store = &*backend.store;
    commit(store, Txn::put("old", "kept").and_put("deleted", "x")).await;
    commit(store, Txn::delete("deleted")).await;
    let revisions = overwrite(store).await;
    store.compact(*revisions.last().unwrap()).await.unwrap();
    let range = store.range(Range::default()).await.unwrap();
    let values: Vec<_> = range.items.iter().map(|item| item.value.clone()).collect();
    assert_eq!(values, ["9", "kept"]);
    assert_eq!(store.get(b"old", Some(range.revision)).await.unwrap().item.unwrap().version, 1);
    assert_eq!(store.get(b"deleted", Some(range.revision)).await.unwrap().item, None);
}

pub(crate) async fn compacting_the_future_or_the_past_is_refused(backend: Backend) {
    let store = &*backend.store;
    let revisions = overwrite(store).await;
    let current = revisions[9];
    assert_eq!(store.compact(current.next()).await, Err(Error::FutureRevision { requested: current.next(), current }));
    store.compact(revisions[5]).await.unwrap();
    assert_eq!(compacted_in(store.compact(revisions[3]).await), revisions[5]);
}

pub(crate) async fn a_watcher_that_is_up_to_date_survives_compaction(backend: Backend) {
    let store = &*backend.store;
    let base = store.revision().await.unwrap();
    let mut busy = store.watch(WatchRequest::new("k", base)).await.unwrap();
    let mut idle = store.watch(WatchRequest::new("idle", base)).await.unwrap();
    let last = *overwrite(store).await.last().unwrap();
    while busy.progress() < last {
        busy.next().await.unwrap();
    }
    tokio::select! {
        biased;
        early = idle.next() => panic!("{early:?} does not matter to this watch"),
        () = tokio::task::yield_now() => {}
    }
    store.compact(last).await.unwrap();
    let revision = commit(store, Txn::put("k", "new").and_put("idle", "new")).await;
    for watch in [&mut busy, &mut idle] {
        assert_eq!(watch.next().await.unwrap().changes[0].revision, revision);
    }
}

pub(crate) async fn compaction_holds_after_reopening(backend: Backend) {
    let revisions = overwrite(&*backend.store).await;
    backend.store.compact(revisions[7]).await.unwrap();
    let backend = backend.reopened().await;
    let store = &*backend.store;
    assert_eq!(compacted_in(store.get(b"k", Some(revisions[6])).await), revisions[7]);
    assert_eq!(store.get(b"k", Some(revisions[7])).await.unwrap().item.unwrap().value, "7");
    assert_eq!(store.get(b"k", None).await.unwrap().item.unwrap().version, 10);
}
