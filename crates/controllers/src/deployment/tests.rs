//! Whole rollouts: the loop against sets that do what they are told.

mod availability;

use super::*;
use crate::fixture::{NOW, World, reported};
use kinds::Time;
use object::Value;
use std::time::Duration;

fn planned(caches: &Caches, request: &Request) -> Plan {
    observe(caches, request).map(|observed| plan(&observed, request)).unwrap_or_default()
}

fn deployment(replicas: i32) -> Value {
    json!({
        "metadata": {
            "name": "web", "uid": "d", "annotations": {
                "note": "x", "kubectl.kubernetes.io/last-applied-configuration": "{}",
            },
        },
        "spec": {
            "replicas": replicas,
            "selector": { "matchLabels": { "app": "web" } },
            "template": { "metadata": { "labels": { "app": "web" } }, "spec": { "containers": [{ "image": "v1" }] } },
            "strategy": { "type": "RollingUpdate", "rollingUpdate": { "maxSurge": 1, "maxUnavailable": 1 } },
            "revisionHistoryLimit": 1,
            "progressDeadlineSeconds": 600,
        },
    })
}

fn world(replicas: i32) -> World {
    let mut world = World::new();
    world.create::<Deployment>(deployment(replicas));
    world
}

/// The sets get to where they should be. Those whose image is `bad` never become available.
fn run_sets(world: &mut World) -> bool {
    let mut changed = false;
    for set in world.all::<ReplicaSet>() {
        let replicas = set.at("spec").int("replicas").unwrap_or(0);
        let image = set.path(&["spec", "template", "spec"]).items("containers")[0].text("image").to_owned();
        let available = if image == "bad" { 0 } else { replicas };
        let status = json!({
            "replicas": replicas, "readyReplicas": available, "availableReplicas": available,
            "terminatingReplicas": 0, "observedGeneration": set.at("metadata").int("generation"),
        });
        changed |= *set.at("status") != status;
        world.edit::<ReplicaSet>(set.at("metadata").text("name"), |set| set.set("status", status));
    }
    changed
}

/// Turns both loops until nothing changes; `check` looks in after every step.
fn run(world: &mut World, check: &dyn Fn(&World)) -> Option<Duration> {
    for _ in 0..100 {
        let delay = world.settle("web", &planned);
        check(world);
        if !run_sets(world) {
            return delay;
        }
    }
    panic!("the rollout never ends");
}

fn sizes(world: &World) -> Vec<i64> {
    let mut sets = world.all::<ReplicaSet>();
    sets.sort_by_key(|set| {
        set.path(&["metadata", "annotations", "deployment.kubernetes.io/revision"])
            .as_str()
            .and_then(|text| text.parse::<i64>().ok())
    });
    sets.iter().map(|set| set.at("spec").int("replicas").unwrap_or(0)).collect()
}

fn update(world: &mut World, edit: impl FnOnce(&mut Value)) {
    world.now = world.now + Duration::from_secs(1);
    world.edit::<Deployment>("web", |deployment| edit(deployment.object_or_new("spec")));
}

fn use_image(world: &mut World, image: &str) {
    update(world, |spec| spec["template"]["spec"]["containers"][0]["image"] = json!(image));
}

fn condition(world: &World, kind: &str) -> (String, String, String) {
    let deployment = world.get::<Deployment>("web");
    let conditions = deployment.at("status").items("conditions");
    let found = conditions.iter().find(|condition| condition.text("type") == kind).cloned().unwrap_or_default();
    (found.text("status").to_owned(), found.text("reason").to_owned(), found.text("message").to_owned())
}

#[test]
fn a_new_deployment_makes_a_set_and_says_how_it_goes() {
    let mut world = world(3);
    let created = world.step("web", &planned);
    let name = world.names::<ReplicaSet>()[0].to_owned();
    assert_eq!(created.summary(), [format!("create replicasets {name}")]);
    let set = world.get::<ReplicaSet>(&name).clone();
    let hash = name.strip_prefix("web-").unwrap();
    for labels in [
        set.path(&["metadata", "labels"]),
        set.path(&["spec", "selector", "matchLabels"]),
        set.path(&["spec", "template", "metadata", "labels"]),
    ] {
        assert_eq!(*labels, json!({ "app": "web", "pod-template-hash": hash }));
    }
    let annotations = json!({
        "deployment.kubernetes.io/desired-replicas": "3",
        "deployment.kubernetes.io/max-replicas": "4",
        "deployment.kubernetes.io/revision": "1",
        "note": "x",
    });
    assert_eq!(set["metadata"]["annotations"], annotations);
    world.settle("web", &planned);
    assert_eq!(
        condition(&world, "Progressing"),
        ("True".into(), "NewReplicaSetCreated".into(), format!("Created new replica set \"{name}\""))
    );
    assert_eq!(condition(&world, "Available").1, "MinimumReplicasUnavailable");
    assert_eq!(run(&mut world, &|_| {}), None);
    assert_eq!(
        condition(&world, "Progressing"),
        ("True".into(), "NewReplicaSetAvailable".into(), format!("ReplicaSet \"{name}\" has successfully progressed."))
    );
    assert_eq!(condition(&world, "Available").2, "Deployment has minimum availability.");
    let status = &world.get::<Deployment>("web")["status"];
    assert_eq!(
        (&status["replicas"], &status["updatedReplicas"], &status["observedGeneration"]),
        (&json!(3), &json!(3), &json!(1))
    );
    assert_eq!(world.events, [format!("Normal ScalingReplicaSet Scaled up replica set {name} from 0 to 3")]);
    assert_eq!(world.get::<Deployment>("web")["metadata"]["annotations"]["deployment.kubernetes.io/revision"], "1");
}

