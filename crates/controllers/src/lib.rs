//! The built-in control loops.
//!
//! Each is one file that reads from top to bottom: what it keeps true and what it leaves to others; `controller()`,
//! with what it watches; `observe`, from caches; `plan`, pure, with the time passed in; its tables of tests. And each
//! is one line below. Slow start, preconditions, back-off, events and metrics belong to `runtime`.

mod certificates;
mod deployment;
mod disruption;
mod endpoint_slice;
mod endpoint_slice_mirroring;
mod endpoints;
#[cfg(test)]
mod fixture;
mod garbage_collector;
mod history;
mod namespace;
mod node_ipam;
mod node_lifecycle;
mod pod_condition;
mod pod_gc;
mod replica_set;
mod replication_controller;
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
mod workload;

pub use settings::{Asked, Cidr, Settings, Signer};

use runtime::Controller;

/// Every loop there is.
pub fn all(settings: &Settings) -> Vec<Controller> {
    let plain = ALL.iter().map(|controller| controller());
    plain.chain(CONFIGURED.iter().map(|controller| controller(settings))).collect()
}

/// Loops that find everything they have to know in objects.
const ALL: &[fn() -> Controller] = &[
    deployment::controller,
    disruption::controller,
    endpoint_slice::controller,
    endpoint_slice_mirroring::controller,
    endpoints::controller,
    garbage_collector::controller,
    namespace::controller,
    node_lifecycle::controller,
    pod_gc::controller,
    replica_set::controller,
    replication_controller::controller,
    resource_quota::controller,
    role_aggregation::controller,
    service_account::controller,
    stateful_set::controller,
    taint_eviction::controller,
    token_cleaner::controller,
    ttl::controller,
];

/// Loops that have to be told something about the cluster.
const CONFIGURED: &[fn(&Settings) -> Controller] = &[
    certificates::controller,
    node_ipam::controller,
    root_ca::controller,
    service_account_token::controller,
    service_load_balancer::controller,
];
