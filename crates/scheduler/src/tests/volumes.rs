//! Pods and their volumes.

use super::{Fixture, caches, in_zone, node, pod};
use crate::{Decision, Preparation};
use kinds::{
    CSIDriver, CSINode, CSIStorageCapacity, Key, Object, PersistentVolume, PersistentVolumeClaim, StorageClass,
};
use object::{Value, json};
use runtime::Caches;

fn claim(name: &str, class: &str, more: &Value) -> Object<PersistentVolumeClaim> {
    let mut claim = json!({
        "metadata": { "name": name, "namespace": "default", "uid": name },
        "spec": {
            "storageClassName": class, "accessModes": ["ReadWriteOnce"],
            "resources": { "requests": { "storage": "1Gi" } },
        },
    });
    super::merge(&mut claim, more);
    Object::of(&claim)
}

fn bound(name: &str, volume: &str) -> Object<PersistentVolumeClaim> {
    let annotations = json!({ "pv.kubernetes.io/bind-completed": "yes" });
    claim(name, "", &json!({ "metadata": { "annotations": annotations }, "spec": { "volumeName": volume } }))
}

fn volume(name: &str, more: &Value) -> Object<PersistentVolume> {
    let mut volume = json!({
        "metadata": { "name": name },
        "spec": { "capacity": { "storage": "1Gi" }, "accessModes": ["ReadWriteOnce"], "storageClassName": "later" },
        "status": { "phase": "Available" },
    });
    super::merge(&mut volume, more);
    Object::of(&volume)
}

fn on_node(node: &str) -> Value {
    let expression = json!({ "key": "kubernetes.io/hostname", "operator": "In", "values": [node] });
    json!({ "spec": { "nodeAffinity": { "required": { "nodeSelectorTerms": [{ "matchExpressions": [expression] }] } } } })
}

fn class(name: &str, provisioner: &str) -> Object<StorageClass> {
    Object::of(&json!({
        "metadata": { "name": name }, "provisioner": provisioner, "volumeBindingMode": "WaitForFirstConsumer",
    }))
}

fn using(name: &str, claims: &[&str]) -> Value {
    let volumes: Vec<Value> =
        claims.iter().map(|claim| json!({ "name": claim, "persistentVolumeClaim": { "claimName": claim } })).collect();
    pod(name, &json!({ "spec": { "volumes": volumes } }))
}

fn world(fill: impl Fn(&mut Caches)) -> Fixture {
    let mut caches = caches();
    fill(&mut caches);
    Fixture::with(caches, &[in_zone("a", "x"), in_zone("b", "y")])
}

fn prepared(fixture: &mut Fixture, pod: &Value) -> (String, Preparation) {
    fixture.pod(pod);
    match fixture.next() {
        Some(Decision::Bind { node, volumes, .. }) => (node, volumes),
        other => panic!("{other:?}"),
    }
}

#[test]
fn claims_have_to_be_there_and_bound() {
    let tail = "preemption: 0/2 nodes are available: 2 Preemption is not helpful for scheduling.";
    let mut fixture = world(|caches| caches.put(claim("unbound", "none", &json!({}))));
    let told = fixture.place(&using("p", &["gone"]));
    assert_eq!(told, format!("0/2 nodes are available: persistentvolumeclaim \"gone\" not found. {tail}"));
    let told = fixture.place(&using("q", &["unbound"]));
    assert_eq!(told, format!("0/2 nodes are available: pod has unbound immediate PersistentVolumeClaims. {tail}"));
    let told = fixture.place(&using("r", &["unbound", "gone"]));
    assert_eq!(told, format!("0/2 nodes are available: persistentvolumeclaim \"gone\" not found. {tail}"));
}

#[test]
fn a_pod_waits_until_its_own_claims_are_made_and_does_not_take_others() {
    let volumes = json!([{ "name": "data", "ephemeral": { "volumeClaimTemplate": {} } }]);
    let mut fixture = world(|caches| caches.put(bound("taken-data", "v")));
    for (name, reason) in [
        ("p", "waiting for ephemeral volume controller to create the persistentvolumeclaim \"p-data\""),
        ("taken", "PVC default/taken-data was not created for pod default/taken (pod is not owner)"),
    ] {
        let told = fixture.place(&pod(name, &json!({ "spec": { "volumes": volumes } })));
        assert!(told.starts_with(&format!("0/2 nodes are available: {reason}.")), "{told}");
    }
}

#[test]
fn all_that_is_wrong_with_volumes_on_a_node_is_told() {
    let mut fixture = world(|caches| {
        caches.put(class("later", "kubernetes.io/no-provisioner"));
        caches.put(claim("local", "later", &json!({})));
        caches.put(bound("far", "w"));
        let mut on_b = on_node("b");
        on_b["status"] = json!({ "phase": "Bound" });
        caches.put(volume("w", &on_b));
    });
    let told = fixture.place(&using("p", &["far", "local"]));
    let reasons = "1 node(s) didn't match PersistentVolume's node affinity, 2 node(s) didn't find available persistent volumes to bind.";
    assert!(told.starts_with(&format!("0/2 nodes are available: {reasons}")), "{told}");
}

