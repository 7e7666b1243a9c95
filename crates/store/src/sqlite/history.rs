//! Reads that memory cannot answer: changes and states older than the ring of recent commits.
//!
//! Each read is one SQLite read transaction on a connection of its own, so it sees one state of the log however the
//! writer sweeps meanwhile, and it is short, so it never keeps the write-ahead log from being reset for long.

use super::log::{self, LogError, LogResult};
use crate::feed::History;
use crate::head::Snapshot;
use crate::rewind::Before;
use crate::{Batch, Error, Range, RangeResult, Result, Revision, WatchRequest};
use ambient::Tasks;
use bytes::Bytes;
use rusqlite::Connection;
use std::path::PathBuf;
use std::sync::Arc;
use tokio::sync::Mutex;

/// A batch ends with the revision that reaches either limit, so that no read takes long or much memory.
const MAX_ROWS_READ: usize = 4096;
const MAX_BYTES_READ: u64 = 1 << 20;

#[derive(Clone, Debug)]
pub(super) struct Reader {
    path: PathBuf,
    /// None once the store is closed.
    db: Arc<Mutex<Option<Connection>>>,
    tasks: Tasks,
}

impl Reader {
    pub(super) fn open(path: PathBuf, tasks: &Tasks) -> LogResult<Self> {
        let db = Arc::new(Mutex::new(Some(log::open_for_reading(&path)?)));
        Ok(Reader { path, db, tasks: tasks.clone() })
    }

    /// Waits for the read under way, and closes the file.
    pub(super) async fn close(&self) {
        self.db.lock().await.take();
    }

    /// Runs `read` in one read transaction, away from the asynchronous threads, after checking that `oldest` is kept.
    async fn read<T: Send + 'static>(
        &self,
        oldest: Revision,
        read: impl FnOnce(&Connection) -> LogResult<T> + Send + 'static,
    ) -> Result<T> {
        // One reader at a time: others wait here, without holding a thread.
        let (mut db, path) = (self.db.clone().lock_owned().await, self.path.clone());
        let answer = self.tasks.blocking(move || {
            let Some(db) = db.as_mut() else { return Ok(Err(Error::Closed)) };
            let transaction = db.transaction()?;
            let compacted = log::read_bounds(&transaction)?.compacted;
            if oldest < compacted {
                return Ok(Err(Error::Compacted { requested: oldest, compacted }));
            }
            read(&transaction).map(Ok)
        });
        answer.await.unwrap_or_else(|error: LogError| Err(read_error(path, &error)))
    }

    /// A range at a kept revision, given the state `now`.
    pub(super) async fn range_at(&self, now: Snapshot, at: Revision, range: Range) -> Result<RangeResult> {
        let select = format!("SELECT {} FROM log WHERE id >= ? AND id < ? ORDER BY id", log::COLUMNS);
        self.read(at, move |db| {
            let mut before = Before::<(Revision, Bytes)>::new();
            let mut select = db.prepare_cached(&select)?;
            let mut rows = select.query([log::first_id(at.next()), log::first_id(now.revision.next())])?;
            while let Some(row) = rows.next()? {
                if range.contains(log::key_in(row)?) {
                    let record = log::record(row)?;
                    before.note(&record.key, || record.previous.map(|revision| (revision, record.key.clone())));
                }
            }
            let before = before.resolve(|(revision, key)| log::item_at(db, revision, &key))?;
            Ok(before.range(&now, at, &range))
        })
        .await
    }
}

#[async_trait::async_trait]
impl History for Reader {
    async fn changes(&self, request: &WatchRequest, until: Revision) -> Result<Batch> {
        let request = request.clone();
        self.read(request.after, move |db| changes(db, &request, until)).await
    }
}

fn changes(db: &Connection, request: &WatchRequest, until: Revision) -> LogResult<Batch> {
    let mut batch = Batch { revision: until, changes: Vec::new() };
    let (mut rows_read, mut bytes_read) = (0, 0);
    let mut select =
        db.prepare_cached(&format!("SELECT {} FROM log WHERE id >= ? AND id < ? ORDER BY id", log::COLUMNS))?;
    let mut rows = select.query([log::first_id(request.after.next()), log::first_id(until.next())])?;
    let mut last = None;
    while let Some(row) = rows.next()? {
        let revision = log::revision_in(row)?;
        // Only between two revisions may a batch end.
        if let Some(last) = last.replace(revision).filter(|last| *last != revision)
            && (rows_read >= MAX_ROWS_READ || bytes_read >= MAX_BYTES_READ)
        {
            batch.revision = last;
            break;
        }
        rows_read += 1;
        if log::key_in(row)?.starts_with(&request.prefix) {
            let change = log::record(row)?.into_change(db, request.with_previous)?;
            bytes_read += change.current.as_ref().map_or(0, |item| item.len());
            batch.changes.push(change);
        }
    }
    Ok(batch)
}

fn read_error(path: PathBuf, error: &LogError) -> Error {
    match error.is_damage() {
        true => Error::Damaged { path, what: error.to_string() },
        false => Error::Unavailable(format!("cannot read {}: {error}", path.display())),
    }
}
