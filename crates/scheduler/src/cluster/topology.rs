//! Where nodes are: those with the same value of a label are in one domain.

use super::Slot;
use kinds::Node;
use std::collections::HashMap;

/// No domain: the node has no such label.
pub(crate) const NOWHERE: u32 = u32::MAX;

/// Which nodes have the same value of a label.
#[derive(Debug, Default)]
pub(crate) struct Topology {
    key: String,
    values: HashMap<String, u32>,
    /// By slot.
    domains: Vec<u32>,
}

impl Topology {
    pub(super) fn new(key: &str) -> Self {
        Topology { key: key.to_owned(), ..Topology::default() }
    }

    pub(super) fn is_by(&self, key: &str) -> bool {
        self.key == key
    }

    #[inline]
    pub(crate) fn domain(&self, slot: Slot) -> u32 {
        self.domains.get(slot as usize).copied().unwrap_or(NOWHERE)
    }

    pub(super) fn assign(&mut self, slot: Slot, node: Option<&Node>) {
        let domain = match node.and_then(|node| node.metadata.labels.get(&self.key)) {
            None => NOWHERE,
            Some(value) => {
                let next = self.values.len() as u32;
                *self.values.entry(value.clone()).or_insert(next)
            }
        };
        let at = slot as usize;
        if self.domains.len() <= at {
            self.domains.resize(at + 1, NOWHERE);
        }
        self.domains[at] = domain;
    }
}
