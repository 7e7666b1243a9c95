//! A driver of volumes, as there are outside of Kubernetes: it makes volumes for claims of its class, attaches them to
//! nodes when asked, and deletes those that are given up. No fault affects it.

use kinds::{Object, PersistentVolume, PersistentVolumeClaim, StorageClass, VolumeAttachment};
use object::{Value, json};
use runtime::{Caches, Controller, Plan, Request};

const NAME: &str = "csi.example.com";
/// The class of its volumes.
pub(super) const CLASS: &str = "attached";
const PROVISIONED_BY: &str = "pv.kubernetes.io/provisioned-by";

pub(super) fn class() -> Value {
    json!({ "metadata": { "name": CLASS }, "provisioner": NAME, "reclaimPolicy": "Delete" })
}

pub(super) fn controllers() -> Vec<Controller> {
    let provisioner = Controller::new("provisioner")
        .primary::<PersistentVolumeClaim>()
        .primary::<PersistentVolume>()
        .reads::<StorageClass>()
        .plans(provision);
    let attacher = Controller::new("attacher").primary::<VolumeAttachment>().plans(|caches, request| {
        caches.of::<VolumeAttachment>().get(&request.key).map(|asked| attach(&asked)).unwrap_or_default()
    });
    vec![provisioner, attacher]
}

/// Keys in a namespace are claims, the others are volumes.
fn provision(caches: &Caches, request: &Request) -> Plan {
    let mut plan = Plan::default();
    if let Some(claim) = caches.of::<PersistentVolumeClaim>().get(&request.key) {
        let name = format!("pvc-{}", claim.metadata.uid);
        let is_asked = claim.metadata.annotation("volume.kubernetes.io/storage-provisioner") == NAME;
        let is_wanted = is_asked && claim.spec.volume_name.is_empty() && !claim.metadata.is_being_deleted();
        if is_wanted && caches.of::<PersistentVolume>().named("", &name).is_none() {
            plan.create::<PersistentVolume>(volume(&claim, &name));
        }
    }
    if let Some(volume) = caches.of::<PersistentVolume>().get(&request.key) {
        let is_own = volume.metadata.annotation(PROVISIONED_BY) == NAME;
        if is_own && volume.status.phase == "Released" && !volume.metadata.is_being_deleted() {
            plan.delete(&*volume);
        }
    }
    plan
}

fn volume(claim: &Object<PersistentVolumeClaim>, name: &str) -> Value {
    let meta = &claim.metadata;
    json!({
        "metadata": { "name": name, "annotations": { PROVISIONED_BY: NAME } },
        "spec": {
            "capacity": { "storage": claim.requested().to_string() }, "accessModes": claim.spec.access_modes,
            "persistentVolumeReclaimPolicy": "Delete", "storageClassName": CLASS,
            "csi": { "driver": NAME, "volumeHandle": name },
            "claimRef": {
                "apiVersion": "v1", "kind": "PersistentVolumeClaim", "namespace": meta.namespace, "name": meta.name,
                "uid": meta.uid,
            },
        },
    })
}

fn attach(asked: &Object<VolumeAttachment>) -> Plan {
    let mut plan = Plan::default();
    if asked.spec.attacher == NAME && !asked.metadata.is_being_deleted() {
        plan.status(asked, json!({ "attached": true }));
    }
    plan
}
