//! Whole lives of sets: the loop against pods that start and end as told.

use super::*;
use crate::fixture::{NOW, World};
use object::Edit;
use std::time::Duration;

fn planned(caches: &Caches, request: &Request) -> Plan {
    observe(caches, request).map(|observed| plan(&observed, request)).unwrap_or_default()
}

fn world(edit: impl FnOnce(&mut Value)) -> World {
    let mut world = World::new();
    let mut set = json!({
        "metadata": { "name": "web", "uid": "s" },
        "spec": {
            "replicas": 3,
            "serviceName": "web",
            "selector": { "matchLabels": { "app": "web" } },
            "template": { "metadata": { "labels": { "app": "web" } }, "spec": { "containers": [{ "image": "v1" }] } },
            "podManagementPolicy": "OrderedReady",
            "updateStrategy": { "type": "RollingUpdate", "rollingUpdate": { "partition": 0 } },
            "revisionHistoryLimit": 1,
        },
    });
    edit(set.object_or_new("spec"));
    world.create::<StatefulSet>(set);
    world
}

/// All pods that are there get ready, except those that must not.
fn start_pods(world: &mut World, bad: &dyn Fn(&Value) -> bool) -> bool {
    let mut changed = false;
    for pod in world.all::<Pod>() {
        let works = !bad(&pod);
        let since = pod.path(&["status", "since"]).as_str().map_or(world.now.to_string(), str::to_owned);
        let status = json!({
            "since": since, "phase": "Running",
            "conditions": [{
                "type": "Ready", "status": if works { "True" } else { "False" }, "lastTransitionTime": since,
            }],
        });
        if *pod.at("status") != status {
            changed = true;
            world.edit::<Pod>(pod.at("metadata").text("name"), |pod| pod.set("status", status));
        }
    }
    changed
}

fn run(world: &mut World, bad: &dyn Fn(&Value) -> bool, check: &dyn Fn(&World)) {
    for _ in 0..100 {
        world.settle("web", &planned);
        check(world);
        if !start_pods(world, bad) {
            return;
        }
    }
    panic!("it never ends");
}

fn good(_: &Value) -> bool {
    false
}

fn is_image(pod: &Value, image: &str) -> bool {
    pod.at("spec").items("containers")[0].text("image") == image
}

fn update(world: &mut World, edit: impl FnOnce(&mut Value)) {
    world.edit::<StatefulSet>("web", |set| edit(set.object_or_new("spec")));
}

fn use_image(world: &mut World, image: &str) {
    update(world, |spec| spec["template"]["spec"]["containers"][0]["image"] = json!(image));
}

fn images(world: &World) -> Vec<String> {
    let image = |pod: &Value| pod.at("spec").items("containers")[0].text("image").to_owned();
    world.all::<Pod>().iter().map(image).collect()
}

#[test]
fn pods_come_one_after_the_other_and_go_the_other_way() {
    let mut world = world(|_| {});
    world.settle("web", &planned);
    assert_eq!(world.names::<Pod>(), ["web-0"]);
    let pod = world.get::<Pod>("web-0");
    let revision = world.names::<ControllerRevision>()[0];
    assert_eq!(
        pod["metadata"]["labels"],
        json!({
            "app": "web", "apps.kubernetes.io/pod-index": "0", "controller-revision-hash": revision,
            "statefulset.kubernetes.io/pod-name": "web-0",
        })
    );
    assert_eq!((&pod["spec"]["hostname"], &pod["spec"]["subdomain"]), (&json!("web-0"), &json!("web")));
    run(&mut world, &good, &|_| {});
    assert_eq!(world.names::<Pod>(), ["web-0", "web-1", "web-2"]);
    let status = world.get::<StatefulSet>("web").at("status").clone();
    let revision = world.names::<ControllerRevision>()[0];
    assert_eq!(
        status,
        json!({
            "observedGeneration": 1, "replicas": 3, "readyReplicas": 3, "availableReplicas": 3, "currentReplicas": 3,
            "updatedReplicas": 3, "currentRevision": revision, "updateRevision": revision, "collisionCount": 0,
        })
    );
    assert_eq!(world.events[0], "Normal SuccessfulCreate Create Pod web-0 in StatefulSet web successful");
    update(&mut world, |spec| spec["replicas"] = json!(1));
    run(&mut world, &good, &|_| {});
    assert_eq!(world.names::<Pod>(), ["web-0"]);
    let deleted: Vec<_> = world.writes.iter().filter(|write| write.starts_with("delete pods")).collect();
    assert_eq!(deleted, ["delete pods web-2", "delete pods web-1"]);
}

