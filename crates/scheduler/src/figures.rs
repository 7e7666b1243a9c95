//! Figures of the scheduler, under the names that dashboards for Kubernetes know.

use crate::verdict::Plugin;
use prometheus::core::Collector;
use prometheus::{
    Histogram, HistogramOpts, HistogramVec, IntCounter, IntCounterVec, IntGaugeVec, Opts, Registry, exponential_buckets,
};
use std::time::Duration;

/// After so many attempts they are not told apart any more.
const MANY_ATTEMPTS: u32 = 15;

#[derive(Clone, Debug)]
pub(crate) struct Figures {
    attempts: IntCounterVec,
    attempt_seconds: HistogramVec,
    algorithm_seconds: Histogram,
    sli_seconds: HistogramVec,
    attempts_of_pod: Histogram,
    pending: IntGaugeVec,
    incoming: IntCounterVec,
    unschedulable: IntGaugeVec,
    preemptions: IntCounter,
    victims: Histogram,
}

/// How an attempt to place a pod ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    Scheduled,
    Unschedulable,
    Error,
}

/// How many pods wait where.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Pending {
    pub active: usize,
    pub backoff: usize,
    pub unschedulable: usize,
    pub gated: usize,
}

impl Default for Figures {
    fn default() -> Self {
        Figures::new(&Registry::new())
    }
}

fn registered<C: Collector + Clone + 'static>(registry: &Registry, collector: prometheus::Result<C>) -> C {
    let collector = collector.expect("the names are valid");
    // A second scheduler on one registry goes uncounted.
    let _ = registry.register(Box::new(collector.clone()));
    collector
}

impl Figures {
    pub(crate) fn new(registry: &Registry) -> Self {
        let name = |name: &str| format!("scheduler_{name}");
        let options = |what: &str, help: &str| Opts::new(name(what), help);
        let buckets = |what: &str, help: &str, start: f64, count: usize| {
            let buckets = exponential_buckets(start, 2.0, count).expect("they grow");
            HistogramOpts::new(name(what), help).buckets(buckets)
        };
        let counters = |options, labels: &[&str]| registered(registry, IntCounterVec::new(options, labels));
        let gauges = |options, labels: &[&str]| registered(registry, IntGaugeVec::new(options, labels));
        let histogram = |options| registered(registry, Histogram::with_opts(options));
        let histograms = |options, labels: &[&str]| registered(registry, HistogramVec::new(options, labels));
        let by_result = ["result", "profile"];
        Figures {
            attempts: counters(options("schedule_attempts_total", "Attempts to place a pod, by result."), &by_result),
            attempt_seconds: histograms(
                buckets("scheduling_attempt_duration_seconds", "How long attempts took, with the binding.", 0.001, 15),
                &by_result,
            ),
            algorithm_seconds: histogram(buckets(
                "scheduling_algorithm_duration_seconds",
                "How long it took to decide.",
                0.001,
                15,
            )),
            sli_seconds: histograms(
                buckets(
                    "pod_scheduling_sli_duration_seconds",
                    "From the first attempt to place a pod until it is bound.",
                    0.01,
                    20,
                ),
                &["attempts"],
            ),
            attempts_of_pod: histogram(buckets(
                "pod_scheduling_attempts",
                "How many attempts it took to place a pod.",
                1.0,
                5,
            )),
            pending: gauges(options("pending_pods", "Pods that wait, by where they do."), &["queue"]),
            incoming: counters(
                options("queue_incoming_pods_total", "Pods added to queues, by what brought them there."),
                &["queue", "event"],
            ),
            unschedulable: gauges(
                options("unschedulable_pods", "Pods that could not be placed, by who refused nodes."),
                &["plugin", "profile"],
            ),
            preemptions: registered(
                registry,
                IntCounter::new(name("preemption_attempts_total"), "Attempts to make others go for a pod."),
            ),
            victims: histogram(buckets("preemption_victims", "How many had to go for a pod.", 1.0, 7)),
        }
    }

    /// An attempt has ended, and took so long.
    pub(crate) fn ended(&self, ending: Ending, profile: &str, took: Duration) {
        let result = match ending {
            Ending::Scheduled => "scheduled",
            Ending::Unschedulable => "unschedulable",
            Ending::Error => "error",
        };
        self.attempts.with_label_values(&[result, profile]).inc();
        self.attempt_seconds.with_label_values(&[result, profile]).observe(took.as_secs_f64());
    }

    pub(crate) fn decided(&self, took: Duration) {
        self.algorithm_seconds.observe(took.as_secs_f64());
    }

    /// A pod is bound at last: with that many attempts, so long after the first.
    pub(crate) fn placed(&self, attempts: u32, since: Duration) {
        let label = match attempts {
            MANY_ATTEMPTS.. => format!("{MANY_ATTEMPTS}+"),
            few => few.to_string(),
        };
        self.sli_seconds.with_label_values(&[label.as_str()]).observe(since.as_secs_f64());
        self.attempts_of_pod.observe(f64::from(attempts));
    }

    pub(crate) fn entered(&self, queue: &str, event: &str) {
        self.incoming.with_label_values(&[queue, event]).inc();
    }

    pub(crate) fn refused(&self, plugins: &[Plugin], profile: &str, by: i64) {
        for plugin in plugins {
            self.unschedulable.with_label_values(&[plugin.name().as_str(), profile]).add(by);
        }
    }

    /// `victims` have to go, if the attempt came to that.
    pub(crate) fn preempted(&self, victims: Option<usize>) {
        self.preemptions.inc();
        if let Some(victims) = victims {
            self.victims.observe(victims as f64);
        }
    }

    pub(crate) fn pending(&self, pending: Pending) {
        let Pending { active, backoff, unschedulable, gated } = pending;
        for (queue, count) in
            [("active", active), ("backoff", backoff), ("unschedulable", unschedulable), ("gated", gated)]
        {
            self.pending.with_label_values(&[queue]).set(i64::try_from(count).unwrap_or(i64::MAX));
        }
    }

    /// Nobody waits here any more: another scheduler leads.
    pub(crate) fn left(&self) {
        self.pending(Pending::default());
        self.unschedulable.reset();
    }
}
