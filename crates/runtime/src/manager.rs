//! Runs controllers: one set of informers for all of them, a queue and workers for each.
//!
//! One function turns what became of a plan into what happens to its key: forgotten, looked at later, or tried again.

use crate::client::Client;
use crate::controller::{CachesCell, Context, Controller, Request};
use crate::executor::{Executor, Tell};
use crate::informer::Caches;
use crate::plan::Write;
use crate::queue::{Limits, Queue};
use ambient::{Ambient, Tasks};
use futures::FutureExt;
use kinds::{Key, Time};
use object::{ApiError, Reason};
use parking_lot::Mutex;
use prometheus::{HistogramVec, IntCounterVec, Registry};
use std::collections::BTreeMap;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::time::Duration;
use tokio::time::Instant;
use tracing::Instrument;

/// Every key is looked at at least this often, whatever happens: should something have been missed.
const RESYNC: Duration = Duration::from_secs(600);

/// Who a controller is: its client, and whoever tells people what it does.
#[derive(Clone)]
pub struct Identity {
    pub client: Client,
    pub tell: Tell,
}

impl std::fmt::Debug for Identity {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Identity({})", self.client.agent())
    }
}

/// Controllers that are ready to work. Their caches are kept from the start, so that whoever takes over is warm.
#[derive(Debug)]
pub struct Manager {
    pub caches: Caches,
    loops: Vec<Arc<Loop>>,
    ambient: Ambient,
}

/// How often something was made lately, by key. What is made again and again is perhaps taken away as often, because what it
/// is for has gone without this loop's knowledge.
#[derive(Default)]
struct Makings {
    times: BTreeMap<Key, (u32, Instant)>,
    /// With so many keys, those for which nothing was made lately are forgotten.
    forget_at: usize,
}

impl Makings {
    /// So many are usual within [`Self::LATELY`].
    const USUAL: u32 = 8;
    const LATELY: Duration = Duration::from_secs(10);
    const MANY_KEYS: usize = 1024;

    /// Notes that something is about to be made; whether that is more often than usual.
    fn are_many(&mut self, key: &Key, now: Instant) -> bool {
        let is_recent = |since: &Instant| now.duration_since(*since) < Self::LATELY;
        if self.times.len() >= self.forget_at {
            self.times.retain(|_, (_, since)| is_recent(since));
            self.forget_at = Self::MANY_KEYS.max(2 * self.times.len());
        }
        let (times, since) = self.times.entry(key.clone()).or_insert((0, now));
        if !is_recent(since) {
            (*times, *since) = (0, now);
        }
        *times = times.saturating_add(1);
        *times > Self::USUAL
    }
}

/// A controller with its queue.
struct Loop {
    controller: Controller,
    queue: Queue<Key>,
    context: Context,
    executor: Executor,
    /// What the API said when something could not be created or deleted for a key.
    failures: Mutex<BTreeMap<Key, String>>,
    makings: Mutex<Makings>,
    figures: Figures,
    clock: ambient::Clock,
}

impl std::fmt::Debug for Loop {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.controller.fmt(f)
    }
}

#[derive(Clone)]
struct Figures {
    reconciles: IntCounterVec,
    seconds: HistogramVec,
}

impl Figures {
    fn new(registry: &Registry) -> Self {
        let opts = |name: &str, help: &str| prometheus::Opts::new(name, help);
        let reconciles = IntCounterVec::new(
            opts("controller_runtime_reconcile_total", "Total number of reconciliations per controller"),
            &["controller", "result"],
        );
        let seconds = HistogramVec::new(
            opts("controller_runtime_reconcile_time_seconds", "Length of time per reconciliation per controller")
                .into(),
            &["controller"],
        );
        let figures = Figures {
            reconciles: reconciles.expect("the name is valid"),
            seconds: seconds.expect("the name is valid"),
        };
        // A second manager on one registry goes uncounted.
        let _ = registry.register(Box::new(figures.reconciles.clone()));
        let _ = registry.register(Box::new(figures.seconds.clone()));
        figures
    }
}

