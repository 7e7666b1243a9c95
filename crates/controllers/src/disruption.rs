//! PodDisruptionBudget: how many pods of a budget may be evicted now.
//!
//! It only reports; who evicts is held to the report by the API server, which counts down until this loop has looked
//! again. It also takes back the word that a pod is about to be ended, when nobody has ended it after a while.

use crate::pod_condition::{DISRUPTION_TARGET, Verdict, report};
use crate::workload::{condition, scaled};
use kinds::{Deployment, Key, Object, Pod, PodDisruptionBudget, ReplicaSet, ReplicationController, StatefulSet, Time};
use object::{ApiError, Edit, Value, View, json};
use runtime::{Caches, Change, Context, Controller, Note, Plan, Request};
use scale::Scales;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

mod scale;
#[cfg(test)]
mod tests;

/// A pod whose eviction was allowed is gone after this, or was not evicted after all.
const DELETION: Duration = Duration::from_secs(2 * 60);
/// A pod that is said to be ended is being deleted after this, or is not going to be.
const STALE: Duration = Duration::from_secs(2 * 60);
/// Keys that begin so are of pods that are said to be ended. No budget has such a name.
const POD: &str = "pod/";
const ALLOWED: &str = "DisruptionAllowed";

pub(crate) fn controller() -> Controller {
    Controller::new("disruption-controller")
        .reports_as("controllermanager")
        .primary::<PodDisruptionBudget>()
        .watches_changes::<Pod>(keys_of_pod)
        .reads::<Deployment>()
        .reads::<ReplicaSet>()
        .reads::<ReplicationController>()
        .reads::<StatefulSet>()
        .plans_with(reconcile)
}

/// The budgets that a pod counted for or does now, and the pod itself if it is said to be ended.
fn keys_of_pod(change: &Change<Pod>, caches: &Caches) -> Vec<Key> {
    let mut keys = Vec::new();
    if let Some(pod) = change.new.as_ref().filter(|pod| is_said_to_be_ended(pod)) {
        keys.push(Key::new(pod.metadata.namespace.as_str(), format!("{POD}{}", pod.metadata.name)));
    }
    if let (Some(old), Some(new)) = (&change.old, &change.new)
        && facts(old) == facts(new)
    {
        return keys;
    }
    for pod in change.sides() {
        let budgets = caches.of::<PodDisruptionBudget>().in_namespace(&pod.metadata.namespace);
        let mine = budgets.iter().filter(|budget| budget.spec.selector.matches(&pod.metadata.labels));
        keys.extend(mine.map(|budget| budget.key()));
    }
    keys
}

/// Everything of a pod that counts for a budget.
fn facts(pod: &Pod) -> impl PartialEq {
    let meta = &pod.metadata;
    (&meta.uid, &meta.labels, meta.controller(), meta.is_being_deleted(), pod.is_ready())
}

async fn reconcile(context: Context, request: Request) -> Result<Plan, ApiError> {
    if let Some(name) = request.key.name.strip_prefix(POD) {
        let pod = context.caches.of::<Pod>().named(&request.key.namespace, name);
        return Ok(pod.map(|pod| take_back(&pod, request.now)).unwrap_or_default());
    }
    let Some((budget, pods)) = observe(&context.caches, &request) else { return Ok(Plan::default()) };
    let scales = scale::of_pods(&context, &budget, &pods).await?;
    Ok(plan(&Observed { budget, pods, scales }, request.now))
}

struct Observed {
    budget: Arc<Object<PodDisruptionBudget>>,
    pods: Vec<Arc<Object<Pod>>>,
    scales: Scales,
}

type Selected = (Arc<Object<PodDisruptionBudget>>, Vec<Arc<Object<Pod>>>);

fn observe(caches: &Caches, request: &Request) -> Option<Selected> {
    let budget = caches.of::<PodDisruptionBudget>().get(&request.key)?;
    let mut pods = caches.of::<Pod>().in_namespace(&request.key.namespace);
    pods.retain(|pod| budget.spec.selector.matches(&pod.metadata.labels));
    Some((budget, pods))
}

fn plan(observed: &Observed, now: Time) -> Plan {
    let Observed { budget, pods, scales } = observed;
    let mut plan = Plan::default();
    match scales.expected(&budget.spec, pods) {
        Ok(expected) => {
            let (disrupted, recheck) = disrupted(&mut plan, budget, pods, now);
            plan.status(budget, status(budget, pods, &expected, &disrupted, now));
            if let Some(recheck) = recheck {
                plan.requeue_after(recheck);
            }
            if !plan.writes.is_empty() {
                remark(&mut plan, budget, pods, expected.has_unmanaged);
            }
        }
        Err(error) => {
            let mut status = budget.json().object_or_new("status").clone();
            status.set("disruptionsAllowed", 0);
            let generation = budget.status.observed_generation;
            status.set("conditions", conditions(budget, ("False", "SyncFailed", &error), generation, now));
            plan.status(budget, status);
            if !plan.writes.is_empty() {
                let message = format!("Failed to calculate the number of expected pods: {error}");
                plan.event(Note::warning(budget, "CalculateExpectedPodCountFailed", message));
            }
        }
    }
    plan
}

