//! Whole lives of sets: the loop against nodes that come, go and start pods.

use super::*;
use crate::fixture::World;
use object::{Edit, View as _};
use std::time::Duration;

fn world(nodes: &[&str], edit: impl FnOnce(&mut Value)) -> World {
    let mut world = World::new();
    let mut set = json!({
        "metadata": {
            "name": "agent", "uid": "s", "annotations": { "deprecated.daemonset.template.generation": "1" },
        },
        "spec": {
            "selector": { "matchLabels": { "app": "agent" } },
            "template": { "metadata": { "labels": { "app": "agent" } }, "spec": { "containers": [{ "image": "v1" }] } },
            "updateStrategy": { "type": "RollingUpdate", "rollingUpdate": { "maxUnavailable": 1, "maxSurge": 0 } },
            "revisionHistoryLimit": 1,
        },
    });
    edit(set.object_or_new("spec"));
    world.create::<DaemonSet>(set);
    for name in nodes {
        world.create::<Node>(json!({ "metadata": { "name": name, "namespace": "" } }));
    }
    world
}

fn settle(world: &mut World) -> Option<Duration> {
    let failures = Mutex::new(Failures::default());
    world.settle("agent", &|caches, request| {
        observe(caches, request).map(|observed| plan(&observed, request, &mut failures.lock())).unwrap_or_default()
    })
}

fn step(world: &mut World) -> Plan {
    world.step("agent", &|caches, request| {
        let observed = observe(caches, request);
        observed.map(|observed| plan(&observed, request, &mut Failures::default())).unwrap_or_default()
    })
}

/// Pods are placed where they are meant to be, and get ready unless their image is bad.
fn start_pods(world: &mut World) -> bool {
    let mut changed = false;
    for pod in world.all::<Pod>() {
        let terms = ["spec", "affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution"];
        let node = pod.path(&terms)["nodeSelectorTerms"][0]["matchFields"][0]["values"][0].clone();
        let ready = if is_image(&pod, "bad") { "False" } else { "True" };
        let condition = json!({ "type": "Ready", "status": ready, "lastTransitionTime": world.now });
        if pod.path(&["status", "phase"]).is_null() {
            changed = true;
            world.edit::<Pod>(pod.at("metadata").text("name"), |pod| {
                pod["spec"]["nodeName"] = node;
                pod["status"] = json!({ "phase": "Running", "conditions": [condition] });
            });
        }
    }
    changed
}

fn run(world: &mut World, check: &dyn Fn(&World)) {
    for _ in 0..50 {
        settle(world);
        check(world);
        if !start_pods(world) {
            return;
        }
    }
    panic!("it never ends");
}

fn is_image(pod: &Value, image: &str) -> bool {
    pod.at("spec").items("containers")[0].text("image") == image
}

fn use_image(world: &mut World, image: &str) {
    world.now = world.now + Duration::from_secs(1);
    world.edit::<DaemonSet>("agent", |set| set["spec"]["template"]["spec"]["containers"][0]["image"] = json!(image));
}

/// Nodes and images of all pods.
fn pods(world: &World) -> Vec<String> {
    let line = |pod: &Value| {
        format!("{} {}", pod.at("spec").text("nodeName"), pod.at("spec").items("containers")[0].text("image"))
    };
    let mut lines: Vec<_> = world.all::<Pod>().iter().map(line).collect();
    lines.sort();
    lines
}

#[test]
fn every_node_gets_a_pod_that_is_meant_for_it() {
    let mut world = world(&["n1", "n2"], |_| {});
    run(&mut world, &|_| {});
    assert_eq!(pods(&world), ["n1 v1", "n2 v1"]);
    let pod = &world.all::<Pod>()[0];
    let hash = world.names::<ControllerRevision>()[0].strip_prefix("agent-").unwrap().to_owned();
    assert_eq!(
        pod["metadata"]["labels"],
        json!({ "app": "agent", "controller-revision-hash": hash, "pod-template-generation": "1" })
    );
    assert_eq!(pod["spec"]["tolerations"].as_array().unwrap().len(), 6);
    assert_eq!(
        world.get::<DaemonSet>("agent")["status"],
        json!({
            "currentNumberScheduled": 2, "desiredNumberScheduled": 2, "numberMisscheduled": 0, "numberReady": 2,
            "numberAvailable": 2, "updatedNumberScheduled": 2, "observedGeneration": 1,
        })
    );
}

