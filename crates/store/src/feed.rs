//! The feed: recent commits in order, and the watchers that follow them.
//!
//! A watcher is a cursor, not a buffer. It reads the ring of recent commits at its own pace; one that fell behind the
//! ring reads on from the backend's history, and one that fell behind that is told so. Nothing is queued per watcher,
//! so a slow one costs nobody anything and ten thousand idle ones cost nothing per commit.
//!
//! A watcher that has seen everything parks under its prefix. Publishing appends to the ring and signals a dispatcher
//! task, if anybody is parked, which wakes the watchers whose prefix matches; the writer never touches a watcher.
//!
//! A follower is the opposite: it is handed every commit. A lone one is handed over then and there, so that nothing lies
//! between what is durable and what the follower shows; several at once are by the dispatcher, while the next ones are
//! being made durable. No follower falls behind the ring: whoever trims it hands over first.

mod followers;
mod parked;
mod watch;

pub use followers::{Follower, Following};
pub use watch::Watch;

use crate::data::Commit;
use crate::{Batch, Change, Error, Result, Revision, WatchRequest};
use ambient::Tasks;
use followers::Followers;
use parked::Parked;
use parking_lot::{Mutex, RwLock};
use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tokio::sync::Notify;

/// A batch ends with the revision that reaches this many changes.
const MAX_BATCH_CHANGES: usize = 1024;
/// The dispatcher lets other tasks run after waking this many watchers.
const WAKES_PER_TURN: usize = 256;

/// Where changes come from that are older than the ring.
#[async_trait::async_trait]
pub(crate) trait History: fmt::Debug + Send + Sync + 'static {
    /// The changes under the request's prefix in complete revisions, from the first one after `request.after` up to
    /// at most `until`. The batch's revision says how far it got: always beyond `request.after`.
    async fn changes(&self, request: &WatchRequest, until: Revision) -> Result<Batch>;
}

#[derive(Debug)]
pub(crate) struct Feed {
    /// Locked before `parked` and `ring`.
    followers: Mutex<Followers>,
    /// Every follower has been handed everything up to here.
    handed_over: AtomicU64,
    ring: RwLock<Ring>,
    parked: Mutex<Parked>,
    /// Signals the dispatcher that there is something to hand over, or somebody to be woken.
    published: Notify,
    history: Option<Arc<dyn History>>,
    next_watcher: AtomicU64,
    watchers: AtomicU64,
}

/// Recent commits. Every commit after `floor` is in `commits`, up to and including `head`.
#[derive(Debug)]
struct Ring {
    commits: VecDeque<Arc<Commit>>,
    bytes: u64,
    floor: Revision,
    head: Revision,
    compacted: Revision,
    ended: Option<Error>,
}

impl Ring {
    /// The index of the first commit after `revision`.
    fn after(&self, revision: Revision) -> usize {
        self.commits.partition_point(|commit| commit.revision <= revision)
    }
}

/// What a cursor finds in the ring.
enum Found {
    Batch(Batch),
    /// The ring begins after the cursor.
    Behind {
        floor: Revision,
    },
    /// Nothing more for this prefix up to `head`.
    Nothing {
        head: Revision,
    },
}

impl Feed {
    /// A feed that continues after `head`, with its dispatcher running in `tasks`.
    pub(crate) fn start(
        head: Revision,
        compacted: Revision,
        history: Option<Arc<dyn History>>,
        tasks: &Tasks,
    ) -> Arc<Feed> {
        let ring = Ring { commits: VecDeque::new(), bytes: 0, floor: head, head, compacted, ended: None };
        let feed = Arc::new(Feed {
            followers: Mutex::default(),
            handed_over: AtomicU64::new(u64::MAX),
            ring: RwLock::new(ring),
            parked: Mutex::new(Parked::after(head)),
            published: Notify::new(),
            history,
            next_watcher: AtomicU64::new(0),
            watchers: AtomicU64::new(0),
        });
        let dispatching = feed.clone();
        tasks.spawn_until_stopped("feed", async move { dispatching.dispatch().await });
        feed
    }

