//! Roles.

use crate::{LabelSelector, Meta, kind};
use object::Value;
use serde::Deserialize;

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ClusterRole {
    pub metadata: Meta,
    pub rules: Vec<Value>,
    pub aggregation_rule: Option<AggregationRule>,
}

kind!(ClusterRole, "rbac.authorization.k8s.io/v1", "clusterroles", cluster);

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct AggregationRule {
    pub cluster_role_selectors: Vec<LabelSelector>,
}