#[test]
fn pods_follow_nodes() {
    let mut world = world(&["n1"], |_| {});
    run(&mut world, &|_| {});
    world.create::<Node>(json!({ "metadata": { "name": "n2", "namespace": "" } }));
    run(&mut world, &|_| {});
    assert_eq!(pods(&world), ["n1 v1", "n2 v1"]);
    world.edit::<Node>("n1", |node| node["spec"]["taints"] = json!([{ "key": "x", "effect": "NoSchedule" }]));
    run(&mut world, &|_| {});
    assert_eq!(pods(&world), ["n1 v1", "n2 v1"]);
    assert_eq!(world.get::<DaemonSet>("agent")["status"]["numberMisscheduled"], 1);
    world.edit::<Node>("n1", |node| node["spec"]["taints"] = json!([{ "key": "x", "effect": "NoExecute" }]));
    run(&mut world, &|_| {});
    assert_eq!(pods(&world), ["n2 v1"]);
    // Meant for a node that goes before the pod is placed.
    world.create::<Node>(json!({ "metadata": { "name": "n3", "namespace": "" } }));
    settle(&mut world);
    world.remove::<Node>("n3");
    settle(&mut world);
    assert_eq!(world.names::<Pod>().len(), 1);
}

#[test]
fn an_update_deletes_no_more_than_may_be_missing() {
    let mut world = world(&["n1", "n2", "n3", "n4"], |spec| {
        spec["updateStrategy"]["rollingUpdate"]["maxUnavailable"] = json!("50%");
    });
    run(&mut world, &|_| {});
    for image in ["v2", "v3", "v1"] {
        use_image(&mut world, image);
        run(&mut world, &|world| {
            let running = world.all::<Pod>().iter().filter(|pod| pod.path(&["status", "phase"]) == "Running").count();
            assert!(running >= 2, "{running}");
        });
        assert!(pods(&world).iter().all(|pod| pod.ends_with(image)), "{:?}", pods(&world));
    }
    assert_eq!(world.names::<ControllerRevision>().len(), 2);
    use_image(&mut world, "bad");
    run(&mut world, &|_| {});
    assert_eq!(pods(&world).iter().filter(|pod| pod.ends_with("bad")).count(), 2);
    use_image(&mut world, "v1");
    run(&mut world, &|_| {});
    assert!(pods(&world).iter().all(|pod| pod.ends_with("v1")));
}

#[test]
fn a_surge_keeps_the_old_pod_until_the_new_one_is_available() {
    let mut world = world(&["n1", "n2"], |spec| {
        spec["updateStrategy"]["rollingUpdate"] = json!({ "maxUnavailable": 0, "maxSurge": 1 });
    });
    run(&mut world, &|_| {});
    use_image(&mut world, "bad");
    run(&mut world, &|_| {});
    assert_eq!(pods(&world), ["n1 bad", "n1 v1", "n2 v1"]);
    use_image(&mut world, "v2");
    run(&mut world, &|world| {
        let works = |pod: &Value| !is_image(pod, "bad") && pod.path(&["status", "phase"]) == "Running";
        assert!(world.all::<Pod>().iter().filter(|pod| works(pod)).count() >= 2);
    });
    assert_eq!(pods(&world), ["n1 v2", "n2 v2"]);
}

#[test]
fn on_delete_only_what_is_deleted_is_replaced_by_what_is_new() {
    let mut world = world(&["n1", "n2"], |spec| spec["updateStrategy"] = json!({ "type": "OnDelete" }));
    run(&mut world, &|_| {});
    use_image(&mut world, "v2");
    run(&mut world, &|_| {});
    assert_eq!(pods(&world), ["n1 v1", "n2 v1"]);
    let name = world.all::<Pod>()[0]["metadata"]["name"].as_str().unwrap().to_owned();
    world.remove::<Pod>(&name);
    run(&mut world, &|_| {});
    assert_eq!(pods(&world), ["n1 v2", "n2 v1"]);
}

