//! Who is next, who waits for what, and for how long.

use super::{Fixture, asking, in_zone, node, pod};
use object::json;

fn small(name: &str) -> object::Value {
    node(name, &json!({ "status": { "allocatable": { "cpu": "1" } } }))
}

/// A node that is full, and the pod that fills it.
fn full() -> (Fixture, object::Value) {
    let mut fixture = Fixture::new(&[small("n")]);
    let mut there = asking("there", "1");
    there["spec"]["nodeName"] = json!("n");
    fixture.pod(&there);
    (fixture, there)
}

#[test]
fn the_most_important_come_first_then_who_waited_longest() {
    let mut fixture = Fixture::new(&[node("n", &json!({}))]);
    for (name, priority) in [("a", 0), ("b", 10), ("c", 0), ("d", 10)] {
        fixture.pod(&pod(name, &json!({ "spec": { "priority": priority } })));
    }
    assert_eq!(fixture.decisions(), ["b on n", "d on n", "a on n", "c on n"]);
}

#[test]
fn a_pod_with_gates_or_for_another_scheduler_is_left_alone() {
    let mut fixture = Fixture::new(&[node("n", &json!({}))]);
    fixture.pod(&pod("gated", &json!({ "spec": { "schedulingGates": [{ "name": "wait" }] } })));
    fixture.pod(&pod("foreign", &json!({ "spec": { "schedulerName": "another" } })));
    assert!(fixture.decisions().is_empty());
    fixture.pod(&pod("gated", &json!({ "spec": { "schedulingGates": [] } })));
    assert_eq!(fixture.decisions(), ["gated on n"]);
}

#[test]
fn what_cannot_be_placed_is_not_tried_until_something_may_help() {
    let mut fixture = Fixture::new(&[small("n")]);
    assert!(fixture.place(&asking("p", "2")).starts_with("0/1"));
    fixture.pass(60);
    assert!(fixture.decisions().is_empty(), "nothing has changed");
    fixture.node(&small("other"));
    assert!(fixture.decisions().is_empty(), "a node that is too small helps nobody");
    fixture.node(&node("large", &json!({})));
    assert_eq!(fixture.decisions(), ["p on large"]);
}

#[test]
fn room_on_a_node_helps_whoever_fits_there() {
    let (mut fixture, there) = full();
    assert!(fixture.place(&asking("large", "2")).starts_with("0/1"));
    assert!(fixture.place(&asking("fitting", "1")).starts_with("0/1"));
    fixture.pass(60);
    fixture.remove(&there);
    assert_eq!(fixture.decisions(), ["fitting on n"]);
}

#[test]
fn of_pods_that_ask_for_the_same_one_is_tried_for_all() {
    let (mut fixture, there) = full();
    for number in 0..20 {
        assert!(fixture.place(&asking(&format!("p{number}"), "1")).starts_with("0/1"), "each is told why it waits");
    }
    fixture.pass(60);
    fixture.remove(&there);
    assert_eq!(fixture.decisions(), ["p0 on n"], "who comes too late has nothing new to say");
    fixture.node(&node("large", &json!({})));
    assert_eq!(fixture.decisions(), ["p1 on large", "p2 on large", "p3 on large", "p4 on large"]);
}

#[test]
fn who_goes_ahead_and_is_gone_before_it_is_tried_leaves_its_turn_to_the_next() {
    let (mut fixture, there) = full();
    let waiting = ["p", "q"].map(|name| asking(name, "1"));
    waiting.iter().for_each(|pod| assert!(fixture.place(pod).starts_with("0/1")));
    fixture.pass(60);
    fixture.remove(&there);
    // Something more important takes its time, so that nobody else has been tried yet.
    fixture.pod(&pod("first", &json!({ "spec": { "priority": 1 } })));
    assert_eq!(fixture.next().map(|decision| super::told(&decision)).as_deref(), Some("first on n"));
    fixture.remove(&waiting[0]);
    assert_eq!(fixture.decisions(), ["q on n"]);
}

#[test]
fn whoever_waits_for_others_is_helped_by_them_alone() {
    let term = json!({ "labelSelector": { "matchLabels": { "app": "db" } }, "topologyKey": "kubernetes.io/hostname" });
    let affinity = json!({ "podAffinity": { "requiredDuringSchedulingIgnoredDuringExecution": [term] } });
    let mut fixture = Fixture::new(&[in_zone("a", "x"), in_zone("b", "x")]);
    assert!(fixture.place(&pod("p", &json!({ "spec": { "affinity": affinity } }))).starts_with("0/2"));
    fixture.pass(60);
    let there = |name: &str, app: &str| {
        pod(name, &json!({ "metadata": { "labels": { "app": app } }, "spec": { "nodeName": "b" } }))
    };
    fixture.pod(&there("db", "db"));
    assert_eq!(fixture.decisions(), ["p on b"]);
}

#[test]
fn whoever_waits_for_others_is_helped_when_these_are_placed() {
    let term = json!({ "labelSelector": { "matchLabels": { "app": "db" } }, "topologyKey": "kubernetes.io/hostname" });
    let affinity = json!({ "podAffinity": { "requiredDuringSchedulingIgnoredDuringExecution": [term] } });
    let mut fixture = Fixture::new(&[node("n", &json!({}))]);
    assert!(fixture.place(&pod("p", &json!({ "spec": { "affinity": affinity } }))).starts_with("0/1"));
    fixture.pod(&pod("db", &json!({ "metadata": { "labels": { "app": "db" } } })));
    assert_eq!(fixture.decisions(), ["db on n", "p on n"]);
}

#[test]
fn a_pod_that_was_not_bound_backs_off_and_gives_its_room_back() {
    let mut caches = super::caches();
    let p = asking("p", "1");
    caches.put::<kinds::Pod>(kinds::Object::of(&p));
    let mut fixture = Fixture::with(caches, &[small("n")]);
    assert_eq!(fixture.place(&p), "p on n");
    assert!(fixture.place(&asking("q", "1")).starts_with("0/1"));
    fixture.fail(&p);
    assert_eq!(fixture.decisions(), ["q on n"], "who waits gets the room");
    fixture.pass(1);
    assert!(fixture.decisions()[0].starts_with("0/1"));
}

#[test]
fn after_five_minutes_everything_is_tried_again() {
    let mut fixture = Fixture::new(&[small("n")]);
    assert!(fixture.place(&asking("p", "2")).starts_with("0/1"));
    fixture.pass(299);
    assert!(fixture.decisions().is_empty());
    fixture.pass(1);
    assert_eq!(fixture.decisions().len(), 1);
}

#[test]
fn a_pod_that_asks_for_less_is_tried_at_once() {
    let mut fixture = Fixture::new(&[small("n")]);
    assert!(fixture.place(&asking("p", "2")).starts_with("0/1"));
    fixture.pod(&asking("p", "1"));
    assert_eq!(fixture.decisions(), ["p on n"]);
}
