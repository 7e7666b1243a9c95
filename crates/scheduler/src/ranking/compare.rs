//! The best of the nodes that do.
//!
//! This is the walk over all nodes that every pod takes, so it reads arrays and nothing else, and works out only what
//! can make a difference.

use super::{Ranking, Seat};
use crate::cluster::{Cluster, NOWHERE, Slot, Topology};
use crate::relation::Shift;
use crate::scores::{BEST, Scores};

/// What stands for a node that does not do.
pub(super) const CLOSED: i64 = i64::MIN;
/// What stands for how uneven pods would be spread on a node that is outside of a topology they are spread over.
const OUTSIDE: i64 = i64::MIN;
const NO_SHIFT: Shift = Shift { domain: NOWHERE, by: 0 };

/// Kept from one pod to the next.
#[derive(Debug, Default)]
pub(super) struct Scratch {
    open: Vec<Slot>,
    /// For each open node, how uneven pods would be spread, and how much the pod and its neighbours like each other.
    raw: Vec<(i64, i64)>,
    sums: Vec<f64>,
    /// In how many domains open nodes are, for each soft spread, and what that was found out from.
    domains: Vec<usize>,
    counted: Option<(u64, u64)>,
    /// Which domains have been met, each by the number of the count.
    met: Vec<u32>,
    count: u32,
}

impl Scratch {
    /// In how many domains of a topology open nodes are. To be nowhere counts as one: where that is not as good as
    /// anywhere else, such nodes are not asked about.
    fn domains(&mut self, topology: &Topology) -> usize {
        self.count += 1;
        let (mut domains, mut is_outside) = (0, false);
        for (slot, _) in self.open.iter().zip(&self.raw).filter(|(_, raw)| raw.0 != OUTSIDE) {
            let domain = topology.domain(*slot);
            if domain == NOWHERE {
                is_outside = true;
                continue;
            }
            let at = domain as usize;
            if self.met.len() <= at {
                self.met.resize(at + 1, 0);
            }
            domains += usize::from(self.met[at] != self.count);
            self.met[at] = self.count;
        }
        domains + usize::from(is_outside)
    }
}

/// The least and the most of something.
#[derive(Clone, Copy)]
struct Range {
    least: i64,
    most: i64,
}

impl Range {
    const NONE: Range = Range { least: i64::MAX, most: i64::MIN };

    #[inline]
    fn take(&mut self, value: i64) {
        self.least = self.least.min(value);
        self.most = self.most.max(value);
    }

    #[inline]
    fn is_flat(self) -> bool {
        self.least >= self.most
    }

    /// How good it is to be so uneven.
    fn evenness(self, uneven: i64) -> i64 {
        match uneven {
            OUTSIDE => 0,
            _ if self.is_flat() => BEST,
            _ => BEST * (self.most + self.least - uneven) / self.most,
        }
    }
}

impl Ranking {
    /// The best node. `salt` decides between equals.
    pub(crate) fn choose(&mut self, cluster: &Cluster, salt: u64) -> Option<Slot> {
        self.update(cluster);
        let mut scratch = std::mem::take(&mut self.scratch);
        self.find_open(cluster, &mut scratch.open);
        let best = match scratch.open.as_slice() {
            [] => None,
            [only] => Some(*only),
            _ => {
                let (skew, liking) = self.look_around(cluster, &mut scratch);
                self.best(cluster, &scratch, skew, liking, salt)
            }
        };
        self.scratch = scratch;
        best
    }

    /// Whether the pods around decide which of the nodes that do by themselves are open.
    fn is_up_to_others(&self) -> bool {
        self.shape.looks_around() || !self.repelled.is_empty()
    }

    fn find_open(&self, cluster: &Cluster, open: &mut Vec<Slot>) {
        open.clear();
        match &self.only {
            Some(names) => {
                let named = names.iter().filter_map(|name| cluster.slot(name));
                open.extend(named.filter(|slot| self.totals[*slot as usize] != CLOSED));
            }
            None => {
                let all = (0..).zip(&self.totals);
                open.extend(all.filter(|(_, total)| **total != CLOSED).map(|(slot, _)| slot));
            }
        }
        if self.is_up_to_others() {
            open.retain(|slot| self.stands(cluster, *slot, None).is_ok());
        }
    }

    /// What depends on the pods around, for each open node.
    fn look_around(&self, cluster: &Cluster, scratch: &mut Scratch) -> (Range, Range) {
        let skew = self.look_for_skew(cluster, scratch);
        let (open, raw) = (&scratch.open, &mut scratch.raw);
        let mut liking = Range::NONE;
        let needs = &self.shape;
        let first = needs.spread.len() + needs.affinity.len() + needs.anti_affinity.len();
        let mut likes = self.relations[first..].iter().chain(&self.invited).peekable();
        if likes.peek().is_some() {
            for relation in likes {
                let topology = cluster.topology_at(relation.topology);
                for (slot, raw) in open.iter().zip(raw.iter_mut()) {
                    let domain = topology.domain(*slot);
                    raw.1 += if domain == NOWHERE { 0 } else { relation.sum(domain, NO_SHIFT) };
                }
            }
            raw.iter().for_each(|raw| liking.take(raw.1));
        }
        (skew, liking)
    }

