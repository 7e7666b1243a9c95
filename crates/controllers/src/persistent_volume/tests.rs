//! Claims and volumes as they come to each other and part, each case until nothing is left to write.

use super::{claim, volume};
use crate::fixture::World;
use kinds::{Key, Node, PersistentVolume, PersistentVolumeClaim, Pod, StorageClass};
use object::{Value, View, json};
use runtime::{Caches, Plan, Request};

fn plan(caches: &Caches, request: &Request) -> Plan {
    match request.key.namespace.as_str() {
        "" => volume::observe(caches, request).map(|it| volume::plan(&it, request)).unwrap_or_default(),
        _ => claim::plan_for(caches, request),
    }
}

fn settle(world: &mut World) {
    // Twice, since volumes that are made on the way are keys too.
    for _ in 0..2 {
        let mut keys: Vec<Key> = world.names::<PersistentVolume>().into_iter().map(Key::cluster).collect();
        keys.extend(world.names::<PersistentVolumeClaim>().into_iter().map(|name| Key::new("default", name)));
        world.settle_all(&keys, &plan);
    }
}

fn volume(name: &str, size: &str, spec: Value) -> Value {
    let mut volume = json!({
        "metadata": { "name": name, "labels": { "name": name } },
        "spec": {
            "capacity": { "storage": size }, "accessModes": ["ReadWriteOnce"],
            "persistentVolumeReclaimPolicy": "Retain", "hostPath": { "path": "/data" },
        },
    });
    merge(&mut volume["spec"], spec);
    volume
}

fn claim(name: &str, size: &str, spec: Value) -> Value {
    let mut claim = json!({
        "metadata": { "name": name },
        "spec": {
            "accessModes": ["ReadWriteOnce"], "resources": { "requests": { "storage": size } },
            "storageClassName": "",
        },
        "status": { "phase": "Pending" },
    });
    merge(&mut claim["spec"], spec);
    claim
}

fn merge(into: &mut Value, fields: Value) {
    let Value::Object(fields) = fields else { panic!("an object") };
    for (field, value) in fields {
        into[field] = value;
    }
}

fn class(name: &str, provisioner: &str, mode: &str) -> Value {
    json!({ "metadata": { "name": name }, "provisioner": provisioner, "volumeBindingMode": mode, "reclaimPolicy": "Delete" })
}

/// `name:phase:the other side` of each claim and each volume.
fn state(world: &World) -> Vec<String> {
    let claims = world.all::<PersistentVolumeClaim>();
    let claims = claims.iter().map(|claim| {
        let volume = claim.at("spec").text("volumeName");
        format!("{}:{}:{volume}", claim.at("metadata").text("name"), claim.at("status").text("phase"))
    });
    let volumes = world.all::<PersistentVolume>();
    let volumes = volumes.iter().map(|volume| {
        let claim = volume.at("spec").at("claimRef").text("name");
        format!("{}:{}:{claim}", volume.at("metadata").text("name"), volume.at("status").text("phase"))
    });
    claims.chain(volumes).collect()
}

fn settled(volumes: Vec<Value>, claims: Vec<Value>) -> World {
    let mut world = World::new();
    for volume in volumes {
        world.create::<PersistentVolume>(volume);
    }
    for claim in claims {
        world.create::<PersistentVolumeClaim>(claim);
    }
    settle(&mut world);
    world
}

#[test]
fn a_claim_gets_the_smallest_volume_that_will_do() {
    let wide = json!({ "accessModes": ["ReadWriteOnce", "ReadWriteMany"] });
    for (what, volumes, wanted, expected) in [
        ("none is there", vec![], claim("c", "1Gi", json!({})), "c:Pending:"),
        ("one is too small", vec![volume("v", "1Mi", json!({}))], claim("c", "1Gi", json!({})), "c:Pending:"),
        (
            "the smallest wins",
            vec![volume("a", "5Gi", json!({})), volume("b", "2Gi", json!({})), volume("d", "3Gi", json!({}))],
            claim("c", "1Gi", json!({})),
            "c:Bound:b",
        ),
        (
            "no more modes than needed come before size",
            vec![volume("a", "5Gi", json!({})), volume("b", "2Gi", wide)],
            claim("c", "1Gi", json!({})),
            "c:Bound:a",
        ),
        (
            "modes it does not have",
            vec![volume("a", "5Gi", json!({}))],
            claim("c", "1Gi", json!({ "accessModes": ["ReadWriteMany"] })),
            "c:Pending:",
        ),
        (
            "another class",
            vec![volume("a", "5Gi", json!({ "storageClassName": "x" }))],
            claim("c", "1Gi", json!({})),
            "c:Pending:",
        ),
        (
            "a device is no file system",
            vec![volume("a", "5Gi", json!({ "volumeMode": "Block" }))],
            claim("c", "1Gi", json!({})),
            "c:Pending:",
        ),
        (
            "what is selected",
            vec![volume("a", "1Gi", json!({})), volume("b", "2Gi", json!({}))],
            claim("c", "1Gi", json!({ "selector": { "matchLabels": { "name": "b" } } })),
            "c:Bound:b",
        ),
        (
            "one that is meant for it comes first",
            vec![
                volume("a", "1Gi", json!({})),
                volume("b", "2Gi", json!({ "claimRef": { "namespace": "default", "name": "c" } })),
            ],
            claim("c", "1Gi", json!({})),
            "c:Bound:b",
        ),
        (
            "one that is meant for another is left",
            vec![volume("b", "2Gi", json!({ "claimRef": { "namespace": "default", "name": "other" } }))],
            claim("c", "1Gi", json!({})),
            "c:Pending:",
        ),
        (
            "one that is asked for by name",
            vec![volume("a", "1Gi", json!({})), volume("b", "2Gi", json!({}))],
            claim("c", "1Gi", json!({ "volumeName": "b" })),
            "c:Bound:b",
        ),
    ] {
        let world = settled(volumes, vec![wanted]);
        assert_eq!(state(&world)[0], expected, "{what}");
    }
}

