//! Nodes.

use crate::{Condition, Dict, Meta, Time, kind};
use object::Quantity;
use serde::Deserialize;

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Node {
    pub metadata: Meta,
    pub spec: NodeSpec,
    pub status: NodeStatus,
}

kind!(Node, "v1", "nodes", cluster);

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct NodeSpec {
    pub unschedulable: bool,
    pub taints: Vec<Taint>,
    #[serde(rename = "podCIDR")]
    pub pod_cidr: String,
    #[serde(rename = "podCIDRs")]
    pub pod_cidrs: Vec<String>,
    #[serde(rename = "providerID")]
    pub provider_id: String,
}

#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(default, rename_all = "camelCase")]
pub struct Taint {
    pub key: String,
    pub value: String,
    pub effect: String,
    pub time_added: Option<Time>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct NodeStatus {
    pub capacity: Dict<Quantity>,
    pub allocatable: Dict<Quantity>,
    pub conditions: Vec<Condition>,
    pub addresses: Vec<NodeAddress>,
    pub images: Vec<NodeImage>,
    pub volumes_attached: Vec<AttachedVolume>,
    pub volumes_in_use: Vec<String>,
    /// What it can do that other nodes may not be able to.
    pub declared_features: Vec<String>,
}

#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(default)]
pub struct NodeAddress {
    #[serde(rename = "type")]
    pub kind: String,
    pub address: String,
}

#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(default, rename_all = "camelCase")]
pub struct NodeImage {
    pub names: Vec<String>,
    pub size_bytes: i64,
}

#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(default, rename_all = "camelCase")]
pub struct AttachedVolume {
    pub name: String,
    pub device_path: String,
}

impl Node {
    pub fn condition(&self, kind: &str) -> Option<&Condition> {
        crate::condition(&self.status.conditions, kind)
    }

    pub fn is_ready(&self) -> bool {
        self.condition("Ready").is_some_and(|ready| ready.status == "True")
    }
}

impl crate::Toleration {
    /// Whether it lets a pod stay on, or come to, a node with this taint.
    pub fn tolerates(&self, taint: &Taint) -> bool {
        let effect = self.effect.is_empty() || self.effect == taint.effect;
        let key = self.key.is_empty() || self.key == taint.key;
        let number = |text: &str| text.parse::<i64>().ok();
        let value = match self.operator.as_str() {
            "" | "Equal" => self.value == taint.value,
            "Exists" => true,
            "Gt" => matches!((number(&taint.value), number(&self.value)), (Some(a), Some(b)) if a > b),
            "Lt" => matches!((number(&taint.value), number(&self.value)), (Some(a), Some(b)) if a < b),
            _ => false,
        };
        effect && key && value
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Toleration;

    #[test]
    fn tolerations_match_by_key_value_and_effect() {
        let taint = Taint { key: "a".into(), value: "5".into(), effect: "NoSchedule".into(), time_added: None };
        for (key, operator, value, effect, expected) in [
            ("a", "Equal", "5", "NoSchedule", true),
            ("a", "", "5", "", true),
            ("a", "", "6", "", false),
            ("a", "Exists", "", "NoExecute", false),
            ("", "Exists", "", "", true),
            ("b", "Exists", "", "", false),
            ("a", "Gt", "4", "", true),
            ("a", "Lt", "4", "", false),
        ] {
            let toleration = Toleration {
                key: key.into(),
                operator: operator.into(),
                value: value.into(),
                effect: effect.into(),
                toleration_seconds: None,
            };
            assert_eq!(toleration.tolerates(&taint), expected, "{toleration:?}");
        }
    }
}
