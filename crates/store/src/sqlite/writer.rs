//! The single writer: one thread that decides transactions in the order they came, and makes them durable in groups.
//!
//! While one group is being synced the next one gathers, so under load many transactions share one fsync and a lone
//! one never waits. Readers see a group, and its authors hear of it, only after that fsync. The first write that fails
//! ends the thread: what was not acknowledged stays so, and nothing is tried again on a file in an unknown state.

use super::Shared;
use super::checkpoint::Checkpoint;
use super::files::DataDir;
use super::log::{self, LogError, LogResult};
use super::room::Room;
use super::sweep::{Load, Pace, Sweep};
use super::watermark::Watermark;
use crate::data::Commit;
use crate::head::Head;
use crate::{Error, Outcome, Result, Revision, Txn, expiry};
use ambient::Timestamp;
use ambient::watch;
use rusqlite::Connection;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use tokio::sync::{mpsc, oneshot};

/// Requests that may wait for the writer; more wait with their callers.
pub(super) const MAX_QUEUED: usize = 4096;
/// A group ends with the transaction that reaches either limit.
const MAX_GROUP_TXNS: usize = 512;
const MAX_GROUP_BYTES: usize = 8 << 20;
/// Recent commits kept in memory: what watchers read and where reads of the recent past come from.
const RING_BYTES: u64 = 6 << 20;

#[derive(Debug)]
pub(super) enum Request {
    Commit {
        txn: Txn,
        reply: oneshot::Sender<Result<Outcome>>,
    },
    Compact {
        target: Revision,
        reply: oneshot::Sender<Result<()>>,
    },
    /// Deletes what is due now.
    Expire {
        reply: oneshot::Sender<Result<()>>,
    },
    /// Looks whether old history is due to be swept.
    Sweep,
    /// The last request: the thread ends after the group it is in.
    Close,
}

/// What is decided but not yet durable, with those who wait for it.
#[derive(Default)]
struct Group {
    commits: Vec<Arc<Commit>>,
    rows: usize,
    bytes: usize,
    decided: Vec<(oneshot::Sender<Result<Outcome>>, Outcome)>,
    expired: Vec<oneshot::Sender<Result<()>>>,
    closing: bool,
}

impl Group {
    fn add(&mut self, commit: Option<Commit>) {
        let Some(commit) = commit else { return };
        self.rows += commit.changes.len();
        self.commits.push(Arc::new(commit));
    }

    fn is_full(&self) -> bool {
        self.decided.len() >= MAX_GROUP_TXNS || self.bytes >= MAX_GROUP_BYTES || self.closing
    }
}

pub(super) struct Writer {
    pub(super) db: Connection,
    pub(super) head: Head,
    pub(super) sweep: Sweep,
    pub(super) load: Load,
    pub(super) checkpoint: Checkpoint,
    pub(super) watermark: Watermark,
    pub(super) room: Room,
    /// Nobody else gets the directory while this thread may write.
    pub(super) _dir: Arc<DataDir>,
    pub(super) shared: Arc<Shared>,
    pub(super) queue: mpsc::Receiver<Request>,
    pub(super) next_expiry: watch::Sender<Option<Timestamp>>,
}

impl Writer {
    pub(super) fn run(mut self) {
        // Items recovered from disk may have deadlines already.
        self.next_expiry.send_replace(self.head.next_expiry());
        // The failure is known before the queue closes: whoever finds it closed looks there for the reason.
        let answer = match self.serve() {
            Ok(()) => Error::Closed,
            Err(error) => self.shared.fail(&error),
        };
        self.queue.close();
        while let Ok(request) = self.queue.try_recv() {
            refuse(request, &answer);
        }
        // After a failure every watch has ended with that already.
        self.shared.timeline.feed.end(answer);
    }

    fn serve(&mut self) -> LogResult<()> {
        loop {
            let now = self.shared.clock.wall();
            let pace = self.load.pace(now);
            let first = match self.queue.try_recv() {
                Ok(request) => request,
                Err(_) if self.sweep.is_due(pace, self.head.revision(), now) => {
                    self.sweep_alone(pace, now)?;
                    continue;
                }
                Err(_) if pace == Pace::Idle && self.room.is_short(self.checkpoint.pages()) => {
                    self.room.make(self.checkpoint.pages())?;
                    continue;
                }
                Err(_) => match self.queue.blocking_recv() {
                    Some(request) => request,
                    None => return Ok(()),
                },
            };
            if self.serve_group(first, pace)? {
                return Ok(());
            }
        }
    }