#[test]
fn a_binding_stands_on_both_sides() {
    let world = settled(vec![volume("v", "2Gi", json!({}))], vec![claim("c", "1Gi", json!({}))]);
    assert_eq!(state(&world), ["c:Bound:v", "v:Bound:c"]);
    let (claim, volume) = (world.get::<PersistentVolumeClaim>("c"), world.get::<PersistentVolume>("v"));
    let yes = json!({ "pv.kubernetes.io/bind-completed": "yes", "pv.kubernetes.io/bound-by-controller": "yes" });
    assert_eq!(claim["metadata"]["annotations"], yes);
    assert_eq!(claim["status"]["capacity"], json!({ "storage": "2Gi" }));
    assert_eq!(claim["status"]["accessModes"], json!(["ReadWriteOnce"]));
    assert_eq!(volume["metadata"]["annotations"], json!({ "pv.kubernetes.io/bound-by-controller": "yes" }));
    assert_eq!(volume["spec"]["claimRef"]["uid"], claim["metadata"]["uid"]);
    // The volume is written first: its version decides who gets it.
    let bound: Vec<&String> = world.writes.iter().filter(|line| !line.contains("/status")).collect();
    assert_eq!(bound, ["update persistentvolumes v", "update persistentvolumeclaims c"]);
}

#[test]
fn one_volume_goes_to_one_claim() {
    let claims = vec![claim("a", "1Gi", json!({})), claim("b", "1Gi", json!({}))];
    let world = settled(vec![volume("v", "2Gi", json!({}))], claims);
    assert_eq!(state(&world), ["a:Bound:v", "b:Pending:", "v:Bound:a"]);
}

#[test]
fn a_volume_asked_for_by_name_is_refused_with_a_reason() {
    let taken = json!({ "claimRef": { "namespace": "default", "name": "other" } });
    for (volume, expected) in [
        (
            volume("v", "1Mi", json!({})),
            "Warning VolumeMismatch Cannot bind to requested volume \"v\": requested PV is too small",
        ),
        (
            volume("v", "1Mi", json!({ "storageClassName": "x" })),
            "Warning VolumeMismatch Cannot bind to requested volume \"v\": requested PV is too small",
        ),
        (
            volume("v", "1Gi", json!({ "storageClassName": "x" })),
            "Warning VolumeMismatch Cannot bind to requested volume \"v\": storageClassName does not match",
        ),
        (volume("v", "1Gi", taken), "Warning FailedBinding volume \"v\" already bound to a different claim."),
    ] {
        let world = settled(vec![volume], vec![claim("c", "1Gi", json!({ "volumeName": "v" }))]);
        assert_eq!(state(&world)[0], "c:Pending:v");
        assert_eq!(world.events[0], expected);
    }
}

#[test]
fn a_claim_that_was_bound_and_has_lost_its_volume_says_so() {
    let mut world = settled(vec![volume("v", "2Gi", json!({}))], vec![claim("c", "1Gi", json!({}))]);
    world.remove::<PersistentVolume>("v");
    settle(&mut world);
    assert_eq!(state(&world), ["c:Lost:v"]);
    assert!(!world.get::<PersistentVolumeClaim>("c")["status"].has("capacity"));
    let told = "Warning ClaimLost Bound claim has lost its PersistentVolume. Data on the volume is lost!";
    assert_eq!(world.events, [told]);
}

