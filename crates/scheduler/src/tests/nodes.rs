//! What a node has to be like.

use super::{Fixture, asking, in_zone, merge, node, pod};
use object::{Value, json};

const HELPLESS: &str =
    "no new claims to deallocate, preemption: 0/1 nodes are available: 1 Preemption is not helpful for scheduling.";
const NO_VICTIMS: &str =
    "no new claims to deallocate, preemption: 0/1 nodes are available: 1 No preemption victims found for incoming pod.";

/// Where a pod of this spec goes that comes to a node of this kind.
fn verdict(node_more: &Value, spec: &Value) -> String {
    let mut fixture = Fixture::new(&[node("n", node_more)]);
    fixture.place(&pod("p", &json!({ "spec": spec })))
}

fn refused(reason: &str, preemption: &str) -> String {
    format!("0/1 nodes are available: 1 {reason}. {preemption}")
}

#[test]
fn a_pod_without_wishes_goes_to_any_node_and_nowhere_if_there_is_none() {
    assert_eq!(Fixture::new(&[node("n", &json!({}))]).place(&pod("p", &json!({}))), "p on n");
    assert_eq!(Fixture::new(&[]).place(&pod("p", &json!({}))), "no nodes available to schedule pods");
}

#[test]
fn what_is_asked_for_has_to_be_free() {
    for (requests, reason, helps) in [
        (json!({ "cpu": "5" }), "Insufficient cpu", HELPLESS),
        (json!({ "memory": "9Gi" }), "Insufficient memory", HELPLESS),
        (json!({ "ephemeral-storage": "11Gi" }), "Insufficient ephemeral-storage", HELPLESS),
        (json!({ "example.com/gpu": "1" }), "Insufficient example.com/gpu", HELPLESS),
    ] {
        let spec = json!({ "containers": [{ "resources": { "requests": requests } }] });
        assert_eq!(verdict(&json!({}), &spec), refused(reason, helps));
    }
    let mut fixture = Fixture::new(&[node("n", &json!({}))]);
    assert_eq!(fixture.place(&asking("a", "3")), "a on n");
    assert_eq!(fixture.place(&asking("b", "2")), refused("Insufficient cpu", NO_VICTIMS));
}

#[test]
fn a_node_takes_no_more_pods_than_it_says() {
    let mut fixture = Fixture::new(&[node("n", &json!({ "status": { "allocatable": { "pods": "1" } } }))]);
    assert_eq!(fixture.place(&pod("a", &json!({}))), "a on n");
    assert_eq!(fixture.place(&pod("b", &json!({}))), refused("Too many pods", NO_VICTIMS));
}

#[test]
fn finished_pods_take_nothing() {
    let mut fixture = Fixture::new(&[node("n", &json!({}))]);
    let mut done = asking("a", "4");
    done["spec"]["nodeName"] = json!("n");
    fixture.pod(&done);
    done["status"] = json!({ "phase": "Succeeded" });
    fixture.pod(&done);
    assert_eq!(fixture.place(&asking("b", "4")), "b on n");
}

#[test]
fn taints_keep_away_whoever_does_not_tolerate_them() {
    let tainted = |effect: &str| json!({ "spec": { "taints": [{ "key": "k", "value": "v", "effect": effect }] } });
    let tolerating = |toleration: Value| json!({ "tolerations": [toleration] });
    let refused = refused("node(s) had untolerated taint(s)", HELPLESS);
    for (taint, spec, expected) in [
        ("NoSchedule", json!({}), refused.as_str()),
        ("NoExecute", json!({}), refused.as_str()),
        ("PreferNoSchedule", json!({}), "p on n"),
        ("NoSchedule", tolerating(json!({ "key": "k", "operator": "Exists" })), "p on n"),
        ("NoSchedule", tolerating(json!({ "key": "k", "value": "other" })), refused.as_str()),
        ("NoExecute", tolerating(json!({ "key": "k", "value": "v", "effect": "NoSchedule" })), refused.as_str()),
    ] {
        assert_eq!(verdict(&tainted(taint), &spec), expected, "{taint} {spec}");
    }
}

