//! Nodes, pods, and what keeps pods running.

use super::{Gaps, Observed, count, storage};
use kinds::{
    DaemonSet, Deployment, Meta, Node, Object, Pod, PodTemplate, ReplicaSet, ReplicaSetStatus, ReplicationController,
    StatefulSet,
};
use std::collections::BTreeSet;

/// A node that is well has no taints but the one that says that it is closed, and addresses for its pods.
pub(super) fn node(all: &Observed, node: &Object<Node>, gaps: &mut Gaps) {
    let wanted: Vec<&str> = if node.spec.unschedulable { vec!["node.kubernetes.io/unschedulable"] } else { Vec::new() };
    gaps.same("its taints", wanted, node.spec.taints.iter().map(|taint| taint.key.as_str()).collect());
    gaps.expect("is not ready", node.is_ready());
    let range = &node.spec.pod_cidr;
    storage::attached(all, node, gaps);
    let same_range = all.of::<Node>().iter().filter(|other| other.spec.pod_cidr == *range);
    gaps.expect("has no range of addresses of its own", !range.is_empty() && same_range.count() == 1);
}

/// What has not ended runs, on a node that is there.
pub(super) fn pod(all: &Observed, pod: &Object<Pod>, gaps: &mut Gaps) {
    if !pod.is_finished() {
        let is_placed = all.named::<Node>("", &pod.spec.node_name).is_some();
        gaps.expect(&format!("does not run: {:?} on {:?}", pod.status.phase, pod.spec.node_name), is_placed);
        gaps.expect("is not ready", pod.is_ready());
    }
}

fn replicated(all: &Observed, meta: &Meta, wanted: i32, status: &ReplicaSetStatus, gaps: &mut Gaps) {
    let have = count(all.active(&meta.uid));
    let reported = (status.replicas, status.ready_replicas, status.available_replicas, status.observed_generation);
    gaps.same("the number of its pods", wanted, have);
    gaps.same("what it reports", (wanted, wanted, wanted, meta.generation), reported);
}

pub(super) fn replica_set(all: &Observed, set: &Object<ReplicaSet>, gaps: &mut Gaps) {
    replicated(all, &set.metadata, set.spec.replicas, &set.status, gaps);
}

pub(super) fn replication_controller(all: &Observed, one: &Object<ReplicationController>, gaps: &mut Gaps) {
    replicated(all, &one.metadata, one.spec.replicas, &one.status, gaps);
}

/// All replicas are in one set, which has the template as it is now; of the earlier sets some are kept.
pub(super) fn deployment(all: &Observed, deployment: &Object<Deployment>, gaps: &mut Gaps) {
    let (meta, spec, status) = (&deployment.metadata, &deployment.spec, &deployment.status);
    let wanted = spec.replicas;
    let sets: Vec<_> = all.owned::<ReplicaSet>(&meta.uid).collect();
    let is_current = |set: &&&Object<ReplicaSet>| {
        let mut labels = set.spec.template.labels.clone();
        labels.remove("pod-template-hash");
        labels == spec.template.labels && set.spec.template.annotations == spec.template.annotations
    };
    let current = sets.iter().filter(is_current).map(|set| set.spec.replicas).max();
    gaps.same("the replicas of its newest set", Some(wanted), current);
    gaps.same("the replicas of its sets", wanted, sets.iter().map(|set| set.spec.replicas).sum());
    let reported = (status.replicas, status.updated_replicas, status.available_replicas, status.observed_generation);
    gaps.same("what it reports", (wanted, wanted, wanted, meta.generation), reported);
    let limit = usize::try_from(spec.revision_history_limit.unwrap_or(10)).unwrap_or(0);
    gaps.expect(&format!("keeps {} sets", sets.len()), sets.len() <= limit + 1);
}

pub(super) fn stateful_set(all: &Observed, set: &Object<StatefulSet>, gaps: &mut Gaps) {
    let (meta, wanted, status) = (&set.metadata, set.spec.replicas, &set.status);
    let have: BTreeSet<String> = all.active(&meta.uid).map(|pod| pod.metadata.name.clone()).collect();
    gaps.same("its pods", (0..wanted).map(|ordinal| format!("{}-{ordinal}", meta.name)).collect(), have);
    gaps.expect("has an old pod", all.active(&meta.uid).all(|pod| is_of(pod, &set.spec.template)));
    let reported = (status.replicas, status.ready_replicas, status.updated_replicas, status.observed_generation);
    gaps.same("what it reports", (wanted, wanted, wanted, meta.generation), reported);
    gaps.same("its revision", &status.update_revision, &status.current_revision);
}

/// Every node has one, whether it is closed or not.
pub(super) fn daemon_set(all: &Observed, set: &Object<DaemonSet>, gaps: &mut Gaps) {
    let (meta, status) = (&set.metadata, &set.status);
    let mut nodes: Vec<&str> = all.active(&meta.uid).map(|pod| pod.spec.node_name.as_str()).collect();
    nodes.sort_unstable();
    let wanted: BTreeSet<&str> = all.of::<Node>().iter().map(|node| node.metadata.name.as_str()).collect();
    let number = count(wanted.iter());
    gaps.same("its nodes", wanted.into_iter().collect(), nodes);
    gaps.expect("has an old pod", all.active(&meta.uid).all(|pod| is_of(pod, &set.spec.template)));
    let reported = (status.number_ready, status.updated_number_scheduled, status.observed_generation);
    gaps.same("what it reports", (number, number, meta.generation), reported);
}

/// Whether a pod was made from a template: that can be told by the annotations.
fn is_of(pod: &Pod, template: &PodTemplate) -> bool {
    template.annotations.iter().all(|(key, value)| pod.metadata.annotations.get(key) == Some(value))
}
