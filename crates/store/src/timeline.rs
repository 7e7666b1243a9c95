//! What a local backend shows its readers: the newest durable state, and the feed of changes that led there.
//!
//! Both move together, so a reader that has seen a change finds it in the state, and a watch after the revision of a
//! read misses nothing.

use crate::data::Commit;
use crate::feed::Feed;
use crate::head::Snapshot;
use crate::rewind::Before;
use crate::{Error, Get, Item, Range, RangeResult, Result, Revision, Status};
use parking_lot::RwLock;
use std::sync::Arc;

#[derive(Debug)]
pub(crate) struct Timeline {
    latest: RwLock<Snapshot>,
    pub(crate) feed: Arc<Feed>,
}

/// A read at an earlier revision, as far as memory can answer it.
pub(crate) enum Earlier {
    Known(RangeResult),
    /// The ring of recent commits does not reach back that far: the backend's history has to help.
    Older,
}

impl Timeline {
    pub(crate) fn new(latest: Snapshot, feed: Arc<Feed>) -> Self {
        Timeline { latest: RwLock::new(latest), feed }
    }

    pub(crate) fn latest(&self) -> Snapshot {
        self.latest.read().clone()
    }

    pub(crate) fn get(&self, key: &[u8]) -> Get {
        let latest = self.latest.read();
        Get { revision: latest.revision, item: latest.get(key).cloned() }
    }

    /// What memory knows of the figures.
    pub(crate) fn status(&self) -> Status {
        let latest = self.latest();
        Status {
            revision: latest.revision,
            compacted: self.feed.compacted(),
            keys: latest.len(),
            live_bytes: latest.live_bytes,
            history_bytes: self.feed.bytes(),
            disk_bytes: 0,
            watchers: self.feed.watchers(),
        }
    }

    pub(crate) fn publish(&self, snapshot: Snapshot, commits: &[Arc<Commit>]) {
        self.feed.publish(commits, || *self.latest.write() = snapshot);
    }

    /// Whether the state at `at` is kept.
    pub(crate) fn check_kept(&self, at: Revision) -> Result<()> {
        // One after the other: publishing holds the feed's lock while it waits for this one.
        let current = self.latest.read().revision;
        let compacted = self.feed.compacted();
        if at > current {
            return Err(Error::FutureRevision { requested: at, current });
        }
        if at < compacted {
            return Err(Error::Compacted { requested: at, compacted });
        }
        Ok(())
    }

    pub(crate) fn range_at(&self, at: Revision, range: &Range) -> Result<Earlier> {
        self.check_kept(at)?;
        let rewound = self.feed.since(at, |commits| {
            let mut before = Before::<Item>::new();
            for change in commits.flat_map(|commit| &commit.changes).filter(|change| range.contains(&change.key)) {
                before.note(&change.key, || change.previous.clone());
            }
            before.range(&self.latest(), at, range)
        });
        Ok(rewound.map_or(Earlier::Older, Earlier::Known))
    }
}
