//! Followers: every commit once and in order, until they stop or the store does.

use super::{Backend, commit};
use parking_lot::Mutex;
use std::collections::BTreeSet;
use std::sync::Arc;
use store::{Commit, Error, Follower, Revision, Txn};
use tokio::sync::Notify;

/// Keeps what it is handed.
#[derive(Debug, Default)]
struct Notebook {
    commits: Mutex<(Revision, Vec<Arc<Commit>>)>,
    written: Notify,
}

impl Follower for Notebook {
    fn take(&self, revision: Revision, commits: &[Arc<Commit>]) {
        let mut kept = self.commits.lock();
        assert!(revision > kept.0, "nothing is handed over twice");
        assert!(commits.iter().all(|commit| kept.0 < commit.revision && commit.revision <= revision));
        kept.0 = revision;
        kept.1.extend(commits.iter().filter(|commit| !commit.changes.is_empty()).cloned());
        self.written.notify_one();
    }
}

impl Notebook {
    /// The revisions with changes, once everything up to `last` is there.
    async fn up_to(&self, last: Revision) -> Vec<u64> {
        loop {
            let written = self.written.notified();
            {
                let kept = self.commits.lock();
                if kept.0 >= last {
                    return kept.1.iter().map(|commit| commit.revision.0).collect();
                }
            }
            written.await;
        }
    }
}

pub(crate) async fn a_follower_is_handed_every_commit_once_and_in_order(backend: Backend) {
    const WRITERS: usize = 8;
    let base = backend.store.revision().await.unwrap();
    let notebook = Arc::new(Notebook::default());
    let _following = backend.store.follow(base, notebook.clone()).await.unwrap();
    let mut writers = tokio::task::JoinSet::new();
    for writer in 0..WRITERS {
        let store = backend.store.clone();
        writers.spawn(async move {
            let mut made = Vec::new();
            for n in 0..20 {
                made.push(commit(&*store, Txn::put(format!("k{writer}"), format!("{n}"))).await.0);
            }
            made
        });
    }
    let made: BTreeSet<u64> = writers.join_all().await.into_iter().flatten().collect();
    let seen = notebook.up_to(Revision(*made.last().unwrap())).await;
    assert_eq!(seen, made.into_iter().collect::<Vec<_>>());
    let kept = notebook.commits.lock();
    let changes = kept.1.iter().flat_map(|commit| &commit.changes);
    let first_of_their_keys = changes.filter(|change| change.previous.is_none()).count();
    assert_eq!(first_of_their_keys, WRITERS, "what was there before comes with each change");
}

pub(crate) async fn a_follower_that_comes_late_is_handed_what_it_missed(backend: Backend) {
    let store = &*backend.store;
    let base = store.revision().await.unwrap();
    let mut made = Vec::new();
    for n in 0..3 {
        made.push(commit(store, Txn::put("k", format!("{n}"))).await);
    }
    let (late, latest) = (Arc::new(Notebook::default()), Arc::new(Notebook::default()));
    let _late = store.follow(base, late.clone()).await.unwrap();
    let _latest = store.follow(made[1], latest.clone()).await.unwrap();
    made.push(commit(store, Txn::put("k", "3")).await);
    let numbers: Vec<u64> = made.iter().map(|revision| revision.0).collect();
    assert_eq!(late.up_to(made[3]).await, numbers);
    assert_eq!(latest.up_to(made[3]).await, numbers[2..]);
}

pub(crate) async fn whoever_stops_following_is_handed_nothing_more(backend: Backend) {
    let store = &*backend.store;
    let base = store.revision().await.unwrap();
    let (gone, stays) = (Arc::new(Notebook::default()), Arc::new(Notebook::default()));
    let following = store.follow(base, gone.clone()).await.unwrap();
    let _stays = store.follow(base, stays.clone()).await.unwrap();
    drop(following);
    let last = commit(store, Txn::put("k", "v")).await;
    assert_eq!(stays.up_to(last).await, [last.0]);
    assert_eq!(gone.commits.lock().0, Revision::ZERO);
}

pub(crate) async fn a_follower_learns_that_the_store_is_closed(backend: Backend) {
    let base = backend.store.revision().await.unwrap();
    let following = backend.store.follow(base, Arc::new(Notebook::default())).await.unwrap();
    let (ended, ()) = tokio::join!(following.ended(), backend.store.close());
    assert_eq!(ended, Error::Closed);
    let after = backend.store.follow(base, Arc::new(Notebook::default())).await.map(|_| ());
    assert_eq!(after, Err(Error::Closed));
}

pub(crate) async fn nobody_follows_from_what_was_compacted(backend: Backend) {
    let store = &*backend.store;
    let old = commit(store, Txn::put("k", "0")).await;
    let kept = commit(store, Txn::put("k", "1")).await;
    store.compact(kept).await.unwrap();
    let refused = store.follow(old, Arc::new(Notebook::default())).await.map(|_| ());
    assert_eq!(super::compacted_in(refused), kept);
}
