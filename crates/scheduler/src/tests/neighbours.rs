//! Pods that want to be together, apart, or evenly spread.

use super::{Fixture, caches, in_zone, merge, node, pod};
use kinds::{Object, ReplicaSet};
use object::{Value, json};
use std::collections::BTreeMap;

const ZONE: &str = "topology.kubernetes.io/zone";
const HOST: &str = "kubernetes.io/hostname";
const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";
const PREFERRED: &str = "preferredDuringSchedulingIgnoredDuringExecution";

fn zones() -> Vec<Value> {
    vec![in_zone("x1", "x"), in_zone("x2", "x"), in_zone("y1", "y"), in_zone("y2", "y")]
}

fn labelled(name: &str, app: &str, spec: &Value) -> Value {
    pod(name, &json!({ "metadata": { "labels": { "app": app } }, "spec": spec }))
}

fn on(node: &str, mut pod: Value) -> Value {
    pod["spec"]["nodeName"] = json!(node);
    pod
}

fn term(app: &str, topology: &str) -> Value {
    json!({ "labelSelector": { "matchLabels": { "app": app } }, "topologyKey": topology })
}

fn near(kind: &str, terms: &[Value]) -> Value {
    json!({ "affinity": { kind: { REQUIRED: terms } } })
}

/// The zones that so many pods of a spec went to, each with how many.
fn spread(fixture: &mut Fixture, count: usize, spec: &Value) -> BTreeMap<char, usize> {
    let mut zones = BTreeMap::new();
    for number in 0..count {
        let told = fixture.place(&labelled(&format!("p{number}"), "web", spec));
        let (_, node) = told.split_once(" on ").unwrap_or_else(|| panic!("{told}"));
        *zones.entry(node.chars().next().unwrap()).or_default() += 1;
    }
    zones
}

#[test]
fn pods_that_must_be_apart_are_never_in_one_domain() {
    let apart = near("podAntiAffinity", &[term("web", ZONE)]);
    let mut fixture = Fixture::new(&zones());
    assert_eq!(spread(&mut fixture, 2, &apart), [('x', 1), ('y', 1)].into());
    let refused = fixture.place(&labelled("p3", "web", &apart));
    assert!(
        refused.starts_with("0/4 nodes are available: 4 node(s) didn't match pod anti-affinity rules."),
        "{refused}"
    );
}

#[test]
fn those_who_are_there_may_not_want_newcomers() {
    let mut fixture = Fixture::new(&[in_zone("x1", "x")]);
    fixture.pod(&on("x1", labelled("loner", "loner", &near("podAntiAffinity", &[term("web", ZONE)]))));
    let refused = fixture.place(&labelled("p", "web", &json!({})));
    let reason = "0/1 nodes are available: 1 node(s) didn't satisfy existing pods anti-affinity rules.";
    assert!(refused.starts_with(reason), "{refused}");
    assert_eq!(fixture.place(&labelled("q", "other", &json!({}))), "q on x1");
}

#[test]
fn pods_that_must_be_together_go_where_the_others_are() {
    let together = near("podAffinity", &[term("db", ZONE)]);
    let mut fixture = Fixture::new(&zones());
    let refused = fixture.place(&labelled("p", "web", &together));
    assert!(refused.starts_with("0/4 nodes are available: 4 node(s) didn't match pod affinity rules."), "{refused}");
    fixture.pod(&on("y2", labelled("db", "db", &json!({}))));
    let told = fixture.decisions();
    assert!(told == ["p on y1"] || told == ["p on y2"], "{told:?}");
}

#[test]
fn the_first_of_pods_that_belong_together_goes_anywhere_and_the_others_follow() {
    let together = near("podAffinity", &[term("web", ZONE)]);
    let went = spread(&mut Fixture::new(&zones()), 6, &together);
    assert_eq!(went.into_values().collect::<Vec<_>>(), [6]);
}

#[test]
fn terms_look_into_the_namespaces_they_name() {
    let mut elsewhere = term("db", ZONE);
    elsewhere["namespaceSelector"] = json!({ "matchLabels": { "team": "data" } });
    let together = near("podAffinity", &[elsewhere]);
    let mut fixture = Fixture::new(&zones());
    fixture.namespace(&json!({ "metadata": { "name": "data", "labels": { "team": "data" } } }));
    let db = |namespace: &str, node: &str| {
        let mut db = on(node, labelled("db", "db", &json!({})));
        merge(&mut db, &json!({ "metadata": { "namespace": namespace } }));
        db
    };
    fixture.pod(&db("default", "x1"));
    assert!(fixture.place(&labelled("p", "web", &together)).starts_with("0/4"));
    fixture.pod(&db("data", "y1"));
    let told = fixture.decisions();
    assert!(told == ["p on y1"] || told == ["p on y2"], "{told:?}");
}

