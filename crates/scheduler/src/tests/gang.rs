//! Pods that are placed together or not at all.

use super::{Fixture, asking, caches, merge, node, told};
use crate::{Configuration, DEFAULT, Decision, Profile};
use kinds::{Object, Pod, PodGroup};
use object::{Value, json};
use runtime::Change;
use std::sync::Arc;

impl Fixture {
    pub(crate) fn with_groups(nodes: &[Value]) -> Self {
        let configuration = Configuration { pod_groups: true, ..Configuration::default() };
        Fixture::configured(&configuration, caches(), nodes)
    }

    pub(crate) fn group(&mut self, group: &Value) {
        self.scheduler.group_changed(&Change::new(Arc::new(Object::<PodGroup>::of(group))));
    }

    /// A decision could not be carried out: the pod is as it was.
    pub(crate) fn not_bound(&mut self, pod: &Value) {
        self.scheduler.cluster.caches.put(Object::<Pod>::of(pod));
        self.fail(pod);
    }
}

pub(crate) fn gang(name: &str, min_count: usize) -> Value {
    let policy = json!({ "gang": { "minCount": min_count } });
    json!({
        "metadata": { "name": name, "namespace": "default", "uid": name },
        "spec": { "schedulingPolicy": policy },
    })
}

pub(crate) fn member(name: &str, group: &str, cpu: &str) -> Value {
    let mut pod = asking(name, cpu);
    merge(&mut pod, &json!({ "spec": { "schedulingGroup": { "podGroupName": group } } }));
    pod
}

fn sized(name: &str, cpu: usize) -> Value {
    node(name, &json!({ "status": { "allocatable": { "cpu": cpu.to_string() } } }))
}

/// Pods `prefix-0` and so on.
fn members(fixture: &mut Fixture, group: &str, count: usize, cpu: &str) {
    (0..count).for_each(|at| fixture.pod(&member(&format!("{group}-{at}"), group, cpu)));
}

const OTHERS: &str = "pod group is unschedulable, waiting for minCount pods from a gang to be scheduled";

#[test]
fn a_gang_waits_until_it_is_declared_and_enough_are_there() {
    let mut fixture = Fixture::with_groups(&[node("n", &json!({}))]);
    members(&mut fixture, "g", 2, "1");
    assert!(fixture.decisions().is_empty(), "nobody knows how many have to be there");
    let lacks = |fixture: &Fixture| fixture.scheduler.lacks(&Object::<Pod>::of(&member("g-0", "g", "1"))).unwrap();
    assert_eq!(lacks(&fixture), "waiting for pods's pod group \"g\" to appear in scheduling queue");
    fixture.group(&gang("g", 3));
    assert!(fixture.decisions().is_empty(), "one is missing");
    assert_eq!(lacks(&fixture), "waiting for minCount pods from a gang to appear in scheduling queue");
    fixture.pod(&member("g-2", "g", "1"));
    assert_eq!(fixture.decisions(), ["g-0 on n", "g-1 on n", "g-2 on n", "g: Scheduled"]);
    fixture.pod(&member("g-3", "g", "1"));
    assert_eq!(fixture.decisions(), ["g-3 on n"], "more may come, and there is nothing new to tell");
}

#[test]
fn a_gang_that_does_not_fit_leaves_no_trace_and_comes_when_there_is_room() {
    let mut fixture = Fixture::with_groups(&[sized("a", 2), sized("b", 1)]);
    fixture.group(&gang("g", 4));
    members(&mut fixture, "g", 4, "1");
    let decisions = fixture.decisions();
    assert_eq!(decisions[..3], [OTHERS; 3]);
    assert_eq!(
        decisions[3],
        "0/2 nodes are available: 2 Insufficient cpu. preemption: 0/2 nodes are available: 2 No preemption victims \
         found for incoming pod."
    );
    assert_eq!(decisions[4..], ["g: Unschedulable"]);
    assert_eq!(fixture.place(&asking("other", "2")), "other on a", "nothing is held");
    fixture.remove(&asking("other", "2"));
    fixture.pass(60);
    fixture.node(&sized("c", 1));
    let decisions = fixture.decisions();
    assert_eq!(decisions.len(), 5);
    assert!(decisions[..4].iter().all(|decision| decision.contains(" on ")), "{decisions:?}");
    assert_eq!(decisions[4], "g: Scheduled");
}

