//! Pods and the devices they claim.

use super::{Fixture, caches, merge, node, pod, read, told};
use crate::{Decision, Outcome};
use kinds::{DeviceClass, Key, Object, Pod, ResourceClaim};
use object::{Value, View, json};
use runtime::Change;
use std::collections::BTreeMap;

impl Fixture {
    /// A cluster of these nodes with a class of all devices.
    pub(super) fn with_devices(nodes: &[&str]) -> Self {
        let nodes: Vec<Value> = nodes.iter().map(|name| node(name, &json!({}))).collect();
        let mut fixture = Fixture::with(caches(), &nodes);
        fixture.class("any", &json!({}));
        fixture
    }

    pub(super) fn class(&mut self, name: &str, spec: &Value) {
        let class = json!({ "metadata": { "name": name }, "spec": spec });
        self.scheduler.cluster.caches.put(Object::<DeviceClass>::of(&class));
    }

    pub(super) fn slice(&mut self, name: &str, spec: &Value) {
        let mut whole = json!({
            "driver": "gpu.example.com", "pool": { "name": name, "generation": 1, "resourceSliceCount": 1 },
        });
        merge(&mut whole, spec);
        let slice = json!({ "metadata": { "name": name }, "spec": whole });
        self.scheduler.slice_changed(&Change::new(read(&slice)), self.now);
    }

    /// A rule comes, or goes.
    fn taint_rule(&mut self, spec: &Value, is_there: bool) {
        let rule = read(&json!({ "metadata": { "name": "rule" }, "spec": spec }));
        let change = Change::new(rule);
        let change = if is_there { change } else { Change { old: change.new, new: None } };
        self.scheduler.taint_rule_changed(&change, self.now);
    }

    pub(super) fn claim(&mut self, claim: &Value) {
        self.scheduler.cluster.caches.put(Object::<ResourceClaim>::of(claim));
        self.scheduler.claim_changed(&Change { old: Some(read(claim)), new: Some(read(claim)) }, self.now);
    }

    /// A pod that others can see, too.
    pub(super) fn user(&mut self, pod: &Value) {
        self.scheduler.cluster.caches.put(Object::<Pod>::of(pod));
        self.pod(pod);
    }

    /// What is to be written for a pod that has been given a node, written.
    pub(super) fn carry_out(&mut self, decision: &Decision, claims: &mut BTreeMap<Key, Value>) {
        let Decision::Bind { pod, devices, .. } = decision else { return };
        for (key, allocation) in devices.allocations() {
            let Some(claim) = claims.get_mut(&key) else { continue };
            claim["status"] = json!({ "allocation": allocation });
        }
        for name in pod.resource_claim_names() {
            let claim = claims.get_mut(&Key::new("default", name)).expect("a claim that a pod has");
            let consumer = json!({ "resource": "pods", "name": pod.metadata.name, "uid": pod.metadata.uid });
            object::Edit::push(&mut claim["status"], "reservedFor", consumer);
            let claim = claim.clone();
            self.claim(&claim);
        }
        self.scheduler.carried_out(&Outcome::Bound(pod.clone()), self.now);
    }
}

pub(super) fn claim(name: &str, devices: &Value) -> Value {
    json!({ "metadata": { "name": name, "namespace": "default", "uid": name }, "spec": { "devices": devices } })
}

/// Asks for so many devices of the class of all, with whatever else.
pub(super) fn asks(count: i64, more: &Value) -> Value {
    let mut exactly = json!({ "deviceClassName": "any", "allocationMode": "ExactCount", "count": count });
    merge(&mut exactly, more);
    json!({ "requests": [{ "name": "r", "exactly": exactly }] })
}

fn selecting(expression: &str) -> Value {
    json!({ "selectors": [{ "cel": { "expression": expression } }] })
}

pub(super) fn using(name: &str, claims: &[&str]) -> Value {
    let claims: Vec<Value> = claims.iter().map(|claim| json!({ "name": claim, "resourceClaimName": claim })).collect();
    pod(name, &json!({ "spec": { "resourceClaims": claims } }))
}

fn devices(names: &[&str]) -> Value {
    names.iter().map(|name| json!({ "name": name })).collect::<Vec<Value>>().into()
}