#[test]
fn a_cordoned_node_takes_only_pods_that_tolerate_it() {
    let cordoned = json!({ "spec": { "unschedulable": true } });
    assert_eq!(verdict(&cordoned, &json!({})), refused("node(s) were unschedulable", HELPLESS));
    let toleration = json!({ "key": "node.kubernetes.io/unschedulable", "operator": "Exists", "effect": "NoSchedule" });
    assert_eq!(verdict(&cordoned, &json!({ "tolerations": [toleration] })), "p on n");
}

#[test]
fn selectors_and_affinity_say_which_nodes_are_wanted() {
    let labelled = json!({ "metadata": { "labels": { "disk": "ssd" } } });
    let required = |operator: &str, values: &[&str]| {
        let term = json!({ "matchExpressions": [{ "key": "disk", "operator": operator, "values": values }] });
        let required = json!({ "nodeSelectorTerms": [term] });
        json!({ "affinity": { "nodeAffinity": { "requiredDuringSchedulingIgnoredDuringExecution": required } } })
    };
    let refused = refused("node(s) didn't match Pod's node affinity/selector", HELPLESS);
    for (spec, expected) in [
        (json!({ "nodeSelector": { "disk": "ssd" } }), "p on n"),
        (json!({ "nodeSelector": { "disk": "hdd" } }), refused.as_str()),
        (required("In", &["ssd", "nvme"]), "p on n"),
        (required("NotIn", &["ssd"]), refused.as_str()),
        (required("Exists", &[]), "p on n"),
    ] {
        assert_eq!(verdict(&labelled, &spec), expected, "{spec}");
    }
}

#[test]
fn a_pod_meant_for_one_node_waits_for_that_one() {
    let term = json!({ "matchFields": [{ "key": "metadata.name", "operator": "In", "values": ["b"] }] });
    let required = json!({ "nodeSelectorTerms": [term] });
    let affinity = json!({ "nodeAffinity": { "requiredDuringSchedulingIgnoredDuringExecution": required } });
    let daemon = pod("p", &json!({ "spec": { "affinity": affinity } }));
    let mut fixture = Fixture::new(&[node("a", &json!({}))]);
    assert_eq!(fixture.place(&daemon), refused("node(s) didn't satisfy plugin(s) [NodeAffinity]", HELPLESS));
    fixture.node(&node("b", &json!({})));
    assert_eq!(fixture.decisions(), ["p on b"]);
}

#[test]
fn ports_of_a_node_are_given_once() {
    let on =
        |name: &str, port: Value| pod(name, &json!({ "spec": { "containers": [{ "name": "c", "ports": [port] }] } }));
    let port = |ip: &str, protocol: &str| json!({ "hostPort": 80, "hostIP": ip, "protocol": protocol });
    let mut fixture = Fixture::new(&[node("n", &json!({}))]);
    assert_eq!(fixture.place(&on("a", port("10.0.0.1", "TCP"))), "a on n");
    assert_eq!(fixture.place(&on("b", port("10.0.0.2", "TCP"))), "b on n");
    assert_eq!(fixture.place(&on("c", port("10.0.0.1", "UDP"))), "c on n");
    let refused = refused("node(s) didn't have free ports for the requested pod ports", NO_VICTIMS);
    assert_eq!(fixture.place(&on("d", port("", "TCP"))), refused);
}

