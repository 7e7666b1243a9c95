//! Taint eviction: pods leave nodes whose taints of effect `NoExecute` they do not tolerate, or no longer.
//!
//! A taint that is tolerated for a time is counted from when it was put on the node, or from when the pod came if that
//! was later. When a taint goes, so does the intention. Who taints nodes is not this loop's business.

use crate::departure::{self, Pending, Words};
use kinds::{Key, Node, Object, Pod, Taint, Time};
use parking_lot::Mutex;
use runtime::{Caches, Change, Controller, Plan};
use std::collections::BTreeMap;
use std::time::Duration;

const WORDS: Words = Words {
    event: "TaintManagerEviction",
    marking: "Marking for deletion Pod {pod}",
    cancelling: "Cancelling deletion of Pod {pod}",
    reason: "DeletionByTaintManager",
    message: "Taint manager: deleting due to NoExecute taint",
};
/// Many, since each waits for two writes, one after the other: when many nodes are lost at once the API is busy, and
/// thousands of pods have to leave.
const WORKERS: usize = 64;

pub(crate) fn controller() -> Controller {
    let pending = Mutex::new(BTreeMap::<Key, Pending>::new());
    Controller::new("taint-eviction-controller")
        .account("node-controller")
        .workers(WORKERS)
        .watches_changes::<Pod>(tainted_pods)
        .watches_changes::<Node>(pods_of_node)
        .plans(move |caches, request| {
            let pod = caches.of::<Pod>().get(&request.key);
            let taints = pod.as_ref().map(|pod| taints_under(pod, caches)).unwrap_or_default();
            let mut pending = pending.lock();
            let before = pending.remove(&request.key);
            let Some(pod) = pod else { return Plan::default() };
            let (plan, after) = plan(&pod, &taints, before, request.now);
            pending.extend(after.map(|after| (request.key.clone(), after)));
            plan
        })
}

fn tainted_pods(change: &Change<Pod>, caches: &Caches) -> Vec<Key> {
    let pod = change.new.as_ref().or(change.old.as_ref()).filter(|pod| !taints_under(pod, caches).is_empty());
    pod.map(|pod| pod.key()).into_iter().collect()
}

fn pods_of_node(change: &Change<Node>, caches: &Caches) -> Vec<Key> {
    let taints = |node: &Option<_>| node.as_deref().map(driving).unwrap_or_default();
    if taints(&change.old) == taints(&change.new) {
        return Vec::new();
    }
    let Some(node) = change.sides().next() else { return Vec::new() };
    caches.of::<Pod>().by("node", &node.metadata.name).iter().map(|pod| pod.key()).collect()
}

/// The taints of a node that drive pods off.
fn driving(node: &Object<Node>) -> Vec<Taint> {
    node.spec.taints.iter().filter(|taint| taint.effect == "NoExecute").cloned().collect()
}

fn taints_under(pod: &Pod, caches: &Caches) -> Vec<Taint> {
    if pod.spec.node_name.is_empty() {
        return Vec::new();
    }
    caches.of::<Node>().named("", &pod.spec.node_name).map(|node| driving(&node)).unwrap_or_default()
}

/// What to do with a pod on a node with these taints, and what to remember of it.
fn plan(pod: &Object<Pod>, taints: &[Taint], before: Option<Pending>, now: Time) -> (Plan, Option<Pending>) {
    let before = Pending::of(before, pod);
    let remaining = remaining(pod, taints, Pending::noticed(before.as_ref(), now), now);
    departure::plan(pod, remaining, before, &WORDS, now)
}

/// How long a pod may still stay; none if forever.
fn remaining(pod: &Pod, taints: &[Taint], noticed: Time, now: Time) -> Option<Duration> {
    let scheduled = pod.condition("PodScheduled").and_then(|scheduled| scheduled.last_transition_time);
    let came = scheduled.or(pod.metadata.creation_timestamp).unwrap_or_default();
    let until = |taint: &Taint| {
        let toleration = pod.spec.tolerations.iter().find(|toleration| toleration.tolerates(taint));
        let Some(toleration) = toleration else { return Some(Duration::ZERO) };
        let seconds = u64::try_from(toleration.toleration_seconds?).unwrap_or(0);
        let since = taint.time_added.map_or(noticed, |added| added.max(came));
        Some((since + Duration::from_secs(seconds)).since(now))
    };
    taints.iter().filter_map(until).min()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::NOW;
    use object::{Value, json};

    fn after(seconds: u64) -> Time {
        NOW + Duration::from_secs(seconds)
    }

    fn taint(key: &str, added: Option<Time>) -> Taint {
        Taint { key: key.into(), effect: "NoExecute".into(), time_added: added, ..Taint::default() }
    }

    fn pod(tolerations: &[Value]) -> Object<Pod> {
        Object::of(&json!({
            "metadata": { "namespace": "a", "name": "p", "uid": "u", "creationTimestamp": "2025-01-01T00:00:00Z" },
            "spec": { "nodeName": "n", "tolerations": tolerations },
        }))
    }

    fn tolerates(key: &str, seconds: Option<i64>) -> Value {
        json!({ "key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": seconds })
    }

    #[test]
    fn a_pod_goes_when_the_least_tolerated_taint_has_been_there_for_too_long() {
        let (old, new) = (taint("x", Some(NOW)), taint("y", Some(after(50))));
        for (what, tolerations, taints, expected) in [
            ("no taint", vec![], vec![], None),
            ("not tolerated", vec![], vec![old.clone()], Some(0)),
            ("tolerated forever", vec![tolerates("x", None)], vec![old.clone()], None),
            ("tolerated for a time", vec![tolerates("x", Some(300))], vec![old.clone()], Some(240)),
            ("tolerated until now", vec![tolerates("x", Some(60))], vec![old.clone()], Some(0)),
            ("tolerated not at all", vec![tolerates("x", Some(-1))], vec![old.clone()], Some(0)),
            (
                "two of them",
                vec![tolerates("x", Some(300)), tolerates("y", Some(20))],
                vec![old.clone(), new.clone()],
                Some(10),
            ),
            ("one of two", vec![tolerates("x", None)], vec![old, new], Some(0)),
            ("noticed only", vec![tolerates("z", Some(30))], vec![taint("z", None)], Some(30)),
        ] {
            let found = remaining(&pod(&tolerations), &taints, after(60), after(60));
            assert_eq!(found, expected.map(Duration::from_secs), "{what}");
        }
    }

    #[test]
    fn a_pod_is_told_why_before_it_is_deleted() {
        let (plan, _) = plan(&pod(&[]), &[taint("x", Some(NOW))], None, after(1));
        assert_eq!(plan.summary(), ["patch pods/status p", "delete pods p"]);
        assert_eq!(plan.events[0].message, "Marking for deletion Pod a/p");
    }

    #[test]
    fn when_the_taint_goes_so_does_the_intention() {
        let pod = pod(&[tolerates("x", Some(60))]);
        let (waiting, pending) = plan(&pod, &[taint("x", None)], None, NOW);
        assert_eq!(waiting.requeue_after, Some(Duration::from_secs(60)));
        let (still, pending) = plan(&pod, &[taint("x", None)], pending, after(20));
        assert_eq!(still.requeue_after, Some(Duration::from_secs(40)), "counted from when it was first seen");
        let (cancelled, pending) = plan(&pod, &[], pending, after(30));
        assert_eq!(cancelled.events[0].message, "Cancelling deletion of Pod a/p");
        assert_eq!((plan(&pod, &[], pending.clone(), after(31)).0.is_empty(), pending), (true, None));
    }
}
