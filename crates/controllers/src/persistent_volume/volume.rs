//! Volumes: says how each stands, takes back what its claim does not want, and gives up what has lost its claim.

use super::{BOUND_BY_CONTROLLER, IN_TREE, LOCAL_PATH, PROVISIONED_BY, matching};
use kinds::{Key, Object, PersistentVolume, PersistentVolumeClaim, Time};
use object::{Edit, View};
use runtime::{Caches, Note, Plan, Request};
use std::sync::Arc;

/// The driver that has taken over a volume which Kubernetes once handled by itself.
const MIGRATED_TO: &str = "pv.kubernetes.io/migrated-to";

pub(super) struct Observed {
    pub(super) volume: Arc<Object<PersistentVolume>>,
    /// The claim that the volume refers to, UID included.
    pub(super) claim: Option<Arc<Object<PersistentVolumeClaim>>>,
}

pub(super) fn observe(caches: &Caches, request: &Request) -> Option<Observed> {
    let volume = caches.of::<PersistentVolume>().get(&request.key)?;
    let claim = volume.claim_key().and_then(|key| caches.of::<PersistentVolumeClaim>().get(&key));
    let claim = claim.filter(|claim| volume.is_for(claim));
    Some(Observed { volume, claim })
}

impl Observed {
    /// The claim that the volume was bound to and that is nowhere to be seen.
    pub(super) fn missing_claim(&self) -> Option<Key> {
        let was_bound = self.volume.spec.claim_ref.as_ref().is_some_and(|claimant| !claimant.uid.is_empty());
        self.volume.claim_key().filter(|_| was_bound && self.claim.is_none())
    }

    /// What the API knows under the name of that claim.
    pub(super) fn take_claim(&mut self, claim: Option<Object<PersistentVolumeClaim>>) {
        self.claim = claim.filter(|claim| self.volume.is_for(claim)).map(Arc::new);
    }
}

pub(super) fn plan(observed: &Observed, request: &Request) -> Plan {
    let Observed { volume, claim } = observed;
    let mut plan = Plan::default();
    let now = request.now;
    let is_reserved = volume.spec.claim_ref.as_ref().is_none_or(|claimant| claimant.uid.is_empty());
    match claim {
        _ if is_reserved => report(&mut plan, volume, "Available", now),
        None => give_up(&mut plan, volume, now),
        Some(claim) if claim.spec.volume_name == volume.metadata.name => report(&mut plan, volume, "Bound", now),
        Some(claim) if claim.spec.volume_name.is_empty() => tell_mismatch(&mut plan, volume, claim),
        Some(_) if was_made_for_it(volume) => give_up(&mut plan, volume, now),
        Some(_) => unbind(&mut plan, volume),
    }
    plan
}

/// Whether the volume was made for a claim, and is of no use to any other.
fn was_made_for_it(volume: &PersistentVolume) -> bool {
    let policy = &volume.spec.persistent_volume_reclaim_policy;
    volume.metadata.annotations.contains_key(PROVISIONED_BY) && policy == "Delete"
}

fn report(plan: &mut Plan, volume: &Object<PersistentVolume>, phase: &str, now: Time) {
    report_with(plan, volume, phase, "", now);
}

fn report_with(plan: &mut Plan, volume: &Object<PersistentVolume>, phase: &str, message: &str, now: Time) {
    if volume.status.phase == phase {
        return;
    }
    let mut object = volume.json();
    let mut status = object.object_or_new("status").clone();
    status.set("phase", phase);
    status.set("lastPhaseTransitionTime", now);
    status.remove("message");
    if !message.is_empty() {
        status.set("message", message);
    }
    plan.status(volume, status);
}

/// The claim would never find this volume; without a word nobody would know why.
fn tell_mismatch(plan: &mut Plan, volume: &Object<PersistentVolume>, claim: &Object<PersistentVolumeClaim>) {
    if !matching::has_other_mode(claim, volume) {
        return;
    }
    let name = &claim.metadata.name;
    let of_volume = format!(
        "Cannot bind PersistentVolume to requested PersistentVolumeClaim {name:?} due to incompatible volumeMode."
    );
    let name = &volume.metadata.name;
    let of_claim = format!(
        "Cannot bind PersistentVolume {name:?} to requested PersistentVolumeClaim due to incompatible volumeMode."
    );
    plan.event(Note::warning(volume, "VolumeMismatch", of_volume));
    plan.event(Note::warning(claim, "VolumeMismatch", of_claim));
}

/// Takes a volume back from a claim that has another. What a user has reserved stays reserved.
fn unbind(plan: &mut Plan, volume: &Object<PersistentVolume>) {
    let mut object = volume.json();
    if volume.metadata.annotations.contains_key(BOUND_BY_CONTROLLER) {
        object.object_or_new("metadata").object_or_new("annotations").remove(BOUND_BY_CONTROLLER);
        object.object_or_new("spec").remove("claimRef");
    } else {
        let claimant = object.object_or_new("spec").object_or_new("claimRef");
        claimant.remove("uid");
        claimant.remove("resourceVersion");
    }
    plan.update(volume, object);
}

/// Nobody has a claim to the volume any more: it is released first, and then treated as its policy says.
fn give_up(plan: &mut Plan, volume: &Object<PersistentVolume>, now: Time) {
    if !matches!(volume.status.phase.as_str(), "Released" | "Failed") {
        return report(plan, volume, "Released", now);
    }
    let failed = match volume.spec.persistent_volume_reclaim_policy.as_str() {
        "Retain" => return,
        "Delete" => match deleter(volume) {
            Deleter::This if volume.metadata.is_being_deleted() => return,
            Deleter::This => {
                plan.delete(volume);
                return;
            }
            Deleter::Other => return,
            Deleter::None(why) => ("VolumeFailedDelete", why),
        },
        // Kubernetes wiped volumes with a pod, long ago deprecated; what is made for a claim is the way to do it.
        "Recycle" => ("VolumeFailedRecycle", "No recycler plugin found for the volume!".to_owned()),
        _ => ("VolumeUnknownReclaimPolicy", "Volume has unrecognized PersistentVolumeReclaimPolicy".to_owned()),
    };
    if volume.status.phase != "Failed" {
        report_with(plan, volume, "Failed", &failed.1, now);
        plan.on_success(Note::warning(volume, failed.0, failed.1));
    }
}

/// Who deletes a volume.
enum Deleter {
    This,
    /// The provisioner that made it.
    Other,
    /// Nobody, and why.
    None(String),
}

fn deleter(volume: &PersistentVolume) -> Deleter {
    let is_migrated = volume.metadata.annotations.contains_key(MIGRATED_TO);
    match volume.metadata.annotation(PROVISIONED_BY) {
        LOCAL_PATH => Deleter::This,
        _ if is_migrated => Deleter::Other,
        name if name.starts_with(IN_TREE) => Deleter::None(format!("no volume plugin matched name: {name}")),
        "" if volume.spec.csi.is_some() => Deleter::Other,
        "" => match volume.spec.host_path.as_ref().map(|source| source.text("path")) {
            Some(path) if path.starts_with("/tmp/") && path.len() > "/tmp/".len() => Deleter::This,
            Some(path) => {
                Deleter::None(format!("host_path deleter only supports /tmp/.+ but received provided {path}"))
            }
            None => {
                let name = &volume.metadata.name;
                let why = "no deletable volume plugin matched";
                Deleter::None(format!("error getting deleter volume plugin for volume {name:?}: {why}"))
            }
        },
        _ => Deleter::Other,
    }
}
