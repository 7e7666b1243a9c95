//! Pod garbage: pods that nobody else will ever remove.
//!
//! Those on nodes that are gone for good, or out of service; those that were deleted before they had a node; and the
//! oldest of those that have ended, when there are too many. Pods whose owner is gone are left to the garbage
//! collector.

use crate::pod_condition::{DISRUPTION_TARGET, Verdict, report};
use kinds::{Key, Node, Object, Pod, Time};
use object::ApiError;
use parking_lot::Mutex;
use runtime::{Caches, Context, Controller, DeleteOptions, Plan, Request};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

/// Pods that have ended are kept up to this number.
const THRESHOLD: usize = 12_500;
const PERIOD: Duration = Duration::from_secs(20);
/// How soon to look again at pods that were just marked.
const SOON: Duration = Duration::from_millis(100);
/// A node that is missing for so long is asked for; it may just not have been seen.
const QUARANTINE: Duration = Duration::from_secs(40);
const OUT_OF_SERVICE: &str = "node.kubernetes.io/out-of-service";

pub(crate) fn controller() -> Controller {
    let missing = Arc::new(Mutex::new(Missing::default()));
    Controller::new("pod-garbage-collector")
        .reads::<Pod>()
        .reads::<Node>()
        .begins_with(Key::cluster("sweep"))
        .workers(1)
        .plans_with(move |context, request| sweep(missing.clone(), context, request))
}

async fn sweep(missing: Arc<Mutex<Missing>>, context: Context, request: Request) -> Result<Plan, ApiError> {
    let pods = context.caches.of::<Pod>().all();
    let suspects = missing.lock().look(&context.caches, &pods, request.now);
    let mut gone = BTreeSet::new();
    for name in suspects {
        if context.client.get::<Node>(&Key::cluster(name.as_str())).await?.is_none() {
            gone.insert(name);
        }
    }
    Ok(plan(&observe(&context.caches, pods, gone), request.now, THRESHOLD))
}

/// Since when nodes that pods are on have been missing.
#[derive(Debug, Default)]
struct Missing(BTreeMap<String, Time>);

impl Missing {
    /// The nodes that have been missing for long enough to be asked for.
    fn look(&mut self, caches: &Caches, pods: &[Arc<Object<Pod>>], now: Time) -> Vec<String> {
        let nodes = caches.of::<Node>();
        let used: BTreeSet<&str> = pods.iter().map(|pod| pod.spec.node_name.as_str()).collect();
        let is_missing = |name: &str| !name.is_empty() && nodes.named("", name).is_none();
        self.0.retain(|name, _| used.contains(name.as_str()) && is_missing(name));
        for name in used.into_iter().filter(|name| is_missing(name)) {
            self.0.entry(name.to_owned()).or_insert(now);
        }
        let long_enough = self.0.iter().filter(|(_, since)| **since + QUARANTINE <= now);
        long_enough.map(|(name, _)| name.clone()).collect()
    }
}

struct Observed {
    pods: Vec<Arc<Object<Pod>>>,
    /// Nodes that are gone for good.
    gone: BTreeSet<String>,
    /// Nodes that are not ready, and that somebody has declared to be out of service.
    out_of_service: BTreeSet<String>,
}

fn observe(caches: &Caches, pods: Vec<Arc<Object<Pod>>>, gone: BTreeSet<String>) -> Observed {
    let is_out = |node: &Node| !node.is_ready() && node.spec.taints.iter().any(|taint| taint.key == OUT_OF_SERVICE);
    let nodes = caches.of::<Node>().all();
    let out_of_service = nodes.iter().filter(|node| is_out(node)).map(|node| node.metadata.name.clone()).collect();
    Observed { pods, gone, out_of_service }
}

const ORPHANED: Verdict<'static> = Verdict {
    kind: DISRUPTION_TARGET,
    status: "True",
    reason: "DeletionByPodGC",
    message: "PodGC: node no longer exists",
};

/// A pod is marked as failed before it goes, so that whoever counts on it learns what became of it. What was marked in
/// one round is deleted in the next; a pod that cannot be marked keeps nobody else waiting.
fn plan(observed: &Observed, now: Time, threshold: usize) -> Plan {
    let mut plan = Plan::default();
    let garbage = garbage(observed, threshold);
    let is_marked = |entry: &&Garbage<'_>| entry.0.is_finished();
    for (pod, _) in garbage.iter().filter(is_marked) {
        plan.delete_with(pod, DeleteOptions { grace_seconds: Some(0), ..DeleteOptions::default() });
    }
    plan.requeue_after(PERIOD);
    for (pod, verdict) in garbage.iter().filter(|entry| !is_marked(entry)) {
        report(&mut plan, pod, *verdict, Some("Failed"), now);
        plan.requeue_after(SOON);
    }
    plan
}

/// A pod to be deleted, and what is to be said of it.
type Garbage<'a> = (&'a Arc<Object<Pod>>, Option<&'static Verdict<'static>>);

