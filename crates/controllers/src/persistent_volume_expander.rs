//! Expansion: a volume grows with what its claim asks for.
//!
//! Only volumes that Setpoint made are grown here, which is a matter of numbers: a directory is as large as its disk.
//! The volume comes first and the claim after it. All others are grown by a controller outside, which is told so.
//! Whether a class allows it at all is decided by admission.

use crate::persistent_volume::{LOCAL_PATH, PROVISIONED_BY};
use kinds::{Object, PersistentVolume, PersistentVolumeClaim};
use object::{Edit, Value, View};
use runtime::{Caches, Controller, Note, Plan, Request};
use std::sync::Arc;

/// What a claim says while it grows, and no longer when it has grown.
const CONDITIONS: [&str; 4] = ["Resizing", "FileSystemResizePending", "ControllerResizeError", "NodeResizeError"];

pub(crate) fn controller() -> Controller {
    Controller::new("expand-controller")
        .reports_as("volume_expand")
        .watches_changes::<PersistentVolumeClaim>(|change, _| {
            let Some(new) = &change.new else { return vec![] };
            let differs = |old: &Arc<Object<PersistentVolumeClaim>>| {
                (old.requested(), old.capacity()) != (new.requested(), new.capacity())
            };
            Vec::from_iter(change.old.as_ref().is_none_or(differs).then(|| new.key()))
        })
        .watches::<PersistentVolume>(|volume, _| volume.claim_key().into_iter().collect())
        .plans(|caches, request| observe(caches, request).map(|observed| plan(&observed)).unwrap_or_default())
}

struct Observed {
    claim: Arc<Object<PersistentVolumeClaim>>,
    /// The volume that it is bound to.
    volume: Arc<Object<PersistentVolume>>,
}

fn observe(caches: &Caches, request: &Request) -> Option<Observed> {
    let claim = caches.of::<PersistentVolumeClaim>().get(&request.key)?;
    let volume = caches.of::<PersistentVolume>().named("", &claim.spec.volume_name)?;
    // A claim that is being deleted stays for as long as a pod uses it, and that pod may wait for the space.
    let is_bound = claim.status.phase == "Bound" && volume.is_for(&claim);
    is_bound.then_some(Observed { claim, volume })
}

fn plan(observed: &Observed) -> Plan {
    let Observed { claim, volume } = observed;
    let mut plan = Plan::default();
    if claim.requested() <= claim.capacity() {
        return plan;
    }
    if volume.metadata.annotation(PROVISIONED_BY) != LOCAL_PATH {
        let message = "waiting for an external controller to expand this PVC";
        plan.event(Note::normal(claim, "ExternalExpanding", message));
        return plan;
    }
    let wanted = claim.requested().to_string();
    if volume.capacity() < claim.requested() {
        let mut object = volume.json();
        object.object_or_new("spec").object_or_new("capacity").set("storage", wanted);
        plan.update(volume, object);
    } else {
        let done = format!("ExpandVolume succeeded for volume {}", claim.key());
        plan.status(claim, grown(claim, wanted)).on_success(Note::normal(claim, "VolumeResizeSuccessful", done));
    }
    plan
}

fn grown(claim: &Object<PersistentVolumeClaim>, capacity: String) -> Value {
    let mut object = claim.json();
    let status = object.object_or_new("status");
    status.object_or_new("capacity").set("storage", capacity);
    status.remove("allocatedResourceStatuses");
    let kept: Vec<Value> = status
        .items("conditions")
        .iter()
        .filter(|condition| !CONDITIONS.contains(&condition.text("type")))
        .cloned()
        .collect();
    status.remove("conditions");
    if !kept.is_empty() {
        status.set("conditions", kept);
    }
    status.clone()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::World;
    use object::json;

    fn world(wanted: &str, provisioner: &str) -> World {
        world_with(wanted, provisioner, &json!({ "name": "c" }))
    }

    fn world_with(wanted: &str, provisioner: &str, claim: &Value) -> World {
        let mut world = World::new();
        world.create::<PersistentVolume>(json!({
            "metadata": { "name": "v", "annotations": { PROVISIONED_BY: provisioner } },
            "spec": { "capacity": { "storage": "1Gi" }, "claimRef": { "namespace": "default", "name": "c" } },
        }));
        world.create::<PersistentVolumeClaim>(json!({
            "metadata": claim,
            "spec": { "volumeName": "v", "resources": { "requests": { "storage": wanted } } },
            "status": {
                "phase": "Bound", "capacity": { "storage": "1Gi" },
                "conditions": [{ "type": "Resizing", "status": "True" }],
            },
        }));
        world.settle("c", &|caches, request| {
            observe(caches, request).map(|observed| plan(&observed)).unwrap_or_default()
        });
        world
    }

    #[test]
    fn a_volume_of_our_own_grows_first_and_then_its_claim() {
        let world = world("2Gi", LOCAL_PATH);
        assert_eq!(world.writes, ["update persistentvolumes v", "update persistentvolumeclaims/status c"]);
        assert_eq!(world.get::<PersistentVolume>("v")["spec"]["capacity"]["storage"], "2Gi");
        let status = &world.get::<PersistentVolumeClaim>("c")["status"];
        assert_eq!(status["capacity"]["storage"], "2Gi");
        assert!(!status.has("conditions"));
        assert_eq!(world.events, ["Normal VolumeResizeSuccessful ExpandVolume succeeded for volume default/c"]);
    }

    #[test]
    fn a_claim_that_is_being_deleted_grows_while_it_is_still_there() {
        let finalizers = json!(["kubernetes.io/pvc-protection"]);
        let deleted = json!({ "name": "c", "deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": finalizers });
        let world = world_with("2Gi", LOCAL_PATH, &deleted);
        assert_eq!(world.get::<PersistentVolumeClaim>("c")["status"]["capacity"]["storage"], "2Gi");
    }

    #[test]
    fn what_others_made_is_left_to_them_and_what_is_large_enough_alone() {
        let other = world("2Gi", "csi.example.com");
        assert!(other.writes.is_empty());
        assert_eq!(other.events, ["Normal ExternalExpanding waiting for an external controller to expand this PVC"]);
        assert!(world("1Gi", LOCAL_PATH).writes.is_empty());
    }
}