/// Which devices the requests of a claim get, or why none.
fn given(spec: &Value, wanted: &Value) -> String {
    let mut fixture = Fixture::with_devices(&["n"]);
    fixture.slice("n", &{
        let mut whole = json!({ "nodeName": "n" });
        merge(&mut whole, spec);
        whole
    });
    fixture.claim(&claim("c", wanted));
    fixture.user(&using("p", &["c"]));
    match fixture.next().expect("a decision") {
        Decision::Bind { devices, .. } => {
            let allocations = devices.allocations();
            let results = allocations[0].1.path(&["devices"]).items("results");
            let named = results.iter().map(|one| format!("{}={}", one.text("request"), one.text("device")));
            named.collect::<Vec<String>>().join(" ")
        }
        waits => told(&waits).split(". ").next().unwrap_or_default().to_owned(),
    }
}

const NONE: &str = "0/1 nodes are available: 1 cannot allocate all claims";

#[test]
fn a_pod_gets_a_device_or_waits_until_one_is_free() {
    let mut fixture = Fixture::with_devices(&["a", "b"]);
    fixture.slice("s", &json!({ "nodeName": "b", "devices": devices(&["gpu-0"]) }));
    let mut claims = BTreeMap::new();
    for name in ["one", "two"] {
        claims.insert(Key::new("default", name), claim(name, &asks(1, &json!({}))));
        fixture.claim(&claims[&Key::new("default", name)]);
    }
    fixture.user(&using("first", &["one"]));
    let decision = fixture.next().expect("a decision");
    assert_eq!(told(&decision), "first on b");
    // Not written yet, and still nobody else's.
    fixture.user(&using("second", &["two"]));
    let expected = "0/2 nodes are available: 2 cannot allocate all claims. still not schedulable, preemption: 0/2 nodes \
                    are available: 2 Preemption is not helpful for scheduling.";
    assert_eq!(told(&fixture.next().expect("a decision")), expected);
    fixture.carry_out(&decision, &mut claims);
    fixture.pass(60);
    assert!(fixture.next().is_none(), "what is taken helps nobody");
    let status = claims[&Key::new("default", "one")]["status"].clone();
    let selector = json!({ "nodeSelectorTerms": [{ "matchFields": [{ "key": "metadata.name", "operator": "In", "values": ["b"] }] }] });
    assert_eq!(
        status["allocation"],
        json!({
            "devices": { "results": [{ "request": "r", "driver": "gpu.example.com", "pool": "s", "device": "gpu-0" }] },
            "nodeSelector": selector,
        })
    );
    fixture.claim(&claim("one", &asks(1, &json!({}))));
    assert_eq!(fixture.decisions(), ["second on b"]);
}

#[test]
fn a_pod_that_is_not_bound_gives_its_devices_back() {
    let mut fixture = Fixture::with_devices(&["n"]);
    fixture.slice("s", &json!({ "nodeName": "n", "devices": devices(&["gpu-0"]) }));
    for name in ["one", "two"] {
        fixture.claim(&claim(name, &asks(1, &json!({}))));
    }
    fixture.user(&using("first", &["one"]));
    fixture.user(&using("second", &["two"]));
    let decisions = fixture.decisions();
    assert_eq!(decisions[0], "first on n");
    assert!(decisions[1].contains("cannot allocate all claims"), "{decisions:?}");
    fixture.fail(&using("first", &["one"]));
    fixture.pass(1);
    assert_eq!(fixture.decisions()[0], "second on n");
}

#[test]
fn what_is_told_of_a_pod_late_frees_nothing() {
    let mut fixture = Fixture::with_devices(&["n"]);
    for name in ["one", "two"] {
        fixture.claim(&claim(name, &asks(1, &json!({}))));
    }
    fixture.user(&using("first", &["one"]));
    assert!(fixture.decisions()[0].contains("cannot allocate all claims"));
    fixture.slice("s", &json!({ "nodeName": "n", "devices": devices(&["gpu-0"]) }));
    fixture.pass(60);
    assert_eq!(fixture.decisions(), ["first on n"]);
    // Only now it is known that the first decision was reported.
    fixture.scheduler.carried_out(&Outcome::Told(read(&using("first", &["one"]))), fixture.now);
    fixture.user(&using("second", &["two"]));
    assert!(fixture.decisions()[0].contains("cannot allocate all claims"));
}