impl Manager {
    /// Starts the informers of all controllers. `reader` is who watches; `identity` gives each controller its own.
    pub fn start(
        controllers: Vec<Controller>,
        reader: &Client,
        identity: impl Fn(&Controller) -> Identity,
        ambient: &Ambient,
        registry: &Registry,
    ) -> Self {
        let figures = Figures::new(registry);
        let mut caches = Caches::default();
        let shared = CachesCell::default();
        let mut prepared = Vec::new();
        for mut controller in controllers {
            // Retries are bounded per key; a bound on all of them would let one broken workload delay the others.
            let limits = Limits { bucket: None, ..Limits::default() };
            let queue = Queue::new(controller.name, limits, ambient.clock.clone(), registry);
            for declare in controller.watches.drain(..) {
                declare(&mut caches, &queue, &shared);
            }
            prepared.push((controller, queue));
        }
        let _ = shared.set(caches.downgrade());
        for informer in caches.all() {
            informer.clone().start(reader.clone(), ambient);
        }
        let loops = prepared.into_iter().map(|(controller, queue)| {
            let Identity { client, tell } = identity(&controller);
            let context = Context { caches: caches.clone(), client: client.clone(), tell: tell.clone() };
            Arc::new(Loop {
                controller,
                queue,
                context,
                executor: Executor { client, tell },
                failures: Mutex::default(),
                makings: Mutex::default(),
                figures: figures.clone(),
                clock: ambient.clock.clone(),
            })
        });
        Manager { loops: loops.collect(), caches, ambient: ambient.clone() }
    }

    /// Lets the controllers work until the tasks are stopped. The caches are filled first: what is not yet seen is not
    /// missing.
    pub async fn work(&self, tasks: &Tasks) {
        tokio::select! {
            biased;
            _ = tasks.stopping() => return,
            () = self.caches.synced() => {}
        }
        for this in &self.loops {
            this.wake_all();
            let crew = Crew::of(this, tasks);
            if this.controller.fresh.is_empty() {
                crew.hire();
            } else {
                tasks.spawn_until_stopped("catching up", async move { crew.catch_up().await });
            }
            for source in &this.controller.sources {
                let ambient = Ambient { tasks: tasks.clone(), ..self.ambient.clone() };
                tasks.spawn_until_stopped("source", source(this.context.clone(), this.queue.clone(), ambient));
            }
            let (this, random) = (this.clone(), self.ambient.random.fork());
            tasks.spawn_until_stopped("resync", async move {
                loop {
                    let jitter = Duration::from_millis(random.below(RESYNC.as_millis() as u64 / 10));
                    tokio::time::sleep(RESYNC + jitter).await;
                    this.wake_all();
                }
            });
        }
    }

    /// How often caches were read.
    pub fn cache_reads(&self) -> u64 {
        self.caches.all().map(|informer| informer.reads()).sum()
    }

    /// How often the loops have asked the API for something.
    pub fn api_reads(&self) -> u64 {
        self.loops.iter().map(|this| this.executor.client.reads()).sum()
    }

    /// Whether no key waits for work.
    pub fn is_idle(&self) -> bool {
        self.loops.iter().all(|this| this.queue.is_empty())
    }
}

/// The workers of a loop for a term. There are as many as have ever been needed at once, and one more: many loops may
/// have hundreds, for a bad day, and most of them never need two.
struct Crew {
    this: Arc<Loop>,
    tasks: Tasks,
    hired: AtomicUsize,
    /// How many wait for work.
    idle: AtomicUsize,
}

impl Crew {
    fn of(this: &Arc<Loop>, tasks: &Tasks) -> Arc<Self> {
        let (hired, idle) = (AtomicUsize::new(0), AtomicUsize::new(0));
        Arc::new(Crew { this: this.clone(), tasks: tasks.clone(), hired, idle })
    }

    /// Begins when the caches have seen what they have to.
    async fn catch_up(self: Arc<Self>) {
        for id in &self.this.controller.fresh {
            self.this.executor.catch_up(&self.this.context.caches, id).await;
        }
        self.hire();
    }

