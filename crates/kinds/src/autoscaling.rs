//! Autoscalers.

use crate::{Condition, Meta, Time, kind};
use object::Value;
use serde::Deserialize;

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct HorizontalPodAutoscaler {
    pub metadata: Meta,
    pub spec: HorizontalPodAutoscalerSpec,
    pub status: HorizontalPodAutoscalerStatus,
}

kind!(HorizontalPodAutoscaler, "autoscaling/v2", "horizontalpodautoscalers", namespaced);

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct HorizontalPodAutoscalerSpec {
    pub scale_target_ref: ScaleTarget,
    pub min_replicas: Option<i32>,
    pub max_replicas: i32,
    pub metrics: Vec<Value>,
    pub behavior: Option<Value>,
}

#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(default, rename_all = "camelCase")]
pub struct ScaleTarget {
    pub api_version: String,
    pub kind: String,
    pub name: String,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct HorizontalPodAutoscalerStatus {
    pub observed_generation: Option<i64>,
    pub last_scale_time: Option<Time>,
    pub current_replicas: i32,
    pub desired_replicas: i32,
    pub conditions: Vec<Condition>,
}
