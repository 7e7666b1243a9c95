//! What loops other than its own say of a pod, in one of its conditions and in its phase.

use kinds::{Condition, Object, Pod, Time};
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
    fn is_said(&self, old: &Condition) -> bool {
        old.status == self.status && old.reason == self.reason && old.message == self.message
    }

    fn json(&self, old: Option<&Condition>, now: Time) -> Value {
        let kept = old.filter(|old| old.status == self.status).and_then(|old| old.last_transition_time);
        let since = kept.unwrap_or(now);
        let mut condition = json!({ "type": self.kind, "status": self.status, "lastTransitionTime": since });
        for (field, text) in [("reason", self.reason), ("message", self.message)] {
            if !text.is_empty() {
                condition.set(field, text);
            }
        }
        condition
    }
}

/// Says something of a pod, and its phase if there is a new one, unless that is said already. If the pod has changed
/// since it was observed, nothing is written and all is decided again.
pub(crate) fn report(
    plan: &mut Plan,
    pod: &Object<Pod>,
    verdict: Option<&Verdict<'_>>,
    phase: Option<&str>,
    now: Time,
) {
    let mut status = json!({});
    if let Some(phase) = phase.filter(|phase| pod.status.phase != *phase) {
        status.set("phase", phase);
    }
    if let Some(verdict) = verdict {
        let old = pod.condition(verdict.kind);
        if !old.is_some_and(|old| verdict.is_said(old)) {
            let mut conditions: Vec<Value> = pod.json().at("status").items("conditions").to_vec();
            conditions.retain(|other| other.text("type") != verdict.kind);
            conditions.push(verdict.json(old, now));
            status.set("conditions", conditions);
        }
    }
    if status != json!({}) {
        let version = &pod.metadata.resource_version;
        plan.patch_in(pod, "status", json!({ "metadata": { "resourceVersion": version }, "status": status }));
    }
}