    /// One more, unless there are as many as there may be.
    fn hire(self: &Arc<Self>) {
        let most = self.this.controller.workers;
        let one_more = |hired: usize| (hired < most).then_some(hired + 1);
        if self.hired.fetch_update(SeqCst, SeqCst, one_more).is_err() {
            return;
        }
        self.idle.fetch_add(1, SeqCst);
        let crew = self.clone();
        self.tasks.spawn_until_stopped("worker", async move {
            while !crew.tasks.is_stopping() {
                let Some(claim) = crew.this.queue.get().await else { return };
                if crew.idle.fetch_sub(1, SeqCst) == 1 {
                    crew.hire();
                }
                let span = tracing::info_span!("reconcile", controller = crew.this.controller.name, key = %*claim);
                let unfinished = Unfinished { queue: &crew.this.queue, key: Some(claim.key()) };
                crew.this.reconcile(claim.key()).instrument(span).await;
                unfinished.finish();
                crew.idle.fetch_add(1, SeqCst);
            }
        });
    }
}

/// A key that is being worked on. If the term ends before that is done, it is for the next one: nothing else may wake it.
struct Unfinished<'a> {
    queue: &'a Queue<Key>,
    key: Option<&'a Key>,
}

impl Unfinished<'_> {
    fn finish(mut self) {
        self.key = None;
    }
}

impl Drop for Unfinished<'_> {
    fn drop(&mut self) {
        if let Some(key) = self.key {
            self.queue.add(key.clone());
        }
    }
}

impl Loop {
    /// Wakes every key there is.
    fn wake_all(&self) {
        for key in &self.controller.initial {
            self.queue.add(key.clone());
        }
        for primary in &self.controller.primaries {
            for key in primary(&self.context.caches) {
                self.queue.add(key);
            }
        }
    }

    async fn reconcile(&self, key: &Key) {
        let started = self.clock.monotonic();
        let result = match AssertUnwindSafe(self.attempt(key)).catch_unwind().await {
            Ok(result) => result,
            Err(_) => Err(ApiError::internal("the loop panicked")),
        };
        let name = self.controller.name;
        let took = self.clock.monotonic().duration_since(started);
        self.figures.seconds.with_label_values(&[name]).observe(took.as_secs_f64());
        let label = match result {
            Ok(None) => {
                self.queue.forget(key);
                "success"
            }
            Ok(Some(delay)) => {
                self.queue.forget(key);
                self.queue.add_after(key.clone(), delay);
                "requeue_after"
            }
            Err(error) => {
                let delay = self.queue.add_rate_limited(key.clone());
                if error.reason() == Reason::Conflict {
                    tracing::debug!(%error, ?delay, "to be tried again");
                } else {
                    tracing::warn!(%error, ?delay, "to be tried again");
                }
                "error"
            }
        };
        tracing::trace!(label, "reconciled");
        self.figures.reconciles.with_label_values(&[name, label]).inc();
    }

