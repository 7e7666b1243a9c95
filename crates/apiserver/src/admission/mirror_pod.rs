//! Mirror pods: how the API shows what a node runs by itself. They have no account and need nothing from the API.

use object::{Value, View};

const ANNOTATION: &str = "kubernetes.io/config.mirror";
const CONTAINERS: [&str; 3] = ["initContainers", "containers", "ephemeralContainers"];

pub(super) fn is_mirror(pod: &Value) -> bool {
    pod.at("metadata").at("annotations").has(ANNOTATION)
}

/// What a mirror pod has that it may not have.
pub(super) fn mistake(pod: &Value) -> Option<&'static str> {
    let spec = pod.at("spec");
    if !spec.text("serviceAccountName").is_empty() {
        return Some("a mirror pod may not reference service accounts");
    }
    if references_secret(spec) {
        return Some("a mirror pod may not reference secrets");
    }
    let sources = spec.items("volumes").iter().flat_map(|volume| volume.at("projected").items("sources"));
    let token = sources.into_iter().any(|source| source.has("serviceAccountToken"));
    token.then_some("a mirror pod may not use ServiceAccountToken volume projections")
}

/// Volume sources that name a secret in a field of this name.
const SECRET_FIELDS: [&str; 4] = ["secretRef", "nodePublishSecretRef", "secretName", "secret"];

fn references_secret(spec: &Value) -> bool {
    if !spec.items("imagePullSecrets").is_empty() {
        return true;
    }
    let in_containers = CONTAINERS.iter().flat_map(|list| spec.items(list)).any(|container| {
        container.items("env").iter().any(|variable| variable.at("valueFrom").has("secretKeyRef"))
            || container.items("envFrom").iter().any(|source| source.has("secretRef"))
    });
    in_containers || spec.items("volumes").iter().any(names_secret)
}

/// Whether a volume, or any source within it, names a secret.
fn names_secret(volume: &Value) -> bool {
    let Some(fields) = volume.as_object() else { return false };
    let sources = volume.at("projected").items("sources");
    fields.iter().any(|(name, source)| {
        !source.is_null() && (name == "secret" || SECRET_FIELDS.iter().any(|field| source.has(field)))
    }) || sources.iter().any(|source| source.has("secret"))
}

/// Why a pod is not one that the node runs by itself.
pub(super) fn not_own(pod: &Value, node: &str) -> Option<String> {
    let metadata = pod.at("metadata");
    if !metadata.at("annotations").has(ANNOTATION) {
        return Some(format!("pod does not have {ANNOTATION:?} annotation, node {node:?} can only create mirror pods"));
    }
    if pod.at("spec").text("nodeName") != node {
        return Some(format!("node {node:?} can only create pods with spec.nodeName set to itself"));
    }
    let only = |what: &str| Some(format!("node {node:?} can only create pods with {what} set to itself"));
    match metadata.items("ownerReferences") {
        [owner] if [owner.text("apiVersion"), owner.text("kind"), owner.text("name")] != ["v1", "Node", node] => {
            only("an owner reference")
        }
        [owner] if !owner.flag("controller") => only("a controller owner reference"),
        [owner] if owner.flag("blockOwnerDeletion") => {
            Some(format!("node {node:?} must not set blockOwnerDeletion on an owner reference"))
        }
        [_] => None,
        [] => only("an owner reference"),
        _ => only("a single owner reference"),
    }
}

/// Volumes that are made from other objects than secrets and config maps.
const REFERRING: [(&str, &str); 5] = [
    ("csi", "csidrivers (via CSI volumes)"),
    ("glusterfs", "endpoints (via glusterFS volumes)"),
    ("persistentVolumeClaim", "persistentvolumeclaims"),
    ("ephemeral", "persistentvolumeclaims (via ephemeral volumes)"),
    ("azureFile", "secrets (via azureFile volumes)"),
];
const REFERRING_PROJECTIONS: [(&str, &str); 3] = [
    ("serviceAccountToken", "serviceaccounts (via projected volumes)"),
    ("clusterTrustBundle", "clustertrustbundles"),
    ("podCertificate", "podcertificates"),
];

