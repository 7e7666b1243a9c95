//! How many pods of some sort are in each domain of a topology, as a sum over nodes that is kept up to date.

use crate::cluster::{NOWHERE, Slot};

#[derive(Debug, Default)]
pub(crate) struct Relation {
    pub topology: usize,
    /// What each node adds, by slot.
    shares: Vec<Share>,
    /// By domain.
    sums: Vec<i64>,
    /// How many nodes count in each domain.
    sizes: Vec<u32>,
    /// Of everything, wherever it is.
    everywhere: i64,
}

#[derive(Clone, Copy, Debug)]
struct Share {
    domain: u32,
    amount: i64,
}

/// What would be different if a node were: for trying out what happens if pods leave it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Shift {
    pub domain: u32,
    pub by: i64,
}

const NOTHING: Share = Share { domain: NOWHERE, amount: 0 };

impl Relation {
    pub(crate) fn new(topology: usize) -> Self {
        Relation { topology, ..Relation::default() }
    }

    /// What a node adds from now on; in no domain, nothing.
    pub(crate) fn set(&mut self, slot: Slot, domain: u32, amount: i64) {
        let at = slot as usize;
        if self.shares.len() <= at {
            if domain == NOWHERE {
                return;
            }
            self.shares.resize(at + 1, NOTHING);
        }
        let old = std::mem::replace(&mut self.shares[at], Share { domain, amount });
        if old.domain == domain && old.amount == amount {
            return;
        }
        self.count(old, -1);
        self.count(Share { domain, amount }, 1);
    }

    fn count(&mut self, share: Share, sign: i64) {
        if share.domain == NOWHERE {
            return;
        }
        let at = share.domain as usize;
        if self.sums.len() <= at {
            self.sums.resize(at + 1, 0);
            self.sizes.resize(at + 1, 0);
        }
        self.sums[at] += sign * share.amount;
        self.sizes[at] = self.sizes[at].saturating_add_signed(sign as i32);
        self.everywhere += sign * share.amount;
    }

    /// What a node adds.
    pub(crate) fn share(&self, slot: Slot) -> i64 {
        self.shares.get(slot as usize).map_or(0, |share| share.amount)
    }

    #[inline]
    pub(crate) fn sum(&self, domain: u32, shift: Shift) -> i64 {
        let sum = self.sums.get(domain as usize).copied().unwrap_or(0);
        if shift.domain == domain { sum + shift.by } else { sum }
    }

    pub(crate) fn everywhere(&self, shift: Shift) -> i64 {
        self.everywhere + shift.by
    }

    /// The smallest sum of all domains that any node counts in; nothing where there are fewer than `domains`.
    pub(crate) fn minimum(&self, domains: i64, shift: Shift) -> i64 {
        let counting = self.sizes.iter().enumerate().filter(|(_, size)| **size > 0);
        let (mut least, mut count) = (i64::MAX, 0);
        for (domain, _) in counting {
            least = least.min(self.sum(domain as u32, shift));
            count += 1;
        }
        if count < domains || count == 0 { 0 } else { least }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NO_SHIFT: Shift = Shift { domain: NOWHERE, by: 0 };

    #[test]
    fn sums_follow_what_nodes_add() {
        let mut relation = Relation::new(0);
        relation.set(0, 0, 3);
        relation.set(1, 0, 1);
        relation.set(2, 1, 1);
        assert_eq!((relation.sum(0, NO_SHIFT), relation.sum(1, NO_SHIFT), relation.minimum(1, NO_SHIFT)), (4, 1, 1));
        assert_eq!(relation.minimum(3, NO_SHIFT), 0, "fewer domains than there should be count as empty ones");
        relation.set(0, 1, 3);
        assert_eq!((relation.sum(0, NO_SHIFT), relation.sum(1, NO_SHIFT)), (1, 4));
        relation.set(1, NOWHERE, 0);
        assert_eq!(relation.minimum(1, NO_SHIFT), 4, "a domain without nodes is none");
        assert_eq!(relation.sum(1, Shift { domain: 1, by: -2 }), 2);
        assert_eq!(relation.everywhere(NO_SHIFT), 4);
    }
}
