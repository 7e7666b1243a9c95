//! The store on one machine: all live data in memory, every change in a SQLite log before it is acknowledged.
//!
//! | file | owns |
//! |---|---|
//! | `files` | the data directory and its lock |
//! | `watermark` | the note of what was acknowledged |
//! | `log` | tables, rows, checksums |
//! | `recovery` | opening: integrity, newest value of every key |
//! | `writer` | the one thread that decides and commits, in groups |
//! | `sweep` | compaction |
//! | `checkpoint` | moving the write-ahead log without stalling commits |
//! | `room` | space in the write-ahead log ahead of time |
//! | `history` | reads older than memory reaches |
//! | `backup` | backup and restore |

mod backup;
mod checkpoint;
mod files;
mod history;
mod log;
mod recovery;
mod room;
mod sweep;
mod watermark;
mod writer;

pub use backup::restore;

use crate::feed::Feed;
use crate::timeline::{Earlier, Timeline};
use crate::{
    Error, Follower, Following, Get, Outcome, Range, RangeResult, Result, Retention, Revision, Status, Store, Txn,
    Watch, WatchRequest, expiry,
};
use ambient::watch;
use ambient::{Ambient, Clock, Tasks};
use checkpoint::{Checkpoint, START_PAGES};
use files::{DataDir, open_error};
use history::Reader;
use log::{LogError, LogResult};
use recovery::Recovered;
use room::Room;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use sweep::Sweep;
use tokio::sync::{mpsc, oneshot};
use watermark::Watermark;
use writer::{MAX_QUEUED, Request, Writer};

/// How often an idle store looks for history that has grown too old.
const SWEEP_EVERY: Duration = Duration::from_secs(15);

/// Where a store lives and how much it keeps.
#[derive(Clone, Debug)]
pub struct Options {
    pub data_dir: PathBuf,
    pub retention: Retention,
}

impl Options {
    pub fn new(data_dir: impl Into<PathBuf>) -> Self {
        Options { data_dir: data_dir.into(), retention: Retention::default() }
    }
}

#[derive(Debug)]
pub struct Sqlite {
    dir: Arc<DataDir>,
    shared: Arc<Shared>,
    queue: mpsc::Sender<Request>,
    reader: Reader,
    tasks: Tasks,
}

/// What the writer shares with everybody else.
#[derive(Debug)]
struct Shared {
    clock: Clock,
    timeline: Timeline,
    /// Why the store has failed, once it has.
    failure: watch::Sender<Option<Error>>,
    history_bytes: AtomicU64,
}

impl Shared {
    /// Poisons the store: from here on nothing is acknowledged. The first cause is the one that is told.
    fn fail(&self, cause: &LogError) -> Error {
        let error = Error::Failed(cause.to_string());
        let first = self.failure.send_if_modified(|failure| {
            let first = failure.is_none();
            failure.get_or_insert(error.clone());
            first
        });
        if first {
            tracing::error!(%cause, "the store has failed; nothing more is acknowledged");
            self.timeline.feed.end(error.clone());
        }
        self.failure.borrow().clone().unwrap_or(error)
    }

    /// For the writer: an error if the checkpoint's thread has failed.
    fn check_checkpoint(&self) -> LogResult<()> {
        match self.failure.borrow().as_ref() {
            Some(Error::Failed(cause)) => Err(LogError::Unusable(cause.clone())),
            Some(error) => Err(LogError::Unusable(error.to_string())),
            None => Ok(()),
        }
    }
}

impl Sqlite {
    /// Opens the store in a directory, making it if need be, after checking what is there.
    pub async fn open(ambient: &Ambient, options: Options) -> Result<Self> {
        let tasks = ambient.tasks.child();
        let ambient = Ambient { tasks: tasks.clone(), ..ambient.clone() };
        let runtime = tokio::runtime::Handle::current();
        tasks
            .blocking(move || {
                let _runtime = runtime.enter();
                Sqlite::open_blocking(&ambient, &options)
            })
            .await
    }