#[test]
fn a_rolling_update_stays_within_its_limits_and_keeps_its_history_short() {
    let mut world = world(4);
    run(&mut world, &|_| {});
    for (image, revision) in [("v2", "2"), ("v3", "3"), ("v1", "4")] {
        use_image(&mut world, image);
        run(&mut world, &|world| {
            let available = |set: &Value| set.at("status").int("availableReplicas").unwrap_or(0);
            let wanted = |set: &Value| set.at("spec").int("replicas").unwrap_or(0);
            let sets = world.all::<ReplicaSet>();
            assert!(sets.iter().map(wanted).sum::<i64>() <= 5);
            assert!(sets.iter().map(|set| available(set).min(wanted(set))).sum::<i64>() >= 3);
        });
        let annotations = &world.get::<Deployment>("web")["metadata"]["annotations"];
        assert_eq!(annotations["deployment.kubernetes.io/revision"], revision);
        assert_eq!(condition(&world, "Progressing").1, "NewReplicaSetAvailable");
    }
    assert_eq!(sizes(&world), [0, 4]);
}

#[test]
fn going_back_gives_the_old_set_a_new_number() {
    let mut world = world(2);
    run(&mut world, &|_| {});
    let first = world.names::<ReplicaSet>()[0].to_owned();
    use_image(&mut world, "v2");
    run(&mut world, &|_| {});
    use_image(&mut world, "v1");
    run(&mut world, &|_| {});
    let annotations = world.get::<ReplicaSet>(&first).path(&["metadata", "annotations"]).clone();
    assert_eq!(annotations["deployment.kubernetes.io/revision"], "3");
    assert_eq!(annotations["deployment.kubernetes.io/revision-history"], "1");
    assert_eq!(sizes(&world), [0, 2]);
}

#[test]
fn recreating_waits_until_every_old_pod_is_gone() {
    let mut world = world(2);
    update(&mut world, |spec| spec["strategy"] = json!({ "type": "Recreate" }));
    run(&mut world, &|_| {});
    let old = world.names::<ReplicaSet>()[0].to_owned();
    let uid = world.get::<ReplicaSet>(&old)["metadata"]["uid"].clone();
    world.create::<Pod>(json!({
        "metadata": {
            "name": "leaving", "deletionTimestamp": NOW, "labels": { "app": "web" },
            "ownerReferences": [{ "apiVersion": "apps/v1", "kind": "ReplicaSet", "uid": uid, "name": old, "controller": true }],
        },
        "status": { "phase": "Running" },
    }));
    use_image(&mut world, "v2");
    run(&mut world, &|_| {});
    assert_eq!(sizes(&world), [0]);
    world.remove::<Pod>("leaving");
    run(&mut world, &|_| {});
    assert_eq!(sizes(&world), [0, 2]);
}

#[test]
fn a_paused_deployment_scales_in_proportion_and_goes_no_further() {
    let mut world = world(4);
    run(&mut world, &|_| {});
    use_image(&mut world, "bad");
    run(&mut world, &|_| {});
    assert_eq!(sizes(&world), [3, 2]);
    update(&mut world, |spec| spec["paused"] = json!(true));
    run(&mut world, &|_| {});
    assert_eq!(condition(&world, "Progressing").1, "DeploymentPaused");
    update(&mut world, |spec| spec["replicas"] = json!(9));
    run(&mut world, &|_| {});
    assert_eq!(sizes(&world), [6, 4]);
    use_image(&mut world, "v3");
    run(&mut world, &|_| {});
    assert_eq!(sizes(&world), [6, 4]);
    update(&mut world, |spec| spec["paused"] = json!(false));
    run(&mut world, &|_| {});
    assert_eq!(sizes(&world).last(), Some(&9));
}

#[test]
fn scaling_in_the_middle_of_a_rollout_does_not_hasten_it() {
    let mut world = world(4);
    run(&mut world, &|_| {});
    use_image(&mut world, "bad");
    run(&mut world, &|_| {});
    update(&mut world, |spec| spec["replicas"] = json!(14));
    world.step("web", &planned);
    assert_eq!(sizes(&world), [9, 6]);
}