    /// Appends commits; `visible` runs while no reader can look, so that state and changes appear at once.
    pub(crate) fn publish(&self, commits: &[Arc<Commit>], visible: impl FnOnce()) {
        let head = {
            let mut ring = self.ring.write();
            for commit in commits {
                debug_assert!(commit.revision > ring.head, "commits are published in order");
                ring.head = commit.revision;
                // A commit without changes only moves the head: etcd has revisions that are none of our business.
                if !commit.changes.is_empty() {
                    ring.bytes += commit.bytes();
                    ring.commits.push_back(commit.clone());
                }
            }
            visible();
            ring.head
        };
        let is_handed_over = commits.len() <= 1
            // If the dispatcher is at it, it is told to go on.
            && self.followers.try_lock().map(|mut followers| self.hand_over(&mut followers)).is_some();
        let mut parked = self.parked.lock();
        let is_dispatched = parked.is_empty();
        if is_dispatched {
            parked.dispatched = head;
        }
        if !(is_handed_over && is_dispatched) {
            self.published.notify_one();
        }
    }

    /// Hands followers what they have not been handed yet.
    fn hand_over(&self, followers: &mut Followers) {
        let Some(reached) = followers.reached() else { return };
        let (head, new): (Revision, Vec<Arc<Commit>>) = {
            let ring = self.ring.read();
            (ring.head, ring.commits.range(ring.after(reached)..).cloned().collect())
        };
        followers.take(head, &new);
        self.note(followers);
    }

    fn note(&self, followers: &Followers) {
        self.handed_over.store(followers.reached().map_or(u64::MAX, |reached| reached.0), Ordering::Release);
    }

    /// Drops the oldest commits while `drop_more` says so, given the ring's bytes and the oldest commit.
    pub(crate) fn trim(&self, drop_more: impl Fn(u64, &Commit) -> bool) -> Revision {
        loop {
            let mut ring = self.ring.write();
            while let Some(oldest) = ring.commits.front().filter(|oldest| drop_more(ring.bytes, oldest)).cloned() {
                if oldest.revision.0 > self.handed_over.load(Ordering::Acquire) {
                    break;
                }
                ring.bytes -= oldest.bytes();
                ring.floor = oldest.revision;
                ring.commits.pop_front();
            }
            if !ring.commits.front().is_some_and(|oldest| drop_more(ring.bytes, oldest)) {
                return ring.floor;
            }
            drop(ring);
            self.hand_over(&mut self.followers.lock());
        }
    }

    /// From now on, revisions before this one are gone, in the ring as anywhere else.
    pub(crate) fn set_compacted(&self, compacted: Revision) {
        let mut ring = self.ring.write();
        ring.compacted = ring.compacted.max(compacted);
    }

    /// Starts over after `head`, as the oldest kept revision: whoever has not come that far is told so.
    pub(crate) fn reset(&self, head: Revision) {
        let mut woken = Vec::new();
        let mut followers = self.followers.lock();
        self.hand_over(&mut followers);
        {
            let mut parked = self.parked.lock();
            let mut ring = self.ring.write();
            ring.commits.clear();
            (ring.bytes, ring.floor, ring.head, ring.compacted) = (0, head, head, head);
            parked.take_all(&mut woken);
            parked.dispatched = head;
        }
        followers.leave_behind(head);
        self.note(&followers);
        drop(followers);
        woken.iter().for_each(|slot| slot.wake.notify_one());
    }

    /// Ends every watch, running and future, with this error.
    pub(crate) fn end(&self, error: Error) {
        let mut followers = self.followers.lock();
        self.hand_over(&mut followers);
        let error = self.ring.write().ended.get_or_insert(error).clone();
        followers.end(&error);
        self.note(&followers);
        drop(followers);
        let mut woken = Vec::new();
        {
            let mut parked = self.parked.lock();
            parked.ended = true;
            parked.take_all(&mut woken);
        }
        woken.iter().for_each(|slot| slot.wake.notify_one());
    }

