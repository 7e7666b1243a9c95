//! How many pods there should be: the sum of what the controllers of a budget's pods want.

use super::{Expected, scaled};
use kinds::{
    Deployment, Key, Kind, Object, OwnerReference, Pod, PodDisruptionBudget, PodDisruptionBudgetSpec, ReplicaSet,
    ReplicationController, StatefulSet,
};
use object::{ApiError, View};
use runtime::{Cache, Caches, Client, Context};
use std::collections::BTreeMap;
use std::sync::Arc;

/// By the UID of what controls pods: the UID of whoever says how many, and how many; or why that is not known.
#[derive(Debug, Default)]
pub(super) struct Scales(pub(super) BTreeMap<String, Result<(String, i32), String>>);

/// Whether the budget is a part of something, of which one has to know the whole.
fn is_relative(spec: &PodDisruptionBudgetSpec) -> bool {
    !spec.max_unavailable.is_null() || spec.min_available.is_string()
}

impl Scales {
    pub(super) fn expected(
        &self,
        spec: &PodDisruptionBudgetSpec,
        pods: &[Arc<Object<Pod>>],
    ) -> Result<Expected, String> {
        let present = i32::try_from(pods.len()).unwrap_or(i32::MAX);
        if !is_relative(spec) {
            let healthy = scaled(&spec.min_available, present, true);
            let pods = if spec.min_available.is_null() { 0 } else { present };
            return Ok(Expected { pods, healthy, has_unmanaged: false });
        }
        let mut wanted = BTreeMap::new();
        let mut has_unmanaged = false;
        for pod in pods {
            let Some(owner) = pod.metadata.controller() else {
                has_unmanaged = true;
                continue;
            };
            match self.0.get(&owner.uid) {
                Some(Ok((uid, replicas))) => {
                    wanted.insert(uid, *replicas);
                }
                Some(Err(error)) => return Err(error.clone()),
                None => return Err(format!("found no controllers for pod {:?}", pod.metadata.name)),
            }
        }
        let total: i32 = wanted.into_values().fold(0, i32::saturating_add);
        let healthy = match spec.max_unavailable.is_null() {
            true => scaled(&spec.min_available, total, true),
            false => (total - scaled(&spec.max_unavailable, total, true)).max(0),
        };
        Ok(Expected { pods: total, healthy, has_unmanaged })
    }
}

/// What the controllers of these pods want, as far as the budget has to know. Those that are no built-in ones are
/// asked for their `scale`.
pub(super) async fn of_pods(
    context: &Context,
    budget: &PodDisruptionBudget,
    pods: &[Arc<Object<Pod>>],
) -> Result<Scales, ApiError> {
    let mut scales = Scales::default();
    if !is_relative(&budget.spec) {
        return Ok(scales);
    }
    for owner in pods.iter().filter_map(|pod| pod.metadata.controller()) {
        if scales.0.contains_key(&owner.uid) {
            continue;
        }
        let namespace = &budget.metadata.namespace;
        let found = match built_in(&context.caches, namespace, owner) {
            Some(found) => Some(Ok(found)),
            None => asked(&context.client, namespace, owner).await?,
        };
        scales.0.extend(found.map(|found| (owner.uid.clone(), found)));
    }
    Ok(scales)
}

/// What a built-in controller wants. A ReplicaSet has it from its Deployment.
pub(super) fn built_in(caches: &Caches, namespace: &str, owner: &OwnerReference) -> Option<(String, i32)> {
    fn find<K: Kind>(cache: &Cache<K>, namespace: &str, owner: &OwnerReference) -> Option<Arc<Object<K>>> {
        let found = owner.is(&K::ID).then(|| cache.named(namespace, &owner.name)).flatten();
        found.filter(|found| found.meta().uid == owner.uid)
    }
    let own = |replicas: i32| (owner.uid.clone(), replicas);
    if let Some(set) = find(&caches.of::<ReplicaSet>(), namespace, owner) {
        let above = set.metadata.controller().filter(|above| above.is(&Deployment::ID));
        let deployment = above.and_then(|above| find(&caches.of::<Deployment>(), namespace, above));
        return Some(match deployment {
            Some(deployment) => (deployment.metadata.uid.clone(), deployment.spec.replicas),
            None => own(set.spec.replicas),
        });
    }
    let sets = find(&caches.of::<StatefulSet>(), namespace, owner).map(|set| set.spec.replicas);
    let replicas =
        sets.or_else(|| find(&caches.of::<ReplicationController>(), namespace, owner).map(|set| set.spec.replicas));
    replicas.map(own)
}

/// What a controller of another kind says. None: it is gone, or another one of the same name is there.
async fn asked(
    client: &Client,
    namespace: &str,
    owner: &OwnerReference,
) -> Result<Option<Result<(String, i32), String>>, ApiError> {
    let resources = client.discover().await?;
    let resource = resources.iter().find(|resource| owner.is(&resource.id));
    let Some(id) = resource.map(|resource| &resource.id) else {
        return Ok(Some(Err(format!("no matches for kind {:?} in version {:?}", owner.kind, owner.api_version))));
    };
    if !resource.is_some_and(|resource| resource.has_subresource("scale")) {
        return Ok(Some(Err(format!("{} does not implement the scale subresource", id.resource()))));
    }
    let path = Key::new(namespace, format!("{}/scale", owner.name));
    let Some(raw) = client.get_raw(id, &path).await? else { return Ok(None) };
    let scale = object::json::parse(&raw.json).map_err(ApiError::internal)?;
    let uid = scale.at("metadata").text("uid");
    let replicas = scale.at("spec").int("replicas").and_then(|replicas| i32::try_from(replicas).ok()).unwrap_or(0);
    Ok((uid == owner.uid).then(|| Ok((uid.to_owned(), replicas))))
}
