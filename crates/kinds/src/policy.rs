//! Disruption budgets.

use crate::{Condition, LabelSelector, Meta, Time, kind};
use object::Value;
use serde::Deserialize;
use std::collections::BTreeMap;

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct PodDisruptionBudget {
    pub metadata: Meta,
    pub spec: PodDisruptionBudgetSpec,
    pub status: PodDisruptionBudgetStatus,
}

kind!(PodDisruptionBudget, "policy/v1", "poddisruptionbudgets", namespaced);

/// Numbers may be percentages, so they stay JSON.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct PodDisruptionBudgetSpec {
    pub min_available: Value,
    pub max_unavailable: Value,
    pub selector: LabelSelector,
    pub unhealthy_pod_eviction_policy: Option<String>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct PodDisruptionBudgetStatus {
    pub observed_generation: i64,
    pub disrupted_pods: BTreeMap<String, Time>,
    pub disruptions_allowed: i32,
    pub current_healthy: i32,
    pub desired_healthy: i32,
    pub expected_pods: i32,
    pub conditions: Vec<Condition>,
}
