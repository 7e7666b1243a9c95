//! All built-in resources, a row each.
//!
//! To add one, add its row here and its types to `crates/schema/facts/`.

use crate::resource::{Resource, Scope, Subresource, Verbs};
use std::borrow::Cow;
use std::sync::LazyLock;

/// The built-in resources, in the order discovery lists them: groups by importance, newer versions first.
pub fn builtin() -> &'static [Resource] {
    static TABLE: LazyLock<Vec<Resource>> = LazyLock::new(rows);
    &TABLE
}

const STATUS: Cow<'static, [Subresource]> = Cow::Borrowed(&[Subresource::Status]);
const SCALE_AND_STATUS: Cow<'static, [Subresource]> = Cow::Borrowed(&[Subresource::Scale, Subresource::Status]);

fn namespaced(api_version: &'static str, kind: &'static str, plural: &'static str) -> Resource {
    row(api_version, kind, plural, Scope::Namespaced)
}

fn cluster(api_version: &'static str, kind: &'static str, plural: &'static str) -> Resource {
    row(api_version, kind, plural, Scope::Cluster)
}

/// A row with what most resources have: all verbs, no subresources.
fn row(api_version: &'static str, kind: &'static str, plural: &'static str, scope: Scope) -> Resource {
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    // Types are named by the first part of their group: `rbac.v1.Role` is rbac.authorization.k8s.io/v1.
    let package = if group.is_empty() { "core" } else { group.split('.').next().unwrap_or(group) };
    Resource {
        group: group.into(),
        version: version.into(),
        kind: kind.into(),
        plural: plural.into(),
        singular: kind.to_lowercase().into(),
        short_names: names(&[]),
        categories: names(&[]),
        scope,
        verbs: Verbs::ALL,
        subresources: Cow::Borrowed(&[]),
        schema_type: format!("{package}.{version}.{kind}").into(),
    }
}

