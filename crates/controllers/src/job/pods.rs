//! How many pods run: which are created and which are too many.

use super::backoff;
use super::policy;
use super::tally::{
    INDEX, INDEX_FAILURES, INDEX_IGNORED_FAILURES, Tally, earlier_failures, index, is_indexed, is_tracked,
    waits_for_the_end,
};
use crate::replica_set::ranking::first_to_go;
use crate::workload::{announce_creation, create_pod, delete_pod, pod_from_template};
use kinds::{JOB_TRACKING, Object, Pod, Time};
use object::{Edit, Value, View, json};
use runtime::Plan;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// So many pods at most are created or deleted in one go.
const BURST: usize = 500;
/// Prefixes of names are cut so that they, and what the server adds, make a label.
const MAX_PREFIX: usize = 58;

/// Creates pods that are missing, or deletes those that are too many. `wait` is how long not to create any yet.
pub(super) fn manage(plan: &mut Plan, tally: &Tally, wait: Option<Duration>, now: Time) {
    let (job, active) = (tally.job, tally.active.len());
    let parallelism = count(job.spec.parallelism.unwrap_or(1));
    let wanted = match job.spec.completions {
        _ if job.spec.suspend => 0,
        None if tally.succeeded > 0 => active,
        None => parallelism,
        Some(completions) => count(completions - tally.succeeded).min(parallelism),
    };
    let excess = too_many(tally, active.saturating_sub(wanted), now);
    if !excess.is_empty() {
        dismiss(plan, tally, &excess[..excess.len().min(BURST)]);
        return;
    }
    let leaving = if waits_for_the_end(job) { tally.terminating.len() } else { 0 };
    let missing = wanted.saturating_sub(leaving + active).min(BURST);
    if missing == 0 {
        return;
    }
    if is_indexed(job) {
        create_indexed(plan, tally, missing, wait, now);
        return;
    }
    match wait {
        Some(delay) => {
            plan.requeue_after(delay);
        }
        None => (0..missing).for_each(|_| create_pod(plan, job, pod(tally))),
    }
}

fn count(number: i32) -> usize {
    usize::try_from(number).unwrap_or(0)
}

/// The pods to delete: those with an index that there is not or that another one has, and then as many as it takes.
fn too_many(tally: &Tally, at_least: usize, now: Time) -> Vec<Arc<Object<Pod>>> {
    let mut excess = Vec::new();
    let mut left = tally.active.clone();
    if is_indexed(tally.job) {
        let mut by_index: BTreeMap<Option<i32>, Vec<_>> = BTreeMap::new();
        for pod in left.drain(..) {
            let valid = index(&pod).filter(|index| *index < tally.completions());
            by_index.entry(valid).or_default().push(pod);
        }
        excess.extend(by_index.remove(&None).unwrap_or_default());
        for pods in by_index.into_values() {
            let others = first_to_go(&pods, &[], pods.len() - 1, now);
            let gone: Vec<_> = others.iter().map(|pod| pod.metadata.uid.as_str()).collect();
            left.extend(pods.iter().filter(|pod| !gone.contains(&pod.metadata.uid.as_str())).cloned());
            excess.extend(others.into_iter().cloned());
        }
    }
    let more = at_least.saturating_sub(excess.len());
    excess.extend(first_to_go(&left, &[], more, now).into_iter().cloned());
    excess
}

/// Deletes pods that are not wanted any more. They are not counted, so their finalizers go first.
fn dismiss(plan: &mut Plan, tally: &Tally, pods: &[Arc<Object<Pod>>]) {
    pods.iter().filter(|pod| is_tracked(pod)).for_each(|pod| release(plan, pod));
    pods.iter().for_each(|pod| delete_pod(plan, tally.job, pod));
}

/// Removes the finalizer that keeps a pod until it is counted.
pub(super) fn release(plan: &mut Plan, pod: &Object<Pod>) {
    let others: Vec<_> = pod.metadata.finalizers.iter().filter(|name| *name != JOB_TRACKING).collect();
    // The version makes sure that no other finalizer is dropped.
    let version = &pod.metadata.resource_version;
    plan.patch(pod, json!({ "metadata": { "resourceVersion": version, "finalizers": others } }));
}

