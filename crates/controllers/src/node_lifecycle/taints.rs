//! Which taints a node carries, by what is known of it.

use kinds::{Node, Object, Taint, Time};
use object::{Edit, Value, View, json};
use runtime::Plan;

const NOT_READY: &str = "node.kubernetes.io/not-ready";
const UNREACHABLE: &str = "node.kubernetes.io/unreachable";
const UNSCHEDULABLE: &str = "node.kubernetes.io/unschedulable";

/// Condition, its status, and the taint that keeps pods away for it.
const BY_CONDITION: [(&str, &str, &str); 6] = [
    ("Ready", "False", NOT_READY),
    ("Ready", "Unknown", UNREACHABLE),
    ("MemoryPressure", "True", "node.kubernetes.io/memory-pressure"),
    ("DiskPressure", "True", "node.kubernetes.io/disk-pressure"),
    ("NetworkUnavailable", "True", "node.kubernetes.io/network-unavailable"),
    ("PIDPressure", "True", "node.kubernetes.io/pid-pressure"),
];

/// Keeps the taints that follow from conditions and from `unschedulable`.
pub(super) fn plan(node: &Object<Node>, now: Time) -> Plan {
    let is_wanted = |key: &str| match key {
        UNSCHEDULABLE => node.spec.unschedulable,
        key => BY_CONDITION.iter().any(|(kind, status, taint)| {
            *taint == key && node.condition(kind).is_some_and(|condition| condition.status == *status)
        }),
    };
    let managed: Vec<&str> = BY_CONDITION.iter().map(|(_, _, taint)| *taint).chain([UNSCHEDULABLE]).collect();
    let mut plan = Plan::default();
    change(&mut plan, node, "NoSchedule", &managed, is_wanted, now);
    plan
}

/// The taint that drives pods off a node in this state.
pub(super) fn eviction(ready: &str) -> Option<&'static str> {
    match ready {
        "True" => None,
        "False" => Some(NOT_READY),
        _ => Some(UNREACHABLE),
    }
}

/// Whether a taint keeps new pods away from a node.
pub(super) fn keeps_away(node: &Object<Node>, key: &str) -> bool {
    node.spec.taints.iter().any(|taint| taint.key == key && taint.effect == "NoSchedule")
}

/// Puts the taint that drives pods off, or takes it off. `keeps`: one that is there stays, since its turn has come
/// before.
pub(super) fn set_eviction(plan: &mut Plan, node: &Object<Node>, wanted: Option<&str>, keeps: bool, now: Time) {
    let has = |key: &str| node.spec.taints.iter().any(|taint| taint.key == key && taint.effect == "NoExecute");
    let is_wanted = |key: &str| wanted == Some(key) || wanted.is_none() && keeps && has(key);
    change(plan, node, "NoExecute", &[NOT_READY, UNREACHABLE], is_wanted, now);
}

/// Makes the taints of one effect among `managed` those that are wanted; others stay.
fn change(
    plan: &mut Plan,
    node: &Object<Node>,
    effect: &str,
    managed: &[&str],
    is_wanted: impl Fn(&str) -> bool,
    now: Time,
) {
    let own = |taint: &Taint| taint.effect == effect && managed.contains(&taint.key.as_str());
    let missing: Vec<&&str> = managed
        .iter()
        .filter(|key| is_wanted(key) && !node.spec.taints.iter().any(|taint| own(taint) && taint.key == **key))
        .collect();
    let superfluous = node.spec.taints.iter().any(|taint| own(taint) && !is_wanted(&taint.key));
    if missing.is_empty() && !superfluous {
        return;
    }
    let mut object = node.json();
    let mut taints: Vec<Value> = object.at("spec").items("taints").to_vec();
    taints.retain(|taint| {
        let is_own = taint.text("effect") == effect && managed.contains(&taint.text("key"));
        !is_own || is_wanted(taint.text("key"))
    });
    taints.extend(missing.iter().map(|key| json!({ "key": key, "effect": effect, "timeAdded": now })));
    match taints.is_empty() {
        true => drop(object.object_or_new("spec").remove("taints")),
        false => object.object_or_new("spec").set("taints", taints),
    }
    plan.update(node, object);
}
