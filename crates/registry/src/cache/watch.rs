//! A watch: a cursor into the events of one resource. It reads the ring at its own pace, and the store's history where
//! the ring does not reach back; nothing is queued for it.

use super::{Cache, Event, Signals, Table};
use bytes::Bytes;
use std::sync::Arc;
use store::{Revision, WatchRequest};

/// At most so many events are handed over at once.
const MAX_BATCH: usize = 512;

#[derive(Debug)]
pub struct Watch {
    cache: Cache,
    table: Arc<str>,
    /// Everything up to here has been seen.
    after: Revision,
    events: ambient::watch::Receiver<u64>,
    /// Open while the ring does not reach back to `after`.
    history: Option<store::Watch>,
}

/// The watch cannot go on without missing something: the client has to list again.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Lost {
    #[error("too old resource version: {requested} ({oldest})")]
    TooOld { requested: Revision, oldest: Revision },
    #[error("{0}")]
    Failed(String),
}

impl Cache {
    /// Every event of a resource after a revision.
    pub fn watch(&self, table: &str, after: Revision) -> Watch {
        let events = self.signals(table).clients.subscribe();
        Watch { cache: self.clone(), table: table.into(), after, events, history: None }
    }

    fn signals(&self, table: &str) -> Arc<Signals> {
        let mut state = self.0.state.write();
        let revision = state.revision;
        state.tables.entry(table.into()).or_insert_with(|| Table::new(revision)).signals.clone()
    }
}

impl Watch {
    /// Told of events after others are: for whoever has work to do about them.
    pub fn comes_last(&mut self) {
        // Nothing is missed: events are looked for before they are waited for.
        self.events = self.cache.signals(&self.table).loops.subscribe();
    }

    /// The next events, at least one. Cancelling loses nothing.
    pub async fn next(&mut self) -> Result<Vec<Arc<Event>>, Lost> {
        loop {
            if let Some(history) = &mut self.history {
                let batch = history.next().await.map_err(|error| lost(&error))?;
                let shared = &self.cache.0;
                let events: Vec<_> =
                    batch.changes.iter().filter_map(|change| shared.event(change, None)).map(Arc::new).collect();
                self.after = batch.revision;
                if self.ring_reaches_back() {
                    self.history = None;
                }
                if !events.is_empty() {
                    return Ok(events);
                }
                continue;
            }
            drop(self.events.borrow_and_update());
            match self.read_ring() {
                Some(events) if !events.is_empty() => return Ok(events),
                Some(_) => {
                    if self.events.changed().await.is_err() {
                        return Err(Lost::Failed("the cache has started over".to_owned()));
                    }
                }
                None => self.open_history().await?,
            }
        }
    }

    /// How far the watch has come: no event up to this revision is outstanding. For bookmarks.
    pub fn progress(&mut self) -> Revision {
        if let Some(history) = &self.history {
            self.after = self.after.max(history.progress());
        } else {
            let state = self.cache.0.state.read();
            let outstanding = state.tables.get(&self.table).map(|table| table.ring.after(self.after, 1));
            if matches!(outstanding, Some(Some(events)) if events.is_empty()) {
                self.after = self.after.max(state.revision);
            }
        }
        self.after
    }

    fn read_ring(&mut self) -> Option<Vec<Arc<Event>>> {
        let state = self.cache.0.state.read();
        let events = state.tables.get(&self.table)?.ring.after(self.after, MAX_BATCH)?;
        self.after = events.last().map_or(self.after, |event| event.revision());
        Some(events)
    }

    fn ring_reaches_back(&self) -> bool {
        let state = self.cache.0.state.read();
        state.tables.get(&self.table).is_some_and(|table| table.ring.after(self.after, 0).is_some())
    }

    async fn open_history(&mut self) -> Result<(), Lost> {
        let prefix = Bytes::from(format!("{}/", self.table));
        let request = WatchRequest::new(prefix, self.after).with_previous();
        let history = self.cache.0.store.watch(request).await.map_err(|error| lost(&error))?;
        self.history = Some(history);
        Ok(())
    }
}

fn lost(error: &store::Error) -> Lost {
    match error {
        store::Error::Compacted { requested, compacted } => Lost::TooOld { requested: *requested, oldest: *compacted },
        other => Lost::Failed(other.to_string()),
    }
}