    pub(crate) fn compacted(&self) -> Revision {
        self.ring.read().compacted
    }

    pub(crate) fn head(&self) -> Revision {
        self.ring.read().head
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.ring.read().bytes
    }

    pub(crate) fn watchers(&self) -> u64 {
        self.watchers.load(Ordering::Relaxed)
    }

    /// Runs `read` on the commits after `after` up to now, with nothing published meanwhile; none if the ring does
    /// not reach back that far.
    pub(crate) fn since<T>(
        &self,
        after: Revision,
        read: impl FnOnce(&mut dyn Iterator<Item = &Commit>) -> T,
    ) -> Option<T> {
        let ring = self.ring.read();
        (after >= ring.floor).then(|| read(&mut ring.commits.range(ring.after(after)..).map(Arc::as_ref)))
    }

    pub(crate) fn watch(self: &Arc<Self>, request: WatchRequest) -> Result<Watch> {
        self.check_kept(request.after)?;
        self.watchers.fetch_add(1, Ordering::Relaxed);
        let watcher = self.next_watcher.fetch_add(1, Ordering::Relaxed);
        Ok(Watch { feed: self.clone(), request, watcher, slot: Arc::default() })
    }

    /// Hands a follower everything after a kept revision that memory reaches back to, then every commit.
    pub(crate) fn follow(self: &Arc<Self>, after: Revision, follower: Arc<dyn Follower>) -> Result<Following> {
        let mut followers = self.followers.lock();
        self.check_kept(after)?;
        let (id, end) = followers.add(follower, after);
        // From here on nothing is trimmed that it lacks.
        self.note(&followers);
        let floor = self.ring.read().floor;
        if after < floor {
            followers.remove(id);
            self.note(&followers);
            return Err(Error::Compacted { requested: after, compacted: floor });
        }
        self.hand_over(&mut followers);
        drop(followers);
        Ok(Following { feed: self.clone(), id, end })
    }

    fn check_kept(&self, after: Revision) -> Result<()> {
        let ring = self.ring.read();
        match &ring.ended {
            Some(error) => Err(error.clone()),
            None if after < ring.compacted => Err(Error::Compacted { requested: after, compacted: ring.compacted }),
            None => Ok(()),
        }
    }

    fn find(&self, request: &WatchRequest) -> Result<Found> {
        self.check_kept(request.after)?;
        let ring = self.ring.read();
        if request.after < ring.floor {
            return Ok(Found::Behind { floor: ring.floor });
        }
        let mut changes = Vec::new();
        for commit in ring.commits.range(ring.after(request.after)..) {
            changes.extend(matching(commit, request));
            if changes.len() >= MAX_BATCH_CHANGES {
                return Ok(Found::Batch(Batch { revision: commit.revision, changes }));
            }
        }
        match changes.is_empty() {
            true => Ok(Found::Nothing { head: ring.head }),
            false => Ok(Found::Batch(Batch { revision: ring.head, changes })),
        }
    }

    /// Parks a watcher that has seen everything up to `seen`; false if there may be more by now.
    fn park(&self, watch: &Watch, seen: Revision) -> bool {
        let mut parked = self.parked.lock();
        if parked.ended || parked.dispatched > seen {
            return false;
        }
        watch.slot.resume_at.store(0, Ordering::Release);
        parked.insert(&watch.request.prefix, watch.watcher, &watch.slot);
        true
    }

    async fn dispatch(&self) {
        loop {
            self.published.notified().await;
            self.hand_over(&mut self.followers.lock());
            let mut woken = Vec::new();
            {
                let mut parked = self.parked.lock();
                let ring = self.ring.read();
                // Commits were trimmed before this task came to look at them: everybody has to see for himself.
                if parked.dispatched < ring.floor {
                    parked.take_all(&mut woken);
                }
                for commit in ring.commits.range(ring.after(parked.dispatched)..) {
                    parked.take_matching(commit, &mut woken);
                }
                parked.dispatched = ring.head;
            }
            for turn in woken.chunks(WAKES_PER_TURN) {
                turn.iter().for_each(|slot| slot.wake.notify_one());
                tokio::task::yield_now().await;
            }
        }
    }
}

