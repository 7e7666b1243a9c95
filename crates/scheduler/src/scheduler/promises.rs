//! Nodes that pods are to go to once those in their way are gone: the room there is kept for them.

use super::Scheduler;
use crate::needs::Shape;
use crate::preemption::Room;
use kinds::{Key, Object, Pod};
use std::sync::Arc;
use tokio::time::Instant;

impl Scheduler {
    /// Keeps the room that is being made; who was to have it has to look elsewhere.
    pub(super) fn nominate(&mut self, pod: &Arc<Object<Pod>>, shape: &Shape, room: &Room) {
        for other in &room.unseated {
            self.cluster.withdraw(&other.key(), &room.node);
        }
        self.cluster.nominate(pod.clone(), shape.clone(), &room.node);
        self.queue.nominate(&pod.key(), &room.node);
        self.clearing.insert(pod.key(), false);
    }

    /// Whether others are still being made to go for a pod, or for one of its gang. That it was to be tried is kept in
    /// mind.
    pub(super) fn is_clearing(&mut self, pod: &Object<Pod>) -> bool {
        let gang = self.gang_of(pod).and_then(|gang| self.groups.as_ref().map(|groups| groups.waiting(&gang)));
        let keys = gang.unwrap_or_else(|| vec![pod.key()]);
        let held = keys.iter().find(|key| self.clearing.contains_key(*key));
        held.is_some_and(|key| self.clearing.insert(key.clone(), true).is_some())
    }

    /// Whoever had to go for a pod is leaving.
    pub(super) fn cleared(&mut self, key: &Key, now: Instant) {
        if self.clearing.remove(key) == Some(true) {
            self.queue.call(key, "AssignedPodDelete", now);
        }
    }

    /// A pod that waits says where it is to go, or no longer does.
    pub(super) fn renominate(&mut self, pod: &Arc<Object<Pod>>) {
        let (key, node) = (pod.key(), &*pod.status.nominated_node_name);
        let Some(shape) = self.queue.get(&key).map(|(entry, _)| entry.shape.clone()) else { return };
        let before = self.queue.nomination(&key);
        if before.as_deref().unwrap_or_default() == node {
            return;
        }
        if let Some(before) = before {
            self.withdraw(&key, &before);
            self.queue.withdraw(&key);
        }
        if !node.is_empty() {
            self.queue.nominate(&key, node);
            self.cluster.nominate(pod.clone(), shape, node);
        }
    }

    /// Room that was kept for a pod is there for others again.
    pub(super) fn withdraw(&mut self, key: &Key, node: &str) {
        self.freed.extend(self.cluster.slot(node).map(|slot| (slot, "AssignedPodDelete")));
        self.cluster.withdraw(key, node);
    }
}
