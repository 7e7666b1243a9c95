//! What a rule says of itself: whether pods are still to go because of it.
//!
//! The condition is written when the rule is, and from then on no more often than every ten seconds. A rule without
//! effect says once what it would do.

use super::{EXECUTE, Memory, Push, Rules, taints};
use kinds::{
    Condition, DeviceTaintRule, Key, Object, Pod, ResourceClaim, ResourceSlice, Taint, Time, condition, pool_name,
};
use object::{Edit, Value, View, json};
use runtime::{Caches, Plan, Request};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

const CONDITION: &str = "EvictionInProgress";
/// Between two reports of progress.
const PERIOD: Duration = Duration::from_secs(10);

/// What a rule does, or would do.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Reach {
    /// Devices that are offered, and devices that somebody has.
    pub(super) published: usize,
    pub(super) allocated: usize,
    /// Pods that are to go, and the namespaces they are in.
    pub(super) pods: usize,
    pub(super) namespaces: usize,
    /// How many have gone already.
    pub(super) evicted: usize,
}

pub(super) fn reconcile(caches: &Caches, request: &Request, rules: &Rules, memory: &mut Memory) -> Plan {
    memory.evicted.retain(|uid, _| rules.iter().any(|rule| rule.metadata.uid == *uid));
    let Some(rule) = rules.iter().find(|rule| rule.metadata.name == request.key.name) else { return Plan::default() };
    let evicted = memory.evicted.get(&rule.metadata.uid).copied().unwrap_or(0);
    plan(rule, request.now, || Reach { evicted, ..reach(rule, caches) })
}

/// Reports, unless it is too early for that. How far the rule reaches is found out only if it matters.
pub(super) fn plan(rule: &Object<DeviceTaintRule>, now: Time, reach: impl FnOnce() -> Reach) -> Plan {
    let mut plan = Plan::default();
    let old = condition(&rule.status.conditions, CONDITION);
    let is_current = |old: &&Condition| old.observed_generation == rule.metadata.generation;
    if let Some(old) = old.filter(is_current) {
        let age = now.since(old.last_transition_time.unwrap_or_default());
        match rule.spec.taint.effect.as_str() {
            EXECUTE if age >= PERIOD => {}
            EXECUTE => {
                plan.requeue_after(PERIOD - age);
                return plan;
            }
            _ => return plan,
        }
    }
    let (status, reason, message) = said(&rule.spec.taint.effect, &reach());
    let is_said = |old: &Condition| old.status == status && old.reason == reason && old.message == message;
    if old.filter(is_current).is_some_and(is_said) {
        return plan;
    }
    let mut conditions: Vec<Value> = rule.json().at("status").items("conditions").to_vec();
    conditions.retain(|other| other.text("type") != CONDITION);
    conditions.push(json!({
        "type": CONDITION, "status": status, "reason": reason, "message": message,
        "observedGeneration": rule.metadata.generation, "lastTransitionTime": now,
    }));
    let mut status = rule.json().at("status").clone();
    if !status.is_object() {
        status = json!({});
    }
    status.set("conditions", conditions);
    plan.status(rule, status);
    plan
}

/// Status, reason and message of the condition.
fn said(effect: &str, reach: &Reach) -> (&'static str, &'static str, String) {
    let Reach { published, allocated, pods, namespaces, evicted } = *reach;
    let count = |number: usize, one: &str, many: &str| match number {
        1 => format!("1 {one}"),
        _ => format!("{number} {many}"),
    };
    let places = count(namespaces, "namespace", "different namespaces");
    let mut sentences = Vec::new();
    let (status, reason) = match effect {
        EXECUTE if pods > 0 => {
            let pods = count(pods, "pod needs", "pods need");
            sentences.push(format!("{pods} to be evicted in {places}."));
            ("True", "PodsPendingEviction")
        }
        EXECUTE if evicted > 0 => ("False", "Completed"),
        EXECUTE => ("False", "NotStarted"),
        "None" => {
            let published = count(published, "published device", "published devices");
            let allocated = count(allocated, "allocated device", "allocated devices");
            let pods = count(pods, "pod", "pods");
            sentences.push(format!(
                "{published} selected. {allocated} selected. {pods} would be evicted in {places} if the effect was \
                 NoExecute. This information will not be updated again. Recreate the DeviceTaintRule to trigger an \
                 update."
            ));
            ("False", "NoEffect")
        }
        _ => {
            sentences.push("Eviction only happens for the NoExecute effect.".to_owned());
            ("False", "OtherEffect")
        }
    };
    if evicted > 0 {
        sentences.push(format!("{} evicted since starting the controller.", count(evicted, "pod", "pods")));
    }
    (status, reason, sentences.join(" "))
}

/// How far a rule reaches, as if its effect were to drive pods off.
fn reach(rule: &Arc<Object<DeviceTaintRule>>, caches: &Caches) -> Reach {
    let claims = caches.of::<ResourceClaim>().all();
    let results = claims.iter().flat_map(|claim| claim.results());
    let slices = caches.of::<ResourceSlice>().all();
    let mut newest: BTreeMap<String, i64> = BTreeMap::new();
    let pool = |slice: &ResourceSlice| pool_name(&slice.spec.driver, &slice.spec.pool.name);
    for slice in &slices {
        let generation = newest.entry(pool(slice)).or_insert(i64::MIN);
        *generation = slice.spec.pool.generation.max(*generation);
    }
    let is_newest = |slice: &&Arc<Object<ResourceSlice>>| newest.get(&pool(slice)) == Some(&slice.spec.pool.generation);
    let is_published = |slice: &Arc<Object<ResourceSlice>>| {
        let (spec, pool) = (&slice.spec, &slice.spec.pool.name);
        spec.devices.iter().filter(|device| rule.selects(&spec.driver, pool, &device.name)).count()
    };
    let alone = vec![rule.clone()];
    let is_pushed = |pod: &Arc<Object<Pod>>| {
        let own = taints(pod, caches, &alone).into_iter().filter(|push| push.rule.is_some());
        let mut own = own.map(|push| Push { taint: Taint { effect: EXECUTE.to_owned(), ..push.taint }, ..push });
        !pod.metadata.is_being_deleted() && own.any(|push| push.deadline(Time::default()).is_some())
    };
    let users = claims.iter().flat_map(|claim| caches.of::<Pod>().by("resource-claim", &claim.key().to_string()));
    let pods: BTreeSet<Key> = users.filter(is_pushed).map(|pod| pod.key()).collect();
    Reach {
        published: slices.iter().filter(is_newest).map(is_published).sum(),
        allocated: results.filter(|result| rule.selects(&result.driver, &result.pool, &result.device)).count(),
        namespaces: pods.iter().map(|pod| &pod.namespace).collect::<BTreeSet<_>>().len(),
        pods: pods.len(),
        evicted: 0,
    }
}
