//! Figures under the names that dashboards for Kubernetes know.

use crate::request::Info;
use prometheus::{
    Encoder, Gauge, HistogramOpts, HistogramVec, IntCounterVec, IntGauge, IntGaugeVec, Opts, Registry, TextEncoder,
};
use registry::Resource;
use std::time::Duration;

#[derive(Debug)]
pub struct Metrics {
    /// Whoever runs in this process shows its figures here too.
    pub registry: Registry,
    requests: IntCounterVec,
    durations: HistogramVec,
    /// Requests that read, and requests that change something.
    inflight: [IntGauge; 2],
    watchers: IntGaugeVec,
    watch_events: IntCounterVec,
    objects: IntGaugeVec,
    storage_bytes: IntGaugeVec,
    start_time: Gauge,
    panics: IntGauge,
}

/// Upstream's buckets of request durations.
const BUCKETS: &[f64] = &[
    0.005, 0.025, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0, 1.25, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0, 15.0, 20.0, 30.0,
    45.0, 60.0,
];

impl Metrics {
    pub fn new(started: Duration) -> Self {
        let registry = Registry::new();
        let counters = |name: &str, help: &str, labels: &[&str]| {
            let counters = IntCounterVec::new(Opts::new(name, help), labels).expect("the names are valid");
            registry.register(Box::new(counters.clone())).expect("each name is registered once");
            counters
        };
        let gauges = |name: &str, help: &str, labels: &[&str]| {
            let gauges = IntGaugeVec::new(Opts::new(name, help), labels).expect("the names are valid");
            registry.register(Box::new(gauges.clone())).expect("each name is registered once");
            gauges
        };
        let request = ["verb", "group", "version", "resource", "subresource", "scope"];
        let options =
            HistogramOpts::new("apiserver_request_duration_seconds", "How long requests took, watches aside.");
        let durations = HistogramVec::new(options.buckets(BUCKETS.to_vec()), &request).expect("the names are valid");
        registry.register(Box::new(durations.clone())).expect("each name is registered once");
        let start_time =
            Gauge::new("process_start_time_seconds", "When the process started.").expect("the name is valid");
        registry.register(Box::new(start_time.clone())).expect("each name is registered once");
        start_time.set(started.as_secs_f64());
        let panics =
            IntGauge::new("apiserver_request_panics", "Requests that ended in a panic.").expect("the name is valid");
        registry.register(Box::new(panics.clone())).expect("each name is registered once");
        let inflight = gauges("apiserver_current_inflight_requests", "Requests being worked on.", &["request_kind"]);
        Metrics {
            requests: counters(
                "apiserver_request_total",
                "Requests by what they were about and how they were answered.",
                &["verb", "group", "version", "resource", "subresource", "scope", "code", "dry_run"],
            ),
            durations,
            inflight: ["readOnly", "mutating"].map(|kind| inflight.with_label_values(&[kind])),
            watchers: gauges(
                "apiserver_longrunning_requests",
                "Watches that are open.",
                &["verb", "group", "version", "resource", "scope"],
            ),
            watch_events: counters(
                "apiserver_watch_events_total",
                "Events sent to watchers.",
                &["group", "version", "resource"],
            ),
            objects: gauges("apiserver_storage_objects", "Objects that are stored.", &["resource"]),
            storage_bytes: gauges("apiserver_storage_size_bytes", "What the store occupies.", &["storage_cluster_id"]),
            start_time,
            panics,
            registry,
        }
    }

    pub(crate) fn answered(&self, info: &Info, code: u16, dry_run: bool, took: Duration) {
        let (group, version, resource, subresource, scope) = match &info.target {
            Some(target) => {
                let scope = match (target.name.is_empty(), target.namespace.is_empty()) {
                    (false, _) => "resource",
                    (true, false) => "namespace",
                    (true, true) => "cluster",
                };
                (
                    target.group.as_str(),
                    target.version.as_str(),
                    target.resource.as_str(),
                    target.subresource.as_str(),
                    scope,
                )
            }
            None => ("", "", "", "", ""),
        };
        let verb = verb_label(info);
        let dry_run = if dry_run { "All" } else { "" };
        let mut digits = [0; 3];
        let code = code_text(code, &mut digits);
        self.requests.with_label_values(&[verb, group, version, resource, subresource, scope, code, dry_run]).inc();
        if !info.is_long_running() {
            let durations = self.durations.with_label_values(&[verb, group, version, resource, subresource, scope]);
            durations.observe(took.as_secs_f64());
        }
    }

    pub(crate) fn inflight(&self, is_mutating: bool) -> &IntGauge {
        let [reading, changing] = &self.inflight;
        if is_mutating { changing } else { reading }
    }

    pub(crate) fn panicked(&self) {
        self.panics.inc();
    }

    pub(crate) fn watching(&self, resource: &Resource) -> Watching {
        let labels = [resource.group.as_ref(), resource.version.as_ref(), resource.plural.as_ref()];
        let open = self.watchers.with_label_values(&["WATCH", labels[0], labels[1], labels[2], ""]);
        open.inc();
        Watching { open, events: self.watch_events.with_label_values(&labels) }
    }

    /// Everything, in Prometheus' text form.
    pub(crate) fn text(&self, objects: &[(std::sync::Arc<str>, usize)], storage_bytes: u64) -> Vec<u8> {
        for (table, count) in objects {
            self.objects.with_label_values(&[table]).set(i64::try_from(*count).unwrap_or(i64::MAX));
        }
        self.storage_bytes.with_label_values(&["store"]).set(i64::try_from(storage_bytes).unwrap_or(i64::MAX));
        let mut text = Vec::new();
        if let Err(error) = TextEncoder::new().encode(&self.registry.gather(), &mut text) {
            tracing::error!(%error, "metrics cannot be written");
        }
        text
    }

    pub fn start_time(&self) -> f64 {
        self.start_time.get()
    }
}

/// A watch that is open, as long as this lives.
#[derive(Debug)]
pub(crate) struct Watching {
    open: IntGauge,
    events: prometheus::IntCounter,
}

impl Watching {
    pub(crate) fn sent(&self, events: u64) {
        self.events.inc_by(events);
    }
}

impl Drop for Watching {
    fn drop(&mut self) {
        self.open.dec();
    }
}

fn verb_label(info: &Info) -> &'static str {
    match info.verb {
        "create" | "post" => "POST",
        "update" | "put" => "PUT",
        "patch" => "PATCH",
        "delete" => "DELETE",
        "deletecollection" => "DELETECOLLECTION",
        "list" => "LIST",
        "watch" => "WATCH",
        _ => "GET",
    }
}

/// A status code as text, without a heap.
fn code_text(code: u16, digits: &mut [u8; 3]) -> &str {
    for (at, digit) in digits.iter_mut().enumerate() {
        let power = [100, 10, 1][at];
        *digit = b'0' + u8::try_from(code / power % 10).unwrap_or(0);
    }
    std::str::from_utf8(digits).unwrap_or("000")
}
