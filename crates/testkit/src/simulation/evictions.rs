//! The promise of a disruption budget: however evictions, faults and loops meet, none takes it below what it says.

use super::{World, in_virtual_time, users, world};
use kinds::{Deployment, Object, Pod, PodDisruptionBudget};
use object::json;
use std::time::Duration;

const REPLICAS: u64 = 6;
const PROMISED: usize = 4;
/// So often somebody tries to evict a pod.
const ATTEMPTS: usize = 100;

/// Evicts at random under faults, and nothing else; tells how many evictions were allowed.
pub fn evict_under_faults(seed: u64) -> Result<usize, String> {
    in_virtual_time(async move {
        let mut world = World::start(seed, 1 + usize::from(seed % 2 == 1), world::NODES).await;
        let app = json!({ "app": "web" });
        let deployment = json!({
            "metadata": { "name": "web", "namespace": "default" },
            "spec": {
                "replicas": REPLICAS, "selector": { "matchLabels": app },
                "template": { "metadata": { "labels": app }, "spec": { "containers": [{ "name": "c", "image": "i" }] } },
            },
        });
        let budget = json!({
            "metadata": { "name": "web", "namespace": "default" },
            "spec": { "minAvailable": PROMISED, "selector": { "matchLabels": app } },
        });
        world.create::<Deployment>(deployment).await;
        world.create::<PodDisruptionBudget>(budget).await;
        world.pause(Duration::from_secs(60)).await;
        world.faults.start();
        let mut allowed = 0;
        for _ in 0..ATTEMPTS {
            let pods = healthy(&world).await;
            let pause = Duration::from_millis(world.random.below(3_000));
            let chosen = usize::try_from(world.random.below(REPLICAS)).unwrap_or(0);
            if let Some(pod) = pods.get(chosen)
                && users::evict(&world, pod).await.is_ok()
            {
                allowed += 1;
                let left = healthy(&world).await.len();
                if left < PROMISED {
                    return Err(format!("eviction {allowed} left {left} healthy pods of {PROMISED} promised"));
                }
            }
            world.pause(pause).await;
        }
        world.stop().await;
        Ok(allowed)
    })
}

async fn healthy(world: &World) -> Vec<Object<Pod>> {
    let mut pods = world.all::<Pod>().await;
    pods.retain(|pod| pod.is_active() && pod.is_ready());
    pods
}
