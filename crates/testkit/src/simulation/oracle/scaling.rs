//! Budgets, autoscalers and quotas: what they report and decide follows from the pods.

use super::{Gaps, Observed, count};
use kinds::{
    Deployment, Dict, HorizontalPodAutoscaler, Job, Kind, LabelSelector, Object, PersistentVolumeClaim, Pod,
    PodDisruptionBudget, ReplicaSet, ReplicationController, ResourceQuota, Service, StatefulSet,
};
use object::{Quantity, Value, View};
use std::collections::BTreeMap;

/// A tenth more or less is close enough.
const TOLERANCE: f64 = 0.1;

fn selected<'a>(all: &'a Observed, namespace: &str, selector: &LabelSelector) -> Vec<&'a Object<Pod>> {
    let in_namespace = all.of::<Pod>().iter().filter(|pod| pod.metadata.namespace == namespace);
    in_namespace.filter(|pod| selector.matches(&pod.metadata.labels)).collect()
}

/// A number, or that many hundredths of a whole, rounded up.
fn part(value: &Value, whole: i32) -> i32 {
    match value.as_str().and_then(|text| text.strip_suffix('%')) {
        Some(percent) => (percent.parse::<i32>().unwrap_or(0) * whole + 99) / 100,
        None => value.as_i64().and_then(|number| i32::try_from(number).ok()).unwrap_or(0),
    }
}

pub(super) fn budget(all: &Observed, budget: &Object<PodDisruptionBudget>, gaps: &mut Gaps) {
    let (meta, spec, status) = (&budget.metadata, &budget.spec, &budget.status);
    let pods = selected(all, &meta.namespace, &spec.selector);
    let healthy = count(pods.iter().filter(|pod| pod.is_ready()));
    let (expected, desired) = match (&spec.min_available, &spec.max_unavailable) {
        (Value::Number(_), _) => (count(pods.iter()), part(&spec.min_available, 0)),
        (Value::Null, max) => (wanted(all, &pods), (wanted(all, &pods) - part(max, wanted(all, &pods))).max(0)),
        (min, _) => (wanted(all, &pods), part(min, wanted(all, &pods))),
    };
    let allowed = if expected > 0 { (healthy - desired).max(0) } else { 0 };
    let is = (status.expected_pods, status.current_healthy, status.desired_healthy, status.disruptions_allowed);
    gaps.same("expected, healthy, desired and allowed", (expected, healthy, desired, allowed), is);
    gaps.same("what it has seen", meta.generation, status.observed_generation);
    gaps.expect("still waits for pods that were evicted", status.disrupted_pods.is_empty());
}

/// How many replicas the owners of some pods want in all.
fn wanted(all: &Observed, pods: &[&Object<Pod>]) -> i32 {
    let owners = pods.iter().filter_map(|pod| pod.metadata.controller());
    let wanted: BTreeMap<&str, i32> = owners.filter_map(|owner| wanted_by(all, &owner.uid)).collect();
    wanted.into_values().sum()
}

/// Who says how many pods there should be of one of its owners, and how many.
fn wanted_by<'a>(all: &'a Observed, owner: &'a str) -> Option<(&'a str, i32)> {
    fn named<'a, K: Kind>(all: &'a Observed, uid: &str) -> Option<&'a Object<K>> {
        all.of::<K>().iter().find(|one| one.meta().uid == uid)
    }
    let Some(set) = named::<ReplicaSet>(all, owner) else {
        let one = named::<StatefulSet>(all, owner).map(|set| set.spec.replicas);
        let one = one.or_else(|| Some(named::<ReplicationController>(all, owner)?.spec.replicas));
        return one.map(|replicas| (owner, replicas));
    };
    let above = set.metadata.controller().map_or("", |above| above.uid.as_str());
    match named::<Deployment>(all, above) {
        Some(deployment) => Some((above, deployment.spec.replicas)),
        None => Some((owner, set.spec.replicas)),
    }
}

