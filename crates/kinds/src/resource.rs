//! Claims of devices.

use crate::{Meta, kind};
use object::Value;
use serde::Deserialize;

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct ResourceClaim {
    pub metadata: Meta,
    pub spec: Value,
    pub status: ResourceClaimStatus,
}

kind!(ResourceClaim, "resource.k8s.io/v1", "resourceclaims", namespaced);

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ResourceClaimStatus {
    pub allocation: Option<Value>,
    pub reserved_for: Vec<Consumer>,
}

#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(default, rename_all = "camelCase")]
pub struct Consumer {
    pub api_group: String,
    pub resource: String,
    pub name: String,
    pub uid: String,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct ResourceClaimTemplate {
    pub metadata: Meta,
    /// Metadata and spec of the claims that are made from it.
    pub spec: Value,
}

kind!(ResourceClaimTemplate, "resource.k8s.io/v1", "resourceclaimtemplates", namespaced);
