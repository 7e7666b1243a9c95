//! The figures of flow control, under the names that Kubernetes gives them. Those that every request touches are looked up
//! once for each schema.

use prometheus::{
    Histogram, HistogramOpts, HistogramVec, IntCounter, IntCounterVec, IntGauge, IntGaugeVec, Opts, Registry,
};

use super::shares::Bounds;

/// Upstream's buckets of waiting times.
const BUCKETS: &[f64] = &[0.0, 0.005, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 15.0, 30.0];

#[derive(Debug)]
pub(super) struct Figures {
    rejected: IntCounterVec,
    dispatched: IntCounterVec,
    executing: IntGaugeVec,
    executing_seats: IntGaugeVec,
    inqueue: IntGaugeVec,
    waited: HistogramVec,
    nominal: IntGaugeVec,
    least: IntGaugeVec,
    most: IntGaugeVec,
    current: IntGaugeVec,
}

/// The figures of one schema's requests.
#[derive(Debug)]
pub(super) struct LaneFigures {
    pub(super) dispatched: IntCounter,
    pub(super) executing: IntGauge,
    pub(super) executing_seats: IntGauge,
    pub(super) inqueue: IntGauge,
    pub(super) waited: Histogram,
}

impl Figures {
    pub(super) fn new(registry: &Registry) -> Self {
        let per_level: &[&str] = &["priority_level"];
        let per_schema: &[&str] = &["priority_level", "flow_schema"];
        let options = |name: &str, help: &str| Opts::new(format!("apiserver_flowcontrol_{name}"), help);
        let gauges = |name: &str, help: &str, labels: &[&str]| {
            let gauges = IntGaugeVec::new(options(name, help), labels).expect("the names are valid");
            registry.register(Box::new(gauges.clone())).expect("each name is registered once");
            gauges
        };
        let counters = |name: &str, help: &str, labels: &[&str]| {
            let counters = IntCounterVec::new(options(name, help), labels).expect("the names are valid");
            registry.register(Box::new(counters.clone())).expect("each name is registered once");
            counters
        };
        let waits =
            HistogramOpts::from(options("request_wait_duration_seconds", "How long requests waited for a seat."));
        let waited = HistogramVec::new(waits.buckets(BUCKETS.to_vec()), &["priority_level", "flow_schema", "execute"])
            .expect("the names are valid");
        registry.register(Box::new(waited.clone())).expect("each name is registered once");
        let of_reason = &["priority_level", "flow_schema", "reason"];
        Figures {
            rejected: counters("rejected_requests_total", "Requests refused because of overload.", of_reason),
            dispatched: counters("dispatched_requests_total", "Requests that got a seat.", per_schema),
            executing: gauges("current_executing_requests", "Requests being worked on.", per_schema),
            executing_seats: gauges("current_executing_seats", "Seats that are taken.", per_schema),
            inqueue: gauges("current_inqueue_requests", "Requests that wait for a seat.", per_schema),
            nominal: gauges("nominal_limit_seats", "Seats that a level has by its shares.", per_level),
            least: gauges("lower_limit_seats", "Seats that a level has whatever it lends.", per_level),
            most: gauges("upper_limit_seats", "Seats that a level has if it borrows all it may.", per_level),
            current: gauges("current_limit_seats", "Seats that a level has now.", per_level),
            waited,
        }
    }

    pub(super) fn of(&self, level: &str, schema: &str) -> LaneFigures {
        let labels = &[level, schema];
        LaneFigures {
            dispatched: self.dispatched.with_label_values(labels),
            executing: self.executing.with_label_values(labels),
            executing_seats: self.executing_seats.with_label_values(labels),
            inqueue: self.inqueue.with_label_values(labels),
            waited: self.waited.with_label_values(&[level, schema, "true"]),
        }
    }

    pub(super) fn rejected(&self, level: &str, schema: &str, reason: &str) {
        self.rejected.with_label_values(&[level, schema, reason]).inc();
    }

    pub(super) fn waited_in_vain(&self, level: &str, schema: &str, seconds: f64) {
        self.waited.with_label_values(&[level, schema, "false"]).observe(seconds);
    }

    pub(super) fn limits(&self, level: &str, bounds: Bounds, current: u32) {
        let of = [
            (&self.nominal, bounds.nominal),
            (&self.least, bounds.least),
            (&self.most, bounds.most),
            (&self.current, current),
        ];
        of.iter().for_each(|(gauges, seats)| gauges.with_label_values(&[level]).set(i64::from(*seats)));
    }

    /// A level that is gone has no limits.
    pub(super) fn forget(&self, level: &str) {
        for gauges in [&self.nominal, &self.least, &self.most, &self.current] {
            // It has none either if it was never shown.
            let _ = gauges.remove_label_values(&[level]);
        }
    }
}
