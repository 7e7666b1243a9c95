//! The boundary between our keys and etcd's: all of ours live under one root, which nobody else gets to see.

use crate::data::prefix_end;
use crate::{Change, Item, KeyValue, Range, Revision};
use bytes::Bytes;
use etcd_client::EventType;
use etcd_client::proto::{PbEvent, PbKeyValue};
use std::ops::Bound;
use std::sync::Arc;

/// etcd's notation for "no upper bound", and its smallest key.
pub(super) const NUL: &[u8] = b"\0";

/// The prefix of all our keys in etcd.
#[derive(Clone, Debug)]
pub(super) struct Root(pub(super) Bytes);

impl Root {
    /// Our key as etcd knows it.
    pub(super) fn add(&self, key: &[u8]) -> Vec<u8> {
        [self.0.as_ref(), key].concat()
    }

    /// The interval of etcd's keys that a range asks for; none if it is empty.
    pub(super) fn bounds(&self, range: &Range) -> Option<(Vec<u8>, Vec<u8>)> {
        let (first, end) = range.bounds()?;
        let end = match end {
            Bound::Excluded(end) => self.add(&end),
            Bound::Included(_) | Bound::Unbounded => prefix_end(&self.0).unwrap_or_else(|| NUL.to_vec()),
        };
        Some((self.add(&first), end))
    }

    /// One of our items; none if the key is somebody else's.
    pub(super) fn item(&self, kv: PbKeyValue) -> Option<Item> {
        let key = self.strip(kv.key)?;
        Some(Arc::new(KeyValue {
            key,
            value: Bytes::from(kv.value),
            create_revision: from_wire(kv.create_revision),
            mod_revision: from_wire(kv.mod_revision),
            version: count(kv.version),
            expires: None,
        }))
    }

    /// One of our changes; none if the key is somebody else's.
    pub(super) fn change(&self, event: PbEvent) -> Option<Change> {
        let deleted = is_delete(&event);
        let kv = event.kv?;
        let revision = from_wire(kv.mod_revision);
        let previous = event.prev_kv.and_then(|kv| self.item(kv));
        if deleted {
            return Some(Change { revision, key: self.strip(kv.key)?, current: None, previous });
        }
        let item = self.item(kv)?;
        Some(Change { revision, key: item.key.clone(), current: Some(item), previous })
    }

    fn strip(&self, key: Vec<u8>) -> Option<Bytes> {
        key.starts_with(&self.0).then(|| Bytes::from(key).slice(self.0.len()..))
    }
}

/// Whether the event lacks the value before it, which etcd leaves out once that has been compacted.
pub(super) fn lacks_previous(event: &PbEvent) -> bool {
    let created = event.kv.as_ref().is_some_and(|kv| kv.version == 1);
    event.prev_kv.is_none() && (is_delete(event) || !created)
}

fn is_delete(event: &PbEvent) -> bool {
    event.r#type == EventType::Delete as i32
}

/// etcd's numbers are signed and never negative.
pub(super) fn count(number: i64) -> u64 {
    number.max(0).unsigned_abs()
}

/// etcd counts in signed numbers, from one on; what is not positive means "none".
pub(super) fn from_wire(revision: i64) -> Revision {
    Revision(count(revision))
}

pub(super) fn to_wire(revision: Revision) -> i64 {
    i64::try_from(revision.0).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(deleted: bool, key: &str, version: i64, previous: bool) -> PbEvent {
        let kv = PbKeyValue { key: key.into(), mod_revision: 7, version, ..PbKeyValue::default() };
        let prev_kv = previous.then(|| PbKeyValue { mod_revision: 3, ..kv.clone() });
        PbEvent { r#type: i32::from(deleted), kv: Some(kv), prev_kv }
    }

    #[test]
    fn the_root_is_added_and_stripped_and_foreign_keys_are_left_out() {
        let root = Root(Bytes::from_static(b"/r/"));
        assert_eq!(root.add(b"pods/a"), b"/r/pods/a");
        let change = root.change(event(false, "/r/pods/a", 2, true)).unwrap();
        assert_eq!((change.key.as_ref(), change.revision), (b"pods/a".as_slice(), Revision(7)));
        assert_eq!(change.previous.unwrap().mod_revision, Revision(3));
        assert_eq!(root.change(event(true, "/other/a", 0, false)), None);
    }

    #[test]
    fn the_bounds_of_a_range_stay_under_the_root() {
        let root = Root(Bytes::from_static(b"/r/"));
        let some = |first: &[u8], end: &[u8]| Some((first.to_vec(), end.to_vec()));
        let cases = [
            (Range::prefix(""), some(b"/r/", b"/r0")),
            (Range::prefix("a/"), some(b"/r/a/", b"/r/a0")),
            (Range::prefix("\u{7f}").starting("\u{7f}b"), some(b"/r/\x7fb", b"/r/\x80")),
            (Range::prefix(vec![0xff]), some(b"/r/\xff", b"/r0")),
            (Range::prefix("a/").starting("b"), None),
        ];
        for (range, bounds) in cases {
            assert_eq!(root.bounds(&range), bounds, "{range:?}");
        }
    }

    #[test]
    fn only_a_created_key_has_nothing_before_it() {
        let cases = [
            (event(false, "k", 1, false), false),
            (event(false, "k", 2, true), false),
            (event(false, "k", 2, false), true),
            (event(true, "k", 0, true), false),
            (event(true, "k", 0, false), true),
        ];
        for (event, lacks) in cases {
            assert_eq!(lacks_previous(&event), lacks, "{event:?}");
        }
    }
}
