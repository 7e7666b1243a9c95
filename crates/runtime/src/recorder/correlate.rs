//! Which events are worth writing: the same again is counted, many similar ones become one, and a source that floods
//! an object with events is cut off. The rules and numbers are those of client-go, so event streams look the same.
//!
//! Pure: what is known of earlier events, and the time, go in; what to write comes out. Everything is bounded: what
//! has not been used for the longest is forgotten, and then looks new.

use crate::plan::Note;
use ambient::Timestamp;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use tokio::time::Instant;

/// How many objects, reasons and messages are remembered at most.
const REMEMBERED: usize = 4096;

/// From this many different messages on, events that are otherwise the same are combined ...
const SIMILAR_EVENTS: usize = 10;
/// ... unless there was none for so long.
const SIMILAR_INTERVAL: Duration = Duration::from_secs(600);
const COMBINED: &str = "(combined from similar events): ";

/// Events about one object that are written at once; afterwards one each so often.
const SPAM_BURST: u32 = 25;
const SPAM_REFILL: Duration = Duration::from_secs(300);

/// An event that happened.
#[derive(Clone, Debug)]
pub(super) struct Happened {
    pub(super) note: Note,
    pub(super) wall: Timestamp,
    pub(super) monotonic: Instant,
}

/// An event as it is to be written.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Record {
    pub(super) note: Note,
    pub(super) name: String,
    pub(super) first: Timestamp,
    pub(super) last: Timestamp,
    /// More than one: it is there already, and counted up.
    pub(super) count: u32,
}

#[derive(Debug)]
pub(super) struct Correlator {
    /// The different messages of events that are otherwise the same, and when the last of them was. Fewer than
    /// [`SIMILAR_EVENTS`] each.
    similar: Recent<(BTreeSet<String>, Instant)>,
    /// What was written: the name, since when, and how often.
    written: Recent<(String, Timestamp, u32)>,
    /// When a source may again send its whole burst about an object.
    full: Recent<Instant>,
}

impl Correlator {
    pub(super) fn new() -> Self {
        Correlator { similar: Recent::new(), written: Recent::new(), full: Recent::new() }
    }

    /// What is to be written about what happened; `name` gives new events their names.
    pub(super) fn correlate(&mut self, happened: Happened, name: impl FnOnce() -> String) -> Option<Record> {
        let Happened { mut note, wall, monotonic } = happened;
        let object = object_key(&note);
        let similar = format!("{object}\0{}", note.reason);
        let key = if self.is_one_of_many(&similar, &note.message, monotonic) {
            note.message = format!("{COMBINED}{}", note.message);
            similar
        } else {
            format!("{similar}\0{}", note.message)
        };
        let (name, first, count) = match self.written.get(&key) {
            Some((name, first, count)) => (name.clone(), *first, count.saturating_add(1)),
            None => (name(), wall, 1),
        };
        self.written.put(key, (name.clone(), first, count));
        // Counted all the same, so that the next one that is written tells how many there were.
        if self.is_spam(object, monotonic) {
            return None;
        }
        Some(Record { note, name, first, last: wall, count })
    }

    fn is_one_of_many(&mut self, key: &str, message: &str, now: Instant) -> bool {
        let mut messages = match self.similar.get(key) {
            Some((messages, last)) if now.saturating_duration_since(*last) <= SIMILAR_INTERVAL => messages.clone(),
            _ => BTreeSet::new(),
        };
        messages.insert(message.to_owned());
        let many = messages.len() >= SIMILAR_EVENTS;
        if many {
            messages.pop_first();
        }
        self.similar.put(key.to_owned(), (messages, now));
        many
    }

    fn is_spam(&mut self, object: String, now: Instant) -> bool {
        let full = self.full.get(&object).map_or(now, |full| (*full).max(now)) + SPAM_REFILL;
        let spam = full - now > SPAM_REFILL * SPAM_BURST;
        if !spam {
            self.full.put(object, full);
        }
        spam
    }
}

/// The object and whether it is a warning. There is one source only: the recorder's.
fn object_key(note: &Note) -> String {
    let target = &note.regarding;
    let parts: [&str; 7] = [
        &note.component,
        &target.id.api_version,
        &target.id.kind,
        &target.key.namespace,
        &target.key.name,
        &target.uid,
        if note.warning { "Warning" } else { "Normal" },
    ];
    parts.join("\0")
}

/// A map that forgets what has not been used for the longest.
#[derive(Debug)]
struct Recent<V> {
    /// Each with when it was last used: its key in `order`.
    entries: BTreeMap<String, (u64, V)>,
    /// The keys of `entries`, the one used the longest ago first.
    order: BTreeMap<u64, String>,
    uses: u64,
}

