//! ResourceQuota: what a namespace is granted and how much of it is in use, counted from what is there.
//!
//! The API server charges a quota in the same transaction in which it lets something in, and never gives anything back:
//! that is for this loop, which counts anew. It reads the quota first and everything else after that, from the API and
//! not from caches; its report is on condition that the quota is still the same. So whatever was charged meanwhile is
//! not lost, and a quota is never shown with less in use than there is.

use kinds::{
    ConfigMap, CronJob, DaemonSet, Deployment, Id, Job, Key, Kind, Object, PersistentVolumeClaim, Pod, ReplicaSet,
    ReplicationController, ResourceClaim, ResourceQuota, Secret, Service, ServiceAccount, StatefulSet,
};
use object::{ApiError, Value, View, json};
use quota::{Amounts, Counted};
use runtime::{Caches, Change, Client, Context, Controller, ListOptions, Plan, Request};
use std::time::Duration;

/// How often quotas are counted though nothing is known to have changed: of some kinds nobody watches what goes.
const PERIOD: Duration = Duration::from_secs(300);

pub(crate) fn controller() -> Controller {
    Controller::new("resourcequota-controller")
        .primary::<ResourceQuota>()
        .watches_changes::<ConfigMap>(quotas_of)
        .watches_changes::<CronJob>(quotas_of)
        .watches_changes::<DaemonSet>(quotas_of)
        .watches_changes::<Deployment>(quotas_of)
        .watches_changes::<Job>(quotas_of)
        .watches_changes::<PersistentVolumeClaim>(quotas_of)
        .watches_changes::<Pod>(quotas_of)
        .watches_changes::<ReplicaSet>(quotas_of)
        .watches_changes::<ReplicationController>(quotas_of)
        .watches_changes::<ResourceClaim>(quotas_of)
        .watches_changes::<Secret>(quotas_of)
        .watches_changes::<Service>(quotas_of)
        .watches_changes::<ServiceAccount>(quotas_of)
        .watches_changes::<StatefulSet>(quotas_of)
        .plans_with(reconcile)
}

/// The name under which objects of a resource are counted: `deployments.apps`.
fn table(id: &Id) -> String {
    match id.group() {
        "" => id.plural.to_string(),
        group => format!("{}.{group}", id.plural),
    }
}

/// The quotas of a namespace that something was given back to: an object is gone, or uses something else than before.
fn quotas_of<K: Kind>(change: &Change<K>, caches: &Caches) -> Vec<Key> {
    let Some(old) = &change.old else { return Vec::new() };
    let quotas = caches.of::<ResourceQuota>().in_namespace(&old.meta().namespace);
    let table = table(&K::ID);
    let Some(counted) = Counted::of(&table) else { return Vec::new() };
    let concerned: Vec<Key> = quotas
        .iter()
        .filter(|quota| quota.spec.hard.keys().any(|name| counted.counts(name)))
        .map(|quota| quota.key())
        .collect();
    if concerned.is_empty() || change.new.as_ref().is_some_and(|new| uses_the_same(counted, old, new)) {
        return Vec::new();
    }
    concerned
}

fn uses_the_same<K: Kind>(counted: Counted<'_>, old: &Object<K>, new: &Object<K>) -> bool {
    if matches!(counted, Counted::Others(_)) {
        return true;
    }
    let usage = |object: &Object<K>| counted.usage(&object.json(), 0).ok();
    // What is being deleted stops counting when its time is over, and is looked at again now and then.
    usage(old) == usage(new) && old.meta().is_being_deleted() == new.meta().is_being_deleted()
}

async fn reconcile(context: Context, request: Request) -> Result<Plan, ApiError> {
    let Some(quota) = context.caches.of::<ResourceQuota>().get(&request.key) else { return Ok(Plan::default()) };
    let used = count(&context.client, &quota, request.now.seconds()).await?;
    Ok(plan(&quota, &used))
}

/// What is in use of everything that a quota limits.
async fn count(client: &Client, quota: &Object<ResourceQuota>, now: i64) -> Result<Amounts, ApiError> {
    let value = quota.json();
    let mut used = Amounts::default();
    for id in limited(client, quota).await? {
        let table = table(&id);
        let Some(counted) = Counted::of(&table) else { continue };
        let list = client.list_raw(&id, &quota.metadata.namespace, &ListOptions::default()).await?;
        let objects = list.items.iter().map(|raw| object::json::parse(&raw.json).map_err(ApiError::internal));
        let objects: Vec<Value> = objects.collect::<Result<_, _>>()?;
        used.add(&quota::used(&value, counted, &objects, now)?);
    }
    Ok(used)
}

