//! What becomes of nodes that report, and of those that are silent.

use super::*;
use kinds::Kind;
use runtime::Write;

const START: Time = Time::from_seconds(1_767_225_600);

fn after(seconds: u64) -> Time {
    START + Duration::from_secs(seconds)
}

fn node(name: &str, ready: &str, taints: &Value) -> Object<Node> {
    Object::of(&json!({
        "metadata": { "name": name, "uid": name, "resourceVersion": "1" },
        "spec": { "taints": taints },
        "status": { "conditions": [{ "type": "Ready", "status": ready, "lastHeartbeatTime": "2026-01-01T00:00:00Z" }] },
    }))
}

fn caches(nodes: Vec<Object<Node>>) -> Caches {
    let mut caches = Caches::default().with::<Node>().with::<Lease>().with::<Pod>();
    nodes.into_iter().for_each(|node| caches.put(node));
    caches
}

fn taint_keys(write: &Write) -> Vec<String> {
    let Write::Update { object, .. } = write else { panic!("{write:?}") };
    let taints = object.at("spec").items("taints").iter();
    taints.map(|taint| format!("{}:{}", taint.text("key"), taint.text("effect"))).collect()
}

/// A node that has been silent for a while: new pods are kept away already.
fn silent(name: &str) -> Object<Node> {
    node(name, "Unknown", &json!([{ "key": "node.kubernetes.io/unreachable", "effect": "NoSchedule" }]))
}

#[test]
fn taints_follow_the_conditions() {
    let not_ready = json!([{ "key": "node.kubernetes.io/not-ready", "effect": "NoSchedule" }]);
    let ready = taints::plan(&node("a", "True", &not_ready), START);
    assert_eq!(taint_keys(&ready.writes[0]), [""; 0]);
    let foreign = json!([{ "key": "dedicated", "value": "x", "effect": "NoSchedule" }]);
    let unknown = taints::plan(&node("a", "Unknown", &foreign), START);
    assert_eq!(taint_keys(&unknown.writes[0]), ["dedicated:NoSchedule", "node.kubernetes.io/unreachable:NoSchedule"]);
    assert!(taints::plan(&node("a", "False", &not_ready), START).is_empty());
}

#[test]
fn a_silent_node_becomes_unknown_after_its_grace_and_not_before() {
    let mut monitor = Monitor::new(Settings::NODE_EVICTION_RATE);
    let others = || vec![node("b", "True", &json!([])), node("a", "True", &json!([]))];
    let mut caches = caches(others());
    assert!(monitor.sweep(&caches, START).writes.is_empty());
    // One of them goes on renewing its lease.
    for (seconds, expected) in [(45, 0), (55, 1)] {
        caches.put(Object::<Lease>::of(&json!({
            "metadata": { "namespace": LEASES, "name": "b" },
            "spec": { "renewTime": after(seconds).to_micro_text() },
        })));
        let plan = monitor.sweep(&caches, after(seconds));
        let reports = plan.writes.iter().filter(|write| write.is_report()).count();
        assert_eq!(reports, expected, "after {seconds} seconds: {:?}", plan.summary());
        // The patience with a node ends when it ends, and not at the next look that is due anyway.
        let next = if expected == 0 { PERIOD } else { SOON };
        assert_eq!(plan.requeue_after, Some(next), "after {seconds} seconds");
    }
    let mut monitor = Monitor::new(Settings::NODE_EVICTION_RATE);
    monitor.sweep(&caches, START);
    assert_eq!(monitor.sweep(&caches, after(47)).requeue_after, Some(Duration::from_secs(3)));
}

#[test]
fn pods_are_driven_off_only_where_new_ones_are_kept_away() {
    let mut monitor = Monitor::new(Settings::NODE_EVICTION_RATE);
    let mut caches = caches(vec![node("a", "Unknown", &json!([])), node("b", "True", &json!([]))]);
    let early = monitor.sweep(&caches, START);
    assert!(early.writes.is_empty(), "{:?}", early.summary());
    assert_eq!(early.requeue_after, Some(SOON));
    caches.put(silent("a"));
    let taints = taint_keys(&monitor.sweep(&caches, START).writes[0]);
    assert_eq!(taints, ["node.kubernetes.io/unreachable:NoSchedule", "node.kubernetes.io/unreachable:NoExecute"]);
}

