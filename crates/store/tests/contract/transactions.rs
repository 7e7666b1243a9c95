//! Compare-and-swap over one or several keys.

use super::{Backend, commit};
use store::{Error, MAX_KEY_BYTES, MAX_TXN_BYTES, MAX_TXN_OPERATIONS, Outcome, Range, Txn};

pub(crate) async fn every_changing_commit_gets_the_next_revision(backend: Backend) {
    let store = &*backend.store;
    let base = store.revision().await.unwrap();
    let first = commit(store, Txn::put("a", "1")).await;
    let second = commit(store, Txn::put("b", "1")).await;
    let third = commit(store, Txn::delete("a")).await;
    assert_eq!([first, second, third], [base.next(), base.next().next(), base.next().next().next()]);
    assert_eq!(store.revision().await.unwrap(), third);
}

pub(crate) async fn a_key_counts_its_versions_and_starts_over_after_deletion(backend: Backend) {
    let store = &*backend.store;
    let created = commit(store, Txn::put("k", "1")).await;
    let modified = commit(store, Txn::put("k", "2")).await;
    let item = store.get(b"k", None).await.unwrap().item.unwrap();
    assert_eq!((item.create_revision, item.mod_revision, item.version), (created, modified, 2));
    assert_eq!((item.key.as_ref(), item.value.as_ref()), (&b"k"[..], &b"2"[..]));

    commit(store, Txn::delete("k")).await;
    assert_eq!(store.get(b"k", None).await.unwrap().item, None);
    let again = commit(store, Txn::create("k", "3")).await;
    let item = store.get(b"k", None).await.unwrap().item.unwrap();
    assert_eq!((item.create_revision, item.mod_revision, item.version), (again, again, 1));
}

pub(crate) async fn create_conflicts_with_a_present_key(backend: Backend) {
    let store = &*backend.store;
    let revision = commit(store, Txn::create("k", "1")).await;
    let Outcome::Conflict { current, revision: at } = store.commit(Txn::create("k", "2")).await.unwrap() else {
        panic!("the key is there already")
    };
    assert_eq!(at, revision);
    assert_eq!(current[0].as_ref().unwrap().value, "1");
}

pub(crate) async fn update_conflicts_with_a_newer_value(backend: Backend) {
    let store = &*backend.store;
    let first = commit(store, Txn::create("k", "1")).await;
    let second = commit(store, Txn::update("k", "2", first)).await;
    let outcome = store.commit(Txn::update("k", "3", first)).await.unwrap();
    assert!(matches!(outcome, Outcome::Conflict { .. }), "{outcome:?}");
    commit(store, Txn::delete("k").when_unmodified("k", second)).await;
    let outcome = store.commit(Txn::update("k", "4", second)).await.unwrap();
    assert!(matches!(&outcome, Outcome::Conflict { current, .. } if current == &[None]), "{outcome:?}");
}

pub(crate) async fn a_conflict_shows_every_condition_and_changes_nothing(backend: Backend) {
    let store = &*backend.store;
    commit(store, Txn::put("a", "1").and_put("b", "2")).await;
    let before = store.range(Range::default()).await.unwrap();
    let txn = Txn::put("c", "3").and_delete("a").when_absent("c").when_absent("b").when_absent("a");
    let Outcome::Conflict { current, revision } = store.commit(txn).await.unwrap() else { panic!("b is there") };
    let values: Vec<_> = current.iter().map(|item| item.as_ref().map(|item| item.value.clone())).collect();
    assert_eq!(values, [None, Some("2".into()), Some("1".into())]);
    assert_eq!(revision, before.revision);
    assert_eq!(store.range(Range::default()).await.unwrap(), before);
}

pub(crate) async fn all_changes_of_a_transaction_share_one_revision(backend: Backend) {
    let store = &*backend.store;
    commit(store, Txn::put("gone", "x")).await;
    let revision = commit(store, Txn::put("a", "1").and_put("b", "2").and_delete("gone")).await;
    let range = store.range(Range::default()).await.unwrap();
    assert_eq!(range.revision, revision);
    assert_eq!(range.items.len(), 2);
    assert!(range.items.iter().all(|item| item.mod_revision == revision));
}

pub(crate) async fn deleting_an_absent_key_is_no_change(backend: Backend) {
    let store = &*backend.store;
    let before = commit(store, Txn::put("k", "1")).await;
    assert_eq!(commit(store, Txn::delete("absent")).await, before);
    assert_eq!(commit(store, Txn::default()).await, before);
    assert_eq!(store.revision().await.unwrap(), before);
}

pub(crate) async fn what_can_never_work_is_refused_without_a_trace(backend: Backend) {
    let store = &*backend.store;
    let before = store.revision().await.unwrap();
    let many = (0..=MAX_TXN_OPERATIONS).fold(Txn::default(), |txn, n| txn.and_put(format!("k{n}"), ""));
    for txn in [many, Txn::put("", "v"), Txn::put(vec![b'k'; MAX_KEY_BYTES + 1], ""), Txn::put("k", "").and_delete("k")]
    {
        let refused = store.commit(txn).await;
        assert!(matches!(refused, Err(Error::Invalid(_))), "{refused:?}");
    }
    let refused = store.commit(Txn::put("k", vec![0; MAX_TXN_BYTES])).await;
    assert!(matches!(refused, Err(Error::TooLarge { .. })), "{refused:?}");
    assert_eq!(store.revision().await.unwrap(), before);
}

pub(crate) async fn a_value_at_the_size_limit_is_kept_whole(backend: Backend) {
    let store = &*backend.store;
    // etcd counts its own framing of the request too.
    let value: Vec<u8> = (0..MAX_TXN_BYTES - 1024).map(|n| (n % 251) as u8).collect();
    commit(store, Txn::put("k", value.clone())).await;
    assert_eq!(store.get(b"k", None).await.unwrap().item.unwrap().value, value);
}

pub(crate) async fn concurrent_increments_are_never_lost(backend: Backend) {
    const TASKS: usize = 8;
    const INCREMENTS: usize = 25;
    commit(&*backend.store, Txn::create("counter", "0")).await;
    let mut tasks = tokio::task::JoinSet::new();
    for _ in 0..TASKS {
        let store = backend.store.clone();
        tasks.spawn(async move {
            let mut item = store.get(b"counter", None).await.unwrap().item.unwrap();
            for _ in 0..INCREMENTS {
                loop {
                    let count: usize = std::str::from_utf8(&item.value).unwrap().parse().unwrap();
                    let txn = Txn::update("counter", (count + 1).to_string(), item.mod_revision);
                    match store.commit(txn).await.unwrap() {
                        Outcome::Committed(_) => break,
                        Outcome::Conflict { mut current, .. } => item = current.remove(0).unwrap(),
                    }
                }
                item = store.get(b"counter", None).await.unwrap().item.unwrap();
            }
        });
    }
    tasks.join_all().await;
    let item = backend.store.get(b"counter", None).await.unwrap().item.unwrap();
    assert_eq!(item.value, (TASKS * INCREMENTS).to_string());
    assert_eq!(item.version, (TASKS * INCREMENTS + 1) as u64);
}
