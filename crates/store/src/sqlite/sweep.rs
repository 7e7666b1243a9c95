//! Compaction: forgetting replaced and deleted values, from old to new, a bounded number of rows at a time.
//!
//! It waits until little is written. If several times the history is there that should be kept, and much is still
//! written, every group of writes carries some of it, at least twice the rows it adds, so heavy writing cannot starve
//! it; each step is bounded, so it cannot starve writers. A step moves the compacted revision and deletes what that makes
//! unreachable in one SQLite transaction: there is nothing to resume or repair after a crash.

use super::log::{self, Bounds, LogResult};
use crate::data::Commit;
use crate::{Result, Retention, Revision};
use ambient::Timestamp;
use bytes::Bytes;
use rusqlite::Connection;
use tokio::sync::oneshot;

/// What a group of writes sweeps at least, when anything is due.
const MIN_ROWS: usize = 64;
/// What is swept at once when nobody is waiting.
const IDLE_ROWS: usize = 256;
/// So many times what should be kept is kept while much is written.
const PATIENCE: u32 = 4;
/// Much is this many commits in a second.
const MANY_COMMITS: usize = 1000;

/// Someone who waits until a revision is the oldest kept one.
#[derive(Debug)]
struct Waiting {
    target: Revision,
    reply: oneshot::Sender<Result<()>>,
}

#[derive(Debug)]
pub(super) struct Sweep {
    bounds: Bounds,
    retention: Retention,
    /// What kept values that are no longer current take up on disk.
    history_bytes: u64,
    /// When the first change after the compacted revision was made; none if that is not known yet.
    oldest: Option<Timestamp>,
    waiting: Vec<Waiting>,
}

/// How much is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pace {
    Idle,
    Busy,
}

/// Tells the pace from the commits of the last second.
#[derive(Debug, Default)]
pub(super) struct Load {
    second: u64,
    commits: usize,
    before: usize,
}

impl Load {
    pub(super) fn note(&mut self, commits: usize, now: Timestamp) {
        self.turn(now);
        self.commits += commits;
    }

    pub(super) fn pace(&mut self, now: Timestamp) -> Pace {
        self.turn(now);
        if self.commits.max(self.before) < MANY_COMMITS { Pace::Idle } else { Pace::Busy }
    }

    fn turn(&mut self, now: Timestamp) {
        let second = now.0 / 1000;
        if second != self.second {
            self.before = if second == self.second + 1 { self.commits } else { 0 };
            (self.second, self.commits) = (second, 0);
        }
    }
}

/// A row as the sweep sees it.
struct Swept {
    id: u64,
    at: Timestamp,
    previous: u64,
    deletion: bool,
    key: Bytes,
}

impl Swept {
    fn read(row: &rusqlite::Row<'_>) -> rusqlite::Result<Self> {
        let key = Bytes::copy_from_slice(row.get_ref(4)?.as_blob()?);
        Ok(Swept { id: row.get(0)?, at: Timestamp(row.get(1)?), previous: row.get(2)?, deletion: row.get(3)?, key })
    }
}

impl Sweep {
    pub(super) fn new(bounds: Bounds, retention: Retention, history_bytes: u64) -> Self {
        Sweep { bounds, retention, history_bytes, oldest: None, waiting: Vec::new() }
    }

    pub(super) fn compacted(&self) -> Revision {
        self.bounds.compacted
    }

    pub(super) fn history_bytes(&self) -> u64 {
        self.history_bytes
    }

    /// Somebody wants `target` to be the oldest kept revision.
    pub(super) fn request(&mut self, target: Revision, reply: oneshot::Sender<Result<()>>) {
        self.waiting.push(Waiting { target, reply });
    }

    /// Takes note of what a commit made history.
    pub(super) fn note(&mut self, commit: &Commit) {
        for change in &commit.changes {
            let key = change.key.len();
            self.history_bytes += change.previous.as_ref().map_or(0, |item| log::row_bytes(key, item.value.len()));
            self.history_bytes += if change.current.is_none() { log::row_bytes(key, 0) } else { 0 };
        }
    }

    /// Whether there is something to sweep, with `head` as the current revision.
    pub(super) fn is_due(&self, pace: Pace, head: Revision, now: Timestamp) -> bool {
        let patience = if pace == Pace::Idle { 1 } else { PATIENCE };
        let kept = Retention {
            age: self.retention.age.saturating_mul(patience),
            bytes: self.retention.bytes.saturating_mul(patience.into()),
        };
        let requested = self.waiting.iter().any(|waiting| waiting.target > self.compacted());
        let exceeded = kept.exceeded(self.history_bytes, self.oldest.unwrap_or(Timestamp(0)), now);
        self.compacted() < head && (requested || exceeded)
    }

