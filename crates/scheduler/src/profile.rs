//! How a scheduler looks at nodes: which points of view there are, and how much each counts. Pods choose a profile by its
//! name.

use crate::needs::Spread;
use crate::resources::Resource;
use crate::verdict::{Plugin, PluginSet};
use kinds::{NodeSelector, NodeTerm, Pod};
use std::collections::BTreeSet;
use std::time::Duration;

/// The name that pods have unless they say otherwise.
pub const DEFAULT: &str = "default-scheduler";

/// The name of the profile that a pod is placed by.
pub(crate) fn chosen_by(pod: &Pod) -> &str {
    match pod.spec.scheduler_name.as_str() {
        "" => DEFAULT,
        name => name,
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct Profile {
    pub name: String,
    pub weights: Weights,
    /// Who may refuse a node.
    pub(crate) filters: PluginSet,
    pub(crate) fit: Fit,
    /// Which resources are to be used evenly.
    pub(crate) balance: Vec<Resource>,
    /// How pods are spread that say nothing about it, if they belong to something.
    pub(crate) spread: Vec<Spread>,
    pub(crate) neighbours: Neighbours,
    /// What every pod asks of its node, whatever it says itself.
    pub(crate) added: Added,
    /// How far room is looked for at the cost of others; none if it never is.
    pub(crate) preemption: Option<Candidates>,
    /// Claims that are not bound after this long are given up, and the pod looks for another node.
    pub(crate) binding_timeout: Duration,
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
    pub devices: i64,
}

impl Default for Weights {
    fn default() -> Self {
        Weights { taints: 3, node_affinity: 2, spread: 2, pod_affinity: 2, fit: 1, balance: 1, images: 1, devices: 2 }
    }
}

/// What is regarded of resources.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Fit {
    pub packing: Packing,
    /// With weights.
    pub resources: Vec<(Resource, i64)>,
    /// Extended resources, and their groups, that somebody else sees to.
    pub ignored: BTreeSet<String>,
    pub ignored_groups: BTreeSet<String>,
}

/// Whether full or empty nodes are better.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum Packing {
    #[default]
    LeastAllocated,
    MostAllocated,
    /// How good which utilization is, both in percent: points in between are on a line.
    Shape(Vec<(i64, i64)>),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Neighbours {
    /// What a pod's need to be near others counts for those others.
    pub hard_weight: i64,
    /// Whether pods without wishes of their own regard those of others.
    pub obliging: bool,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Added {
    pub required: Option<NodeSelector>,
    pub preferred: Vec<(i64, NodeTerm)>,
}

/// With so many nodes to choose from, the search for room ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Candidates {
    pub percent: usize,
    pub least: usize,
}

impl Fit {
    /// Whether somebody else sees to a resource; of those that Kubernetes itself knows nobody does.
    pub(crate) fn ignores(&self, name: &str) -> bool {
        let Some((group, _)) = name.split_once('/') else { return false };
        let is_native = name.contains("kubernetes.io/") || name.starts_with("requests.");
        !is_native && (self.ignored.contains(name) || self.ignored_groups.contains(group))
    }
}

impl Profile {
    pub fn new(name: &str) -> Self {
        Profile {
            name: name.to_owned(),
            weights: Weights::default(),
            filters: PluginSet::all(),
            fit: Fit {
                packing: Packing::default(),
                resources: vec![(Resource::Cpu, 1), (Resource::Memory, 1)],
                ignored: BTreeSet::new(),
                ignored_groups: BTreeSet::new(),
            },
            balance: vec![Resource::Cpu, Resource::Memory],
            spread: system_spread(),
            neighbours: Neighbours { hard_weight: 1, obliging: true },
            added: Added::default(),
            preemption: Some(Candidates { percent: 10, least: 100 }),
            binding_timeout: Duration::from_secs(600),
        }
    }

    pub(crate) fn filters_by(&self, plugin: Plugin) -> bool {
        self.filters.has(plugin)
    }
}

/// How pods are spread where nobody says anything.
pub(crate) fn system_spread() -> Vec<Spread> {
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
    vec![spread("kubernetes.io/hostname", 3), spread("topology.kubernetes.io/zone", 5)]
}
