//! Who has to go for whom.

use super::{Fixture, caches, merge, node, pod};
use kinds::{Object, PodDisruptionBudget};
use object::{Value, json};

/// A pod of so many cores and a priority.
fn ranked(name: &str, cpu: &str, priority: i32) -> Value {
    let container = json!({ "name": "c", "resources": { "requests": { "cpu": cpu } } });
    pod(name, &json!({ "spec": { "priority": priority, "containers": [container] } }))
}

fn on(node: &str, mut pod: Value, started: u32) -> Value {
    merge(
        &mut pod,
        &json!({ "spec": { "nodeName": node }, "status": { "startTime": format!("2026-01-01T00:00:{started:02}Z") } }),
    );
    pod
}

fn nodes(names: &[&str]) -> Vec<Value> {
    names.iter().map(|name| node(name, &json!({}))).collect()
}

#[test]
fn lesser_pods_make_room_and_as_few_as_do() {
    let mut fixture = Fixture::new(&nodes(&["n"]));
    for (name, cpu, priority) in [("a", "2", 1), ("b", "1", 2), ("c", "1", 3)] {
        fixture.pod(&on("n", ranked(name, cpu, priority), 0));
    }
    assert_eq!(fixture.place(&ranked("p", "1", 10)), "p wants n of a", "the least important goes, though it is larger");
    let mut fixture = Fixture::new(&nodes(&["n"]));
    for (name, cpu, priority) in [("a", "2", 1), ("b", "1", 2), ("c", "1", 3)] {
        fixture.pod(&on("n", ranked(name, cpu, priority), 0));
    }
    assert_eq!(fixture.place(&ranked("p", "3", 10)), "p wants n of b a");
}

#[test]
fn nobody_else_has_to_go_while_some_are_yet_to_be_told() {
    let mut fixture = Fixture::new(&nodes(&["m", "n"]));
    let there = [("a", "n", 1), ("b", "n", 1), ("c", "m", 2)];
    let there = there.map(|(name, node, priority)| on(node, ranked(name, "2", priority), 0));
    there.iter().for_each(|pod| fixture.pod(pod));
    fixture.pod(&on("m", ranked("large", "2", 50), 0));
    fixture.is_slow = true;
    let important = ranked("p", "4", 10);
    assert_eq!(fixture.place(&important), "p wants n of a b");
    fixture.remove(&there[0]);
    fixture.pass(600);
    assert!(fixture.decisions().is_empty(), "the other one is to be told yet, however long it takes");
    fixture.remove(&there[1]);
    assert!(fixture.decisions().is_empty());
    fixture.carried_out(&super::read(&important));
    assert_eq!(fixture.decisions(), ["p on n"], "what has happened meanwhile is not forgotten");
}

#[test]
fn equals_stay_and_so_do_pods_of_whoever_may_not_preempt() {
    let mut fixture = Fixture::new(&nodes(&["n"]));
    fixture.pod(&on("n", ranked("a", "4", 5), 0));
    let none = "0/1 nodes are available: 1 Insufficient cpu. \
        no new claims to deallocate, preemption: 0/1 nodes are available: 1 No preemption victims found for incoming pod.";
    assert_eq!(fixture.place(&ranked("p", "1", 5)), none);
    let mut polite = ranked("q", "1", 10);
    polite["spec"]["preemptionPolicy"] = json!("Never");
    let never = "0/1 nodes are available: 1 Insufficient cpu. no new claims to deallocate, preemption: not eligible due to preemptionPolicy=Never.";
    assert_eq!(fixture.place(&polite), never);
}

