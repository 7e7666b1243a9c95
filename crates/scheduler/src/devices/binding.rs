//! Writes to the API what was decided about claims, before the pod is bound; and takes it back if that fails.
//!
//! Nothing here ends before the cache has seen what was written, or may have been: from then on the claims themselves
//! say which devices are taken.

use super::extended::ANNOTATION;
use super::grant::Grant;
use kinds::{AllocatedDevice, Key, Kind, Object, Pod, ResourceClaim, Time, condition};
use object::{ApiError, Edit, Reason, Value, json};
use runtime::{Context, DeleteOptions, ListOptions, Note, PatchType, Target};
use std::sync::Arc;
use std::time::Duration;

/// Keeps a claim while devices are allocated to it.
const FINALIZER: &str = "resource.kubernetes.io/delete-protection";
/// So often a claim is looked at again when somebody else has written it meanwhile.
const ATTEMPTS: usize = 5;
/// Between questions to an API that does not answer.
const PAUSE: Duration = Duration::from_secs(1);

/// What has to happen to claims before a pod can be bound.
#[derive(Clone, Debug, Default)]
pub struct Reservation {
    /// Claims that are not reserved for the pod yet, with the devices of those that have none.
    pub(super) claims: Vec<(Arc<Object<ResourceClaim>>, Option<Value>)>,
    pub(super) all: Vec<Key>,
    pub(super) made: Option<Made>,
    /// Devices that are not prepared after this long are given up.
    pub(super) timeout: Duration,
}

/// A claim that is made for the pod, for what it asks for by the names of resources.
#[derive(Clone, Debug)]
pub(super) struct Made {
    pub requests: Vec<Value>,
    pub mappings: Vec<Value>,
    pub grant: Grant,
}

impl Reservation {
    pub(crate) fn is_empty(&self) -> bool {
        self.all.is_empty() && self.made.is_none()
    }

    /// The devices that claims get, as their status will say: for tests.
    #[cfg(test)]
    pub(crate) fn allocations(&self) -> Vec<(Key, Value)> {
        let given = self.claims.iter().filter_map(|(claim, given)| Some((claim.key(), given.clone()?)));
        given.chain(self.made.iter().map(|made| (made.grant.key.clone(), made.grant.allocation.clone()))).collect()
    }
}

/// Gives claims their devices and reserves them for the pod.
pub(crate) async fn reserve(
    reservation: &Reservation,
    pod: &Object<Pod>,
    node: &str,
    context: &Context,
    now: Time,
) -> Result<(), ApiError> {
    for (claim, allocation) in &reservation.claims {
        write(claim.clone(), allocation.as_ref(), pod, context, now).await?;
    }
    let mut all = reservation.all.clone();
    if let Some(made) = &reservation.made {
        let claim = create(made, pod, context).await?;
        let claim = write(Arc::new(claim), Some(&made.grant.allocation), pod, context, now).await?;
        let status = json!({ "requestMappings": made.mappings, "resourceClaimName": claim.metadata.name });
        let patch =
            json!({ "metadata": { "uid": pod.metadata.uid }, "status": { "extendedResourceClaimStatus": status } });
        context.client.patch(&Target::of(pod), "status", PatchType::Strategic, &patch).await?;
        all.push(claim.key());
    }
    prepared(&all, reservation.timeout, pod, node, context, now).await
}

/// Takes back what was written for a pod that is not bound after all.
pub(crate) async fn undo(reservation: &Reservation, pod: &Object<Pod>, context: &Context) {
    for (claim, _) in &reservation.claims {
        let patch = json!({
            "metadata": { "uid": claim.metadata.uid },
            "status": { "reservedFor": [{ "$patch": "delete", "uid": pod.metadata.uid }] },
        });
        let target = Target { version: String::new(), ..Target::of(&**claim) };
        let written = match is_reserved(&claim.key(), pod, context).await {
            true => context.client.patch(&target, "status", PatchType::Strategic, &patch).await.map(|_| ()),
            false => Ok(()),
        };
        if let Err(error) = written {
            tracing::debug!(claim = %claim.key(), %error, "still reserved");
        }
        until_seen(&claim.key(), context).await;
    }
    if reservation.made.is_some() {
        for claim in context.caches.of::<ResourceClaim>().owned_by(&pod.metadata.uid) {
            if claim.metadata.annotation(ANNOTATION) == "true" {
                if let Err(error) = delete(&claim, context).await {
                    tracing::debug!(claim = %claim.key(), %error, "not deleted");
                }
                until_seen(&claim.key(), context).await;
            }
        }
    }
}

async fn is_reserved(key: &Key, pod: &Object<Pod>, context: &Context) -> bool {
    let claim = context.client.get::<ResourceClaim>(key).await;
    claim.is_ok_and(|claim| claim.is_some_and(|claim| claim.is_reserved_for(&pod.metadata.uid)))
}