#[test]
fn who_is_not_needed_waits_alone() {
    let mut fixture = Fixture::with_groups(&[sized("a", 2)]);
    fixture.group(&gang("g", 2));
    members(&mut fixture, "g", 3, "1");
    let decisions = fixture.decisions();
    assert_eq!(decisions[..2], ["g-0 on a", "g-1 on a"]);
    assert!(decisions[2].starts_with("0/1 nodes are available: 1 Insufficient cpu."), "{decisions:?}");
    assert_eq!(decisions[3], "g: Scheduled");
    fixture.pass(60);
    fixture.node(&sized("b", 1));
    assert_eq!(fixture.decisions()[0], "g-2 on b");
}

#[test]
fn two_gangs_that_want_the_same_room_do_not_block_each_other() {
    let mut fixture = Fixture::with_groups(&[sized("a", 2), sized("b", 2)]);
    for name in ["g", "h"] {
        fixture.group(&gang(name, 3));
    }
    for at in 0..3 {
        fixture.pod(&member(&format!("g-{at}"), "g", "1"));
        fixture.pod(&member(&format!("h-{at}"), "h", "1"));
    }
    let decisions = fixture.decisions();
    let placed = |group: &str| decisions.iter().filter(|one| one.starts_with(group) && one.contains(" on ")).count();
    assert_eq!((placed("g-"), placed("h-")), (3, 0), "{decisions:?}");
}

#[test]
fn in_a_basic_group_each_is_placed_by_itself() {
    let mut fixture = Fixture::with_groups(&[sized("a", 1)]);
    members(&mut fixture, "g", 2, "1");
    assert!(fixture.decisions().is_empty(), "the group is not declared");
    let mut basic = gang("g", 1);
    basic["spec"]["schedulingPolicy"] = json!({ "basic": {} });
    fixture.group(&basic);
    let decisions = fixture.decisions();
    assert_eq!(decisions[..2], ["g-0 on a", "g: Scheduled"]);
    assert!(decisions[2].starts_with("0/1"), "{decisions:?}");
}

#[test]
fn where_groups_are_not_served_pods_are_placed_by_themselves() {
    let mut fixture = Fixture::new(&[sized("a", 1)]);
    members(&mut fixture, "g", 1, "1");
    assert_eq!(fixture.decisions(), ["g-0 on a"]);
}

#[test]
fn a_pod_with_gates_counts_and_cannot_be_placed() {
    let mut fixture = Fixture::with_groups(&[sized("a", 2)]);
    fixture.group(&gang("g", 2));
    let mut gated = member("g-1", "g", "1");
    gated["spec"]["schedulingGates"] = json!([{ "name": "wait" }]);
    fixture.pod(&gated);
    fixture.pod(&member("g-0", "g", "1"));
    assert_eq!(fixture.decisions(), [OTHERS, "g: Unschedulable"]);
    fixture.pod(&member("g-1", "g", "1"));
    assert_eq!(fixture.decisions(), ["g-0 on a", "g-1 on a", "g: Scheduled"]);
}

#[test]
fn a_gang_that_has_lost_one_waits_for_another() {
    let mut fixture = Fixture::with_groups(&[sized("a", 1)]);
    fixture.group(&gang("g", 2));
    members(&mut fixture, "g", 2, "1");
    assert_eq!(fixture.decisions().len(), 3);
    fixture.remove(&member("g-1", "g", "1"));
    fixture.pass(60);
    fixture.node(&sized("b", 1));
    assert!(fixture.decisions().is_empty(), "one alone is no gang");
    fixture.pod(&member("g-2", "g", "1"));
    assert_eq!(fixture.decisions().iter().filter(|one| one.contains(" on ")).count(), 2);
}

