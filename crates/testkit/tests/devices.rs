//! Devices under faults: requests are refused, answers lost, watches cut, servers crash and take turns.

use kinds::{DeviceClass, Job, ResourceClaim, ResourceClaimTemplate, ResourceSlice};
use object::{Value, json};
use std::collections::BTreeMap;
use std::time::Duration;
use testkit::simulation::World;

const NODES: usize = 3;
const DEVICES: usize = 2;
const SEEDS: u64 = 12;
/// How long faults happen.
const TURMOIL: Duration = Duration::from_secs(120);

async fn offer(world: &World) {
    let selector = json!({ "cel": { "expression": "device.driver == 'gpu.example.com'" } });
    world.create::<DeviceClass>(json!({ "metadata": { "name": "gpu" }, "spec": { "selectors": [selector] } })).await;
    for node in 0..NODES {
        let name = format!("node-{node}");
        let devices: Vec<Value> = (0..DEVICES).map(|at| json!({ "name": format!("gpu-{at}") })).collect();
        let pool = json!({ "name": name, "generation": 1, "resourceSliceCount": 1 });
        let spec = json!({ "driver": "gpu.example.com", "nodeName": name, "pool": pool, "devices": devices });
        world.create::<ResourceSlice>(json!({ "metadata": { "name": name }, "spec": spec })).await;
    }
}

/// A job of more pods than there are devices, each with so many.
async fn work(world: &World, count: usize) {
    let name = format!("with-{count}");
    let exactly = json!({ "deviceClassName": "gpu", "count": count });
    let devices = json!({ "requests": [{ "name": "gpu", "exactly": exactly }] });
    let meta = json!({ "name": name, "namespace": "default" });
    let template = json!({ "metadata": meta, "spec": { "spec": { "devices": devices } } });
    world.create::<ResourceClaimTemplate>(template).await;
    let pod = json!({
        "metadata": { "annotations": { "simulated.setpoint.dev/run-seconds": "5" } },
        "spec": {
            "restartPolicy": "Never", "containers": [{ "name": "c", "image": "cuda" }],
            "resourceClaims": [{ "name": "gpu", "resourceClaimTemplateName": name }],
        },
    });
    let spec = json!({ "parallelism": 6, "completions": 12, "backoffLimit": 100, "template": pod });
    world.create::<Job>(json!({ "metadata": meta, "spec": spec })).await;
}

/// How many devices claims have; each has its own.
async fn given(world: &World) -> usize {
    let mut owners = BTreeMap::new();
    for claim in world.all::<ResourceClaim>().await {
        let results = claim.status.allocation.iter().flat_map(|allocation| &allocation.devices.results);
        for result in results {
            let device = format!("{}/{}", result.pool, result.device);
            let other = owners.insert(device.clone(), claim.metadata.name.clone());
            assert_eq!(other, None, "{device} is also given to {}", claim.metadata.name);
        }
    }
    owners.len()
}

#[test]
fn no_device_is_given_twice_whatever_fails_and_all_are_free_in_the_end() {
    let mut most = 0;
    for seed in 0..SEEDS {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
        most = most.max(runtime.unwrap().block_on(run(seed)));
    }
    assert_eq!(most, NODES * DEVICES, "at some time all are in use");
}

async fn run(seed: u64) -> usize {
    let mut world = World::start(seed, 1 + (seed % 2) as usize, NODES).await;
    world.pause(Duration::from_secs(10)).await;
    offer(&world).await;
    world.faults.start();
    work(&world, 1).await;
    work(&world, 2).await;
    let mut most = 0;
    let end = world.clock().monotonic() + TURMOIL;
    while world.clock().monotonic() < end {
        world.pause(Duration::from_millis(250)).await;
        most = most.max(given(&world).await);
    }
    world.faults.stop();
    world.revive_all().await;
    let is_done = async || world.all::<Job>().await.iter().all(|job| job.status.succeeded == 12);
    world.until(Duration::from_secs(1800), is_done).await;
    world.until(Duration::from_secs(300), async || given(&world).await == 0).await;
    world.stop().await;
    most
}
