//! Faults between loops and the API: what a network, a busy server or a crash does to them.

use super::pace::Pace;
use ambient::{Clock, Random};
use async_trait::async_trait;
use bytes::Bytes;
use http::{Method, Request, Response};
use object::{ApiError, Reason};
use parking_lot::Mutex;
use runtime::{Event, Events, Transport};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::Instant;

/// What may happen, how often, and what did.
#[derive(Debug)]
pub struct Faults {
    active: AtomicBool,
    random: Random,
    clock: Clock,
    /// In thousandths; drawn for each run, so that some are calm and others wild.
    rate: AtomicU64,
    /// A server crashes after so many more writes of its loops.
    until_crash: AtomicU64,
    crash: Notify,
    /// The servers that have crashed and were not started again yet.
    crashed: Mutex<BTreeSet<usize>>,
    /// When servers that were cut off are reached again.
    cut_off: Mutex<BTreeMap<usize, Instant>>,
    happened: AtomicU64,
    trace: Mutex<Vec<String>>,
    pace: Pace,
}

/// The mean number of writes between crashes is about half of this.
const MAX_WRITES_BETWEEN_CRASHES: u64 = 120;
const MAX_DELAY: Duration = Duration::from_secs(3);

impl Faults {
    pub fn new(random: Random, clock: Clock) -> Self {
        let rate = [1, 10, 50, 150][usize::try_from(random.below(4)).unwrap_or(0)];
        let until_crash = AtomicU64::new(1 + random.below(MAX_WRITES_BETWEEN_CRASHES));
        Faults {
            active: AtomicBool::new(false),
            random,
            clock,
            rate: AtomicU64::new(rate),
            until_crash,
            crash: Notify::new(),
            crashed: Mutex::default(),
            cut_off: Mutex::default(),
            happened: AtomicU64::new(0),
            trace: Mutex::default(),
            pace: Pace::default(),
        }
    }

    pub fn start(&self) {
        self.active.store(true, Ordering::SeqCst);
    }

    /// No more faults; returns how many there were.
    pub fn stop(&self) -> u64 {
        self.active.store(false, Ordering::SeqCst);
        self.cut_off.lock().clear();
        self.happened.load(Ordering::SeqCst)
    }

    /// No faults but one: a crash after exactly so many writes.
    pub fn only_crash_after(&self, writes: u64) {
        self.until_crash.store(writes, Ordering::SeqCst);
        self.rate.store(0, Ordering::SeqCst);
        self.active.store(true, Ordering::SeqCst);
    }

    /// Waits for a server to crash, and tells which.
    pub async fn crashed(&self) -> usize {
        loop {
            if let Some(server) = self.crashed.lock().first() {
                return *server;
            }
            self.crash.notified().await;
        }
    }

    /// A server is started again.
    pub fn forget_crash(&self, server: usize) {
        self.crashed.lock().remove(&server);
        let next = match self.rate.load(Ordering::SeqCst) {
            0 => u64::MAX,
            _ => 1 + self.random.below(MAX_WRITES_BETWEEN_CRASHES),
        };
        self.until_crash.store(next, Ordering::SeqCst);
    }

    /// A server does not reach the store for a while, or is suspended: requests fail, and watches show nothing. Long enough,
    /// and its term ends; and it may be the next to lead all the same.
    pub fn cut_off(&self, server: usize, time: Duration) {
        if self.active.load(Ordering::SeqCst) {
            self.cut_off.lock().insert(server, self.clock.monotonic() + time);
            self.happened.fetch_add(1, Ordering::SeqCst);
        }
    }

    fn is_cut_off(&self, server: usize) -> bool {
        self.cut_off.lock().get(&server).is_some_and(|until| self.clock.monotonic() < *until)
    }

    /// All watches of a server go on at once.
    async fn reached_again(&self, server: usize) {
        let until = self.cut_off.lock().get(&server).copied();
        if let Some(until) = until {
            tokio::time::sleep_until(until).await;
        }
    }

    pub fn trace(&self) -> Vec<String> {
        self.trace.lock().clone()
    }

    /// What a loop has written without end, if one has.
    pub fn frenzy(&self) -> Option<String> {
        self.pace.excess()
    }

    fn happens(&self) -> bool {
        let happens = self.active.load(Ordering::SeqCst) && self.random.below(1000) < self.rate.load(Ordering::SeqCst);
        self.happened.fetch_add(u64::from(happens), Ordering::SeqCst);
        happens
    }

