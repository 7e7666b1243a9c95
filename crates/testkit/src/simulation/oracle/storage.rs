//! Claims and volumes belong to each other in pairs, and what nobody claims goes as its policy says.

use super::{Gaps, Observed, count};
use crate::simulation::users::MANAGED;
use kinds::{Id, Kind, Meta, Node, Object, PersistentVolume, PersistentVolumeClaim, Pod, VolumeAttachment};
use std::collections::BTreeSet;

/// Whether a claim is used by a pod that has not ended.
fn is_used(all: &Observed, claim: &Meta) -> bool {
    let uses = |pod: &Object<Pod>| pod.claims().any(|name| name == claim.name);
    all.of::<Pod>().iter().any(|pod| pod.metadata.namespace == claim.namespace && !pod.is_finished() && uses(pod))
}

fn volumes_of<'a>(all: &'a Observed, uid: &str) -> impl Iterator<Item = &'a Object<PersistentVolume>> {
    let of_claim = move |volume: &&Object<PersistentVolume>| {
        volume.spec.claim_ref.as_ref().is_some_and(|claimant| claimant.uid == uid)
    };
    all.of::<PersistentVolume>().iter().filter(of_claim)
}

/// What is in use is not deleted before that ends.
pub(super) fn is_held(all: &Observed, id: &Id, meta: &Meta) -> bool {
    if *id == PersistentVolumeClaim::ID {
        return is_used(all, meta);
    }
    let volume = all.named::<PersistentVolume>("", &meta.name);
    *id == PersistentVolume::ID && volume.is_some_and(|volume| volume.status.phase == "Bound")
}

/// A claim has one volume for itself; without, nobody uses it and there is none that would do.
pub(super) fn claim(all: &Observed, claim: &Object<PersistentVolumeClaim>, gaps: &mut Gaps) {
    let (meta, name) = (&claim.metadata, &claim.spec.volume_name);
    let volumes: Vec<_> = volumes_of(all, &meta.uid).map(|volume| volume.metadata.name.as_str()).collect();
    if name.is_empty() {
        gaps.same("its phase", "Pending", &claim.status.phase);
        gaps.expect("is used and has no volume", !is_used(all, meta));
        let would_do = |volume: &&Object<PersistentVolume>| {
            let is_free = volume.spec.claim_ref.is_none() && !volume.metadata.is_being_deleted();
            is_free && volume.class() == claim.class() && claim.requested() <= volume.capacity()
        };
        gaps.same("volumes that it could have", 0, count(all.of::<PersistentVolume>().iter().filter(would_do)));
        gaps.same("volumes that are its", Vec::<&str>::new(), volumes);
    } else {
        gaps.same("its phase", "Bound", &claim.status.phase);
        gaps.same("volumes that are its", vec![name.as_str()], volumes);
        let size = volumes_of(all, &meta.uid).map(|volume| volume.capacity()).max().unwrap_or_default();
        let is_large_enough = claim.requested() <= size && claim.requested() <= claim.capacity();
        gaps.expect("is smaller than it should be", is_large_enough);
    }
}

/// A volume is free, or its claim's; and if that is gone, the volume is gone too unless it is to be retained.
pub(super) fn volume(all: &Observed, volume: &Object<PersistentVolume>, gaps: &mut Gaps) {
    let wanted = match &volume.spec.claim_ref {
        None => "Available",
        Some(claimant) => {
            let claims = all.of::<PersistentVolumeClaim>();
            match claims.iter().any(|claim| claim.metadata.uid == claimant.uid) {
                true => "Bound",
                false => "Released",
            }
        }
    };
    gaps.same("its phase", wanted, &volume.status.phase);
    let policy = volume.spec.persistent_volume_reclaim_policy.as_str();
    gaps.expect("is released and should be gone", wanted != "Released" || policy == "Retain");
}

/// What a driver attaches is attached to the nodes whose pods use it, which say so, and to no others.
pub(super) fn attached(all: &Observed, node: &Object<Node>, gaps: &mut Gaps) {
    if node.metadata.annotation(MANAGED) != "true" {
        return;
    }
    let name = &node.metadata.name;
    let pods = all.of::<Pod>().iter().filter(|pod| pod.spec.node_name == *name && !pod.is_finished());
    let claims = pods.flat_map(|pod| pod.claims().map(|claim| (pod.metadata.namespace.as_str(), claim)));
    let claims = claims.filter_map(|(namespace, claim)| all.named::<PersistentVolumeClaim>(namespace, &claim));
    let volumes = claims.filter_map(|claim| all.named::<PersistentVolume>("", &claim.spec.volume_name));
    let volumes = volumes.filter(|volume| volume.spec.csi.is_some());
    let wanted: BTreeSet<&str> = volumes.map(|volume| volume.metadata.name.as_str()).collect();
    let attachments = all.of::<VolumeAttachment>().iter().filter(|one| one.spec.node_name == *name);
    gaps.same("its attached volumes", wanted.clone(), attachments.filter_map(|one| one.volume()).collect());
    gaps.same("the number of volumes that it says are", wanted.len(), node.status.volumes_attached.len());
}

/// Something is attached to a node that is there.
pub(super) fn attachment(all: &Observed, attachment: &Object<VolumeAttachment>, gaps: &mut Gaps) {
    gaps.expect("has no node", all.named::<Node>("", &attachment.spec.node_name).is_some());
    gaps.expect("is not attached", attachment.status.attached);
}
