//! Leases.

use crate::{Meta, Time, kind};
use serde::Deserialize;

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Lease {
    pub metadata: Meta,
    pub spec: LeaseSpec,
}

kind!(Lease, "coordination.k8s.io/v1", "leases", namespaced);

#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(default, rename_all = "camelCase")]
pub struct LeaseSpec {
    pub holder_identity: String,
    pub lease_duration_seconds: i32,
    pub acquire_time: Option<Time>,
    pub renew_time: Option<Time>,
    pub lease_transitions: i32,
}
