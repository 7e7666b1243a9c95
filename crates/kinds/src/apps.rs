//! Workloads that keep pods running.

use crate::{Condition, LabelSelector, Labels, Meta, PodTemplate, kind};
use object::Value;
use serde::Deserialize;

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct ReplicaSet {
    pub metadata: Meta,
    pub spec: ReplicaSetSpec,
    pub status: ReplicaSetStatus,
}

kind!(ReplicaSet, "apps/v1", "replicasets", namespaced,
    "orphan" => |object| object.metadata.orphaned());

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ReplicaSetSpec {
    pub replicas: i32,
    pub min_ready_seconds: i64,
    pub selector: LabelSelector,
    pub template: PodTemplate,
}

#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(default, rename_all = "camelCase")]
pub struct ReplicaSetStatus {
    pub replicas: i32,
    pub fully_labeled_replicas: i32,
    pub ready_replicas: i32,
    pub available_replicas: i32,
    pub terminating_replicas: Option<i32>,
    pub observed_generation: i64,
    pub conditions: Vec<Condition>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct ReplicationController {
    pub metadata: Meta,
    pub spec: ReplicationControllerSpec,
    pub status: ReplicaSetStatus,
}

kind!(ReplicationController, "v1", "replicationcontrollers", namespaced);

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ReplicationControllerSpec {
    pub replicas: i32,
    pub min_ready_seconds: i64,
    pub selector: Labels,
    pub template: PodTemplate,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Deployment {
    pub metadata: Meta,
    pub spec: DeploymentSpec,
    pub status: DeploymentStatus,
}

kind!(Deployment, "apps/v1", "deployments", namespaced);

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct DeploymentSpec {
    pub replicas: i32,
    pub selector: LabelSelector,
    pub template: PodTemplate,
    pub strategy: Strategy,
    pub min_ready_seconds: i64,
    pub revision_history_limit: Option<i32>,
    pub paused: bool,
    pub progress_deadline_seconds: Option<i32>,
}

/// How a workload replaces its pods; numbers may be percentages, so they stay JSON.
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(default, rename_all = "camelCase")]
pub struct Strategy {
    #[serde(rename = "type")]
    pub kind: String,
    pub rolling_update: RollingUpdate,
}

#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(default, rename_all = "camelCase")]
pub struct RollingUpdate {
    pub max_surge: Value,
    pub max_unavailable: Value,
    pub partition: i32,
}

#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(default, rename_all = "camelCase")]
pub struct DeploymentStatus {
    pub observed_generation: i64,
    pub replicas: i32,
    pub updated_replicas: i32,
    pub ready_replicas: i32,
    pub available_replicas: i32,
    pub unavailable_replicas: i32,
    pub terminating_replicas: Option<i32>,
    pub conditions: Vec<Condition>,
    pub collision_count: Option<i32>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct StatefulSet {
    pub metadata: Meta,
    pub spec: StatefulSetSpec,
    pub status: StatefulSetStatus,
}

kind!(StatefulSet, "apps/v1", "statefulsets", namespaced);

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct StatefulSetSpec {
    pub replicas: i32,
    pub selector: LabelSelector,
    pub template: PodTemplate,
    pub volume_claim_templates: Vec<Value>,
    pub service_name: String,
    pub pod_management_policy: String,
    pub update_strategy: Strategy,
    pub revision_history_limit: Option<i32>,
    pub min_ready_seconds: i64,
    pub persistent_volume_claim_retention_policy: ClaimRetention,
    pub ordinals: Ordinals,
}

#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(default, rename_all = "camelCase")]
pub struct ClaimRetention {
    pub when_deleted: String,
    pub when_scaled: String,
}

#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(default)]
pub struct Ordinals {
    pub start: i32,
}

#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(default, rename_all = "camelCase")]
pub struct StatefulSetStatus {
    pub observed_generation: i64,
    pub replicas: i32,
    pub ready_replicas: i32,
    pub current_replicas: i32,
    pub updated_replicas: i32,
    pub available_replicas: i32,
    pub current_revision: String,
    pub update_revision: String,
    pub collision_count: Option<i32>,
    pub conditions: Vec<Condition>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct DaemonSet {
    pub metadata: Meta,
    pub spec: DaemonSetSpec,
    pub status: DaemonSetStatus,
}

kind!(DaemonSet, "apps/v1", "daemonsets", namespaced);

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct DaemonSetSpec {
    pub selector: LabelSelector,
    pub template: PodTemplate,
    pub update_strategy: Strategy,
    pub min_ready_seconds: i64,
    pub revision_history_limit: Option<i32>,
}

#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(default, rename_all = "camelCase")]
pub struct DaemonSetStatus {
    pub current_number_scheduled: i32,
    pub number_misscheduled: i32,
    pub desired_number_scheduled: i32,
    pub number_ready: i32,
    pub observed_generation: i64,
    pub updated_number_scheduled: i32,
    pub number_available: i32,
    pub number_unavailable: i32,
    pub collision_count: Option<i32>,
    pub conditions: Vec<Condition>,
}

/// What a workload looked like once; the data is whatever its controller keeps.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct ControllerRevision {
    pub metadata: Meta,
    pub data: Value,
    pub revision: i64,
}

kind!(ControllerRevision, "apps/v1", "controllerrevisions", namespaced,
    "orphan" => |object| object.metadata.orphaned());
