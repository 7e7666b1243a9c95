//! Services, pods and what becomes of their slices.

use super::*;
use crate::fixture::{NOW, World};
use object::{Edit, View};
use std::time::Duration;

fn planned(caches: &Caches, request: &Request) -> Plan {
    observe(caches, request).map(|observed| plan(&observed)).unwrap_or_default()
}

fn world(service: &Value) -> World {
    let mut world = World::new();
    world.create::<Node>(json!({ "metadata": { "name": "n", "labels": { ZONE: "z" } } }));
    let mut spec = json!({
        "selector": { "app": "web" }, "clusterIP": "10.0.0.1", "ipFamilies": ["IPv4"],
        "ports": [{ "name": "http", "port": 80, "targetPort": "web", "protocol": "TCP" }],
    });
    for (field, value) in service.as_object().unwrap() {
        spec.set(field, value.clone());
    }
    world.create::<Service>(json!({ "metadata": { "name": "web", "labels": { "team": "a" } }, "spec": spec }));
    world
}

fn pod(number: usize) -> Value {
    // As text and as numbers, addresses are in the same order.
    let address = format!("10.1.{}.{}", 100 + number / 100, 100 + number % 100);
    json!({
        "metadata": { "name": format!("web-{number:04}"), "labels": { "app": "web" } },
        "spec": {
            "nodeName": "n",
            "containers": [{ "ports": [{ "name": "web", "containerPort": 8080, "protocol": "TCP" }] }],
        },
        "status": {
            "phase": "Running",
            "podIP": address,
            "podIPs": [{ "ip": address }],
            "conditions": [{ "type": "Ready", "status": "True", "lastTransitionTime": "2026-01-01T00:00:05Z" }],
        },
    })
}

/// How many endpoints there are in each slice.
fn sizes(world: &World) -> Vec<usize> {
    let mut sizes: Vec<_> = world.all::<EndpointSlice>().iter().map(|slice| slice.items("endpoints").len()).collect();
    sizes.sort_unstable();
    sizes
}

fn only(world: &World) -> Value {
    let [slice] = world.all::<EndpointSlice>().try_into().unwrap();
    slice
}

#[test]
fn a_service_without_pods_has_an_empty_slice_and_one_without_a_selector_none() {
    let mut with = world(&json!({}));
    with.settle("web", &planned);
    assert_eq!(sizes(&with), [0]);
    assert_eq!(only(&with)["ports"], json!([]));
    let mut without = world(&json!({ "selector": {} }));
    without.settle("web", &planned);
    let mut external = world(&json!({ "type": "ExternalName" }));
    external.settle("web", &planned);
    assert!(sizes(&without).is_empty() && sizes(&external).is_empty());
}

#[test]
fn an_endpoint_says_what_is_known_of_its_pod() {
    let mut world = world(&json!({ "trafficDistribution": "PreferSameNode", "clusterIP": "None" }));
    let mut named = pod(1);
    named["spec"]["hostname"] = json!("first");
    named["spec"]["subdomain"] = json!("web");
    world.create::<Pod>(named);
    world.now = NOW + Duration::from_secs(60);
    world.settle("web", &planned);
    let slice = only(&world);
    assert_eq!(
        slice["endpoints"],
        json!([{
            "addresses": ["10.1.100.101"],
            "conditions": { "ready": true, "serving": true, "terminating": false },
            "hostname": "first",
            "nodeName": "n",
            "zone": "z",
            "hints": { "forZones": [{ "name": "z" }], "forNodes": [{ "name": "n" }] },
            "targetRef": { "kind": "Pod", "namespace": "default", "name": "web-0001", "uid": "uid-3" },
        }])
    );
    assert_eq!(slice["ports"], json!([{ "name": "http", "port": 8080, "protocol": "TCP" }]));
    assert_eq!(slice["addressType"], "IPv4");
    let metadata = slice.at("metadata");
    assert_eq!(
        metadata["labels"],
        json!({
            "team": "a",
            "kubernetes.io/service-name": "web",
            "endpointslice.kubernetes.io/managed-by": MANAGER,
            "service.kubernetes.io/headless": "",
        })
    );
    assert_eq!(metadata["annotations"], json!({ "endpoints.kubernetes.io/last-change-trigger-time": NOW }));
    assert_eq!(metadata["ownerReferences"][0]["kind"], "Service");
}