    fn delay(&self) -> Duration {
        Duration::from_millis(self.random.below(u64::try_from(MAX_DELAY.as_millis()).unwrap_or(u64::MAX)))
    }

    /// Whether this write is the last of a server before it crashes.
    fn crashes_now(&self, server: usize) -> bool {
        if !self.active.load(Ordering::SeqCst) || self.until_crash.fetch_sub(1, Ordering::SeqCst) > 1 {
            return false;
        }
        self.until_crash.store(u64::MAX, Ordering::SeqCst);
        self.crashed.lock().insert(server);
        self.crash.notify_waiters();
        true
    }

    fn is_crashed(&self, server: usize) -> bool {
        self.crashed.lock().contains(&server)
    }

    fn note(&self, method: &Method, path: &str, code: u16) {
        let heartbeat = path.contains("/leases") || path.contains("/nodes/") && path.ends_with("/status");
        if !heartbeat {
            self.trace.lock().push(format!("{} {method} {path} {code}", self.clock.wall().0 / 1000));
        }
    }
}

/// A transport on which faults happen.
#[derive(Debug)]
pub(super) struct Faulty {
    inner: Arc<dyn Transport>,
    faults: Arc<Faults>,
    /// Whose it is.
    account: String,
    /// Which server the loop runs in.
    server: usize,
}

impl Faulty {
    pub(super) fn new(inner: Arc<dyn Transport>, faults: Arc<Faults>, account: &str, server: usize) -> Self {
        Faulty { inner, faults, account: account.to_owned(), server }
    }

    /// Whether a write is one of too many.
    fn is_too_fast(&self, method: &Method, path: &str) -> bool {
        let what = format!("{} {method} {path}", self.account);
        method != Method::GET && self.faults.pace.is_too_fast(&what, self.faults.clock.wall())
    }
}

#[async_trait]
impl Transport for Faulty {
    async fn send(&self, request: Request<Bytes>) -> Result<Response<Bytes>, ApiError> {
        let (method, path) = (request.method().clone(), request.uri().path().to_owned());
        if self.faults.happens() {
            tokio::time::sleep(self.faults.delay()).await;
        }
        if self.faults.is_cut_off(self.server) || self.faults.happens() {
            return Err(ApiError::new(Reason::ServiceUnavailable, "the connection was refused"));
        }
        if self.faults.is_crashed(self.server) || self.is_too_fast(&method, &path) {
            std::future::pending::<()>().await;
        }
        let response = self.inner.send(request).await?;
        if method == Method::GET {
            return Ok(response);
        }
        self.faults.note(&method, &path, response.status().as_u16());
        if self.faults.crashes_now(self.server) {
            // Whoever asked is gone before the answer comes.
            std::future::pending::<()>().await;
        }
        if self.faults.happens() {
            return Err(ApiError::new(Reason::Timeout, "the answer was lost"));
        }
        Ok(response)
    }

    async fn watch(&self, request: Request<Bytes>) -> Result<Box<dyn Events>, ApiError> {
        self.faults.reached_again(self.server).await;
        if self.faults.happens() {
            return Err(ApiError::new(Reason::ServiceUnavailable, "the connection was refused"));
        }
        let inner = self.inner.watch(request).await?;
        Ok(Box::new(FaultyEvents { inner, faults: self.faults.clone(), server: self.server, is_cut: false }))
    }
}

struct FaultyEvents {
    inner: Box<dyn Events>,
    faults: Arc<Faults>,
    server: usize,
    is_cut: bool,
}

#[async_trait]
impl Events for FaultyEvents {
    async fn next(&mut self) -> Option<Result<Vec<Event>, ApiError>> {
        if self.is_cut {
            return None;
        }
        let mut events = self.inner.next().await?;
        if self.faults.is_cut_off(self.server) {
            self.faults.reached_again(self.server).await;
        } else if self.faults.happens() {
            // Events of other kinds overtake these meanwhile.
            tokio::time::sleep(self.faults.delay()).await;
        }
        if self.faults.happens() {
            // Cut between two events: those before have been seen, the others are lost.
            self.is_cut = true;
            if let Ok(batch) = &mut events {
                let kept = self.faults.random.below(batch.len() as u64 + 1);
                batch.truncate(usize::try_from(kept).unwrap_or(0));
            }
            if self.faults.happens() {
                return Some(Err(ApiError::new(Reason::Expired, "too old resource version: 1 (2)")));
            }
        }
        Some(events)
    }
}