#[test]
fn a_pod_goes_where_its_claim_has_its_devices_or_the_claim_looks_again() {
    let allocated = |on: &str, consumers: &Value| {
        let mut given = claim("c", &asks(1, &json!({})));
        let selector = json!({ "nodeSelectorTerms": [{ "matchFields": [{ "key": "metadata.name", "operator": "In", "values": [on] }] }] });
        let results = json!([{ "request": "r", "driver": "gpu.example.com", "pool": "p", "device": "d" }]);
        given["status"] = json!({ "allocation": { "devices": { "results": results }, "nodeSelector": selector }, "reservedFor": consumers });
        given
    };
    let mut fixture = Fixture::with_devices(&["a", "b"]);
    fixture.claim(&allocated("b", &json!([])));
    fixture.user(&using("p", &["c"]));
    assert_eq!(fixture.decisions(), ["p on b"]);
    // Nobody uses what is where no node is any more.
    fixture.claim(&allocated("gone", &json!([])));
    fixture.user(&using("q", &["c"]));
    match fixture.next() {
        Some(Decision::Wait { diagnosis, .. }) => {
            let message = diagnosis.message();
            let expected = "0/2 nodes are available: 2 resourceclaim not available on the node. deallocation of \
                            ResourceClaim completed, preemption: ";
            assert!(message.starts_with(expected), "{message}");
            assert!(diagnosis.release.is_some());
        }
        other => panic!("{other:?}"),
    }
    fixture.claim(&allocated("gone", &json!([{ "resource": "pods", "name": "x", "uid": "x" }])));
    fixture.pass(60);
    match fixture.next() {
        Some(Decision::Wait { diagnosis, .. }) => assert!(diagnosis.release.is_none(), "somebody uses it"),
        other => panic!("{other:?}"),
    }
}

#[test]
fn pods_share_a_claim_one_after_the_other() {
    let mut fixture = Fixture::with_devices(&["a", "b"]);
    fixture.slice("s", &json!({ "nodeName": "b", "devices": devices(&["gpu-0"]) }));
    let mut claims = BTreeMap::from([(Key::new("default", "c"), claim("c", &asks(1, &json!({}))))]);
    fixture.claim(&claims[&Key::new("default", "c")]);
    fixture.user(&using("first", &["c"]));
    fixture.user(&using("second", &["c"]));
    let first = fixture.next().expect("a decision");
    assert_eq!(told(&first), "first on b");
    let second = told(&fixture.next().expect("a decision"));
    let expected = "0/2 nodes are available: resource claim default/c is in the process of being allocated.";
    assert!(second.starts_with(expected), "{second}");
    fixture.carry_out(&first, &mut claims);
    fixture.pass(60);
    assert_eq!(fixture.decisions(), ["second on b"]);
}

