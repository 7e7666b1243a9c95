//! The recent events of one resource, oldest first, bounded in number and bytes.

use crate::stored::Object;
use std::collections::VecDeque;
use std::sync::Arc;
use store::Revision;

/// At most so many events are kept per resource: enough for a watcher to pause for a moment under load.
const MAX_EVENTS: usize = 16_384;
/// And at most so many bytes; what is older is read from the store's history.
const MAX_BYTES: usize = 8 << 20;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventKind {
    Added,
    Modified,
    Deleted,
}

#[derive(Debug)]
pub struct Event {
    pub kind: EventKind,
    /// The object after the change; a deleted one as it was last, at the revision of its deletion.
    pub object: Arc<Object>,
    pub previous: Option<Arc<Object>>,
}

impl Event {
    pub(super) fn new(kind: EventKind, object: Arc<Object>, previous: Option<Arc<Object>>) -> Self {
        Event { kind, object, previous }
    }

    pub fn revision(&self) -> Revision {
        self.object.revision
    }

    /// The object as it is from now on; none if it is gone.
    pub fn current(&self) -> Option<&Arc<Object>> {
        (self.kind != EventKind::Deleted).then_some(&self.object)
    }
}

#[derive(Debug)]
pub(super) struct Ring {
    /// Sorted by revision; several events may share one.
    events: VecDeque<Arc<Event>>,
    bytes: usize,
    /// Every event after this revision is here.
    complete_after: Revision,
}

impl Ring {
    pub(super) fn new(revision: Revision) -> Self {
        Ring { events: VecDeque::new(), bytes: 0, complete_after: revision }
    }

    pub(super) fn push(&mut self, event: Arc<Event>) {
        self.bytes += event.object.len();
        self.events.push_back(event);
        while self.events.len() > MAX_EVENTS || self.bytes > MAX_BYTES && self.events.len() > 1 {
            let Some(oldest) = self.events.pop_front() else { break };
            self.bytes -= oldest.object.len();
            self.complete_after = oldest.revision();
        }
    }

    pub(super) fn last(&self) -> Revision {
        self.events.back().map_or(Revision::ZERO, |event| event.revision())
    }

    /// The events after a revision, at most `limit` and then as many more as share the last one's revision; none if
    /// some of them are gone.
    pub(super) fn after(&self, revision: Revision, limit: usize) -> Option<Vec<Arc<Event>>> {
        if revision < self.complete_after {
            return None;
        }
        let start = self.index_after(revision);
        let mut end = self.events.len().min(start + limit);
        while end > start && end < self.events.len() && self.events[end].revision() == self.events[end - 1].revision() {
            end += 1;
        }
        Some(self.events.range(start..end).cloned().collect())
    }

    /// The index of the first event after a revision. Whoever asks has mostly seen all but the last few events, so it is
    /// looked for from the end, in steps that double.
    fn index_after(&self, revision: Revision) -> usize {
        let is_seen = |index: usize| self.events[index].revision() <= revision;
        let (mut high, mut step) = (self.events.len(), 1);
        let mut low = loop {
            let Some(probe) = high.checked_sub(step) else { break 0 };
            if is_seen(probe) {
                break probe + 1;
            }
            (high, step) = (probe, 2 * step);
        };
        while low < high {
            let middle = low + (high - low) / 2;
            if is_seen(middle) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        low
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;

    fn event(revision: u64) -> Arc<Event> {
        let body = Bytes::from_static(b"{\"metadata\":{\"name\":\"a\"}}");
        let object = Object::new(Bytes::from_static(b"x/a"), Revision(revision), body).unwrap();
        Arc::new(Event::new(EventKind::Added, Arc::new(object), None))
    }

    #[test]
    fn a_reader_gets_whole_revisions_or_is_told_that_some_are_gone() {
        let mut ring = Ring::new(Revision(10));
        for revision in [11, 12, 12, 12, 15] {
            ring.push(event(revision));
        }
        let read = |after, limit| {
            let events = ring.after(Revision(after), limit)?;
            Some(events.iter().map(|event| event.revision().0).collect::<Vec<_>>())
        };
        assert_eq!(read(9, 10), None);
        assert_eq!(read(10, 1), Some(vec![11]));
        assert_eq!(read(10, 2), Some(vec![11, 12, 12, 12]));
        assert_eq!(read(12, 10), Some(vec![15]));
        assert_eq!(read(15, 10), Some(vec![]));
    }

    #[test]
    fn the_oldest_events_make_room() {
        let mut ring = Ring::new(Revision(0));
        (1..=MAX_EVENTS as u64 + 5).for_each(|revision| ring.push(event(revision)));
        assert!(ring.after(Revision(4), 1).is_none());
        assert_eq!(ring.after(Revision(5), 1).unwrap()[0].revision(), Revision(6));
    }
}
