//! Pods that are placed by profiles of their own.

use super::{Fixture, asking, caches, in_zone, merge, node, pod};
use crate::Configuration;
use kinds::{Object, Service};
use object::{Value, json};
use runtime::{Caches, Change};
use std::sync::Arc;

/// Two profiles: the usual one, and "other" with whatever.
fn configured(other: &Value, caches: Caches, nodes: &[Value]) -> Fixture {
    let mut profile = json!({ "schedulerName": "other" });
    merge(&mut profile, other);
    let file = json!({
        "apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration",
        "profiles": [{ "schedulerName": "default-scheduler" }, profile],
    });
    Fixture::configured(&Configuration::read(&file).expect("a file without mistakes"), caches, nodes)
}

fn by_other(mut pod: Value) -> Value {
    merge(&mut pod, &json!({ "spec": { "schedulerName": "other" } }));
    pod
}

fn disabled(plugin: &str) -> Value {
    json!({ "plugins": { "multiPoint": { "disabled": [{ "name": plugin }] } } })
}

fn with_args(plugin: &str, args: &Value) -> Value {
    json!({ "pluginConfig": [{ "name": plugin, "args": args }] })
}

#[test]
fn pods_of_a_scheduler_that_is_not_here_are_left_alone() {
    let mut fixture = configured(&json!({}), caches(), &[node("n", &json!({}))]);
    fixture.pod(&pod("p", &json!({ "spec": { "schedulerName": "third" } })));
    assert_eq!(fixture.decisions(), Vec::<String>::new());
    assert_eq!(fixture.place(&by_other(pod("q", &json!({})))), "q on n");
}

#[test]
fn a_filter_that_is_disabled_refuses_nobody() {
    let tainted = json!({ "spec": { "taints": [{ "key": "k", "value": "v", "effect": "NoSchedule" }] } });
    let cordoned = json!({ "spec": { "unschedulable": true } });
    let port = json!({ "spec": { "containers": [{ "name": "c", "ports": [{ "hostPort": 80, "protocol": "TCP" }] }] } });
    let apart = json!({ "spec": { "affinity": { "podAntiAffinity": { "requiredDuringSchedulingIgnoredDuringExecution": [
        { "topologyKey": "kubernetes.io/hostname", "labelSelector": {} },
    ] } } } });
    let spread = json!({ "spec": { "topologySpreadConstraints": [
        { "maxSkew": 1, "topologyKey": "rack", "whenUnsatisfiable": "DoNotSchedule", "labelSelector": {} },
    ] } });
    let selector = json!({ "spec": { "nodeSelector": { "disk": "ssd" } } });
    for (plugin, node_is, pod_asks) in [
        ("TaintToleration", &tainted, &json!({})),
        ("NodeUnschedulable", &cordoned, &json!({})),
        ("NodePorts", &json!({}), &port),
        ("InterPodAffinity", &json!({}), &apart),
        ("PodTopologySpread", &json!({}), &spread),
        ("NodeAffinity", &json!({}), &selector),
    ] {
        let mut fixture = configured(&disabled(plugin), caches(), &[node("n", node_is)]);
        let mut there = pod("there", pod_asks);
        merge(&mut there, &json!({ "spec": { "nodeName": "n" } }));
        fixture.pod(&there);
        let refusal = fixture.place(&pod("p", pod_asks));
        assert!(refusal.starts_with("0/1 nodes are available"), "{plugin}: {refusal}");
        assert_eq!(fixture.place(&by_other(pod("q", pod_asks))), "q on n", "{plugin}");
    }
}

#[test]
fn nodes_are_filled_one_after_the_other_where_the_profile_wants_it() {
    let most = with_args("NodeResourcesFit", &json!({ "scoringStrategy": { "type": "MostAllocated" } }));
    let nodes = [node("a", &json!({})), node("b", &json!({}))];
    let mut fixture = configured(&most, caches(), &nodes);
    let mut first = asking("first", "1");
    merge(&mut first, &json!({ "spec": { "nodeName": "a" } }));
    fixture.pod(&first);
    assert_eq!(fixture.place(&asking("p", "1")), "p on b");
    fixture.remove(&asking("p", "1"));
    assert_eq!(fixture.place(&by_other(asking("q", "1"))), "q on a");
}

