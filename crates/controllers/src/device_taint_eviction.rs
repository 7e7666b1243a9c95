//! Device taint eviction: pods leave devices whose taints of effect `NoExecute` their claims do not tolerate, or no
//! longer.
//!
//! Taints stand in slices, or in rules where those are served; how far a rule has got, [`rules`] reports. Time is
//! counted from when a taint was added. Keys are pods and rules: those of rules have no namespace. Who gets a tainted
//! device in the first place is the scheduler's business.

mod rules;
#[cfg(test)]
mod tests;

use crate::Settings;
use crate::departure::{self, Pending, Words};
use kinds::{
    AllocatedDevice, DeviceTaintRule, Key, Kind, Object, Pod, ResourceClaim, ResourceSlice, Taint, Time, Toleration,
    pool_name,
};
use parking_lot::Mutex;
use runtime::{Caches, Change, Controller, Plan, Request};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

const EXECUTE: &str = "NoExecute";
const WORDS: Words = Words {
    event: "DeviceTaintManagerEviction",
    marking: "Marking for deletion",
    cancelling: "Cancelling deletion",
    reason: "DeletionByDeviceTaintManager",
    message: "Device Taint manager: deleting due to NoExecute taint",
};

/// Rules that taint devices; none where they are not served.
type Rules = Vec<Arc<Object<DeviceTaintRule>>>;

pub(crate) fn controller(settings: &Settings) -> Controller {
    let has_rules = settings.previews.contains(&*DeviceTaintRule::ID.api_version);
    let rules = move |caches: &Caches| if has_rules { caches.of::<DeviceTaintRule>().all() } else { Rules::new() };
    let memory = Mutex::new(Memory::default());
    let controller = Controller::new("device-taint-eviction-controller")
        .watches_changes::<Pod>(move |change, caches| {
            let keys = change.sides().filter(|pod| pod.resource_claim_names().next().is_some()).map(|pod| pod.key());
            with_rules(keys.collect(), &rules(caches))
        })
        .watches_changes::<ResourceClaim>(move |change, caches| {
            let keys = change.sides().flat_map(|claim| users(claim, caches));
            with_rules(keys.collect(), &rules(caches))
        })
        .watches_changes::<ResourceSlice>(move |change, caches| {
            with_rules(users_of_slice(change, caches), &rules(caches))
        })
        .plans(move |caches, request| {
            let (rules, memory) = (rules(caches), &mut *memory.lock());
            match request.key.namespace.is_empty() {
                true => rules::reconcile(caches, request, &rules, memory),
                false => reconcile(caches, request, &rules, memory),
            }
        });
    match has_rules {
        true => controller.watches_changes::<DeviceTaintRule>(selected),
        false => controller,
    }
}

/// What is known besides what objects say.
#[derive(Debug, Default)]
struct Memory {
    /// Pods that are to go; of those whose time has come, the rules that want it.
    pending: BTreeMap<Key, (Pending, BTreeSet<String>)>,
    /// How many pods have gone because of a rule, by its identity.
    evicted: BTreeMap<String, usize>,
}

/// Of pods, those that say so; of rules, those whose progress that may be.
fn with_rules(mut keys: BTreeSet<Key>, rules: &Rules) -> Vec<Key> {
    if !keys.is_empty() {
        keys.extend(rules.iter().filter(|rule| rule.spec.taint.effect == EXECUTE).map(|rule| rule.key()));
    }
    keys.into_iter().collect()
}

/// The pods that use a claim.
fn users(claim: &Object<ResourceClaim>, caches: &Caches) -> Vec<Key> {
    caches.of::<Pod>().by("resource-claim", &claim.key().to_string()).iter().map(|pod| pod.key()).collect()
}

/// The pods that use devices of a pool, if a slice of it has changed in what drives pods off.
fn users_of_slice(change: &Change<ResourceSlice>, caches: &Caches) -> BTreeSet<Key> {
    let says = |slice: &Option<Arc<Object<ResourceSlice>>>| {
        let spec = &slice.as_ref()?.spec;
        let taints = spec
            .devices
            .iter()
            .flat_map(|device| device.taints.iter().map(|taint| (device.name.clone(), taint.clone())));
        let taints: Vec<(String, Taint)> = taints.filter(|(_, taint)| taint.effect == EXECUTE).collect();
        Some((spec.pool.generation, taints))
    };
    let Some(slice) = change.sides().next().filter(|_| says(&change.old) != says(&change.new)) else {
        return BTreeSet::new();
    };
    let pool = pool_name(&slice.spec.driver, &slice.spec.pool.name);
    caches.of::<ResourceClaim>().by("pool", &pool).iter().flat_map(|claim| users(claim, caches)).collect()
}

/// A rule whose spec is another, and the pods that use what it selects or has selected.
fn selected(change: &Change<DeviceTaintRule>, caches: &Caches) -> Vec<Key> {
    let spec = |rule: &Option<Arc<Object<DeviceTaintRule>>>| rule.as_ref().map(|rule| rule.spec.clone());
    let mut keys: Vec<Key> = change.sides().take(1).map(|rule| rule.key()).collect();
    if spec(&change.old) != spec(&change.new) {
        let is_meant = |claim: &ResourceClaim| {
            let mut results = claim.results();
            results.any(|result| change.sides().any(|rule| rule.selects(&result.driver, &result.pool, &result.device)))
        };
        let claims = caches.of::<ResourceClaim>().all();
        keys.extend(claims.iter().filter(|claim| is_meant(claim)).flat_map(|claim| users(claim, caches)));
    }
    keys
}