/// Waits until the cache knows a claim as it is now. Whether a write that was never answered has happened, only the API
/// can tell.
async fn until_seen(key: &Key, context: &Context) {
    loop {
        match context.client.get_raw(&ResourceClaim::ID, key).await {
            Ok(Some(raw)) => return context.caches.seen(&ResourceClaim::ID, &raw).await,
            Ok(None) => return,
            Err(_) => tokio::time::sleep(PAUSE).await,
        }
    }
}

/// Waits until the cache knows all that was allocated before: another scheduler may have done so a moment ago.
pub(crate) async fn catch_up(context: &Context) {
    loop {
        match context.client.list_raw(&ResourceClaim::ID, "", &ListOptions::default()).await {
            Ok(list) => {
                for claim in &list.items {
                    context.caches.seen(&ResourceClaim::ID, claim).await;
                }
                return;
            }
            Err(_) => tokio::time::sleep(PAUSE).await,
        }
    }
}

/// Gives devices back, or a claim with them: what it stood in the way of can be tried again.
pub(crate) async fn release(release: &super::Release, context: &Context) -> Result<(), ApiError> {
    match release {
        super::Release::Claim(claim) => delete(claim, context).await,
        super::Release::Devices(claim) => {
            let mut object = claim.json();
            let status = object.object_or_new("status");
            for field in ["allocation", "reservedFor", "devices"] {
                status.remove(field);
            }
            context.client.update(&ResourceClaim::ID, "status", &object).await.map(|_| ())
        }
    }
}

/// Without the finalizer that keeps it while it has devices.
async fn delete(claim: &Object<ResourceClaim>, context: &Context) -> Result<(), ApiError> {
    let target = Target { version: String::new(), ..Target::of(claim) };
    let kept: Vec<&String> = claim.metadata.finalizers.iter().filter(|name| *name != FINALIZER).collect();
    let patch = json!({ "metadata": { "uid": claim.metadata.uid, "finalizers": kept } });
    context.client.patch(&target, "", PatchType::Merge, &patch).await?;
    context.client.delete(&target, &DeleteOptions::default()).await.map(|_| ())
}

async fn create(made: &Made, pod: &Object<Pod>, context: &Context) -> Result<Object<ResourceClaim>, ApiError> {
    let meta = &pod.metadata;
    let owner = json!({ "apiVersion": "v1", "kind": "Pod", "name": meta.name, "uid": meta.uid, "controller": true });
    let claim = json!({
        "apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim",
        "metadata": {
            "namespace": meta.namespace, "generateName": format!("{}-extended-resources-", meta.name),
            "ownerReferences": [owner], "annotations": { ANNOTATION: "true" },
        },
        "spec": { "devices": { "requests": made.requests } },
    });
    read(context.client.create(&ResourceClaim::ID, &claim).await?)
}

fn read(raw: kinds::Raw) -> Result<Object<ResourceClaim>, ApiError> {
    Object::read(raw).map_err(|error| ApiError::new(Reason::InternalError, error.to_string()))
}

/// Writes devices and the pod into the status of a claim; again, if others have written to it meanwhile.
async fn write(
    mut claim: Arc<Object<ResourceClaim>>,
    allocation: Option<&Value>,
    pod: &Object<Pod>,
    context: &Context,
    now: Time,
) -> Result<Arc<Object<ResourceClaim>>, ApiError> {
    let key = claim.key();
    let uid = claim.metadata.uid.clone();
    for _ in 0..ATTEMPTS {
        match write_once(&claim, allocation, pod, context, now).await {
            Err(error) if error.reason() == Reason::Conflict => {
                let fresh = context.client.get::<ResourceClaim>(&key).await?;
                let fresh = fresh.filter(|fresh| fresh.metadata.uid == uid);
                let gone = || ApiError::not_found(ResourceClaim::ID.group(), &ResourceClaim::ID.plural, &key.name);
                claim = Arc::new(fresh.ok_or_else(gone)?);
            }
            other => return other.map(Arc::new),
        }
    }
    Err(ApiError::new(Reason::Conflict, format!("claim {key} is written by others again and again")))
}

async fn write_once(
    claim: &Object<ResourceClaim>,
    allocation: Option<&Value>,
    pod: &Object<Pod>,
    context: &Context,
    now: Time,
) -> Result<Object<ResourceClaim>, ApiError> {
    let key = claim.key();
    let meanwhile =
        |what: &str| Err(ApiError::new(Reason::InternalError, format!("claim {key} got {what} in the meantime")));
    if claim.metadata.is_being_deleted() {
        return meanwhile("deleted");
    }
    match (allocation, &claim.status.allocation) {
        (Some(_), Some(_)) => return meanwhile("allocated elsewhere"),
        (None, None) => return meanwhile("deallocated elsewhere"),
        _ => {}
    }
    let mut object = claim.json();
    if allocation.is_some() && !claim.metadata.has_finalizer(FINALIZER) {
        object.object_or_new("metadata").push("finalizers", FINALIZER.into());
        object = read(context.client.update(&ResourceClaim::ID, "", &object).await?)?.json();
    }
    let status = object.object_or_new("status");
    if let Some(allocation) = allocation {
        let mut allocation = allocation.clone();
        allocation.set("allocationTimestamp", now.to_string());
        status.set("allocation", allocation);
    }
    let meta = &pod.metadata;
    if !claim.is_reserved_for(&meta.uid) {
        status.push("reservedFor", json!({ "resource": "pods", "name": meta.name, "uid": meta.uid }));
    }
    let written = context.client.update(&ResourceClaim::ID, "status", &object).await?;
    context.caches.seen(&ResourceClaim::ID, &written).await;
    read(written)
}