#[test]
fn all_at_once_if_the_order_does_not_matter() {
    let mut world = world(|spec| spec["podManagementPolicy"] = json!("Parallel"));
    world.settle("web", &planned);
    assert_eq!(world.names::<Pod>(), ["web-0", "web-1", "web-2"]);
    update(&mut world, |spec| spec["ordinals"] = json!({ "start": 5 }));
    run(&mut world, &good, &|_| {});
    assert_eq!(world.names::<Pod>(), ["web-5", "web-6", "web-7"]);
}

#[test]
fn an_update_goes_from_the_last_to_the_partition_and_one_at_a_time() {
    let mut world = world(|spec| spec["updateStrategy"]["rollingUpdate"]["partition"] = json!(1));
    run(&mut world, &good, &|_| {});
    use_image(&mut world, "v2");
    run(&mut world, &good, &|world| {
        let ready = world.all::<Pod>().iter().filter(|pod| pod.path(&["status", "phase"]) == "Running").count();
        assert!(ready >= 2, "{ready}");
    });
    assert_eq!(images(&world), ["v1", "v2", "v2"]);
    let status = world.get::<StatefulSet>("web").at("status").clone();
    assert_ne!(status["currentRevision"], status["updateRevision"]);
    assert_eq!((&status["currentReplicas"], &status["updatedReplicas"]), (&json!(1), &json!(2)));
    // Below the partition, what is replaced stays as it was.
    world.remove::<Pod>("web-0");
    run(&mut world, &good, &|_| {});
    assert_eq!(images(&world), ["v1", "v2", "v2"]);
    update(&mut world, |spec| spec["updateStrategy"]["rollingUpdate"]["partition"] = json!(0));
    run(&mut world, &good, &|_| {});
    let status = world.get::<StatefulSet>("web").at("status").clone();
    assert_eq!(
        (status["currentRevision"].clone(), &status["currentReplicas"]),
        (status["updateRevision"].clone(), &json!(3))
    );
}

#[test]
fn an_update_that_does_not_work_stops_and_can_be_taken_back() {
    let mut world = world(|_| {});
    run(&mut world, &good, &|_| {});
    let first = world.names::<ControllerRevision>()[0].to_owned();
    let bad = |pod: &Value| is_image(pod, "bad");
    use_image(&mut world, "bad");
    run(&mut world, &bad, &|_| {});
    assert_eq!(images(&world), ["v1", "v1", "bad"]);
    use_image(&mut world, "v1");
    run(&mut world, &bad, &|_| {});
    assert_eq!(world.get::<ControllerRevision>(&first)["revision"], 3);
    // An ordered set waits for what is broken; somebody has to delete it.
    world.remove::<Pod>("web-2");
    run(&mut world, &bad, &|_| {});
    assert_eq!(images(&world), ["v1", "v1", "v1"]);
}

#[test]
fn where_order_does_not_matter_what_is_broken_holds_up_only_what_is_before_it() {
    let unordered = |partition: i32| {
        world(|spec| {
            spec["podManagementPolicy"] = json!("Parallel");
            spec["updateStrategy"]["rollingUpdate"]["partition"] = json!(partition);
        })
    };
    let first: &dyn Fn(&Value) -> bool = &|pod| pod.path(&["metadata", "name"]) == "web-0";
    let new: &dyn Fn(&Value) -> bool = &|pod| is_image(pod, "v2");
    for (what, partition, bad, replaced, expected) in [
        ("the first is broken", 0, first, &["web-2", "web-1", "web-0"][..], ["v2"; 3]),
        ("it is so and stays old", 1, first, &["web-2", "web-1"], ["v1", "v2", "v2"]),
        ("what is new is broken", 0, new, &["web-2"], ["v1", "v1", "v2"]),
    ] {
        let mut world = unordered(partition);
        run(&mut world, bad, &|_| {});
        use_image(&mut world, "v2");
        world.writes.clear();
        run(&mut world, bad, &|_| {});
        let deleted: Vec<_> = world.writes.iter().filter_map(|write| write.strip_prefix("delete pods ")).collect();
        assert_eq!(deleted, replaced, "{what}");
        assert_eq!(images(&world), expected, "{what}");
    }
}

#[test]
fn on_delete_only_what_is_deleted_is_replaced_by_what_is_new() {
    let mut world = world(|spec| spec["updateStrategy"] = json!({ "type": "OnDelete" }));
    run(&mut world, &good, &|_| {});
    use_image(&mut world, "v2");
    run(&mut world, &good, &|_| {});
    assert_eq!(images(&world), ["v1"; 3]);
    world.remove::<Pod>("web-1");
    run(&mut world, &good, &|_| {});
    assert_eq!(images(&world), ["v1", "v2", "v1"]);
    // What is current does not change by that, not even when all are new.
    world.remove::<Pod>("web-0");
    world.remove::<Pod>("web-2");
    run(&mut world, &good, &|_| {});
    assert_eq!(images(&world), ["v2"; 3]);
    let status = world.get::<StatefulSet>("web").at("status").clone();
    assert_ne!(status["currentRevision"], status["updateRevision"]);
    assert_eq!((&status["updatedReplicas"], status.has("currentReplicas")), (&json!(3), false));
}