#[test]
fn the_node_is_chosen_where_it_does_least_harm() {
    // For each, the pods on two nodes as (priority, cores, started), and which of the nodes is the better one.
    for (a, b, expected) in [
        (vec![(5, "4", 0)], vec![(1, "4", 0)], "b"),
        (vec![(1, "2", 0), (1, "2", 0)], vec![(1, "4", 0)], "b"),
        (vec![(1, "4", 1)], vec![(1, "4", 9)], "b"),
        (vec![(1, "4", 9)], vec![(2, "4", 1)], "a"),
    ] {
        let mut fixture = Fixture::new(&nodes(&["a", "b"]));
        for (node, pods) in [("a", &a), ("b", &b)] {
            for (at, (priority, cpu, started)) in pods.iter().enumerate() {
                fixture.pod(&on(node, ranked(&format!("{node}{at}"), cpu, *priority), *started));
            }
        }
        let told = fixture.place(&ranked("p", "4", 10));
        assert!(told.starts_with(&format!("p wants {expected} ")), "{a:?} {b:?}: {told}");
    }
}

#[test]
fn budgets_are_kept_where_that_is_possible() {
    let mut caches = caches();
    caches.put::<PodDisruptionBudget>(Object::of(&json!({
        "metadata": { "name": "b", "namespace": "default" },
        "spec": { "selector": { "matchLabels": { "app": "guarded" } } },
        "status": { "disruptionsAllowed": 0 },
    })));
    let guarded = |mut pod: Value| {
        merge(&mut pod, &json!({ "metadata": { "labels": { "app": "guarded" } } }));
        pod
    };
    let mut fixture = Fixture::with(caches.clone(), &nodes(&["a", "b"]));
    fixture.pod(&on("a", guarded(ranked("a0", "4", 1)), 0));
    fixture.pod(&on("b", ranked("b0", "4", 5), 0));
    assert_eq!(fixture.place(&ranked("p", "1", 10)), "p wants b of b0", "rather a more important pod than a budget");
    let mut fixture = Fixture::with(caches.clone(), &nodes(&["a"]));
    fixture.pod(&on("a", guarded(ranked("a0", "2", 1)), 0));
    fixture.pod(&on("a", ranked("a1", "2", 5), 0));
    assert_eq!(fixture.place(&ranked("p", "2", 10)), "p wants a of a1", "on one node as well");
    let mut fixture = Fixture::with(caches, &nodes(&["a"]));
    fixture.pod(&on("a", guarded(ranked("a0", "4", 1)), 0));
    assert_eq!(fixture.place(&ranked("p", "4", 10)), "p wants a of a0", "if there is no other way, it is broken");
}

#[test]
fn the_room_is_kept_for_whom_it_was_made() {
    let mut fixture = Fixture::new(&nodes(&["n"]));
    let victim = on("n", ranked("victim", "4", 1), 0);
    fixture.pod(&victim);
    assert_eq!(fixture.place(&ranked("p", "4", 10)), "p wants n of victim");
    fixture.remove(&victim);
    fixture.pod(&ranked("late", "4", 5));
    let told = fixture.decisions();
    assert!(told[0].starts_with("0/1 nodes are available: 1 Insufficient cpu."), "{told:?}");
    assert_eq!(told[1], "p on n", "{told:?}");
}

#[test]
fn while_victims_are_leaving_nobody_else_has_to_go() {
    let mut fixture = Fixture::new(&nodes(&["n", "m"]));
    let victim = on("n", ranked("victim", "4", 1), 0);
    fixture.pod(&victim);
    fixture.pod(&on("m", ranked("other", "4", 1), 9));
    let first = fixture.place(&ranked("p", "4", 10));
    assert_eq!(first, "p wants m of other");
    let mut leaving = on("m", ranked("other", "4", 1), 9);
    merge(
        &mut leaving,
        &json!({
            "metadata": { "deletionTimestamp": "2026-01-01T00:01:00Z" },
            "status": { "conditions": [{ "type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler" }] },
        }),
    );
    fixture.pod(&leaving);
    let mut waiting = ranked("p", "4", 10);
    waiting["status"] = json!({ "nominatedNodeName": "m" });
    fixture.pod(&waiting);
    fixture.pass(301);
    let told = fixture.decisions();
    assert_eq!(told.len(), 1);
    assert!(told[0].ends_with("preemption: not eligible due to a terminating pod on the nominated node."), "{told:?}");
}