fn names(names: &[&'static str]) -> Cow<'static, [Cow<'static, str>]> {
    names.iter().map(|name| Cow::Borrowed(*name)).collect()
}

#[rustfmt::skip]
fn rows() -> Vec<Resource> {
    vec![
        Resource { verbs: Verbs::CREATE_ONLY, ..namespaced("v1", "Binding", "bindings") },
        Resource { short_names: names(&["cs"]), verbs: Verbs::READ_ONLY, ..cluster("v1", "ComponentStatus", "componentstatuses") },
        Resource { short_names: names(&["cm"]), ..namespaced("v1", "ConfigMap", "configmaps") },
        Resource { short_names: names(&["ep"]), ..namespaced("v1", "Endpoints", "endpoints") },
        Resource { short_names: names(&["ev"]), ..namespaced("v1", "Event", "events") },
        Resource { short_names: names(&["limits"]), ..namespaced("v1", "LimitRange", "limitranges") },
        Resource { short_names: names(&["ns"]), verbs: Verbs::NO_COLLECTION, subresources: Cow::Borrowed(&[Subresource::Finalize, Subresource::Status]), ..cluster("v1", "Namespace", "namespaces") },
        Resource { short_names: names(&["no"]), subresources: Cow::Borrowed(&[Subresource::Proxy, Subresource::Status]), ..cluster("v1", "Node", "nodes") },
        Resource { short_names: names(&["pvc"]), subresources: STATUS, ..namespaced("v1", "PersistentVolumeClaim", "persistentvolumeclaims") },
        Resource { short_names: names(&["pv"]), subresources: STATUS, ..cluster("v1", "PersistentVolume", "persistentvolumes") },
        Resource { short_names: names(&["po"]), categories: names(&["all"]), subresources: Cow::Borrowed(&[Subresource::Attach, Subresource::Binding, Subresource::EphemeralContainers, Subresource::Eviction, Subresource::Exec, Subresource::Log, Subresource::PortForward, Subresource::Proxy, Subresource::Resize, Subresource::Status]), ..namespaced("v1", "Pod", "pods") },
        namespaced("v1", "PodTemplate", "podtemplates"),
        Resource { short_names: names(&["rc"]), categories: names(&["all"]), subresources: SCALE_AND_STATUS, ..namespaced("v1", "ReplicationController", "replicationcontrollers") },
        Resource { short_names: names(&["quota"]), subresources: STATUS, ..namespaced("v1", "ResourceQuota", "resourcequotas") },
        namespaced("v1", "Secret", "secrets"),
        Resource { short_names: names(&["sa"]), subresources: Cow::Borrowed(&[Subresource::Token]), ..namespaced("v1", "ServiceAccount", "serviceaccounts") },
        Resource { short_names: names(&["svc"]), categories: names(&["all"]), subresources: Cow::Borrowed(&[Subresource::Proxy, Subresource::Status]), ..namespaced("v1", "Service", "services") },
        Resource { categories: names(&["api-extensions"]), subresources: STATUS, ..cluster("apiregistration.k8s.io/v1", "APIService", "apiservices") },
        namespaced("apps/v1", "ControllerRevision", "controllerrevisions"),
        Resource { short_names: names(&["ds"]), categories: names(&["all"]), subresources: STATUS, ..namespaced("apps/v1", "DaemonSet", "daemonsets") },
        Resource { short_names: names(&["deploy"]), categories: names(&["all"]), subresources: SCALE_AND_STATUS, ..namespaced("apps/v1", "Deployment", "deployments") },
        Resource { short_names: names(&["rs"]), categories: names(&["all"]), subresources: SCALE_AND_STATUS, ..namespaced("apps/v1", "ReplicaSet", "replicasets") },
        Resource { short_names: names(&["sts"]), categories: names(&["all"]), subresources: SCALE_AND_STATUS, ..namespaced("apps/v1", "StatefulSet", "statefulsets") },
        Resource { short_names: names(&["ev"]), ..namespaced("events.k8s.io/v1", "Event", "events") },
        Resource { verbs: Verbs::CREATE_ONLY, ..cluster("authentication.k8s.io/v1", "SelfSubjectReview", "selfsubjectreviews") },
        Resource { verbs: Verbs::CREATE_ONLY, ..cluster("authentication.k8s.io/v1", "TokenReview", "tokenreviews") },
        Resource { verbs: Verbs::CREATE_ONLY, ..namespaced("authorization.k8s.io/v1", "LocalSubjectAccessReview", "localsubjectaccessreviews") },
        Resource { verbs: Verbs::CREATE_ONLY, ..cluster("authorization.k8s.io/v1", "SelfSubjectAccessReview", "selfsubjectaccessreviews") },
        Resource { verbs: Verbs::CREATE_ONLY, ..cluster("authorization.k8s.io/v1", "SelfSubjectRulesReview", "selfsubjectrulesreviews") },
        Resource { verbs: Verbs::CREATE_ONLY, ..cluster("authorization.k8s.io/v1", "SubjectAccessReview", "subjectaccessreviews") },
        Resource { short_names: names(&["hpa"]), categories: names(&["all"]), subresources: STATUS, ..namespaced("autoscaling/v2", "HorizontalPodAutoscaler", "horizontalpodautoscalers") },
        Resource { short_names: names(&["hpa"]), categories: names(&["all"]), subresources: STATUS, ..namespaced("autoscaling/v1", "HorizontalPodAutoscaler", "horizontalpodautoscalers") },
        Resource { short_names: names(&["cj"]), categories: names(&["all"]), subresources: STATUS, ..namespaced("batch/v1", "CronJob", "cronjobs") },
        Resource { categories: names(&["all"]), subresources: STATUS, ..namespaced("batch/v1", "Job", "jobs") },
        Resource { short_names: names(&["csr"]), subresources: Cow::Borrowed(&[Subresource::Approval, Subresource::Status]), ..cluster("certificates.k8s.io/v1", "CertificateSigningRequest", "certificatesigningrequests") },
        cluster("networking.k8s.io/v1", "IngressClass", "ingressclasses"),
        Resource { short_names: names(&["ing"]), subresources: STATUS, ..namespaced("networking.k8s.io/v1", "Ingress", "ingresses") },
        Resource { short_names: names(&["ip"]), ..cluster("networking.k8s.io/v1", "IPAddress", "ipaddresses") },
        Resource { short_names: names(&["netpol"]), ..namespaced("networking.k8s.io/v1", "NetworkPolicy", "networkpolicies") },
        Resource { subresources: STATUS, ..cluster("networking.k8s.io/v1", "ServiceCIDR", "servicecidrs") },
        Resource { short_names: names(&["pdb"]), subresources: STATUS, ..namespaced("policy/v1", "PodDisruptionBudget", "poddisruptionbudgets") },
        cluster("rbac.authorization.k8s.io/v1", "ClusterRoleBinding", "clusterrolebindings"),
        cluster("rbac.authorization.k8s.io/v1", "ClusterRole", "clusterroles"),
        namespaced("rbac.authorization.k8s.io/v1", "RoleBinding", "rolebindings"),
        namespaced("rbac.authorization.k8s.io/v1", "Role", "roles"),
        cluster("storage.k8s.io/v1", "CSIDriver", "csidrivers"),
        cluster("storage.k8s.io/v1", "CSINode", "csinodes"),
        namespaced("storage.k8s.io/v1", "CSIStorageCapacity", "csistoragecapacities"),
        Resource { short_names: names(&["sc"]), ..cluster("storage.k8s.io/v1", "StorageClass", "storageclasses") },
        Resource { subresources: STATUS, ..cluster("storage.k8s.io/v1", "VolumeAttachment", "volumeattachments") },
        Resource { short_names: names(&["vac"]), ..cluster("storage.k8s.io/v1", "VolumeAttributesClass", "volumeattributesclasses") },
        Resource { categories: names(&["api-extensions"]), ..cluster("admissionregistration.k8s.io/v1", "MutatingAdmissionPolicy", "mutatingadmissionpolicies") },
        Resource { categories: names(&["api-extensions"]), ..cluster("admissionregistration.k8s.io/v1", "MutatingAdmissionPolicyBinding", "mutatingadmissionpolicybindings") },
        Resource { categories: names(&["api-extensions"]), ..cluster("admissionregistration.k8s.io/v1", "MutatingWebhookConfiguration", "mutatingwebhookconfigurations") },
        Resource { categories: names(&["api-extensions"]), subresources: STATUS, ..cluster("admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicy", "validatingadmissionpolicies") },
        Resource { categories: names(&["api-extensions"]), ..cluster("admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicyBinding", "validatingadmissionpolicybindings") },
        Resource { categories: names(&["api-extensions"]), ..cluster("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration", "validatingwebhookconfigurations") },
        Resource { short_names: names(&["crd", "crds"]), categories: names(&["api-extensions"]), subresources: STATUS, ..cluster("apiextensions.k8s.io/v1", "CustomResourceDefinition", "customresourcedefinitions") },
        Resource { short_names: names(&["pc"]), ..cluster("scheduling.k8s.io/v1", "PriorityClass", "priorityclasses") },
        namespaced("coordination.k8s.io/v1", "Lease", "leases"),
        cluster("node.k8s.io/v1", "RuntimeClass", "runtimeclasses"),
        namespaced("discovery.k8s.io/v1", "EndpointSlice", "endpointslices"),
        Resource { subresources: STATUS, ..cluster("flowcontrol.apiserver.k8s.io/v1", "FlowSchema", "flowschemas") },
        Resource { subresources: STATUS, ..cluster("flowcontrol.apiserver.k8s.io/v1", "PriorityLevelConfiguration", "prioritylevelconfigurations") },
        cluster("resource.k8s.io/v1", "DeviceClass", "deviceclasses"),
        Resource { subresources: STATUS, ..namespaced("resource.k8s.io/v1", "ResourceClaim", "resourceclaims") },
        namespaced("resource.k8s.io/v1", "ResourceClaimTemplate", "resourceclaimtemplates"),
        cluster("resource.k8s.io/v1", "ResourceSlice", "resourceslices"),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_resource_has_a_type_with_metadata_or_is_only_a_question() {
        let schema = schema::builtin();
        for resource in builtin() {
            let node = schema.named(&resource.schema_type);
            let node = node.unwrap_or_else(|| panic!("there is no type {}", resource.schema_type));
            let schema::Shape::Struct(fields) = schema.shape(node) else { panic!("{} is no struct", resource.kind) };
            assert!(fields.field("metadata").is_some(), "{} has no metadata", resource.kind);
            assert!(fields.field("apiVersion").is_some(), "{} is no kind of its own", resource.schema_type);
        }
    }

    #[test]
    fn no_name_means_two_things() {
        let mut seen = BTreeSet::new();
        for resource in builtin() {
            assert!(
                seen.insert((resource.api_version(), resource.plural.clone())),
                "{} is there twice",
                resource.plural
            );
            assert!(resource.subresources.is_sorted(), "{}", resource.plural);
        }
    }

    #[test]
    fn a_status_that_can_be_written_is_in_the_type() {
        let schema = schema::builtin();
        for resource in builtin().iter().filter(|resource| resource.subresource("status").is_some()) {
            let schema::Shape::Struct(fields) = schema.shape(schema.named(&resource.schema_type).unwrap()) else {
                panic!("{} is no struct", resource.kind)
            };
            assert!(fields.field("status").is_some(), "{} has no status", resource.kind);
        }
    }
}