    fn open_blocking(ambient: &Ambient, options: &Options) -> Result<Self> {
        let dir = Arc::new(DataDir::open(&options.data_dir)?);
        let path = dir.path();
        let opened = |error: LogError| error.on_opening(path);
        let watermark = Watermark::open(&dir)?;
        watermark.check_present(&dir)?;
        let mut db = log::open_for_writing(&dir.log()).map_err(opened)?;
        watermark.check_wal(&dir, log::wal_frames(&db).map_err(opened)?)?;
        recovery::check_structure(&db).map_err(opened)?;
        let Recovered { head, bounds, history_bytes } = recovery::recover(&db).map_err(opened)?;
        watermark.check_revision(&dir, head.revision())?;
        let reader = Reader::open(dir.log(), &ambient.tasks).map_err(opened)?;

        let feed = Feed::start(head.revision(), bounds.compacted, Some(Arc::new(reader.clone())), &ambient.tasks);
        let shared = Arc::new(Shared {
            clock: ambient.clock.clone(),
            timeline: Timeline::new(head.snapshot(), feed),
            failure: watch::Sender::new(None),
            history_bytes: AtomicU64::new(history_bytes),
        });
        let (queue, requests) = mpsc::channel(MAX_QUEUED);
        let (next_expiry, deadlines) = watch::channel(None);
        let (failing, held) = (shared.clone(), dir.clone());
        let own = log::open_for_writing(&dir.log()).map_err(opened)?;
        let fail = move |error: &LogError| {
            // The directory stays ours while the thread that may call this runs.
            let _held = held;
            failing.fail(error);
        };
        let checkpoint = Checkpoint::start(&mut db, own, &ambient.tasks, fail).map_err(opened)?;
        let sweep = Sweep::new(bounds, options.retention, history_bytes);
        let writer = Writer {
            db,
            head,
            sweep,
            load: sweep::Load::default(),
            checkpoint,
            watermark,
            room: Room::new(dir.wal(), START_PAGES),
            _dir: dir.clone(),
            shared: shared.clone(),
            queue: requests,
            next_expiry,
        };
        ambient
            .tasks
            .thread("store-writer", move || writer.run())
            .map_err(|error| open_error(path, format!("no thread can be started: {error}")))?;
        let store = Sqlite { dir, shared, queue, reader, tasks: ambient.tasks.clone() };
        store.start_timers(deadlines);
        Ok(store)
    }

    /// The tasks that remind the writer of the time.
    fn start_timers(&self, deadlines: watch::Receiver<Option<ambient::Timestamp>>) {
        let queue = self.queue.downgrade();
        expiry::start(&self.tasks, self.shared.clock.clone(), deadlines, move || {
            let queue = queue.clone();
            async move {
                let (reply, answer) = oneshot::channel();
                let Some(queue) = queue.upgrade() else { return false };
                // No answer means that the writer has ended; so does this task then.
                queue.send(Request::Expire { reply }).await.is_ok() && matches!(answer.await, Ok(Ok(())))
            }
        });
        let queue = self.queue.downgrade();
        self.tasks.spawn_until_stopped("sweep-timer", async move {
            let mut timer = tokio::time::interval(SWEEP_EVERY);
            loop {
                timer.tick().await;
                let Some(queue) = queue.upgrade() else { return };
                if queue.send(Request::Sweep).await.is_err() {
                    return;
                }
            }
        });
    }

    /// Writes a verified copy of the whole store to a new file while it goes on working; returns its revision.
    pub async fn backup(&self, to: &Path) -> Result<Revision> {
        let (from, to) = (self.dir.log(), to.to_owned());
        self.tasks.blocking(move || backup::backup(&from, &to)).await
    }