#[test]
fn wishes_count_both_ways() {
    for (kind, expected) in [("podAffinity", 'x'), ("podAntiAffinity", 'y')] {
        let wish =
            json!({ "affinity": { kind: { PREFERRED: [{ "weight": 50, "podAffinityTerm": term("db", ZONE) }] } } });
        let mut fixture = Fixture::new(&zones());
        fixture.pod(&on("x1", labelled("db", "db", &json!({}))));
        assert_eq!(spread(&mut fixture, 1, &wish), [(expected, 1)].into(), "{kind}");
        // The same wish of a pod that is there, about one that comes.
        let wish =
            json!({ "affinity": { kind: { PREFERRED: [{ "weight": 50, "podAffinityTerm": term("web", ZONE) }] } } });
        let mut fixture = Fixture::new(&zones());
        fixture.pod(&on("x1", labelled("db", "db", &wish)));
        assert_eq!(spread(&mut fixture, 1, &json!({})), [(expected, 1)].into(), "{kind} of a resident");
    }
}

fn constraint(topology: &str, more: &Value) -> Value {
    let mut constraint = json!({
        "topologyKey": topology, "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": { "matchLabels": { "app": "web" } },
    });
    merge(&mut constraint, more);
    json!({ "topologySpreadConstraints": [constraint] })
}

#[test]
fn a_hard_spread_keeps_the_difference_within_bounds() {
    assert_eq!(spread(&mut Fixture::new(&zones()), 6, &constraint(ZONE, &json!({}))), [('x', 3), ('y', 3)].into());
    // A zone that is full holds the others back.
    let nodes =
        [in_zone("x1", "x"), merged(in_zone("y1", "y"), &json!({ "status": { "allocatable": { "pods": "1" } } }))];
    let mut fixture = Fixture::new(&nodes);
    assert_eq!(spread(&mut fixture, 3, &constraint(ZONE, &json!({}))), [('x', 2), ('y', 1)].into());
    let refused = fixture.place(&labelled("late", "web", &constraint(ZONE, &json!({}))));
    let reasons = "1 Too many pods, 1 node(s) didn't match pod topology spread constraints.";
    assert!(refused.starts_with(&format!("0/2 nodes are available: {reasons}")), "{refused}");
}

fn merged(mut object: Value, more: &Value) -> Value {
    merge(&mut object, more);
    object
}

#[test]
fn nodes_without_the_label_are_no_domain() {
    let mut fixture = Fixture::new(&[node("n", &json!({}))]);
    let refused = fixture.place(&labelled("p", "web", &constraint(ZONE, &json!({}))));
    let reason = "1 node(s) didn't match pod topology spread constraints (missing required label).";
    assert!(refused.starts_with(&format!("0/1 nodes are available: {reason}")), "{refused}");
}

#[test]
fn too_few_domains_count_as_empty_ones() {
    let mut fixture = Fixture::new(&zones());
    let three = constraint(ZONE, &json!({ "minDomains": 3 }));
    assert_eq!(spread(&mut fixture, 2, &three), [('x', 1), ('y', 1)].into());
    assert!(fixture.place(&labelled("p", "web", &three)).starts_with("0/4"));
}

#[test]
fn only_nodes_the_pod_could_be_on_count_unless_it_says_otherwise() {
    // Both zones are there, but the pod is only wanted in one.
    let only_x = json!({ "nodeSelector": { ZONE: "x" } });
    let honoring = merged(constraint(ZONE, &json!({})), &only_x);
    assert_eq!(spread(&mut Fixture::new(&zones()), 3, &honoring), [('x', 3)].into());
    let ignoring = merged(constraint(ZONE, &json!({ "nodeAffinityPolicy": "Ignore" })), &only_x);
    let mut fixture = Fixture::new(&zones());
    assert_eq!(spread(&mut fixture, 1, &ignoring), [('x', 1)].into());
    assert!(fixture.place(&labelled("p", "web", &ignoring)).starts_with("0/4"));
}

#[test]
fn a_soft_spread_gives_way() {
    let soft = constraint(ZONE, &json!({ "whenUnsatisfiable": "ScheduleAnyway" }));
    assert_eq!(spread(&mut Fixture::new(&zones()), 4, &soft), [('x', 2), ('y', 2)].into());
    assert_eq!(spread(&mut Fixture::new(&zones()[..2]), 3, &soft), [('x', 3)].into());
}