#[test]
fn of_equal_nodes_the_emptier_and_the_wanted_one_is_better() {
    let mut fixture = Fixture::new(&[node("a", &json!({})), node("b", &json!({}))]);
    let mut there = asking("there", "2");
    there["spec"]["nodeName"] = json!("a");
    fixture.pod(&there);
    assert_eq!(fixture.place(&asking("p", "1")), "p on b");

    let zones = [in_zone("a", "x"), in_zone("b", "y")];
    let term =
        json!({ "matchExpressions": [{ "key": "topology.kubernetes.io/zone", "operator": "In", "values": ["y"] }] });
    let preferred = json!([{ "weight": 1, "preference": term }]);
    let affinity = json!({ "nodeAffinity": { "preferredDuringSchedulingIgnoredDuringExecution": preferred } });
    assert_eq!(Fixture::new(&zones).place(&pod("p", &json!({ "spec": { "affinity": affinity } }))), "p on b");

    let shy = node("a", &json!({ "spec": { "taints": [{ "key": "k", "effect": "PreferNoSchedule" }] } }));
    assert_eq!(Fixture::new(&[shy, node("b", &json!({}))]).place(&pod("p", &json!({}))), "p on b");

    let image = json!({ "names": ["image:latest"], "sizeBytes": 900 << 20 });
    let with_image = node("b", &json!({ "status": { "images": [image] } }));
    assert_eq!(Fixture::new(&[node("a", &json!({})), with_image]).place(&pod("p", &json!({}))), "p on b");
}

#[test]
fn a_message_counts_the_nodes_for_each_reason() {
    let taint = json!({ "spec": { "taints": [{ "key": "k", "effect": "NoSchedule" }] } });
    let small = json!({ "status": { "allocatable": { "cpu": "1" } } });
    let nodes = [node("a", &taint), node("b", &taint), node("c", &small), node("d", &small), node("e", &small)];
    let message = Fixture::new(&nodes).place(&asking("p", "2"));
    let expected = "0/5 nodes are available: 2 node(s) had untolerated taint(s), 3 Insufficient cpu. \
        no new claims to deallocate, preemption: 0/5 nodes are available: 5 Preemption is not helpful for scheduling.";
    assert_eq!(message, expected);
}

#[test]
fn a_pod_that_has_all_containers_started_again_goes_where_that_is_declared() {
    let rule = json!({ "action": "RestartAllContainers", "exitCodes": { "operator": "In", "values": [42] } });
    let container = json!({ "name": "c", "restartPolicy": "Never", "restartPolicyRules": [rule] });
    let asks = pod("p", &json!({ "spec": { "containers": [container] } }));
    let able = json!({ "status": { "declaredFeatures": [kinds::RESTART_ALL] } });
    let mut fixture = Fixture::new(&[node("old", &json!({}))]);
    let told = fixture.place(&asks);
    assert!(told.starts_with("0/1 nodes are available: 1 node(s) didn't match Pod's required features."), "{told}");
    fixture.node(&node("new", &able));
    fixture.pass(11);
    assert_eq!(fixture.decisions(), ["p on new"]);
}

#[test]
fn a_pod_that_is_resized_takes_what_it_has_until_it_has_less() {
    let resized = |asked: &str, has: &str| {
        let has = json!({ "cpu": has });
        let mut there = asking("there", asked);
        merge(
            &mut there,
            &json!({
                "spec": { "nodeName": "n" },
                "status": { "containerStatuses": [
                    { "name": "c", "resources": { "requests": has }, "allocatedResources": has },
                ] },
            }),
        );
        there
    };
    let mut fixture = Fixture::new(&[node("n", &json!({}))]);
    let (whole, shrinking, small) = (resized("4", "4"), resized("1", "4"), resized("1", "1"));
    fixture.pod(&whole);
    fixture.update(&whole, &shrinking);
    let told = fixture.place(&asking("p", "2"));
    assert!(told.starts_with("0/1 nodes are available: 1 Insufficient cpu."), "{told}");
    fixture.update(&shrinking, &small);
    fixture.pass(11);
    assert_eq!(fixture.decisions(), ["p on n"]);
    fixture.update(&small, &resized("3", "1"));
    let told = fixture.place(&asking("q", "1"));
    assert!(told.starts_with("0/1 nodes are available: 1 Insufficient cpu."), "{told}");
}
