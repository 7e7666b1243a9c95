//! Workloads that come to an end.

use crate::{Condition, LabelSelector, Meta, PodTemplate, Time, kind};
use object::Value;
use serde::Deserialize;

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Job {
    pub metadata: Meta,
    pub spec: JobSpec,
    pub status: JobStatus,
}

kind!(Job, "batch/v1", "jobs", namespaced);

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct JobSpec {
    pub parallelism: Option<i32>,
    pub completions: Option<i32>,
    pub completion_mode: String,
    pub active_deadline_seconds: Option<i64>,
    pub backoff_limit: Option<i32>,
    pub backoff_limit_per_index: Option<i32>,
    pub max_failed_indexes: Option<i32>,
    pub pod_failure_policy: Option<Value>,
    pub success_policy: Option<Value>,
    pub pod_replacement_policy: String,
    pub selector: LabelSelector,
    pub template: PodTemplate,
    pub ttl_seconds_after_finished: Option<i32>,
    pub suspend: bool,
    pub managed_by: Option<String>,
}

#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(default, rename_all = "camelCase")]
pub struct JobStatus {
    pub conditions: Vec<Condition>,
    pub start_time: Option<Time>,
    pub completion_time: Option<Time>,
    pub active: i32,
    pub ready: Option<i32>,
    pub terminating: Option<i32>,
    pub succeeded: i32,
    pub failed: i32,
    pub completed_indexes: String,
    pub failed_indexes: Option<String>,
    pub uncounted_terminated_pods: Option<Uncounted>,
}

#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(default)]
pub struct Uncounted {
    pub succeeded: Vec<String>,
    pub failed: Vec<String>,
}

impl Job {
    /// The condition that says how it ended, if it has.
    pub fn finished(&self) -> Option<&Condition> {
        let ends = |condition: &&Condition| matches!(condition.kind.as_str(), "Complete" | "Failed");
        self.status.conditions.iter().filter(ends).find(|condition| condition.status == "True")
    }
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct CronJob {
    pub metadata: Meta,
    pub spec: CronJobSpec,
    pub status: CronJobStatus,
}

kind!(CronJob, "batch/v1", "cronjobs", namespaced);

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct CronJobSpec {
    pub schedule: String,
    pub time_zone: Option<String>,
    pub starting_deadline_seconds: Option<i64>,
    pub concurrency_policy: String,
    pub suspend: bool,
    /// Labels, annotations and spec of the jobs it makes.
    pub job_template: Value,
    pub successful_jobs_history_limit: Option<i32>,
    pub failed_jobs_history_limit: Option<i32>,
}

#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(default, rename_all = "camelCase")]
pub struct CronJobStatus {
    pub active: Vec<ObjectReference>,
    pub last_schedule_time: Option<Time>,
    pub last_successful_time: Option<Time>,
}

/// Names an object of any kind.
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(default, rename_all = "camelCase")]
pub struct ObjectReference {
    pub api_version: String,
    pub kind: String,
    pub namespace: String,
    pub name: String,
    pub uid: String,
    pub field_path: String,
}