/// What drives a pod off: a taint of a device it has, and what of it is tolerated.
#[derive(Clone, Debug, PartialEq)]
struct Push {
    taint: Taint,
    tolerations: Vec<Toleration>,
    /// The identity of the rule that it comes from.
    rule: Option<String>,
}

impl Push {
    /// Until when it lets a pod stay; none if forever. A taint that does not say since when it is there is as old as the
    /// knowledge of it.
    fn deadline(&self, noticed: Time) -> Option<Time> {
        let tolerated: Vec<Option<i64>> = self.matching().map(|toleration| toleration.toleration_seconds).collect();
        if tolerated.contains(&None) {
            return None;
        }
        let seconds = tolerated.into_iter().flatten().min().unwrap_or(0);
        let seconds = Duration::from_secs(u64::try_from(seconds).unwrap_or(0));
        Some(self.taint.time_added.unwrap_or(noticed) + seconds)
    }

    fn matching(&self) -> impl Iterator<Item = &Toleration> {
        self.tolerations.iter().filter(|toleration| toleration.tolerates(&self.taint))
    }
}

/// All that drives a pod off the devices that its claims have reserved for it.
fn pushes(pod: &Pod, caches: &Caches, rules: &Rules) -> Vec<Push> {
    let mut pushes = taints(pod, caches, rules);
    pushes.retain(|push| push.taint.effect == EXECUTE);
    pushes
}

/// The taints of the devices that a pod has, whatever their effect.
fn taints(pod: &Pod, caches: &Caches, rules: &Rules) -> Vec<Push> {
    if pod.spec.node_name.is_empty() {
        return Vec::new();
    }
    let names: BTreeSet<&str> = pod.resource_claim_names().collect();
    let claims = names.into_iter().filter_map(|name| caches.of::<ResourceClaim>().named(&pod.metadata.namespace, name));
    let mut pushes = Vec::new();
    for claim in claims.filter(|claim| claim.is_reserved_for(&pod.metadata.uid)) {
        for result in claim.results() {
            let push = |taint: Taint, rule| Push { taint, tolerations: result.tolerations.clone(), rule };
            pushes.extend(taints_of(result, caches).into_iter().map(|taint| push(taint, None)));
            let rules = rules.iter().filter(|rule| rule.selects(&result.driver, &result.pool, &result.device));
            pushes.extend(rules.map(|rule| push(rule.spec.taint.clone(), Some(rule.metadata.uid.clone()))));
        }
    }
    pushes
}

/// The taints of a device, as the newest generation of its pool has them.
fn taints_of(result: &AllocatedDevice, caches: &Caches) -> Vec<Taint> {
    let slices = caches.of::<ResourceSlice>().by("pool", &pool_name(&result.driver, &result.pool));
    let newest = slices.iter().map(|slice| slice.spec.pool.generation).max();
    let slices = slices.iter().filter(|slice| Some(slice.spec.pool.generation) == newest);
    let device = slices.flat_map(|slice| &slice.spec.devices).find(|device| device.name == result.device);
    device.map(|device| device.taints.clone()).unwrap_or_default()
}

fn reconcile(caches: &Caches, request: &Request, rules: &Rules, memory: &mut Memory) -> Plan {
    let pod = caches.of::<Pod>().get(&request.key);
    let before = memory.pending.remove(&request.key);
    // Whoever was to go has gone.
    if pod.as_ref().is_none_or(|pod| pod.metadata.is_being_deleted()) {
        for rule in before.iter().flat_map(|(_, rules)| rules) {
            *memory.evicted.entry(rule.clone()).or_default() += 1;
        }
    }
    let Some(pod) = pod else { return Plan::default() };
    let (plan, after) = plan(&pod, &pushes(&pod, caches, rules), before.map(|(pending, _)| pending), request.now);
    memory.pending.extend(after.map(|after| (request.key.clone(), after)));
    plan
}

/// What to do with a pod that is driven off by this, and what to remember.
fn plan(
    pod: &Object<Pod>,
    pushes: &[Push],
    before: Option<Pending>,
    now: Time,
) -> (Plan, Option<(Pending, BTreeSet<String>)>) {
    let before = Pending::of(before, pod);
    let noticed = Pending::noticed(before.as_ref(), now);
    let deadlines = || pushes.iter().filter_map(|push| Some((push.deadline(noticed)?, push)));
    let remaining = deadlines().map(|(deadline, _)| deadline.since(now)).min();
    let is_due = remaining.is_some_and(|remaining| remaining.is_zero());
    let rules = deadlines().filter(|_| is_due).filter_map(|(_, push)| push.rule.clone()).collect();
    let (plan, pending) = departure::plan(pod, remaining, before, &WORDS, now);
    (plan, pending.map(|pending| (pending, rules)))
}