fn garbage(observed: &Observed, threshold: usize) -> Vec<Garbage<'_>> {
    // Those are as good as gone; whoever holds them by a finalizer is not asked again and again.
    let is_there = |pod: &&Arc<Object<Pod>>| pod.metadata.deletion_grace_period_seconds != Some(0);
    let (mut garbage, mut ended) = (Vec::new(), Vec::new());
    for pod in observed.pods.iter().filter(is_there) {
        let node = &pod.spec.node_name;
        let is_going = pod.metadata.is_being_deleted();
        if observed.gone.contains(node) {
            garbage.push((pod, Some(&ORPHANED)));
        } else if is_going && (node.is_empty() || observed.out_of_service.contains(node)) {
            garbage.push((pod, None));
        } else if pod.is_finished() {
            ended.push(pod);
        }
    }
    let excess = ended.len().saturating_sub(threshold);
    if excess > 0 {
        // Evicted pods first: they say the least about what their owner did.
        let is_evicted = |pod: &Pod| pod.status.phase == "Failed" && &*pod.status.reason == "Evicted";
        ended.sort_by_key(|pod| (!is_evicted(pod), pod.metadata.creation_timestamp, pod.metadata.name.clone()));
    }
    garbage.extend(ended.into_iter().take(excess).map(|pod| (pod, None)));
    garbage
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::NOW;
    use object::{Value, json};
    use runtime::Write;

    fn pod(name: &str, node: &str, phase: &str, edit: impl FnOnce(&mut Value)) -> Arc<Object<Pod>> {
        let mut pod = json!({
            "metadata": { "namespace": "a", "name": name, "uid": name, "creationTimestamp": NOW },
            "spec": { "nodeName": node },
            "status": { "phase": phase },
        });
        edit(&mut pod);
        Arc::new(Object::of(&pod))
    }

    fn going(pod: &mut Value) {
        pod["metadata"]["deletionTimestamp"] = json!(NOW);
        pod["metadata"]["deletionGracePeriodSeconds"] = json!(30);
    }

    fn observed(pods: Vec<Arc<Object<Pod>>>) -> Observed {
        Observed { pods, gone: ["gone".to_owned()].into(), out_of_service: ["out".to_owned()].into() }
    }

    #[test]
    fn pods_that_nobody_else_removes_are_marked_and_then_deleted() {
        for (what, node, phase, edit, expected) in [
            ("on a node that is gone", "gone", "Running", None, Some("patch pods/status p")),
            ("the same, marked", "gone", "Failed", None, Some("delete pods p")),
            ("on a node that is there", "n", "Running", None, None),
            ("on its way out there", "n", "Running", Some(going as fn(&mut Value)), None),
            (
                "on its way out of a node that is out of service",
                "out",
                "Running",
                Some(going),
                Some("patch pods/status p"),
            ),
            ("staying on such a node", "out", "Running", None, None),
            ("deleted before it had a node", "", "Pending", Some(going), Some("patch pods/status p")),
            ("waiting for a node", "", "Pending", None, None),
        ] {
            let pod = pod("p", node, phase, |pod| edit.unwrap_or(|_| {})(pod));
            let plan = plan(&observed(vec![pod]), NOW, THRESHOLD);
            assert_eq!(plan.summary(), Vec::from_iter(expected), "{what}");
            let is_marking = expected.is_some_and(|expected| expected.starts_with("patch"));
            assert_eq!(plan.requeue_after, Some(if is_marking { SOON } else { PERIOD }));
        }
    }

    #[test]
    fn a_pod_whose_node_is_gone_is_told_so() {
        let plan = plan(&observed(vec![pod("p", "gone", "Running", |_| {})]), NOW, THRESHOLD);
        let [Write::Patch { patch, .. }] = plan.writes.as_slice() else { panic!("{plan:?}") };
        assert_eq!(patch["status"]["phase"], "Failed");
        assert_eq!(patch["status"]["conditions"][0]["reason"], "DeletionByPodGC");
    }

    #[test]
    fn of_too_many_pods_that_have_ended_the_evicted_and_the_oldest_go() {
        let aged = |name: &str, day: u32, reason: &str| {
            pod(name, "n", "Failed", |pod| {
                pod["metadata"]["creationTimestamp"] = json!(format!("2025-01-{day:02}T00:00:00Z"));
                pod["status"]["reason"] = json!(reason);
            })
        };
        let pods = vec![aged("a", 3, ""), aged("b", 2, ""), aged("c", 1, ""), aged("d", 4, "Evicted")];
        assert_eq!(plan(&observed(pods), NOW, 2).summary(), ["delete pods d", "delete pods c"]);
    }

    #[test]
    fn a_node_is_asked_for_only_when_it_has_been_missing_for_a_while() {
        let mut caches = Caches::default().with::<Node>();
        let pods = [pod("p", "x", "Running", |_| {})];
        let mut missing = Missing::default();
        let after = |seconds: u64| NOW + Duration::from_secs(seconds);
        assert!(missing.look(&caches, &pods, NOW).is_empty());
        assert!(missing.look(&caches, &pods, after(39)).is_empty());
        assert_eq!(missing.look(&caches, &pods, after(40)), ["x"]);
        caches.put(Object::<Node>::of(&json!({ "metadata": { "name": "x" } })));
        assert!(missing.look(&caches, &pods, after(50)).is_empty());
    }
}
