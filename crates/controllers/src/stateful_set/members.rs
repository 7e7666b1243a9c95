//! The members of a set: which there should be, who they are, and what is there.

use super::claims;
use crate::history::{self, POD_LABEL, Revision};
use crate::workload::{is_unavailable, pod_from_template};
use kinds::{Object, Pod, StatefulSet, Time};
use object::{Edit, Value, View, json};
use std::ops::Range;
use std::sync::Arc;

const NAME_LABEL: &str = "statefulset.kubernetes.io/pod-name";
const INDEX_LABEL: &str = "apps.kubernetes.io/pod-index";

pub(super) struct Members<'a> {
    pub(super) set: &'a Object<StatefulSet>,
    /// Those that should be there, in order.
    pub(super) replicas: Vec<Member<'a>>,
    /// Those that should not, the highest first.
    pub(super) condemned: Vec<(i32, &'a Arc<Object<Pod>>)>,
    pub(super) update: &'a str,
    current: &'a Revision,
    now: Time,
}

pub(super) struct Member<'a> {
    pub(super) ordinal: i32,
    /// None if there is none yet.
    pub(super) pod: Option<&'a Arc<Object<Pod>>>,
}

/// The ordinals that a set should have.
pub(super) fn range(set: &StatefulSet) -> Range<i32> {
    let start = set.spec.ordinals.start;
    start..start.saturating_add(set.spec.replicas.max(0))
}

/// Which member of a set a pod is, by its name.
pub(super) fn ordinal(set: &StatefulSet, pod: &Pod) -> Option<i32> {
    let digits = pod.metadata.name.strip_prefix(&set.metadata.name)?.strip_prefix('-')?;
    digits.bytes().all(|byte| byte.is_ascii_digit()).then_some(digits)?.parse().ok()
}

impl<'a> Members<'a> {
    pub(super) fn new(
        set: &'a Object<StatefulSet>,
        pods: &'a [Arc<Object<Pod>>],
        current: &'a Revision,
        update: &'a Revision,
        now: Time,
    ) -> Self {
        let of = |wanted: i32| pods.iter().find(|pod| ordinal(set, pod) == Some(wanted));
        let replicas = range(set).map(|ordinal| Member { ordinal, pod: of(ordinal) }).collect();
        let others = pods.iter().filter_map(|pod| Some((ordinal(set, pod)?, pod)));
        let mut condemned: Vec<_> = others.filter(|(ordinal, _)| !range(set).contains(ordinal)).collect();
        condemned.sort_by_key(|(ordinal, _)| std::cmp::Reverse(*ordinal));
        Members { set, replicas, condemned, update: &update.metadata.name, current, now }
    }

    pub(super) fn is_ordered(&self) -> bool {
        self.set.spec.pod_management_policy != "Parallel"
    }

    /// Whether a pod is not of use: not available, or on its way out.
    pub(super) fn is_unavailable(&self, pod: &Pod) -> bool {
        is_unavailable(pod, self.set.spec.min_ready_seconds, self.now)
    }

    /// Whether a pod stands in the way of the next one.
    pub(super) fn holds_up(&self, pod: &Pod) -> bool {
        self.is_unavailable(pod) || pod.status.phase != "Running"
    }

    /// The pod that is the first to be repaired, and may go even though it does not work.
    pub(super) fn first_unavailable(&self) -> Option<&str> {
        let replicas = self.replicas.iter().map(|member| member.pod);
        let condemned = self.condemned.iter().rev().map(|(_, pod)| Some(*pod));
        let first = replicas.chain(condemned).find(|pod| pod.is_none_or(|pod| self.is_unavailable(pod)));
        first.flatten().map(|pod| pod.metadata.uid.as_str())
    }

    /// A new pod for a member; below the partition it is as the current ones are.
    pub(super) fn pod(&self, ordinal: i32) -> Value {
        let set = self.set;
        let strategy = &set.spec.update_strategy;
        let partition = set.spec.ordinals.start.saturating_add(strategy.rolling_update.partition);
        let (template, revision) = if strategy.kind != "OnDelete" && ordinal < partition {
            (history::template(self.current), self.current.metadata.name.as_str())
        } else {
            (set.spec.template.clone(), self.update)
        };
        let mut pod = pod_from_template(set, &template);
        let name = format!("{}-{ordinal}", set.metadata.name);
        let metadata = pod.object_or_new("metadata");
        let labels = metadata.object_or_new("labels");
        labels.set(NAME_LABEL, name.as_str());
        labels.set(INDEX_LABEL, ordinal.to_string());
        labels.set(POD_LABEL, revision);
        metadata.set("name", name.as_str());
        let spec = pod.object_or_new("spec");
        spec.set("hostname", name);
        if !set.spec.service_name.is_empty() {
            spec.set("subdomain", set.spec.service_name.as_str());
        }
        let mut volumes = claims::volumes(set, ordinal);
        let replaced = |volume: &Value| volumes.iter().any(|claim| claim.text("name") == volume.text("name"));
        let others: Vec<_> = spec.items("volumes").iter().filter(|volume| !replaced(volume)).cloned().collect();
        volumes.extend(others);
        if !volumes.is_empty() {
            spec.set("volumes", volumes);
        }
        pod
    }

    /// What has to be changed so that a pod carries its identity: one that was adopted may not.
    pub(super) fn identity(&self, pod: &Pod, ordinal: i32) -> Option<Value> {
        let labels = json!({ NAME_LABEL: pod.metadata.name, INDEX_LABEL: ordinal.to_string() });
        let differs = pod.metadata.label(NAME_LABEL) != pod.metadata.name;
        differs.then(|| json!({ "metadata": { "labels": labels } }))
    }
}