    /// Sends a request and waits for its answer.
    async fn ask<T>(&self, request: impl FnOnce(oneshot::Sender<Result<T>>) -> Request) -> Result<T> {
        self.check_healthy()?;
        let (reply, answer) = oneshot::channel();
        if self.queue.send(request(reply)).await.is_err() {
            return Err(self.why_ended());
        }
        answer.await.unwrap_or_else(|_| Err(self.why_ended()))
    }

    fn check_healthy(&self) -> Result<()> {
        match self.shared.failure.borrow().as_ref() {
            Some(error) => Err(error.clone()),
            None => Ok(()),
        }
    }

    fn why_ended(&self) -> Error {
        self.check_healthy().err().unwrap_or(Error::Closed)
    }
}

/// Leaves everything in the database, when all connections are closed. Nothing is lost if it cannot be done: the next
/// to open finds the rest in the write-ahead log.
fn settle(dir: &DataDir) {
    let settled = log::open_for_writing(&dir.log()).and_then(|db| {
        let watermark = Watermark::open(dir).map_err(|error| LogError::Unusable(error.to_string()))?;
        log::settle(db, || watermark.write_settled())
    });
    if let Err(error) = settled {
        tracing::warn!(%error, "the write-ahead log stays behind");
    }
}

#[async_trait::async_trait]
impl Store for Sqlite {
    async fn get(&self, key: &[u8], at: Option<Revision>) -> Result<Get> {
        let Some(at) = at else { return Ok(self.shared.timeline.get(key)) };
        Ok(self.range(Range::prefix(key.to_vec()).limit(1).at(at)).await?.into_get(key))
    }

    async fn range(&self, request: Range) -> Result<RangeResult> {
        let Some(at) = request.at else { return Ok(self.shared.timeline.latest().range(&request)) };
        match self.shared.timeline.range_at(at, &request)? {
            Earlier::Known(result) => Ok(result),
            Earlier::Older => self.reader.range_at(self.shared.timeline.latest(), at, request).await,
        }
    }

    async fn commit(&self, txn: Txn) -> Result<Outcome> {
        txn.check()?;
        self.ask(|reply| Request::Commit { txn, reply }).await
    }

    async fn watch(&self, request: WatchRequest) -> Result<Watch> {
        self.shared.timeline.feed.watch(request)
    }

    async fn follow(&self, after: Revision, follower: Arc<dyn Follower>) -> Result<Following> {
        self.shared.timeline.feed.follow(after, follower)
    }

    async fn compact(&self, target: Revision) -> Result<()> {
        self.shared.timeline.check_kept(target)?;
        self.ask(|reply| Request::Compact { target, reply }).await
    }

    async fn revision(&self) -> Result<Revision> {
        Ok(self.shared.timeline.latest().revision)
    }

    async fn status(&self) -> Result<Status> {
        self.check_healthy()?;
        let dir = self.dir.clone();
        let disk_bytes = self.tasks.blocking(move || dir.bytes()).await;
        let disk_bytes = disk_bytes.map_err(|error| Error::Unavailable(format!("cannot size the files: {error}")))?;
        let history_bytes = self.shared.history_bytes.load(Ordering::Relaxed);
        Ok(Status { history_bytes, disk_bytes, ..self.shared.timeline.status() })
    }

    async fn failed(&self) -> Error {
        let mut failure = self.shared.failure.subscribe();
        match failure.wait_for(Option::is_some).await.map(|()| failure.borrow().clone()) {
            Ok(Some(error)) => error,
            _ => std::future::pending().await,
        }
    }

    async fn close(&self) {
        // If the queue is closed already, the writer is gone or going.
        let _ = self.queue.send(Request::Close).await;
        self.tasks.stop().await;
        self.reader.close().await;
        let (Some(lock), dir) = (self.dir.take_lock(), self.dir.clone()) else { return };
        if self.check_healthy().is_ok() {
            self.tasks.blocking(move || settle(&dir)).await;
        }
        drop(lock);
    }
}