impl<V> Recent<V> {
    fn new() -> Self {
        Recent { entries: BTreeMap::new(), order: BTreeMap::new(), uses: 0 }
    }

    fn get(&self, key: &str) -> Option<&V> {
        self.entries.get(key).map(|(_, value)| value)
    }

    /// Every use ends with this.
    fn put(&mut self, key: String, value: V) {
        self.uses += 1;
        if let Some((used, _)) = self.entries.insert(key.clone(), (self.uses, value)) {
            self.order.remove(&used);
        }
        self.order.insert(self.uses, key);
        if self.entries.len() > REMEMBERED
            && let Some((_, oldest)) = self.order.pop_first()
        {
            self.entries.remove(&oldest);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::Target;
    use ambient::Clock;
    use kinds::{Key, Kind, Pod};

    /// Two events a second about a pod.
    struct Source(Correlator, u64);

    impl Source {
        async fn say(&mut self, pod: &str, reason: &str, message: &str) -> Option<(String, u32, String)> {
            tokio::time::advance(Duration::from_millis(500)).await;
            let clock = Clock::system();
            let regarding =
                Target { id: Pod::ID, key: Key::new("default", pod), uid: "u".into(), version: String::new() };
            let note = Note::about(regarding, reason, message);
            let happened = Happened { note, wall: Timestamp(0), monotonic: clock.monotonic() };
            self.1 += 1;
            let name = self.1.to_string();
            self.0.correlate(happened, || name).map(|record| (record.name, record.count, record.note.message))
        }
    }

    #[tokio::test(start_paused = true)]
    async fn the_same_event_again_is_counted_and_another_is_new() {
        let mut source = Source(Correlator::new(), 0);
        assert_eq!(source.say("a", "Pulled", "x").await, Some(("1".into(), 1, "x".into())));
        assert_eq!(source.say("a", "Pulled", "x").await, Some(("1".into(), 2, "x".into())));
        assert_eq!(source.say("a", "Started", "x").await, Some(("3".into(), 1, "x".into())));
        assert_eq!(source.say("b", "Pulled", "x").await, Some(("4".into(), 1, "x".into())));
        assert_eq!(source.say("a", "Pulled", "x").await, Some(("1".into(), 3, "x".into())));
    }

    #[tokio::test(start_paused = true)]
    async fn events_that_differ_in_their_message_alone_are_combined_from_the_tenth_on() {
        let mut source = Source(Correlator::new(), 0);
        for count in 1..10 {
            let message = format!("{count}");
            assert_eq!(source.say("a", "Failed", &message).await, Some((message.clone(), 1, message)));
        }
        let combined = |count: u32, message: &str| Some(("10".into(), count, format!("{COMBINED}{message}")));
        assert_eq!(source.say("a", "Failed", "x").await, combined(1, "x"));
        assert_eq!(source.say("a", "Failed", "y").await, combined(2, "y"));
        tokio::time::advance(SIMILAR_INTERVAL).await;
        assert_eq!(source.say("a", "Failed", "z").await, Some(("12".into(), 1, "z".into())));
    }

    #[tokio::test(start_paused = true)]
    async fn a_flood_about_one_object_is_cut_off_counted_and_let_through_again_slowly() {
        let mut source = Source(Correlator::new(), 0);
        for count in 1..=25 {
            assert_eq!(source.say("a", "Failed", "x").await.map(|(_, count, _)| count), Some(count));
        }
        assert_eq!(source.say("a", "Failed", "x").await, None);
        assert_eq!(source.say("a", "Other", "x").await, None);
        assert!(source.say("b", "Failed", "x").await.is_some(), "others are not affected");
        tokio::time::advance(SPAM_REFILL).await;
        assert_eq!(source.say("a", "Failed", "x").await.map(|(_, count, _)| count), Some(27));
        assert_eq!(source.say("a", "Failed", "x").await, None);
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_remembered_is_bounded_and_the_oldest_goes_first() {
        let mut source = Source(Correlator::new(), 0);
        for pod in 0..REMEMBERED + 1 {
            source.say(&pod.to_string(), "Started", "x").await;
        }
        assert_eq!(source.0.written.entries.len(), REMEMBERED);
        assert_eq!(source.0.written.order.len(), REMEMBERED);
        assert_eq!(source.say(&REMEMBERED.to_string(), "Started", "x").await.map(|(_, count, _)| count), Some(2));
        assert_eq!(source.say("0", "Started", "x").await.map(|(_, count, _)| count), Some(1));
    }
}
