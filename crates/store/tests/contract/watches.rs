//! Watches: every change once, in order, in whole revisions, at the watcher's own pace.

use super::{Backend, commit};
use store::{Change, Revision, Store, Txn, Watch, WatchRequest};

/// Reads until `count` changes have come, and checks that batches are ordered and whole.
async fn take(watch: &mut Watch, count: usize) -> Vec<Change> {
    let mut changes: Vec<Change> = Vec::new();
    while changes.len() < count {
        let batch = watch.next().await.expect("the watch goes on");
        assert!(!batch.changes.is_empty());
        assert!(batch.changes.iter().all(|change| change.revision <= batch.revision));
        if let (Some(last), Some(first)) = (changes.last(), batch.changes.first()) {
            assert!(last.revision < first.revision, "a revision was split between two batches");
        }
        assert!(watch.progress() >= batch.revision);
        changes.extend(batch.changes);
    }
    assert!(changes.is_sorted_by_key(|change| change.revision));
    assert_eq!(changes.len(), count);
    changes
}

fn brief(changes: &[Change]) -> Vec<(u64, String, Option<String>)> {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let brief =
        |change: &Change| (change.revision.0, text(&change.key), change.current.as_ref().map(|item| text(&item.value)));
    changes.iter().map(brief).collect()
}

async fn watch(store: &dyn Store, prefix: &str, after: Revision) -> Watch {
    store.watch(WatchRequest::new(prefix.to_owned(), after)).await.expect("the revision is kept")
}

pub(crate) async fn a_watch_delivers_every_change_once_and_in_order(backend: Backend) {
    let store = &*backend.store;
    let base = store.revision().await.unwrap();
    let mut early = watch(store, "k", base).await;
    let a = commit(store, Txn::put("k1", "a")).await.0;
    let b = commit(store, Txn::put("k1", "b")).await.0;
    let c = commit(store, Txn::delete("k1")).await.0;
    let d = commit(store, Txn::put("k2", "d")).await.0;
    let expected = [
        (a, "k1".to_owned(), Some("a".to_owned())),
        (b, "k1".to_owned(), Some("b".to_owned())),
        (c, "k1".to_owned(), None),
        (d, "k2".to_owned(), Some("d".to_owned())),
    ];
    assert_eq!(brief(&take(&mut early, 4).await), expected);
    assert_eq!(brief(&take(&mut watch(store, "k", base).await, 4).await), expected);
    let change = take(&mut watch(store, "k", Revision(c)).await, 1).await.remove(0);
    let item = change.current.unwrap();
    assert_eq!((item.create_revision, item.mod_revision, item.version), (Revision(d), Revision(d), 1));
    assert_eq!(change.previous, None);
}

pub(crate) async fn a_watch_sees_only_its_prefix(backend: Backend) {
    let store = &*backend.store;
    let base = store.revision().await.unwrap();
    let mut watching = watch(store, "pods/", base).await;
    commit(store, Txn::put("pods", "no").and_put("pods0", "no").and_put("pods/1", "yes")).await;
    commit(store, Txn::put("nodes/1", "no")).await;
    commit(store, Txn::put("pods/2", "yes")).await;
    let seen = take(&mut watching, 2).await;
    assert_eq!(seen.iter().map(|change| change.key.clone()).collect::<Vec<_>>(), ["pods/1", "pods/2"]);
}

pub(crate) async fn a_transaction_is_never_split(backend: Backend) {
    let store = &*backend.store;
    let base = store.revision().await.unwrap();
    for round in 0..20 {
        let txn = (0..100).fold(Txn::default(), |txn, n| txn.and_put(format!("k/{n:03}"), format!("{round}")));
        commit(store, txn).await;
    }
    let mut watching = watch(store, "k/", base).await;
    let mut rounds = 0;
    while rounds < 20 {
        let batch = watching.next().await.unwrap();
        for revision in batch.changes.chunk_by(|a, b| a.revision == b.revision) {
            assert_eq!(revision.len(), 100);
            rounds += 1;
        }
    }
}

pub(crate) async fn previous_values_come_on_request(backend: Backend) {
    let store = &*backend.store;
    let base = store.revision().await.unwrap();
    commit(store, Txn::put("k", "1")).await;
    commit(store, Txn::put("k", "2")).await;
    commit(store, Txn::delete("k")).await;
    let request = WatchRequest::new("k", base).with_previous();
    let check = async |store: &dyn Store| {
        let changes = take(&mut store.watch(request.clone()).await.unwrap(), 3).await;
        let previous: Vec<_> =
            changes.iter().map(|change| change.previous.as_ref().map(|item| item.value.clone())).collect();
        assert_eq!(previous, [None, Some("1".into()), Some("2".into())]);
    };
    check(store).await;
    let plain = take(&mut watch(store, "k", base).await, 3).await;
    assert!(plain.iter().all(|change| change.previous.is_none()));
    check(&*backend.reopened().await.store).await;
}

/// Two hundred changes on a few keys.
async fn write_history(store: &dyn Store) -> Vec<Revision> {
    let mut revisions = Vec::new();
    for n in 0..200 {
        let txn =
            if n % 7 == 6 { Txn::delete(format!("k{}", (n - 1) % 5)) } else { Txn::put(format!("k{}", n % 5), "v") };
        revisions.push(commit(store, txn).await);
    }
    revisions.dedup();
    revisions
}

