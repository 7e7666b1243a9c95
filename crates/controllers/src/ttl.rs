//! TTL: nodes say for how long secrets and config maps may be remembered, longer where there are more nodes to ask.

use kinds::{Key, Node, Object};
use object::json;
use parking_lot::Mutex;
use runtime::{Controller, Plan};
use std::sync::Arc;

const ANNOTATION: &str = "node.alpha.kubernetes.io/ttl";

/// Up to how many nodes, down from how many, and for how many seconds. The sizes overlap, so that a cluster at a border
/// does not go to and fro.
const STEPS: [(usize, usize, u32); 5] =
    [(100, 0, 0), (500, 90, 15), (1000, 450, 30), (2000, 900, 60), (10_000, 1800, 300)];

pub(crate) fn controller() -> Controller {
    let step = Mutex::new(0);
    Controller::new("ttl-controller")
        .watches_changes::<Node>(|change, _| match (&change.old, &change.new) {
            (Some(_), Some(new)) if new.metadata.annotations.contains_key(ANNOTATION) => vec![],
            _ => vec![Key::cluster("nodes")],
        })
        .begins_with(Key::cluster("nodes"))
        .workers(1)
        .plans(move |caches, _| plan(&caches.of::<Node>().all(), &mut step.lock()))
}

/// All nodes at once: what they say depends on how many they are.
fn plan(nodes: &[Arc<Object<Node>>], step: &mut usize) -> Plan {
    while nodes.len() > STEPS[*step].0 && *step + 1 < STEPS.len() {
        *step += 1;
    }
    while nodes.len() < STEPS[*step].1 && *step > 0 {
        *step -= 1;
    }
    let seconds = STEPS[*step].2.to_string();
    let mut plan = Plan::default();
    for node in nodes.iter().filter(|node| node.metadata.annotation(ANNOTATION) != seconds) {
        plan.patch(node, json!({ "metadata": { "annotations": { ANNOTATION: seconds } } }));
    }
    plan
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_follows_the_size_of_the_cluster_but_not_at_once() {
        let nodes = |count: usize, said: &str| -> Vec<_> {
            let node = |number: usize| json!({ "metadata": { "name": format!("n{number}"), "annotations": { ANNOTATION: said } } });
            (0..count).map(|number| Arc::new(Object::<Node>::of(&node(number)))).collect()
        };
        let mut step = 0;
        for (count, said, changed) in
            [(3, "", 3), (3, "0", 0), (101, "0", 101), (95, "15", 0), (89, "15", 89), (600, "30", 0)]
        {
            assert_eq!(plan(&nodes(count, said), &mut step).writes.len(), changed, "{count} nodes that say {said:?}");
        }
    }
}