    /// How uneven pods would be spread, for each open node.
    fn look_for_skew(&self, cluster: &Cluster, scratch: &mut Scratch) -> Range {
        let mut skew = Range::NONE;
        scratch.raw.clear();
        scratch.raw.resize(scratch.open.len(), (0, 0));
        let soft = || self.shape.spread.iter().zip(&self.relations).filter(|(spread, _)| !spread.is_hard);
        if soft().next().is_none() {
            return skew;
        }
        for (_, relation) in soft().filter(|(spread, _)| !spread.is_default) {
            let topology = cluster.topology_at(relation.topology);
            for (slot, raw) in scratch.open.iter().zip(&mut scratch.raw) {
                if topology.domain(*slot) == NOWHERE {
                    raw.0 = OUTSIDE;
                }
            }
        }
        // Which nodes are open seldom changes, unless the pods around have a say in it.
        let as_of = (!self.is_up_to_others()).then_some((self.openings, cluster.layout()));
        if as_of.is_none() || scratch.counted != as_of {
            scratch.domains =
                soft().map(|(_, relation)| scratch.domains(cluster.topology_at(relation.topology))).collect();
            scratch.counted = as_of;
        }
        scratch.sums.clear();
        scratch.sums.resize(scratch.open.len(), 0.0);
        for ((spread, relation), domains) in soft().zip(&scratch.domains) {
            let topology = cluster.topology_at(relation.topology);
            // The more domains there are, the more a pod in one of them weighs.
            let weight = ((domains + 2) as f64).ln();
            let allowance = (spread.max_skew - 1) as f64;
            for (slot, sum) in scratch.open.iter().zip(scratch.sums.iter_mut()) {
                let domain = topology.domain(*slot);
                if domain != NOWHERE {
                    *sum += relation.sum(domain, NO_SHIFT) as f64 * weight + allowance;
                }
            }
        }
        for (raw, sum) in scratch.raw.iter_mut().zip(&scratch.sums).filter(|(raw, _)| raw.0 != OUTSIDE) {
            // To the nearest; there are no negative ones.
            raw.0 = (*sum + 0.5) as i64;
            skew.take(raw.0);
        }
        skew
    }

    fn best(&self, cluster: &Cluster, scratch: &Scratch, skew: Range, liking: Range, salt: u64) -> Option<Slot> {
        let weights = &self.profile.weights;
        let (open, raw) = (&scratch.open, &scratch.raw);
        let own = self.own_range(open);
        let mixed = |slot: Slot| (cluster.salt(slot) ^ salt).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        // Most nodes are like the one before.
        let mut last = (OUTSIDE, 0);
        let (mut most, mut lot, mut best) = (CLOSED, 0, None);
        for (slot, (uneven, like)) in open.iter().zip(raw) {
            let mut total = self.totals[*slot as usize];
            if let Some(most) = &own {
                total += self.own(*slot, most);
            }
            if last.0 != *uneven {
                last = (*uneven, weights.spread * skew.evenness(*uneven));
            }
            total += last.1;
            if !liking.is_flat() {
                total += weights.pod_affinity * (BEST * (like - liking.least) / (liking.most - liking.least));
            }
            if total < most {
                continue;
            }
            let drawn = mixed(*slot);
            if total > most || drawn > lot {
                (most, lot, best) = (total, drawn, Some(*slot));
            }
        }
        best
    }

    /// The most of everything that open nodes are compared by; none if there are none to compare by.
    fn own_range(&self, open: &[Slot]) -> Option<Scores> {
        if self.uneven_taints == 0 && self.liked == 0 && self.preferred == 0 {
            return None;
        }
        let mut most = Scores::default();
        for slot in open {
            if let Seat::Open(scores) = &self.seats[*slot as usize] {
                most.taints = most.taints.max(scores.taints);
                most.liked = most.liked.max(scores.liked);
                most.devices = most.devices.max(scores.devices);
            }
        }
        Some(most)
    }

    /// What a node by itself comes to in comparison with the others.
    fn own(&self, slot: Slot, most: &Scores) -> i64 {
        let Seat::Open(scores) = &self.seats[slot as usize] else { return 0 };
        let weights = &self.profile.weights;
        let taints = if most.taints == 0 { BEST } else { BEST - BEST * scores.taints / most.taints };
        let liked = if most.liked == 0 { 0 } else { BEST * scores.liked / most.liked };
        let devices = if most.devices == 0 { 0 } else { BEST * scores.devices / most.devices };
        weights.taints * taints + weights.node_affinity * liked + weights.devices * devices
    }
}
