//! The claims of a set's pods: their names, and who owns them.

use super::members::range;
use kinds::{Kind, Object, OwnerReference, PersistentVolumeClaim, Pod, StatefulSet};
use object::{Edit, Value, View, json};
use runtime::{Note, Plan};
use std::collections::BTreeMap;
use std::sync::Arc;

pub(super) type Claims = BTreeMap<String, Arc<Object<PersistentVolumeClaim>>>;

fn name(set: &StatefulSet, template: &Value, ordinal: i32) -> String {
    format!("{}-{}-{ordinal}", template.at("metadata").text("name"), set.metadata.name)
}

/// The names of the claims of a member.
pub(super) fn names(set: &StatefulSet, ordinal: i32) -> impl Iterator<Item = String> {
    set.spec.volume_claim_templates.iter().map(move |template| name(set, template, ordinal))
}

/// Whether a claim of this name belongs to some member of a set.
pub(super) fn is_of(set: &StatefulSet, claim: &str) -> bool {
    set.spec.volume_claim_templates.iter().any(|template| {
        let rest = claim.strip_prefix(template.at("metadata").text("name")).and_then(|rest| rest.strip_prefix('-'));
        let rest = rest.and_then(|rest| rest.strip_prefix(&set.metadata.name)?.strip_prefix('-'));
        rest.is_some_and(|digits| digits.parse::<u32>().is_ok())
    })
}

/// The volumes by which a pod mounts its claims.
pub(super) fn volumes(set: &StatefulSet, ordinal: i32) -> Vec<Value> {
    let volume = |template: &Value| {
        let claim = json!({ "claimName": name(set, template, ordinal) });
        json!({ "name": template.at("metadata").text("name"), "persistentVolumeClaim": claim })
    };
    set.spec.volume_claim_templates.iter().map(volume).collect()
}

/// Whether a claim of a member is about to go together with an earlier pod of its name.
pub(super) fn are_stale(set: &StatefulSet, claims: &Claims, ordinal: i32) -> bool {
    let pod = format!("{}-{ordinal}", set.metadata.name);
    let is_pod = |owner: &OwnerReference| owner.is(&Pod::ID) && owner.name == pod;
    let mut own = names(set, ordinal).filter_map(|name| claims.get(&name));
    set.spec.persistent_volume_claim_retention_policy.when_scaled == "Delete"
        && own.any(|claim| claim.metadata.owner_references.iter().any(is_pod))
}

/// What keeps a member from being created: claims of its names that are not gone yet.
pub(super) fn obstacle(set: &StatefulSet, claims: &Claims, ordinal: i32) -> Option<String> {
    let own = names(set, ordinal).filter_map(|name| claims.get(&name));
    let going = own.filter(|claim| claim.metadata.is_being_deleted());
    let why: Vec<_> = going.map(|claim| format!("pvc {} is being deleted", claim.metadata.name)).collect();
    match why.as_slice() {
        [] => None,
        [one] => Some(one.clone()),
        several => Some(format!("[{}]", several.join(", "))),
    }
}

/// Says so if claims of a new member have owners that the policy cannot be carried out beside.
pub(super) fn tell_conflicts(plan: &mut Plan, set: &Object<StatefulSet>, claims: &Claims, ordinal: i32, uid: &str) {
    let policy = &set.spec.persistent_volume_claim_retention_policy;
    if policy.when_deleted != "Delete" && policy.when_scaled != "Delete" {
        return;
    }
    let pod = format!("{}-{ordinal}", set.metadata.name);
    let conflicts = |owner: &OwnerReference| match owner {
        owner if owner.is(&StatefulSet::ID) && owner.name == set.metadata.name => owner.uid != set.metadata.uid,
        owner if owner.is(&Pod::ID) && owner.name == pod => owner.uid != uid,
        owner => owner.controller,
    };
    for claim in names(set, ordinal).filter_map(|name| claims.get(&name)) {
        if claim.metadata.owner_references.iter().any(conflicts) {
            plan.event(conflict(set, claim));
        }
    }
}

fn conflict(set: &Object<StatefulSet>, claim: &PersistentVolumeClaim) -> Note {
    let message = format!(
        "PersistentVolumeClaim {} has a conflicting OwnerReference that acts as a manging controller, the retention \
         policy is ignored for this claim",
        claim.metadata.name
    );
    Note::warning(set, "ConflictingController", message)
}

