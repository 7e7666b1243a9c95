//! Containers of pods: what they ask for, and how they are.

use crate::{Dict, Empty, List, Shared, Time};
use object::Quantity;
use serde::Deserialize;

#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq, Hash)]
#[serde(default, rename_all = "camelCase")]
pub struct Container {
    pub name: String,
    pub image: String,
    pub ports: List<ContainerPort>,
    pub resources: Resources,
    /// `Always` on an init container makes it a sidecar. Empty, the pod's own counts.
    pub restart_policy: String,
    /// The first that fits how it ended goes before the policy.
    pub restart_policy_rules: List<RestartRule>,
    pub resize_policy: List<ResizePolicy>,
}

#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq, Hash)]
#[serde(default, rename_all = "camelCase")]
pub struct RestartRule {
    pub action: String,
    pub exit_codes: Option<ExitCodes>,
}

#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq, Hash)]
#[serde(default)]
pub struct ExitCodes {
    pub operator: String,
    pub values: List<i32>,
}

#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq, Hash)]
#[serde(default, rename_all = "camelCase")]
pub struct ResizePolicy {
    pub resource_name: String,
    pub restart_policy: String,
}

/// What a node has to declare before a pod can be there that has all containers started again when one ends.
pub const RESTART_ALL: &str = "RestartAllContainersOnContainerExits";

impl Container {
    pub fn is_sidecar(&self) -> bool {
        self.restart_policy == "Always"
    }

    /// Whether all containers of its pod may have to be started again when it ends.
    pub fn restarts_all(&self) -> bool {
        self.restart_policy_rules.iter().any(|rule| rule.action == "RestartAllContainers")
    }
}

#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq, Hash)]
#[serde(default, rename_all = "camelCase")]
pub struct ContainerPort {
    pub name: String,
    pub container_port: i32,
    pub host_port: i32,
    #[serde(rename = "hostIP")]
    pub host_ip: String,
    pub protocol: String,
}

#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq, Hash)]
#[serde(default)]
pub struct Resources {
    pub requests: Dict<Quantity>,
    pub limits: Dict<Quantity>,
}

impl Empty for Resources {
    const EMPTY: &'static Self = &Resources { requests: Dict::new(), limits: Dict::new() };
    fn is_empty(&self) -> bool {
        self.requests.is_empty() && self.limits.is_empty()
    }
}

#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq, Hash)]
#[serde(default, rename_all = "camelCase")]
pub struct ContainerStatus {
    pub name: String,
    pub ready: bool,
    pub started: Option<bool>,
    pub restart_count: i32,
    pub state: ContainerState,
    pub last_state: ContainerState,
    /// What it has, and what it has been promised: not what it asks for while it is resized.
    pub resources: Shared<Resources>,
    pub allocated_resources: Shared<Dict<Quantity>>,
}

/// One of three; waiting if none is set.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq, Hash)]
#[serde(default)]
pub struct ContainerState {
    pub waiting: Option<Waiting>,
    pub running: Option<Running>,
    pub terminated: Option<Terminated>,
}

#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq, Hash)]
#[serde(default)]
pub struct Waiting {
    pub reason: String,
}

#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq, Hash)]
#[serde(default, rename_all = "camelCase")]
pub struct Running {
    pub started_at: Option<Time>,
}

#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq, Hash)]
#[serde(default, rename_all = "camelCase")]
pub struct Terminated {
    pub exit_code: i32,
    pub reason: String,
    pub started_at: Option<Time>,
    pub finished_at: Option<Time>,
}
