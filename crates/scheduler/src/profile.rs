//! How a scheduler weighs nodes against each other. Pods choose one by its name.

use crate::needs::Spread;

/// The name that pods have unless they say otherwise.
pub const DEFAULT: &str = "default-scheduler";

#[derive(Clone, Debug, PartialEq)]
pub struct Profile {
    pub name: String,
    pub packing: Packing,
    pub weights: Weights,
    /// How pods are spread that say nothing about it, if they belong to something.
    pub(crate) spread: Vec<Spread>,
}

/// Whether full or empty nodes are better.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Packing {
    #[default]
    LeastAllocated,
    MostAllocated,
}

/// How much each point of view counts. Each gives a node 0 to 100.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Weights {
    pub taints: i64,
    pub node_affinity: i64,
    pub spread: i64,
    pub pod_affinity: i64,
    pub fit: i64,
    pub balance: i64,
    pub images: i64,
}

impl Default for Weights {
    fn default() -> Self {
        Weights { taints: 3, node_affinity: 2, spread: 2, pod_affinity: 2, fit: 1, balance: 1, images: 1 }
    }
}

impl Profile {
    pub fn new(name: &str) -> Self {
        let spread = |topology: &str, max_skew| Spread {
            topology: topology.to_owned(),
            max_skew,
            min_domains: 1,
            is_hard: false,
            selector: None,
            honors_affinity: true,
            honors_taints: false,
            is_default: true,
        };
        Profile {
            name: name.to_owned(),
            packing: Packing::default(),
            weights: Weights::default(),
            spread: vec![spread("kubernetes.io/hostname", 3), spread("topology.kubernetes.io/zone", 5)],
        }
    }
}