/// Waits until devices that have to be prepared are; so long from when they were allocated, be it long ago.
async fn prepared(
    claims: &[Key],
    timeout: Duration,
    pod: &Object<Pod>,
    node: &str,
    context: &Context,
    now: Time,
) -> Result<(), ApiError> {
    let mut progress = context.caches.of::<ResourceClaim>().progress();
    let all = || claims.iter().filter_map(|key| context.caches.of::<ResourceClaim>().get(key));
    let pending = || all().filter(|claim| is_ready(claim).is_ok_and(|ready| !ready));
    let are_ready = || -> Result<bool, ApiError> {
        let mut ready = true;
        for claim in all() {
            let failed = |message| ApiError::new(Reason::InternalError, message);
            ready &= is_ready(&claim).map_err(failed)?;
        }
        Ok(ready)
    };
    if are_ready()? {
        return Ok(());
    }
    let message = format!("waiting for binding conditions for device on node {node}");
    (context.tell)(Note::normal(pod, "BindingConditionsPending", message));
    let waiting = async {
        loop {
            drop(progress.borrow_and_update());
            if are_ready()? {
                return Ok(());
            }
            if progress.changed().await.is_err() {
                return Err(ApiError::new(Reason::ServiceUnavailable, "the scheduler is being stopped"));
            }
        }
    };
    let begun = pending().filter_map(|claim| claim.status.allocation.as_ref()?.allocation_timestamp).min();
    let left = (begun.unwrap_or(now) + timeout).since(now).min(timeout);
    if let Ok(ended) = tokio::time::timeout(left, waiting).await {
        return ended;
    }
    // Others may be quicker: the claim is to look for them.
    for claim in pending() {
        release(&super::Release::Devices(claim), context).await?;
    }
    Err(ApiError::new(Reason::Timeout, "device binding timeout: context deadline exceeded"))
}

/// Whether all devices of a claim are prepared; an error says that one cannot be.
pub(super) fn is_ready(claim: &ResourceClaim) -> Result<bool, String> {
    let results = claim.status.allocation.iter().flat_map(|allocation| &allocation.devices.results);
    let mut all = true;
    for result in results.filter(|result| !result.binding_conditions.is_empty()) {
        let said = claim.status.devices.iter().find(|status| is_same(status, result));
        let conditions = said.map(|status| status.conditions.as_slice()).unwrap_or_default();
        let holds = |kind: &String| condition(conditions, kind).filter(|condition| condition.status == "True");
        if let Some(failed) = result.binding_failure_conditions.iter().find_map(holds) {
            let name = &claim.metadata.name;
            return Err(format!(
                "device binding failed: claim={name}, reason={}, message={:?}",
                failed.reason, failed.message
            ));
        }
        all &= result.binding_conditions.iter().all(|kind| holds(kind).is_some());
    }
    Ok(all)
}

fn is_same(status: &kinds::AllocatedDeviceStatus, result: &AllocatedDevice) -> bool {
    status.driver == result.driver && status.pool == result.pool && status.device == result.device
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_claim_is_ready_when_all_that_was_to_be_said_of_its_devices_is() {
        let condition =
            |kind: &str, status: &str| json!({ "type": kind, "status": status, "reason": "R", "message": "m" });
        let waiting = json!({
            "driver": "d", "pool": "p", "device": "x",
            "bindingConditions": ["attached", "clean"], "bindingFailureConditions": ["broken"],
        });
        let plain = json!({ "driver": "d", "pool": "p", "device": "y" });
        let failed = "device binding failed: claim=c, reason=R, message=\"m\"";
        for (results, said, expected) in [
            (json!([plain]), json!([]), Ok(true)),
            (json!([plain, waiting]), json!([]), Ok(false)),
            (json!([waiting]), json!([condition("attached", "True")]), Ok(false)),
            (json!([waiting]), json!([condition("attached", "True"), condition("clean", "False")]), Ok(false)),
            (json!([waiting]), json!([condition("attached", "True"), condition("clean", "True")]), Ok(true)),
            (json!([waiting]), json!([condition("broken", "False")]), Ok(false)),
            (json!([waiting]), json!([condition("attached", "True"), condition("broken", "True")]), Err(failed)),
        ] {
            let status = json!([{ "driver": "d", "pool": "p", "device": "x", "conditions": said }]);
            let claim: Object<ResourceClaim> = Object::of(&json!({
                "metadata": { "name": "c" },
                "status": { "allocation": { "devices": { "results": results } }, "devices": status },
            }));
            assert_eq!(is_ready(&claim), expected.map_err(str::to_owned), "{results} {said}");
        }
    }
}
