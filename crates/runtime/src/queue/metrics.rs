//! What a queue shows of itself, under the names that dashboards for Kubernetes know.
//!
//! What is true of a moment (depth, unfinished work) is read from the queue when somebody asks for the figures.

use parking_lot::Mutex;
use prometheus::core::{Collector, Desc};
use prometheus::proto::MetricFamily;
use prometheus::{Gauge, Histogram, HistogramOpts, IntCounter, IntGauge, Opts, Registry};
use std::sync::Arc;

/// Upstream's buckets: from 10 ns in steps of ten.
const BUCKETS: [f64; 12] = [1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1.0, 10.0, 100.0, 1000.0];

pub(super) struct Figures {
    pub(super) adds: IntCounter,
    pub(super) retries: IntCounter,
    pub(super) queue_duration: Histogram,
    pub(super) work_duration: Histogram,
    depth: IntGauge,
    unfinished: Gauge,
    longest: Gauge,
}

/// A queue at a moment.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Load {
    pub(super) depth: usize,
    pub(super) unfinished_seconds: f64,
    pub(super) longest_seconds: f64,
}

impl Figures {
    pub(super) fn new(name: &str) -> Self {
        let options = |metric: &str, help: &str| Opts::new(metric, help).const_label("name", name);
        let histogram = |metric: &str, help: &str| {
            let options = HistogramOpts::new(metric, help).const_label("name", name).buckets(BUCKETS.to_vec());
            Histogram::with_opts(options).expect(VALID)
        };
        let counter = |metric: &str, help: &str| IntCounter::with_opts(options(metric, help)).expect(VALID);
        let gauge = |metric: &str, help: &str| Gauge::with_opts(options(metric, help)).expect(VALID);
        Figures {
            adds: counter("workqueue_adds_total", "Keys that were queued."),
            retries: counter("workqueue_retries_total", "Keys that were to be queued again later."),
            queue_duration: histogram("workqueue_queue_duration_seconds", "How long keys were queued."),
            work_duration: histogram("workqueue_work_duration_seconds", "How long keys were worked on."),
            depth: IntGauge::with_opts(options("workqueue_depth", "Keys that need work.")).expect(VALID),
            unfinished: gauge(
                "workqueue_unfinished_work_seconds",
                "How long the keys that are being worked on have been so, in sum.",
            ),
            longest: gauge(
                "workqueue_longest_running_processor_seconds",
                "How long the key that is worked on the longest has been so.",
            ),
        }
    }

    pub(super) fn register(self: Arc<Self>, registry: &Registry, load: impl Fn() -> Load + Send + 'static) {
        // A collector is known by its names alone: this takes away what an earlier queue of the name has registered.
        let earlier = Shown { figures: self.clone(), load: Mutex::new(Box::new(Load::default)) };
        drop(registry.unregister(Box::new(earlier)));
        let shown = Shown { figures: self, load: Mutex::new(Box::new(load)) };
        if let Err(error) = registry.register(Box::new(shown)) {
            tracing::error!(%error, "the figures of a queue are not shown");
        }
    }

    fn each(&self) -> [&dyn Collector; 7] {
        [
            &self.adds,
            &self.retries,
            &self.queue_duration,
            &self.work_duration,
            &self.depth,
            &self.unfinished,
            &self.longest,
        ]
    }
}

const VALID: &str = "the names of the metrics are valid";

/// What the registry holds: the figures, and a way to look at the queue that does not keep it alive.
struct Shown {
    figures: Arc<Figures>,
    load: Mutex<Box<dyn Fn() -> Load + Send>>,
}

impl Collector for Shown {
    fn desc(&self) -> Vec<&Desc> {
        self.figures.each().into_iter().flat_map(Collector::desc).collect()
    }

    fn collect(&self) -> Vec<MetricFamily> {
        let load = (self.load.lock())();
        self.figures.depth.set(i64::try_from(load.depth).unwrap_or(i64::MAX));
        self.figures.unfinished.set(load.unfinished_seconds);
        self.figures.longest.set(load.longest_seconds);
        self.figures.each().into_iter().flat_map(Collector::collect).collect()
    }
}
