//! All built-in resources, a row each.
//!
//! To add one, add its row here and its types to `crates/schema/facts/`.

use crate::print::{self, Printer};
use crate::resource::{Resource, SchemaRef, Scope, Subresource, Verbs, Withheld};
use crate::strategy::{self, Strategy};
use std::borrow::Cow;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

/// All built-in resources, those included that are served only where asked for, in the order discovery lists them: groups
/// by importance, newer versions first.
pub fn builtin() -> &'static [Arc<Resource>] {
    static TABLE: LazyLock<Vec<Arc<Resource>>> = LazyLock::new(|| rows().map(Arc::new).collect());
    &TABLE
}

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
    let schema_type = format!("{package}.{version}.{kind}");
    let node = schema::builtin().named(&schema_type);
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
        selectable: names(&[]),
        node: node.unwrap_or_else(|| panic!("the facts have a type {schema_type}")),
        schema: SchemaRef::Builtin,
        schema_type: schema_type.into(),
        table: if group.is_empty() { plural.into() } else { format!("{plural}.{group}").into() },
        stored_as: api_version.into(),
        ttl: None,
        deprecated: None,
        strategy: &strategy::PLAIN,
        printer: &print::PLAIN,
        withheld: Cow::Borrowed(&[]),
    }
}

/// How long events are kept.
const EVENT_TTL: Duration = Duration::from_secs(3600);

