//! The built-in control loops.
//!
//! Each is one file that reads from top to bottom: what it keeps true and what it leaves to others; `controller()`,
//! with what it watches; `observe`, from caches; `plan`, pure, with the time passed in; its tables of tests. And each
//! is one line below. Slow start, preconditions, back-off, events and metrics belong to `runtime`.

mod attach_detach;
mod bootstrap_signer;
mod certificates;
mod cron_job;
mod daemon_set;
mod departure;
mod deployment;
mod device_taint_eviction;
mod disruption;
mod endpoint_slice;
mod endpoint_slice_mirroring;
mod endpoints;
mod ephemeral_volume;
#[cfg(test)]
mod fixture;
mod garbage_collector;
mod history;
mod horizontal_pod_autoscaler;
mod job;
mod legacy_token_cleaner;
mod namespace;
mod node_ipam;
mod node_lifecycle;
mod persistent_volume;
mod persistent_volume_expander;
mod pod_condition;
mod pod_gc;
mod protection;
mod replica_set;
mod replication_controller;
mod resource_claim;
mod resource_quota;
mod role_aggregation;
mod root_ca;
mod service_account;
mod service_account_token;
mod service_load_balancer;
mod settings;
mod stateful_set;
mod taint_eviction;
mod token_cleaner;
mod ttl;
mod ttl_after_finished;
mod workload;

pub use settings::{Asked, Cidr, Settings, Signer};

use runtime::Controller;

/// Every loop there is.
pub fn all(settings: &Settings) -> Vec<Controller> {
    let plain = ALL.iter().map(|controller| controller());
    let previews = PREVIEWS.iter().filter(|(version, _)| settings.previews.contains(*version));
    let previews = previews.map(|(_, controller)| controller());
    plain.chain(CONFIGURED.iter().map(|controller| controller(settings))).chain(previews).collect()
}

type Make = fn() -> Controller;

/// Loops that find everything they have to know in objects. They hear of a change in this order: who makes pods comes
/// first, for that is what users wait for.
const ALL: &[Make] = &[
    replica_set::controller,
    deployment::controller,
    stateful_set::controller,
    daemon_set::controller,
    job::controller,
    replication_controller::controller,
    attach_detach::controller,
    bootstrap_signer::controller,
    cron_job::controller,
    disruption::controller,
    endpoint_slice::controller,
    endpoint_slice_mirroring::controller,
    endpoints::controller,
    ephemeral_volume::controller,
    garbage_collector::controller,
    horizontal_pod_autoscaler::controller,
    legacy_token_cleaner::controller,
    namespace::controller,
    persistent_volume::controller,
    persistent_volume_expander::controller,
    pod_gc::controller,
    protection::attributes_classes,
    protection::claims,
    protection::volumes,
    resource_claim::controller,
    resource_quota::controller,
    role_aggregation::controller,
    service_account::controller,
    taint_eviction::controller,
    token_cleaner::controller,
    ttl::controller,
    ttl_after_finished::controller,
];

/// Loops that have to be told something about the cluster.
const CONFIGURED: &[fn(&Settings) -> Controller] = &[
    certificates::controller,
    device_taint_eviction::controller,
    node_ipam::controller,
    node_lifecycle::controller,
    root_ca::controller,
    service_account_token::controller,
    service_load_balancer::controller,
];

/// Loops for what is not served everywhere.
const PREVIEWS: &[(&str, Make)] = &[("scheduling.k8s.io/v1alpha2", protection::pod_groups)];
