//! NodeRestriction: a node changes only itself and what belongs to it, whatever roles allow nodes in general.

use super::certificates::{CLIENT_SIGNER, REQUESTS, subject};
use super::{Operation, Review, mirror_pod};
use object::{ApiError, Edit, FieldName, Value, View};
use std::collections::BTreeSet;

const USER_PREFIX: &str = "system:node:";
const LEASES: &str = "kube-node-lease";
/// Labels of the project that a node may give itself.
const OWN_LABELS: [&str; 11] = [
    "kubernetes.io/hostname",
    "topology.kubernetes.io/zone",
    "topology.kubernetes.io/region",
    "failure-domain.beta.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/region",
    "beta.kubernetes.io/instance-type",
    "node.kubernetes.io/instance-type",
    "kubernetes.io/os",
    "kubernetes.io/arch",
    "beta.kubernetes.io/os",
    "beta.kubernetes.io/arch",
];
const OWN_LABEL_DOMAINS: [&str; 2] = ["kubelet.kubernetes.io", "node.kubernetes.io"];
const RESTRICTED_DOMAIN: &str = "node-restriction.kubernetes.io";
const PROJECT_DOMAINS: [&str; 2] = ["kubernetes.io", "k8s.io"];

pub(super) fn admit(review: &mut Review<'_>) -> Result<(), ApiError> {
    let user = &review.ctx.user;
    let Some(node) = authz::node::name(user) else { return Ok(()) };
    if node.is_empty() {
        return Err(review.forbid(&format!("could not determine node from user {:?}", user.name)));
    }
    let refusal = match (review.table(), review.subresource()) {
        ("pods", "") => return admit_pod(review, node),
        ("pods", "status") => pod_status(review, node),
        ("pods", "eviction") => {
            let elsewhere = review.object.at("spec").text("nodeName") != node;
            elsewhere.then(|| format!("node {node} can only evict pods with spec.nodeName set to itself"))
        }
        ("pods", other) => {
            Some(format!("unexpected pod subresource {other:?}, only 'status' and 'eviction' are allowed"))
        }
        ("nodes", _) => own_node(review, node),
        ("persistentvolumeclaims", "status") => claim_status(review, node),
        ("persistentvolumeclaims", _) => Some("may only update PVC status".to_owned()),
        ("serviceaccounts", "token") if review.operation == Operation::Create => return admit_token(review, node),
        ("leases.coordination.k8s.io", _) if review.namespace() != LEASES => {
            Some(format!("can only access leases in the {LEASES:?} system namespace"))
        }
        ("leases.coordination.k8s.io", _) => same_name(review, node, "node lease"),
        ("csinodes.storage.k8s.io", _) => same_name(review, node, "CSINode"),
        ("resourceslices.resource.k8s.io", _) => own_slice(review, node),
        (REQUESTS, "") if review.operation == Operation::Create => own_certificate(review.object.at("spec"), node),
        _ => None,
    };
    refusal.map_or(Ok(()), |cause| Err(review.forbid(&cause)))
}

fn same_name(review: &Review<'_>, node: &str, what: &str) -> Option<String> {
    (review.name() != node).then(|| format!("can only access {what} with the same name as the requesting node"))
}

/// As messages call an operation.
fn word(operation: Operation) -> &'static str {
    match operation {
        Operation::Create => "CREATE",
        Operation::Update => "UPDATE",
        Operation::Delete => "DELETE",
    }
}

fn admit_pod(review: &Review<'_>, node: &str) -> Result<(), ApiError> {
    let refusal = match review.operation {
        Operation::Create => return admit_mirror(review, node),
        Operation::Delete => (review.object.at("spec").text("nodeName") != node)
            .then(|| format!("node {node:?} can only delete pods with spec.nodeName set to itself")),
        Operation::Update => {
            Some(format!("unexpected operation \"UPDATE\", node {node:?} can only create and delete mirror pods"))
        }
    };
    refusal.map_or(Ok(()), |cause| Err(review.forbid(&cause)))
}

/// A node shows the pods that it runs by itself, as its own.
fn admit_mirror(review: &Review<'_>, node: &str) -> Result<(), ApiError> {
    if let Some(cause) = mirror_pod::not_own(review.object, node) {
        return Err(review.forbid(&cause));
    }
    let Some(stored) = review.find(&format!("nodes/{node}")) else {
        return Err(ApiError::not_found("", "nodes", node));
    };
    let (owner, stored) = (&review.object["metadata"]["ownerReferences"][0], stored.decode());
    let (claimed, uid) = (owner.text("uid"), stored.at("metadata").text("uid"));
    if claimed != uid {
        return Err(review.forbid(&format!("node {node} UID mismatch: expected {claimed} got {uid}")));
    }
    match mirror_pod::api_reference(review.object.at("spec")) {
        Some(what) => Err(review.forbid(&format!("node {node:?} can not create pods that reference {what}"))),
        None => Ok(()),
    }
}