/// What a row says beyond the usual.
impl Resource {
    fn short(self, short_names: &[&'static str]) -> Self {
        Resource { short_names: names(short_names), ..self }
    }

    fn categories(self, categories: &[&'static str]) -> Self {
        Resource { categories: names(categories), ..self }
    }

    fn verbs(self, verbs: Verbs) -> Self {
        Resource { verbs, ..self }
    }

    fn subresources(self, subresources: &'static [Subresource]) -> Self {
        Resource { subresources: Cow::Borrowed(subresources), ..self }
    }

    /// Fields that clients may select by, besides name and namespace.
    fn selectable(self, fields: &[&'static str]) -> Self {
        Resource { selectable: names(fields), ..self }
    }

    /// Another version of a kind that is stored in this one: `events`, `v1`.
    fn stored_as(self, table: &'static str, api_version: &'static str) -> Self {
        Resource { table: table.into(), stored_as: api_version.into(), ..self }
    }

    fn deprecated(self, why: &'static str) -> Self {
        Resource { deprecated: Some(why), ..self }
    }

    /// Objects go by themselves after this long.
    fn expires_after(self, ttl: Duration) -> Self {
        Resource { ttl: Some(ttl), ..self }
    }

    fn strategy(self, strategy: &'static Strategy) -> Self {
        Resource { strategy, ..self }
    }

    fn printer(self, printer: &'static Printer) -> Self {
        Resource { printer, ..self }
    }

    fn withholds(self, withheld: &'static [Withheld]) -> Self {
        Resource { withheld: Cow::Borrowed(withheld), ..self }
    }
}

/// What pods say of the group they are in, wherever the spec of a pod is.
macro_rules! pods_at {
    ($($field:literal),+) => {
        &[Withheld { version: "scheduling.k8s.io/v1alpha2", path: &[$($field,)+ "schedulingGroup"] }]
    };
}

fn names(names: &[&'static str]) -> Cow<'static, [Cow<'static, str>]> {
    names.iter().map(|name| Cow::Borrowed(*name)).collect()
}

fn rows() -> impl Iterator<Item = Resource> {
    let parts = [
        core(),
        apps(),
        reviews(),
        batch(),
        networking(),
        access(),
        storage(),
        extensions(),
        cluster_services(),
        devices(),
    ];
    parts.into_iter().flatten()
}

/// The group without a name.
#[rustfmt::skip]
fn core() -> Vec<Resource> {
    use Subresource::*;
    vec![
        namespaced("v1", "Binding", "bindings").verbs(Verbs::CREATE_ONLY)
            .strategy(&strategy::binding::STRATEGY),
        cluster("v1", "ComponentStatus", "componentstatuses").short(&["cs"]).verbs(Verbs::READ_ONLY).deprecated("v1 ComponentStatus is deprecated in v1.19+")
            .printer(&print::COMPONENT_STATUS),
        namespaced("v1", "ConfigMap", "configmaps").short(&["cm"])
            .strategy(&strategy::config_map::STRATEGY).printer(&print::CONFIG_MAP),
        namespaced("v1", "Endpoints", "endpoints").short(&["ep"]).deprecated("v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice")
            .strategy(&strategy::endpoints::ENDPOINTS).printer(&print::ENDPOINTS),
        namespaced("v1", "Event", "events").short(&["ev"]).expires_after(EVENT_TTL)
            .selectable(&["involvedObject.kind", "involvedObject.namespace", "involvedObject.name", "involvedObject.uid", "involvedObject.apiVersion", "involvedObject.resourceVersion", "involvedObject.fieldPath", "reason", "reportingComponent", "source", "type"])
            .strategy(&strategy::event::CORE).printer(&print::EVENT),
        namespaced("v1", "LimitRange", "limitranges").short(&["limits"])
            .strategy(&strategy::limit_range::STRATEGY),
        cluster("v1", "Namespace", "namespaces").short(&["ns"]).verbs(Verbs::NO_COLLECTION).subresources(&[Finalize, Status])
            .selectable(&["status.phase"])
            .strategy(&strategy::namespace::STRATEGY).printer(&print::NAMESPACE),
        cluster("v1", "Node", "nodes").short(&["no"]).subresources(&[Proxy, Status])
            .selectable(&["spec.unschedulable"])
            .strategy(&strategy::node::STRATEGY).printer(&print::NODE),
        namespaced("v1", "PersistentVolumeClaim", "persistentvolumeclaims").short(&["pvc"]).subresources(&[Status])
            .strategy(&strategy::volume_claim::STRATEGY).printer(&print::PERSISTENT_VOLUME_CLAIM),
        cluster("v1", "PersistentVolume", "persistentvolumes").short(&["pv"]).subresources(&[Status])
            .strategy(&strategy::volume::STRATEGY).printer(&print::PERSISTENT_VOLUME),
        namespaced("v1", "Pod", "pods").short(&["po"]).categories(&["all"]).subresources(&[Attach, Binding, EphemeralContainers, Eviction, Exec, Log, PortForward, Proxy, Resize, Status])
            .selectable(&["spec.nodeName", "spec.restartPolicy", "spec.schedulerName", "spec.serviceAccountName", "spec.hostNetwork", "status.phase", "status.podIP", "status.podIPs", "status.nominatedNodeName"])
            .strategy(&strategy::pod::STRATEGY).printer(&print::POD)
            .withholds(pods_at!("spec")),
        namespaced("v1", "PodTemplate", "podtemplates")
            .strategy(&strategy::pod_template::STRATEGY).printer(&print::POD_TEMPLATE)
            .withholds(pods_at!("template", "spec")),
        namespaced("v1", "ReplicationController", "replicationcontrollers").short(&["rc"]).categories(&["all"]).subresources(&[Scale, Status])
            .selectable(&["status.replicas"])
            .strategy(&strategy::replica_set::REPLICATION_CONTROLLER).printer(&print::REPLICATION_CONTROLLER)
            .withholds(pods_at!("spec", "template", "spec")),
        namespaced("v1", "ResourceQuota", "resourcequotas").short(&["quota"]).subresources(&[Status])
            .strategy(&strategy::resource_quota::STRATEGY).printer(&print::RESOURCE_QUOTA),
        namespaced("v1", "Secret", "secrets")
            .selectable(&["type"])
            .strategy(&strategy::secret::STRATEGY).printer(&print::SECRET),
        namespaced("v1", "ServiceAccount", "serviceaccounts").short(&["sa"]).subresources(&[Token])
            .strategy(&strategy::service_account::STRATEGY).printer(&print::SERVICE_ACCOUNT),
        namespaced("v1", "Service", "services").short(&["svc"]).categories(&["all"]).subresources(&[Proxy, Status])
            .selectable(&["spec.clusterIP", "spec.type"])
            .strategy(&strategy::service::STRATEGY).printer(&print::SERVICE),
    ]
}

/// apiregistration.k8s.io, apps, events.k8s.io.
#[rustfmt::skip]
fn apps() -> Vec<Resource> {
    use Subresource::*;
    vec![
        cluster("apiregistration.k8s.io/v1", "APIService", "apiservices").categories(&["api-extensions"]).subresources(&[Status])
            .strategy(&strategy::api_service::STRATEGY).printer(&print::API_SERVICE),
        namespaced("apps/v1", "ControllerRevision", "controllerrevisions")
            .strategy(&strategy::pod_template::CONTROLLER_REVISION).printer(&print::CONTROLLER_REVISION),
        namespaced("apps/v1", "DaemonSet", "daemonsets").short(&["ds"]).categories(&["all"]).subresources(&[Status])
            .strategy(&strategy::daemon_set::STRATEGY).printer(&print::DAEMON_SET)
            .withholds(pods_at!("spec", "template", "spec")),
        namespaced("apps/v1", "Deployment", "deployments").short(&["deploy"]).categories(&["all"]).subresources(&[Scale, Status])
            .strategy(&strategy::deployment::STRATEGY).printer(&print::DEPLOYMENT)
            .withholds(pods_at!("spec", "template", "spec")),
        namespaced("apps/v1", "ReplicaSet", "replicasets").short(&["rs"]).categories(&["all"]).subresources(&[Scale, Status])
            .strategy(&strategy::replica_set::STRATEGY).printer(&print::REPLICA_SET)
            .withholds(pods_at!("spec", "template", "spec")),
        namespaced("apps/v1", "StatefulSet", "statefulsets").short(&["sts"]).categories(&["all"]).subresources(&[Scale, Status])
            .strategy(&strategy::stateful_set::STRATEGY).printer(&print::STATEFUL_SET)
            .withholds(pods_at!("spec", "template", "spec")),
        namespaced("events.k8s.io/v1", "Event", "events").short(&["ev"]).stored_as("events", "v1").expires_after(EVENT_TTL)
            .selectable(&["reason", "regarding.kind", "regarding.namespace", "regarding.name", "regarding.uid", "regarding.apiVersion", "regarding.resourceVersion", "regarding.fieldPath", "reportingController", "type"])
            .strategy(&strategy::event::EVENTS).printer(&print::EVENT),
    ]
}

/// authentication.k8s.io, authorization.k8s.io.
#[rustfmt::skip]
fn reviews() -> Vec<Resource> {
    vec![
        cluster("authentication.k8s.io/v1", "SelfSubjectReview", "selfsubjectreviews").verbs(Verbs::CREATE_ONLY),
        cluster("authentication.k8s.io/v1", "TokenReview", "tokenreviews").verbs(Verbs::CREATE_ONLY),
        namespaced("authorization.k8s.io/v1", "LocalSubjectAccessReview", "localsubjectaccessreviews").verbs(Verbs::CREATE_ONLY),
        cluster("authorization.k8s.io/v1", "SelfSubjectAccessReview", "selfsubjectaccessreviews").verbs(Verbs::CREATE_ONLY),
        cluster("authorization.k8s.io/v1", "SelfSubjectRulesReview", "selfsubjectrulesreviews").verbs(Verbs::CREATE_ONLY),
        cluster("authorization.k8s.io/v1", "SubjectAccessReview", "subjectaccessreviews").verbs(Verbs::CREATE_ONLY),
    ]
}

/// autoscaling, batch, certificates.k8s.io.
#[rustfmt::skip]
fn batch() -> Vec<Resource> {
    use Subresource::*;
    vec![
        namespaced("autoscaling/v2", "HorizontalPodAutoscaler", "horizontalpodautoscalers").short(&["hpa"]).categories(&["all"]).subresources(&[Status])
            .strategy(&strategy::autoscaler::V2).printer(&print::HORIZONTAL_POD_AUTOSCALER),
        namespaced("autoscaling/v1", "HorizontalPodAutoscaler", "horizontalpodautoscalers").short(&["hpa"]).categories(&["all"]).subresources(&[Status]).stored_as("horizontalpodautoscalers.autoscaling", "autoscaling/v2")
            .strategy(&strategy::autoscaler::V1).printer(&print::HORIZONTAL_POD_AUTOSCALER_V1),
        namespaced("batch/v1", "CronJob", "cronjobs").short(&["cj"]).categories(&["all"]).subresources(&[Status])
            .strategy(&strategy::cron_job::STRATEGY).printer(&print::CRON_JOB)
            .withholds(pods_at!("spec", "jobTemplate", "spec", "template", "spec")),
        namespaced("batch/v1", "Job", "jobs").categories(&["all"]).subresources(&[Status])
            .selectable(&["status.successful"])
            .strategy(&strategy::job::STRATEGY).printer(&print::JOB)
            .withholds(pods_at!("spec", "template", "spec")),
        cluster("certificates.k8s.io/v1", "CertificateSigningRequest", "certificatesigningrequests").short(&["csr"]).subresources(&[Approval, Status])
            .selectable(&["spec.signerName"])
            .strategy(&strategy::certificate::STRATEGY).printer(&print::CERTIFICATE_SIGNING_REQUEST),
    ]
}

/// networking.k8s.io, policy.
#[rustfmt::skip]
fn networking() -> Vec<Resource> {
    use Subresource::*;
    vec![
        cluster("networking.k8s.io/v1", "IngressClass", "ingressclasses")
            .strategy(&strategy::ingress::INGRESS_CLASS).printer(&print::INGRESS_CLASS),
        namespaced("networking.k8s.io/v1", "Ingress", "ingresses").short(&["ing"]).subresources(&[Status])
            .strategy(&strategy::ingress::INGRESS).printer(&print::INGRESS),
        cluster("networking.k8s.io/v1", "IPAddress", "ipaddresses").short(&["ip"])
            .strategy(&strategy::service_cidr::IP_ADDRESS).printer(&print::IP_ADDRESS),
        namespaced("networking.k8s.io/v1", "NetworkPolicy", "networkpolicies").short(&["netpol"])
            .strategy(&strategy::network_policy::STRATEGY).printer(&print::NETWORK_POLICY),
        cluster("networking.k8s.io/v1", "ServiceCIDR", "servicecidrs").subresources(&[Status])
            .strategy(&strategy::service_cidr::SERVICE_CIDR).printer(&print::SERVICE_CIDR),
        namespaced("policy/v1", "PodDisruptionBudget", "poddisruptionbudgets").short(&["pdb"]).subresources(&[Status])
            .strategy(&strategy::disruption_budget::STRATEGY).printer(&print::POD_DISRUPTION_BUDGET),
    ]
}

/// rbac.authorization.k8s.io.
#[rustfmt::skip]
fn access() -> Vec<Resource> {
    vec![
        cluster("rbac.authorization.k8s.io/v1", "ClusterRoleBinding", "clusterrolebindings")
            .strategy(&strategy::rbac::CLUSTER_ROLE_BINDING).printer(&print::ROLE_BINDING),
        cluster("rbac.authorization.k8s.io/v1", "ClusterRole", "clusterroles")
            .strategy(&strategy::rbac::CLUSTER_ROLE),
        namespaced("rbac.authorization.k8s.io/v1", "RoleBinding", "rolebindings")
            .strategy(&strategy::rbac::ROLE_BINDING).printer(&print::ROLE_BINDING),
        namespaced("rbac.authorization.k8s.io/v1", "Role", "roles")
            .strategy(&strategy::rbac::ROLE),
    ]
}

/// storage.k8s.io.
#[rustfmt::skip]
fn storage() -> Vec<Resource> {
    use Subresource::*;
    vec![
        cluster("storage.k8s.io/v1", "CSIDriver", "csidrivers")
            .strategy(&strategy::storage::CSI_DRIVER).printer(&print::CSI_DRIVER),
        cluster("storage.k8s.io/v1", "CSINode", "csinodes")
            .strategy(&strategy::storage::CSI_NODE).printer(&print::CSI_NODE),
        namespaced("storage.k8s.io/v1", "CSIStorageCapacity", "csistoragecapacities")
            .strategy(&strategy::storage::CSI_STORAGE_CAPACITY),
        cluster("storage.k8s.io/v1", "StorageClass", "storageclasses").short(&["sc"])
            .strategy(&strategy::storage::STORAGE_CLASS).printer(&print::STORAGE_CLASS),
        cluster("storage.k8s.io/v1", "VolumeAttachment", "volumeattachments").subresources(&[Status])
            .strategy(&strategy::storage::VOLUME_ATTACHMENT).printer(&print::VOLUME_ATTACHMENT),
        cluster("storage.k8s.io/v1", "VolumeAttributesClass", "volumeattributesclasses").short(&["vac"])
            .strategy(&strategy::storage::VOLUME_ATTRIBUTES_CLASS).printer(&print::VOLUME_ATTRIBUTES_CLASS),
    ]
}

/// admissionregistration.k8s.io, apiextensions.k8s.io.
#[rustfmt::skip]
fn extensions() -> Vec<Resource> {
    use Subresource::*;
    vec![
        cluster("admissionregistration.k8s.io/v1", "MutatingAdmissionPolicy", "mutatingadmissionpolicies").categories(&["api-extensions"])
            .strategy(&strategy::admission_policy::MUTATING).printer(&print::MUTATING_ADMISSION_POLICY),
        cluster("admissionregistration.k8s.io/v1", "MutatingAdmissionPolicyBinding", "mutatingadmissionpolicybindings").categories(&["api-extensions"])
            .strategy(&strategy::admission_policy::MUTATING_BINDING).printer(&print::ADMISSION_POLICY_BINDING),
        cluster("admissionregistration.k8s.io/v1", "MutatingWebhookConfiguration", "mutatingwebhookconfigurations").categories(&["api-extensions"])
            .strategy(&strategy::webhook::MUTATING).printer(&print::WEBHOOK_CONFIGURATION),
        cluster("admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicy", "validatingadmissionpolicies").categories(&["api-extensions"]).subresources(&[Status])
            .strategy(&strategy::admission_policy::VALIDATING).printer(&print::VALIDATING_ADMISSION_POLICY),
        cluster("admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicyBinding", "validatingadmissionpolicybindings").categories(&["api-extensions"])
            .strategy(&strategy::admission_policy::VALIDATING_BINDING).printer(&print::ADMISSION_POLICY_BINDING),
        cluster("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration", "validatingwebhookconfigurations").categories(&["api-extensions"])
            .strategy(&strategy::webhook::VALIDATING).printer(&print::WEBHOOK_CONFIGURATION),
        cluster("apiextensions.k8s.io/v1", "CustomResourceDefinition", "customresourcedefinitions").short(&["crd", "crds"]).categories(&["api-extensions"]).subresources(&[Status])
            .strategy(&strategy::custom_resource::STRATEGY),
    ]
}

/// scheduling.k8s.io, coordination.k8s.io, node.k8s.io, discovery.k8s.io, flowcontrol.apiserver.k8s.io, metrics.k8s.io.
#[rustfmt::skip]
fn cluster_services() -> Vec<Resource> {
    use Subresource::*;
    vec![
        cluster("scheduling.k8s.io/v1", "PriorityClass", "priorityclasses").short(&["pc"])
            .strategy(&strategy::priority_class::STRATEGY).printer(&print::PRIORITY_CLASS),
        namespaced("scheduling.k8s.io/v1alpha2", "PodGroup", "podgroups").subresources(&[Status])
            .strategy(&strategy::pod_group::POD_GROUP).printer(&print::POD_GROUP),
        namespaced("scheduling.k8s.io/v1alpha2", "Workload", "workloads")
            .strategy(&strategy::pod_group::WORKLOAD).printer(&print::WORKLOAD),
        namespaced("coordination.k8s.io/v1", "Lease", "leases")
            .strategy(&strategy::lease::STRATEGY).printer(&print::LEASE),
        cluster("node.k8s.io/v1", "RuntimeClass", "runtimeclasses")
            .strategy(&strategy::runtime_class::STRATEGY).printer(&print::RUNTIME_CLASS),
        namespaced("discovery.k8s.io/v1", "EndpointSlice", "endpointslices")
            .strategy(&strategy::endpoints::ENDPOINT_SLICE).printer(&print::ENDPOINT_SLICE),
        cluster("flowcontrol.apiserver.k8s.io/v1", "FlowSchema", "flowschemas").subresources(&[Status])
            .strategy(&strategy::flow_control::FLOW_SCHEMA).printer(&print::FLOW_SCHEMA),
        cluster("flowcontrol.apiserver.k8s.io/v1", "PriorityLevelConfiguration", "prioritylevelconfigurations").subresources(&[Status])
            .strategy(&strategy::flow_control::PRIORITY_LEVEL).printer(&print::PRIORITY_LEVEL),
        cluster("metrics.k8s.io/v1beta1", "NodeMetrics", "nodes").verbs(Verbs::READ_ONLY).printer(&print::NODE_METRICS),
        namespaced("metrics.k8s.io/v1beta1", "PodMetrics", "pods").verbs(Verbs::READ_ONLY).printer(&print::POD_METRICS),
    ]
}

/// resource.k8s.io.
#[rustfmt::skip]
fn devices() -> Vec<Resource> {
    use Subresource::*;
    vec![
        cluster("resource.k8s.io/v1", "DeviceClass", "deviceclasses")
            .strategy(&strategy::device::DEVICE_CLASS).printer(&print::DEVICE_CLASS),
        namespaced("resource.k8s.io/v1", "ResourceClaim", "resourceclaims").subresources(&[Status])
            .strategy(&strategy::device::RESOURCE_CLAIM).printer(&print::RESOURCE_CLAIM),
        namespaced("resource.k8s.io/v1", "ResourceClaimTemplate", "resourceclaimtemplates")
            .strategy(&strategy::device::RESOURCE_CLAIM_TEMPLATE).printer(&print::RESOURCE_CLAIM_TEMPLATE),
        cluster("resource.k8s.io/v1", "ResourceSlice", "resourceslices")
            .selectable(&["spec.nodeName", "spec.driver"])
            .strategy(&strategy::resource_slice::STRATEGY).printer(&print::RESOURCE_SLICE),
        cluster("resource.k8s.io/v1beta2", "DeviceTaintRule", "devicetaintrules").subresources(&[Status])
            .strategy(&strategy::device_taint::RULE).printer(&print::DEVICE_TAINT_RULE),
        cluster("resource.k8s.io/v1alpha3", "DeviceTaintRule", "devicetaintrules").subresources(&[Status])
            .stored_as("devicetaintrules.resource.k8s.io", "resource.k8s.io/v1beta2")
            .strategy(&strategy::device_taint::RULE).printer(&print::DEVICE_TAINT_RULE),
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
