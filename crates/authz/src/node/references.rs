//! What pods and volumes refer to by name.

use super::graph::Kind;
use object::{Value, View};
use std::collections::BTreeSet;

/// An object in the namespace of whoever refers to it.
pub(super) type Reference = (Kind, String);

/// The node of a pod and what the pod refers to.
///
/// Mirror pods are made by nodes and so give access to nothing: else a node could ask for what it likes.
pub(super) fn of_pod(pod: &Value) -> (String, Vec<Reference>) {
    let spec = pod.at("spec");
    let mut references = Vec::new();
    if !pod.path(&["metadata", "annotations"]).has("kubernetes.io/config.mirror") {
        let mut add = |kind: Kind, name: &str| {
            if !name.is_empty() {
                references.push((kind, name.to_owned()));
            }
        };
        add(Kind::ServiceAccount, spec.text("serviceAccountName"));
        spec.items("imagePullSecrets").iter().for_each(|secret| add(Kind::Secret, secret.text("name")));
        for list in ["initContainers", "containers", "ephemeralContainers"] {
            spec.items(list).iter().for_each(|container| of_container(container, &mut add));
        }
        let pod_name = pod.at("metadata").text("name");
        spec.items("volumes").iter().for_each(|volume| of_pod_volume(volume, pod_name, &mut add));
        of_resource_claims(pod, &mut add);
    }
    (spec.text("nodeName").to_owned(), references)
}

fn of_container(container: &Value, add: &mut impl FnMut(Kind, &str)) {
    for source in container.items("envFrom") {
        add(Kind::Secret, source.at("secretRef").text("name"));
        add(Kind::ConfigMap, source.at("configMapRef").text("name"));
    }
    for variable in container.items("env") {
        let source = variable.at("valueFrom");
        add(Kind::Secret, source.at("secretKeyRef").text("name"));
        add(Kind::ConfigMap, source.at("configMapKeyRef").text("name"));
    }
}

/// Kinds of volumes with a `secretRef`.
const WITH_SECRET: [&str; 7] = ["cephfs", "cinder", "flexVolume", "rbd", "scaleIO", "iscsi", "storageos"];

fn of_pod_volume(volume: &Value, pod_name: &str, add: &mut impl FnMut(Kind, &str)) {
    add(Kind::ConfigMap, volume.at("configMap").text("name"));
    add(Kind::Secret, volume.at("secret").text("secretName"));
    add(Kind::Secret, volume.at("azureFile").text("secretName"));
    add(Kind::Secret, volume.path(&["csi", "nodePublishSecretRef"]).text("name"));
    for kind in WITH_SECRET {
        add(Kind::Secret, volume.at(kind).at("secretRef").text("name"));
    }
    for source in volume.at("projected").items("sources") {
        add(Kind::Secret, source.at("secret").text("name"));
        add(Kind::ConfigMap, source.at("configMap").text("name"));
    }
    add(Kind::Claim, volume.at("persistentVolumeClaim").text("claimName"));
    if volume.has("ephemeral") {
        add(Kind::Claim, &format!("{pod_name}-{}", volume.text("name")));
    }
}

/// Claims to devices: named by the pod, or made for it and named in its status.
fn of_resource_claims(pod: &Value, add: &mut impl FnMut(Kind, &str)) {
    let status = pod.at("status");
    for claim in pod.at("spec").items("resourceClaims") {
        add(Kind::ResourceClaim, claim.text("resourceClaimName"));
        if claim.has("resourceClaimName") || !claim.has("resourceClaimTemplateName") {
            continue;
        }
        let made = status.items("resourceClaimStatuses").iter().find(|made| made.text("name") == claim.text("name"));
        made.into_iter().for_each(|made| add(Kind::ResourceClaim, made.text("resourceClaimName")));
    }
    add(Kind::ResourceClaim, status.at("extendedResourceClaimStatus").text("resourceClaimName"));
}

/// The namespaces and names of the secrets that a volume needs on a node.
pub(super) fn of_volume(volume: &Value) -> BTreeSet<(String, String)> {
    let spec = volume.at("spec");
    let claim_namespace = spec.at("claimRef").text("namespace");
    let mut secrets = BTreeSet::new();
    let mut add = |namespace: &str, name: &str, default: &str| {
        if !name.is_empty() {
            let namespace = if namespace.is_empty() { default } else { namespace };
            secrets.insert((namespace.to_owned(), name.to_owned()));
        }
    };
    let azure = spec.at("azureFile");
    add(azure.text("secretNamespace"), azure.text("secretName"), claim_namespace);
    for kind in WITH_SECRET {
        let secret = spec.at(kind).at("secretRef");
        // Some kinds may leave out the namespace and mean that of the claim.
        let default = if matches!(kind, "cinder" | "storageos") { "" } else { claim_namespace };
        add(secret.text("namespace"), secret.text("name"), default);
    }
    // Secrets for the controller of a driver are not for nodes.
    for field in ["nodePublishSecretRef", "nodeStageSecretRef", "nodeExpandSecretRef"] {
        let secret = spec.at("csi").at(field);
        add(secret.text("namespace"), secret.text("name"), "");
    }
    secrets
}