fn pod(tally: &Tally) -> Value {
    let mut pod = pod_from_template(tally.job, &tally.job.spec.template);
    let metadata = pod.object_or_new("metadata");
    let mut finalizers = metadata.items("finalizers").to_vec();
    if !finalizers.iter().any(|name| name == JOB_TRACKING) {
        finalizers.push(json!(JOB_TRACKING));
    }
    metadata.set("finalizers", finalizers);
    pod
}

fn create_indexed(plan: &mut Plan, tally: &Tally, missing: usize, wait: Option<Duration>, now: Time) {
    let waiting = tally.terminating.iter().filter(|_| waits_for_the_end(tally.job)).filter_map(|pod| index(pod));
    let taken = tally.active.iter().filter_map(|pod| index(pod)).chain(waiting);
    let mut settled = tally.succeeded_indexes.with(taken);
    if let Some(failed) = &tally.failed_indexes {
        settled = settled.and(failed);
    }
    let indexes = settled.missing(tally.completions(), missing);
    // Where indexes fail each by themselves, they wait each by themselves too.
    let wait_for = |index: i32| match &tally.failed_indexes {
        None => wait,
        Some(_) => tally
            .replaceable
            .get(&index)
            .and_then(|pod| backoff::remaining(count(earlier_failures(pod, true)) + 1, backoff::finished_at(pod), now)),
    };
    for index in indexes {
        match wait_for(index) {
            Some(delay) => {
                plan.requeue_after(delay);
            }
            None => announce_creation(plan.create::<Pod>(indexed_pod(tally, index)), tally.job),
        }
    }
}

fn indexed_pod(tally: &Tally, index: i32) -> Value {
    let mut pod = pod(tally);
    let name = &tally.job.metadata.name;
    let metadata = pod.object_or_new("metadata");
    metadata.set("generateName", prefix(name, index));
    for field in ["annotations", "labels"] {
        metadata.object_or_new(field).set(INDEX, index.to_string());
    }
    if tally.failed_indexes.is_some() {
        note_failures(metadata.object_or_new("annotations"), tally, index);
    }
    let spec = pod.object_or_new("spec");
    spec.set("hostname", format!("{name}-{index}"));
    let variable = json!({
        "name": "JOB_COMPLETION_INDEX",
        "valueFrom": { "fieldRef": { "fieldPath": format!("metadata.labels['{INDEX}']") } },
    });
    for container in ["initContainers", "containers"] {
        for container in spec.each(container) {
            let mut variables = container.items("env").to_vec();
            if !variables.iter().any(|other| other.text("name") == "JOB_COMPLETION_INDEX") {
                variables.push(variable.clone());
                container.set("env", variables);
            }
        }
    }
    pod
}

/// A pod knows how often its index has failed before.
fn note_failures(annotations: &mut Value, tally: &Tally, index: i32) {
    let (mut counted, mut ignored) = (0, 0);
    if let Some(before) = tally.replaceable.get(&index) {
        counted = earlier_failures(before, false);
        ignored = earlier_failures(before, true) - counted;
        match policy::failure(tally.job.spec.pod_failure_policy.as_ref(), before).is_counted() {
            true => counted += 1,
            false => ignored += 1,
        }
    }
    annotations.set(INDEX_FAILURES, counted.to_string());
    if ignored > 0 {
        annotations.set(INDEX_IGNORED_FAILURES, ignored.to_string());
    }
}

fn prefix(name: &str, index: i32) -> String {
    let end = format!("-{index}-");
    let length = name.len().min(MAX_PREFIX - end.len());
    format!("{}{end}", name.get(..length).unwrap_or(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_indexed_pods_keep_their_index() {
        assert_eq!(prefix("work", 7), "work-7-");
        let long = prefix(&"x".repeat(70), 123);
        assert!(long.len() == MAX_PREFIX && long.ends_with("x-123-"), "{long}");
    }
}