#[test]
fn a_place_is_kept_for_one_whose_binding_failed() {
    let mut fixture = Fixture::with_groups(&[sized("a", 2)]);
    fixture.group(&gang("g", 2));
    members(&mut fixture, "g", 2, "1");
    assert_eq!(fixture.decisions(), ["g-0 on a", "g-1 on a", "g: Scheduled"]);
    fixture.not_bound(&member("g-1", "g", "1"));
    assert!(fixture.place(&asking("other", "1")).starts_with("0/1"), "the place is taken");
    fixture.pass(2);
    assert_eq!(fixture.decisions()[0], "g-1 on a");
}

#[test]
fn pods_of_a_gang_have_one_scheduler() {
    let profiles = vec![Profile::new(DEFAULT), Profile::new("another")];
    let configuration = Configuration { profiles, pod_groups: true, ..Configuration::default() };
    let mut fixture = Fixture::configured(&configuration, caches(), &[sized("a", 2)]);
    fixture.group(&gang("g", 2));
    fixture.pod(&member("g-0", "g", "1"));
    let mut other = member("g-1", "g", "1");
    other["spec"]["schedulerName"] = json!("another");
    fixture.pod(&other);
    let error = "all pods in a single pod group should have the same .spec.schedulerName set, got: \"another\" and \
                 \"default-scheduler\"";
    assert_eq!(fixture.decisions(), [error, error, "g: SchedulerError"]);
}

#[test]
fn who_waits_is_not_placed_when_the_group_is_gone() {
    let mut fixture = Fixture::with_groups(&[sized("a", 1)]);
    fixture.group(&gang("g", 1));
    members(&mut fixture, "g", 1, "2");
    assert_eq!(fixture.decisions().len(), 2);
    fixture.scheduler.group_changed(&Change { old: Some(Arc::new(Object::of(&gang("g", 1)))), new: None });
    fixture.pass(60);
    fixture.node(&sized("b", 2));
    assert!(fixture.decisions().is_empty());
    fixture.group(&gang("g", 1));
    assert_eq!(fixture.decisions()[0], "g-0 on b");
}

fn important(mut pod: Value) -> Value {
    pod["spec"]["priority"] = json!(10);
    pod
}

fn on(node: &str, mut pod: Value) -> Value {
    pod["spec"]["nodeName"] = json!(node);
    pod
}

#[test]
fn others_have_to_go_only_if_the_whole_gang_can_come_then() {
    for (nodes, expected) in [(2, vec!["g-0 wants a of lesser-a", "g-1 wants b of lesser-b"]), (1, vec![])] {
        let names = ["a", "b"];
        let all: Vec<Value> = names[..nodes].iter().map(|name| sized(name, 1)).collect();
        let mut fixture = Fixture::with_groups(&all);
        for name in &names[..nodes] {
            fixture.pod(&on(name, asking(&format!("lesser-{name}"), "1")));
        }
        fixture.group(&gang("g", 2));
        (0..2).for_each(|at| fixture.pod(&important(member(&format!("g-{at}"), "g", "1"))));
        let decisions = fixture.decisions();
        let mut wants: Vec<&String> = decisions.iter().filter(|one| one.contains(" wants ")).collect();
        wants.sort();
        assert_eq!(wants, expected, "{decisions:?}");
        if nodes == 1 {
            continue;
        }
        // Nobody else gets the room that is being made.
        fixture.remove(&on("a", asking("lesser-a", "1")));
        assert!(fixture.place(&asking("thief", "1")).starts_with("0/2"));
        fixture.pass(60);
        fixture.remove(&on("b", asking("lesser-b", "1")));
        let mut decisions = fixture.decisions();
        decisions.retain(|one| one.contains(" on "));
        decisions.sort();
        assert_eq!(decisions, ["g-0 on a", "g-1 on b"]);
    }
}

#[test]
fn what_is_told_of_a_group_is_what_tools_know() {
    let mut fixture = Fixture::with_groups(&[]);
    fixture.group(&gang("g", 1));
    members(&mut fixture, "g", 1, "1");
    let decisions: Vec<Decision> = std::iter::from_fn(|| fixture.next()).collect();
    assert_eq!(told(&decisions[0]), "no nodes available to schedule pods");
    let Decision::Group { verdict, .. } = &decisions[1] else { panic!("{decisions:?}") };
    assert_eq!(
        (verdict.status(), verdict.reason(), verdict.message().as_str()),
        ("False", "Unschedulable", "pod group is unschedulable")
    );
}