#[test]
fn a_pod_that_has_ended_is_made_anew() {
    let mut world = world(|_| {});
    run(&mut world, &good, &|_| {});
    for phase in ["Failed", "Succeeded"] {
        let before = world.get::<Pod>("web-1")["metadata"]["uid"].clone();
        world.edit::<Pod>("web-1", |pod| pod["status"] = json!({ "phase": phase }));
        run(&mut world, &good, &|_| {});
        assert_ne!(world.get::<Pod>("web-1")["metadata"]["uid"], before, "{phase}");
    }
}

#[test]
fn a_pod_counts_only_after_it_was_ready_for_a_while() {
    let mut world = world(|spec| spec["minReadySeconds"] = json!(10));
    run(&mut world, &good, &|_| {});
    assert_eq!(world.names::<Pod>(), ["web-0"]);
    assert_eq!(world.settle("web", &planned), Some(Duration::from_secs(10)));
    world.now = NOW + Duration::from_secs(10);
    run(&mut world, &good, &|_| {});
    assert_eq!(world.names::<Pod>(), ["web-0", "web-1"]);
}

fn with_claims(policy: Value) -> World {
    world(|spec| {
        spec["volumeClaimTemplates"] = json!([{ "metadata": { "name": "data" }, "spec": { "size": 1 } }]);
        spec["persistentVolumeClaimRetentionPolicy"] = policy;
    })
}

#[test]
fn claims_come_before_pods_and_are_kept() {
    let mut world = with_claims(json!({ "whenDeleted": "Retain", "whenScaled": "Retain" }));
    world.step("web", &planned);
    world.step("web", &planned);
    let creations: Vec<_> = world.writes.iter().filter(|write| write.starts_with("create p")).collect();
    assert_eq!(creations, ["create persistentvolumeclaims data-web-0", "create pods web-0"]);
    assert_eq!(world.events[0], "Normal SuccessfulCreate Create Claim data-web-0 Pod web-0 in StatefulSet web success");
    let claim = world.get::<PersistentVolumeClaim>("data-web-0");
    assert_eq!(claim["metadata"]["labels"], json!({ "app": "web" }));
    assert!(!claim.at("metadata").has("ownerReferences"));
    let volumes = &world.get::<Pod>("web-0")["spec"]["volumes"];
    assert_eq!(*volumes, json!([{ "name": "data", "persistentVolumeClaim": { "claimName": "data-web-0" } }]));
    run(&mut world, &good, &|_| {});
    update(&mut world, |spec| spec["replicas"] = json!(0));
    run(&mut world, &good, &|_| {});
    assert_eq!(world.names::<PersistentVolumeClaim>().len(), 3);
    assert!(world.names::<Pod>().is_empty());
}

#[test]
fn claims_that_go_with_the_set_or_with_scaling_have_the_owner_they_go_with() {
    let owner = |world: &World, name: &str| {
        let claim = world.get::<PersistentVolumeClaim>(name);
        claim.path(&["metadata"]).items("ownerReferences").first().map(|owner| owner.text("kind").to_owned())
    };
    let set = || Some("StatefulSet".to_owned());
    for (deleted, scaled, kept, gone) in [
        ("Delete", "Retain", set(), set()),
        ("Retain", "Delete", None, Some("Pod".to_owned())),
        ("Delete", "Delete", set(), Some("Pod".to_owned())),
        ("Retain", "Retain", None, None),
    ] {
        let mut world = with_claims(json!({ "whenDeleted": deleted, "whenScaled": scaled }));
        run(&mut world, &good, &|_| {});
        assert_eq!(owner(&world, "data-web-2"), kept, "{deleted} {scaled}");
        update(&mut world, |spec| spec["replicas"] = json!(2));
        run(&mut world, &good, &|_| {});
        assert_eq!(owner(&world, "data-web-1"), kept, "{deleted} {scaled}");
        assert_eq!(owner(&world, "data-web-2"), gone, "{deleted} {scaled}");
        // A member does not come back before the claim of its predecessor is gone.
        update(&mut world, |spec| spec["replicas"] = json!(3));
        run(&mut world, &good, &|_| {});
        assert_eq!(world.names::<Pod>().len(), if scaled == "Delete" { 2 } else { 3 }, "{deleted} {scaled}");
    }
}