#[test]
fn what_becomes_of_a_volume_is_what_its_policy_says() {
    let provisioned = |by: &str| json!({ "pv.kubernetes.io/provisioned-by": by });
    let migrated = json!({
        "pv.kubernetes.io/provisioned-by": "kubernetes.io/aws-ebs", "pv.kubernetes.io/migrated-to": "ebs.csi.aws.com",
    });
    for (policy, path, annotations, expected, told) in [
        ("Retain", "/data", json!({}), vec!["v:Released:c"], None),
        ("Delete", "/tmp/x", json!({}), vec![], None),
        (
            "Delete",
            "/data",
            json!({}),
            vec!["v:Failed:c"],
            Some("Warning VolumeFailedDelete host_path deleter only supports /tmp/.+ but received provided /data"),
        ),
        ("Delete", "/data", provisioned("setpoint.dev/local-path"), vec![], None),
        ("Delete", "/data", provisioned("csi.example.com"), vec!["v:Released:c"], None),
        ("Delete", "csi", json!({}), vec!["v:Released:c"], None),
        ("Delete", "/data", migrated, vec!["v:Released:c"], None),
        (
            "Delete",
            "/data",
            provisioned("kubernetes.io/glusterfs"),
            vec!["v:Failed:c"],
            Some("Warning VolumeFailedDelete no volume plugin matched name: kubernetes.io/glusterfs"),
        ),
        (
            "Recycle",
            "/data",
            json!({}),
            vec!["v:Failed:c"],
            Some("Warning VolumeFailedRecycle No recycler plugin found for the volume!"),
        ),
    ] {
        let mut volume = volume("v", "2Gi", json!({ "persistentVolumeReclaimPolicy": policy }));
        let spec = &mut volume["spec"];
        match path {
            "csi" => (spec["hostPath"], spec["csi"]) = (Value::Null, json!({ "driver": "csi.example.com" })),
            path => spec["hostPath"] = json!({ "path": path }),
        }
        volume["metadata"]["annotations"] = annotations;
        let mut world = settled(vec![volume], vec![claim("c", "1Gi", json!({}))]);
        assert_eq!(state(&world)[0], "c:Bound:v");
        world.remove::<PersistentVolumeClaim>("c");
        settle(&mut world);
        assert_eq!(state(&world), expected, "{policy} {path}");
        assert_eq!(world.events.first().map(String::as_str), told);
    }
}

#[test]
fn a_volume_goes_back_if_its_claim_has_another() {
    for (annotations, expected) in
        [(json!({ "pv.kubernetes.io/bound-by-controller": "yes" }), "b:Available:"), (json!({}), "b:Available:c")]
    {
        let mut world = settled(vec![volume("a", "1Gi", json!({}))], vec![claim("c", "1Gi", json!({}))]);
        let uid = world.get::<PersistentVolumeClaim>("c")["metadata"]["uid"].clone();
        let mut other = volume("b", "1Gi", json!({ "claimRef": { "namespace": "default", "name": "c", "uid": uid } }));
        other["metadata"]["annotations"] = annotations;
        world.create::<PersistentVolume>(other);
        settle(&mut world);
        assert_eq!(state(&world), ["c:Bound:a", "a:Bound:c", expected]);
    }
}

#[test]
fn a_claim_without_a_class_gets_the_default_one_when_there_is_one() {
    let mut unclassed = claim("c", "1Gi", json!({}));
    unclassed["spec"].as_object_mut().unwrap().remove("storageClassName");
    let mut world = settled(vec![], vec![unclassed, claim("none", "1Gi", json!({}))]);
    let told = "Normal FailedBinding no persistent volumes available for this claim and no storage class is set";
    assert_eq!(world.events[0], told);
    let mut default = class("standard", "example.com/nfs", "Immediate");
    default["metadata"]["annotations"] = json!({ "storageclass.kubernetes.io/is-default-class": "true" });
    world.create::<StorageClass>(default);
    settle(&mut world);
    let claim = world.get::<PersistentVolumeClaim>("c");
    assert_eq!(claim["spec"]["storageClassName"], "standard");
    assert_eq!(claim["metadata"]["annotations"]["volume.kubernetes.io/storage-provisioner"], "example.com/nfs");
    assert!(world.events.last().unwrap().starts_with("Normal FailedBinding"), "the other wants none");
    assert!(world.events.iter().any(|told| told.starts_with("Normal ExternalProvisioning Waiting for a volume")));
}