    /// Sweeps beside `added` new rows, inside their transaction.
    pub(super) fn accompany(&mut self, db: &Connection, added: usize, head: Revision, now: Timestamp) -> LogResult<()> {
        self.step(db, Pace::Busy, MIN_ROWS + 2 * added, head, now)
    }

    /// Sweeps in a transaction of its own.
    pub(super) fn alone(&mut self, db: &Connection, pace: Pace, head: Revision, now: Timestamp) -> LogResult<()> {
        self.step(db, pace, IDLE_ROWS, head, now)
    }

    /// Answers those whose revision has been reached; call it once the step is durable.
    pub(super) fn answer(&mut self) {
        let compacted = self.compacted();
        for reached in self.waiting.extract_if(.., |waiting| waiting.target <= compacted) {
            // Whoever asked may have stopped waiting.
            let _ = reached.reply.send(Ok(()));
        }
    }

    fn step(&mut self, db: &Connection, pace: Pace, budget: usize, head: Revision, now: Timestamp) -> LogResult<()> {
        if !self.is_due(pace, head, now) {
            return Ok(());
        }
        let rows = self.next_rows(db, budget)?;
        let mut swept = 0;
        for revision in rows.chunk_by(|a, b| log::revision_of(a.id) == log::revision_of(b.id)) {
            self.oldest = Some(revision[0].at);
            if swept >= budget || !self.is_due(pace, head, now) {
                break;
            }
            for row in revision {
                self.forget(db, row)?;
            }
            swept += revision.len();
            self.bounds.compacted = log::revision_of(revision[0].id);
        }
        if swept == rows.len() {
            self.oldest = None;
        }
        match swept {
            0 => Ok(()),
            _ => log::write_bounds(db, self.bounds),
        }
    }

    /// The rows of the oldest revisions that are not swept: as many revisions as it takes to have `budget` rows, and
    /// the first row of the next.
    fn next_rows(&self, db: &Connection, budget: usize) -> LogResult<Vec<Swept>> {
        let mut select =
            db.prepare_cached("SELECT id, at, previous, value IS NULL, key FROM log WHERE id >= ? ORDER BY id")?;
        let mut rows: Vec<Swept> = Vec::new();
        for row in select.query_map([log::first_id(self.compacted().next())], Swept::read)? {
            let row = row?;
            let next_revision = rows.last().is_some_and(|last| log::revision_of(last.id) != log::revision_of(row.id));
            let enough = rows.len() >= budget && next_revision;
            rows.push(row);
            if enough {
                break;
            }
        }
        Ok(rows)
    }

    /// Deletes what this row replaced, and the row itself if it is a deletion.
    fn forget(&mut self, db: &Connection, row: &Swept) -> LogResult<()> {
        if row.previous != 0 {
            let previous = Revision(row.previous);
            self.delete(db, log::first_id(previous), log::first_id(previous.next()), &row.key)?;
        }
        if row.deletion {
            self.delete(db, row.id, row.id + 1, &row.key)?;
        }
        Ok(())
    }

    fn delete(&mut self, db: &Connection, first: u64, end: u64, key: &[u8]) -> LogResult<()> {
        let mut delete = db.prepare_cached(
            "DELETE FROM log WHERE id >= ? AND id < ? AND key = ? RETURNING length(key), ifnull(length(value), 0)",
        )?;
        let mut deleted = delete.query((first, end, key))?;
        while let Some(row) = deleted.next()? {
            self.history_bytes = self.history_bytes.saturating_sub(log::row_bytes(row.get(0)?, row.get(1)?));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sweeping_waits_while_much_is_written() {
        let mut load = Load::default();
        let second = |number: u64| Timestamp(number * 1000);
        assert_eq!(load.pace(second(1)), Pace::Idle);
        load.note(MANY_COMMITS, second(1));
        assert_eq!((load.pace(second(1)), load.pace(second(2))), (Pace::Busy, Pace::Busy));
        assert_eq!(load.pace(second(3)), Pace::Idle);
        load.note(MANY_COMMITS, second(3));
        assert_eq!(load.pace(second(9)), Pace::Idle);
    }

    #[test]
    fn history_is_bounded_at_either_pace() {
        let retention = Retention { age: std::time::Duration::from_secs(60), bytes: 1000 };
        let bounds = Bounds { compacted: Revision(1), base: Revision(0) };
        let now = Timestamp(100_000);
        for (bytes, age, idle, busy) in
            [(900, 50, false, false), (1100, 50, true, false), (4100, 50, true, true), (0, 70, true, false)]
        {
            let mut sweep = Sweep::new(bounds, retention, bytes);
            sweep.oldest = Some(Timestamp(now.0 - age * 1000));
            let due = |pace| sweep.is_due(pace, Revision(9), now);
            assert_eq!((due(Pace::Idle), due(Pace::Busy)), (idle, busy), "{bytes} bytes, {age} s");
        }
    }
}