#[test]
fn where_nodes_say_nothing_of_zones_volumes_of_any_zone_do() {
    let labels = |labels: &Value| json!({ "metadata": { "labels": labels } });
    let (zone, beta) = ("topology.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/zone");
    for (on_volume, on_node, does) in [
        (json!({ zone: "x" }), json!({}), true),
        (json!({ zone: "x" }), json!({ zone: "y" }), false),
        (json!({ zone: "x__y" }), json!({ zone: "y" }), true),
        (json!({ beta: "x" }), json!({ zone: "x" }), true),
        (json!({ zone: "x" }), json!({ "topology.kubernetes.io/region": "r" }), false),
    ] {
        let mut caches = caches();
        caches.put(bound("data", "v"));
        caches.put(volume("v", &labels(&on_volume)));
        let told = Fixture::with(caches, &[node("n", &labels(&on_node))]).place(&using("p", &["data"]));
        assert_eq!(told == "p on n", does, "{on_volume:?} {on_node:?}: {told}");
    }
}

#[test]
fn a_pod_goes_where_its_volume_is() {
    let mut fixture = world(|caches| {
        caches.put(bound("data", "v"));
        caches.put(volume("v", &on_node("b")));
        caches.put(bound("far", "w"));
        caches.put(volume("w", &on_node("c")));
        caches.put(bound("zonal", "z"));
        caches.put(volume("z", &json!({ "metadata": { "labels": { "topology.kubernetes.io/zone": "x" } } })));
    });
    assert_eq!(fixture.place(&using("p", &["data"])), "p on b");
    let told = fixture.place(&using("q", &["far"]));
    let reason = "0/2 nodes are available: 2 node(s) didn't match PersistentVolume's node affinity.";
    assert!(told.starts_with(reason), "{told}");
    assert_eq!(fixture.place(&using("r", &["zonal"])), "r on a");
    let told = fixture.place(&using("s", &["zonal", "data"]));
    assert!(told.contains("1 node(s) didn't match PersistentVolume's node affinity"), "{told}");
    assert!(told.contains("1 node(s) had no available volume zone"), "{told}");
}

#[test]
fn a_claim_that_waits_gets_the_smallest_volume_that_does_or_one_is_made() {
    let mut fixture = world(|caches| {
        caches.put(class("later", "example.com/disks"));
        for name in ["one", "two"] {
            caches.put(claim(name, "later", &json!({})));
        }
        caches.put(volume("large", &json!({ "spec": { "capacity": { "storage": "9Gi" } } })));
        caches.put(volume("fitting", &on_node("b")));
        caches.put(volume("small", &json!({ "spec": { "capacity": { "storage": "1Mi" } } })));
    });
    // Both nodes do: one has the fitting volume, the other the large one.
    let (node, volumes) = prepared(&mut fixture, &using("p", &["one"]));
    let expected = if node == "b" { "fitting" } else { "large" };
    assert_eq!(volumes.matched, [(expected.to_owned(), Key::new("default", "one"))]);
    // What is spoken for is not given twice.
    let (_, volumes) = prepared(&mut fixture, &using("q", &["two"]));
    assert!(!volumes.matched.iter().any(|(volume, _)| volume == expected), "{volumes:?}");
}

#[test]
fn a_volume_is_made_for_the_node_unless_the_class_has_nobody_to_make_it() {
    let mut fixture = world(|caches| {
        caches.put(class("made", "example.com/disks"));
        caches.put(class("found", "kubernetes.io/no-provisioner"));
        caches.put(claim("one", "made", &json!({})));
        caches.put(claim("two", "found", &json!({})));
        let selected = json!({ "metadata": { "annotations": { "volume.kubernetes.io/selected-node": "b" } } });
        caches.put(claim("three", "made", &selected));
    });
    let (_, volumes) = prepared(&mut fixture, &using("p", &["one"]));
    assert_eq!(volumes.provisioned, [Key::new("default", "one")]);
    let told = fixture.place(&using("q", &["two"]));
    let reason = "0/2 nodes are available: 2 node(s) didn't find available persistent volumes to bind.";
    assert!(told.starts_with(reason), "{told}");
    assert_eq!(prepared(&mut fixture, &using("r", &["three"])).0, "b", "where it is being made is settled");
}

