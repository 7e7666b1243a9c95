//! Admission: what the cluster has to say about a write before it is stored. One file per plugin, one table.
//!
//! Plugins run in the order of the table, all mutating ones first. They read the cache and may add writes that are
//! committed together with the object, so that a quota or an address is never counted twice.

mod certificates;
mod claim_status_access;
mod default_ingress_class;
mod default_storage_class;
mod default_toleration_seconds;
mod device_admin_access;
mod device_taint_time;
mod escalation;
mod limit_ranger;
mod mirror_pod;
mod namespace_lifecycle;
mod node_declared_features;
mod node_restriction;
mod pod_group_workload_exists;
mod pod_resize_validator;
mod pod_security;
mod pod_topology_labels;
mod priority;
mod resource_quota;
mod runtime_class;
mod service_account;
mod service_addresses;
mod storage_object_in_use_protection;
mod taint_nodes_by_condition;
mod volume_claim_resize;

pub(crate) use service_account::awaits_account;

use crate::context::Context;
use object::{ApiError, Value, View};
use registry::{Object, Resource, Write};
use std::sync::{Arc, LazyLock};

/// What is being done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operation {
    Create,
    Update,
    Delete,
}

/// A write under review.
pub(crate) struct Review<'a> {
    pub(crate) ctx: &'a Context,
    pub(crate) operation: Operation,
    /// The object in the stored version; as it was, for a deletion.
    pub(crate) object: &'a mut Value,
    pub(crate) old: Option<&'a Value>,
    pub(crate) dry_run: bool,
    writes: Option<&'a mut Vec<Write>>,
}

impl<'a> Review<'a> {
    pub(crate) fn new(
        ctx: &'a Context,
        operation: Operation,
        object: &'a mut Value,
        old: Option<&'a Value>,
        dry_run: bool,
    ) -> Self {
        Review { ctx, operation, object, old, dry_run, writes: None }
    }

    pub(crate) fn with_writes(self, writes: &'a mut Vec<Write>) -> Self {
        Review { writes: Some(writes), ..self }
    }

    /// `pods`, `deployments.apps`: what is written.
    pub(crate) fn table(&self) -> &str {
        &self.ctx.hub.table
    }

    pub(crate) fn subresource(&self) -> &str {
        &self.ctx.target.subresource
    }

    /// Whether an object itself of this resource is written, not a part of it.
    pub(crate) fn is(&self, table: &str, operation: Operation) -> bool {
        self.table() == table && self.operation == operation && self.subresource().is_empty()
    }

    pub(crate) fn namespace(&self) -> &str {
        match self.object.at("metadata").text("namespace") {
            "" => &self.ctx.target.namespace,
            namespace => namespace,
        }
    }

    pub(crate) fn name(&self) -> &str {
        match self.object.at("metadata").text("name") {
            "" => &self.ctx.target.name,
            name => name,
        }
    }

    /// An object as the last write left it; `pods/default/web`.
    pub(crate) fn find(&self, key: &str) -> Option<Arc<Object>> {
        self.ctx.api.registry.cache.get(key.as_bytes())
    }

    /// All objects of another resource.
    pub(crate) fn all(&self, table: &str) -> Vec<Arc<Object>> {
        self.under(table, &format!("{table}/"))
    }

    /// All objects of another resource in the namespace of this one.
    pub(crate) fn beside(&self, table: &str) -> Vec<Arc<Object>> {
        self.under(table, &format!("{table}/{}/", self.namespace()))
    }

    fn under(&self, table: &str, prefix: &str) -> Vec<Arc<Object>> {
        self.ctx.api.registry.cache.snapshot(table).under(prefix.as_bytes(), &[]).cloned().collect()
    }

    /// Adds a change that is made together with this one, or not at all.
    pub(crate) fn also(&mut self, write: Write) {
        if let Some(writes) = &mut self.writes {
            writes.push(write);
        }
    }

    /// Says no, in the words of all plugins.
    pub(crate) fn forbid(&self, cause: &str) -> ApiError {
        ApiError::forbidden(&self.ctx.resource.group, &self.ctx.resource.plural, self.name(), cause)
    }
}

