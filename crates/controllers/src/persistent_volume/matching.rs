//! Which volume a claim gets.

use kinds::{Object, PersistentVolume, PersistentVolumeClaim, volume_mode};
use std::sync::Arc;

/// The volume that is meant for the claim; else, unless that is left to the scheduler, the smallest that will do, of
/// those that allow the least beyond what is asked for.
pub(super) fn best<'a>(
    claim: &PersistentVolumeClaim,
    volumes: &'a [Arc<Object<PersistentVolume>>],
    delayed: bool,
) -> Option<&'a Arc<Object<PersistentVolume>>> {
    let usable = || volumes.iter().filter(|volume| fits(claim, volume, true).is_ok());
    if let Some(meant) = usable().find(|volume| volume.is_for(claim)) {
        return Some(meant);
    }
    let free = usable().filter(|volume| {
        let selector = &claim.spec.selector;
        let selected = selector.is_absent() || selector.matches(&volume.metadata.labels);
        let is_free = volume.spec.claim_ref.is_none() && volume.status.phase == "Available";
        !delayed && is_free && selected && volume.class() == claim.class()
    });
    free.min_by_key(|volume| (volume.spec.access_modes.len(), volume.capacity(), volume.metadata.name.as_str()))
}

/// Whether a volume that the claim names will do; else why not, in the words of the event about it.
pub(super) fn satisfies(claim: &PersistentVolumeClaim, volume: &PersistentVolume) -> Result<(), String> {
    fits(claim, volume, false)
}

/// Whether the volume can do what the claim asks for, perhaps whatever class it is in.
fn fits(claim: &PersistentVolumeClaim, volume: &PersistentVolume, of_any_class: bool) -> Result<(), String> {
    let attributes = |name: &Option<String>| name.clone().unwrap_or_default();
    if volume.metadata.is_being_deleted() {
        return Err(format!("the volume is marked for deletion {:?}", volume.metadata.name));
    }
    let refused = if volume.capacity() < claim.requested() {
        "requested PV is too small"
    } else if !of_any_class && volume.class() != claim.class() {
        "storageClassName does not match"
    } else if attributes(&claim.spec.volume_attributes_class_name)
        != attributes(&volume.spec.volume_attributes_class_name)
    {
        "volumeAttributesClassName does not match"
    } else if has_other_mode(claim, volume) {
        "incompatible volumeMode"
    } else if claim.spec.access_modes.iter().any(|mode| !volume.spec.access_modes.contains(mode)) {
        "incompatible accessMode"
    } else {
        return Ok(());
    };
    Err(refused.to_owned())
}

/// Whether one is a device and the other a file system.
pub(super) fn has_other_mode(claim: &PersistentVolumeClaim, volume: &PersistentVolume) -> bool {
    volume_mode(claim.spec.volume_mode.as_ref()) != volume_mode(volume.spec.volume_mode.as_ref())
}
