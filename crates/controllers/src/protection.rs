//! Protection: a claim, a volume, a class of attributes or a group of pods that is in use stays until it is not,
//! whoever deletes it.
//!
//! Four loops that differ only in what use means. Each object carries a finalizer from the moment it is seen; admission
//! adds it earlier, so this is for what was there before. It goes when the object is deleted and nobody uses it.

use kinds::{Key, Kind, Object, PersistentVolume, PersistentVolumeClaim, Pod, PodGroup, VolumeAttributesClass};
use object::{ApiError, Edit, Value, json};
use runtime::{Caches, Context, Controller, ListOptions, Plan, Request};

const CLAIM: &str = "kubernetes.io/pvc-protection";
const VOLUME: &str = "kubernetes.io/pv-protection";
const ATTRIBUTES_CLASS: &str = "kubernetes.io/vac-protection";
const POD_GROUP: &str = "scheduling.k8s.io/podgroup-protection";

/// Claims are in use by pods that have a node.
pub(crate) fn claims() -> Controller {
    Controller::new("pvc-protection-controller")
        .primary::<PersistentVolumeClaim>()
        .watches::<Pod>(|pod, caches| {
            let claims = caches.of::<PersistentVolumeClaim>();
            let used = pod.claims().filter_map(|name| claims.named(&pod.metadata.namespace, &name));
            used.filter(|claim| claim.metadata.is_being_deleted()).map(|claim| claim.key()).collect()
        })
        .plans_with(reconcile_claim)
}

async fn reconcile_claim(context: Context, request: Request) -> Result<Plan, ApiError> {
    let Some(claim) = context.caches.of::<PersistentVolumeClaim>().get(&request.key) else {
        return Ok(Plan::default());
    };
    let pods = context.caches.of::<Pod>().by("claim", &request.key.to_string());
    let mut in_use = pods.iter().any(|pod| uses(pod, &claim));
    if !in_use && claim.metadata.is_being_deleted() && claim.metadata.has_finalizer(CLAIM) {
        // The cache may not have seen a pod that has just got its node, and what goes now is gone for good.
        let list = context.client.list::<Pod>(&request.key.namespace, &ListOptions::default()).await?;
        in_use = list.items.iter().any(|pod| uses(pod, &claim));
    }
    Ok(plan(&claim, CLAIM, in_use))
}

/// Whether a pod may have the claim mounted. Without a node it has not, and with the claim on its way out it never will.
fn uses(pod: &Pod, claim: &PersistentVolumeClaim) -> bool {
    let meta = &pod.metadata;
    let is_shut_down = meta.is_being_deleted() && meta.deletion_grace_period_seconds == Some(0);
    let name = &claim.metadata.name;
    let mounted = pod.spec.volumes.iter().any(|volume| match &volume.persistent_volume_claim {
        Some(source) => source.claim_name == *name,
        None => {
            let made_for_it = volume.ephemeral.is_some() && claim.metadata.is_controlled_by(&meta.uid);
            made_for_it && !is_shut_down && format!("{}-{}", meta.name, volume.name) == *name
        }
    });
    !pod.spec.node_name.is_empty() && mounted
}

/// Volumes are in use while they are bound, and while they are being bound: that is said in their spec first.
fn is_bound(volume: &PersistentVolume) -> bool {
    let is_claimed = volume.spec.claim_ref.as_ref().is_some_and(|claimant| !claimant.uid.is_empty());
    match volume.status.phase.as_str() {
        "Bound" => true,
        "Available" | "Pending" | "" => is_claimed,
        _ => false,
    }
}

pub(crate) fn volumes() -> Controller {
    Controller::new("pv-protection-controller").primary::<PersistentVolume>().plans(|caches, request| {
        let volume = caches.of::<PersistentVolume>().get(&request.key);
        volume.map(|volume| plan(&volume, VOLUME, is_bound(&volume))).unwrap_or_default()
    })
}

