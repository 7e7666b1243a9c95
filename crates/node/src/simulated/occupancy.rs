//! What is taken of each simulated node, and who may have more of it.
//!
//! What counts is in the cache: the pods of a node that have started and not ended. To that comes what was promised a
//! moment ago and is not in the cache yet. Adding that up for every pod that starts would cost more than the start, so
//! the sum is kept for a while, and only ever too large: pods that go are not taken off. When a pod seems not to fit it
//! is added up again.

use super::resize::{self, Resize};
use crate::admission::{self, Load, Refusal};
use kinds::{Amounts, Node, Object, Pod, Time};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// How long a sum counts. Another server that had the lead in between is seen: a lease takes longer to run out.
const KEPT: Duration = Duration::from_secs(10);

#[derive(Default)]
pub(super) struct Occupancy {
    nodes: BTreeMap<usize, OfNode>,
}

#[derive(Default)]
struct OfNode {
    /// At least what is taken, and since when that is known.
    load: Option<(Time, Load)>,
    /// By UID, what pods were promised that are not known to have it yet.
    promised: BTreeMap<String, Amounts>,
}

impl OfNode {
    /// What all but one pod take.
    fn others(&mut self, pod: &Pod, neighbours: &[Arc<Object<Pod>>]) -> Load {
        self.promised.retain(|uid, _| neighbours.iter().any(|other| other.metadata.uid == *uid));
        let mut load = Load::default();
        for other in neighbours.iter().filter(|other| other.metadata.uid != pod.metadata.uid && !other.is_finished()) {
            match self.promised.get(&other.metadata.uid) {
                Some(promised) => load.add(other, promised),
                None if other.status.start_time.is_some() => load.add(other, &Amounts::promised_to(other)),
                None => {}
            }
        }
        load
    }
}

impl Occupancy {
    /// Whether a node takes a pod that has not started; `neighbours` are the pods of the node.
    pub(super) fn admit(
        &mut self,
        index: usize,
        pod: &Pod,
        node: &Node,
        neighbours: impl FnOnce() -> Vec<Arc<Object<Pod>>>,
        now: Time,
    ) -> Result<(), Refusal> {
        let of_node = self.nodes.entry(index).or_default();
        if of_node.promised.contains_key(&pod.metadata.uid) {
            return Ok(());
        }
        let asked = Amounts::asked_by(pod);
        let known = of_node.load.take().filter(|(since, _)| now.since(*since) < KEPT);
        let known = known.filter(|(_, load)| admission::admit(pod, &asked, node, load).is_ok());
        let (since, mut load) = match known {
            Some(known) => known,
            None => {
                let load = of_node.others(pod, &neighbours());
                admission::admit(pod, &asked, node, &load)?;
                (now, load)
            }
        };
        load.add(pod, &asked);
        of_node.load = Some((since, load));
        of_node.promised.insert(pod.metadata.uid.clone(), asked);
        Ok(())
    }

    /// Whether a pod that runs may have what it asks for now.
    pub(super) fn resize(&mut self, index: usize, pod: &Pod, node: &Node, neighbours: &[Arc<Object<Pod>>]) -> Resize {
        let of_node = self.nodes.entry(index).or_default();
        let asked = Amounts::asked_by(pod);
        let others = of_node.others(pod, neighbours);
        let decision = resize::decide(&asked, &others.amounts, &Amounts::read(&node.status.allocatable));
        if decision == Resize::Granted {
            of_node.load = None;
            of_node.promised.insert(pod.metadata.uid.clone(), asked);
        }
        decision
    }

    /// A pod is known to have what it was promised, or is gone.
    pub(super) fn settle(&mut self, index: usize, pod: &Pod) {
        if let Some(of_node) = self.nodes.get_mut(&index) {
            of_node.promised.remove(&pod.metadata.uid);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use object::json;

    const NOW: Time = Time::from_seconds(1_767_225_600);

    fn pod(uid: &str, cpu: &str, phase: &str) -> Arc<Object<Pod>> {
        let start = Some(NOW).filter(|_| !phase.is_empty());
        Arc::new(Object::of(&json!({
            "metadata": { "name": uid, "uid": uid },
            "spec": { "containers": [{ "name": "c", "resources": { "requests": { "cpu": cpu } } }] },
            "status": { "phase": phase, "startTime": start },
        })))
    }

    fn node() -> Object<Node> {
        Object::of(&json!({ "status": { "allocatable": { "cpu": "2", "pods": "9" } } }))
    }

    #[test]
    fn pods_that_start_at_the_same_time_do_not_get_the_same_place() {
        let mut occupancy = Occupancy::default();
        let there = vec![pod("old", "1", "Running"), pod("a", "1", ""), pod("b", "1", "")];
        let mut admit = |uid: &str| occupancy.admit(0, &pod(uid, "1", ""), &node(), || there.clone(), NOW).is_ok();
        assert_eq!(["a", "b", "a"].map(&mut admit), [true, false, true]);
    }

    #[test]
    fn the_place_of_a_pod_that_ended_is_found_again() {
        let mut occupancy = Occupancy::default();
        let mut there = Vec::new();
        for number in 0..9 {
            let new = pod(&format!("new-{number}"), "1", "");
            there.push(new.clone());
            assert!(occupancy.admit(0, &new, &node(), || there.clone(), NOW).is_ok(), "{number}");
            occupancy.settle(0, &new);
            *there.last_mut().unwrap() =
                pod(&new.metadata.uid, "1", if number % 2 == 0 { "Succeeded" } else { "Failed" });
        }
    }

    #[test]
    fn what_others_have_done_meanwhile_is_seen_after_a_while() {
        let mut occupancy = Occupancy::default();
        assert!(occupancy.admit(0, &pod("a", "1", ""), &node(), Vec::new, NOW).is_ok());
        let there = vec![pod("a", "1", "Running"), pod("elsewhere", "1", "Running")];
        assert!(occupancy.admit(0, &pod("b", "1", ""), &node(), || there, NOW + KEPT).is_err());
    }

    #[test]
    fn of_two_pods_that_grow_into_the_same_room_one_has_to_wait() {
        let grown = |uid: &str| {
            let had = json!({ "cpu": "500m" });
            Arc::new(Object::<Pod>::of(&json!({
                "metadata": { "name": uid, "uid": uid },
                "spec": { "containers": [{ "name": "c", "resources": { "requests": { "cpu": "1500m" } } }] },
                "status": {
                    "phase": "Running", "startTime": NOW, "observedGeneration": 1,
                    "containerStatuses": [{ "name": "c", "resources": { "requests": had }, "allocatedResources": had }],
                },
            })))
        };
        let mut occupancy = Occupancy::default();
        let there = [grown("a"), grown("b")];
        let mut resize = |at: usize| occupancy.resize(0, &there[at], &node(), &there) == Resize::Granted;
        assert_eq!([0, 1, 0].map(&mut resize), [true, false, true]);
    }
}
