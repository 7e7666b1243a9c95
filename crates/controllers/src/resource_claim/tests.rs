//! Pods and the claims that were made for them.

use super::*;
use crate::fixture::World;
use object::{Value, View, json};

fn plan(caches: &Caches, request: &Request) -> Plan {
    match request.key.name.strip_prefix(CLAIM) {
        None => pods::observe(caches, &request.key).map(|it| pods::plan(&it)).unwrap_or_default(),
        Some(name) => {
            let Some(mut observed) = claims::observe(caches, &Key::new("default", name)) else {
                return Plan::default();
            };
            for consumer in observed.unknown_consumers() {
                observed.know(&consumer, false);
            }
            claims::plan(&observed)
        }
    }
}

fn settle(world: &mut World) {
    for _ in 0..2 {
        let mut keys: Vec<Key> =
            world.names::<ResourceClaim>().into_iter().map(|name| claim_key("default", name)).collect();
        keys.extend(world.names::<Pod>().into_iter().map(|name| Key::new("default", name)));
        world.settle_all(&keys, &plan);
    }
}

fn with_pod(node: &str) -> World {
    let mut world = World::new();
    world.create::<ResourceClaimTemplate>(json!({
        "metadata": { "name": "gpus" },
        "spec": { "metadata": { "labels": { "a": "b" } }, "spec": { "devices": { "requests": [] } } },
    }));
    world.create::<Pod>(json!({
        "metadata": { "name": "p" },
        "spec": {
            "nodeName": node, "resourceClaims": [{ "name": "gpu", "resourceClaimTemplateName": "gpus" }],
        },
    }));
    world
}

fn allocate(world: &mut World, claim: &str, users: &Value) {
    world.edit::<ResourceClaim>(claim, |claim| {
        claim["metadata"]["finalizers"] = json!(["resource.kubernetes.io/delete-protection"]);
        claim["status"] = json!({ "allocation": { "devices": {} }, "reservedFor": users });
    });
}

fn user(world: &World) -> Value {
    json!([{ "resource": "pods", "name": "p", "uid": world.get::<Pod>("p")["metadata"]["uid"] }])
}

#[test]
fn a_template_becomes_a_claim_that_the_pod_names() {
    let mut world = with_pod("");
    settle(&mut world);
    assert_eq!(world.writes, ["create resourceclaims p-gpu-", "patch pods/status p"]);
    let claims = world.all::<ResourceClaim>();
    let metadata = claims[0].at("metadata");
    assert_eq!(metadata.at("annotations"), &json!({ POD_CLAIM_NAME: "gpu" }));
    assert_eq!(metadata.at("labels"), &json!({ "a": "b" }));
    assert_eq!(claims[0]["spec"], json!({ "devices": { "requests": [] } }));
    let named = json!([{ "name": "gpu", "resourceClaimName": metadata.text("name") }]);
    assert_eq!(world.get::<Pod>("p")["status"]["resourceClaimStatuses"], named);
}

#[test]
fn a_missing_template_is_told_of() {
    let mut world = with_pod("");
    world.remove::<ResourceClaimTemplate>("gpus");
    settle(&mut world);
    let told = "Warning FailedResourceClaimCreation PodResourceClaim gpu: resource claim template \"gpus\": \
                resourceclaimtemplate.resource.k8s.io \"gpus\" not found";
    assert_eq!(world.events[0], told);
    assert!(world.writes.is_empty());
}

#[test]
fn a_pod_that_has_a_node_has_its_claims_reserved() {
    let mut world = with_pod("n");
    settle(&mut world);
    let name = world.names::<ResourceClaim>()[0].to_owned();
    allocate(&mut world, &name, &json!([]));
    settle(&mut world);
    assert_eq!(world.get::<ResourceClaim>(&name)["status"]["reservedFor"], user(&world));
}

#[test]
fn a_claim_is_free_when_its_last_user_has_gone() {
    let mut world = with_pod("n");
    world.create::<ResourceClaim>(json!({ "metadata": { "name": "shared" } }));
    let users = user(&world);
    allocate(&mut world, "shared", &users);
    settle(&mut world);
    assert!(world.get::<ResourceClaim>("shared")["status"].has("allocation"));
    world.remove::<Pod>("p");
    settle(&mut world);
    let claim = world.get::<ResourceClaim>("shared");
    assert!(!claim["status"].has("allocation") && !claim["status"].has("reservedFor"));
    assert!(claim["metadata"].items("finalizers").is_empty());
}

#[test]
fn a_claim_that_nobody_has_used_yet_stays_allocated() {
    let mut world = World::new();
    world.create::<ResourceClaim>(json!({ "metadata": { "name": "shared" } }));
    allocate(&mut world, "shared", &json!([]));
    settle(&mut world);
    assert!(world.get::<ResourceClaim>("shared")["status"].has("allocation"));
    world.edit::<ResourceClaim>("shared", |claim| {
        claim["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    });
    settle(&mut world);
    assert!(world.names::<ResourceClaim>().is_empty(), "but it can be deleted");
}

#[test]
fn a_claim_made_for_a_pod_goes_when_the_pod_is_done() {
    let mut world = with_pod("n");
    settle(&mut world);
    let name = world.names::<ResourceClaim>()[0].to_owned();
    let users = user(&world);
    allocate(&mut world, &name, &users);
    settle(&mut world);
    world.edit::<Pod>("p", |pod| pod["status"]["phase"] = json!("Succeeded"));
    settle(&mut world);
    assert!(world.names::<ResourceClaim>().is_empty());
}

#[test]
fn whoever_is_no_pod_keeps_its_claim() {
    let mut world = World::new();
    world.create::<ResourceClaim>(json!({ "metadata": { "name": "shared" } }));
    let other = json!([{ "apiGroup": "example.com", "resource": "jobs", "name": "j", "uid": "j" }]);
    allocate(&mut world, "shared", &other);
    settle(&mut world);
    assert!(world.writes.is_empty());
}