fn pod_status(review: &Review<'_>, node: &str) -> Option<String> {
    let Some(old) = review.old.filter(|_| review.operation == Operation::Update) else {
        return Some(format!("unexpected operation {:?}", word(review.operation)));
    };
    if old.at("spec").text("nodeName") != node {
        return Some(format!("node {node:?} can only update pod status for pods with spec.nodeName set to itself"));
    }
    let differs = |path: &[&str]| review.object.path(path) != old.path(path);
    if differs(&["metadata", "labels"]) {
        return Some(format!("node {node:?} cannot update labels through pod status"));
    }
    if differs(&["status", "resourceClaimStatuses"]) {
        return Some(format!("node {node:?} cannot update resource claim statues"));
    }
    differs(&["status", "extendedResourceClaimStatus"])
        .then(|| format!("node {node:?} cannot update extended resource claim status"))
}

/// All but the fields of a claim that a node may set.
fn without_size(claim: &Value) -> Value {
    let mut claim = claim.clone();
    let metadata = claim.object_or_new("metadata");
    ["resourceVersion", "managedFields"].into_iter().for_each(|field| drop(metadata.remove(field)));
    let status = claim.object_or_new("status");
    for field in ["capacity", "conditions", "allocatedResourceStatuses", "allocatedResources"] {
        status.remove(field);
    }
    claim
}

fn claim_status(review: &Review<'_>, node: &str) -> Option<String> {
    let Some(old) = review.old.filter(|_| review.operation == Operation::Update) else {
        return Some(format!("unexpected operation {:?}", word(review.operation)));
    };
    (without_size(review.object) != without_size(old)).then(|| {
        format!("node {node:?} is not allowed to update fields other than status.quantity and status.conditions")
    })
}

fn own_node(review: &Review<'_>, node: &str) -> Option<String> {
    let (new, requested) = (&*review.object, review.name());
    if requested != node {
        return Some(format!("node {node:?} is not allowed to modify node {requested:?}"));
    }
    let (labels, none) = (new.at("metadata").at("labels"), Value::Null);
    match (review.operation, review.old) {
        (Operation::Create, _) if new.at("spec").has("configSource") => {
            Some(format!("node {node:?} is not allowed to create pods with a non-nil configSource"))
        }
        (Operation::Create, _) => foreign_labels(labels, &none)
            .map(|foreign| format!("node {node:?} is not allowed to set the following labels: {foreign}")),
        (Operation::Update, Some(old)) => {
            let differs = |path: &[&str]| new.path(path) != old.path(path);
            if new.at("spec").has("configSource") && differs(&["spec", "configSource"]) {
                return Some(format!(
                    "node {node:?} is not allowed to update configSource to a new non-nil configSource"
                ));
            }
            if differs(&["spec", "taints"]) {
                return Some(format!("node {node:?} is not allowed to modify taints"));
            }
            if differs(&["metadata", "ownerReferences"]) {
                return Some(format!("node {node:?} is not allowed to modify ownerReferences"));
            }
            foreign_labels(labels, old.at("metadata").at("labels"))
                .map(|foreign| format!("is not allowed to modify labels: {foreign}"))
        }
        _ => None,
    }
}

/// The labels that differ and are not for nodes to change.
fn foreign_labels(new: &Value, old: &Value) -> Option<String> {
    let keys =
        |labels: &Value| labels.as_object().into_iter().flatten().map(|(key, _)| key.clone()).collect::<Vec<_>>();
    let changed = keys(new).into_iter().chain(keys(old)).filter(|key| new.at(key) != old.at(key));
    let foreign: BTreeSet<FieldName> = changed.filter(|key| is_foreign_label(key)).collect();
    (!foreign.is_empty()).then(|| foreign.iter().map(FieldName::as_str).collect::<Vec<_>>().join(", "))
}

fn is_foreign_label(key: &str) -> bool {
    let domain = key.split_once('/').map_or("", |(domain, _)| domain);
    let under = |parent: &str| domain == parent || domain.strip_suffix(parent).is_some_and(|rest| rest.ends_with('.'));
    let own = OWN_LABELS.contains(&key) || OWN_LABEL_DOMAINS.into_iter().any(under);
    under(RESTRICTED_DOMAIN) || PROJECT_DOMAINS.into_iter().any(under) && !own
}

