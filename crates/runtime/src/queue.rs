//! The work queue: which keys need work, and when.
//!
//! It owns the order of work. A key is queued once however often it is added, one worker at a time holds it, and one
//! that is added meanwhile is queued again when that worker is done. So whatever happened before a worker looks makes
//! one pass, and nothing that happens after it looked is missed. Keys are served in the order in which they became
//! ready. What to do with a key, and whether it has failed, is for the worker to know.
//!
//! **Bounds.** A key is held once in each of the structures below, so they hold at most as many entries as there are
//! objects of the kind; dropping one would lose a wake-up. Delays need no task: of the workers that wait for a key, one
//! waits for the earliest delay too, and passes that on when it gets a key.

mod limits;
mod metrics;

pub use limits::{Bucket, Limits};

use ambient::Clock;
use limits::Refill;
use metrics::Figures;
use parking_lot::Mutex;
use prometheus::Registry;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt::{self, Debug};
use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};

/// Longer delays are cut to this: a loop that is woken early looks and waits again, and no sum overflows.
const MAX_DELAY: Duration = Duration::from_secs(30 * 24 * 3600);

/// A work queue; clones are handles to the same one.
pub struct Queue<T>(Arc<Shared<T>>);

struct Shared<T> {
    state: Mutex<State<T>>,
    /// One permit for each key that becomes ready, and one when somebody is needed who waits for the delays.
    wake: Notify,
    /// The earliest delay has become an earlier one.
    earlier: Notify,
    limits: Limits,
    clock: Clock,
    figures: Arc<Figures>,
}

struct State<T> {
    /// Keys in the order in which they are to be handed out. Each is in `dirty`, none is in `processing`.
    queue: VecDeque<T>,
    /// Keys that need work, and since when: those in `queue`, and those added while they were in `processing`.
    dirty: BTreeMap<T, Instant>,
    /// Keys that workers hold, and since when.
    processing: BTreeMap<T, Instant>,
    /// When delayed keys are to be added: the same pairs as in `due`, by time.
    delayed: BTreeSet<(Instant, T)>,
    /// When delayed keys are to be added, by key: one time each, the earliest that was asked for.
    due: BTreeMap<T, Instant>,
    /// How often in a row a key has failed; without those that have not.
    failures: BTreeMap<T, u32>,
    refill: Refill,
    /// Somebody waits for the earliest delay.
    is_timed: bool,
    /// Nothing is taken in any more.
    shut: bool,
}

impl<T> Clone for Queue<T> {
    fn clone(&self) -> Self {
        Queue(self.0.clone())
    }
}

impl<T> Debug for Queue<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.0.state.lock();
        let (queued, processing, delayed) = (state.queue.len(), state.processing.len(), state.due.len());
        write!(f, "Queue {{ queued: {queued}, processing: {processing}, delayed: {delayed}, shut: {} }}", state.shut)
    }
}

