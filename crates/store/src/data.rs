//! The nouns: revisions, stored items, and the changes between them.

use ambient::Timestamp;
use bytes::Bytes;
use std::fmt;
use std::sync::Arc;

/// A point in the history of the whole store. Zero is the empty store before its first change.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Revision(pub u64);

impl Revision {
    pub const ZERO: Revision = Revision(0);

    pub fn next(self) -> Revision {
        Revision(self.0 + 1)
    }

    /// The revision before; zero has none and stays.
    pub fn before(self) -> Revision {
        Revision(self.0.saturating_sub(1))
    }
}

impl fmt::Display for Revision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A key with its value as of `mod_revision`.
#[derive(Clone, PartialEq, Eq)]
pub struct KeyValue {
    pub key: Bytes,
    pub value: Bytes,
    /// When the key came into being; a key that is deleted and put again gets a new one.
    pub create_revision: Revision,
    /// When this value was put.
    pub mod_revision: Revision,
    /// How many times the key was put since it came into being.
    pub version: u64,
    /// When the store deletes the key by itself. etcd keeps this to itself, so it is not part of the contract.
    pub(crate) expires: Option<Timestamp>,
}

impl fmt::Debug for KeyValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let KeyValue { key, value, create_revision, mod_revision, version, .. } = self;
        write!(f, "{key:?}={value:?} (created {create_revision}, modified {mod_revision}, version {version})")
    }
}

impl KeyValue {
    /// An item that does not expire.
    pub fn new(key: Bytes, value: Bytes, create_revision: Revision, mod_revision: Revision, version: u64) -> Self {
        KeyValue { key, value, create_revision, mod_revision, version, expires: None }
    }

    /// The bytes a user would count.
    pub(crate) fn len(&self) -> u64 {
        (self.key.len() + self.value.len()) as u64
    }
}

/// Stored values are shared, never copied.
pub type Item = Arc<KeyValue>;

/// What happened to one key at one revision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    pub revision: Revision,
    pub key: Bytes,
    /// The new value; none if the key was deleted or expired.
    pub current: Option<Item>,
    /// The value before, none if the key is new. Only filled where it was asked for.
    pub previous: Option<Item>,
}

/// Changes of complete revisions, in order: after it, a watcher has seen everything up to `revision`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Batch {
    pub revision: Revision,
    pub changes: Vec<Change>,
}

/// All changes of one revision, as the single writer decided them; `previous` is always filled.
#[derive(Debug)]
pub struct Commit {
    pub revision: Revision,
    pub(crate) at: Timestamp,
    pub changes: Vec<Change>,
}

impl Commit {
    /// What keeping this commit in memory costs, about.
    pub(crate) fn bytes(&self) -> u64 {
        const PER_CHANGE: u64 = 192;
        self.changes.iter().map(|change| PER_CHANGE + change.current.as_deref().map_or(0, KeyValue::len)).sum()
    }
}

/// The first key that is greater than every key with this prefix; none if there is no such key.
pub(crate) fn prefix_end(prefix: &[u8]) -> Option<Vec<u8>> {
    let last = prefix.iter().rposition(|byte| *byte != 0xff)?;
    let mut end = prefix[..=last].to_vec();
    end[last] += 1;
    Some(end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefix_end_is_the_first_key_after_all_with_the_prefix() {
        let cases: [(&[u8], Option<&[u8]>); 5] =
            [(b"a", Some(b"b")), (b"a/", Some(b"a0")), (b"a\xff\xff", Some(b"b")), (b"\xff", None), (b"", None)];
        for (prefix, end) in cases {
            assert_eq!(prefix_end(prefix).as_deref(), end, "{prefix:?}");
        }
    }
}
