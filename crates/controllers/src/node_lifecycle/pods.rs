//! Pods on a node that is no longer ready are not ready either: services must not send to them.

use kinds::{Node, Object, Pod, Time};
use object::{View, json};
use runtime::{Note, Plan};
use std::sync::Arc;

/// Marks the pods of a node that is not ready. A node that is silent says nothing of its pods; one that still speaks may
/// have said that they are ready again since it is not ready itself.
pub(super) fn mark(plan: &mut Plan, node: &Object<Node>, pods: &[Arc<Object<Pod>>], now: Time) {
    let Some(ready) = node.condition("Ready").filter(|ready| ready.status != "True") else { return };
    let is_silent = ready.status == "Unknown";
    for pod in pods.iter().filter(|pod| pod.is_ready() && !pod.metadata.is_being_deleted()) {
        let said = pod.condition("Ready").and_then(|ready| ready.last_transition_time);
        if !is_silent && said > ready.last_transition_time {
            continue;
        }
        let mut conditions = pod.json().path(&["status", "conditions"]).as_array().cloned().unwrap_or_default();
        for condition in conditions.iter_mut().filter(|condition| condition.text("type") == "Ready") {
            condition["status"] = json!("False");
            condition["lastTransitionTime"] = json!(now);
        }
        // The list is replaced as a whole: nothing that somebody else has added to it meanwhile may be lost.
        let version = &pod.metadata.resource_version;
        let marked = json!({ "metadata": { "resourceVersion": version }, "status": { "conditions": conditions } });
        plan.patch_in(pod, "status", marked);
        plan.event(Note::warning(pod, "NodeNotReady", "Node is not ready"));
    }
}
