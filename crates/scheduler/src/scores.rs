//! How good a node is for a pod that could be there, judged by that node alone: from 0 to 100 each.

use crate::cluster::{Cluster, Spot};
use crate::needs::Needs;
use crate::profile::{Fit, Packing, Profile};
use crate::resources::Resource;
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
    /// How early in the lists of claims its devices come: more is better.
    pub devices: i64,
}

pub(crate) fn score(needs: &Needs, profile: &Profile, cluster: &Cluster, spot: &Spot, node: &Node) -> Scores {
    let weights = &profile.weights;
    let shies = |taint: &&kinds::Taint| {
        taint.effect == "PreferNoSchedule" && !needs.tolerations.iter().any(|toleration| toleration.tolerates(taint))
    };
    Scores {
        total: weights.fit * fit(needs, &profile.fit, spot)
            + weights.balance * balance(needs, &profile.balance, spot)
            + weights.images * images(needs, cluster, node),
        taints: node.spec.taints.iter().filter(shies).count() as i64,
        devices: 0,
        liked: needs.preferred.iter().filter(|(_, term)| term.matches(node)).map(|(weight, _)| weight).sum(),
    }
}

/// How empty the node would be, or how full.
fn fit(needs: &Needs, fit: &Fit, spot: &Spot) -> i64 {
    let (mut sum, mut weights) = (0, 0);
    for (resource, weight) in &fit.resources {
        let share = resource.share(&spot.estimate, &needs.estimate, &spot.capacity);
        let Some((used, capacity)) = share else { continue };
        let score = match &fit.packing {
            Packing::LeastAllocated => (capacity - used).max(0) * BEST / capacity,
            Packing::MostAllocated => used.min(capacity) * BEST / capacity,
            Packing::Shape(points) => on_line(points, used.min(capacity) * BEST / capacity),
        };
        // In a shape, what is worth nothing does not count against the rest.
        if score > 0 || !matches!(fit.packing, Packing::Shape(_)) {
            sum += score * weight;
            weights += weight;
        }
    }
    match (&fit.packing, weights) {
        (_, 0) => 0,
        (Packing::Shape(_), _) => (sum + weights / 2) / weights,
        _ => sum / weights,
    }
}

/// The value at `x` of a line through points that are sorted; flat outside of them.
fn on_line(points: &[(i64, i64)], x: i64) -> i64 {
    let next = points.partition_point(|(utilization, _)| *utilization < x);
    match (points.get(next.wrapping_sub(1)), points.get(next)) {
        (Some((x0, y0)), Some((x1, y1))) => y0 + (y1 - y0) * (x - x0) / (x1 - x0),
        (Some((_, y)), None) | (None, Some((_, y))) => *y,
        (None, None) => 0,
    }
}

/// How much more evenly resources would be used with the pod than without.
fn balance(needs: &Needs, resources: &[Resource], spot: &Spot) -> i64 {
    if resources.iter().all(|resource| resource.of(&needs.requests) == 0) {
        return 0;
    }
    let shares = resources.iter().filter_map(|resource| {
        let (after, capacity) = resource.share(&spot.used, &needs.requests, &spot.capacity)?;
        let share = |used: i64| (used as f64 / capacity as f64).min(1.0);
        Some((share(after - resource.of(&needs.requests)), share(after)))
    });
    let mut first = shares.clone();
    let (before, after) = match (first.next(), first.next(), first.next()) {
        (Some(one), Some(other), None) => (((one.0 - other.0) / 2.0).abs(), ((one.1 - other.1) / 2.0).abs()),
        (_, _, None) => (0.0, 0.0),
        _ => (deviation(shares.clone().map(|(before, _)| before)), deviation(shares.map(|(_, after)| after))),
    };
    let evenness = |unevenness: f64| ((1.0 - unevenness) * BEST as f64) as i64;
    BEST / 2 + i64::midpoint(BEST / 2, evenness(after) - evenness(before))
}

/// The standard deviation.
fn deviation(shares: impl Iterator<Item = f64> + Clone) -> f64 {
    let (count, sum) = shares.clone().fold((0, 0.0), |(count, sum), share| (count + 1, sum + share));
    let mean = sum / f64::from(count);
    (shares.map(|share| (share - mean).powi(2)).sum::<f64>() / f64::from(count)).sqrt()
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