#[test]
fn pods_that_keep_others_away_can_be_made_to_go() {
    let term = json!({ "labelSelector": { "matchLabels": { "app": "web" } }, "topologyKey": "kubernetes.io/hostname" });
    let apart =
        json!({ "affinity": { "podAntiAffinity": { "requiredDuringSchedulingIgnoredDuringExecution": [term] } } });
    let mut fixture = Fixture::new(&nodes(&["n"]));
    let mut loner = on("n", ranked("loner", "1", 1), 0);
    merge(&mut loner, &json!({ "spec": apart }));
    fixture.pod(&loner);
    let mut web = ranked("p", "1", 10);
    merge(&mut web, &json!({ "metadata": { "labels": { "app": "web" } } }));
    assert_eq!(fixture.place(&web), "p wants n of loner");
}

#[test]
fn when_the_pod_that_room_was_kept_for_is_gone_others_may_have_it() {
    let mut fixture = Fixture::new(&nodes(&["n"]));
    let victim = on("n", ranked("victim", "4", 1), 0);
    fixture.pod(&victim);
    let important = ranked("p", "4", 10);
    assert_eq!(fixture.place(&important), "p wants n of victim");
    fixture.remove(&victim);
    let told = fixture.place(&ranked("late", "4", 5));
    assert!(told.starts_with("0/1 nodes are available: 1 Insufficient cpu."), "{told}");
    fixture.remove(&important);
    assert_eq!(fixture.decisions(), ["late on n"]);
}

#[test]
fn a_promise_that_cannot_be_kept_any_more_keeps_nobody_away() {
    let mut fixture = Fixture::new(&nodes(&["n"]));
    let victim = on("n", ranked("victim", "4", 1), 0);
    fixture.pod(&victim);
    assert_eq!(fixture.place(&ranked("p", "4", 10)), "p wants n of victim");
    // Somebody who matters more has taken part of the room.
    fixture.remove(&victim);
    fixture.pod(&on("n", ranked("first", "2", 20), 0));
    fixture.pod(&ranked("small", "1", 5));
    fixture.pass(301);
    let told = fixture.decisions();
    assert!(told.contains(&"small on n".to_owned()), "{told:?}");
}

#[test]
fn where_a_pod_is_to_go_may_be_said_by_others() {
    let mut fixture = Fixture::new(&nodes(&["a", "b"]));
    for name in ["a", "b"] {
        fixture.pod(&on(name, ranked(&format!("there-{name}"), "4", 10), 0));
    }
    let waiting = ranked("p", "4", 5);
    let told = fixture.place(&waiting);
    assert!(told.starts_with("0/2 nodes are available: 2 Insufficient cpu."), "{told}");
    for name in ["a", "b"] {
        let mut nominated = waiting.clone();
        nominated["status"] = json!({ "nominatedNodeName": name });
        fixture.update(&waiting, &nominated);
        fixture.remove(&on("a", ranked("there-a", "4", 10), 0));
        fixture.remove(&on("b", ranked("there-b", "4", 10), 0));
        // Whoever matters no more does not take the place, though both nodes are free.
        fixture.pass(11);
        let mut told = vec![fixture.place(&ranked("other", "4", 5))];
        told.extend(fixture.decisions());
        assert!(told.contains(&format!("p on {name}")), "{told:?}");
        let taken = if name == "a" { "b" } else { "a" };
        assert!(told.contains(&format!("other on {taken}")), "{told:?}");
        fixture = Fixture::new(&nodes(&["a", "b"]));
        fixture.pod(&on("a", ranked("there-a", "4", 10), 0));
        fixture.pod(&on("b", ranked("there-b", "4", 10), 0));
        fixture.place(&waiting);
    }
}
