//! Groups of pods that are placed as one.

use crate::{Condition, Key, Meta, Pod, kind};
use object::Value;
use serde::Deserialize;

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct PodGroup {
    pub metadata: Meta,
    pub spec: PodGroupSpec,
    pub status: PodGroupStatus,
}

kind!(PodGroup, "scheduling.k8s.io/v1alpha2", "podgroups", namespaced);

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct PodGroupSpec {
    pub scheduling_policy: PodGroupPolicy,
}

/// Exactly one of these.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct PodGroupPolicy {
    pub basic: Option<Value>,
    pub gang: Option<GangPolicy>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct GangPolicy {
    pub min_count: i32,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct PodGroupStatus {
    pub conditions: Vec<Condition>,
}

impl PodGroup {
    pub fn condition(&self, kind: &str) -> Option<&Condition> {
        self.status.conditions.iter().find(|condition| condition.kind == kind)
    }
}

/// The group that a pod is in.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq, Hash)]
#[serde(default, rename_all = "camelCase")]
pub struct SchedulingGroup {
    pub pod_group_name: String,
}

impl Pod {
    /// The group that it is placed with.
    pub fn group(&self) -> Option<Key> {
        let group = self.spec.scheduling_group.as_ref()?;
        Some(Key::new(self.metadata.namespace.as_str(), group.pod_group_name.as_str()))
    }
}
