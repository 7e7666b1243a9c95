//! ResourceClaim: pods that bring templates get claims of devices of their own, and claims are free again when nobody
//! uses them.
//!
//! Keys are pods and claims; those of claims bear a prefix that no name has. Which devices a claim gets is the
//! scheduler's business.

mod claims;
mod pods;

use kinds::{Consumer, Key, Object, Pod, ResourceClaim, ResourceClaimTemplate};
use object::ApiError;
use runtime::{Caches, Context, Controller, Plan, Request};

/// Says for which claim of its pod a claim was made.
const POD_CLAIM_NAME: &str = "resource.kubernetes.io/pod-claim-name";
/// What the key of a claim begins with.
const CLAIM: &str = "claim:";

pub(crate) fn controller() -> Controller {
    Controller::new("resource-claim-controller")
        .reports_as("resource_claim")
        .watches::<Pod>(|pod, _| keys_of(pod))
        .watches::<ResourceClaim>(|claim, caches| {
            let mut keys = vec![claim_key(&claim.metadata.namespace, &claim.metadata.name)];
            let users = caches.of::<Pod>().by("resource-claim", &claim.key().to_string());
            keys.extend(users.iter().map(|pod| pod.key()));
            keys.extend(runtime::controller_key::<Pod>(&claim.metadata));
            keys
        })
        .watches::<ResourceClaimTemplate>(|template, caches| {
            let pods = caches.of::<Pod>().by("claim-template", &template.key().to_string());
            pods.iter().map(|pod| pod.key()).collect()
        })
        .plans_with(reconcile)
}

fn claim_key(namespace: &str, name: &str) -> Key {
    Key::new(namespace, format!("{CLAIM}{name}"))
}

/// The pod, if it has claims, and those of them that are known.
fn keys_of(pod: &Object<Pod>) -> Vec<Key> {
    let mut keys: Vec<Key> = pod.resource_claim_names().map(|name| claim_key(&pod.metadata.namespace, name)).collect();
    if !pod.spec.resource_claims.is_empty() {
        keys.push(pod.key());
    }
    keys
}

async fn reconcile(context: Context, request: Request) -> Result<Plan, ApiError> {
    let caches = &context.caches;
    let Some(name) = request.key.name.strip_prefix(CLAIM) else {
        return Ok(pods::observe(caches, &request.key).map(|observed| pods::plan(&observed)).unwrap_or_default());
    };
    let key = Key::new(request.key.namespace.as_str(), name);
    let Some(mut observed) = claims::observe(caches, &key) else { return Ok(Plan::default()) };
    for consumer in observed.unknown_consumers() {
        // Whoever is not in the cache may have been made a moment ago, by a scheduler that has reserved the claim.
        let pod = context.client.get::<Pod>(&Key::new(key.namespace.as_str(), consumer.name.as_str())).await?;
        observed.know(&consumer, pod.is_some_and(|pod| pod.metadata.uid == consumer.uid));
    }
    Ok(claims::plan(&observed))
}

/// Whether none of the containers of a pod runs or ever will.
fn is_done(pod: &Pod) -> bool {
    pod.is_finished() || (pod.metadata.is_being_deleted() && pod.spec.node_name.is_empty())
}

fn is_pod(consumer: &Consumer) -> bool {
    consumer.api_group.is_empty() && consumer.resource == "pods"
}

/// A claim by name, if it was made for this pod.
fn own_claim(caches: &Caches, pod: &Pod, name: &str) -> Option<std::sync::Arc<Object<ResourceClaim>>> {
    let claim = caches.of::<ResourceClaim>().named(&pod.metadata.namespace, name)?;
    claim.metadata.is_controlled_by(&pod.metadata.uid).then_some(claim)
}

#[cfg(test)]
mod tests;
