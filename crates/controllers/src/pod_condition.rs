//! What loops other than its own say of a pod, in one of its conditions.

use kinds::{Object, Pod, Time};
use object::{Edit, Value, View, json};
use runtime::Plan;

/// Why a pod is about to be ended from outside.
pub(crate) const DISRUPTION_TARGET: &str = "DisruptionTarget";

/// A condition to be set on a pod.
pub(crate) struct Verdict<'a> {
    pub(crate) kind: &'a str,
    pub(crate) status: &'a str,
    pub(crate) reason: &'a str,
    pub(crate) message: &'a str,
}

impl Verdict<'_> {
    /// Says so on the pod, and its phase if there is a new one, unless that is said already. If the pod has changed
    /// since, it is decided again.
    pub(crate) fn put(&self, plan: &mut Plan, pod: &Object<Pod>, phase: Option<&str>, now: Time) {
        let old = pod.condition(self.kind);
        let same = old
            .is_some_and(|old| old.status == self.status && old.reason == self.reason && old.message == self.message);
        if same && phase.is_none_or(|phase| pod.status.phase == phase) {
            return;
        }
        let kept = old.filter(|old| old.status == self.status).and_then(|old| old.last_transition_time);
        let mut condition =
            json!({ "type": self.kind, "status": self.status, "lastTransitionTime": kept.unwrap_or(now) });
        for (field, text) in [("reason", self.reason), ("message", self.message)] {
            if !text.is_empty() {
                condition.set(field, text);
            }
        }
        let mut conditions: Vec<Value> =
            pod.json().path(&["status", "conditions"]).as_array().cloned().unwrap_or_default();
        conditions.retain(|other| other.text("type") != self.kind);
        conditions.push(condition);
        let mut status = json!({ "conditions": conditions });
        if let Some(phase) = phase {
            status.set("phase", phase);
        }
        let version = &pod.metadata.resource_version;
        plan.patch_in(pod, "status", json!({ "metadata": { "resourceVersion": version }, "status": status }));
    }
}