/// The number of replicas is one that the formula would not change, and everything is reported.
pub(super) fn autoscaler(all: &Observed, autoscaler: &Object<HorizontalPodAutoscaler>, gaps: &mut Gaps) {
    let (meta, spec, status) = (&autoscaler.metadata, &autoscaler.spec, &autoscaler.status);
    let target = &spec.scale_target_ref;
    let found = match target.kind.as_str() {
        "Deployment" => all
            .named::<Deployment>(&meta.namespace, &target.name)
            .map(|found| (found.spec.replicas, &found.spec.selector)),
        _ => all
            .named::<StatefulSet>(&meta.namespace, &target.name)
            .map(|found| (found.spec.replicas, &found.spec.selector)),
    };
    // Without a target there is nothing to do, and one without replicas is left alone.
    let Some((replicas, selector)) = found.filter(|(replicas, _)| *replicas > 0) else { return };
    let pods = selected(all, &meta.namespace, selector);
    let percent =
        spec.metrics.first().and_then(|metric| metric.path(&["resource", "target"]).int("averageUtilization"));
    let utilization = utilization(&pods);
    let proposed = propose(count(pods.iter()), utilization, percent.unwrap_or(100));
    let (min, max) = (spec.min_replicas.unwrap_or(1), spec.max_replicas);
    gaps.same("the replicas", proposed.clamp(min, max), replicas);
    gaps.same("what it reports", (replicas, replicas), (status.current_replicas, status.desired_replicas));
    let reason = |kind: &str| kinds::condition(&status.conditions, kind).map(|condition| condition.reason.as_str());
    let limited = match proposed {
        _ if proposed < min => "TooFewReplicas",
        _ if proposed > max => "TooManyReplicas",
        _ => "DesiredWithinRange",
    };
    let wanted = (Some("ReadyForNewScale"), Some(limited));
    gaps.same("its state", wanted, (reason("AbleToScale"), reason("ScalingLimited")));
    let measured = autoscaler.json();
    let measured = measured.at("status").items("currentMetrics").first();
    let measured = measured.and_then(|metric| metric.path(&["resource", "current"]).int("averageUtilization"));
    gaps.same("what it has measured", Some(utilization), measured);
}

/// What pods use, in hundredths of what they ask for.
fn utilization(pods: &[&Object<Pod>]) -> i64 {
    let used: i64 = pods.iter().map(|pod| usage(pod).millis()).sum();
    let requested: i64 = pods.iter().map(|pod| requested(pod).millis()).sum();
    used * 100 / requested.max(1)
}

/// What the formula makes of that.
fn propose(present: i32, utilization: i64, percent: i64) -> i32 {
    let ratio = utilization as f64 / percent as f64;
    if (ratio - 1.0).abs() <= TOLERANCE { present } else { (ratio * f64::from(present)).ceil() as i32 }
}

fn usage(pod: &Pod) -> Quantity {
    pod.metadata.annotation("simulated.setpoint.dev/cpu").parse().unwrap_or_default()
}

fn requested(pod: &Pod) -> Quantity {
    let requests = pod.spec.containers.iter().filter_map(|container| container.resources.requests.get("cpu"));
    requests.fold(Quantity::default(), |sum, request| sum + *request)
}

/// Whether a quota grants nothing more of a resource.
pub(super) fn is_full(all: &Observed, namespace: &str, resource: &str) -> bool {
    let mut quotas = all.of::<ResourceQuota>().iter().filter(|quota| quota.metadata.namespace == namespace);
    quotas.any(|quota| quota.spec.hard.get(resource).is_some_and(|hard| quota.status.used.get(resource) >= Some(hard)))
}

/// A quota says what it grants, and how much of that there is.
pub(super) fn quota(all: &Observed, quota: &Object<ResourceQuota>, gaps: &mut Gaps) {
    fn number<K: Kind>(all: &Observed, namespace: &str) -> Quantity {
        let there = all.of::<K>().iter().filter(|one| one.meta().namespace == namespace);
        Quantity::from_units(i64::from(count(there)))
    }
    let namespace = &quota.metadata.namespace;
    let pods = || all.of::<Pod>().iter().filter(|pod| pod.metadata.namespace == *namespace && !pod.is_finished());
    let used = |name: &str| match name {
        "pods" => Quantity::from_units(i64::from(count(pods()))),
        "requests.cpu" => pods().fold(Quantity::default(), |sum, pod| sum + requested(pod)),
        "services" => number::<Service>(all, namespace),
        "persistentvolumeclaims" => number::<PersistentVolumeClaim>(all, namespace),
        "count/deployments.apps" => number::<Deployment>(all, namespace),
        "count/jobs.batch" => number::<Job>(all, namespace),
        other => panic!("nobody counts {other}"),
    };
    gaps.same("what it grants", &quota.spec.hard, &quota.status.hard);
    let wanted: Dict<Quantity> = quota.spec.hard.keys().map(|name| (name.clone(), used(name))).collect();
    gaps.same("what is used", &wanted, &quota.status.used);
}