/// Classes of attributes are in use by the volumes and claims that name them.
pub(crate) fn attributes_classes() -> Controller {
    Controller::new("volumeattributesclass-protection-controller")
        .primary::<VolumeAttributesClass>()
        .watches::<PersistentVolume>(|volume, _| cluster_keys(volume.attributes_classes()))
        .watches::<PersistentVolumeClaim>(|claim, _| cluster_keys(claim.attributes_classes()))
        .plans(plan_attributes_class)
}

fn cluster_keys(names: Vec<String>) -> Vec<Key> {
    names.into_iter().map(Key::cluster).collect()
}

fn plan_attributes_class(caches: &Caches, request: &Request) -> Plan {
    let Some(class) = caches.of::<VolumeAttributesClass>().get(&request.key) else { return Plan::default() };
    let name = &request.key.name;
    let in_use = !caches.of::<PersistentVolume>().by("attributes", name).is_empty()
        || !caches.of::<PersistentVolumeClaim>().by("attributes", name).is_empty();
    plan(&class, ATTRIBUTES_CLASS, in_use)
}

/// Groups are in use by their pods that have not ended.
pub(crate) fn pod_groups() -> Controller {
    Controller::new("podgroup-protection-controller")
        .primary::<PodGroup>()
        .watches::<Pod>(|pod, _| pod.group().into_iter().collect())
        .plans(plan_pod_group)
}

fn plan_pod_group(caches: &Caches, request: &Request) -> Plan {
    let Some(group) = caches.of::<PodGroup>().get(&request.key) else { return Plan::default() };
    let pods = caches.of::<Pod>().by("group", &request.key.to_string());
    plan(&group, POD_GROUP, pods.iter().any(|pod| !pod.is_finished()))
}

fn plan<K: Kind>(object: &Object<K>, finalizer: &str, in_use: bool) -> Plan {
    let mut plan = Plan::default();
    let meta = object.meta();
    let mut finalizers = meta.finalizers.to_vec();
    match (meta.is_being_deleted(), meta.has_finalizer(finalizer)) {
        (false, false) => finalizers.push(finalizer.to_owned()),
        (true, true) if !in_use => finalizers.retain(|name| name != finalizer),
        _ => return plan,
    }
    let mut edited: Value = object.json();
    edited.object_or_new("metadata").set("finalizers", json!(finalizers));
    plan.update(object, edited);
    plan
}

#[cfg(test)]
mod tests {
    use super::*;