fn remark(plan: &mut Plan, budget: &Object<PodDisruptionBudget>, pods: &[Arc<Object<Pod>>], has_unmanaged: bool) {
    if pods.is_empty() {
        plan.event(Note::normal(budget, "NoPods", "No matching pods found"));
    }
    if has_unmanaged {
        let message = format!(
            "Pods selected by this PodDisruptionBudget (selector: {}) were found to be unmanaged. As a result, the status \
             of the PDB cannot be calculated correctly, which may result in undefined behavior. To account for these pods \
             please set \".spec.minAvailable\" field of the PDB to an integer value.",
            budget.spec.selector
        );
        plan.event(Note::warning(budget, "UnmanagedPods", message));
    }
}

/// How many pods there should be, and how many of them healthy.
#[derive(Debug, PartialEq)]
struct Expected {
    pods: i32,
    healthy: i32,
    has_unmanaged: bool,
}

/// Pods whose eviction was allowed and which may still be about to go, and when to look at them again.
fn disrupted<'a>(
    plan: &mut Plan,
    budget: &'a PodDisruptionBudget,
    pods: &[Arc<Object<Pod>>],
    now: Time,
) -> (BTreeMap<&'a String, Time>, Option<Duration>) {
    let mut disrupted = BTreeMap::new();
    for pod in pods.iter().filter(|pod| !pod.metadata.is_being_deleted()) {
        let Some((name, since)) = budget.status.disrupted_pods.get_key_value(&pod.metadata.name) else { continue };
        if *since + DELETION < now {
            let budget = &budget.metadata;
            let message =
                format!("Pod was expected by PDB {}/{} to be deleted but it wasn't", budget.namespace, budget.name);
            plan.event(Note::warning(pod, "NotDeleted", message));
        } else {
            disrupted.insert(name, *since);
        }
    }
    // A moment later: then the time has passed, and not just come.
    let recheck = disrupted.values().min().map(|since| (*since + DELETION).since(now) + Duration::from_secs(1));
    (disrupted, recheck)
}

fn status(
    budget: &Object<PodDisruptionBudget>,
    pods: &[Arc<Object<Pod>>],
    expected: &Expected,
    disrupted: &BTreeMap<&String, Time>,
    now: Time,
) -> Value {
    let is_healthy = |pod: &&Arc<Object<Pod>>| {
        pod.is_ready() && !pod.metadata.is_being_deleted() && !disrupted.contains_key(&pod.metadata.name)
    };
    let healthy = i32::try_from(pods.iter().filter(is_healthy).count()).unwrap_or(i32::MAX);
    // Without pods nothing is allowed: the first ones that come are not to be evicted before they are counted.
    let allowed = if expected.pods <= 0 { 0 } else { (healthy - expected.healthy).max(0) };
    let verdict = if allowed > 0 { ("True", "SufficientPods", "") } else { ("False", "InsufficientPods", "") };
    let generation = budget.metadata.generation;
    json!({
        "currentHealthy": healthy,
        "desiredHealthy": expected.healthy,
        "expectedPods": expected.pods,
        "disruptionsAllowed": allowed,
        "disruptedPods": Some(disrupted).filter(|disrupted| !disrupted.is_empty()),
        "observedGeneration": Some(generation).filter(|generation| *generation > 0),
        "conditions": conditions(budget, verdict, generation, now),
    })
}

/// The conditions, with the one of this loop in its place; whoever else has some keeps them.
fn conditions(
    budget: &Object<PodDisruptionBudget>,
    (status, reason, message): (&str, &str, &str),
    generation: i64,
    now: Time,
) -> Vec<Value> {
    let mut own = condition(&budget.status.conditions, ALLOWED, status, reason, message, now);
    if generation > 0 {
        own.set("observedGeneration", generation);
    }
    let mut conditions = budget.json().at("status").items("conditions").to_vec();
    match conditions.iter_mut().find(|other| other.text("type") == ALLOWED) {
        Some(old) => *old = own,
        None => conditions.push(own),
    }
    conditions
}

fn is_said_to_be_ended(pod: &Pod) -> bool {
    // What its node says may take any time to come true.
    let is_said = |target: &kinds::Condition| target.status == "True" && target.reason != "TerminationByKubelet";
    pod.is_active() && pod.condition(DISRUPTION_TARGET).is_some_and(is_said)
}

/// Takes back the word that a pod is about to be ended, once it has been said for too long.
fn take_back(pod: &Object<Pod>, now: Time) -> Plan {
    let mut plan = Plan::default();
    if !is_said_to_be_ended(pod) {
        return plan;
    }
    let since = pod.condition(DISRUPTION_TARGET).and_then(|target| target.last_transition_time).unwrap_or_default();
    if since + STALE > now {
        plan.requeue_after((since + STALE).since(now));
    } else {
        let verdict = Verdict { kind: DISRUPTION_TARGET, status: "False", reason: "", message: "" };
        report(&mut plan, pod, Some(&verdict), None, now);
    }
    plan
}
