//! Revisions: which set has the current template, what it is called, and what it remembers.

use super::rollout::{Rollout, Set};
use super::size::{self, Limits};
use crate::workload::{fnv32, safe_encode};
use kinds::{Deployment, Kind, Labels, Object};
use object::{Edit, Value, View, json};

pub(super) const REVISION: &str = "deployment.kubernetes.io/revision";
pub(super) const REVISION_HISTORY: &str = "deployment.kubernetes.io/revision-history";
pub(super) const DESIRED_REPLICAS: &str = "deployment.kubernetes.io/desired-replicas";
pub(super) const MAX_REPLICAS: &str = "deployment.kubernetes.io/max-replicas";
const HASH: &str = "pod-template-hash";
/// Annotations of a deployment that its sets do not get: they are about the deployment, or the sets have their own.
const NOT_COPIED: [&str; 6] = [
    "kubectl.kubernetes.io/last-applied-configuration",
    "deprecated.deployment.rollback.to",
    REVISION,
    REVISION_HISTORY,
    DESIRED_REPLICAS,
    MAX_REPLICAS,
];
/// The history of a set is cut at its old end so that it stays this short.
const MAX_HISTORY_BYTES: usize = 2000;
const MAX_NAME: usize = 253;

/// What two templates have to agree on to be the same one: everything but the hash.
pub(super) fn comparable(template: &Value) -> Value {
    let mut template = template.clone();
    if let Some(metadata) = template.object("metadata") {
        metadata.remove("creationTimestamp");
        if let Some(labels) = metadata.object("labels") {
            labels.remove(HASH);
        }
    }
    template
}

fn hash(deployment: &Deployment) -> String {
    let mut text = deployment.spec.template.json.to_string();
    if let Some(collisions) = deployment.status.collision_count {
        text += &collisions.to_string();
    }
    safe_encode(fnv32(text.as_bytes()))
}

/// The name of the set for the current template.
pub(super) fn name(deployment: &Deployment) -> String {
    let (name, hash) = (&deployment.metadata.name, hash(deployment));
    let length = name.len().min(MAX_NAME - 1 - hash.len());
    format!("{}-{hash}", name.get(..length).unwrap_or(name))
}

/// Keeps what the new set says of itself: its number is the highest, and the annotations are those of the deployment.
pub(super) fn keep(rollout: &mut Rollout) {
    let revision = 1 + rollout.old.iter().map(Set::revision).max().unwrap_or(0);
    let deployment = rollout.deployment;
    if let Some(set) = &mut rollout.new {
        set.min_ready_seconds = deployment.spec.min_ready_seconds;
        annotate(&mut set.annotations, &deployment.metadata.annotations, revision);
    }
}

fn annotate(annotations: &mut Labels, from: &Labels, revision: i64) {
    let copied = from.iter().filter(|(key, _)| !NOT_COPIED.contains(&key.as_str()));
    annotations.extend(copied.map(|(key, value)| (key.clone(), value.clone())));
    let before = annotations.get(REVISION).cloned();
    let number = before.as_deref().map_or(Ok(0), str::parse::<i64>);
    if !number.is_ok_and(|number| number < revision) {
        return;
    }
    annotations.insert(REVISION.to_owned(), revision.to_string());
    // It had a number before: this is a return to an earlier template, and its numbers are remembered.
    if let Some(before) = before {
        let history = longer_history(annotations.get(REVISION_HISTORY).map_or("", String::as_str), &before);
        annotations.insert(REVISION_HISTORY.to_owned(), history);
    }
}

fn longer_history(history: &str, revision: &str) -> String {
    let mut history: Vec<_> = history.split(',').filter(|entry| !entry.is_empty()).collect();
    history.push(revision);
    let length = |entries: &[&str]| entries.iter().map(|entry| entry.len() + 1).sum::<usize>();
    while history.len() > 1 && length(&history) > MAX_HISTORY_BYTES {
        history.remove(0);
    }
    history.join(",")
}

/// Adds a set for the current template, as large as it may be now.
pub(super) fn create(rollout: &mut Rollout) {
    let deployment = rollout.deployment;
    let mut set = Set {
        observed: None,
        name: name(deployment),
        replicas: 0,
        annotations: Labels::new(),
        min_ready_seconds: deployment.spec.min_ready_seconds,
        status: kinds::ReplicaSetStatus::default(),
    };
    set.note_size(deployment.spec.replicas, Limits::of(deployment).most);
    rollout.new = Some(set);
    keep(rollout);
    size::grow_new(rollout);
}

/// A set for the current template as it is sent to the server.
pub(super) fn object(deployment: &Object<Deployment>, set: &Set) -> Value {
    let hash = hash(deployment);
    let mut template = deployment.spec.template.json.clone();
    template.object_or_new("metadata").object_or_new("labels").set(HASH, hash.as_str());
    let whole = deployment.json();
    let mut selector = whole.path(&["spec", "selector"]).clone();
    selector.object_or_new("matchLabels").set(HASH, hash);
    let mut object = json!({
        "metadata": {
            "name": set.name,
            "namespace": deployment.metadata.namespace,
            "labels": template.path(&["metadata", "labels"]),
            "annotations": set.annotations,
            "ownerReferences": [deployment.metadata.controller_reference(&Deployment::ID)],
        },
        "spec": { "replicas": set.replicas, "selector": selector, "template": template },
    });
    if set.min_ready_seconds > 0 {
        object.object_or_new("spec").set("minReadySeconds", set.min_ready_seconds);
    }
    object
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_history_forgets_its_oldest_numbers_when_it_gets_too_long() {
        assert_eq!(longer_history("", "1"), "1");
        assert_eq!(longer_history("1,3", "5"), "1,3,5");
        let long = (1000..1400).map(|number: i32| number.to_string()).collect::<Vec<_>>().join(",");
        let cut = longer_history(&long, "1400");
        assert!(cut.len() < MAX_HISTORY_BYTES && cut.ends_with(",1399,1400") && !cut.starts_with("1000"), "{cut}");
    }

    #[test]
    fn a_set_that_serves_again_gets_a_new_number_and_remembers_the_old() {
        let labels = |pairs: &[(&str, &str)]| -> Labels {
            pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
        };
        let from = labels(&[("a", "b"), (REVISION, "9"), (NOT_COPIED[0], "{}")]);
        for (before, revision, after) in [
            (labels(&[]), 1, labels(&[("a", "b"), (REVISION, "1")])),
            (labels(&[(REVISION, "1")]), 3, labels(&[("a", "b"), (REVISION, "3"), (REVISION_HISTORY, "1")])),
            (labels(&[(REVISION, "4")]), 3, labels(&[("a", "b"), (REVISION, "4")])),
            (labels(&[(REVISION, "x")]), 3, labels(&[("a", "b"), (REVISION, "x")])),
        ] {
            let mut annotations = before.clone();
            annotate(&mut annotations, &from, revision);
            assert_eq!(annotations, after, "{before:?}");
        }
    }
}
