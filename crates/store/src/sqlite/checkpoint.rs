//! Moving the write-ahead log into the database, without ever making a commit wait for it.
//!
//! A thread of its own does the bulk while commits go on. Since commits keep appending, it never quite catches up, and
//! SQLite can only start the write-ahead log over once all of it has been moved. So when the thread has left little
//! enough, the writer moves that rest itself between two commits, which takes about as long as one commit.

use super::log::{LogError, LogResult, PAGE_BYTES};
use ambient::Tasks;
use rusqlite::Connection;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

/// Pages in the write-ahead log before it is moved: 16 MiB.
pub(super) const START_PAGES: u64 = (16 << 20) / PAGE_BYTES;
/// What the writer moves itself: 2 MiB.
const FINISH_PAGES: u64 = (2 << 20) / PAGE_BYTES;
/// After this many rounds the writer moves the rest whatever it is: on a busy machine the thread may never get close.
const MAX_ROUNDS: u32 = 4;

/// The writer's side.
#[derive(Debug)]
pub(super) struct Checkpoint {
    /// Pages in the write-ahead log, kept by SQLite's hook.
    pages: Arc<AtomicU64>,
    mover: Arc<Mover>,
    wake: SyncSender<()>,
    /// How often the thread has been sent since the write-ahead log was last started over.
    rounds: u32,
}

/// What the thread and the writer tell each other.
#[derive(Debug, Default)]
struct Mover {
    busy: AtomicBool,
    /// Pages that were in the database when the thread last finished.
    moved: AtomicU64,
}

impl Checkpoint {
    /// Hooks into the writer's connection and starts the thread with a connection of its own; `fail` is called with
    /// what stopped it.
    pub(super) fn start(
        writer: &mut Connection,
        own: Connection,
        tasks: &Tasks,
        fail: impl FnOnce(&LogError) + Send + 'static,
    ) -> LogResult<Self> {
        let pages = Arc::new(AtomicU64::new(0));
        let counted = pages.clone();
        writer.wal_hook(Some(move |_: &mut rusqlite::hooks::Wal, in_log: std::ffi::c_int| {
            counted.store(u64::try_from(in_log).unwrap_or(0), Ordering::Relaxed);
            Ok(())
        }))?;
        let mover = Arc::new(Mover::default());
        let (wake, woken) = sync_channel(1);
        let working = mover.clone();
        tasks
            .thread("checkpoint", move || {
                if let Err(error) = run(&own, &woken, &working) {
                    fail(&error);
                }
            })
            .map_err(|error| LogError::Unusable(format!("no thread can be started: {error}")))?;
        Ok(Checkpoint { pages, mover, wake, rounds: 0 })
    }

    /// Pages in the write-ahead log after the last commit.
    pub(super) fn pages(&self) -> u64 {
        self.pages.load(Ordering::Relaxed)
    }

    /// Called between two commits: starts or finishes a checkpoint if it is time.
    pub(super) fn between_commits(&mut self, writer: &Connection) -> LogResult<()> {
        let pages = self.pages();
        if pages < START_PAGES || self.mover.busy.load(Ordering::Acquire) {
            return Ok(());
        }
        let left = pages.saturating_sub(self.mover.moved.load(Ordering::Relaxed));
        if self.rounds > 0 && (left <= FINISH_PAGES || self.rounds >= MAX_ROUNDS) {
            move_pages(writer)?;
            self.rounds = 0;
        } else {
            self.rounds += 1;
            self.mover.busy.store(true, Ordering::Release);
            // The thread waits for this and takes one at a time; if it has failed, the store has failed with it.
            let _ = self.wake.try_send(());
        }
        Ok(())
    }
}

fn run(db: &Connection, woken: &Receiver<()>, mover: &Mover) -> LogResult<()> {
    while woken.recv().is_ok() {
        mover.moved.store(move_pages(db)?, Ordering::Relaxed);
        mover.busy.store(false, Ordering::Release);
    }
    Ok(())
}

/// Moves what can be moved without waiting for anybody; returns how much of the write-ahead log has been moved in all.
fn move_pages(db: &Connection) -> LogResult<u64> {
    let moved: i64 = db.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |row| row.get(2))?;
    Ok(u64::try_from(moved).unwrap_or(0))
}
