//! Claims: finds each a volume, or has one made, and says how that stands.

use super::{BIND_COMPLETED, BOUND_BY_CONTROLLER, SELECTED_NODE, YES, matching, provision};
use kinds::{Kind, Node, Object, PersistentVolume, PersistentVolumeClaim, Pod, StorageClass};
use object::{Edit, Value, View, json};
use runtime::{Caches, Note, Plan, Request};
use std::cmp::Reverse;
use std::sync::Arc;

/// The size of a file system that is smaller than its volume while both are made larger.
const PRE_RESIZE_CAPACITY: &str = "volume.alpha.kubernetes.io/pre-resize-capacity";

pub(super) struct Observed {
    pub(super) claim: Arc<Object<PersistentVolumeClaim>>,
    /// The volume that the claim names, if it names one that is there.
    named: Option<Arc<Object<PersistentVolume>>>,
    /// Volumes that are meant for the claim, and free ones of its class.
    candidates: Vec<Arc<Object<PersistentVolume>>>,
    pub(super) class: Option<Arc<Object<StorageClass>>>,
    default_class: Option<String>,
    /// The node that the scheduler has chosen, if it is there.
    pub(super) node: Option<Arc<Object<Node>>>,
    /// The names of pods that use the claim and have no node yet.
    waiting_pods: Vec<String>,
}

pub(super) fn plan_for(caches: &Caches, request: &Request) -> Plan {
    observe(caches, request).map(|observed| plan(&observed)).unwrap_or_default()
}

fn observe(caches: &Caches, request: &Request) -> Option<Observed> {
    let claim = caches.of::<PersistentVolumeClaim>().get(&request.key)?;
    let (volumes, classes) = (caches.of::<PersistentVolume>(), caches.of::<StorageClass>());
    if !claim.spec.volume_name.is_empty() || is_completed(&claim) {
        let named = volumes.named("", &claim.spec.volume_name);
        return Some(Observed {
            claim,
            named,
            candidates: Vec::new(),
            class: None,
            default_class: None,
            node: None,
            waiting_pods: Vec::new(),
        });
    }
    let key = request.key.to_string();
    let mut candidates = volumes.by("claim", &key);
    candidates.extend(volumes.by("free", claim.class()));
    let waits = |pod: &Arc<Object<Pod>>| !pod.is_finished() && pod.spec.node_name.is_empty();
    let waiting_pods = caches.of::<Pod>().by("claim", &key).iter().filter(|pod| waits(pod)).map(name).collect();
    let default_class = if claim.names_class() { None } else { default_class(&classes.all()) };
    let node = caches.of::<Node>().named("", claim.metadata.annotation(SELECTED_NODE));
    let class = classes.named("", claim.class());
    Some(Observed { claim, named: None, candidates, class, default_class, node, waiting_pods })
}

fn name<K: Kind>(object: &Arc<Object<K>>) -> String {
    object.meta().name.clone()
}

/// The newest class that is marked as default.
fn default_class(classes: &[Arc<Object<StorageClass>>]) -> Option<String> {
    let marked = classes.iter().filter(|class| class.is_default());
    marked.min_by_key(|class| (Reverse(class.metadata.creation_timestamp), name(class))).map(name)
}

fn is_completed(claim: &PersistentVolumeClaim) -> bool {
    claim.metadata.annotations.contains_key(BIND_COMPLETED)
}

fn plan(observed: &Observed) -> Plan {
    let Observed { claim, named, .. } = observed;
    let mut plan = Plan::default();
    if is_completed(claim) {
        plan_completed(&mut plan, claim, named.as_deref());
    } else if claim.metadata.is_being_deleted() {
        // What was never bound is not bound any more.
    } else if claim.spec.volume_name.is_empty() {
        plan_search(&mut plan, observed);
    } else {
        plan_named(&mut plan, claim, named.as_deref());
    }
    plan
}

/// A claim that has been bound keeps its volume, or is lost.
fn plan_completed(plan: &mut Plan, claim: &Object<PersistentVolumeClaim>, volume: Option<&Object<PersistentVolume>>) {
    let (reason, message) = match volume {
        Some(volume) if volume.spec.claim_ref.as_ref().is_none_or(|claimant| claimant.uid == claim.metadata.uid) => {
            return bind(plan, claim, volume);
        }
        Some(_) => ("ClaimMisbound", "Two claims are bound to the same volume, this one is bound incorrectly"),
        None if claim.spec.volume_name.is_empty() => {
            ("ClaimLost", "Bound claim has lost reference to PersistentVolume. Data on the volume is lost!")
        }
        None => ("ClaimLost", "Bound claim has lost its PersistentVolume. Data on the volume is lost!"),
    };
    if claim.status.phase != "Lost" {
        plan.status(claim, unbound_status(claim, "Lost")).on_success(Note::warning(claim, reason, message));
    }
}

/// A claim whose user wants one volume and no other.
fn plan_named(plan: &mut Plan, claim: &Object<PersistentVolumeClaim>, volume: Option<&Object<PersistentVolume>>) {
    let refused = match volume {
        None => None,
        Some(volume) if volume.is_for(claim) => return bind(plan, claim, volume),
        Some(volume) if volume.spec.claim_ref.is_some() => {
            Some(("FailedBinding", format!("volume {:?} already bound to a different claim.", volume.metadata.name)))
        }
        Some(volume) => match matching::satisfies(claim, volume) {
            Ok(()) => return bind(plan, claim, volume),
            Err(why) => {
                let name = &volume.metadata.name;
                Some(("VolumeMismatch", format!("Cannot bind to requested volume {name:?}: {why}")))
            }
        },
    };
    if let Some((reason, message)) = refused {
        plan.event(Note::warning(claim, reason, message));
    }
    plan.status(claim, unbound_status(claim, "Pending"));
}

