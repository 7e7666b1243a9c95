//! What the scheduler is told about devices and claims, and what that means for pods that wait.

use super::Scheduler;
use crate::devices::{self, Devices};
use crate::driver::event_of;
use crate::needs::Shape;
use crate::verdict::Plugin;
use kinds::{DeviceTaintRule, Key, Object, Pod, ResourceClaim, ResourceSlice};
use runtime::Change;
use tokio::time::Instant;

impl Scheduler {
    pub fn slice_changed(&mut self, change: &Change<ResourceSlice>, now: Instant) {
        let Some(one) = change.sides().next() else { return };
        self.cluster.devices.slice(&one.metadata.name, change.new.clone());
        self.helps(&[Plugin::DynamicResources], &event_of(change), now);
    }

    /// Another rule taints devices, or does no longer.
    pub fn taint_rule_changed(&mut self, change: &Change<DeviceTaintRule>, now: Instant) {
        let Some(one) = change.sides().next() else { return };
        self.cluster.devices.rule(&one.metadata.name, change.new.clone());
        self.helps(&[Plugin::DynamicResources], &event_of(change), now);
    }

    /// A claim is other than it was. What it is now, the cache knows best.
    pub fn claim_changed(&mut self, change: &Change<ResourceClaim>, now: Instant) {
        let Some(one) = change.sides().next() else { return };
        let key = one.key();
        if self.cluster.devices.claim(&key, &self.cluster.caches) {
            self.helps(&[Plugin::DynamicResources], "ResourceClaimUpdate", now);
        }
        let event = event_of(change);
        // Whoever has waited for this very claim, or for it to be gone.
        let pods = self.cluster.caches.of::<Pod>();
        let owner = runtime::controller_key::<Pod>(&one.metadata).and_then(|key| pods.get(&key));
        for pod in pods.by("resource-claim", &key.to_string()).into_iter().chain(owner) {
            if self.gated.contains(&pod.key()) {
                self.await_node(&pod);
            } else if let Some(shape) = self.queue.get(&pod.key()).map(|(entry, _)| entry.shape.number) {
                self.queue.wake(shape, &event, now);
            }
        }
    }

    /// What a pod waits for before it is worth a try: claims that are yet to be made for it.
    pub(super) fn lacks_claims(&self, pod: &Pod) -> Option<String> {
        if pod.spec.resource_claims.is_empty() || !self.regards_devices(pod) {
            return None;
        }
        devices::claims_of(pod, &self.cluster.caches).err()
    }

    fn regards_devices(&self, pod: &Pod) -> bool {
        self.profile(pod).is_none_or(|profile| profile.filters_by(Plugin::DynamicResources))
    }

    /// What is known of the devices that a pod wants; or why they can be nowhere.
    pub(super) fn devices(&self, pod: &Pod, shape: &Shape) -> Result<Devices, String> {
        match self.regards_devices(pod) {
            true => Devices::of(pod, shape, &self.cluster),
            false => Ok(Devices::default()),
        }
    }

    /// What was decided about the claims of a pod is written, or never will be. By now the cache has seen it.
    pub(super) fn settle(&mut self, pod: &Object<Pod>, now: Instant) {
        let named = pod.resource_claim_names().map(|name| Key::new(pod.metadata.namespace.as_str(), name));
        let mut keys: Vec<Key> = named.collect();
        if !keys.is_empty() || self.cluster.devices.has_promised(&pod.metadata.uid) {
            let made = self.cluster.caches.of::<ResourceClaim>().owned_by(&pod.metadata.uid);
            keys.extend(made.iter().map(|claim| claim.key()));
        }
        let mut is_freed = false;
        for key in &keys {
            is_freed |= self.cluster.devices.claim(key, &self.cluster.caches);
        }
        if self.cluster.devices.settle(&pod.metadata.uid) || is_freed {
            self.helps(&[Plugin::DynamicResources], "ResourceClaimUpdate", now);
        }
    }
}