#[test]
fn a_node_outside_of_the_topology_is_the_last_choice_unless_nobody_asked_for_it() {
    // The one without a zone is empty, and larger.
    let outside = node("o", &json!({ "status": { "allocatable": { "cpu": "8", "memory": "16Gi" } } }));
    let nodes = [in_zone("a", "x"), outside];
    let there = on("a", labelled("there", "web", &json!({})));
    let soft = constraint(ZONE, &json!({ "whenUnsatisfiable": "ScheduleAnyway" }));
    for (spec, expected) in [(soft, "p on a"), (json!({}), "p on o")] {
        let mut fixture = Fixture::new(&nodes);
        fixture.pod(&there);
        assert_eq!(fixture.place(&labelled("p", "web", &spec)), expected, "{spec:?}");
    }
}

#[test]
fn pods_of_a_set_spread_over_nodes_and_zones_by_themselves() {
    let mut caches = caches();
    caches.put::<ReplicaSet>(Object::of(&json!({
        "metadata": { "name": "web", "namespace": "default" },
        "spec": { "selector": { "matchLabels": { "app": "web" } } },
    })));
    let mut fixture = Fixture::with(caches, &zones());
    let owner = json!({ "kind": "ReplicaSet", "apiVersion": "apps/v1", "name": "web", "uid": "u", "controller": true });
    let mut nodes = BTreeMap::new();
    for number in 0..8 {
        let mut pod = labelled(&format!("p{number}"), "web", &json!({}));
        pod["metadata"]["ownerReferences"] = json!([owner]);
        let told = fixture.place(&pod);
        *nodes.entry(told.split_once(" on ").unwrap().1.to_owned()).or_insert(0) += 1;
    }
    assert_eq!(nodes.into_values().collect::<Vec<_>>(), [2, 2, 2, 2]);
}

#[test]
fn hosts_are_a_topology_like_any_other() {
    let apart = near("podAntiAffinity", &[term("web", HOST)]);
    let mut fixture = Fixture::new(&zones());
    assert_eq!(spread(&mut fixture, 4, &apart), [('x', 2), ('y', 2)].into());
    assert!(fixture.place(&labelled("p5", "web", &apart)).starts_with("0/4"));
}