    fn claim(deleted: bool, finalizers: &[&str]) -> Object<PersistentVolumeClaim> {
        let mut claim = json!({
            "metadata": {
                "name": "p-data", "namespace": "default", "finalizers": finalizers,
                "ownerReferences": [{ "kind": "Pod", "apiVersion": "v1", "name": "p", "uid": "p", "controller": true }],
            },
        });
        if deleted {
            claim["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
        }
        Object::of(&claim)
    }

    #[test]
    fn the_finalizer_is_there_until_the_object_is_deleted_and_unused() {
        let other = "example.com/hold";
        for (deleted, finalizers, in_use, expected) in [
            (false, vec![], false, Some(json!([CLAIM]))),
            (false, vec![other], true, Some(json!([other, CLAIM]))),
            (false, vec![CLAIM], false, None),
            (true, vec![CLAIM], true, None),
            (true, vec![other, CLAIM], false, Some(json!([other]))),
            (true, vec![other], false, None),
        ] {
            let plan = plan(&claim(deleted, &finalizers), CLAIM, in_use);
            let written = plan.writes.first().map(|write| match write {
                runtime::Write::Update { object, .. } => object["metadata"]["finalizers"].clone(),
                other => panic!("{other:?}"),
            });
            assert_eq!(written, expected, "{deleted} {finalizers:?} {in_use}");
        }
    }

    #[test]
    fn a_volume_is_in_use_from_when_it_is_promised_until_its_claim_is_gone() {
        for (phase, claimant, expected) in [
            ("Available", None, false),
            ("Available", Some(""), false),
            ("Available", Some("uid"), true),
            ("Pending", Some("uid"), true),
            ("Bound", Some("uid"), true),
            ("Released", Some("uid"), false),
            ("Failed", Some("uid"), false),
        ] {
            let claim_ref = claimant.map(|uid| json!({ "namespace": "default", "name": "c", "uid": uid }));
            let volume = json!({ "spec": { "claimRef": claim_ref }, "status": { "phase": phase } });
            assert_eq!(is_bound(&Object::<PersistentVolume>::of(&volume)), expected, "{phase} {claimant:?}");
        }
    }

    #[test]
    fn a_claim_is_used_by_pods_that_have_a_node() {
        let pod = |node: &str, uid: &str, volume: Value, grace: Option<i64>| {
            let mut pod = json!({
                "metadata": { "name": "p", "namespace": "default", "uid": uid },
                "spec": { "nodeName": node, "volumes": [volume] },
            });
            if let Some(grace) = grace {
                pod["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
                pod["metadata"]["deletionGracePeriodSeconds"] = json!(grace);
            }
            Object::<Pod>::of(&pod)
        };
        let named = |name: &str| json!({ "name": "data", "persistentVolumeClaim": { "claimName": name } });
        let made = json!({ "name": "data", "ephemeral": {} });
        for (what, pod, expected) in [
            ("it has no node", pod("", "p", named("p-data"), None), false),
            ("it has", pod("n", "p", named("p-data"), None), true),
            ("it is going and may still have it", pod("n", "p", named("p-data"), Some(0)), true),
            ("it has another", pod("n", "p", named("other"), None), false),
            ("the claim is made for it", pod("n", "p", made.clone(), None), true),
            ("the claim was made for one of that name", pod("n", "q", made.clone(), None), false),
            ("it has been shut down", pod("n", "p", made.clone(), Some(0)), false),
            ("it is being shut down", pod("n", "p", made, Some(30)), true),
        ] {
            assert_eq!(uses(&pod, &claim(true, &[CLAIM])), expected, "{what}");
        }
    }

    #[test]
    fn a_class_of_attributes_is_used_by_whatever_names_it() {
        let mut caches = Caches::default()
            .with::<VolumeAttributesClass>()
            .with::<PersistentVolume>()
            .with::<PersistentVolumeClaim>();
        let class = json!({ "metadata": {
            "name": "gold", "deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": [ATTRIBUTES_CLASS],
        } });
        caches.put(Object::<VolumeAttributesClass>::of(&class));
        let request = Request { key: Key::cluster("gold"), now: kinds::Time(0), failure: None };
        assert_eq!(plan_attributes_class(&caches, &request).writes.len(), 1);
        let status = json!({ "currentVolumeAttributesClassName": "gold" });
        let claim = json!({ "metadata": { "name": "c", "namespace": "default" }, "status": status });
        caches.put(Object::<PersistentVolumeClaim>::of(&claim));
        assert!(plan_attributes_class(&caches, &request).is_empty());
    }

    #[test]
    fn a_group_is_used_by_its_pods_until_they_end() {
        let group = json!({ "metadata": {
            "name": "g", "namespace": "default", "deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": [POD_GROUP],
        } });
        let pod = |group: &str, phase: &str| {
            json!({
                "metadata": { "name": "p", "namespace": "default" },
                "spec": { "schedulingGroup": { "podGroupName": group } }, "status": { "phase": phase },
            })
        };
        let request = Request { key: Key::new("default", "g"), now: kinds::Time(0), failure: None };
        for (pod, is_free) in [
            (pod("g", "Running"), false),
            (pod("g", "Pending"), false),
            (pod("g", "Failed"), true),
            (pod("h", "Running"), true),
        ] {
            let mut caches = Caches::default().with::<PodGroup>().with::<Pod>();
            caches.put(Object::<PodGroup>::of(&group));
            caches.put(Object::<Pod>::of(&pod));
            assert_eq!(!plan_pod_group(&caches, &request).is_empty(), is_free, "{pod}");
        }
    }
}
