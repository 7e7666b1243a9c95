//! The claims of a pod: made from templates, named in its status, and reserved for it once it has a node.

use super::{POD_CLAIM_NAME, is_done, own_claim};
use kinds::{Key, Kind, Object, Pod, PodResourceClaim, ResourceClaim, ResourceClaimTemplate};
use object::{Edit, Value, View, json};
use runtime::{Caches, Note, Plan};
use std::collections::BTreeMap;
use std::sync::Arc;

/// So many consumers a claim can have.
const MAX_CONSUMERS: usize = 256;
/// What the name of a claim may have before what the server adds.
const MAX_PREFIX: usize = 57;

pub(super) struct Observed {
    pod: Arc<Object<Pod>>,
    wanted: Vec<Wanted>,
}

/// One claim of the pod.
struct Wanted {
    entry: PodResourceClaim,
    /// The claim itself, if it is there and the pod's.
    claim: Option<Arc<Object<ResourceClaim>>>,
    template: Option<Arc<Object<ResourceClaimTemplate>>>,
}

pub(super) fn observe(caches: &Caches, key: &Key) -> Option<Observed> {
    let pod = caches.of::<Pod>().get(key)?;
    if pod.metadata.is_being_deleted() || is_done(&pod) {
        return None;
    }
    let wanted = pod.spec.resource_claims.iter().filter_map(|entry| wanted(caches, &pod, entry)).collect();
    Some(Observed { pod, wanted })
}

fn wanted(caches: &Caches, pod: &Pod, entry: &PodResourceClaim) -> Option<Wanted> {
    let namespace = &pod.metadata.namespace;
    let claims = caches.of::<ResourceClaim>();
    if let Some(name) = &entry.resource_claim_name {
        return Some(Wanted { entry: entry.clone(), claim: claims.named(namespace, name), template: None });
    }
    let status = pod.status.resource_claim_statuses.iter().find(|status| status.name == entry.name);
    if status.is_some_and(|status| status.resource_claim_name.is_none()) {
        // Somebody has decided that the pod needs none.
        return None;
    }
    let named = status.and_then(|status| own_claim(caches, pod, status.resource_claim_name.as_deref()?));
    let made = || {
        let own = claims.owned_by(&pod.metadata.uid);
        own.into_iter().find(|claim| claim.metadata.annotation(POD_CLAIM_NAME) == entry.name)
    };
    let template = entry.resource_claim_template_name.as_deref();
    let template = template.and_then(|name| caches.of::<ResourceClaimTemplate>().named(namespace, name));
    Some(Wanted { entry: entry.clone(), claim: named.or_else(made), template })
}

pub(super) fn plan(observed: &Observed) -> Plan {
    let Observed { pod, wanted } = observed;
    let mut plan = Plan::default();
    for Wanted { entry, claim, template } in wanted {
        let Some(template_name) = entry.resource_claim_template_name.as_ref().filter(|_| claim.is_none()) else {
            continue;
        };
        let failed = |why: String| {
            let message = format!("PodResourceClaim {}: {why}", entry.name);
            Note::warning(pod, "FailedResourceClaimCreation", message)
        };
        match template {
            Some(template) => {
                plan.create::<ResourceClaim>(claim_from(pod, &entry.name, template))
                    .on_failure(failed("create ResourceClaim : {error}".to_owned()));
            }
            None => {
                let missing = format!("resourceclaimtemplate.resource.k8s.io {template_name:?} not found");
                plan.event(failed(format!("resource claim template {template_name:?}: {missing}")));
            }
        }
    }
    name_claims(&mut plan, pod, wanted);
    if !pod.spec.node_name.is_empty() {
        for claim in wanted.iter().filter_map(|wanted| wanted.claim.as_deref()) {
            reserve(&mut plan, pod, claim);
        }
    }
    plan
}

fn claim_from(pod: &Object<Pod>, name: &str, template: &ResourceClaimTemplate) -> Value {
    let meta = pod.meta();
    let mut owner = meta.controller_reference(&Pod::ID);
    owner.remove("blockOwnerDeletion");
    let given = template.spec.at("metadata");
    let mut metadata = json!({
        "namespace": meta.namespace, "generateName": generate_name(&meta.name, name), "ownerReferences": [owner],
        "annotations": if given.has("annotations") { given.at("annotations").clone() } else { json!({}) },
    });
    metadata["annotations"].set(POD_CLAIM_NAME, name);
    if given.has("labels") {
        metadata.set("labels", given.at("labels").clone());
    }
    json!({ "metadata": metadata, "spec": template.spec.at("spec") })
}

/// Both names in it, each cut by the same share if they are too long.
fn generate_name(pod: &str, claim: &str) -> String {
    let whole = format!("{pod}-{claim}-");
    if whole.len() <= MAX_PREFIX {
        return whole;
    }
    let cut = |name: &str| name.chars().take(name.len() * MAX_PREFIX / whole.len()).collect::<String>();
    format!("{}-{}", cut(pod), cut(claim))
}

/// Says in the status of the pod which claims were made for it.
fn name_claims(plan: &mut Plan, pod: &Object<Pod>, wanted: &[Wanted]) {
    let known = &pod.status.resource_claim_statuses;
    let of_status = known.iter().filter_map(|status| Some((&status.name, status.resource_claim_name.as_ref()?)));
    let mut names: BTreeMap<&String, &String> = of_status.collect();
    let before = names.clone();
    for Wanted { entry, claim, .. } in wanted.iter().filter(|it| it.entry.resource_claim_template_name.is_some()) {
        names.extend(claim.as_ref().map(|claim| (&entry.name, &claim.metadata.name)));
    }
    if names != before {
        let statuses = names.iter().map(|(name, claim)| json!({ "name": name, "resourceClaimName": claim }));
        let statuses: Vec<Value> = statuses.collect();
        plan.patch_in(pod, "status", json!({ "status": { "resourceClaimStatuses": statuses } }));
    }
}

/// A pod that got its node from somebody else than the scheduler has its claims reserved here.
fn reserve(plan: &mut Plan, pod: &Object<Pod>, claim: &Object<ResourceClaim>) {
    let meta = &pod.metadata;
    let consumers = &claim.status.reserved_for;
    let is_reserved = consumers.iter().any(|consumer| consumer.uid == meta.uid);
    if claim.status.allocation.is_none() || is_reserved || consumers.len() >= MAX_CONSUMERS {
        return;
    }
    let mut object = claim.json();
    let consumer = json!({ "resource": "pods", "name": meta.name, "uid": meta.uid });
    object.object_or_new("status").push("reservedFor", consumer);
    let status = object.remove("status");
    plan.status(claim, status);
}

#[cfg(test)]
mod tests {
    use super::generate_name;

    #[test]
    fn long_names_are_cut_by_the_same_share() {
        assert_eq!(generate_name("pod", "gpu"), "pod-gpu-");
        let name = generate_name(&"p".repeat(60), &"c".repeat(30));
        assert_eq!(name, format!("{}-{}", "p".repeat(37), "c".repeat(18)));
    }
}