#[test]
fn a_pod_is_not_tried_before_its_claims_are_there() {
    let mut fixture = Fixture::with_devices(&["n"]);
    fixture.slice("s", &json!({ "nodeName": "n", "devices": devices(&["gpu-0"]) }));
    let entry = json!({ "name": "gpu", "resourceClaimTemplateName": "t" });
    let mut templated = pod("p", &json!({ "spec": { "resourceClaims": [entry] } }));
    fixture.user(&templated);
    assert!(fixture.next().is_none());
    let explained = fixture.scheduler.explain(&Key::new("default", "p")).expect("it waits").json();
    assert_eq!(
        (explained.text("queue"), explained.text("reason")),
        ("gated", "pod \"default/p\": ResourceClaim not created yet")
    );
    templated["status"] = json!({ "resourceClaimStatuses": [{ "name": "gpu", "resourceClaimName": "p-gpu" }] });
    fixture.user(&templated);
    assert!(fixture.next().is_none(), "the claim has not been seen yet");
    let mut made = claim("p-gpu", &asks(1, &json!({})));
    let owner = json!({ "apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "p", "controller": true });
    made["metadata"]["ownerReferences"] = json!([owner]);
    fixture.claim(&made);
    assert_eq!(fixture.decisions(), ["p on n"]);
}

#[test]
fn what_is_missing_or_wrong_is_said() {
    let mut fixture = Fixture::with_devices(&["n"]);
    fixture.slice("s", &json!({ "nodeName": "n", "devices": devices(&["gpu-0"]) }));
    let place = |fixture: &mut Fixture, name: &str, more: &Value| {
        fixture.claim(&claim(name, &asks(1, more)));
        fixture.user(&using(name, &[name]));
        told(&fixture.next().expect("a decision"))
    };
    let told = place(&mut fixture, "a", &json!({ "deviceClassName": "gone" }));
    assert!(told.starts_with("0/1 nodes are available: request r: device class gone does not exist."), "{told}");
    let told = place(&mut fixture, "b", &selecting("device.attributes['x'].y == 1"));
    let expected =
        "running \"DynamicResources\" filter plugin: claim default/b: selector #0: CEL runtime error: no such key: y";
    assert_eq!(told, expected);
    fixture.class("wrong", &selecting("device.what"));
    let told = place(&mut fixture, "c", &json!({ "deviceClassName": "wrong" }));
    let expected = "running \"DynamicResources\" filter plugin: class wrong: selector #0: CEL compile error: compilation failed: ERROR: <input>:1:7: undefined field 'what'";
    assert!(told.starts_with(expected), "{told}");
    let told = place(&mut fixture, "d", &json!({ "count": 33 }));
    let expected = "running \"DynamicResources\" filter plugin: claim default/d: number of requested devices 33 exceeds the claim limit of 32";
    assert_eq!(told, expected);
}

#[test]
fn devices_are_selected_by_class_request_and_number() {
    let model = |name: &str, model: &str| json!({ "name": name, "attributes": { "model": { "string": model } } });
    let offered = json!({ "devices": [model("a", "x"), model("b", "y"), model("c", "y")] });
    let y = selecting("device.attributes['gpu.example.com'].model == 'y'");
    let mut all = y.clone();
    merge(&mut all, &json!({ "allocationMode": "All", "count": 0 }));
    for (wanted, expected) in [
        (asks(1, &json!({})), "r=a"),
        (asks(2, &json!({})), "r=a r=b"),
        (asks(1, &y), "r=b"),
        (asks(2, &y), "r=b r=c"),
        (asks(3, &y), NONE),
        (asks(0, &all), "r=b r=c"),
        (asks(4, &json!({})), NONE),
    ] {
        assert_eq!(given(&offered, &wanted), expected, "{wanted}");
    }
    let nothing = asks(0, &json!({ "allocationMode": "All", "count": 0 }));
    assert_eq!(given(&json!({ "devices": [] }), &nothing), NONE, "all is one at least");
    let incomplete = json!({ "pool": { "resourceSliceCount": 2 }, "devices": devices(&["a"]) });
    assert_eq!(given(&incomplete, &asks(1, &json!({}))), NONE);
    assert_eq!(
        given(&incomplete, &nothing),
        "running \"DynamicResources\" filter plugin: claim default/c, request r: asks for all devices, but resource pool \
         gpu.example.com/n is currently being updated"
    );
}

#[test]
fn constraints_hold_between_the_devices_of_a_claim() {
    let on = |name: &str, bus: &str| json!({ "name": name, "attributes": { "bus": { "string": bus } } });
    let offered = json!({ "devices": [on("a", "1"), on("b", "2"), on("c", "2"), { "name": "d" }] });
    let constrained = |field: &str, requests: &Value| {
        let request = |name: &str| json!({ "name": name, "exactly": { "deviceClassName": "any", "allocationMode": "ExactCount", "count": 1 } });
        json!({
            "requests": [request("r"), request("s")],
            "constraints": [{ field: "gpu.example.com/bus", "requests": requests }],
        })
    };
    for (wanted, expected) in [
        (constrained("matchAttribute", &json!([])), "r=b s=c"),
        (constrained("distinctAttribute", &json!([])), "r=a s=b"),
        (constrained("matchAttribute", &json!(["s"])), "r=a s=b"),
    ] {
        assert_eq!(given(&offered, &wanted), expected, "{wanted}");
    }
    let alone = json!({ "devices": [on("a", "1"), { "name": "d" }] });
    assert_eq!(given(&alone, &constrained("distinctAttribute", &json!([]))), NONE, "who has no bus is on none");
}

#[test]
fn the_first_alternative_that_can_be_had_counts() {
    let offered = json!({ "devices": devices(&["a", "b"]) });
    let first = |counts: &[i64]| {
        let each = counts.iter().enumerate().map(|(at, count)| {
            json!({ "name": format!("n{at}"), "deviceClassName": "any", "allocationMode": "ExactCount", "count": count })
        });
        json!({ "requests": [{ "name": "r", "firstAvailable": each.collect::<Vec<Value>>() }] })
    };
    assert_eq!(given(&offered, &first(&[3, 2, 1])), "r/n1=a r/n1=b");
    assert_eq!(given(&offered, &first(&[1, 2])), "r/n0=a");
    assert_eq!(given(&offered, &first(&[3, 4])), NONE);

    // A node where the pod gets what it would rather have is better.
    let mut fixture = Fixture::with_devices(&["a", "b"]);
    fixture.slice("a", &json!({ "nodeName": "a", "devices": devices(&["x"]) }));
    fixture.slice("b", &json!({ "nodeName": "b", "devices": devices(&["x", "y"]) }));
    for at in 0..4 {
        let name = format!("c{at}");
        fixture.claim(&claim(&name, &first(&[2, 1])));
        fixture.user(&using(&name, &[&name]));
    }
    let decisions = fixture.decisions();
    assert_eq!(decisions[..2], ["c0 on b", "c1 on a"]);
    assert!(decisions[2..].iter().all(|one| one.contains("2 cannot allocate all claims")), "{decisions:?}");
}

#[test]
fn tainted_devices_are_for_those_who_tolerate_it() {
    let taint =
        |effect: &str| json!({ "devices": [{ "name": "a", "taints": [{ "key": "broken", "effect": effect }] }] });
    let tolerant = asks(1, &json!({ "tolerations": [{ "key": "broken", "operator": "Exists" }] }));
    for effect in ["NoSchedule", "NoExecute"] {
        assert_eq!(given(&taint(effect), &asks(1, &json!({}))), NONE, "{effect}");
        assert_eq!(given(&taint(effect), &tolerant), "r=a", "{effect}");
    }
    assert_eq!(given(&taint("None"), &asks(1, &json!({}))), "r=a");
}

#[test]
fn administrators_see_devices_that_others_have() {
    let mut fixture = Fixture::with_devices(&["n"]);
    fixture.slice("s", &json!({ "nodeName": "n", "devices": devices(&["gpu-0"]) }));
    fixture.claim(&claim("user", &asks(1, &json!({}))));
    fixture.claim(&claim("admin", &asks(1, &json!({ "adminAccess": true }))));
    fixture.claim(&claim("other", &asks(1, &json!({ "adminAccess": true }))));
    for name in ["admin", "user", "other"] {
        fixture.user(&using(name, &[name]));
    }
    assert_eq!(fixture.decisions(), ["admin on n", "user on n", "other on n"]);
}

#[test]
fn devices_made_of_the_same_parts_are_given_while_there_are_parts() {
    let mut fixture = Fixture::with_devices(&["n"]);
    let part = |name: &str, memory: &str| {
        let consumes = json!([{ "counterSet": "gpu", "counters": { "memory": { "value": memory } } }]);
        json!({ "name": name, "consumesCounters": consumes })
    };
    let pool = json!({ "name": "p", "generation": 1, "resourceSliceCount": 2 });
    let counters = json!([{ "name": "gpu", "counters": { "memory": { "value": "8Gi" } } }]);
    fixture.slice("counters", &json!({ "nodeName": "n", "pool": pool, "sharedCounters": counters }));
    let parts = [part("half-0", "4Gi"), part("half-1", "4Gi"), part("quarter", "2Gi"), part("whole", "8Gi")];
    fixture.slice("devices", &json!({ "nodeName": "n", "pool": pool, "devices": parts }));
    for (name, count) in [("one", 1), ("two", 2), ("three", 1), ("four", 1)] {
        fixture.claim(&claim(name, &asks(count, &json!({}))));
        fixture.user(&using(name, &[name]));
    }
    let decisions = fixture.decisions();
    let waits = |told: &String| told.contains("cannot allocate all claims");
    assert_eq!((decisions[0].as_str(), decisions[2].as_str()), ("one on n", "three on n"));
    assert!(waits(&decisions[1]), "beside a half, another and a quarter are too much: {decisions:?}");
    assert!(waits(&decisions[3]), "two halves are all there is: {decisions:?}");
}

#[test]
fn a_device_for_many_is_given_until_nothing_of_it_is_left() {
    let mut fixture = Fixture::with_devices(&["n"]);
    let device = json!({ "name": "a", "allowMultipleAllocations": true, "capacity": { "memory": { "value": "8Gi" } } });
    fixture.slice("s", &json!({ "nodeName": "n", "devices": [device] }));
    for name in ["one", "two", "three"] {
        fixture.claim(&claim(name, &asks(1, &json!({ "capacity": { "requests": { "memory": "3Gi" } } }))));
        fixture.user(&using(name, &[name]));
    }
    let first = fixture.next().expect("a decision");
    let Decision::Bind { devices, .. } = &first else { panic!("{first:?}") };
    let result = devices.allocations()[0].1["devices"]["results"][0].clone();
    assert_eq!(result["consumedCapacity"], json!({ "memory": "3Gi" }));
    assert_eq!(result.text("shareID").len(), 36);
    let decisions = fixture.decisions();
    assert_eq!(decisions[0], "two on n");
    assert!(decisions[1].contains("cannot allocate all claims"), "{decisions:?}");
}

#[test]
fn a_resource_that_a_node_has_not_can_be_devices() {
    let mut fixture = Fixture::with_devices(&["a"]);
    fixture.node(&node("b", &json!({ "status": { "allocatable": { "example.com/gpu": "1" } } })));
    fixture.class("gpus", &json!({ "extendedResourceName": "example.com/gpu" }));
    fixture.slice("s", &json!({ "nodeName": "a", "devices": devices(&["gpu-0"]) }));
    let asking = |name: &str| {
        let container = json!({ "name": "c", "resources": { "requests": { "cpu": "1", "example.com/gpu": "1" } } });
        pod(name, &json!({ "spec": { "containers": [container] } }))
    };
    let mut homes = Vec::new();
    for name in ["p", "q"] {
        fixture.user(&asking(name));
        let Some(Decision::Bind { node, devices, .. }) = fixture.next() else { panic!("{name} waits") };
        homes.push((node.clone(), devices.allocations().len()));
    }
    homes.sort();
    assert_eq!(homes, [("a".to_owned(), 1), ("b".to_owned(), 0)], "a device of one, a number of the other");
    let told = fixture.place(&asking("r"));
    assert!(
        told.starts_with("0/2 nodes are available: 1 Insufficient example.com/gpu, 1 cannot allocate all claims."),
        "{told}"
    );
}

#[test]
fn devices_that_a_rule_taints_go_to_those_that_tolerate_it() {
    let rule = |effect: &str, selector: Value| json!({ "deviceSelector": selector, "taint": { "key": "k", "effect": effect } });
    let tolerating = json!({ "tolerations": [{ "key": "k", "operator": "Exists" }] });
    for (rule, wanted, expected) in [
        (rule("NoSchedule", json!({})), json!({}), NONE),
        (rule("NoExecute", json!({ "driver": "gpu.example.com", "pool": "s" })), json!({}), NONE),
        (rule("NoSchedule", json!({ "device": "gpu-0" })), json!({}), NONE),
        (rule("NoSchedule", json!({})), tolerating, "p on n"),
        (rule("None", json!({})), json!({}), "p on n"),
        (rule("NoSchedule", json!(null)), json!({}), "p on n"),
        (rule("NoSchedule", json!({ "pool": "other" })), json!({}), "p on n"),
    ] {
        let mut fixture = Fixture::with_devices(&["n"]);
        fixture.slice("s", &json!({ "nodeName": "n", "devices": devices(&["gpu-0"]) }));
        fixture.taint_rule(&rule, true);
        fixture.claim(&claim("c", &asks(1, &wanted)));
        fixture.user(&using("p", &["c"]));
        let decided = told(&fixture.next().expect("a decision"));
        assert_eq!(decided.split(". ").next(), Some(expected), "{rule}");
        if expected == NONE {
            fixture.taint_rule(&rule, false);
            fixture.pass(60);
            assert_eq!(fixture.decisions(), ["p on n"], "{rule}");
        }
    }
}