#[test]
fn a_claim_that_somebody_else_manages_is_left_to_them() {
    let mut world = with_claims(json!({ "whenDeleted": "Delete", "whenScaled": "Retain" }));
    run(&mut world, &good, &|_| {});
    let other = json!({ "apiVersion": "v1", "kind": "X", "name": "x", "uid": "x", "controller": true });
    world.edit::<PersistentVolumeClaim>("data-web-0", |claim| {
        let ours = claim["metadata"]["ownerReferences"][0].clone();
        claim["metadata"]["ownerReferences"] = json!([other.clone(), ours]);
    });
    run(&mut world, &good, &|_| {});
    assert!(world.events.iter().any(|event| event.starts_with("Warning ConflictingController ")), "{:?}", world.events);
    assert_eq!(world.get::<PersistentVolumeClaim>("data-web-0")["metadata"]["ownerReferences"], json!([other]));
}

#[test]
fn a_member_waits_for_claims_that_are_being_deleted_and_says_so() {
    let mut world = with_claims(json!({ "whenDeleted": "Retain", "whenScaled": "Retain" }));
    let claim = |metadata: Value| json!({ "metadata": metadata, "spec": {} });
    let finalizers = json!(["kubernetes.io/pvc-protection"]);
    world.create::<PersistentVolumeClaim>(claim(
        json!({ "name": "data-web-0", "deletionTimestamp": NOW, "finalizers": finalizers }),
    ));
    world.settle("web", &planned);
    assert!(world.names::<Pod>().is_empty());
    let told = "Create Pod web-0 in StatefulSet web failed error: pvc data-web-0 is being deleted";
    assert!(world.events.contains(&format!("Warning FailedCreate {told}")), "{:?}", world.events);
    world.remove::<PersistentVolumeClaim>("data-web-0");
    run(&mut world, &good, &|_| {});
    assert_eq!(world.names::<Pod>().len(), 3);
}

#[test]
fn a_new_member_tells_of_a_claim_that_somebody_else_manages() {
    for (policy, is_told) in [("Retain", false), ("Delete", true)] {
        let mut world = with_claims(json!({ "whenDeleted": policy, "whenScaled": "Retain" }));
        let other = json!({ "apiVersion": "v1", "kind": "X", "name": "x", "uid": "x", "controller": true });
        world.create::<PersistentVolumeClaim>(json!({
            "metadata": { "name": "data-web-0", "ownerReferences": [other] }, "spec": {},
        }));
        run(&mut world, &good, &|_| {});
        let tells =
            |event: &String| event.starts_with("Warning ConflictingController PersistentVolumeClaim data-web-0");
        assert_eq!((world.names::<Pod>().len(), world.events.iter().any(tells)), (3, is_told), "{policy}");
    }
}

#[test]
fn pods_that_match_and_bear_a_name_of_the_set_are_adopted() {
    let mut world = world(|_| {});
    for name in ["web-0", "other-0"] {
        let metadata = json!({ "name": name, "labels": { "app": "web" } });
        world.create::<Pod>(json!({
            "metadata": metadata, "spec": { "containers": [{ "image": "v1" }] }, "status": { "phase": "Running" },
        }));
    }
    run(&mut world, &good, &|_| {});
    assert!(!world.get::<Pod>("other-0").at("metadata").has("ownerReferences"));
    let adopted = world.get::<Pod>("web-0");
    assert_eq!(adopted["metadata"]["ownerReferences"][0]["uid"], "s");
    assert_eq!(adopted["metadata"]["labels"]["statefulset.kubernetes.io/pod-name"], "web-0");
}

#[test]
fn a_set_that_is_being_deleted_creates_nothing() {
    let mut world = world(|_| {});
    world.edit::<StatefulSet>("web", |set| {
        set["metadata"]["deletionTimestamp"] = json!(NOW);
        set["metadata"]["finalizers"] = json!(["foregroundDeletion"]);
    });
    assert!(world.step("web", &planned).is_empty());
}

#[test]
fn a_crash_after_any_write_changes_nothing_about_the_end() {
    for crash in 0..40 {
        let mut world = with_claims(json!({ "whenDeleted": "Delete", "whenScaled": "Retain" }));
        world.crash_after = Some(crash);
        run(&mut world, &good, &|_| {});
        use_image(&mut world, "v2");
        run(&mut world, &good, &|_| {});
        assert_eq!(images(&world), ["v2"; 3], "{crash}");
        assert_eq!(world.names::<PersistentVolumeClaim>().len(), 3, "{crash}");
        let status = world.get::<StatefulSet>("web").at("status").clone();
        assert_eq!(status["currentRevision"], status["updateRevision"], "{crash}");
    }
}
