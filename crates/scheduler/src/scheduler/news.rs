//! What has happened and may help pods that wait, and what became of decisions.

use super::{Scheduler, is_claim_of};
use crate::actions::Outcome;
use crate::cluster::Slot;
use crate::verdict::Plugin;
use kinds::Pod;
use std::collections::BTreeMap;
use tokio::time::Instant;

impl Scheduler {
    /// Something that pods refused by these points of view may have waited for.
    pub(crate) fn helps(&mut self, plugins: &[Plugin], event: &str, now: Instant) {
        let stuck = self.queue.stuck().filter(|stuck| stuck.plugins.iter().any(|plugin| plugins.contains(plugin)));
        let helped: Vec<u32> = stuck.map(|stuck| stuck.shape.number).collect();
        helped.into_iter().for_each(|shape| self.queue.wake(shape, event, now));
    }

    /// Wakes those pods that may fit now.
    pub(super) fn wake(&mut self, now: Instant) {
        let (freed, moved) = (std::mem::take(&mut self.freed), std::mem::take(&mut self.moved));
        if freed.is_empty() && moved.is_empty() {
            return;
        }
        let freed: BTreeMap<Slot, &str> = freed.into_iter().filter(|(slot, _)| *slot < self.cluster.slots()).collect();
        const NEIGHBOURS: &str = "AssignedPodAdd";
        let mut helped = Vec::new();
        for stuck in self.queue.stuck() {
            let around = [Plugin::PodTopologySpread, Plugin::InterPodAffinity];
            let looked_around = stuck.plugins.iter().any(|plugin| around.contains(plugin));
            let helps = match self.rankings.get_mut(&stuck.shape.number) {
                // No pod that leaves or comes gives devices to others: their claims do.
                None if stuck.plugins == [Plugin::DynamicResources] => {
                    freed.values().find(|event| event.starts_with("Node")).copied()
                }
                None => Some(*freed.values().next().unwrap_or(&NEIGHBOURS)),
                Some(ranking) => {
                    let opened = freed.iter().find(|(slot, _)| ranking.would_open(&self.cluster, **slot));
                    let mut cares = moved.iter().filter(|_| looked_around);
                    let moved = || cares.any(|shape| ranking.cares_about(&self.cluster, shape)).then_some(NEIGHBOURS);
                    opened.map(|(_, event)| *event).or_else(moved)
                }
            };
            helped.extend(helps.map(|event| (stuck.shape.number, event)));
        }
        helped.into_iter().for_each(|(shape, event)| self.queue.wake(shape, event, now));
    }

    /// What became of a decision.
    pub fn carried_out(&mut self, outcome: &Outcome, now: Instant) {
        let pod = match outcome {
            Outcome::Bound(pod) | Outcome::NotBound(pod) => pod,
            Outcome::Told(pod) => return self.cleared(&pod.key(), now),
            Outcome::ToldGroup => return,
        };
        self.cluster.taken_volumes.retain(|_, claim| !is_claim_of(claim, pod));
        self.settle(pod, now);
        let key = pod.key();
        if matches!(outcome, Outcome::Bound(_)) || !self.assumed.remove(&key) {
            return;
        }
        // It did not get to its node after all.
        let node = self.cluster.home(&key).map(|spot| spot.name.clone());
        self.leave(&key);
        let pod = self.cluster.caches.of::<Pod>().get(&key);
        if let Some(pod) = pod.filter(|pod| pod.spec.node_name.is_empty()) {
            self.await_node(&pod);
            self.keep_place(&pod, node.as_deref());
            self.queue.retry(&key, now);
        }
    }
}