/// Creates the claims of a member that are missing.
pub(super) fn create_missing(plan: &mut Plan, set: &Object<StatefulSet>, claims: &Claims, ordinal: i32) {
    let selector = set.json().path(&["spec", "selector", "matchLabels"]).clone();
    for template in &set.spec.volume_claim_templates {
        let name = name(set, template, ordinal);
        if claims.contains_key(&name) {
            continue;
        }
        let mut labels = template.path(&["metadata", "labels"]).clone();
        if !labels.is_object() {
            labels = json!({});
        }
        selector.as_object().into_iter().flatten().for_each(|(key, value)| labels.set(key, value.clone()));
        let mut metadata = json!({ "name": name, "namespace": set.metadata.namespace, "labels": labels });
        let annotations = template.path(&["metadata", "annotations"]);
        if !annotations.is_null() {
            metadata.set("annotations", annotations.clone());
        }
        if set.spec.persistent_volume_claim_retention_policy.when_deleted == "Delete" {
            metadata.set("ownerReferences", vec![set.metadata.controller_reference(&StatefulSet::ID)]);
        }
        let (set_name, pod) = (&set.metadata.name, format!("{}-{ordinal}", set.metadata.name));
        let done = format!("Create Claim {name} Pod {pod} in StatefulSet {set_name} success");
        let failed = format!("Create Claim {name} for Pod {pod} in StatefulSet {set_name} failed error: {{error}}");
        plan.create::<PersistentVolumeClaim>(json!({ "metadata": metadata, "spec": template.at("spec") }))
            .on_success(Note::normal(set, "SuccessfulCreate", done))
            .on_failure(Note::warning(set, "FailedCreate", failed));
    }
}

/// Keeps who owns the claims of a pod, and so with whom they go.
pub(super) fn keep_owners(
    plan: &mut Plan,
    set: &Object<StatefulSet>,
    claims: &Claims,
    ordinal: i32,
    pod: &Object<Pod>,
) {
    for claim in names(set, ordinal).filter_map(|name| claims.get(&name)) {
        let Some(owners) = owners(set, claim, ordinal, pod) else { continue };
        if owners.iter().any(|owner| owner.flag("controller") && !is_ours(set, pod, owner.text("uid"))) {
            plan.event(conflict(set, claim));
        }
        let mut object = claim.json();
        object.object_or_new("metadata").set("ownerReferences", owners);
        plan.update(claim, object);
    }
}

fn is_ours(set: &StatefulSet, pod: &Pod, uid: &str) -> bool {
    uid == set.metadata.uid || uid == pod.metadata.uid
}

/// The owners that a claim should have, if they are others than it has.
fn owners(
    set: &Object<StatefulSet>,
    claim: &Object<PersistentVolumeClaim>,
    ordinal: i32,
    pod: &Object<Pod>,
) -> Option<Vec<Value>> {
    let policy = &set.spec.persistent_volume_claim_retention_policy;
    let goes_with_pod = policy.when_scaled == "Delete" && !range(set).contains(&ordinal);
    let wanted = match (goes_with_pod, policy.when_deleted.as_str()) {
        (true, _) => Some(pod.metadata.controller_reference(&Pod::ID)),
        (false, "Delete") => Some(set.metadata.controller_reference(&StatefulSet::ID)),
        (false, _) => None,
    };
    let references = &claim.metadata.owner_references;
    let named = |owner: &OwnerReference| {
        owner.is(&StatefulSet::ID) && owner.name == set.metadata.name
            || owner.is(&Pod::ID) && owner.name == pod.metadata.name
    };
    let ours = |uid: &str| is_ours(set, pod, uid);
    // What belonged to an earlier set or pod of this name is left to whoever deletes it.
    if references.iter().any(|owner| named(owner) && !ours(&owner.uid)) {
        return None;
    }
    let is_managed = references.iter().any(|owner| owner.controller && !ours(&owner.uid));
    let wanted = wanted.filter(|_| !is_managed);
    let before: Vec<_> = references.iter().filter(|owner| ours(&owner.uid)).collect();
    let same = match (&wanted, before.as_slice()) {
        (None, []) => true,
        (Some(wanted), [before]) => before.controller && wanted.text("uid") == before.uid,
        _ => false,
    };
    if same {
        return None;
    }
    let all = claim.json();
    let others = all.at("metadata").items("ownerReferences").iter().filter(|owner| !ours(owner.text("uid")));
    Some(others.cloned().chain(wanted).collect())
}