#[test]
fn whoever_is_leaving_does_not_count_for_the_spread() {
    let mut fixture = Fixture::new(&[in_zone("x1", "x"), in_zone("y1", "y")]);
    let mut leaving = on("x1", labelled("old", "web", &json!({})));
    fixture.pod(&on("y1", labelled("other", "web", &json!({}))));
    leaving["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    fixture.pod(&leaving);
    assert_eq!(fixture.place(&labelled("p", "web", &constraint(ZONE, &json!({})))), "p on x1");
}

#[test]
fn a_label_that_somebody_begins_to_look_at_counts_from_then_on() {
    let nodes = ["a", "b", "c"].map(|name| node(name, &json!({})));
    let mut fixture = Fixture::new(&nodes);
    let numbered = |name: &str, index: &str| pod(name, &json!({ "metadata": { "labels": { "index": index } } }));
    for (name, index, at) in [("p-0", "0", "a"), ("p-1", "1", "b"), ("p-2", "2", "c")] {
        let mut pod = numbered(name, index);
        merge(&mut pod, &json!({ "spec": { "nodeName": at } }));
        fixture.pod(&pod);
    }
    let shapes = |fixture: &Fixture| {
        let spots = (0..3).map(|slot| fixture.scheduler.cluster.spot(slot));
        let shapes: std::collections::BTreeSet<u32> = spots.map(|spot| spot.residents[0].shape.number).collect();
        shapes.len()
    };
    assert_eq!(shapes(&fixture), 1, "what nobody looks at makes no difference");
    let near = |name: &str, kind: &str, values: &[&str]| {
        let expression = json!({ "key": "index", "operator": "In", "values": values });
        let term = json!({
            "topologyKey": "kubernetes.io/hostname", "labelSelector": { "matchExpressions": [expression] },
        });
        let required = json!({ "requiredDuringSchedulingIgnoredDuringExecution": [term] });
        pod(name, &json!({ "spec": { "affinity": { kind: required } } }))
    };
    assert_eq!(fixture.place(&near("beside", "podAffinity", &["1"])), "beside on b");
    assert_eq!(shapes(&fixture), 3);
    assert_eq!(fixture.place(&near("apart", "podAntiAffinity", &["0", "1"])), "apart on c");
    let refusal = fixture.place(&numbered("p-3", "0"));
    assert!(!refusal.starts_with("p-3 on c"), "whoever keeps such pods away is heard: {refusal}");
}

#[test]
fn pods_that_wait_are_told_apart_when_somebody_looks_at_their_labels() {
    let full = node("a", &json!({ "status": { "allocatable": { "pods": "0" } } }));
    let mut fixture = Fixture::new(&[full]);
    for index in ["0", "1"] {
        let labels = json!({ "metadata": { "labels": { "index": index } } });
        assert!(fixture.place(&pod(&format!("p-{index}"), &labels)).starts_with("0/1"));
    }
    let expression = json!({ "key": "index", "operator": "In", "values": ["0"] });
    let term =
        json!({ "topologyKey": "kubernetes.io/hostname", "labelSelector": { "matchExpressions": [expression] } });
    let apart = json!({ "podAntiAffinity": { "requiredDuringSchedulingIgnoredDuringExecution": [term] } });
    fixture.pod(&pod("there", &json!({ "spec": { "nodeName": "b", "affinity": apart } })));
    fixture.node(&node("b", &json!({})));
    fixture.pass(10);
    let decisions = fixture.decisions();
    let placed: Vec<&String> = decisions.iter().filter(|decision| decision.contains(" on ")).collect();
    assert_eq!(placed, ["p-1 on b"], "p-0 is kept away and the other is not: {decisions:?}");
}

/// Sets of pods on large nodes, each pod a small part of one, with the defaults: what nodes hold in the end.
#[test]
fn pods_of_many_sets_are_spread_evenly_over_large_nodes() {
    const NODES: usize = 250;
    const SETS: usize = 150;
    let mut caches = caches();
    for set in 0..SETS {
        let name = format!("set-{set}");
        caches.put::<ReplicaSet>(Object::of(&json!({
            "metadata": { "name": name, "namespace": "default" },
            "spec": { "selector": { "matchLabels": { "app": name } } },
        })));
    }
    let large = json!({ "status": { "allocatable": { "cpu": "32", "memory": "256Gi", "pods": "110" } } });
    let nodes: Vec<Value> = (0..NODES).map(|number| node(&format!("node-{number}"), &large)).collect();
    let mut fixture = Fixture::with(caches, &nodes);
    for number in 0..NODES * 30 {
        let set = format!("set-{}", number / (NODES * 30 / SETS));
        let owner =
            json!({ "apiVersion": "apps/v1", "kind": "ReplicaSet", "name": set, "uid": set, "controller": true });
        let container = json!({ "name": "c", "resources": { "requests": { "cpu": "100m", "memory": "128Mi" } } });
        fixture.pod(&pod(&format!("pod-{number}"), &json!({
            "metadata": { "labels": { "app": set }, "ownerReferences": [owner] }, "spec": { "containers": [container] },
        })));
    }
    let mut counts = std::collections::BTreeMap::new();
    for decision in fixture.decisions() {
        *counts.entry(decision.rsplit(' ').next().unwrap_or_default().to_owned()).or_insert(0) += 1;
    }
    let (least, most) = (counts.values().min(), counts.values().max());
    assert!(least >= Some(&24) && most <= Some(&36), "{least:?} to {most:?} on {} nodes", counts.len());
}

/// One node, a loner on it, and a pod that waits because the two must be apart; the loner is on its way or there.
fn kept_away(is_there: bool) -> (Fixture, Value) {
    let mut fixture = Fixture::new(&[in_zone("x1", "x")]);
    let loner = labelled("loner", "loner", &json!({}));
    fixture.scheduler.cluster.caches.put::<kinds::Pod>(Object::of(&loner));
    assert_eq!(fixture.place(&loner), "loner on x1");
    if is_there {
        fixture.update(&loner, &on("x1", loner.clone()));
    }
    let apart = near("podAntiAffinity", &[term("loner", ZONE)]);
    let shy = labelled("shy", "shy", &merged(apart, &json!({ "tolerations": [{ "operator": "Exists" }] })));
    let refused = fixture.place(&shy);
    assert!(refused.starts_with("0/1"), "{refused}");
    fixture.pass(60);
    assert!(fixture.decisions().is_empty(), "nothing has changed");
    (fixture, loner)
}

#[test]
fn who_is_kept_away_by_a_pod_may_come_when_that_cannot_be_bound() {
    let (mut fixture, loner) = kept_away(false);
    fixture.node(&merged(in_zone("x1", "x"), &json!({ "spec": { "unschedulable": true } })));
    assert!(fixture.decisions().iter().all(|told| told.starts_with("0/1")));
    fixture.pass(60);
    fixture.fail(&loner);
    assert_eq!(fixture.decisions(), ["shy on x1"]);
}

#[test]
fn labels_that_a_pod_was_given_on_its_way_count() {
    let (mut fixture, loner) = kept_away(false);
    fixture.update(&loner, &merged(on("x1", loner.clone()), &json!({ "metadata": { "labels": { "app": "friend" } } })));
    assert_eq!(fixture.decisions(), ["shy on x1"]);
}

#[test]
fn who_is_kept_away_by_a_pod_may_come_when_that_is_given_other_labels() {
    let (mut fixture, loner) = kept_away(true);
    let there = on("x1", loner);
    fixture.update(&there, &merged(there.clone(), &json!({ "metadata": { "labels": { "app": "friend" } } })));
    assert_eq!(fixture.decisions(), ["shy on x1"]);
}
