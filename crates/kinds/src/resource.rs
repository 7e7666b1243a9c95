//! Devices: what drivers offer, what is asked for, and what was given.

use crate::{Condition, Meta, Node, NodeSelector, Taint, Time, Toleration, kind};
use object::{Quantity, Value};
use serde::{Deserialize, Deserializer};
use std::collections::{BTreeMap, BTreeSet};

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct ResourceClaim {
    pub metadata: Meta,
    pub spec: ResourceClaimSpec,
    pub status: ResourceClaimStatus,
}

kind!(ResourceClaim, "resource.k8s.io/v1", "resourceclaims", namespaced,
"pool" => |claim| {
    let pools = claim.results().map(|result| pool_name(&result.driver, &result.pool));
    pools.collect::<BTreeSet<String>>().into_iter().collect()
});

/// A pool of devices, as slices and claims are found by it.
pub fn pool_name(driver: &str, pool: &str) -> String {
    format!("{driver}/{pool}")
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct ResourceClaimSpec {
    pub devices: DeviceClaim,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct DeviceClaim {
    pub requests: Vec<DeviceRequest>,
    pub constraints: Vec<DeviceConstraint>,
    pub config: Vec<DeviceConfig>,
}

/// One way to satisfy it, or several of which the first that can be had counts.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct DeviceRequest {
    pub name: String,
    pub exactly: Option<ExactDeviceRequest>,
    pub first_available: Vec<ExactDeviceRequest>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ExactDeviceRequest {
    /// Where it is one of several.
    pub name: String,
    pub device_class_name: String,
    pub selectors: Vec<DeviceSelection>,
    pub allocation_mode: String,
    pub count: i64,
    pub admin_access: bool,
    pub tolerations: Vec<Toleration>,
    pub capacity: CapacityRequirements,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct CapacityRequirements {
    pub requests: BTreeMap<String, Quantity>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct DeviceSelection {
    pub cel: Option<CelSelector>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct CelSelector {
    pub expression: String,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct DeviceConstraint {
    /// Of all requests if none is named.
    pub requests: Vec<String>,
    pub match_attribute: Option<String>,
    pub distinct_attribute: Option<String>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct DeviceConfig {
    pub requests: Vec<String>,
    pub opaque: Value,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ResourceClaimStatus {
    pub allocation: Option<Allocation>,
    pub reserved_for: Vec<Consumer>,
    pub devices: Vec<AllocatedDeviceStatus>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Allocation {
    pub devices: AllocatedDevices,
    /// Absent, it can be used everywhere.
    pub node_selector: Option<WrittenSelector>,
    pub allocation_timestamp: Option<Time>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct AllocatedDevices {
    pub results: Vec<AllocatedDevice>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct AllocatedDevice {
    pub driver: String,
    pub pool: String,
    pub device: String,
    pub admin_access: bool,
    pub tolerations: Vec<Toleration>,
    #[serde(rename = "shareID")]
    pub share_id: Option<String>,
    pub consumed_capacity: BTreeMap<String, Quantity>,
    pub binding_conditions: Vec<String>,
    pub binding_failure_conditions: Vec<String>,
}

/// What the driver says of a device.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct AllocatedDeviceStatus {
    pub driver: String,
    pub pool: String,
    pub device: String,
    pub conditions: Vec<Condition>,
}

#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(default, rename_all = "camelCase")]
pub struct Consumer {
    pub api_group: String,
    pub resource: String,
    pub name: String,
    pub uid: String,
}

impl ResourceClaim {
    pub fn is_reserved_for(&self, uid: &str) -> bool {
        self.status.reserved_for.iter().any(|consumer| consumer.uid == uid)
    }

    /// The devices it has.
    pub fn results(&self) -> impl Iterator<Item = &AllocatedDevice> {
        self.status.allocation.iter().flat_map(|allocation| &allocation.devices.results)
    }
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct ResourceClaimTemplate {
    pub metadata: Meta,
    /// Metadata and spec of the claims that are made from it.
    pub spec: Value,
}

kind!(ResourceClaimTemplate, "resource.k8s.io/v1", "resourceclaimtemplates", namespaced);

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct DeviceClass {
    pub metadata: Meta,
    pub spec: DeviceClassSpec,
}

kind!(DeviceClass, "resource.k8s.io/v1", "deviceclasses", cluster,
"resource" => |class| {
    let own = format!("{DEVICE_CLASS_RESOURCE}{}", class.metadata.name);
    [own, class.spec.extended_resource_name.clone()].into_iter().filter(|name| !name.is_empty()).collect()
});

/// Before the name of a class: the resource that its devices can be asked for as, whatever else they are called.
pub const DEVICE_CLASS_RESOURCE: &str = "deviceclass.resource.kubernetes.io/";

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct DeviceClassSpec {
    pub selectors: Vec<DeviceSelection>,
    pub config: Vec<DeviceConfig>,
    pub extended_resource_name: String,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct ResourceSlice {
    pub metadata: Meta,
    pub spec: ResourceSliceSpec,
}

kind!(ResourceSlice, "resource.k8s.io/v1", "resourceslices", cluster,
"pool" => |slice| vec![pool_name(&slice.spec.driver, &slice.spec.pool.name)]);

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ResourceSliceSpec {
    pub driver: String,
    pub pool: ResourcePool,
    #[serde(flatten)]
    pub reach: Reach,
    /// Whether devices say themselves which nodes reach them.
    pub per_device_node_selection: bool,
    pub devices: Vec<Device>,
    pub shared_counters: Vec<CounterSet>,
}

#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(default, rename_all = "camelCase")]
pub struct ResourcePool {
    pub name: String,
    pub generation: i64,
    pub resource_slice_count: i64,
}

/// Which nodes reach a device.
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(default, rename_all = "camelCase")]
pub struct Reach {
    pub node_name: String,
    pub node_selector: Option<WrittenSelector>,
    pub all_nodes: bool,
}

impl Reach {
    pub fn includes(&self, node: &Node) -> bool {
        match &self.node_selector {
            _ if !self.node_name.is_empty() => self.node_name == node.metadata.name,
            _ if self.all_nodes => true,
            Some(written) => written.selector.matches(node),
            None => false,
        }
    }
}

/// A selector of nodes, and how it is written: an allocation repeats it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct WrittenSelector {
    pub json: Value,
    pub selector: NodeSelector,
}

impl<'de> Deserialize<'de> for WrittenSelector {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let json = Value::deserialize(deserializer)?;
        Ok(WrittenSelector { selector: NodeSelector::read(&json), json })
    }
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Device {
    pub name: String,
    /// By qualified name, each an object of one field that says of which type it is.
    pub attributes: Value,
    pub capacity: BTreeMap<String, DeviceCapacity>,
    pub consumes_counters: Vec<CounterSet>,
    #[serde(flatten)]
    pub reach: Reach,
    pub taints: Vec<Taint>,
    pub binds_to_node: bool,
    pub binding_conditions: Vec<String>,
    pub binding_failure_conditions: Vec<String>,
    pub allow_multiple_allocations: bool,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct DeviceCapacity {
    pub value: Quantity,
    pub request_policy: Option<RequestPolicy>,
}

/// How much of a capacity one request may take.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct RequestPolicy {
    pub default: Option<Quantity>,
    pub valid_values: Vec<Quantity>,
    pub valid_range: Option<CapacityRange>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct CapacityRange {
    pub min: Option<Quantity>,
    pub max: Option<Quantity>,
    pub step: Option<Quantity>,
}

/// Counters of a set: those there are, or those that a device uses up.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct CounterSet {
    #[serde(alias = "counterSet")]
    pub name: String,
    pub counters: BTreeMap<String, Counter>,
}

#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Counter {
    pub value: Quantity,
}

/// Taints devices that are selected, whatever their slices say.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct DeviceTaintRule {
    pub metadata: Meta,
    pub spec: DeviceTaintRuleSpec,
    pub status: DeviceTaintRuleStatus,
}

kind!(DeviceTaintRule, "resource.k8s.io/v1beta2", "devicetaintrules", cluster);

#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(default, rename_all = "camelCase")]
pub struct DeviceTaintRuleSpec {
    /// Absent, it selects nothing; empty, everything.
    pub device_selector: Option<DeviceTaintSelector>,
    pub taint: Taint,
}

#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(default)]
pub struct DeviceTaintSelector {
    pub driver: Option<String>,
    pub pool: Option<String>,
    pub device: Option<String>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct DeviceTaintRuleStatus {
    pub conditions: Vec<Condition>,
}

impl DeviceTaintRule {
    pub fn selects(&self, driver: &str, pool: &str, device: &str) -> bool {
        let is = |wanted: &Option<String>, name: &str| wanted.as_ref().is_none_or(|wanted| wanted == name);
        let selector = self.spec.device_selector.as_ref();
        selector.is_some_and(|by| is(&by.driver, driver) && is(&by.pool, pool) && is(&by.device, device))
    }
}
