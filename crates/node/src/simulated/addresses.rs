//! Which address each simulated pod has.
//!
//! No two pods of a node have the same, after a restart neither: what is taken is read from the pods themselves. Only
//! addresses that were given a moment ago, and are not in the cache yet, are remembered here.

use super::machine;
use kinds::{Object, Pod};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

#[derive(Default)]
pub(super) struct Addresses {
    nodes: BTreeMap<usize, OfNode>,
}

/// What is remembered of one node.
#[derive(Default)]
struct OfNode {
    /// By UID, those that were given and no pod is known to have yet.
    given: BTreeMap<String, String>,
    /// Where to look for the next, so that an address rests before it is given again.
    next: usize,
}

impl Addresses {
    /// The address of a pod; `neighbours` are the pods of its node.
    pub(super) fn get(
        &mut self,
        node: usize,
        pod: &Object<Pod>,
        neighbours: impl FnOnce() -> Vec<Arc<Object<Pod>>>,
    ) -> String {
        let of_node = self.nodes.entry(node).or_default();
        if !pod.status.pod_ip.is_empty() {
            of_node.given.remove(&pod.metadata.uid);
            return pod.status.pod_ip.clone();
        }
        if let Some(address) = of_node.given.get(&pod.metadata.uid) {
            return address.clone();
        }
        let neighbours = neighbours();
        let known = neighbours.iter().map(|pod| &pod.status.pod_ip);
        let taken: BTreeSet<&String> = known.chain(of_node.given.values()).collect();
        let start = of_node.next;
        let mut numbers = start..start + machine::POD_ADDRESSES;
        let free = numbers.find(|number| !taken.contains(&machine::pod_address(node, *number)));
        // A node has more addresses than it may have pods; with too many all the same, some share one.
        let number = free.unwrap_or(start);
        let address = machine::pod_address(node, number);
        of_node.next = (number + 1) % machine::POD_ADDRESSES;
        of_node.given.insert(pod.metadata.uid.clone(), address.clone());
        address
    }

    /// A pod of a node is gone.
    pub(super) fn forget(&mut self, node: usize, uid: &str) {
        if let Some(of_node) = self.nodes.get_mut(&node) {
            of_node.given.remove(uid);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use object::json;

    fn pod(uid: &str, address: &str) -> Arc<Object<Pod>> {
        Arc::new(Object::of(&json!({
            "metadata": { "name": uid, "namespace": "default", "uid": uid }, "status": { "podIP": address },
        })))
    }

    #[test]
    fn no_two_pods_of_a_node_have_the_same_address() {
        let mut addresses = Addresses::default();
        // After a restart nothing is remembered, but a pod runs.
        let mut neighbours = vec![pod("old", &machine::pod_address(3, 0))];
        for number in 0..machine::POD_ADDRESSES - 1 {
            let new = pod(&format!("new-{number}"), "");
            let address = addresses.get(3, &new, || neighbours.clone());
            assert_eq!(addresses.get(3, &new, || neighbours.clone()), address, "it stays the same");
            neighbours.push(new);
        }
        let given: BTreeSet<String> =
            neighbours.iter().map(|pod| addresses.get(3, pod, || neighbours.clone())).collect();
        assert_eq!(given.len(), machine::POD_ADDRESSES);
    }

    #[test]
    fn an_address_rests_before_it_is_given_again() {
        let mut addresses = Addresses::default();
        let first = addresses.get(0, &pod("a", ""), Vec::new);
        addresses.forget(0, "a");
        assert_ne!(addresses.get(0, &pod("b", ""), Vec::new), first);
    }
}