#[test]
fn no_progress_by_the_deadline_is_reported_and_noticed_in_time() {
    let mut world = world(2);
    run(&mut world, &|_| {});
    use_image(&mut world, "bad");
    let delay = run(&mut world, &|_| {});
    assert_eq!(delay, Some(Duration::from_secs(601)));
    world.now = world.now + Duration::from_secs(601);
    world.settle("web", &planned);
    let (status, reason, message) = condition(&world, "Progressing");
    assert_eq!((status.as_str(), reason.as_str()), ("False", "ProgressDeadlineExceeded"));
    assert!(message.ends_with("\" has timed out progressing."), "{message}");
    use_image(&mut world, "v3");
    run(&mut world, &|_| {});
    assert_eq!(condition(&world, "Progressing").1, "NewReplicaSetAvailable");
}

#[test]
fn a_name_that_is_taken_leads_to_another_one() {
    let mut world = world(1);
    run(&mut world, &|_| {});
    let name = world.names::<ReplicaSet>()[0].to_owned();
    world.edit::<ReplicaSet>(&name, |set| {
        set["metadata"]["ownerReferences"][0]["uid"] = json!("other");
    });
    run(&mut world, &|_| {});
    assert_eq!(world.get::<Deployment>("web")["status"]["collisionCount"], 1);
    assert_eq!(world.names::<ReplicaSet>().len(), 2);
}

#[test]
fn what_the_server_refuses_is_reported() {
    let mut world = world(1);
    let mut request = world.request("web");
    request.failure = Some("exceeded quota".to_owned());
    let status = reported(&planned(&world.caches(), &request));
    let progressing = &status["conditions"][0];
    assert_eq!(progressing["reason"], "ReplicaSetCreateError");
    assert!(progressing["message"].as_str().unwrap().ends_with("\": exceeded quota"), "{progressing}");
    run(&mut world, &|_| {});
    let name = world.names::<ReplicaSet>()[0].to_owned();
    world.edit::<ReplicaSet>(&name, |set| {
        set["status"]["conditions"] =
            json!([{ "type": "ReplicaFailure", "status": "True", "reason": "FailedCreate", "message": "no" }]);
    });
    world.settle("web", &planned);
    assert_eq!(condition(&world, "ReplicaFailure"), ("True".into(), "FailedCreate".into(), "no".into()));
}

#[test]
fn sets_come_and_go_with_their_labels() {
    let mut world = world(1);
    run(&mut world, &|_| {});
    let name = world.names::<ReplicaSet>()[0].to_owned();
    world.edit::<ReplicaSet>(&name, |set| set["metadata"]["labels"]["app"] = json!("db"));
    world.step("web", &planned);
    assert_eq!(world.get::<ReplicaSet>(&name)["metadata"]["ownerReferences"], json!([]));
    world.edit::<ReplicaSet>(&name, |set| set["metadata"]["labels"]["app"] = json!("web"));
    run(&mut world, &|_| {});
    assert_eq!(world.get::<ReplicaSet>(&name)["metadata"]["ownerReferences"][0]["uid"], "d");
    assert_eq!(world.names::<ReplicaSet>(), [name]);
}

#[test]
fn a_deployment_that_is_being_deleted_or_selects_everything_does_nothing() {
    let mut world = world(1);
    world.edit::<Deployment>("web", |deployment| {
        deployment["metadata"]["deletionTimestamp"] = json!(NOW);
        deployment["metadata"]["finalizers"] = json!(["foregroundDeletion"]);
    });
    run(&mut world, &|_| {});
    assert!(world.names::<ReplicaSet>().is_empty());
    let mut world = self::world(1);
    update(&mut world, |spec| spec["selector"] = json!({}));
    world.settle("web", &planned);
    assert!(world.names::<ReplicaSet>().is_empty());
    assert!(world.events[0].starts_with("Warning SelectingAll "), "{:?}", world.events);
}

#[test]
fn times_of_conditions_stand_still_while_nothing_happens() {
    let mut world = world(1);
    run(&mut world, &|_| {});
    world.now = Time(world.now.0 + 3_600_000_000);
    assert!(world.step("web", &planned).is_empty());
}

#[test]
fn a_crash_after_any_write_changes_nothing_about_the_end() {
    for crash in 0..40 {
        let mut world = world(4);
        world.crash_after = Some(crash);
        run(&mut world, &|_| {});
        use_image(&mut world, "v2");
        run(&mut world, &|_| {});
        update(&mut world, |spec| spec["replicas"] = json!(2));
        run(&mut world, &|_| {});
        assert_eq!(sizes(&world), [0, 2], "{crash}");
        let deployment = world.get::<Deployment>("web");
        assert_eq!(deployment["metadata"]["annotations"]["deployment.kubernetes.io/revision"], "2", "{crash}");
        assert_eq!(condition(&world, "Progressing").1, "NewReplicaSetAvailable", "{crash}");
    }
}
