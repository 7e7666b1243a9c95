//! The built-in control loops.
//!
//! Each is one file that reads from top to bottom: what it keeps true and what it leaves to others; `controller()`,
//! with what it watches; `observe`, from caches; `plan`, pure, with the time passed in; its tables of tests. And each
//! is one line below. Slow start, preconditions, back-off, events and metrics belong to `runtime`.

mod attach_detach;
mod cron_job;
mod daemon_set;
mod deployment;
mod ephemeral_volume;
#[cfg(test)]
mod fixture;
mod garbage_collector;
mod history;
mod horizontal_pod_autoscaler;
mod job;
mod namespace;
mod node_lifecycle;
mod persistent_volume;
mod persistent_volume_expander;
mod protection;
mod replica_set;
mod replication_controller;
mod resource_claim;
mod service_account;
mod stateful_set;
mod ttl_after_finished;
mod workload;

use runtime::Controller;

/// Every loop there is.
pub const ALL: &[fn() -> Controller] = &[
    attach_detach::controller,
    cron_job::controller,
    daemon_set::controller,
    deployment::controller,
    ephemeral_volume::controller,
    garbage_collector::controller,
    horizontal_pod_autoscaler::controller,
    job::controller,
    namespace::controller,
    node_lifecycle::controller,
    persistent_volume::controller,
    persistent_volume_expander::controller,
    protection::attributes_classes,
    protection::claims,
    protection::volumes,
    replica_set::controller,
    replication_controller::controller,
    resource_claim::controller,
    service_account::controller,
    stateful_set::controller,
    ttl_after_finished::controller,
];
