//! The newest state, and the one function that decides what a transaction does to it.
//!
//! Pure: no I/O, no clock, no locks. The single writer of a local backend owns a [`Head`]; readers get a [`Snapshot`],
//! which is the same persistent map at one revision and costs one reference count to take.

use crate::data::Commit;
use crate::{Change, Item, KeyValue, Operation, Outcome, Range, RangeResult, Revision, Txn};
use ambient::Timestamp;
use bytes::Bytes;
use imbl::OrdSet;
use std::borrow::Borrow;
use std::cmp::Ordering;
use std::collections::BTreeSet;
use std::ops::Bound;
use std::sync::Arc;
use std::time::Duration;

/// At most this many keys expire in one revision.
const MAX_EXPIRED: usize = 128;
/// Wall time is rounded down to this. A deadline counts from the end of the tick in which it was set, so that no key goes
/// before its time.
const TICK: Duration = Duration::from_millis(1);

/// An item ordered by its key alone, so that the map needs no second copy of it.
#[derive(Clone, Debug)]
struct ByKey(Item);

impl Borrow<[u8]> for ByKey {
    fn borrow(&self) -> &[u8] {
        &self.0.key
    }
}

impl PartialEq for ByKey {
    fn eq(&self, other: &Self) -> bool {
        self.0.key == other.0.key
    }
}

impl Eq for ByKey {}

impl PartialOrd for ByKey {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for ByKey {
    fn cmp(&self, other: &Self) -> Ordering {
        self.0.key.cmp(&other.0.key)
    }
}

/// All live items at one revision.
#[derive(Clone, Debug, Default)]
pub(crate) struct Snapshot {
    pub(crate) revision: Revision,
    items: OrdSet<ByKey>,
    pub(crate) live_bytes: u64,
}

impl Snapshot {
    pub(crate) fn get(&self, key: &[u8]) -> Option<&Item> {
        self.items.get(key).map(|found| &found.0)
    }

    pub(crate) fn len(&self) -> u64 {
        self.items.len() as u64
    }

    /// The items a range asks for, without its limit.
    pub(crate) fn iter(&self, range: &Range) -> impl Iterator<Item = &Item> {
        range.bounds().into_iter().flat_map(|(first, end)| {
            let bounds = (Bound::Included(first.as_slice()), end.as_ref().map(Vec::as_slice));
            self.items.range::<_, [u8]>(bounds).map(|found| &found.0)
        })
    }

    pub(crate) fn range(&self, range: &Range) -> RangeResult {
        let mut items = self.iter(range);
        let limit = if range.limit == 0 { usize::MAX } else { range.limit };
        let page = items.by_ref().take(limit).cloned().collect();
        RangeResult { revision: self.revision, items: page, remaining: items.count() as u64 }
    }

    fn insert(&mut self, item: Item) {
        self.live_bytes += item.len();
        if let Some(replaced) = self.items.insert(ByKey(item)) {
            self.live_bytes -= replaced.0.len();
        }
    }

    fn remove(&mut self, key: &[u8]) {
        if let Some(removed) = self.items.remove(key) {
            self.live_bytes -= removed.0.len();
        }
    }
}

/// The newest state with what only the writer needs.
///
/// `expiring` holds exactly the live items that have a deadline.
#[derive(Debug, Default)]
pub(crate) struct Head {
    snapshot: Snapshot,
    expiring: BTreeSet<(Timestamp, Bytes)>,
}

impl Head {
    /// A head at `revision` with these items, as recovery found them.
    pub(crate) fn recovered(revision: Revision, items: impl IntoIterator<Item = Item>) -> Self {
        let mut head = Head { snapshot: Snapshot { revision, ..Snapshot::default() }, expiring: BTreeSet::new() };
        for item in items {
            head.expiring.extend(item.expires.map(|deadline| (deadline, item.key.clone())));
            head.snapshot.insert(item);
        }
        head
    }

    pub(crate) fn snapshot(&self) -> Snapshot {
        self.snapshot.clone()
    }

    pub(crate) fn revision(&self) -> Revision {
        self.snapshot.revision
    }