async fn check_resumption(store: &dyn Store, base: Revision, revisions: &[Revision]) {
    let all = take(&mut watch(store, "k", base).await, revisions.len()).await;
    assert_eq!(all.iter().map(|change| change.revision).collect::<Vec<_>>(), revisions);
    for skip in [1, 2, 50, revisions.len() - 1] {
        let rest = take(&mut watch(store, "k", revisions[skip - 1]).await, revisions.len() - skip).await;
        assert_eq!(rest, all[skip..]);
    }
}

pub(crate) async fn a_watch_resumes_after_any_kept_revision(backend: Backend) {
    let base = backend.store.revision().await.unwrap();
    let revisions = write_history(&*backend.store).await;
    check_resumption(&*backend.store, base, &revisions).await;
}

pub(crate) async fn a_watch_resumes_after_reopening(backend: Backend) {
    let base = backend.store.revision().await.unwrap();
    let mut revisions = write_history(&*backend.store).await;
    let backend = backend.reopened().await;
    check_resumption(&*backend.store, base, &revisions).await;
    // Across the seam between what was written before and after, too.
    revisions.push(commit(&*backend.store, Txn::put("k", "after")).await);
    check_resumption(&*backend.store, base, &revisions).await;
}

pub(crate) async fn a_watch_that_is_never_read_delays_nobody_and_loses_nothing(backend: Backend) {
    const CHANGES: usize = 4000;
    let base = backend.store.revision().await.unwrap();
    let mut slow = watch(&*backend.store, "k", base).await;
    let mut quick = watch(&*backend.store, "k", base).await;
    let writers = (0..16).map(|writer| {
        let store = backend.store.clone();
        async move {
            for _ in 0..CHANGES / 16 {
                commit(&*store, Txn::put(format!("k{writer}"), vec![b'x'; 4096])).await;
            }
        }
    });
    let writers: tokio::task::JoinSet<()> = writers.collect();
    // The quick watcher finishes while the slow one has not read anything.
    let seen = take(&mut quick, CHANGES).await;
    writers.join_all().await;
    assert_eq!(take(&mut slow, CHANGES).await, seen);
}

pub(crate) async fn ten_thousand_watchers_each_get_their_own_change(backend: Backend) {
    const WATCHERS: usize = 10_000;
    let base = backend.store.revision().await.unwrap();
    let mut watching = tokio::task::JoinSet::new();
    for n in 0..WATCHERS {
        let mut watch = watch(&*backend.store, &format!("w/{n:05}/"), base).await;
        watching.spawn(async move {
            let changes = take(&mut watch, 1).await;
            assert_eq!(changes[0].key, format!("w/{n:05}/key"));
        });
    }
    assert_eq!(backend.store.status().await.unwrap().watchers, WATCHERS as u64);
    for first in (0..WATCHERS).step_by(100) {
        let txn = (first..first + 100).fold(Txn::default(), |txn, n| txn.and_put(format!("w/{n:05}/key"), "v"));
        commit(&*backend.store, txn).await;
    }
    watching.join_all().await;
    assert_eq!(backend.store.status().await.unwrap().watchers, 0);
}

pub(crate) async fn a_cancelled_wait_loses_nothing(backend: Backend) {
    let store = &*backend.store;
    let base = store.revision().await.unwrap();
    let mut watching = watch(store, "k", base).await;
    for n in 0..50 {
        // Polled once and dropped, at whatever point that is.
        tokio::select! {
            biased;
            early = watching.next() => panic!("{early:?} before there was a change"),
            () = tokio::task::yield_now() => {}
        }
        commit(store, Txn::put("k", format!("{n}"))).await;
        assert_eq!(take(&mut watching, 1).await[0].current.as_ref().unwrap().value, format!("{n}"));
    }
}

pub(crate) async fn progress_covers_changes_that_did_not_matter(backend: Backend) {
    let store = &*backend.store;
    let base = store.revision().await.unwrap();
    let mut quiet = watch(store, "quiet/", base).await;
    let mut busy = watch(store, "busy/", base).await;
    let last = {
        let mut last = base;
        for _ in 0..10 {
            last = commit(store, Txn::put("busy/k", "v")).await;
        }
        last
    };
    take(&mut busy, 10).await;
    tokio::select! {
        biased;
        early = quiet.next() => panic!("{early:?} does not matter to this watch"),
        () = tokio::task::yield_now() => {}
    }
    assert_eq!(quiet.progress(), last);
    let mut resumed = watch(store, "quiet/", quiet.progress()).await;
    let revision = commit(store, Txn::put("quiet/k", "v")).await;
    for watch in [&mut quiet, &mut resumed] {
        assert_eq!(take(watch, 1).await[0].revision, revision);
    }
}

pub(crate) async fn a_reader_that_saw_a_change_finds_it_in_the_state(backend: Backend) {
    let base = backend.store.revision().await.unwrap();
    let mut watching = watch(&*backend.store, "k", base).await;
    let store = backend.store.clone();
    let mut writer = tokio::task::JoinSet::new();
    writer.spawn(async move {
        for n in 0..500 {
            commit(&*store, Txn::put("k", format!("{n}"))).await;
        }
    });
    let mut seen = 0;
    while seen < 500 {
        let batch = watching.next().await.unwrap();
        seen += batch.changes.len();
        let read = backend.store.get(b"k", None).await.unwrap();
        assert!(read.revision >= batch.revision && read.item.unwrap().mod_revision >= batch.revision);
    }
    writer.join_all().await;
}
