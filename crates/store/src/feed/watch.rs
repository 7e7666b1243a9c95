//! A watch: a cursor into the feed, which waits where it has seen everything.

use super::parked::Slot;
use super::{Feed, Found};
use crate::{Batch, Error, Result, Revision, WatchRequest};
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// A watch under way. Dropping it ends it.
#[derive(Debug)]
pub struct Watch {
    pub(super) feed: Arc<Feed>,
    /// `after` moves on: everything up to it has been returned.
    pub(super) request: WatchRequest,
    pub(super) watcher: u64,
    pub(super) slot: Arc<Slot>,
}

impl Watch {
    /// The next changes, waiting for them if need be. Safe to cancel: nothing is lost. After an error the watch is
    /// over; a new one after [`Watch::progress`] continues it where the error allows.
    pub async fn next(&mut self) -> Result<Batch> {
        loop {
            let batch = match self.feed.find(&self.request)? {
                Found::Batch(batch) => batch,
                Found::Behind { floor } => self.older(floor).await?,
                Found::Nothing { head } => {
                    self.request.after = self.request.after.max(head);
                    self.wait().await;
                    continue;
                }
            };
            self.request.after = batch.revision;
            if !batch.changes.is_empty() {
                return Ok(batch);
            }
        }
    }

    /// A progress mark: every change up to this revision has been returned.
    pub fn progress(&self) -> Revision {
        let parked = self.feed.parked.lock();
        match parked.contains(&self.request.prefix, self.watcher) {
            true => self.request.after.max(parked.dispatched),
            false => self.request.after,
        }
    }

    async fn older(&self, floor: Revision) -> Result<Batch> {
        match &self.feed.history {
            Some(history) => history.changes(&self.request, floor).await,
            None => Err(Error::Compacted { requested: self.request.after, compacted: floor }),
        }
    }

    /// Waits until there may be something new, and skips what cannot matter.
    async fn wait(&mut self) {
        if self.feed.park(self, self.request.after) {
            self.slot.wake.notified().await;
            let resume_at = Revision(self.slot.resume_at.load(Ordering::Acquire));
            self.request.after = self.request.after.max(resume_at.before());
        }
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.feed.parked.lock().remove(&self.request.prefix, self.watcher);
        self.feed.watchers.fetch_sub(1, Ordering::Relaxed);
    }
}