#[test]
fn what_has_ended_is_replaced_and_what_keeps_failing_ever_later() {
    let mut world = world(&["n1"], |_| {});
    run(&mut world, &|_| {});
    let end = |world: &mut World, phase: &str| {
        let name = world.names::<Pod>()[0].to_owned();
        world.edit::<Pod>(&name, |pod| pod["status"]["phase"] = json!(phase));
        name
    };
    let name = end(&mut world, "Succeeded");
    run(&mut world, &|_| {});
    let told = format!("Found succeeded daemon pod default/{name} on node n1, will try to delete it");
    assert!(world.events.contains(&format!("Normal SucceededDaemonPod {told}")), "{:?}", world.events);
    let failures = Mutex::new(Failures::default());
    let planned = |caches: &Caches, request: &Request| {
        observe(caches, request).map(|observed| plan(&observed, request, &mut failures.lock())).unwrap_or_default()
    };
    let name = end(&mut world, "Failed");
    world.settle("agent", &planned);
    assert!(!world.names::<Pod>().contains(&name.as_str()));
    let told = format!("Found failed daemon pod default/{name} on node n1, will try to kill it");
    assert!(world.events.contains(&format!("Warning FailedDaemonPod {told}")), "{:?}", world.events);
    start_pods(&mut world);
    let name = end(&mut world, "Failed");
    assert_eq!(world.settle("agent", &planned), Some(Duration::from_secs(1)));
    assert!(world.names::<Pod>().contains(&name.as_str()));
}

#[test]
fn of_two_pods_on_a_node_the_older_stays() {
    let mut world = world(&["n1"], |_| {});
    run(&mut world, &|_| {});
    let first = world.names::<Pod>()[0].to_owned();
    let mut twin = world.get::<Pod>(&first).clone();
    twin["metadata"] = json!({
        "name": "aaa", "creationTimestamp": "2027-01-01T00:00:00Z", "labels": twin["metadata"]["labels"],
    });
    world.create::<Pod>(twin);
    settle(&mut world);
    assert_eq!(world.names::<Pod>(), [first]);
}

#[test]
fn a_set_that_is_being_deleted_or_selects_everything_does_nothing() {
    let mut world = self::world(&["n1"], |_| {});
    world.edit::<DaemonSet>("agent", |set| {
        set["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
        set["metadata"]["finalizers"] = json!(["foregroundDeletion"]);
    });
    assert!(step(&mut world).is_empty());
    let mut world = self::world(&["n1"], |spec| spec["selector"] = json!({}));
    assert!(step(&mut world).writes.is_empty());
    assert!(world.events[0].starts_with("Warning SelectingAll"), "{:?}", world.events);
}

#[test]
fn a_set_is_woken_by_what_makes_a_difference_to_it() {
    let world = world(&["n1"], |spec| spec["template"]["spec"]["nodeSelector"] = json!({ "gpu": "yes" }));
    let node = |edit: Value| {
        let mut node = json!({ "metadata": { "name": "n1", "labels": { "gpu": "yes" } }, "spec": {} });
        for (field, value) in edit.as_object().unwrap() {
            node[field] = value.clone();
        }
        Some(Arc::new(Object::<Node>::of(&node)))
    };
    let plain = || node(json!({}));
    let unselected = || node(json!({ "metadata": { "name": "n1" } }));
    for (what, old, new, woken) in [
        ("a new node", None, plain(), true),
        ("a node that is gone", plain(), None, true),
        ("a label", unselected(), plain(), true),
        ("nothing", plain(), plain(), false),
        ("a status", plain(), node(json!({ "status": { "images": [] } })), false),
        (
            "a taint that is tolerated",
            plain(),
            node(json!({ "spec": { "taints": [{
            "key": "node.kubernetes.io/unreachable", "effect": "NoExecute",
        }] } })),
            false,
        ),
    ] {
        assert_eq!(!concerned(&Change { old, new }, &world.caches()).is_empty(), woken, "{what}");
    }
}

#[test]
fn a_crash_after_any_write_changes_nothing_about_the_end() {
    for surge in [0, 1] {
        for crash in 0..25 {
            let mut world = world(&["n1", "n2", "n3"], |spec| {
                spec["updateStrategy"]["rollingUpdate"] = json!({ "maxUnavailable": 1 - surge, "maxSurge": surge });
            });
            world.crash_after = Some(crash);
            run(&mut world, &|_| {});
            use_image(&mut world, "v2");
            run(&mut world, &|_| {});
            assert_eq!(pods(&world), ["n1 v2", "n2 v2", "n3 v2"], "{crash} {surge}");
            assert_eq!(world.get::<DaemonSet>("agent")["status"]["updatedNumberScheduled"], 3, "{crash} {surge}");
        }
    }
}