    /// Serves a request and all that have gathered behind it; true if one of them was to close.
    fn serve_group(&mut self, first: Request, pace: Pace) -> LogResult<bool> {
        let now = self.shared.clock.wall();
        if pace == Pace::Busy {
            // Whoever is about to bring something more goes first. On a machine that has nothing else to do this takes
            // no time; on a busy one groups grow, and syncs become few.
            std::thread::yield_now();
        }
        let mut group = Group::default();
        self.decide(first, &mut group);
        while !group.is_full()
            && let Ok(next) = self.queue.try_recv()
        {
            self.decide(next, &mut group);
        }
        // A checkpoint may have failed meanwhile, and nothing is acknowledged after that.
        self.load.note(group.commits.len(), now);
        let written = self.write(&group, now).and_then(|()| self.shared.check_checkpoint());
        if let Err(error) = written {
            // Nobody can know what reached the disk, so the authors are told just that.
            let unknown = Error::Unknown(error.to_string());
            group.decided.into_iter().for_each(|(reply, _)| drop(reply.send(Err(unknown.clone()))));
            return Err(error);
        }
        self.publish(&group);
        let closing = group.closing;
        group.decided.into_iter().for_each(|(reply, outcome)| drop(reply.send(Ok(outcome))));
        group.expired.into_iter().for_each(|reply| drop(reply.send(Ok(()))));
        self.sweep.answer();
        self.checkpoint.between_commits(&self.db)?;
        Ok(closing)
    }

    fn decide(&mut self, request: Request, group: &mut Group) {
        // Read for each: it may have come after the group was begun.
        let now = self.shared.clock.wall();
        match request {
            Request::Commit { txn, reply } => {
                group.bytes += txn.bytes();
                let (outcome, commit) = self.head.apply(txn, now);
                group.add(commit);
                group.decided.push((reply, outcome));
            }
            Request::Expire { reply } => {
                group.add(self.head.expire(now));
                group.expired.push(reply);
            }
            Request::Compact { target, reply } => self.sweep.request(target, reply),
            Request::Sweep => {}
            Request::Close => group.closing = true,
        }
    }

    fn write(&mut self, group: &Group, now: Timestamp) -> LogResult<()> {
        let head = self.head.revision();
        if group.commits.is_empty() && !self.sweep.is_due(Pace::Busy, head, now) {
            return Ok(());
        }
        self.db.prepare_cached("BEGIN IMMEDIATE")?.execute([])?;
        for commit in &group.commits {
            log::append(&self.db, commit)?;
            self.sweep.note(commit);
        }
        self.sweep.accompany(&self.db, group.rows, head, now)?;
        self.make_durable()
    }

    fn make_durable(&mut self) -> LogResult<()> {
        self.db.prepare_cached("COMMIT")?.execute([])?;
        match self.checkpoint.pages() {
            // Nothing was written since the store was opened.
            0 => Ok(()),
            pages => {
                let noted = self.watermark.write(self.head.revision(), pages);
                noted.map_err(|error| LogError::Unusable(format!("cannot note the revision: {error}")))
            }
        }
    }

    fn sweep_alone(&mut self, pace: Pace, now: Timestamp) -> LogResult<()> {
        self.db.prepare_cached("BEGIN IMMEDIATE")?.execute([])?;
        self.sweep.alone(&self.db, pace, self.head.revision(), now)?;
        self.make_durable()?;
        self.shared.check_checkpoint()?;
        self.publish(&Group::default());
        self.sweep.answer();
        self.checkpoint.between_commits(&self.db)
    }

    /// Shows readers what has become durable.
    fn publish(&mut self, group: &Group) {
        let (timeline, sweep) = (&self.shared.timeline, &self.sweep);
        timeline.feed.set_compacted(sweep.compacted());
        if !group.commits.is_empty() {
            timeline.publish(self.head.snapshot(), &group.commits);
            timeline.feed.trim(|bytes, _| bytes > RING_BYTES);
        }
        self.shared.history_bytes.store(sweep.history_bytes(), Ordering::Relaxed);
        expiry::announce(&self.next_expiry, self.head.next_expiry());
    }
}

/// Answers a request that will not be served.
fn refuse(request: Request, answer: &Error) {
    // Whoever asked may have stopped waiting.
    match request {
        Request::Commit { reply, .. } => drop(reply.send(Err(answer.clone()))),
        Request::Compact { reply, .. } | Request::Expire { reply } => drop(reply.send(Err(answer.clone()))),
        Request::Sweep | Request::Close => {}
    }
}
