//! What can be asked of a store, and what it answers.

use crate::data::prefix_end;
use crate::{Error, Item, Result, Revision};
use ambient::Timestamp;
use bytes::Bytes;
use std::collections::BTreeSet;
use std::ops::Bound;
use std::time::Duration;

/// etcd's default for operations in one transaction; the same everywhere so that no code works on one backend only.
pub const MAX_TXN_OPERATIONS: usize = 128;
/// etcd's default for the size of one request.
pub const MAX_TXN_BYTES: usize = 1_572_864;
pub const MAX_KEY_BYTES: usize = 8_192;

/// Changes that happen together or not at all, if every condition holds.
#[derive(Clone, Debug, Default)]
pub struct Txn {
    pub conditions: Vec<Condition>,
    pub operations: Vec<Operation>,
}

/// Holds if the key was last modified at `expected`, or is absent where that is none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Condition {
    pub key: Bytes,
    pub expected: Option<Revision>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Sets the value. With `ttl` the key is deleted once that long has passed, unless it is put again.
    Put { key: Bytes, value: Bytes, ttl: Option<Duration> },
    /// Deletes the key if it is there.
    Delete { key: Bytes },
}

impl Operation {
    pub fn key(&self) -> &Bytes {
        match self {
            Operation::Put { key, .. } | Operation::Delete { key } => key,
        }
    }

    fn bytes(&self) -> usize {
        match self {
            Operation::Put { key, value, .. } => key.len() + value.len(),
            Operation::Delete { key } => key.len(),
        }
    }
}

impl Txn {
    /// Puts a key whatever was there.
    pub fn put(key: impl Into<Bytes>, value: impl Into<Bytes>) -> Self {
        Txn::default().and_put(key, value)
    }

    /// Deletes a key if it is there.
    pub fn delete(key: impl Into<Bytes>) -> Self {
        Txn::default().and_delete(key)
    }

    /// Puts a key that must not be there yet.
    pub fn create(key: impl Into<Bytes>, value: impl Into<Bytes>) -> Self {
        let key = key.into();
        Txn::put(key.clone(), value).when_absent(key)
    }

    /// Replaces a value that must still be the one read at `expected`.
    pub fn update(key: impl Into<Bytes>, value: impl Into<Bytes>, expected: Revision) -> Self {
        let key = key.into();
        Txn::put(key.clone(), value).when_unmodified(key, expected)
    }

    pub fn and_put(mut self, key: impl Into<Bytes>, value: impl Into<Bytes>) -> Self {
        self.operations.push(Operation::Put { key: key.into(), value: value.into(), ttl: None });
        self
    }

    pub fn and_put_for(mut self, key: impl Into<Bytes>, value: impl Into<Bytes>, ttl: Duration) -> Self {
        self.operations.push(Operation::Put { key: key.into(), value: value.into(), ttl: Some(ttl) });
        self
    }

    pub fn and_delete(mut self, key: impl Into<Bytes>) -> Self {
        self.operations.push(Operation::Delete { key: key.into() });
        self
    }

    pub fn when_absent(mut self, key: impl Into<Bytes>) -> Self {
        self.conditions.push(Condition { key: key.into(), expected: None });
        self
    }

    pub fn when_unmodified(mut self, key: impl Into<Bytes>, expected: Revision) -> Self {
        self.conditions.push(Condition { key: key.into(), expected: Some(expected) });
        self
    }

    /// The bytes this transaction brings, as the size limit counts them.
    pub(crate) fn bytes(&self) -> usize {
        self.operations.iter().map(Operation::bytes).sum()
    }