type Hook = fn(&mut Review<'_>) -> Result<(), ApiError>;

pub(crate) struct Plugin {
    /// As upstream calls it.
    #[allow(dead_code, reason = "the name documents the row")]
    pub(crate) name: &'static str,
    pub(crate) mutate: Option<Hook>,
    pub(crate) validate: Option<Hook>,
    /// Hands out what there is only one of. Runs after everybody has agreed.
    pub(crate) allocate: Option<Hook>,
    /// Called when an object goes for good.
    pub(crate) release: Option<Hook>,
}

/// All plugins, in upstream's order: those that are on by default, and NodeRestriction, which every cluster turns on.
/// Plugins for resources that are not served (trust bundles) are left out.
const ALL: &[Plugin] = &[
    mutating("NamespaceLifecycle", namespace_lifecycle::admit),
    both("LimitRanger", limit_ranger::mutate, limit_ranger::validate),
    both("ServiceAccount", service_account::mutate, service_account::validate),
    mutating("NodeRestriction", node_restriction::admit),
    mutating("TaintNodesByCondition", taint_nodes_by_condition::mutate),
    validating("PodSecurity", pod_security::validate),
    both("Priority", priority::mutate, priority::validate),
    mutating("DefaultTolerationSeconds", default_toleration_seconds::mutate),
    mutating("DefaultStorageClass", default_storage_class::mutate),
    mutating("StorageObjectInUseProtection", storage_object_in_use_protection::mutate),
    validating("PersistentVolumeClaimResize", volume_claim_resize::validate),
    both("RuntimeClass", runtime_class::mutate, runtime_class::validate),
    validating("CertificateApproval", certificates::validate_approval),
    validating("CertificateSigning", certificates::validate_signing),
    validating("CertificateSubjectRestriction", certificates::validate_subject),
    Plugin { name: "CertificateRequestor", allocate: Some(certificates::identify), ..NONE },
    mutating("DefaultIngressClass", default_ingress_class::mutate),
    mutating("PodTopologyLabels", pod_topology_labels::mutate),
    validating("PodGroupWorkloadExists", pod_group_workload_exists::validate),
    validating("NodeDeclaredFeatureValidator", node_declared_features::validate),
    validating("PodResizeValidator", pod_resize_validator::validate),
    // What upstream's registry does, where more than the object has to be known for it.
    mutating("DeviceTaintTime", device_taint_time::mutate),
    validating("DeviceAdminAccess", device_admin_access::validate),
    validating("ClaimStatusAccess", claim_status_access::validate),
    escalation::PLUGIN,
    service_addresses::PLUGIN,
    // Policies and webhooks stand here: quota is charged for what they have made of an object.
    validating("ResourceQuota", resource_quota::validate),
];

/// A plugin that does nothing.
const NONE: Plugin = Plugin { name: "", mutate: None, validate: None, allocate: None, release: None };

const fn mutating(name: &'static str, mutate: Hook) -> Plugin {
    Plugin { name, mutate: Some(mutate), ..NONE }
}

const fn validating(name: &'static str, validate: Hook) -> Plugin {
    Plugin { name, validate: Some(validate), ..NONE }
}

const fn both(name: &'static str, mutate: Hook, validate: Hook) -> Plugin {
    Plugin { name, mutate: Some(mutate), validate: Some(validate), ..NONE }
}

/// The row of namespaces, by which their labels and phases are looked up.
static NAMESPACES: LazyLock<Arc<Resource>> = LazyLock::new(|| builtin("namespaces"));
static NODES: LazyLock<Arc<Resource>> = LazyLock::new(|| builtin("nodes"));

fn builtin(table: &str) -> Arc<Resource> {
    registry::builtin().iter().find(|row| row.table == table).expect("it is built in").clone()
}

/// Whether the stored text of an object has a piece in it. This says for certain that a field does not have a value,
/// and costs a fraction of decoding; whoever finds the piece decodes the object to know more.
fn mentions(object: &Object, piece: &str) -> bool {
    object.json().windows(piece.len()).any(|window| window == piece.as_bytes())
}

pub(crate) fn mutate(review: &mut Review<'_>) -> Result<(), ApiError> {
    ALL.iter().filter_map(|plugin| plugin.mutate).try_for_each(|hook| hook(review))
}

pub(crate) fn validate(review: &mut Review<'_>) -> Result<(), ApiError> {
    ALL.iter().filter_map(|plugin| plugin.validate).try_for_each(|hook| hook(review))
}

pub(crate) fn allocate(review: &mut Review<'_>) -> Result<(), ApiError> {
    ALL.iter().filter_map(|plugin| plugin.allocate).try_for_each(|hook| hook(review))
}

pub(crate) fn release(review: &mut Review<'_>) -> Result<(), ApiError> {
    ALL.iter().filter_map(|plugin| plugin.release).try_for_each(|hook| hook(review))
}