#[test]
fn a_claim_asks_the_provisioner_that_its_class_has_now() {
    let mut world = World::new();
    world.create::<StorageClass>(class("standard", "example.com/nfs", "Immediate"));
    world.create::<PersistentVolumeClaim>(claim("c", "1Gi", json!({ "storageClassName": "standard" })));
    settle(&mut world);
    world.remove::<StorageClass>("standard");
    world.create::<StorageClass>(class("standard", "example.com/block", "Immediate"));
    settle(&mut world);
    let annotations = &world.get::<PersistentVolumeClaim>("c")["metadata"]["annotations"];
    for request in ["volume.kubernetes.io/storage-provisioner", "volume.beta.kubernetes.io/storage-provisioner"] {
        assert_eq!(annotations[request], "example.com/block");
    }
}

#[test]
fn a_claim_that_waits_for_a_consumer_is_bound_where_the_scheduler_says() {
    let mut world = World::new();
    world.create::<StorageClass>(class("local-path", "setpoint.dev/local-path", "WaitForFirstConsumer"));
    world.create::<Node>(json!({ "metadata": { "name": "n1", "labels": { "kubernetes.io/hostname": "h1" } } }));
    // One that would do is for the scheduler to give away.
    world.create::<PersistentVolume>(volume("v", "1Gi", json!({ "storageClassName": "local-path" })));
    world.create::<PersistentVolumeClaim>(claim("c", "1Gi", json!({ "storageClassName": "local-path" })));
    settle(&mut world);
    assert_eq!(world.events[0], "Normal WaitForFirstConsumer waiting for first consumer to be created before binding");
    world.create::<Pod>(json!({
        "metadata": { "name": "p" },
        "spec": { "volumes": [{ "name": "data", "persistentVolumeClaim": { "claimName": "c" } }] },
    }));
    settle(&mut world);
    assert_eq!(world.events.last().unwrap(), "Normal WaitForPodScheduled waiting for pod p to be scheduled");
    let select = |world: &mut World, node: &str| {
        world.edit::<PersistentVolumeClaim>("c", |claim| {
            claim["metadata"]["annotations"]["volume.kubernetes.io/selected-node"] = json!(node);
        });
    };
    select(&mut world, "gone");
    settle(&mut world);
    let refused = "Warning ProvisioningFailed Failed to provision volume with StorageClass \"local-path\": node \"gone\" not found";
    assert!(world.events.iter().any(|told| told == refused), "{:?}", world.events);
    select(&mut world, "n1");
    settle(&mut world);
    let uid = world.get::<PersistentVolumeClaim>("c")["metadata"]["uid"].as_str().unwrap().to_owned();
    let name = format!("pvc-{uid}");
    assert_eq!(state(&world)[0], format!("c:Bound:{name}"));
    let told =
        format!("Normal ProvisioningSucceeded Successfully provisioned volume {name} using setpoint.dev/local-path");
    assert!(world.events.contains(&told));
    let made = world.get::<PersistentVolume>(&name);
    assert_eq!(made["status"]["phase"], "Bound");
    assert_eq!(made["spec"]["hostPath"]["path"], format!("/var/lib/setpoint/local-path/{name}_default_c"));
    let terms = &made["spec"]["nodeAffinity"]["required"]["nodeSelectorTerms"];
    assert_eq!(terms[0]["matchExpressions"][0]["values"], json!(["h1"]));
    world.remove::<PersistentVolumeClaim>("c");
    settle(&mut world);
    assert_eq!(state(&world), ["v:Available:"]);
}

#[test]
fn classes_that_nobody_serves_are_told_of() {
    for (provisioner, expected) in [
        ("", "Warning ProvisioningFailed storageclass.storage.k8s.io \"x\" not found"),
        (
            "kubernetes.io/no-provisioner",
            "Warning ProvisioningFailed no volume plugin matched name: kubernetes.io/no-provisioner",
        ),
        (
            "setpoint.dev/local-path",
            "Warning ProvisioningFailed Failed to provision volume with StorageClass \"x\": no node was specified: the \
             class needs volumeBindingMode WaitForFirstConsumer",
        ),
    ] {
        let mut world = World::new();
        if !provisioner.is_empty() {
            world.create::<StorageClass>(class("x", provisioner, "Immediate"));
        }
        world.create::<PersistentVolumeClaim>(claim("c", "1Gi", json!({ "storageClassName": "x" })));
        settle(&mut world);
        assert_eq!(world.events[0], expected);
        assert_eq!(state(&world), ["c:Pending:"]);
    }
}

#[test]
fn a_claim_that_is_being_deleted_is_not_bound_any_more() {
    let mut leaving = claim("c", "1Gi", json!({}));
    leaving["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    leaving["metadata"]["finalizers"] = json!(["kubernetes.io/pvc-protection"]);
    let world = settled(vec![volume("v", "2Gi", json!({}))], vec![leaving]);
    assert_eq!(state(&world), ["c:Pending:", "v:Available:"]);
}
