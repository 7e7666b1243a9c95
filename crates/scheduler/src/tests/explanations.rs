//! Why a pod waits, node by node.

use super::{Fixture, asking, node, pod};
use kinds::Key;
use object::{Value, json};

fn explained(fixture: &mut Fixture, pod: &str) -> Value {
    fixture.scheduler.explain(&Key::new("default", pod)).map_or(Value::Null, |explanation| explanation.json())
}

#[test]
fn every_node_is_told_with_what_speaks_against_it() {
    let tainted = json!({ "spec": { "taints": [{ "key": "k", "effect": "NoSchedule" }] } });
    let small = json!({ "status": { "allocatable": { "cpu": "1" } } });
    let nodes = [node("b", &small), node("a", &small), node("c", &tainted)];
    let mut fixture = Fixture::new(&nodes);
    assert!(fixture.place(&asking("p", "2")).starts_with("0/3"));
    let said = explained(&mut fixture, "p");
    let refused = json!([
        { "plugin": "NodeResourcesFit", "reason": "Insufficient cpu", "count": 2, "nodes": ["a", "b"], "couldMakeRoom": 0 },
        { "plugin": "TaintToleration", "reason": "node(s) had untolerated taint(s)", "count": 1, "nodes": ["c"], "couldMakeRoom": 0 },
    ]);
    assert_eq!(said["refused"], refused);
    assert_eq!((&said["queue"], &said["attempts"], &said["nodes"]), (&json!("unschedulable"), &json!(1), &json!(3)));
    fixture.node(&node("d", &json!({})));
    assert_eq!(explained(&mut fixture, "p")["open"], json!(["d"]), "it is about to be tried again");
    assert_eq!(fixture.decisions(), ["p on d"], "asking changes nothing");
    assert_eq!(explained(&mut fixture, "p"), Value::Null);
}

#[test]
fn room_that_is_kept_for_a_pod_does_not_stand_in_its_way() {
    let mut fixture = Fixture::new(&[node("n", &json!({}))]);
    let urgent = |name: &str| {
        let mut pod = asking(name, "3");
        super::merge(&mut pod, &json!({ "spec": { "priority": 10 } }));
        pod
    };
    let mut there = asking("there", "3");
    super::merge(&mut there, &json!({ "spec": { "nodeName": "n" } }));
    fixture.pod(&there);
    assert_eq!(fixture.place(&urgent("first")), "first wants n of there");
    let said = explained(&mut fixture, "first");
    assert_eq!((&said["nominatedNode"], &said["refused"][0]["couldMakeRoom"]), (&json!("n"), &json!(1)));
    fixture.remove(&there);
    assert_eq!(explained(&mut fixture, "first")["open"], json!(["n"]));
    assert!(fixture.place(&urgent("second")).starts_with("0/1"), "the room is still kept");
    assert_eq!(fixture.decisions(), ["first on n"]);
}

#[test]
fn what_holds_wherever_a_pod_is_is_told_once() {
    let mut fixture = Fixture::new(&[node("n", &json!({}))]);
    let volume = json!({ "name": "v", "persistentVolumeClaim": { "claimName": "none" } });
    fixture.place(&pod("p", &json!({ "spec": { "volumes": [volume] } })));
    let said = explained(&mut fixture, "p");
    assert_eq!((&said["reason"], &said["refused"]), (&json!("persistentvolumeclaim \"none\" not found"), &json!([])));
    fixture.pod(&pod("gated", &json!({ "spec": { "schedulingGates": [{ "name": "g" }] } })));
    assert_eq!(explained(&mut fixture, "gated")["queue"], "gated");
}