#[test]
fn conditions_follow_readiness_and_deletion() {
    for (ready, deleted, publish, expected) in [
        ("True", false, false, Some([true, true, false])),
        ("False", false, false, Some([false, false, false])),
        ("False", false, true, Some([true, false, false])),
        ("True", true, false, Some([false, true, true])),
        ("True", true, true, Some([true, true, true])),
    ] {
        let mut world = world(&json!({ "publishNotReadyAddresses": publish }));
        let mut pod = pod(1);
        pod["status"]["conditions"][0]["status"] = json!(ready);
        if deleted {
            pod["metadata"]["deletionTimestamp"] = json!(NOW);
        }
        world.create::<Pod>(pod);
        world.settle("web", &planned);
        let conditions = only(&world)["endpoints"].as_array().unwrap().first().map(|endpoint| {
            ["ready", "serving", "terminating"].map(|name| endpoint["conditions"][name].as_bool().unwrap())
        });
        assert_eq!(conditions, expected, "ready {ready}, deleted {deleted}, publish {publish}");
    }
}

#[test]
fn pods_that_cannot_be_reached_are_no_endpoints() {
    let mut finished = pod(1);
    finished["status"]["phase"] = json!("Succeeded");
    let mut no_address = pod(2);
    no_address["status"] = json!({});
    let mut lost = pod(3);
    lost["spec"]["nodeName"] = json!("gone");
    let mut other_family = pod(4);
    other_family["status"]["podIPs"] = json!([{ "ip": "fd00::1" }]);
    let mut world = world(&json!({}));
    for pod in [finished, no_address, lost, other_family] {
        world.create::<Pod>(pod);
    }
    world.settle("web", &planned);
    assert_eq!(sizes(&world), [0]);
}