    /// Plans once and carries it out; returns after how long to look again.
    async fn attempt(&self, key: &Key) -> Result<Option<Duration>, ApiError> {
        let request = Request {
            key: key.clone(),
            now: Time::from_millis(self.clock.wall().0),
            failure: self.failures.lock().get(key).cloned(),
        };
        let plan = (self.controller.reconcile)(self.context.clone(), request).await?;
        if let Some(why) = &plan.terminal {
            tracing::debug!(why, "not to be tried again");
        }
        let makes = plan.writes.iter().any(|write| matches!(write, Write::Create { .. }));
        if makes
            && self.makings.lock().are_many(key, self.clock.monotonic())
            && let Some(gone) = self.executor.owner_gone(&self.context.caches, &plan).await?
        {
            self.executor.seen(&self.context.caches, &gone).await;
            return Ok(Some(Duration::ZERO));
        }
        let requeue_after = plan.requeue_after;
        let wrote = !plan.writes.is_empty();
        let outcome = self.executor.execute(plan).await;
        self.executor.seen(&self.context.caches, &outcome).await;
        match outcome.error {
            None => {
                // An empty plan says nothing about whether what failed would succeed now.
                if wrote {
                    self.failures.lock().remove(key);
                }
                Ok(requeue_after)
            }
            Some(error) => {
                if outcome.is_about_dependents {
                    self.failures.lock().insert(key.clone(), error.message().to_owned());
                }
                Err(error)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transport::{Events, Transport};
    use async_trait::async_trait;
    use bytes::Bytes;
    use kinds::Pod;

    /// An API that never answers.
    #[derive(Debug)]
    struct Silent;

    #[async_trait]
    impl Transport for Silent {
        async fn send(&self, _: http::Request<Bytes>) -> Result<http::Response<Bytes>, ApiError> {
            std::future::pending().await
        }

        async fn watch(&self, _: http::Request<Bytes>) -> Result<Box<dyn Events>, ApiError> {
            std::future::pending().await
        }
    }

    #[tokio::test(start_paused = true)]
    async fn caches_go_when_nobody_needs_them_any_more() {
        let ambient = Ambient::seeded(1);
        let client = Client::new(Arc::new(Silent), "test");
        let identity = |_: &Controller| Identity { client: client.clone(), tell: Arc::new(|_| {}) };
        let loops = vec![Controller::new("looks").primary::<Pod>()];
        let manager = Manager::start(loops, &client, identity, &ambient, &Registry::new());
        let caches = manager.caches.downgrade();
        assert!(caches.upgrade().is_some());
        ambient.tasks.stop().await;
        drop(manager);
        assert!(caches.upgrade().is_none());
    }

    #[test]
    fn what_is_made_more_often_than_usual_is_noticed_until_there_is_a_pause() {
        let (mut makings, start) = (Makings::default(), ambient::Clock::system().monotonic());
        let mut are_many =
            |key: &str, seconds| makings.are_many(&Key::cluster(key), start + Duration::from_secs(seconds));
        assert!((0..Makings::USUAL).all(|_| !are_many("a", 0)));
        assert!(are_many("a", 9));
        assert!(!are_many("b", 9), "that was for another key");
        assert!(!are_many("a", 10));
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_being_worked_on_when_a_term_ends_is_for_the_next() {
        let ambient = Ambient::seeded(1);
        let client = Client::new(Arc::new(Silent), "test");
        let identity = |_: &Controller| Identity { client: client.clone(), tell: Arc::new(|_| {}) };
        let (begun, mut begins) = tokio::sync::mpsc::unbounded_channel();
        let controller = Controller::new("works").plans_with(move |_, request: Request| {
            let begun = begun.clone();
            async move {
                let _ = begun.send(request.key);
                std::future::pending().await
            }
        });
        let manager = Manager::start(vec![controller], &client, identity, &ambient, &Registry::new());
        // Nothing wakes it but this.
        manager.loops[0].queue.add(Key::cluster("a"));
        for _ in 0..2 {
            let term = ambient.tasks.child();
            manager.work(&term).await;
            assert_eq!(begins.recv().await, Some(Key::cluster("a")));
            term.stop().await;
        }
        ambient.tasks.stop().await;
    }

    #[tokio::test(start_paused = true)]
    async fn loops_whose_caches_are_never_filled_stop_when_they_are_told_to() {
        let ambient = Ambient::seeded(1);
        let client = Client::new(Arc::new(Silent), "test");
        let identity = |_: &Controller| Identity { client: client.clone(), tell: Arc::new(|_| {}) };
        let loops = vec![Controller::new("waits").primary::<Pod>()];
        let manager = Manager::start(loops, &client, identity, &ambient, &Registry::new());
        let term = ambient.tasks.child();
        let stops_later = async {
            tokio::time::sleep(Duration::from_secs(1)).await;
            term.cancel();
        };
        let both = async { tokio::join!(manager.work(&term), stops_later) };
        tokio::time::timeout(Duration::from_secs(2), both).await.expect("the work ends with its term");
        ambient.tasks.stop().await;
    }
}