#[test]
fn a_claim_for_one_pod_alone_is_used_by_one() {
    let mut fixture = world(|caches| {
        let mut alone = json!({ "spec": { "accessModes": ["ReadWriteOncePod"], "volumeName": "v" } });
        super::merge(
            &mut alone,
            &json!({ "metadata": { "annotations": { "pv.kubernetes.io/bind-completed": "yes" } } }),
        );
        caches.put(claim("alone", "", &alone));
        caches.put(volume("v", &json!({})));
        let mut user = using("user", &["alone"]);
        user["spec"]["nodeName"] = json!("a");
        caches.put(Object::<kinds::Pod>::of(&user));
    });
    let mut user = using("user", &["alone"]);
    user["spec"]["nodeName"] = json!("a");
    fixture.pod(&user);
    let told = fixture.place(&using("p", &["alone"]));
    let reason = "2 node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already in-use by another pod";
    assert!(told.contains(reason), "{told}");
    let mut important = using("important", &["alone"]);
    important["spec"]["priority"] = json!(1);
    assert_eq!(fixture.place(&important), "important wants a of user");
}

#[test]
fn a_driver_attaches_no_more_volumes_than_it_can() {
    let csi = |handle: &str| json!({ "spec": { "csi": { "driver": "d", "volumeHandle": handle } } });
    let mut fixture = world(|caches| {
        for (name, node) in [("a", "a"), ("b", "b")] {
            let drivers = json!([{ "name": "d", "allocatable": { "count": 1 } }]);
            caches.put(Object::<CSINode>::of(&json!({ "metadata": { "name": node }, "spec": { "drivers": drivers } })));
            caches.put(bound(name, &format!("v-{name}")));
            caches.put(volume(&format!("v-{name}"), &csi(name)));
        }
        caches.put(bound("c", "v-c"));
        caches.put(volume("v-c", &csi("c")));
    });
    let first = fixture.place(&using("p", &["a"]));
    let second = fixture.place(&using("q", &["b"]));
    assert_ne!(first.split(" on ").last(), second.split(" on ").last());
    let told = fixture.place(&using("r", &["c"]));
    assert!(told.starts_with("0/2 nodes are available: 2 node(s) exceed max volume count."), "{told}");
    let mut forced = using("forced", &["c"]);
    forced["spec"]["nodeName"] = json!(first.split(" on ").last());
    fixture.pod(&forced);
    let told = fixture.place(&using("s", &["a", "c"]));
    assert_eq!(told.split(" on ").last(), first.split(" on ").last(), "what is attached already counts for nothing");
}

#[test]
fn disks_named_in_pods_are_shared_by_readers_alone() {
    let disk = |name: &str, read_only: bool| {
        let source = json!({ "pdName": "d", "readOnly": read_only });
        pod(name, &json!({ "spec": { "volumes": [{ "name": "v", "gcePersistentDisk": source }] } }))
    };
    let mut fixture = Fixture::new(&[node("n", &json!({}))]);
    assert_eq!(fixture.place(&disk("a", true)), "a on n");
    assert_eq!(fixture.place(&disk("b", true)), "b on n");
    let told = fixture.place(&disk("c", false));
    assert!(told.starts_with("0/1 nodes are available: 1 node(s) had no available disk."), "{told}");
    let image = |name: &str, monitors: &[&str]| {
        let source = json!({ "monitors": monitors, "pool": "p", "image": "i" });
        pod(name, &json!({ "spec": { "volumes": [{ "name": "v", "rbd": source }] } }))
    };
    assert_eq!(fixture.place(&image("d", &["m1", "m2"])), "d on n");
    assert_eq!(fixture.place(&image("e", &["m3"])), "e on n", "another cluster");
    assert!(fixture.place(&image("f", &["m2", "m4"])).starts_with("0/1"));
}

#[test]
fn a_volume_is_made_where_the_driver_has_room_for_it() {
    let capacity = |zone: &str, size: &str| {
        let topology = json!({ "matchLabels": { "topology.kubernetes.io/zone": zone } });
        Object::<CSIStorageCapacity>::of(&json!({
            "metadata": { "name": zone, "namespace": "driver" }, "storageClassName": "later",
            "nodeTopology": topology, "capacity": size,
        }))
    };
    let world = |says: bool, sizes: [&str; 2]| {
        world(|caches| {
            caches.put(class("later", "driver.example.com"));
            caches.put(claim("data", "later", &json!({})));
            caches.put(Object::<CSIDriver>::of(&json!({
                "metadata": { "name": "driver.example.com" }, "spec": { "storageCapacity": says },
            })));
            caches.put(capacity("x", sizes[0]));
            caches.put(capacity("y", sizes[1]));
        })
    };
    let pod = using("p", &["data"]);
    assert_eq!(prepared(&mut world(true, ["512Mi", "2Gi"]), &pod).0, "b");
    assert_eq!(prepared(&mut world(true, ["1Gi", "0"]), &pod).0, "a");
    let refusal = world(true, ["0", "0"]).place(&pod);
    assert!(refusal.contains("2 node(s) did not have enough free storage"), "{refusal}");
    assert!(
        world(false, ["0", "0"]).place(&pod).starts_with("p on "),
        "a driver that does not say is believed to have"
    );
}
