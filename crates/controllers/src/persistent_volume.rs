//! PersistentVolume binder: gives claims their volumes, and sees to what becomes of volumes afterwards.
//!
//! Keys in a namespace are claims, the others are volumes. The binding itself is written by the claim's plan, first
//! into the volume and then into the claim: the version of the volume decides who gets it. Each of the two reports its
//! own phase. Claims of classes that wait for a consumer are bound by the scheduler, which also says for which node a
//! volume is to be made.
//!
//! Volumes of classes of the provisioner `setpoint.dev/local-path` are made here: directories of a node. All others
//! are left to provisioners outside. The directories are the business of the node.

mod claim;
mod matching;
mod provision;
mod volume;

use kinds::{Key, Node, Object, PersistentVolume, PersistentVolumeClaim, Pod, StorageClass};
use object::ApiError;
use runtime::{Caches, Context, Controller, Plan, Request};

/// Whoever set this, and the reference beside it, was this loop and no user: it may be undone.
const BOUND_BY_CONTROLLER: &str = "pv.kubernetes.io/bound-by-controller";
/// A claim that has it has been bound once; without its volume it is lost.
const BIND_COMPLETED: &str = "pv.kubernetes.io/bind-completed";
/// The provisioner that is part of Setpoint.
pub(crate) const LOCAL_PATH: &str = "setpoint.dev/local-path";
/// Provisioners of this prefix would be part of Kubernetes, and there are none left.
const IN_TREE: &str = "kubernetes.io/";
/// Who made a volume.
pub(crate) const PROVISIONED_BY: &str = "pv.kubernetes.io/provisioned-by";
/// The node that the scheduler wants a volume for.
const SELECTED_NODE: &str = "volume.kubernetes.io/selected-node";
/// What the API says objects are annotated with by this loop.
const YES: &str = "yes";

pub(crate) fn controller() -> Controller {
    Controller::new("persistent-volume-binder")
        .reports_as("persistentvolume-controller")
        .primary::<PersistentVolumeClaim>()
        .primary::<PersistentVolume>()
        .watches::<PersistentVolumeClaim>(volumes_of)
        .watches::<PersistentVolume>(claims_of)
        .watches::<StorageClass>(|class, caches| {
            let claims = caches.of::<PersistentVolumeClaim>();
            let mut waiting = claims.by("waiting", &class.metadata.name);
            if class.is_default() {
                waiting.extend(claims.by("waiting", ""));
            }
            waiting.iter().map(|claim| claim.key()).collect()
        })
        .watches::<Pod>(|pod, caches| {
            let claims = caches.of::<PersistentVolumeClaim>();
            let used = pod.claims().filter_map(|name| claims.named(&pod.metadata.namespace, &name));
            used.filter(|claim| claim.spec.volume_name.is_empty()).map(|claim| claim.key()).collect()
        })
        .reads::<Node>()
        .plans_with(reconcile)
}

/// The volumes that a change of a claim concerns.
fn volumes_of(claim: &Object<PersistentVolumeClaim>, caches: &Caches) -> Vec<Key> {
    let mut keys: Vec<Key> =
        caches.of::<PersistentVolume>().by("claim", &claim.key().to_string()).iter().map(|v| v.key()).collect();
    if !claim.spec.volume_name.is_empty() {
        keys.push(Key::cluster(claim.spec.volume_name.as_str()));
    }
    keys
}

/// The claims that a change of a volume concerns: the one it is for, or all that might want it.
fn claims_of(volume: &Object<PersistentVolume>, caches: &Caches) -> Vec<Key> {
    let claims = caches.of::<PersistentVolumeClaim>();
    let mut keys: Vec<Key> = claims.by("volume", &volume.metadata.name).iter().map(|claim| claim.key()).collect();
    match volume.claim_key() {
        Some(key) => keys.push(key),
        None => keys.extend(claims.by("waiting", volume.class()).iter().map(|claim| claim.key())),
    }
    keys
}

async fn reconcile(context: Context, request: Request) -> Result<Plan, ApiError> {
    if !request.key.namespace.is_empty() {
        return Ok(claim::plan_for(&context.caches, &request));
    }
    let Some(mut observed) = volume::observe(&context.caches, &request) else { return Ok(Plan::default()) };
    if let Some(key) = observed.missing_claim() {
        // A volume without its claim is given up, with its data. The cache of claims may only be behind.
        observed.take_claim(context.client.get::<PersistentVolumeClaim>(&key).await?);
    }
    Ok(volume::plan(&observed, &request))
}

#[cfg(test)]
mod tests;
