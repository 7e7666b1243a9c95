//! Pods of one shape that wait for something to change.

use super::Entry;
use crate::needs::Shape;
use crate::verdict::Plugin;
use kinds::Key;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use tokio::time::Instant;

#[derive(Debug)]
pub(super) struct Parked {
    pub shape: Shape,
    pub plugins: Vec<Plugin>,
    /// Pods that get the same answer, by when their back-off ends and then by their turn.
    pub alike: BTreeMap<(Instant, u64), Arc<Key>>,
    /// Pods about which more is decided than where there is room: each is tried.
    pub others: BTreeSet<Arc<Key>>,
    /// Which of those that are alike has gone ahead.
    pub ahead: Option<(Arc<Key>, Call)>,
}

/// What has made pods come, and when.
#[derive(Clone, Debug)]
pub(super) struct Call {
    pub event: String,
    pub at: Instant,
}

impl Parked {
    pub(super) fn new(shape: &Shape, plugins: &[Plugin]) -> Self {
        Parked {
            shape: shape.clone(),
            plugins: plugins.to_vec(),
            alike: BTreeMap::new(),
            others: BTreeSet::new(),
            ahead: None,
        }
    }

    pub(super) fn put(&mut self, entry: &Entry) {
        match entry.until.filter(|_| entry.is_alike()) {
            Some(until) => drop(self.alike.insert((until, entry.turn), entry.key.clone())),
            None => drop(self.others.insert(entry.key.clone())),
        }
    }

    /// Returns whether it was there.
    pub(super) fn remove(&mut self, entry: &Entry) -> bool {
        let is_alike = entry.until.and_then(|until| self.alike.remove(&(until, entry.turn))).is_some();
        is_alike || self.others.remove(&entry.key)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.alike.is_empty() && self.others.is_empty()
    }
}

/// What parked pods have in common.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stuck<'a> {
    pub shape: &'a Shape,
    /// Who refused them.
    pub plugins: &'a [Plugin],
}
