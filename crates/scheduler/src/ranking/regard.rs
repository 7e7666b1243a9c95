//! What a pod that is there means for one that is to be placed.

use crate::cluster::Cluster;
use crate::needs::{Needs, Term};
use crate::profile::Profile;
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// An amount for each relation, and for those by topology.
#[derive(Debug, Default)]
pub(super) struct Regard {
    pub relations: Vec<i64>,
    pub repels: Vec<(usize, i64)>,
    pub invites: Vec<(usize, i64)>,
}

/// By the number of a shape: numbers need little mixing.
pub(super) type ByShape<T> = HashMap<u32, T, BuildHasherDefault<Mixer>>;

#[derive(Debug, Default)]
pub(super) struct Mixer(u64);

impl Hasher for Mixer {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.write_u32(u32::from(*byte)));
    }

    fn write_u32(&mut self, number: u32) {
        self.0 = (self.0 ^ u64::from(number)).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(32);
    }
}

impl Regard {
    /// What a pod means for one that is to be placed.
    pub(super) fn of(incoming: &Needs, profile: &Profile, resident: &Needs, cluster: &Cluster) -> Self {
        let namespaces = &cluster.namespaces;
        let meets_all = incoming.affinity.iter().all(|term| term.matches(resident, namespaces));
        let spread = incoming.spread.iter().map(|spread| i64::from(spread.counts(&incoming.namespace, resident)));
        let affinity = incoming.affinity.iter().map(|_| i64::from(meets_all));
        let anti = incoming.anti_affinity.iter().map(|term| i64::from(term.matches(resident, namespaces)));
        let likes = incoming.likes.iter().map(|(weight, term)| weight * i64::from(term.matches(resident, namespaces)));
        let relations = spread.chain(affinity).chain(anti).chain(likes).collect();
        let topology = |key: &str| cluster.known_topology(key);
        let meant = |term: &&Term| term.matches(incoming, namespaces);
        let repels = resident.anti_affinity.iter().filter(meant);
        let likes = resident.likes.iter().filter(|(_, term)| term.matches(incoming, namespaces));
        let wanted = resident.affinity.iter().filter(meant).map(|term| (profile.neighbours.hard_weight, term));
        let obliging = profile.neighbours.obliging || !incoming.likes.is_empty();
        let invites = likes.map(|(weight, term)| (*weight, term)).chain(wanted).filter(|_| obliging);
        Regard {
            relations,
            repels: repels.filter_map(|term| Some((topology(&term.topology)?, 1))).collect(),
            invites: invites.filter_map(|(weight, term)| Some((topology(&term.topology)?, weight))).collect(),
        }
    }
}
