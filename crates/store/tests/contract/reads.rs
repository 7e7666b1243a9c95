//! Gets and ranges, now and in the past.

use super::{Backend, commit};
use store::{Error, Range, Revision, Store, Txn};

fn keys(result: &store::RangeResult) -> Vec<String> {
    result.items.iter().map(|item| String::from_utf8_lossy(&item.key).into_owned()).collect()
}

pub(crate) async fn ranges_are_ordered_and_end_with_their_prefix(backend: Backend) {
    let store = &*backend.store;
    for key in ["b/2", "a", "b/10", "b0", "b/", "c", "b"] {
        commit(store, Txn::put(key, key)).await;
    }
    commit(store, Txn::put(&b"z\xff\xff1"[..], "high")).await;
    let list = async |range| keys(&store.range(range).await.unwrap());
    assert_eq!(list(Range::prefix("b/")).await, ["b/", "b/10", "b/2"]);
    assert_eq!(list(Range::prefix("b/").starting("b/1")).await, ["b/10", "b/2"]);
    assert_eq!(list(Range::prefix("b/").starting("a")).await, ["b/", "b/10", "b/2"]);
    assert_eq!(list(Range::prefix("b/").starting("c")).await, [""; 0]);
    assert_eq!(list(Range::prefix("absent")).await, [""; 0]);
    assert_eq!(store.range(Range::prefix(&b"z\xff\xff"[..])).await.unwrap().items.len(), 1);
    assert_eq!(store.range(Range::default()).await.unwrap().items.len(), 8);
}

pub(crate) async fn pages_follow_each_other_and_count_what_is_left(backend: Backend) {
    let store = &*backend.store;
    for n in 0..10 {
        commit(store, Txn::put(format!("k/{n}"), "")).await;
    }
    commit(store, Txn::put("other", "")).await;
    let first = store.range(Range::prefix("k/").limit(4)).await.unwrap();
    assert_eq!((keys(&first), first.remaining), (["k/0", "k/1", "k/2", "k/3"].map(String::from).to_vec(), 6));
    // A write between two pages does not show up in the second.
    commit(store, Txn::delete("k/5").and_put("k/45", "")).await;
    let rest = store.range(Range::prefix("k/").starting("k/4").limit(4).at(first.revision)).await.unwrap();
    assert_eq!((keys(&rest), rest.remaining), (["k/4", "k/5", "k/6", "k/7"].map(String::from).to_vec(), 2));
    assert_eq!(rest.revision, first.revision);
}

/// Writes some history and returns each of its revisions with the state there.
async fn history(store: &dyn Store) -> Vec<(Revision, store::RangeResult)> {
    let mut states = Vec::new();
    for n in 0..12 {
        let txn = match n % 4 {
            0 => Txn::put(format!("h/{n:02}"), format!("new {n}")),
            1 => Txn::put("h/00", format!("changed {n}")),
            2 => Txn::put("h/two", format!("{n}")).and_put("elsewhere", format!("{n}")),
            _ => Txn::delete(format!("h/{:02}", n - 3)).and_put("h/zz", "last"),
        };
        let revision = commit(store, txn).await;
        states.push((revision, store.range(Range::prefix("h/")).await.unwrap()));
    }
    states
}

async fn check_past(store: &dyn Store, states: &[(Revision, store::RangeResult)]) {
    for (revision, expected) in states {
        let then = store.range(Range::prefix("h/").at(*revision)).await.unwrap();
        assert_eq!(&then, expected, "at {revision}");
        for item in &expected.items {
            let got = store.get(&item.key, Some(*revision)).await.unwrap();
            assert_eq!((got.revision, got.item.as_ref()), (*revision, Some(item)));
        }
        let limited = store.range(Range::prefix("h/").limit(1).at(*revision)).await.unwrap();
        assert_eq!(limited.items[..], expected.items[..1]);
        assert_eq!(limited.remaining, expected.items.len() as u64 - 1);
    }
}

pub(crate) async fn the_past_can_be_read_at_every_kept_revision(backend: Backend) {
    let states = history(&*backend.store).await;
    check_past(&*backend.store, &states).await;
}

pub(crate) async fn the_past_is_there_after_reopening(backend: Backend) {
    let states = history(&*backend.store).await;
    let backend = backend.reopened().await;
    check_past(&*backend.store, &states).await;
    // And still once there is a newer present.
    commit(&*backend.store, Txn::put("h/00", "newer").and_delete("h/zz")).await;
    check_past(&*backend.store, &states).await;
}

pub(crate) async fn a_future_revision_is_refused(backend: Backend) {
    let store = &*backend.store;
    let current = commit(store, Txn::put("k", "1")).await;
    let requested = current.next();
    assert_eq!(store.range(Range::prefix("k").at(requested)).await, Err(Error::FutureRevision { requested, current }));
    assert_eq!(store.get(b"k", Some(requested)).await, Err(Error::FutureRevision { requested, current }));
}