#[test]
fn pods_whose_ports_differ_are_in_different_slices() {
    let mut world = world(&json!({ "ipFamilies": ["IPv4", "IPv6"] }));
    world.create::<Pod>(pod(1));
    let mut other = pod(2);
    other["spec"]["containers"][0]["ports"][0]["containerPort"] = json!(9090);
    other["status"]["podIPs"] = json!([{ "ip": "10.1.100.102" }, { "ip": "fd00::2" }]);
    world.create::<Pod>(other);
    world.settle("web", &planned);
    let mut found: Vec<_> = world
        .all::<EndpointSlice>()
        .iter()
        .map(|slice| {
            format!("{} {} {}", slice["addressType"], slice["ports"][0]["port"], slice["endpoints"][0]["addresses"])
        })
        .collect();
    found.sort();
    assert_eq!(
        found,
        [r#""IPv4" 8080 ["10.1.100.101"]"#, r#""IPv4" 9090 ["10.1.100.102"]"#, r#""IPv6" 9090 ["fd00::2"]"#]
    );
}

#[test]
fn few_slices_change_when_pods_come_and_go() {
    let mut world = world(&json!({}));
    (0..250).for_each(|number| drop(world.create::<Pod>(pod(number))));
    world.settle("web", &planned);
    assert_eq!(sizes(&world), [50, 100, 100]);
    let writes_of = |world: &mut World| {
        world.writes.clear();
        world.settle("web", &planned);
        world.writes.len()
    };
    world.create::<Pod>(pod(250));
    assert_eq!((writes_of(&mut world), sizes(&world)), (1, vec![51, 100, 100]), "the one with room takes it");
    world.remove::<Pod>("web-0000");
    world.create::<Pod>(pod(251));
    assert_eq!((writes_of(&mut world), sizes(&world)), (1, vec![51, 100, 100]), "the gap is filled");
    (200..252).for_each(|number| world.remove::<Pod>(&format!("web-{number:04}")));
    writes_of(&mut world);
    assert_eq!(sizes(&world), [99, 100], "a slice that has become empty is gone");
}

#[test]
fn slices_of_a_service_that_had_the_name_before_are_not_kept() {
    let mut world = world(&json!({}));
    world.create::<Pod>(pod(1));
    world.settle("web", &planned);
    let name = world.names::<EndpointSlice>()[0].to_owned();
    world.edit::<EndpointSlice>(&name, |slice| slice["metadata"]["ownerReferences"][0]["uid"] = json!("before"));
    world.settle("web", &planned);
    assert_eq!(sizes(&world), [1]);
    assert_ne!(world.names::<EndpointSlice>(), [name]);
}

#[test]
fn a_service_that_is_being_deleted_gets_no_new_slices() {
    let mut world = world(&json!({}));
    world.edit::<Service>("web", |service| {
        service["metadata"]["finalizers"] = json!(["x"]);
        service["metadata"]["deletionTimestamp"] = json!(NOW);
    });
    world.create::<Pod>(pod(1));
    world.settle("web", &planned);
    assert!(sizes(&world).is_empty());
}

#[test]
fn a_pod_concerns_the_services_that_selected_it_or_do_now() {
    let world = world(&json!({}));
    let caches = world.caches();
    let object = |value: &Value| Some(Arc::new(Object::<Pod>::of(value)));
    let mut before = pod(1);
    before["metadata"]["namespace"] = json!("default");
    let mut relabeled = before.clone();
    relabeled["metadata"]["labels"]["app"] = json!("other");
    let mut annotated = before.clone();
    annotated["metadata"]["annotations"] = json!({ "a": "b" });
    for (old, new, expected) in [
        (None, object(&before), 1),
        (object(&before), object(&annotated), 0),
        (object(&before), object(&relabeled), 1),
        (object(&relabeled), None, 0),
    ] {
        let keys = backends::services_of_change(&Change { old, new }, &caches);
        assert_eq!(keys.len(), expected, "{keys:?}");
    }
}

#[test]
fn a_service_shares_its_endpoints_out_by_zone_if_it_is_told_to() {
    let mut world = world(&json!({ "trafficDistribution": "PreferSameNode" }));
    let ready = json!([{ "type": "Ready", "status": "True" }]);
    for (name, zone) in [("a", "a"), ("b", "b")] {
        let metadata = json!({ "name": name, "labels": { ZONE: zone } });
        let status = json!({ "allocatable": { "cpu": "4" }, "conditions": ready });
        world.create::<Node>(json!({ "metadata": metadata, "status": status }));
    }
    for number in 0..4 {
        let mut pod = pod(number);
        pod["spec"]["nodeName"] = json!("a");
        world.create::<Pod>(pod);
    }
    world.edit::<Service>("web", |service| {
        service["metadata"]["annotations"] = json!({ "service.kubernetes.io/topology-mode": "Auto" });
    });
    world.settle("web", &planned);
    let zones = |world: &World| {
        let slice = only(world);
        let zones =
            slice.items("endpoints").iter().map(|endpoint| endpoint["hints"]["forZones"][0].text("name").to_owned());
        zones.collect::<String>()
    };
    assert_eq!(zones(&world), "bbaa");
    assert_eq!(
        world.events,
        ["Normal TopologyAwareHintsEnabled Topology Aware Hints has been enabled, addressType: IPv4"]
    );
    // With one zone left there is nothing to share out.
    world.edit::<Node>("b", |node| node["status"]["conditions"][0]["status"] = json!("False"));
    world.settle("web", &planned);
    assert_eq!(only(&world)["endpoints"][0]["hints"], Value::Null);
    assert!(
        world.events.last().unwrap().starts_with("Warning TopologyAwareHintsDisabled Insufficient Node information")
    );
}
