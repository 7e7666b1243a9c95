//! The state at an earlier revision, from the state now and the changes since.
//!
//! For each key that changed since, the oldest of those changes knows what was there before; every other key is as
//! it was. Pure, and the same whether the changes come from memory or from disk.

use crate::head::Snapshot;
use crate::{Item, Range, RangeResult, Revision};
use bytes::Bytes;
use std::collections::BTreeMap;

/// What each changed key held before its first change after the revision that is asked for.
#[derive(Debug, Default)]
pub(crate) struct Before<T>(BTreeMap<Bytes, Option<T>>);

impl<T> Before<T> {
    pub(crate) fn new() -> Self {
        Before(BTreeMap::new())
    }

    /// Takes changes oldest first; only the first of each key counts.
    pub(crate) fn note(&mut self, key: &Bytes, previous: impl FnOnce() -> Option<T>) {
        if !self.0.contains_key(key) {
            self.0.insert(key.clone(), previous());
        }
    }

    /// Turns references to items (such as row numbers) into items.
    pub(crate) fn resolve<E>(self, mut read: impl FnMut(T) -> Result<Item, E>) -> Result<Before<Item>, E> {
        let resolved = self.0.into_iter().map(|(key, previous)| Ok((key, previous.map(&mut read).transpose()?)));
        Ok(Before(resolved.collect::<Result<_, E>>()?))
    }
}

impl Before<Item> {
    /// The range as it was at `at`, given the state `now` and every change in between.
    pub(crate) fn range(&self, now: &Snapshot, at: Revision, range: &Range) -> RangeResult {
        let unchanged = now.iter(range).filter(|item| !self.0.contains_key(&item.key));
        let restored = self.0.values().flatten().filter(|item| range.contains(&item.key));
        let mut items: Vec<Item> = unchanged.chain(restored).cloned().collect();
        items.sort_unstable_by(|a, b| a.key.cmp(&b.key));
        let total = items.len();
        if range.limit != 0 {
            items.truncate(range.limit);
        }
        RangeResult { revision: at, remaining: (total - items.len()) as u64, items }
    }
}