#[test]
fn pods_of_a_node_that_is_not_ready_are_not_ready_unless_it_has_said_so_since() {
    let pod = |since: u64| -> Object<Pod> {
        Object::of(&json!({
            "metadata": { "name": "p", "namespace": "n", "uid": "p", "resourceVersion": "7" },
            "status": { "conditions": [
                { "type": "Initialized", "status": "True" },
                { "type": "Ready", "status": "True", "lastTransitionTime": after(since) },
            ] },
        }))
    };
    for (ready, since, expected) in
        [("True", 0, false), ("Unknown", 0, true), ("Unknown", 20, true), ("False", 0, true), ("False", 20, false)]
    {
        let node: Object<Node> = Object::of(&json!({
            "metadata": { "name": "a" },
            "status": { "conditions": [{ "type": "Ready", "status": ready, "lastTransitionTime": after(10) }] },
        }));
        let mut plan = Plan::default();
        pods::mark(&mut plan, &node, &[Arc::new(pod(since))], after(30));
        let marked = plan.writes.iter().map(|write| match write {
            Write::Patch { patch, .. } => patch.clone(),
            other => panic!("{other:?}"),
        });
        let conditions = json!([
            { "type": "Initialized", "status": "True" },
            { "type": "Ready", "status": "False", "lastTransitionTime": after(30) },
        ]);
        let metadata = json!({ "resourceVersion": "7", "uid": "p" });
        let patch = json!({ "metadata": metadata, "status": { "conditions": conditions } });
        let expected: Vec<Value> = expected.then_some(patch).into_iter().collect();
        assert_eq!(marked.collect::<Vec<_>>(), expected, "{ready} since 10, the pod since {since}");
        assert_eq!(plan.events.len(), expected.len());
    }
}

#[test]
fn where_everybody_is_silent_nobody_is_driven_off() {
    let mut monitor = Monitor::new(Settings::NODE_EVICTION_RATE);
    let everybody = caches(vec![silent("a"), silent("b")]);
    monitor.sweep(&everybody, START);
    let plan = monitor.sweep(&everybody, after(100));
    let evicting = |write: &Write| matches!(write, Write::Update { id, subresource: "", .. } if *id == Node::ID);
    assert!(!plan.writes.iter().any(evicting), "{:?}", plan.summary());
}

#[test]
fn pods_are_driven_off_one_node_after_the_other() {
    let mut monitor = Monitor::new(Settings::NODE_EVICTION_RATE);
    let ready = |name: &str| node(name, "True", &json!([]));
    let some = caches(vec![silent("a"), silent("b"), ready("c"), ready("d"), ready("e"), ready("f")]);
    let driven = |plan: &Plan| plan.writes.iter().filter(|write| !write.is_report()).count();
    assert_eq!(driven(&monitor.sweep(&some, START)), 1);
    assert_eq!(driven(&monitor.sweep(&some, after(5))), 1, "the first is still to be tainted, the second has to wait");
    assert_eq!(driven(&monitor.sweep(&some, after(10))), 2);
}

#[test]
fn turns_that_came_between_two_looks_are_caught_up_with() {
    let mut monitor = Monitor::new(1.0);
    let ready = (0..20).map(|number| node(&format!("ready-{number}"), "True", &json!([])));
    let dead = (0..10).map(|number| silent(&format!("dead-{number}")));
    let some = caches(ready.chain(dead).collect());
    let driven = |plan: &Plan| plan.writes.iter().filter(|write| !write.is_report()).count();
    assert_eq!(driven(&monitor.sweep(&some, START)), 1, "nothing is saved up while nobody is lost");
    assert_eq!(driven(&monitor.sweep(&some, after(5))), 6);
    assert_eq!(driven(&monitor.sweep(&some, after(9))), 10);
}