    pub(crate) fn next_expiry(&self) -> Option<Timestamp> {
        self.expiring.first().map(|(deadline, _)| *deadline)
    }

    /// Decides a transaction and makes its changes; the commit is none if there are no changes.
    pub(crate) fn apply(&mut self, txn: Txn, now: Timestamp) -> (Outcome, Option<Commit>) {
        if !txn.conditions.iter().all(|condition| self.modified(&condition.key) == condition.expected) {
            let current = txn.conditions.iter().map(|condition| self.snapshot.get(&condition.key).cloned()).collect();
            return (Outcome::Conflict { revision: self.revision(), current }, None);
        }
        let commit = self.make(txn.operations, now);
        (Outcome::Committed(self.revision()), commit)
    }

    /// Deletes what has passed its deadline, a bounded number of keys at a time.
    pub(crate) fn expire(&mut self, now: Timestamp) -> Option<Commit> {
        let due = self.expiring.iter().take_while(|(deadline, _)| *deadline <= now).take(MAX_EXPIRED);
        let deletes = due.map(|(_, key)| Operation::Delete { key: key.clone() }).collect();
        self.make(deletes, now)
    }

    fn modified(&self, key: &[u8]) -> Option<Revision> {
        self.snapshot.get(key).map(|item| item.mod_revision)
    }

    fn make(&mut self, operations: Vec<Operation>, now: Timestamp) -> Option<Commit> {
        let revision = self.revision().next();
        let changes: Vec<Change> =
            operations.into_iter().filter_map(|operation| self.change(operation, revision, now)).collect();
        if changes.is_empty() {
            return None;
        }
        self.snapshot.revision = revision;
        Some(Commit { revision, at: now, changes })
    }

    fn change(&mut self, operation: Operation, revision: Revision, now: Timestamp) -> Option<Change> {
        let previous = self.snapshot.get(operation.key()).cloned();
        if let Some(Some(deadline)) = previous.as_ref().map(|item| item.expires) {
            self.expiring.remove(&(deadline, operation.key().clone()));
        }
        match operation {
            Operation::Put { key, value, ttl } => {
                let (create_revision, version) =
                    previous.as_ref().map_or((revision, 1), |item| (item.create_revision, item.version + 1));
                let expires = ttl.map(|ttl| now + ttl + TICK);
                self.expiring.extend(expires.map(|deadline| (deadline, key.clone())));
                let item = Arc::new(KeyValue { key, value, create_revision, mod_revision: revision, version, expires });
                self.snapshot.insert(item.clone());
                Some(Change { revision, key: item.key.clone(), current: Some(item), previous })
            }
            Operation::Delete { key } => {
                previous.as_ref()?;
                self.snapshot.remove(&key);
                Some(Change { revision, key, current: None, previous })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn live_bytes_follow_puts_overwrites_and_deletes() {
        let mut head = Head::default();
        for (txn, expected) in [
            (Txn::put("k", "four"), 5),
            (Txn::put("k", "12"), 3),
            (Txn::put("l", ""), 4),
            (Txn::delete("k"), 1),
            (Txn::delete("absent"), 1),
        ] {
            head.apply(txn, Timestamp(0));
            assert_eq!(head.snapshot().live_bytes, expected);
        }
    }

    #[test]
    fn a_put_without_ttl_takes_the_deadline_away() {
        let mut head = Head::default();
        head.apply(Txn::default().and_put_for("k", "v", Duration::from_secs(1)), Timestamp(0));
        assert_eq!(head.next_expiry(), Some(Timestamp(1001)));
        head.apply(Txn::put("k", "v"), Timestamp(10));
        assert_eq!(head.next_expiry(), None);
        assert!(head.expire(Timestamp(5000)).is_none());
    }

    #[test]
    fn what_is_put_at_the_end_of_a_millisecond_lives_as_long_as_it_was_to() {
        let mut head = Head::default();
        // The clock shows this until just before the next millisecond.
        head.apply(Txn::default().and_put_for("k", "v", Duration::from_secs(1)), Timestamp(7));
        assert!(head.expire(Timestamp(1007)).is_none());
        assert!(head.expire(Timestamp(1008)).is_some());
    }
}
