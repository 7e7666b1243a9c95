//! Kinds of the core group that are neither pods nor nodes nor storage.

use crate::{Condition, Dict, Labels, Meta, Object, ObjectReference, kind};
use object::{Quantity, Value};
use serde::Deserialize;

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Namespace {
    pub metadata: Meta,
    pub spec: NamespaceSpec,
    pub status: NamespaceStatus,
}

kind!(Namespace, "v1", "namespaces", cluster);

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct NamespaceSpec {
    pub finalizers: Vec<String>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct NamespaceStatus {
    pub phase: String,
    pub conditions: Vec<Condition>,
}

/// Without its data, which may be large, and which loops want of few: [`Object::data`].
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct ConfigMap {
    pub metadata: Meta,
}

kind!(ConfigMap, "v1", "configmaps", namespaced,
"behavior" => |map| {
    let says = map.metadata.labels.contains_key(SIMULATED_BEHAVIOR);
    Vec::from_iter(says.then(|| map.metadata.namespace.clone()))
});

/// A label of ConfigMaps that say how simulated pods and nodes behave.
pub const SIMULATED_BEHAVIOR: &str = "simulated.setpoint.dev/behavior";

/// Without its data, as above.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Secret {
    pub metadata: Meta,
    #[serde(rename = "type")]
    pub kind: String,
}

kind!(Secret, "v1", "secrets", namespaced);

impl Object<ConfigMap> {
    /// Read anew each time.
    pub fn data(&self) -> Dict<String> {
        self.part("data")
    }
}

impl Object<Secret> {
    /// In base64; read anew each time.
    pub fn data(&self) -> Dict<String> {
        self.part("data")
    }
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct ServiceAccount {
    pub metadata: Meta,
    pub secrets: Vec<ObjectReference>,
}

kind!(ServiceAccount, "v1", "serviceaccounts", namespaced);

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Service {
    pub metadata: Meta,
    pub spec: ServiceSpec,
    pub status: ServiceStatus,
}

kind!(Service, "v1", "services", namespaced);

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ServiceSpec {
    #[serde(rename = "type")]
    pub kind: String,
    pub selector: Labels,
    pub ports: Vec<ServicePort>,
    #[serde(rename = "clusterIP")]
    pub cluster_ip: String,
    #[serde(rename = "clusterIPs")]
    pub cluster_ips: Vec<String>,
    pub ip_families: Vec<String>,
    pub publish_not_ready_addresses: bool,
    pub internal_traffic_policy: String,
    pub external_traffic_policy: String,
    pub traffic_distribution: Option<String>,
    pub load_balancer_class: Option<String>,
    #[serde(rename = "loadBalancerIP")]
    pub load_balancer_ip: String,
    pub external_name: String,
    #[serde(rename = "externalIPs")]
    pub external_ips: Vec<String>,
    pub session_affinity: String,
    pub health_check_node_port: i32,
}

impl Service {
    /// Whether it sends to pods with these labels. Without a selector it selects nothing: others say where it leads.
    pub fn selects(&self, labels: &Labels) -> bool {
        self.has_selector() && self.spec.selector.iter().all(|(key, value)| labels.get(key) == Some(value))
    }

    pub fn has_selector(&self) -> bool {
        !self.spec.selector.is_empty()
    }

    /// Whether it has no address of its own.
    pub fn is_headless(&self) -> bool {
        matches!(self.spec.cluster_ip.as_str(), "" | "None")
    }
}

#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(default, rename_all = "camelCase")]
pub struct ServicePort {
    pub name: String,
    pub protocol: String,
    pub port: i32,
    /// A number, or the name of a port of a container.
    pub target_port: Value,
    pub node_port: i32,
    pub app_protocol: Option<String>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ServiceStatus {
    pub load_balancer: Value,
    pub conditions: Vec<Condition>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Endpoints {
    pub metadata: Meta,
    pub subsets: Vec<EndpointSubset>,
}

kind!(Endpoints, "v1", "endpoints", namespaced);

#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(default, rename_all = "camelCase")]
pub struct EndpointSubset {
    pub addresses: Vec<EndpointAddress>,
    pub not_ready_addresses: Vec<EndpointAddress>,
    pub ports: Vec<EndpointsPort>,
}

#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(default, rename_all = "camelCase")]
pub struct EndpointAddress {
    pub ip: String,
    pub hostname: String,
    pub node_name: Option<String>,
    pub target_ref: Option<ObjectReference>,
}

#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq, PartialOrd, Ord)]
#[serde(default, rename_all = "camelCase")]
pub struct EndpointsPort {
    pub name: String,
    pub port: i32,
    pub protocol: String,
    pub app_protocol: Option<String>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct ResourceQuota {
    pub metadata: Meta,
    pub spec: ResourceQuotaSpec,
    pub status: ResourceQuotaStatus,
}

kind!(ResourceQuota, "v1", "resourcequotas", namespaced);

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ResourceQuotaSpec {
    pub hard: Dict<Quantity>,
    pub scopes: Vec<String>,
    pub scope_selector: Option<Value>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct ResourceQuotaStatus {
    pub hard: Dict<Quantity>,
    pub used: Dict<Quantity>,
}
