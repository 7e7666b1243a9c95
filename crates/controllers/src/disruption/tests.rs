//! Budgets, and what may be evicted.

use super::*;
use crate::fixture::{NOW, World};

fn planned(caches: &Caches, request: &Request) -> Plan {
    let Some((budget, pods)) = observe(caches, request) else { return Plan::default() };
    let mut scales = Scales::default();
    for owner in pods.iter().filter_map(|pod| pod.metadata.controller()) {
        let found = scale::built_in(caches, "default", owner);
        scales.0.extend(found.map(|found| (owner.uid.clone(), Ok(found))));
    }
    plan(&Observed { budget, pods, scales }, request.now)
}

fn pod(number: usize, ready: bool, owner: &str) -> Value {
    let owners = match owner {
        "" => json!([]),
        uid => {
            json!([{ "apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": uid, "controller": true }])
        }
    };
    json!({
        "metadata": { "name": format!("web-{number}"), "labels": { "app": "web" }, "ownerReferences": owners },
        "status": { "conditions": [{ "type": "Ready", "status": if ready { "True" } else { "False" } }] },
    })
}

/// A deployment that wants `replicas`, and pods of it, some of them ready.
fn world(budget: &Value, replicas: usize, ready: usize, others: usize) -> World {
    let mut world = World::new();
    let mut spec = budget.clone();
    spec["selector"] = json!({ "matchLabels": { "app": "web" } });
    world.create::<PodDisruptionBudget>(json!({ "metadata": { "name": "web" }, "spec": spec }));
    world.create::<Deployment>(json!({ "metadata": { "name": "web", "uid": "d" }, "spec": { "replicas": replicas } }));
    let owner = json!({ "apiVersion": "apps/v1", "kind": "Deployment", "name": "web", "uid": "d", "controller": true });
    let metadata = json!({ "name": "web", "uid": "rs", "ownerReferences": [owner] });
    world.create::<ReplicaSet>(json!({ "metadata": metadata, "spec": { "replicas": 1 } }));
    (0..ready + others).for_each(|number| drop(world.create::<Pod>(pod(number, number < ready, "rs"))));
    world
}

fn numbers(world: &World) -> [i64; 4] {
    let status = world.get::<PodDisruptionBudget>("web").at("status");
    ["expectedPods", "desiredHealthy", "currentHealthy", "disruptionsAllowed"]
        .map(|field| status.int(field).unwrap_or(-1))
}

#[test]
fn what_is_allowed_follows_from_what_is_wanted_and_what_is_healthy() {
    for (budget, replicas, ready, others, expected) in [
        (json!({ "minAvailable": 2 }), 3, 3, 0, [3, 2, 3, 1]),
        (json!({ "minAvailable": 2 }), 9, 1, 1, [2, 2, 1, 0]),
        (json!({ "minAvailable": "50%" }), 5, 4, 0, [5, 3, 4, 1]),
        (json!({ "maxUnavailable": 1 }), 4, 4, 0, [4, 3, 4, 1]),
        (json!({ "maxUnavailable": 1 }), 4, 3, 1, [4, 3, 3, 0]),
        (json!({ "maxUnavailable": "30%" }), 10, 10, 0, [10, 7, 10, 3]),
        (json!({ "maxUnavailable": 5 }), 2, 2, 0, [2, 0, 2, 2]),
        (json!({ "minAvailable": 0 }), 0, 0, 0, [0, 0, 0, 0]),
    ] {
        let mut world = world(&budget, replicas, ready, others);
        world.settle("web", &planned);
        assert_eq!(numbers(&world), expected, "{budget}, {replicas} wanted, {ready} ready of {}", ready + others);
        let status = world.get::<PodDisruptionBudget>("web").at("status");
        let condition = &status["conditions"][0];
        let reason = if expected[3] > 0 { ("True", "SufficientPods") } else { ("False", "InsufficientPods") };
        assert_eq!((condition.text("status"), condition.text("reason")), reason);
        assert_eq!(status.int("observedGeneration"), Some(1));
    }
}

#[test]
fn pods_that_are_about_to_go_are_not_healthy_until_it_is_clear_that_they_stay() {
    let mut world = world(&json!({ "minAvailable": 1 }), 3, 3, 0);
    world.settle("web", &planned);
    world.edit::<PodDisruptionBudget>("web", |budget| {
        budget["status"]["disruptedPods"] = json!({ "web-0": NOW, "gone": NOW });
    });
    assert_eq!(world.settle("web", &planned), Some(Duration::from_secs(121)));
    assert_eq!(numbers(&world), [3, 1, 2, 1]);
    let disrupted = |world: &World| world.get::<PodDisruptionBudget>("web")["status"]["disruptedPods"].clone();
    assert_eq!(disrupted(&world), json!({ "web-0": NOW }));
    world.now = NOW + Duration::from_secs(121);
    world.settle("web", &planned);
    assert_eq!((numbers(&world), disrupted(&world)), ([3, 1, 3, 2], Value::Null));
    assert_eq!(
        world.events.last().unwrap(),
        "Warning NotDeleted Pod was expected by PDB default/web to be deleted but it wasn't"
    );
}

#[test]
fn a_pod_whose_controller_is_unknown_stops_everything_and_one_without_is_remarked() {
    let mut lost = world(&json!({ "maxUnavailable": 1 }), 3, 3, 0);
    lost.create::<Pod>(pod(9, true, "nobody"));
    lost.settle("web", &planned);
    let condition = lost.get::<PodDisruptionBudget>("web")["status"]["conditions"][0].clone();
    assert_eq!(condition.text("reason"), "SyncFailed");
    assert_eq!(condition.text("message"), "found no controllers for pod \"web-9\"");
    let mut bare = world(&json!({ "maxUnavailable": 1 }), 3, 3, 0);
    bare.create::<Pod>(pod(9, true, ""));
    bare.settle("web", &planned);
    assert_eq!(numbers(&bare), [3, 2, 4, 2]);
    assert!(
        bare.events[0]
            .starts_with("Warning UnmanagedPods Pods selected by this PodDisruptionBudget (selector: app=web)")
    );
}

#[test]
fn what_is_said_of_a_pod_is_taken_back_after_a_while() {
    let target = |status: &str, reason: &str| {
        let condition =
            json!({ "type": DISRUPTION_TARGET, "status": status, "reason": reason, "lastTransitionTime": NOW });
        Object::<Pod>::of(&json!({ "metadata": { "name": "a" }, "status": { "conditions": [condition] } }))
    };
    let after = |seconds: u64| NOW + Duration::from_secs(seconds);
    let pod = target("True", "EvictionByEvictionAPI");
    assert_eq!(take_back(&pod, after(30)).requeue_after, Some(Duration::from_secs(90)));
    assert_eq!(take_back(&pod, after(120)).summary(), ["patch pods/status a"]);
    assert!(take_back(&target("False", "EvictionByEvictionAPI"), after(120)).is_empty());
    assert!(take_back(&target("True", "TerminationByKubelet"), after(120)).is_empty());
}
