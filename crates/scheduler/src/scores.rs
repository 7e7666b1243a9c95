//! How good a node is for a pod that could be there, judged by that node alone: from 0 to 100 each.

use crate::cluster::{Cluster, Spot};
use crate::needs::Needs;
use crate::profile::{Packing, Profile};
use kinds::Node;

/// The best there is.
pub(crate) const BEST: i64 = 100;

/// What is known of a node before it is compared with others.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Scores {
    /// Weighed and done.
    pub total: i64,
    /// Taints that would rather keep the pod away: fewer are better.
    pub taints: i64,
    /// The weights of what the pod would like in a node: more are better.
    pub liked: i64,
}

pub(crate) fn score(needs: &Needs, profile: &Profile, cluster: &Cluster, spot: &Spot, node: &Node) -> Scores {
    let weights = &profile.weights;
    let shies = |taint: &&kinds::Taint| {
        taint.effect == "PreferNoSchedule" && !needs.tolerations.iter().any(|toleration| toleration.tolerates(taint))
    };
    Scores {
        total: weights.fit * fit(needs, profile.packing, spot)
            + weights.balance * balance(needs, spot)
            + weights.images * images(needs, cluster, node),
        taints: node.spec.taints.iter().filter(shies).count() as i64,
        liked: needs.preferred.iter().filter(|(_, term)| term.matches(node)).map(|(weight, _)| weight).sum(),
    }
}

/// How empty the node would be, or how full.
fn fit(needs: &Needs, packing: Packing, spot: &Spot) -> i64 {
    let share = |used: i64, capacity: i64| {
        if capacity == 0 || used > capacity {
            return 0;
        }
        match packing {
            Packing::LeastAllocated => (capacity - used) * BEST / capacity,
            Packing::MostAllocated => used * BEST / capacity,
        }
    };
    let cpu = share(spot.estimate.cpu + needs.estimate.cpu, spot.capacity.cpu);
    let memory = share(spot.estimate.memory + needs.estimate.memory, spot.capacity.memory);
    i64::midpoint(cpu, memory)
}

/// How much more evenly processors and memory would be used with the pod than without.
fn balance(needs: &Needs, spot: &Spot) -> i64 {
    if needs.requests.cpu == 0 && needs.requests.memory == 0 {
        return 0;
    }
    let share =
        |used: i64, capacity: i64| if capacity == 0 { None } else { Some((used as f64 / capacity as f64).min(1.0)) };
    let evenness = |cpu: i64, memory: i64| match (share(cpu, spot.capacity.cpu), share(memory, spot.capacity.memory)) {
        (Some(cpu), Some(memory)) => ((1.0 - ((cpu - memory) / 2.0).abs()) * BEST as f64) as i64,
        _ => BEST,
    };
    let before = evenness(spot.used.cpu, spot.used.memory);
    let after = evenness(spot.used.cpu + needs.requests.cpu, spot.used.memory + needs.requests.memory);
    BEST / 2 + i64::midpoint(BEST / 2, after - before)
}

/// Images smaller than this are pulled in no time, and larger than that all take long.
const SMALL: i64 = 23 << 20;
const LARGE: i64 = 1000 << 20;

/// How much of the pod's images is there. What few nodes have counts for less, or all pods would go there.
fn images(needs: &Needs, cluster: &Cluster, node: &Node) -> i64 {
    if node.status.images.is_empty() || needs.images.is_empty() {
        return 0;
    }
    let size = |name: &String| {
        let image = node.status.images.iter().find(|image| image.names.contains(name))?;
        let spread = cluster.image_spread(name) as f64 / cluster.len().max(1) as f64;
        Some((image.size_bytes as f64 * spread) as i64)
    };
    let there: i64 = needs.images.iter().filter_map(size).sum();
    let large = LARGE * needs.images.len() as i64;
    BEST * (there.clamp(SMALL, large) - SMALL) / (large - SMALL)
}
