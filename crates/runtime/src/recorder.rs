//! The event recorder: tells people what a loop did and why, as events about objects.
//!
//! Recording never waits. Notes go into a bounded queue, one task turns them into events and writes them, and what
//! does not fit is dropped and counted: a loop must not stand still because nobody takes down what it says. Which
//! notes become events of their own is decided in [`correlate`].
//!
//! Left out: events as `events.k8s.io` has them; the server shows one kind as the other.

mod correlate;

use crate::client::{Client, PatchType, Target};
use crate::plan::Note;
use ambient::{Ambient, Clock, Random, Tasks, Timestamp};
use correlate::{Correlator, Happened, Record};
use kinds::{Event, Key, Kind, Time};
use object::{ApiError, Edit, Reason, Value, json};
use prometheus::{IntCounter, Opts, Registry};
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::{sleep, timeout};

/// Notes that wait to be written.
const QUEUED: usize = 1000;
/// How often an event is tried while the server cannot be reached, and how long in between.
const TRIES: u32 = 12;
const RETRY: Duration = Duration::from_secs(10);
/// What is still queued at a stop is written within this time or not at all.
const FLUSH: Duration = Duration::from_secs(1);

/// Events in the name of one component; clones share the queue.
#[derive(Clone, Debug)]
pub struct Recorder {
    queue: mpsc::Sender<Happened>,
    dropped: IntCounter,
    clock: Clock,
}

impl Recorder {
    /// `component` is who reports, `instance` which one of them: the node, or empty where there is only one. Writes
    /// until the tasks of `ambient` are stopped.
    pub fn new(client: Client, component: &str, instance: &str, ambient: &Ambient, registry: &Registry) -> Self {
        let (queue, notes) = mpsc::channel(QUEUED);
        let options = Opts::new("event_recorder_dropped_total", "Events that were not written because of too many.")
            .const_label("component", component);
        let dropped = IntCounter::with_opts(options).expect("the name of the metric is valid");
        // A later recorder of a component takes the place of an earlier one, as when a replica leads again.
        drop(registry.unregister(Box::new(dropped.clone())));
        if let Err(error) = registry.register(Box::new(dropped.clone())) {
            tracing::error!(%error, "dropped events are not shown");
        }
        let writer = Writer {
            client,
            component: component.to_owned(),
            instance: instance.to_owned(),
            random: ambient.random.fork(),
            correlator: Correlator::new(),
            last_name: 0,
        };
        ambient.tasks.spawn("event recorder", writer.run(notes, ambient.tasks.clone()));
        Recorder { queue, dropped, clock: ambient.clock.clone() }
    }

    /// Records an event, at some time soon, if that is possible.
    pub fn record(&self, note: Note) {
        let happened = Happened { note, wall: self.clock.wall(), monotonic: self.clock.monotonic() };
        if self.queue.try_send(happened).is_err() {
            self.dropped.inc();
        }
    }
}

struct Writer {
    client: Client,
    component: String,
    instance: String,
    random: Random,
    correlator: Correlator,
    /// What the name of the last event ended in.
    last_name: u64,
}

impl Writer {
    async fn run(mut self, mut notes: mpsc::Receiver<Happened>, tasks: Tasks) {
        let writing = async {
            while let Some(happened) = notes.recv().await {
                self.write(happened, TRIES).await;
            }
        };
        tokio::select! {
            biased;
            _ = tasks.stopping() => {}
            () = writing => return,
        }
        let flushing = async {
            while let Ok(happened) = notes.try_recv() {
                self.write(happened, 1).await;
            }
        };
        if timeout(FLUSH, flushing).await.is_err() {
            tracing::debug!("events are lost at the end");
        }
    }