/// The resources that a quota limits. Which others there are is asked for only where it limits one of them.
async fn limited(client: &Client, quota: &ResourceQuota) -> Result<Vec<Id>, ApiError> {
    let counts = |id: &Id, name: &str| Counted::of(&table(id)).is_some_and(|counted| counted.counts(name));
    let usual = [Pod::ID, Service::ID, PersistentVolumeClaim::ID, ConfigMap::ID, Secret::ID, ReplicationController::ID];
    let mut ids = usual.to_vec();
    if !quota.spec.hard.keys().all(|name| usual.iter().any(|id| counts(id, name))) {
        let resources = client.discover().await?.into_iter();
        ids = resources.filter(|resource| resource.can("list")).map(|resource| resource.id).collect();
    }
    ids.retain(|id| id.namespaced && quota.spec.hard.keys().any(|name| counts(id, name)));
    Ok(ids)
}

fn plan(quota: &Object<ResourceQuota>, used: &Amounts) -> Plan {
    let mut plan = Plan::default();
    let value = quota.json();
    let hard = value.at("spec").at("hard");
    let mut shown = Amounts::default();
    for name in quota.spec.hard.keys() {
        shown.set(name.as_str(), used.get(name).unwrap_or_default());
    }
    // The same amount can be written in several ways; only another amount is news.
    let is_known = Amounts::read(value.at("status").at("used")).is_ok_and(|known| known == shown);
    if !is_known || value.at("status").at("hard") != hard {
        plan.status(quota, json!({ "hard": hard, "used": shown.to_value() }));
    }
    plan.requeue_after(PERIOD);
    plan
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    fn quota(hard: &Value, status: &Value) -> Object<ResourceQuota> {
        Object::of(&json!({
            "metadata": { "namespace": "a", "name": "q" }, "spec": { "hard": hard }, "status": status,
        }))
    }

    #[test]
    fn a_quota_shows_what_is_granted_and_what_is_used_of_it() {
        let hard = json!({ "pods": "5", "cpu": "2", "secrets": "1" });
        let used = Amounts::read(&json!({ "pods": "2", "cpu": "1500m", "memory": "1Gi" })).unwrap();
        let report = |status: &Value| {
            let plan = plan(&quota(&hard, status), &used);
            plan.writes.first().map(|write| match write {
                runtime::Write::Update { object, .. } => object["status"].clone(),
                other => panic!("{other:?}"),
            })
        };
        let right = json!({ "hard": hard, "used": { "pods": "2", "cpu": "1500m", "secrets": "0" } });
        assert_eq!(report(&json!({})), Some(right.clone()));
        assert_eq!(report(&right), None);
        let same = json!({ "hard": hard, "used": { "pods": "2", "cpu": "1.5", "secrets": "0" } });
        assert_eq!(report(&same), None, "the same, written differently");
        let more = json!({ "hard": hard, "used": { "pods": "2", "cpu": "1500m", "secrets": "0", "memory": "1Gi" } });
        assert_eq!(report(&more), Some(right.clone()), "what is no longer limited is not shown");
        let before = json!({ "hard": { "pods": "9" }, "used": right["used"] });
        assert_eq!(report(&before), Some(right));
    }

    #[test]
    fn a_quota_is_counted_again_when_something_is_given_back() {
        let mut caches = Caches::default().with::<ResourceQuota>();
        caches.put(quota(&json!({ "pods": "5" }), &json!({})));
        let pod = |namespace: &str, phase: &str| {
            let metadata = json!({ "namespace": namespace, "name": "p" });
            Some(Arc::new(Object::<Pod>::of(&json!({ "metadata": metadata, "status": { "phase": phase } }))))
        };
        for (what, old, new, expected) in [
            ("created: charged already", None, pod("a", "Running"), 0),
            ("nothing that counts", pod("a", "Pending"), pod("a", "Running"), 0),
            ("ended", pod("a", "Running"), pod("a", "Failed"), 1),
            ("deleted", pod("a", "Running"), None, 1),
            ("deleted elsewhere", pod("b", "Running"), None, 0),
        ] {
            assert_eq!(quotas_of(&Change { old, new }, &caches).len(), expected, "{what}");
        }
        let secret = Some(Arc::new(Object::<Secret>::of(&json!({ "metadata": { "namespace": "a" } }))));
        assert!(quotas_of(&Change { old: secret, new: None }, &caches).is_empty(), "of secrets nothing is said");
    }
}
