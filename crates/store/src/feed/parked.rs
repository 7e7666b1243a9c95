//! Watchers that have seen everything, by prefix: who has to be woken for which commit.

use crate::Revision;
use crate::data::Commit;
use bytes::Bytes;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tokio::sync::Notify;

/// Watchers that have seen every commit up to `dispatched` that matters to them.
#[derive(Debug, Default)]
pub(super) struct Parked {
    by_prefix: HashMap<Bytes, BTreeMap<u64, Arc<Slot>>>,
    /// How many prefixes of each length there are: a key is looked up once per length, whatever the number of watchers.
    lengths: BTreeMap<usize, usize>,
    pub(super) dispatched: Revision,
    pub(super) ended: bool,
}

/// Where the dispatcher leaves word for one watcher.
#[derive(Debug, Default)]
pub(super) struct Slot {
    /// The revision of the first commit that matters, set when the watcher is woken.
    pub(super) resume_at: AtomicU64,
    pub(super) wake: Notify,
}

impl Parked {
    /// Nobody, with everything up to `head` dispatched.
    pub(super) fn after(head: Revision) -> Self {
        Parked { dispatched: head, ..Parked::default() }
    }

    pub(super) fn insert(&mut self, prefix: &Bytes, watcher: u64, slot: &Arc<Slot>) {
        let group = self.by_prefix.entry(prefix.clone()).or_insert_with(|| {
            *self.lengths.entry(prefix.len()).or_insert(0) += 1;
            BTreeMap::new()
        });
        group.insert(watcher, slot.clone());
    }

    pub(super) fn is_empty(&self) -> bool {
        self.by_prefix.is_empty()
    }

    pub(super) fn contains(&self, prefix: &Bytes, watcher: u64) -> bool {
        self.by_prefix.get(prefix).is_some_and(|group| group.contains_key(&watcher))
    }

    pub(super) fn remove(&mut self, prefix: &Bytes, watcher: u64) {
        let Some(group) = self.by_prefix.get_mut(prefix) else { return };
        group.remove(&watcher);
        if group.is_empty() {
            self.remove_group(prefix);
        }
    }

    fn remove_group(&mut self, prefix: &[u8]) -> Option<BTreeMap<u64, Arc<Slot>>> {
        let group = self.by_prefix.remove(prefix)?;
        let count = self.lengths.get_mut(&prefix.len()).expect("every group is counted under its length");
        *count -= 1;
        if *count == 0 {
            self.lengths.remove(&prefix.len());
        }
        Some(group)
    }

    /// Takes out every watcher, to go on after what has been dispatched.
    pub(super) fn take_all(&mut self, woken: &mut Vec<Arc<Slot>>) {
        self.lengths.clear();
        for slot in std::mem::take(&mut self.by_prefix).into_values().flat_map(BTreeMap::into_values) {
            slot.resume_at.store(self.dispatched.next().0, Ordering::Release);
            woken.push(slot);
        }
    }

    /// Takes out the watchers to which this commit matters.
    pub(super) fn take_matching(&mut self, commit: &Commit, woken: &mut Vec<Arc<Slot>>) {
        for change in &commit.changes {
            let lengths: Vec<usize> = self.lengths.range(..=change.key.len()).map(|(length, _)| *length).collect();
            for group in lengths.into_iter().filter_map(|length| self.remove_group(&change.key[..length])) {
                for slot in group.into_values() {
                    slot.resume_at.store(commit.revision.0, Ordering::Release);
                    woken.push(slot);
                }
            }
        }
    }
}
