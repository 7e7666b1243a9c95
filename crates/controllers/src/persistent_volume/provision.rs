//! Makes volumes for claims: here as directories of a node, or by asking a provisioner outside.
//!
//! A class may say with its parameter `path` below which directory of the node its volumes are.

use super::claim::{Observed, reference};
use super::{BOUND_BY_CONTROLLER, IN_TREE, LOCAL_PATH, PROVISIONED_BY, SELECTED_NODE, YES};
use kinds::{Node, Object, PersistentVolume, PersistentVolumeClaim, StorageClass, volume_mode};
use object::{Edit, Value, View, json};
use runtime::{Note, Plan};

/// Where the directories are unless the class says otherwise.
const BASE: &str = "/var/lib/setpoint/local-path";
/// By these a provisioner outside learns that a claim is waiting for it; older ones know only the first.
const REQUESTS: [&str; 2] =
    ["volume.beta.kubernetes.io/storage-provisioner", "volume.kubernetes.io/storage-provisioner"];
const HOSTNAME: &str = "kubernetes.io/hostname";

pub(super) fn plan(plan: &mut Plan, observed: &Observed) {
    let Observed { claim, class, .. } = observed;
    let Some(class) = class else {
        let message = format!("storageclass.storage.k8s.io {:?} not found", claim.class());
        plan.event(Note::warning(claim, "ProvisioningFailed", message));
        return;
    };
    let provisioner = &class.provisioner;
    if provisioner.starts_with(IN_TREE) {
        let message = format!("no volume plugin matched name: {provisioner}");
        plan.event(Note::warning(claim, "ProvisioningFailed", message));
        return;
    }
    let mut object = claim.json();
    let annotations = object.object_or_new("metadata").object_or_new("annotations");
    for request in REQUESTS {
        // The class may have been made anew, with another provisioner.
        annotations.set(request, provisioner.as_str());
    }
    plan.update(claim, object);
    if !plan.writes.is_empty() {
        return;
    }
    if provisioner != LOCAL_PATH {
        let message = format!(
            "Waiting for a volume to be created either by the external provisioner '{provisioner}' or manually by the \
             system administrator. If volume creation is delayed, please verify that the provisioner is running and \
             correctly registered."
        );
        plan.event(Note::normal(claim, "ExternalProvisioning", message));
        return;
    }
    match directory(observed, class) {
        Ok(volume) => {
            let name = volume.at("metadata").text("name");
            let success = format!("Successfully provisioned volume {name} using {LOCAL_PATH}");
            let failure = format!("Error creating provisioned PV object for claim {}: {{error}}.", claim.key());
            plan.create::<PersistentVolume>(volume)
                .on_success(Note::normal(claim, "ProvisioningSucceeded", success))
                .on_failure(Note::warning(claim, "ProvisioningFailed", failure));
        }
        Err(why) => refuse(plan, claim, class, &why),
    }
}

/// Says why there can be no volume, and lets the scheduler choose again.
fn refuse(plan: &mut Plan, claim: &Object<PersistentVolumeClaim>, class: &StorageClass, why: &str) {
    let message = format!("Failed to provision volume with StorageClass {:?}: {why}", class.metadata.name);
    plan.event(Note::warning(claim, "ProvisioningFailed", message));
    let mut object = claim.json();
    object.object_or_new("metadata").object_or_new("annotations").remove(SELECTED_NODE);
    plan.update(claim, object);
}

/// A volume that is a directory of the node chosen, which makes it when it is first used.
fn directory(observed: &Observed, class: &StorageClass) -> Result<Value, String> {
    let Observed { claim, node, .. } = observed;
    if claim.spec.data_source.is_some() {
        return Err("a claim with a data source needs a CSI driver".to_owned());
    }
    if volume_mode(claim.spec.volume_mode.as_ref()) != "Filesystem" {
        return Err("a directory cannot be a block device".to_owned());
    }
    let node = match (node, claim.metadata.annotation(SELECTED_NODE)) {
        (Some(node), _) => node,
        (None, "") => {
            return Err("no node was specified: the class needs volumeBindingMode WaitForFirstConsumer".to_owned());
        }
        (None, name) => return Err(format!("node {name:?} not found")),
    };
    let meta = &claim.metadata;
    let name = format!("pvc-{}", meta.uid);
    let base = class.parameters.get("path").map_or(BASE, |path| path.trim_end_matches('/'));
    let mut spec = json!({
        "capacity": { "storage": claim.requested().to_string() },
        "accessModes": claim.spec.access_modes,
        "volumeMode": "Filesystem",
        "persistentVolumeReclaimPolicy": class.reclaim_policy.as_deref().unwrap_or("Delete"),
        "storageClassName": claim.class(),
        "claimRef": reference(claim),
        "hostPath": { "path": format!("{base}/{name}_{}_{}", meta.namespace, meta.name), "type": "DirectoryOrCreate" },
        "nodeAffinity": { "required": { "nodeSelectorTerms": [{
            "matchExpressions": [{ "key": HOSTNAME, "operator": "In", "values": [hostname(node)] }],
        }] } },
    });
    if !class.mount_options.is_empty() {
        spec.set("mountOptions", json!(class.mount_options));
    }
    let annotations = json!({ BOUND_BY_CONTROLLER: YES, PROVISIONED_BY: LOCAL_PATH });
    Ok(json!({ "metadata": { "name": name, "annotations": annotations }, "spec": spec }))
}

fn hostname(node: &Node) -> &str {
    match node.metadata.label(HOSTNAME) {
        "" => &node.metadata.name,
        label => label,
    }
}