/// The changes of a commit that a watch asks for.
pub(crate) fn matching<'a>(commit: &'a Commit, request: &'a WatchRequest) -> impl Iterator<Item = Change> + 'a {
    commit
        .changes
        .iter()
        .filter(|change| change.key.starts_with(&request.prefix))
        .map(|change| Change { previous: change.previous.clone().filter(|_| request.with_previous), ..change.clone() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Item, KeyValue};
    use ambient::Timestamp;
    use bytes::Bytes;

    /// A commit that puts one key.
    fn put(revision: u64, key: &'static str) -> Arc<Commit> {
        let revision = Revision(revision);
        let item: Item = Arc::new(KeyValue {
            key: key.into(),
            value: Bytes::new(),
            create_revision: revision,
            mod_revision: revision,
            version: 1,
            expires: None,
        });
        let change = Change { revision, key: item.key.clone(), current: Some(item), previous: None };
        Arc::new(Commit { revision, at: Timestamp(0), changes: vec![change] })
    }

    #[tokio::test]
    async fn a_parked_watch_hears_of_commits_that_were_trimmed_before_they_were_dispatched() {
        let tasks = Tasks::new();
        let feed = Feed::start(Revision::ZERO, Revision::ZERO, None, &tasks);
        let mut watch = feed.watch(WatchRequest::new("k", Revision::ZERO)).unwrap();
        let next = std::pin::pin!(watch.next());
        let publish = async {
            // No await between these, so the dispatcher first looks when the commit of `k` is gone.
            feed.publish(&[put(1, "k"), put(2, "other")], || ());
            feed.trim(|_, oldest| oldest.revision < Revision(2));
        };
        let (next, ()) = tokio::join!(biased; next, publish);
        let lost = Error::Compacted { requested: Revision(0), compacted: Revision(1) };
        assert_eq!(next, Err(lost), "without a history, what was trimmed cannot be read");
        tasks.stop().await;
    }

    #[derive(Debug, Default)]
    struct Seen(Mutex<Vec<u64>>);

    impl Follower for Seen {
        fn take(&self, _: Revision, commits: &[Arc<Commit>]) {
            self.0.lock().extend(commits.iter().map(|commit| commit.revision.0));
        }
    }

    #[tokio::test]
    async fn a_follower_has_a_lone_commit_at_once_and_others_before_they_are_trimmed() {
        let tasks = Tasks::new();
        let feed = Feed::start(Revision::ZERO, Revision::ZERO, None, &tasks);
        let seen = Arc::new(Seen::default());
        let following = feed.follow(Revision::ZERO, seen.clone()).unwrap();
        feed.publish(&[put(1, "k")], || ());
        assert_eq!(*seen.0.lock(), [1]);
        // No await between these, so the dispatcher has handed nothing over.
        feed.publish(&[put(2, "k"), put(3, "k"), put(4, "k")], || ());
        assert_eq!(*seen.0.lock(), [1]);
        assert_eq!(feed.trim(|_, oldest| oldest.revision < Revision(2)), Revision(1));
        assert_eq!(*seen.0.lock(), [1], "what is trimmed had been handed over");
        assert_eq!(feed.trim(|_, oldest| oldest.revision < Revision(4)), Revision(3));
        assert_eq!(*seen.0.lock(), [1, 2, 3, 4]);
        feed.publish(&[put(5, "k"), put(6, "k")], || ());
        feed.publish(&[put(7, "k")], || ());
        assert_eq!(*seen.0.lock(), [1, 2, 3, 4, 5, 6, 7], "nothing is passed over");
        feed.reset(Revision(9));
        let left = Error::Compacted { requested: Revision(7), compacted: Revision(9) };
        assert_eq!(following.ended().await, left);
        assert_eq!(feed.trim(|_, _| true), Revision(9), "nobody keeps anything any more");
        tasks.stop().await;
    }
}
