//! Which address each simulated pod has.
//!
//! No two pods of a node have the same, after a restart neither: what is taken is read from the pods themselves. Only
//! addresses that were given a moment ago, and are not in the cache yet, are remembered here.

use super::machine;
use kinds::{Object, Pod};
use std::collections::BTreeMap;
use std::sync::Arc;

#[derive(Default)]
pub(super) struct Addresses {
    nodes: BTreeMap<usize, OfNode>,
}

/// What is remembered of one node.
#[derive(Default)]
struct OfNode {
    /// The numbers of addresses that are taken, one bit each. Pods may go without a word, so some may be free.
    taken: Option<[u64; WORDS]>,
    /// By UID, those that were given and no pod is known to have yet.
    given: BTreeMap<String, usize>,
    /// Where to look for the next, so that an address rests before it is given again.
    next: usize,
}

const WORDS: usize = machine::POD_ADDRESSES.div_ceil(64);

impl OfNode {
    /// A number that is free, from the next on. If all seem taken, or nothing is known yet, the pods are asked.
    fn free(&mut self, node: usize, neighbours: impl FnOnce() -> Vec<Arc<Object<Pod>>>) -> Option<usize> {
        self.look().or_else(|| {
            let mut taken = [0; WORDS];
            let known = neighbours();
            let known = known.iter().filter_map(|pod| machine::pod_number(node, &pod.status.pod_ip));
            known.chain(self.given.values().copied()).for_each(|number| taken[number / 64] |= 1 << (number % 64));
            self.taken = Some(taken);
            self.look()
        })
    }

    fn look(&self) -> Option<usize> {
        let taken = self.taken.as_ref()?;
        let numbers = (self.next..machine::POD_ADDRESSES).chain(0..self.next);
        numbers.into_iter().find(|number| taken[number / 64] & 1 << (number % 64) == 0)
    }
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
        if let Some(number) = of_node.given.get(&pod.metadata.uid) {
            return machine::pod_address(node, *number);
        }
        // A node has more addresses than it may have pods; with too many all the same, some share one.
        let number = of_node.free(node, neighbours).unwrap_or(of_node.next);
        if let Some(taken) = &mut of_node.taken {
            taken[number / 64] |= 1 << (number % 64);
        }
        of_node.next = (number + 1) % machine::POD_ADDRESSES;
        of_node.given.insert(pod.metadata.uid.clone(), number);
        machine::pod_address(node, number)
    }

    /// A pod of a node is gone.
    pub(super) fn forget(&mut self, node: usize, pod: &Object<Pod>) {
        let Some(of_node) = self.nodes.get_mut(&node) else { return };
        let given = of_node.given.remove(&pod.metadata.uid);
        let number = given.or_else(|| machine::pod_number(node, &pod.status.pod_ip));
        if let (Some(taken), Some(number)) = (&mut of_node.taken, number) {
            taken[number / 64] &= !(1 << (number % 64));
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
        let given: std::collections::BTreeSet<String> =
            neighbours.iter().map(|pod| addresses.get(3, pod, || neighbours.clone())).collect();
        assert_eq!(given.len(), machine::POD_ADDRESSES);
    }

    #[test]
    fn addresses_of_pods_that_went_without_a_word_are_found_again() {
        let mut addresses = Addresses::default();
        for round in 0..3 * machine::POD_ADDRESSES {
            addresses.get(5, &pod(&format!("first-{round}"), ""), Vec::new);
            addresses.get(5, &pod(&format!("first-{round}"), "10.192.5.1"), Vec::new);
        }
        let neighbours = vec![pod("left", &machine::pod_address(5, 7))];
        let given: std::collections::BTreeSet<String> = (1..machine::POD_ADDRESSES)
            .map(|number| addresses.get(5, &pod(&format!("next-{number}"), ""), || neighbours.clone()))
            .collect();
        assert_eq!(given.len(), machine::POD_ADDRESSES - 1);
        assert!(!given.contains(&neighbours[0].status.pod_ip));
    }

    #[test]
    fn an_address_rests_before_it_is_given_again() {
        let mut addresses = Addresses::default();
        let first = addresses.get(0, &pod("a", ""), Vec::new);
        addresses.forget(0, &pod("a", ""));
        assert_ne!(addresses.get(0, &pod("b", ""), Vec::new), first);
    }
}
