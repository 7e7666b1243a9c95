//! The built-in control loops.
//!
//! Each is one file that reads from top to bottom: what it keeps true and what it leaves to others; `controller()`,
//! with what it watches; `observe`, from caches; `plan`, pure, with the time passed in; its tables of tests. And each
//! is one line below. Slow start, preconditions, back-off, events and metrics belong to `runtime`.

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
mod node_lifecycle;
mod pod_condition;
mod pod_gc;
mod replica_set;
mod replication_controller;
mod service_account;
mod stateful_set;
mod taint_eviction;
mod workload;

use runtime::Controller;

/// Every loop there is.
pub const ALL: &[fn() -> Controller] = &[
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
    service_account::controller,
    stateful_set::controller,
    taint_eviction::controller,
];