impl<T: Clone + Ord + Debug + Send + 'static> Queue<T> {
    /// `name` is what the queue goes by in the figures. A later queue of the same name takes the place of this one
    /// there, as when a replica leads for the second time.
    pub fn new(name: &str, limits: Limits, clock: Clock, registry: &Registry) -> Self {
        let state = Mutex::new(State {
            queue: VecDeque::new(),
            dirty: BTreeMap::new(),
            processing: BTreeMap::new(),
            delayed: BTreeSet::new(),
            due: BTreeMap::new(),
            failures: BTreeMap::new(),
            refill: Refill::default(),
            is_timed: false,
            shut: false,
        });
        let figures = Arc::new(Figures::new(name));
        let (wake, earlier) = (Notify::new(), Notify::new());
        let shared = Arc::new(Shared { state, wake, earlier, limits, clock, figures: figures.clone() });
        let observed = Arc::downgrade(&shared);
        figures.register(registry, move || observed.upgrade().map(|shared| shared.load()).unwrap_or_default());
        Queue(shared)
    }

    /// Queues a key, unless it is queued already.
    pub fn add(&self, key: T) {
        let now = self.0.clock.monotonic();
        let queued = self.0.add(&mut self.0.state.lock(), key, now);
        if queued {
            self.0.wake.notify_one();
        }
    }

    /// Queues a key after a while. Of several times that are asked for, the earliest counts.
    pub fn add_after(&self, key: T, delay: Duration) {
        let now = self.0.clock.monotonic();
        let mut state = self.0.state.lock();
        if state.shut {
            return;
        }
        self.0.figures.retries.inc();
        if delay.is_zero() {
            let queued = self.0.add(&mut state, key, now);
            drop(state);
            if queued {
                self.0.wake.notify_one();
            }
            return;
        }
        if state.delay(key, now + delay.min(MAX_DELAY)) {
            let whoever_waits = if state.is_timed { &self.0.earlier } else { &self.0.wake };
            whoever_waits.notify_one();
        }
    }

    /// Queues a key that has failed, after a time that grows with its failures; says how long that is.
    pub fn add_rate_limited(&self, key: T) -> Duration {
        let delay = {
            let mut state = self.0.state.lock();
            let failures = state.failures.entry(key.clone()).or_default();
            let own = self.0.limits.back_off(*failures);
            *failures = failures.saturating_add(1);
            let overall = match &self.0.limits.bucket {
                Some(bucket) => state.refill.reserve(bucket, self.0.clock.monotonic()),
                None => Duration::ZERO,
            };
            own.max(overall)
        };
        self.add_after(key, delay);
        delay
    }

    /// The key has not failed: its next failure is its first.
    pub fn forget(&self, key: &T) {
        self.0.state.lock().failures.remove(key);
    }

    /// How often in a row the key has failed.
    pub fn retries(&self, key: &T) -> u32 {
        self.0.state.lock().failures.get(key).copied().unwrap_or(0)
    }

    /// The next key, for as long as the claim lives; none once the queue is shut down and empty.
    ///
    /// Dropping the future loses nothing.
    pub async fn get(&self) -> Option<Claim<T>> {
        let mut timing = None;
        loop {
            let notified = self.0.wake.notified();
            tokio::pin!(notified);
            // From here on no wake-up is missed, whatever changes after the look below.
            notified.as_mut().enable();
            let earliest = {
                let mut state = self.0.state.lock();
                let now = self.0.clock.monotonic();
                let promoted = self.0.promote(&mut state, now);
                let key = self.0.take(&mut state, now);
                for _ in usize::from(key.is_some())..promoted {
                    self.0.wake.notify_one();
                }
                if let Some(key) = key {
                    return Some(Claim { queue: self.clone(), key });
                }
                if state.shut {
                    return None;
                }
                if !state.delayed.is_empty() && !state.is_timed {
                    state.is_timed = true;
                    timing = Some(Timing(&self.0));
                }
                state.delayed.first().map(|(due, _)| *due)
            };
            match (&timing, earliest) {
                (None, _) => notified.await,
                (Some(_), None) => {
                    tokio::select! { biased; () = notified => {}, () = self.0.earlier.notified() => {} }
                }
                (Some(_), Some(due)) => {
                    let earlier = self.0.earlier.notified();
                    tokio::select! { biased; () = notified => {}, () = earlier => {}, () = sleep_until(due) => {} }
                }
            }
        }
    }

    /// Takes nothing in any more, and forgets what is delayed. What is queued is still handed out.
    pub fn shut_down(&self) {
        let mut state = self.0.state.lock();
        state.shut = true;
        state.delayed.clear();
        state.due.clear();
        drop(state);
        self.0.wake.notify_waiters();
    }

    pub fn is_shut_down(&self) -> bool {
        self.0.state.lock().shut
    }

    /// How many keys need work now; delayed ones do not.
    pub fn len(&self) -> usize {
        self.0.state.lock().dirty.len()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The worker that held the key is done with it.
    fn done(&self, key: &T) {
        let mut state = self.0.state.lock();
        if let Some(since) = state.processing.remove(key) {
            self.0.figures.work_duration.observe((self.0.clock.monotonic() - since).as_secs_f64());
        }
        if state.dirty.contains_key(key) {
            state.queue.push_back(key.clone());
            drop(state);
            self.0.wake.notify_one();
        }
    }
}