    /// Limits come first: what fails here reaches no backend.
    pub(crate) fn check(&self) -> Result<()> {
        let keys = || self.operations.iter().map(Operation::key);
        if self.operations.len() > MAX_TXN_OPERATIONS || self.conditions.len() > MAX_TXN_OPERATIONS {
            return Err(Error::Invalid(format!("a transaction has at most {MAX_TXN_OPERATIONS} operations")));
        }
        for key in keys().chain(self.conditions.iter().map(|condition| &condition.key)) {
            if key.is_empty() || key.len() > MAX_KEY_BYTES {
                return Err(Error::Invalid(format!("a key has 1 to {MAX_KEY_BYTES} bytes, not {}", key.len())));
            }
        }
        if keys().collect::<BTreeSet<_>>().len() < self.operations.len() {
            return Err(Error::Invalid("a transaction changes each key at most once".to_owned()));
        }
        match self.bytes() {
            bytes if bytes > MAX_TXN_BYTES => Err(Error::TooLarge { bytes, limit: MAX_TXN_BYTES }),
            _ => Ok(()),
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// All operations were made. If they changed nothing (deletes of absent keys) this is the current revision.
    Committed(Revision),
    /// A condition did not hold and nothing was changed; `current` has the item of each condition's key, in order.
    Conflict { revision: Revision, current: Vec<Option<Item>> },
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Get {
    /// The revision at which the key was read.
    pub revision: Revision,
    pub item: Option<Item>,
}

/// The keys under `prefix` from `start` on.
#[derive(Clone, Debug, Default)]
pub struct Range {
    pub prefix: Bytes,
    /// The first key to return; keys before it are skipped. Empty: from the first.
    pub start: Bytes,
    /// At most this many items; zero: all.
    pub limit: usize,
    /// A kept revision; none: the current one.
    pub at: Option<Revision>,
}

impl Range {
    pub fn prefix(prefix: impl Into<Bytes>) -> Self {
        Range { prefix: prefix.into(), ..Range::default() }
    }

    pub fn starting(self, start: impl Into<Bytes>) -> Self {
        Range { start: start.into(), ..self }
    }

    pub fn limit(self, limit: usize) -> Self {
        Range { limit, ..self }
    }

    pub fn at(self, revision: Revision) -> Self {
        Range { at: Some(revision), ..self }
    }

    /// The interval of keys that are asked for; none if it is empty.
    pub(crate) fn bounds(&self) -> Option<(Vec<u8>, Bound<Vec<u8>>)> {
        let first = self.prefix.as_ref().max(self.start.as_ref()).to_vec();
        match prefix_end(&self.prefix) {
            Some(end) if first >= end => None,
            Some(end) => Some((first, Bound::Excluded(end))),
            None => Some((first, Bound::Unbounded)),
        }
    }

    pub(crate) fn contains(&self, key: &[u8]) -> bool {
        key.starts_with(&self.prefix) && key >= self.start.as_ref()
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RangeResult {
    /// The revision at which all items were read.
    pub revision: Revision,
    pub items: Vec<Item>,
    /// How many more there are behind the limit.
    pub remaining: u64,
}

impl RangeResult {
    /// The answer to a get of `key`, from a range of the prefix `key`: the key itself sorts first.
    pub(crate) fn into_get(self, key: &[u8]) -> Get {
        Get { revision: self.revision, item: self.items.into_iter().next().filter(|item| item.key == key) }
    }
}

/// Every change under `prefix` with a revision greater than `after`.
#[derive(Clone, Debug)]
pub struct WatchRequest {
    pub prefix: Bytes,
    pub after: Revision,
    /// Whether changes carry the value before.
    pub with_previous: bool,
}

impl WatchRequest {
    pub fn new(prefix: impl Into<Bytes>, after: Revision) -> Self {
        WatchRequest { prefix: prefix.into(), after, with_previous: false }
    }

    pub fn with_previous(self) -> Self {
        WatchRequest { with_previous: true, ..self }
    }
}

/// How much history is kept: what is older than `age`, or beyond `bytes`, is compacted without being asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retention {
    pub age: Duration,
    pub bytes: u64,
}

impl Default for Retention {
    fn default() -> Self {
        Retention { age: Duration::from_secs(3600), bytes: 256 << 20 }
    }
}

impl Retention {
    /// Whether something of `bytes` in total, whose oldest part is from `oldest`, should lose that part.
    pub(crate) fn exceeded(&self, bytes: u64, oldest: Timestamp, now: Timestamp) -> bool {
        bytes > self.bytes || now.since(oldest) > self.age
    }
}

/// Figures for metrics, health and capacity planning.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Status {
    pub revision: Revision,
    /// The oldest kept revision.
    pub compacted: Revision,
    pub keys: u64,
    /// Keys and current values.
    pub live_bytes: u64,
    /// Values that were replaced or deleted and are still kept.
    pub history_bytes: u64,
    /// What the backend occupies on disk, all files together; zero in memory.
    pub disk_bytes: u64,
    pub watchers: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_checked_before_anything_else() {
        let many = (0..=MAX_TXN_OPERATIONS).fold(Txn::default(), |txn, n| txn.and_delete(format!("k{n}")));
        let cases = [
            (many, "at most 128 operations"),
            (Txn::put("", "v"), "1 to 8192 bytes, not 0"),
            (Txn::delete("k").when_absent(vec![b'x'; MAX_KEY_BYTES + 1]), "not 8193"),
            (Txn::put("k", "v").and_delete("k"), "each key at most once"),
            (Txn::put("k", vec![0; MAX_TXN_BYTES]), "the limit is 1572864"),
        ];
        for (txn, message) in cases {
            let error = txn.check().expect_err(message).to_string();
            assert!(error.contains(message), "{error}");
        }
    }
}
