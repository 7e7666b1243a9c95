//! Ephemeral volumes: a pod that brings the template of a claim gets a claim of its own, and that goes with the pod.

use kinds::{Kind, Object, PersistentVolumeClaim, Pod};
use object::{Edit, Value, View, json};
use runtime::{Caches, Controller, Note, Plan, Request};
use std::sync::Arc;

pub(crate) fn controller() -> Controller {
    Controller::new("ephemeral-volume-controller")
        .reports_as("ephemeral_volume")
        .watches::<Pod>(|pod, _| Vec::from_iter(brings_templates(pod).then(|| pod.key())))
        .watches::<PersistentVolumeClaim>(|claim, caches| {
            let pods = caches.of::<Pod>().by("claim", &claim.key().to_string());
            pods.iter().filter(|pod| brings_templates(pod)).map(|pod| pod.key()).collect()
        })
        .plans(|caches, request| observe(caches, request).map(|observed| plan(&observed)).unwrap_or_default())
}

fn brings_templates(pod: &Pod) -> bool {
    pod.spec.volumes.iter().any(|volume| volume.ephemeral.is_some())
}

type Claim = Arc<Object<PersistentVolumeClaim>>;

struct Observed {
    pod: Arc<Object<Pod>>,
    /// For each volume with a template: its name, the template, and whatever has the name of its claim.
    volumes: Vec<(String, Value, Option<Claim>)>,
}

fn observe(caches: &Caches, request: &Request) -> Option<Observed> {
    let pod = caches.of::<Pod>().get(&request.key).filter(|pod| !pod.metadata.is_being_deleted())?;
    let claims = caches.of::<PersistentVolumeClaim>();
    let with_template = pod.spec.volumes.iter().filter_map(|volume| Some((volume, volume.ephemeral.as_deref()?)));
    let volumes = with_template.map(|(volume, source)| {
        let claim = claims.named(&pod.metadata.namespace, &claim_name(&pod, &volume.name));
        (volume.name.clone(), source.at("volumeClaimTemplate").clone(), claim)
    });
    Some(Observed { volumes: volumes.collect(), pod })
}

fn claim_name(pod: &Pod, volume: &str) -> String {
    format!("{}-{volume}", pod.metadata.name)
}

fn plan(observed: &Observed) -> Plan {
    let pod = &observed.pod;
    let mut plan = Plan::default();
    for (volume, template, claim) in &observed.volumes {
        let name = claim_name(pod, volume);
        match claim {
            Some(claim) if claim.metadata.is_controlled_by(&pod.metadata.uid) => {}
            Some(claim) => {
                let message = format!(
                    "ephemeral volume {volume}: PVC {} was not created for pod {} (pod is not owner)",
                    claim.key(),
                    pod.key()
                );
                plan.event(Note::warning(pod, "FailedBinding", message));
            }
            None => {
                let failed = format!("ephemeral volume {volume}: create PVC {name}: {{error}}");
                plan.create::<PersistentVolumeClaim>(claim_from(pod, &name, template)).on_failure(Note::warning(
                    pod,
                    "FailedBinding",
                    failed,
                ));
            }
        }
    }
    plan
}

fn claim_from(pod: &Object<Pod>, name: &str, template: &Value) -> Value {
    let meta = pod.meta();
    let mut metadata = json!({
        "namespace": meta.namespace, "name": name, "ownerReferences": [meta.controller_reference(&Pod::ID)],
    });
    for field in ["labels", "annotations"] {
        let value = template.at("metadata").at(field);
        if !value.is_null() {
            metadata.set(field, value.clone());
        }
    }
    json!({ "metadata": metadata, "spec": template.at("spec") })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::World;

    fn planned(caches: &Caches, request: &Request) -> Plan {
        observe(caches, request).map(|observed| plan(&observed)).unwrap_or_default()
    }

    fn pod() -> Value {
        let template = json!({ "metadata": { "labels": { "a": "b" } }, "spec": { "accessModes": ["ReadWriteOnce"] } });
        json!({
            "metadata": { "name": "p" },
            "spec": { "volumes": [
                { "name": "plain" }, { "name": "data", "ephemeral": { "volumeClaimTemplate": template } },
            ] },
        })
    }

    #[test]
    fn a_template_becomes_a_claim_that_the_pod_owns() {
        let mut world = World::new();
        world.create::<Pod>(pod());
        world.settle("p", &planned);
        assert_eq!(world.writes, ["create persistentvolumeclaims p-data"]);
        let claim = world.get::<PersistentVolumeClaim>("p-data");
        assert_eq!(claim["metadata"]["labels"], json!({ "a": "b" }));
        assert_eq!(claim["metadata"]["ownerReferences"][0]["kind"], "Pod");
        assert_eq!(claim["spec"]["accessModes"], json!(["ReadWriteOnce"]));
    }

    #[test]
    fn a_claim_of_somebody_else_is_not_taken() {
        let mut world = World::new();
        world.create::<Pod>(pod());
        world.create::<PersistentVolumeClaim>(json!({ "metadata": { "name": "p-data" } }));
        world.settle("p", &planned);
        let told = "Warning FailedBinding ephemeral volume data: PVC default/p-data was not created for pod default/p \
                    (pod is not owner)";
        assert_eq!((world.writes.len(), world.events.as_slice()), (0, &[told.to_owned()][..]));
    }

    #[test]
    fn a_pod_that_is_going_gets_nothing() {
        let mut world = World::new();
        let mut pod = pod();
        pod["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
        world.create::<Pod>(pod);
        world.settle("p", &planned);
        assert!(world.writes.is_empty());
    }
}