impl<T: Clone + Ord> State<T> {
    /// Whether it is now the earliest of all.
    fn delay(&mut self, key: T, at: Instant) -> bool {
        match self.due.get(&key) {
            Some(earlier) if *earlier <= at => return false,
            Some(later) => {
                self.delayed.remove(&(*later, key.clone()));
            }
            None => {}
        }
        let is_earliest = self.delayed.first().is_none_or(|(first, _)| at < *first);
        self.due.insert(key.clone(), at);
        self.delayed.insert((at, key));
        is_earliest
    }
}

impl<T: Clone + Ord> Shared<T> {
    /// Whether the key has been queued, and a worker is to be woken.
    fn add(&self, state: &mut State<T>, key: T, now: Instant) -> bool {
        if state.shut || state.dirty.contains_key(&key) {
            return false;
        }
        self.figures.adds.inc();
        state.dirty.insert(key.clone(), now);
        if state.processing.contains_key(&key) {
            return false;
        }
        state.queue.push_back(key);
        true
    }

    /// Queues the delayed keys whose time has come; for how many somebody is to be woken.
    fn promote(&self, state: &mut State<T>, now: Instant) -> usize {
        let mut queued = 0;
        while state.delayed.first().is_some_and(|(due, _)| *due <= now) {
            if let Some((_, key)) = state.delayed.pop_first() {
                state.due.remove(&key);
                queued += usize::from(self.add(state, key, now));
            }
        }
        queued
    }

    fn take(&self, state: &mut State<T>, now: Instant) -> Option<T> {
        let key = state.queue.pop_front()?;
        if let Some(since) = state.dirty.remove(&key) {
            self.figures.queue_duration.observe((now - since).as_secs_f64());
        }
        state.processing.insert(key.clone(), now);
        Some(key)
    }

    fn load(&self) -> metrics::Load {
        let now = self.clock.monotonic();
        let state = self.state.lock();
        let ages = state.processing.values().map(|since| (now - *since).as_secs_f64());
        let (unfinished, longest) = ages.fold((0.0, 0.0_f64), |(sum, max), age| (sum + age, max.max(age)));
        metrics::Load { depth: state.dirty.len(), unfinished_seconds: unfinished, longest_seconds: longest }
    }
}

/// That somebody waits for the earliest delay. When it is dropped, somebody else has to.
struct Timing<'a, T: Clone + Ord>(&'a Shared<T>);

impl<T: Clone + Ord> Drop for Timing<'_, T> {
    fn drop(&mut self) {
        let mut state = self.0.state.lock();
        state.is_timed = false;
        if !state.delayed.is_empty() {
            self.0.wake.notify_one();
        }
    }
}

/// A key that a worker holds. When it is dropped the worker is done, even if it panicked.
pub struct Claim<T: Clone + Ord + Debug + Send + 'static> {
    queue: Queue<T>,
    key: T,
}

impl<T: Clone + Ord + Debug + Send + 'static> Claim<T> {
    pub fn key(&self) -> &T {
        &self.key
    }
}

impl<T: Clone + Ord + Debug + Send + 'static> Deref for Claim<T> {
    type Target = T;
    fn deref(&self) -> &T {
        &self.key
    }
}

impl<T: Clone + Ord + Debug + Send + 'static> Debug for Claim<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Claim").field(&self.key).finish()
    }
}

impl<T: Clone + Ord + Debug + Send + 'static> Drop for Claim<T> {
    fn drop(&mut self) {
        self.queue.done(&self.key);
    }
}

#[cfg(test)]
mod tests;