/// A claim whose user wants any volume that will do.
fn plan_search(plan: &mut Plan, observed: &Observed) {
    let Observed { claim, candidates, class, default_class, waiting_pods, .. } = observed;
    let delayed = class.as_ref().is_some_and(|class| class.waits_for_consumer());
    if let Some(volume) = matching::best(claim, candidates, delayed) {
        return bind(plan, claim, volume);
    }
    if let Some(name) = default_class {
        let mut object = claim.json();
        object.object_or_new("spec").set("storageClassName", name.as_str());
        plan.update(claim, object);
        return;
    }
    if delayed && !claim.metadata.annotations.contains_key(SELECTED_NODE) {
        plan.event(waiting_note(claim, waiting_pods));
    } else if !claim.class().is_empty() {
        return provision::plan(plan, observed);
    } else {
        let message = "no persistent volumes available for this claim and no storage class is set";
        plan.event(Note::normal(claim, "FailedBinding", message));
    }
    plan.status(claim, unbound_status(claim, "Pending"));
}

fn waiting_note(claim: &Object<PersistentVolumeClaim>, pods: &[String]) -> Note {
    let (reason, message) = match pods {
        [] => ("WaitForFirstConsumer", "waiting for first consumer to be created before binding".to_owned()),
        [pod] => ("WaitForPodScheduled", format!("waiting for pod {pod} to be scheduled")),
        pods => ("WaitForPodScheduled", format!("waiting for pods {} to be scheduled", pods.join(","))),
    };
    Note::normal(claim, reason, message)
}

/// Brings a claim and its volume closer together: the references first, and the phase of the claim once they stand.
fn bind(plan: &mut Plan, claim: &Object<PersistentVolumeClaim>, volume: &Object<PersistentVolume>) {
    plan.update(volume, volume_for(claim, volume));
    plan.update(claim, claim_with(claim, volume));
    if plan.writes.is_empty() {
        plan.status(claim, bound_status(claim, volume));
    }
}

/// A reference to a claim, as volumes carry it.
pub(super) fn reference(claim: &Object<PersistentVolumeClaim>) -> Value {
    let meta = &claim.metadata;
    json!({
        "kind": "PersistentVolumeClaim", "apiVersion": "v1", "namespace": meta.namespace, "name": meta.name,
        "uid": meta.uid, "resourceVersion": meta.resource_version,
    })
}

fn volume_for(claim: &Object<PersistentVolumeClaim>, volume: &Object<PersistentVolume>) -> Value {
    let mut object = volume.json();
    if volume.is_for(claim) && volume.spec.claim_ref.as_ref().is_some_and(|claimant| !claimant.uid.is_empty()) {
        return object;
    }
    if !volume.is_for(claim) {
        annotate(&mut object, BOUND_BY_CONTROLLER, YES);
    }
    object.object_or_new("spec").set("claimRef", reference(claim));
    object
}

fn claim_with(claim: &Object<PersistentVolumeClaim>, volume: &Object<PersistentVolume>) -> Value {
    let mut object = claim.json();
    if claim.spec.volume_name != volume.metadata.name {
        object.object_or_new("spec").set("volumeName", volume.metadata.name.as_str());
        annotate(&mut object, BOUND_BY_CONTROLLER, YES);
    }
    annotate(&mut object, BIND_COMPLETED, YES);
    object
}

/// Sets an annotation that is not there yet.
pub(super) fn annotate(object: &mut Value, name: &str, value: &str) {
    object.object_or_new("metadata").object_or_new("annotations").set_default(name, value);
}

fn unbound_status(claim: &Object<PersistentVolumeClaim>, phase: &str) -> Value {
    let mut status = claim.json().at("status").clone();
    for field in ["accessModes", "capacity", "currentVolumeAttributesClassName"] {
        status.remove(field);
    }
    with_phase(status, phase)
}

/// The size is that of the volume at the moment of binding; from then on it is the business of resizing.
fn bound_status(claim: &Object<PersistentVolumeClaim>, volume: &Object<PersistentVolume>) -> Value {
    let mut status = claim.json().at("status").clone();
    let spec = volume.json().remove("spec");
    if claim.status.access_modes != volume.spec.access_modes {
        status.set("accessModes", spec.at("accessModes").clone());
    }
    if claim.status.phase != "Bound" {
        match volume.metadata.annotations.get(PRE_RESIZE_CAPACITY) {
            Some(before) => status.object_or_new("capacity").set("storage", before.as_str()),
            None => status.set("capacity", spec.at("capacity").clone()),
        }
        if spec.has("volumeAttributesClassName") && claim.status.phase != "Lost" {
            status.set("currentVolumeAttributesClassName", spec.at("volumeAttributesClassName").clone());
        }
    }
    with_phase(status, "Bound")
}

fn with_phase(status: Value, phase: &str) -> Value {
    let mut status = if status.is_object() { status } else { json!({}) };
    status.set("phase", phase);
    status
}