#[test]
fn a_shape_says_how_full_nodes_should_be() {
    let points = json!([
        { "utilization": 0, "score": 0 }, { "utilization": 50, "score": 10 }, { "utilization": 100, "score": 0 },
    ]);
    let strategy = json!({
        "type": "RequestedToCapacityRatio", "resources": [{ "name": "cpu", "weight": 1 }],
        "requestedToCapacityRatio": { "shape": points },
    });
    let mut profile = with_args("NodeResourcesFit", &json!({ "scoringStrategy": strategy }));
    merge(&mut profile, &disabled("NodeResourcesBalancedAllocation"));
    let nodes = ["empty", "half", "full"].map(|name| node(name, &json!({})));
    let mut fixture = configured(&profile, caches(), &nodes);
    for (node, cpu) in [("half", "1500m"), ("full", "3500m")] {
        let mut there = asking(&format!("on-{node}"), cpu);
        merge(&mut there, &json!({ "spec": { "nodeName": node } }));
        fixture.pod(&there);
    }
    assert_eq!(fixture.place(&by_other(asking("p", "500m"))), "p on half");
}

#[test]
fn resources_that_somebody_else_sees_to_are_not_counted() {
    let gpu = json!({ "name": "c", "resources": { "requests": { "example.com/gpu": "1" } } });
    let wants = |name: &str| pod(name, &json!({ "spec": { "containers": [gpu] } }));
    let ignores = with_args("NodeResourcesFit", &json!({ "ignoredResources": ["example.com/gpu"] }));
    let mut fixture = configured(&ignores, caches(), &[node("n", &json!({}))]);
    assert!(fixture.place(&wants("p")).contains("Insufficient example.com/gpu"));
    assert_eq!(fixture.place(&by_other(wants("q"))), "q on n");
}

#[test]
fn every_pod_of_a_profile_can_be_kept_to_some_nodes() {
    let term = json!({ "matchExpressions": [{ "key": "pool", "operator": "In", "values": ["batch"] }] });
    let affinity = json!({ "requiredDuringSchedulingIgnoredDuringExecution": { "nodeSelectorTerms": [term] } });
    let added = with_args("NodeAffinity", &json!({ "addedAffinity": affinity }));
    let mut fixture = configured(&added, caches(), &[node("plain", &json!({}))]);
    let refusal = fixture.place(&by_other(pod("p", &json!({}))));
    assert!(refusal.contains("1 node(s) didn't match scheduler-enforced node affinity"), "{refusal}");
    fixture.node(&node("batch", &json!({ "metadata": { "labels": { "pool": "batch" } } })));
    fixture.pass(10);
    assert_eq!(fixture.decisions(), ["p on batch"]);
}

#[test]
fn pods_that_say_nothing_are_spread_as_the_profile_says() {
    let hard =
        json!({ "maxSkew": 1, "topologyKey": "topology.kubernetes.io/zone", "whenUnsatisfiable": "DoNotSchedule" });
    let list = with_args("PodTopologySpread", &json!({ "defaultingType": "List", "defaultConstraints": [hard] }));
    let mut full = in_zone("b", "two");
    merge(&mut full, &json!({ "spec": { "unschedulable": true } }));
    let mut fixture = configured(&list, caches(), &[in_zone("a", "one"), full]);
    let service = Object::<Service>::of(&json!({
        "metadata": { "name": "web", "namespace": "default" }, "spec": { "selector": { "app": "web" } },
    }));
    fixture.scheduler.service_changed(&Change::new(Arc::new(service)));
    let web = |name: &str| by_other(pod(name, &json!({ "metadata": { "labels": { "app": "web" } } })));
    assert_eq!(fixture.place(&web("p")), "p on a");
    let refusal = fixture.place(&web("q"));
    assert!(refusal.contains("1 node(s) didn't match pod topology spread constraints"), "{refusal}");
}

#[test]
fn without_preemption_nobody_has_to_go_and_nothing_is_said_about_it() {
    let mut fixture = configured(&disabled("DefaultPreemption"), caches(), &[node("n", &json!({}))]);
    let mut lesser = asking("lesser", "3");
    merge(&mut lesser, &json!({ "spec": { "nodeName": "n" } }));
    fixture.pod(&lesser);
    let mut more = asking("more", "3");
    merge(&mut more, &json!({ "spec": { "priority": 10 } }));
    assert_eq!(
        fixture.place(&by_other(more)),
        "0/1 nodes are available: 1 Insufficient cpu. no new claims to deallocate"
    );
}

#[test]
fn the_wait_after_a_failure_is_what_the_file_says() {
    let file = json!({
        "apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration",
        "podInitialBackoffSeconds": 20, "podMaxBackoffSeconds": 20,
    });
    let mut there = caches();
    there.put::<kinds::Pod>(Object::of(&pod("p", &json!({}))));
    let configuration = Configuration::read(&file).expect("a file without mistakes");
    let mut fixture = Fixture::configured(&configuration, there, &[node("n", &json!({}))]);
    assert_eq!(fixture.place(&pod("p", &json!({}))), "p on n");
    fixture.fail(&pod("p", &json!({})));
    fixture.pass(19);
    assert_eq!(fixture.decisions(), Vec::<String>::new());
    fixture.pass(1);
    assert_eq!(fixture.decisions(), ["p on n"]);
}