/// What a pod needs from the API, which a pod that runs without it cannot have.
pub(super) fn api_reference(spec: &Value) -> Option<&'static str> {
    if !spec.text("serviceAccountName").is_empty() {
        return Some("serviceaccounts");
    }
    if references_secret(spec) {
        return Some("secrets");
    }
    let volumes = spec.items("volumes");
    let projections = || volumes.iter().flat_map(|volume| volume.at("projected").items("sources"));
    let in_containers = CONTAINERS.iter().flat_map(|list| spec.items(list)).any(|container| {
        container.items("env").iter().any(|variable| variable.at("valueFrom").has("configMapKeyRef"))
            || container.items("envFrom").iter().any(|source| source.has("configMapRef"))
    });
    let in_volumes = volumes.iter().any(|volume| volume.has("configMap"));
    if in_containers || in_volumes || projections().any(|source| source.has("configMap")) {
        return Some("configmaps");
    }
    if !spec.items("resourceClaims").is_empty() {
        return Some("resourceclaims");
    }
    let named = |value: &Value, table: &[(&str, &'static str)]| {
        table.iter().find(|(field, _)| value.has(field)).map(|(_, what)| *what)
    };
    let mut in_volumes = volumes.iter().filter_map(|volume| named(volume, &REFERRING));
    in_volumes.next().or_else(|| projections().find_map(|source| named(source, &REFERRING_PROJECTIONS)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use object::json;

    #[test]
    fn a_mirror_pod_has_nothing_of_an_account() {
        let token = json!({ "projected": { "sources": [{ "serviceAccountToken": { "path": "x" } }] } });
        for (spec, found) in [
            (json!({ "volumes": [{ "name": "a", "emptyDir": {} }] }), None),
            (json!({ "serviceAccountName": "a" }), Some("a mirror pod may not reference service accounts")),
            (
                json!({ "volumes": [{ "secret": { "secretName": "s" } }] }),
                Some("a mirror pod may not reference secrets"),
            ),
            (
                json!({ "volumes": [{ "csi": { "nodePublishSecretRef": { "name": "s" } } }] }),
                Some("a mirror pod may not reference secrets"),
            ),
            (
                json!({ "containers": [{ "envFrom": [{ "secretRef": { "name": "s" } }] }] }),
                Some("a mirror pod may not reference secrets"),
            ),
            (json!({ "volumes": [token] }), Some("a mirror pod may not use ServiceAccountToken volume projections")),
        ] {
            assert_eq!(mistake(&json!({ "spec": spec })), found, "{spec}");
        }
    }

    #[test]
    fn a_mirror_pod_belongs_to_its_node() {
        let owner = json!({ "apiVersion": "v1", "kind": "Node", "name": "n", "uid": "u", "controller": true });
        let pod = |node: &str, owners: Value| json!({ "metadata": { "annotations": { ANNOTATION: "x" }, "ownerReferences": owners }, "spec": { "nodeName": node } });
        let with = |field: &str, value: Value| {
            let mut owner = owner.clone();
            owner[field] = value;
            json!([owner])
        };
        for (pod, cause) in [
            (pod("n", json!([owner])), None),
            (
                json!({}),
                Some(
                    "pod does not have \"kubernetes.io/config.mirror\" annotation, node \"n\" can only create mirror pods",
                ),
            ),
            (pod("m", json!([owner])), Some("node \"n\" can only create pods with spec.nodeName set to itself")),
            (pod("n", json!([])), Some("node \"n\" can only create pods with an owner reference set to itself")),
            (
                pod("n", json!([owner, owner])),
                Some("node \"n\" can only create pods with a single owner reference set to itself"),
            ),
            (
                pod("n", with("kind", json!("Pod"))),
                Some("node \"n\" can only create pods with an owner reference set to itself"),
            ),
            (
                pod("n", with("controller", json!(false))),
                Some("node \"n\" can only create pods with a controller owner reference set to itself"),
            ),
            (
                pod("n", with("blockOwnerDeletion", json!(true))),
                Some("node \"n\" must not set blockOwnerDeletion on an owner reference"),
            ),
        ] {
            assert_eq!(not_own(&pod, "n").as_deref(), cause, "{pod}");
        }
    }

    #[test]
    fn a_mirror_pod_needs_nothing_from_the_api() {
        for (spec, what) in [
            (json!({ "volumes": [{ "hostPath": {} }, { "projected": { "sources": [{ "downwardAPI": {} }] } }] }), None),
            (json!({ "serviceAccountName": "a" }), Some("serviceaccounts")),
            (json!({ "containers": [{ "envFrom": [{ "configMapRef": {} }] }] }), Some("configmaps")),
            (json!({ "resourceClaims": [{}] }), Some("resourceclaims")),
            (json!({ "volumes": [{ "persistentVolumeClaim": {} }] }), Some("persistentvolumeclaims")),
            (
                json!({ "volumes": [{ "projected": { "sources": [{ "clusterTrustBundle": {} }] } }] }),
                Some("clustertrustbundles"),
            ),
        ] {
            assert_eq!(api_reference(&spec), what, "{spec}");
        }
    }
}