/// A node asks for tokens of the accounts its pods run as, for one of those pods and for whom they are meant.
fn admit_token(review: &Review<'_>, node: &str) -> Result<(), ApiError> {
    let spec = review.object.at("spec");
    let bound = spec.at("boundObjectRef");
    let name = bound.text("name");
    if [bound.text("apiVersion"), bound.text("kind")] != ["v1", "Pod"] || name.is_empty() {
        return Err(review.forbid("node requested token not bound to a pod"));
    }
    let uid = bound.text("uid");
    if uid.is_empty() {
        return Err(review.forbid("node requested token with a pod binding without a uid"));
    }
    let Some(pod) = review.find(&format!("pods/{}/{name}", review.ctx.target.namespace)) else {
        return Err(ApiError::not_found("", "pods", name));
    };
    let pod = pod.decode();
    if pod.at("metadata").text("uid") != uid {
        return Err(review.forbid(&format!("the UID in the bound object reference ({uid}) does not match the UID in record. The object might have been deleted and then recreated")));
    }
    if pod.at("spec").text("nodeName") != node {
        return Err(review.forbid("node requested token bound to a pod scheduled on a different node"));
    }
    let audience = match spec.items("audiences") {
        [] => "",
        [one] => one.as_str().unwrap_or_default(),
        _ => return Err(review.forbid("node may only request 0 or 1 audiences")),
    };
    let ctx = review.ctx;
    let (account, namespace) = (ctx.target.name.as_str(), ctx.target.namespace.as_str());
    let verb = "request-serviceaccounts-token-audience";
    if names_audience(review, &pod, audience)
        || ctx.api.authorization.allows(&ctx.user, verb, "", audience, account, namespace)
    {
        return Ok(());
    }
    Err(review.forbid(&format!(
        "audience {audience:?} not found in pod spec volume, {} is not authorized to request tokens for this audience",
        ctx.user.name
    )))
}

/// Whether a volume of the pod needs a token for the audience: a projected one, or one whose driver asks for it.
fn names_audience(review: &Review<'_>, pod: &Value, audience: &str) -> bool {
    let asks = |driver: &str| {
        let driver = review.find(&format!("csidrivers.storage.k8s.io/{driver}")).map(|driver| driver.decode());
        driver.is_some_and(|driver| {
            driver.at("spec").items("tokenRequests").iter().any(|request| request.text("audience") == audience)
        })
    };
    let of_claim = |claim: &str| {
        let claim = review.find(&format!("persistentvolumeclaims/{}/{claim}", review.ctx.target.namespace))?.decode();
        let volume = review.find(&format!("persistentvolumes/{}", claim.at("spec").text("volumeName")))?.decode();
        volume.at("spec").at("csi").at("driver").as_str().map(str::to_owned)
    };
    pod.at("spec").items("volumes").iter().any(|volume| {
        let tokens = volume.at("projected").items("sources").iter().filter(|source| source.has("serviceAccountToken"));
        if tokens.map(|source| source.at("serviceAccountToken").text("audience")).any(|named| named == audience) {
            return true;
        }
        let claim = volume.at("persistentVolumeClaim").at("claimName").as_str().map(str::to_owned);
        let ephemeral =
            volume.has("ephemeral").then(|| format!("{}-{}", pod.at("metadata").text("name"), volume.text("name")));
        let driver = volume.at("csi").at("driver").as_str().map(str::to_owned);
        driver.or_else(|| of_claim(&claim.or(ephemeral)?)).is_some_and(|driver| asks(&driver))
    })
}

fn own_slice(review: &Review<'_>, node: &str) -> Option<String> {
    let verb = match review.operation {
        Operation::Create => "create",
        Operation::Delete => "delete",
        Operation::Update => return None,
    };
    (review.object.at("spec").text("nodeName") != node)
        .then(|| format!("can only {verb} ResourceSlice with the same NodeName as the requesting node"))
}

/// A node asks for certificates of its own only.
fn own_certificate(spec: &Value, node: &str) -> Option<String> {
    let signers = ["kubernetes.io/kubelet-serving".to_owned(), format!("{CLIENT_SIGNER}-kubelet")];
    if !signers.iter().any(|signer| signer == spec.text("signerName")) {
        return None;
    }
    match subject(spec) {
        Err(why) => Some(format!("unable to parse csr: {why}")),
        Ok(subject) if subject.common_name == format!("{USER_PREFIX}{node}") => None,
        Ok(_) => Some(format!("can only create a node CSR with CN={USER_PREFIX}{node}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use object::json;

    #[test]
    fn labels_of_the_project_are_for_nodes_only_where_they_describe_them() {
        for (label, foreign) in [
            ("app", false),
            ("example.com/app", false),
            ("kubernetes.io/hostname", false),
            ("node.kubernetes.io/anything", false),
            ("x.kubelet.kubernetes.io/anything", false),
            ("node-role.kubernetes.io/control-plane", true),
            ("node-restriction.kubernetes.io/a", true),
            ("x.node-restriction.kubernetes.io/a", true),
            ("k8s.io/a", true),
            ("notk8s.io/a", false),
        ] {
            assert_eq!(is_foreign_label(label), foreign, "{label}");
        }
        let (new, old) =
            (json!({ "k8s.io/a": "1", "k8s.io/b": "2", "x": "y" }), json!({ "k8s.io/b": "2", "k8s.io/c": "3" }));
        assert_eq!(foreign_labels(&new, &old).as_deref(), Some("k8s.io/a, k8s.io/c"));
    }
}