    async fn write(&mut self, happened: Happened, tries: u32) {
        let (random, last_name) = (&self.random, &mut self.last_name);
        let (object, wall) = (happened.note.regarding.key.name.clone(), happened.wall);
        let name = || event_name(&object, wall, random, last_name);
        let Some(record) = self.correlator.correlate(happened, name) else { return };
        for tried in 1..=tries {
            let Err(error) = self.send(&record).await else { return };
            if !is_worth_another_try(&error) || tried == tries {
                tracing::info!(%error, event = record.name, reason = record.note.reason, "an event is not written");
                return;
            }
            // The first wait is a random part of it, so that not everybody comes back at once.
            let wait = if tried == 1 { RETRY * self.percent() / 100 } else { RETRY };
            sleep(wait).await;
        }
    }

    fn percent(&self) -> u32 {
        u32::try_from(self.random.below(100)).unwrap_or(0)
    }

    async fn send(&self, record: &Record) -> Result<(), ApiError> {
        let namespace = event_namespace(record);
        if record.count > 1 {
            let key = Key::new(namespace, record.name.as_str());
            let target = Target::named(Event::ID, key);
            let patch = json!({
                "count": record.count, "lastTimestamp": seconds(record.last), "message": record.note.message,
            });
            match self.client.patch(&target, "", PatchType::Strategic, &patch).await {
                // It has been deleted or has expired.
                Err(error) if error.reason() == Reason::NotFound => {}
                outcome => return outcome.map(drop),
            }
        }
        self.client.create(&Event::ID, &self.event(record)).await.map(drop)
    }

    fn event(&self, record: &Record) -> Value {
        let Note { regarding, warning, reason, message, component } = &record.note;
        let component = if component.is_empty() { &self.component } else { component };
        let mut involved = json!({ "apiVersion": regarding.id.api_version, "kind": regarding.id.kind });
        let optional = [
            ("namespace", &regarding.key.namespace),
            ("name", &regarding.key.name),
            ("uid", &regarding.uid),
            ("resourceVersion", &regarding.version),
        ];
        for (field, text) in optional.into_iter().filter(|(_, text)| !text.is_empty()) {
            involved.set(field, text.as_str());
        }
        let mut source = json!({ "component": component });
        if !self.instance.is_empty() {
            source.set("host", self.instance.as_str());
        }
        json!({
            "apiVersion": Event::ID.api_version, "kind": Event::ID.kind,
            "metadata": { "namespace": event_namespace(record), "name": record.name },
            "involvedObject": involved,
            "type": if *warning { "Warning" } else { "Normal" },
            "reason": reason, "message": message, "source": source,
            "firstTimestamp": seconds(record.first), "lastTimestamp": seconds(record.last), "count": record.count,
            "reportingComponent": component, "reportingInstance": self.instance,
        })
    }
}

/// Events about objects in no namespace are in the default one.
fn event_namespace(record: &Record) -> &str {
    match record.note.regarding.key.namespace.as_str() {
        "" => "default",
        namespace => namespace,
    }
}

fn seconds(at: Timestamp) -> Value {
    Time::from_millis(at.0).into()
}

/// Whether the server may not have been reached. What it refuses, it refuses again.
fn is_worth_another_try(error: &ApiError) -> bool {
    use Reason::{ServerTimeout, ServiceUnavailable, Timeout, TooManyRequests, Unknown};
    matches!(error.reason(), ServerTimeout | ServiceUnavailable | Timeout | TooManyRequests | Unknown)
}

/// The object's name and something unique that grows with time, as upstream has it: nanoseconds in hexadecimal. The
/// clock gives milliseconds; the rest is chance, and more than the last. Of an object whose name no event may have,
/// the name is left out.
fn event_name(object: &str, at: Timestamp, random: &Random, last: &mut u64) -> String {
    let nanos = at.0.saturating_mul(1_000_000).saturating_add(random.below(1_000_000));
    *last = nanos.max(last.saturating_add(1));
    let name = format!("{object}.{:016x}", *last);
    if object::name::dns_subdomain(&name).is_empty() { name } else { format!("{:016x}{:016x}", *last, random.next()) }
}

#[cfg(test)]
mod tests;
