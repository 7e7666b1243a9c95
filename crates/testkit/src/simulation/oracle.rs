//! Whether what is matches what is wanted, worked out from the objects alone and without any of the loops' code.

use super::World;
use kinds::{Deployment, Kind, Meta, Node, Object, Pod, ReplicaSet, ReplicationController};
use runtime::ListOptions;
use std::collections::BTreeSet;

/// Everything that is not as it should be.
pub(super) async fn problems(world: &World) -> Vec<String> {
    let mut found = Vec::new();
    let pods = list::<Pod>(world).await;
    let sets = list::<ReplicaSet>(world).await;
    let controllers = list::<ReplicationController>(world).await;
    let deployments = list::<Deployment>(world).await;
    let nodes: BTreeSet<String> = list::<Node>(world).await.iter().map(|node| node.metadata.name.clone()).collect();

    let mut owners = BTreeSet::new();
    owners.extend(sets.iter().map(|set| set.metadata.uid.clone()));
    owners.extend(controllers.iter().map(|controller| controller.metadata.uid.clone()));
    for pod in &pods {
        alive(&mut found, "pod", &pod.metadata);
        owned(&mut found, "pod", &pod.metadata, &owners);
        if !pod.is_finished() && !(pod.is_ready() && nodes.contains(&pod.spec.node_name)) {
            found.push(format!("pod {} does not run: {:?}", pod.metadata.name, pod.status.phase));
        }
    }
    let counted = |uid: &str| {
        let own = pods.iter().filter(|pod| pod.metadata.is_controlled_by(uid) && pod.is_active());
        i32::try_from(own.count()).unwrap_or(i32::MAX)
    };
    let as_wanted =
        |found: &mut Vec<String>, kind: &str, meta: &Meta, wanted: i32, status: &kinds::ReplicaSetStatus| {
            let (have, ready) = (counted(&meta.uid), status.ready_replicas);
            if (have, status.replicas, ready, status.observed_generation) != (wanted, wanted, wanted, meta.generation) {
                found.push(format!("{kind} {} wants {wanted}, has {have}, and reports {status:?}", meta.name));
            }
        };
    for set in &sets {
        alive(&mut found, "replica set", &set.metadata);
        as_wanted(&mut found, "replica set", &set.metadata, set.spec.replicas, &set.status);
    }
    for controller in &controllers {
        let (meta, spec) = (&controller.metadata, &controller.spec);
        alive(&mut found, "replication controller", meta);
        as_wanted(&mut found, "replication controller", meta, spec.replicas, &controller.status);
    }
    for deployment in &deployments {
        deployed(&mut found, deployment, &sets);
    }
    found
}

fn deployed(found: &mut Vec<String>, deployment: &Deployment, sets: &[Object<ReplicaSet>]) {
    let meta = &deployment.metadata;
    alive(found, "deployment", meta);
    let wanted = deployment.spec.replicas;
    let own = || sets.iter().filter(|set| set.metadata.is_controlled_by(&meta.uid));
    let total: i32 = own().map(|set| set.spec.replicas).sum();
    let current = own().filter(|set| set.spec.replicas > 0 || wanted == 0).any(|set| {
        let mut labels = set.spec.template.labels.clone();
        labels.remove("pod-template-hash");
        labels == deployment.spec.template.labels
            && set.spec.template.annotations == deployment.spec.template.annotations
    });
    let status = &deployment.status;
    let reported = (status.replicas, status.updated_replicas, status.available_replicas, status.observed_generation);
    if total != wanted || !current || reported != (wanted, wanted, wanted, meta.generation) {
        found.push(format!("deployment {} wants {wanted}, has {total} in its sets, and reports {status:?}", meta.name));
    }
    let limit = usize::try_from(deployment.spec.revision_history_limit.unwrap_or(10)).unwrap_or(0);
    if own().count() > limit + 1 {
        found.push(format!("deployment {} keeps {} sets", meta.name, own().count()));
    }
}

async fn list<K: Kind>(world: &World) -> Vec<Object<K>> {
    world.admin.list::<K>("", &ListOptions::default()).await.expect("the administrator can list").items
}

fn alive(found: &mut Vec<String>, kind: &str, meta: &Meta) {
    if meta.is_being_deleted() {
        found.push(format!("{kind} {} is still being deleted", meta.name));
    }
}

/// Whatever has a controller has one that is there.
fn owned(found: &mut Vec<String>, kind: &str, meta: &Meta, owners: &BTreeSet<String>) {
    if let Some(owner) = meta.controller().filter(|owner| !owners.contains(&owner.uid)) {
        found.push(format!("{kind} {} has lost its {}", meta.name, owner.kind));
    }
}
