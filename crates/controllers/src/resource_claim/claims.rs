//! A claim and those it is reserved for: who is done no longer counts, and what nobody uses is free again.

use super::{is_done, is_pod};
use kinds::{Consumer, Key, Object, Pod, ResourceClaim};
use object::{Edit, Value, View, json};
use runtime::{Caches, Plan};
use std::sync::Arc;

/// Keeps a claim while devices are allocated to it.
const FINALIZER: &str = "resource.kubernetes.io/delete-protection";

pub(super) struct Observed {
    claim: Arc<Object<ResourceClaim>>,
    /// For each that the claim is reserved for, whether it still needs it; none: that is not known.
    needed: Vec<Option<bool>>,
    /// The pod that it was made for, as it is now: another one may have its name.
    owner: Option<Arc<Object<Pod>>>,
}

pub(super) fn observe(caches: &Caches, key: &Key) -> Option<Observed> {
    let claim = caches.of::<ResourceClaim>().get(key)?;
    let pods = caches.of::<Pod>();
    let needed = claim.status.reserved_for.iter().map(|consumer| {
        if !is_pod(consumer) {
            return Some(true);
        }
        let pod = pods.named(&key.namespace, &consumer.name)?;
        Some(pod.metadata.uid == consumer.uid && !is_done(&pod))
    });
    let owner = runtime::controller_key::<Pod>(&claim.metadata).and_then(|key| pods.get(&key));
    Some(Observed { needed: needed.collect(), owner, claim })
}

impl Observed {
    /// Those of whom the cache knows nothing.
    pub(super) fn unknown_consumers(&self) -> Vec<Consumer> {
        let consumers = self.claim.status.reserved_for.iter().zip(&self.needed);
        consumers.filter(|(_, needed)| needed.is_none()).map(|(consumer, _)| consumer.clone()).collect()
    }

    pub(super) fn know(&mut self, consumer: &Consumer, needed: bool) {
        for (other, known) in self.claim.status.reserved_for.iter().zip(&mut self.needed) {
            if other == consumer {
                *known = Some(needed);
            }
        }
    }
}

pub(super) fn plan(observed: &Observed) -> Plan {
    let Observed { claim, needed, owner } = observed;
    let mut plan = Plan::default();
    let meta = &claim.metadata;
    let is_unused = needed.iter().all(|needed| *needed == Some(false));
    let has_left = needed.contains(&Some(false));
    let is_held = meta.has_finalizer(FINALIZER);
    // Only the end of its use frees a claim. One that nobody uses yet may just be on its way to its first user.
    let frees = is_unused && is_held && (has_left || meta.is_being_deleted());
    if has_left || frees {
        let mut object = claim.json();
        let status = object.object_or_new("status");
        let reserved = status.items("reservedFor").iter().zip(needed);
        let kept: Vec<Value> =
            reserved.filter(|(_, needed)| **needed != Some(false)).map(|(it, _)| it.clone()).collect();
        status.remove("reservedFor");
        if !kept.is_empty() {
            status.set("reservedFor", kept);
        }
        if frees {
            status.remove("allocation");
        }
        let status = object.remove("status");
        plan.status(claim, status);
    }
    if frees {
        let kept: Vec<&String> = meta.finalizers.iter().filter(|name| *name != FINALIZER).collect();
        plan.patch(claim, json!({ "metadata": { "finalizers": kept } }));
    }
    let made_for = meta.controller().map(|owner| owner.uid.as_str());
    let is_abandoned = owner.as_ref().is_some_and(|pod| Some(pod.metadata.uid.as_str()) != made_for || is_done(pod));
    if is_unused && is_abandoned && !meta.is_being_deleted() {
        plan.delete(claim);
    }
    plan
}
