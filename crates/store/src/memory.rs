//! The store in memory: for tests and simulation. Nothing outlives the process.
//!
//! Commits are made in place, without threads, so under paused time every run from one seed is the same. The feed's
//! ring is the whole history; trimming it is compaction.

use crate::data::Commit;
use crate::feed::Feed;
use crate::head::Head;
use crate::timeline::{Earlier, Timeline};
use crate::{
    Error, Follower, Following, Get, Outcome, Range, RangeResult, Result, Retention, Revision, Status, Store, Txn,
    Watch, WatchRequest, expiry,
};
use ambient::watch;
use ambient::{Ambient, Tasks, Timestamp};
use parking_lot::Mutex;
use std::sync::Arc;

#[derive(Debug)]
pub struct Memory(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    ambient: Ambient,
    tasks: Tasks,
    retention: Retention,
    head: Mutex<Head>,
    timeline: Timeline,
    next_expiry: watch::Sender<Option<Timestamp>>,
}

impl Memory {
    /// An empty store whose tasks belong to `ambient`.
    pub fn new(ambient: &Ambient, retention: Retention) -> Self {
        let tasks = ambient.tasks.child();
        let feed = Feed::start(Revision::ZERO, Revision::ZERO, None, &tasks);
        let head = Head::default();
        let (next_expiry, deadlines) = watch::channel(None);
        let inner = Arc::new(Inner {
            timeline: Timeline::new(head.snapshot(), feed),
            head: Mutex::new(head),
            tasks: tasks.clone(),
            ambient: ambient.clone(),
            retention,
            next_expiry,
        });
        let store = Arc::downgrade(&inner);
        expiry::start(&tasks, ambient.clock.clone(), deadlines, move || {
            let expired = store.upgrade().map(|store| store.make(|head, now| ((), head.expire(now))));
            std::future::ready(expired.is_some())
        });
        Memory(inner)
    }
}

impl Inner {
    /// Decides, publishes and trims as one step.
    fn make<T>(&self, decide: impl FnOnce(&mut Head, Timestamp) -> (T, Option<Commit>)) -> T {
        let now = self.ambient.clock.wall();
        let mut head = self.head.lock();
        let (answer, commit) = decide(&mut head, now);
        if let Some(commit) = commit {
            self.timeline.publish(head.snapshot(), &[Arc::new(commit)]);
            let floor = self.timeline.feed.trim(|bytes, oldest| self.retention.exceeded(bytes, oldest.at, now));
            self.timeline.feed.set_compacted(floor);
        }
        expiry::announce(&self.next_expiry, head.next_expiry());
        answer
    }

    fn check_open(&self) -> Result<()> {
        if self.tasks.is_stopping() { Err(Error::Closed) } else { Ok(()) }
    }
}

#[async_trait::async_trait]
impl Store for Memory {
    async fn get(&self, key: &[u8], at: Option<Revision>) -> Result<Get> {
        let Some(at) = at else { return Ok(self.0.timeline.get(key)) };
        Ok(self.range(Range::prefix(key.to_vec()).limit(1).at(at)).await?.into_get(key))
    }

    async fn range(&self, request: Range) -> Result<RangeResult> {
        let Some(at) = request.at else { return Ok(self.0.timeline.latest().range(&request)) };
        match self.0.timeline.range_at(at, &request)? {
            Earlier::Known(result) => Ok(result),
            Earlier::Older => Err(Error::Compacted { requested: at, compacted: self.0.timeline.feed.compacted() }),
        }
    }

    async fn commit(&self, txn: Txn) -> Result<Outcome> {
        txn.check()?;
        self.0.check_open()?;
        Ok(self.0.make(|head, now| head.apply(txn, now)))
    }

    async fn watch(&self, request: WatchRequest) -> Result<Watch> {
        self.0.timeline.feed.watch(request)
    }

    async fn follow(&self, after: Revision, follower: Arc<dyn Follower>) -> Result<Following> {
        self.0.timeline.feed.follow(after, follower)
    }

    async fn compact(&self, revision: Revision) -> Result<()> {
        self.0.check_open()?;
        self.0.timeline.check_kept(revision)?;
        self.0.timeline.feed.trim(|_, oldest| oldest.revision <= revision);
        self.0.timeline.feed.set_compacted(revision);
        Ok(())
    }

    async fn revision(&self) -> Result<Revision> {
        Ok(self.0.timeline.latest().revision)
    }

    async fn status(&self) -> Result<Status> {
        self.0.check_open()?;
        Ok(self.0.timeline.status())
    }

    async fn failed(&self) -> Error {
        std::future::pending().await
    }

    async fn close(&self) {
        self.0.timeline.feed.end(Error::Closed);
        self.0.tasks.stop().await;
    }
}
