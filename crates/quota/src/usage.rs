//! What an object uses of a quota: which amounts it counts towards, how much of each, and which scopes it is in.

use crate::Amounts;
use crate::pod_resources::{self, Side};
use object::{ApiError, Quantity, Value, View, json, time};
use std::collections::{BTreeMap, BTreeSet};

/// How objects of a resource are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counted<'a> {
    Pods,
    Services,
    Claims,
    DeviceClaims,
    /// By their number only. The name of the table is that of the count.
    Others(&'a str),
}

const POD_RESOURCES: [&str; 3] = ["cpu", "memory", "ephemeral-storage"];
/// Resources that were countable before any resource was, under their own name.
const OLD_NAMES: [&str; 4] = ["configmaps", "resourcequotas", "replicationcontrollers", "secrets"];
/// Not counted at all: there may be many, and they go by themselves.
const IGNORED: [&str; 1] = ["events"];
const BY_STORAGE_CLASS: &str = ".storageclass.storage.k8s.io/";
const BY_DEVICE_CLASS: &str = ".deviceclass.resource.k8s.io/devices";
const IMPLICIT_DEVICE_CLASS: &str = "deviceclass.resource.kubernetes.io/";
/// What a request for all devices is counted as: the most that a claim can be given.
const ALL_DEVICES: i64 = 32;

impl<'a> Counted<'a> {
    pub fn of(table: &'a str) -> Option<Self> {
        match table {
            "pods" => Some(Counted::Pods),
            "services" => Some(Counted::Services),
            "persistentvolumeclaims" => Some(Counted::Claims),
            "resourceclaims.resource.k8s.io" => Some(Counted::DeviceClaims),
            table if IGNORED.contains(&table) => None,
            table => Some(Counted::Others(table)),
        }
    }

    /// Whether an amount that a quota limits is about these objects.
    pub fn counts(self, name: &str) -> bool {
        let count = name.strip_prefix("count/");
        match self {
            Counted::Pods => count == Some("pods") || name == "pods" || is_pod_resource(name),
            Counted::Services => {
                count == Some("services")
                    || matches!(name, "services" | "services.nodeports" | "services.loadbalancers")
            }
            Counted::Claims => {
                let plain = name.rsplit_once(BY_STORAGE_CLASS).map_or(name, |(_, plain)| plain);
                count == Some("persistentvolumeclaims")
                    || matches!(plain, "persistentvolumeclaims" | "requests.storage")
            }
            Counted::DeviceClaims => count == Some("resourceclaims.resource.k8s.io") || name.ends_with(BY_DEVICE_CLASS),
            Counted::Others(table) => count == Some(table) || name == table && OLD_NAMES.contains(&table),
        }
    }

    /// What one object uses.
    pub fn usage(self, object: &Value, now: i64) -> Result<Amounts, ApiError> {
        let mut used = Amounts::default();
        let one = Quantity::from_units(1);
        match self {
            Counted::Pods => pod_usage(object, now, &mut used)?,
            Counted::Services => service_usage(object, &mut used),
            Counted::Claims => claim_usage(object, &mut used)?,
            Counted::DeviceClaims => device_usage(object, &mut used),
            Counted::Others(table) => {
                used.set(format!("count/{table}"), one);
                if OLD_NAMES.contains(&table) {
                    used.set(table, one);
                }
            }
        }
        Ok(used)
    }

    /// Whether an object is in a scope. Only pods and claims are in any.
    pub fn in_scope(self, object: &Value, scope: &Value) -> bool {
        match self {
            Counted::Pods => pod_in_scope(object, scope),
            Counted::Claims if scope.text("scopeName") == "VolumeAttributesClass" => {
                let classes = attribute_classes(object);
                match classes.is_empty() {
                    true => selects(scope, None),
                    false => classes.iter().any(|class| selects(scope, Some(class))),
                }
            }
            _ => false,
        }
    }

    /// Whether the change of an object's status changes what it uses.
    pub fn status_matters(self, new: &Value, old: &Value) -> bool {
        let allocated = |claim: &Value| claim.at("status").at("allocatedResources").at("storage").clone();
        self == Counted::Claims
            && (allocated(new) != allocated(old) || attribute_classes(new) != attribute_classes(old))
    }

    /// What an object must say because a quota limits it, in the words of the refusal.
    pub fn unsaid<'n>(self, object: &Value, limited: impl Iterator<Item = &'n str>) -> Option<String> {
        if self != Counted::Pods || pod_resources::has_pod_level(object) {
            return None;
        }
        let mut missing: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        let spec = object.at("spec");
        for name in limited {
            let (field, resource) = match name.split_once('.') {
                None => ("requests", name),
                Some(parts) => parts,
            };
            if !matches!((field, resource), ("requests" | "limits", "cpu" | "memory")) {
                continue;
            }
            let containers = spec.items("containers").iter().chain(spec.items("initContainers"));
            for container in containers.filter(|container| !container.at("resources").at(field).has(resource)) {
                missing.entry(name).or_default().insert(container.text("name"));
            }
        }
        let list = |names: &BTreeSet<&str>| names.iter().copied().collect::<Vec<_>>().join(",");
        let texts: Vec<_> = missing.iter().map(|(name, of)| format!("{name} for: {}", list(of))).collect();
        (!texts.is_empty()).then(|| format!("must specify {}", texts.join("; ")))
    }
}

fn is_pod_resource(name: &str) -> bool {
    let (side, resource) = match name.split_once('.') {
        Some((side @ ("requests" | "limits"), resource)) => (side, resource),
        _ => ("", name),
    };
    POD_RESOURCES.contains(&resource)
        || side != "limits" && resource.starts_with("hugepages-")
        || side == "requests" && is_extended(resource)
}

/// Resources that nodes or device drivers bring with them.
fn is_extended(name: &str) -> bool {
    name.contains('/') && !name.contains("kubernetes.io/") || name.starts_with(IMPLICIT_DEVICE_CLASS)
}

fn pod_usage(pod: &Value, now: i64, used: &mut Amounts) -> Result<(), ApiError> {
    let one = Quantity::from_units(1);
    used.set("count/pods", one);
    if is_over(pod, now) {
        return Ok(());
    }
    used.set("pods", one);
    for (name, quantity) in pod_resources::charged(pod, Side::Requests)?.iter() {
        if POD_RESOURCES.contains(&name) || name.starts_with("hugepages-") {
            used.set(name, quantity);
            used.set(format!("requests.{name}"), quantity);
        } else if is_extended(name) {
            used.set(format!("requests.{name}"), quantity);
        }
    }
    for (name, quantity) in pod_resources::charged(pod, Side::Limits)?.iter() {
        if POD_RESOURCES.contains(&name) {
            used.set(format!("limits.{name}"), quantity);
        }
    }
    Ok(())
}

/// Whether a pod uses nothing any more: it has ended, or should have gone long ago.
fn is_over(pod: &Value, now: i64) -> bool {
    let metadata = pod.at("metadata");
    let grace = metadata.int("deletionGracePeriodSeconds");
    let due = time::parse(metadata.text("deletionTimestamp")).zip(grace);
    matches!(pod.at("status").text("phase"), "Failed" | "Succeeded")
        || due.is_some_and(|((deletion, _), grace)| now > deletion.saturating_add(grace))
}

fn service_usage(service: &Value, used: &mut Amounts) {
    let spec = service.at("spec");
    let ports = spec.items("ports");
    let with_node_port = || ports.iter().filter(|port| port.int("nodePort").unwrap_or(0) != 0).count();
    let (balancers, node_ports) = match spec.text("type") {
        "NodePort" => (0, ports.len()),
        "LoadBalancer" if spec.at("allocateLoadBalancerNodePorts") == false => (1, with_node_port()),
        "LoadBalancer" => (1, ports.len()),
        _ => (0, 0),
    };
    let counts = [("services", 1), ("count/services", 1), ("services.loadbalancers", balancers)];
    counts.into_iter().for_each(|(name, count)| used.set(name, Quantity::from_units(count)));
    used.set("services.nodeports", Quantity::from_units(i64::try_from(node_ports).unwrap_or(i64::MAX)));
}

fn claim_usage(claim: &Value, used: &mut Amounts) -> Result<(), ApiError> {
    used.set("count/persistentvolumeclaims", Quantity::from_units(1));
    let mut own = Amounts::default();
    own.set("persistentvolumeclaims", Quantity::from_units(1));
    let asked = Amounts::read(claim.at("spec").at("resources").at("requests"))?;
    let allocated = Amounts::read(claim.at("status").at("allocatedResources"))?;
    if let Some(storage) = asked.get("storage") {
        let storage = allocated.get("storage").map_or(storage, |allocated| allocated.max(storage));
        let whole = Quantity::from_units(storage.units());
        own.set("requests.storage", if whole == storage { storage } else { whole });
    }
    let class = class_of(claim);
    for (name, quantity) in own.iter().filter(|_| !class.is_empty()) {
        used.set(format!("{class}{BY_STORAGE_CLASS}{name}"), quantity);
    }
    used.add(&own);
    Ok(())
}

/// How a claim named its class before there was a field for it.
pub const CLASS_ANNOTATION: &str = "volume.beta.kubernetes.io/storage-class";

/// The class that a claim names, in either way; empty if none.
pub fn class_of(claim: &Value) -> &str {
    match claim.path(&["metadata", "annotations", CLASS_ANNOTATION]).as_str() {
        Some(class) => class,
        None => claim.at("spec").text("storageClassName"),
    }
}

fn attribute_classes(claim: &Value) -> BTreeSet<String> {
    let status = claim.at("status");
    let names = [
        claim.at("spec").text("volumeAttributesClassName"),
        status.text("currentVolumeAttributesClassName"),
        status.at("modifyVolumeStatus").text("targetVolumeAttributesClassName"),
    ];
    names.into_iter().filter(|name| !name.is_empty()).map(str::to_owned).collect()
}

fn device_usage(claim: &Value, used: &mut Amounts) {
    used.set("count/resourceclaims.resource.k8s.io", Quantity::from_units(1));
    for request in claim.at("spec").at("devices").items("requests") {
        // Of alternatives one is taken, so each class counts as often as the most demanding one asks for it.
        let mut most = Amounts::default();
        let exactly = request.has("exactly").then(|| request.at("exactly"));
        for choice in request.items("firstAvailable").iter().chain(exactly) {
            let devices = match choice.text("allocationMode") {
                "ExactCount" => choice.int("count").unwrap_or(0),
                "All" => ALL_DEVICES,
                _ => 0,
            };
            let mut asked = Amounts::default();
            asked.set(format!("{}{BY_DEVICE_CLASS}", choice.text("deviceClassName")), Quantity::from_units(devices));
            most.raise_to(&asked);
        }
        used.add(&most);
    }
}

fn pod_in_scope(pod: &Value, scope: &Value) -> bool {
    let spec = pod.at("spec");
    let ends = spec.int("activeDeadlineSeconds").is_some_and(|seconds| seconds >= 0);
    match scope.text("scopeName") {
        "Terminating" => ends,
        "NotTerminating" => !ends,
        "BestEffort" => is_best_effort(pod),
        "NotBestEffort" => !is_best_effort(pod),
        "PriorityClass" => selects(scope, Some(spec.text("priorityClassName")).filter(|name| !name.is_empty())),
        "CrossNamespacePodAffinity" => looks_into_other_namespaces(spec.at("affinity")),
        _ => false,
    }
}

/// Whether a scope selects the name of a class, or having none.
fn selects(scope: &Value, class: Option<&str>) -> bool {
    let named = class.is_some_and(|class| scope.items("values").iter().any(|value| value == class));
    match scope.text("operator") {
        "In" => named,
        "NotIn" => !named,
        "Exists" => class.is_some(),
        "DoesNotExist" => class.is_none(),
        _ => false,
    }
}

/// Whether a pod asks for no processor time and no memory at all.
fn is_best_effort(pod: &Value) -> bool {
    let spec = pod.at("spec");
    let asks = |of: &Value| {
        let resources = of.at("resources");
        let mut amounts = ["requests", "limits"].iter().flat_map(|field| resources.entries(field));
        amounts.any(|(name, amount)| matches!(name, "cpu" | "memory") && amount != "0")
    };
    match pod.at("status").text("qosClass") {
        "" if spec.has("resources") => !asks(spec),
        "" => !spec.items("containers").iter().chain(spec.items("initContainers")).any(asks),
        class => class == "BestEffort",
    }
}

fn looks_into_other_namespaces(affinity: &Value) -> bool {
    let elsewhere = |term: &Value| !term.items("namespaces").is_empty() || term.has("namespaceSelector");
    ["podAffinity", "podAntiAffinity"].iter().map(|kind| affinity.at(kind)).any(|kind| {
        let preferred = kind.items("preferredDuringSchedulingIgnoredDuringExecution");
        kind.items("requiredDuringSchedulingIgnoredDuringExecution").iter().any(elsewhere)
            || preferred.iter().any(|weighted| elsewhere(weighted.at("podAffinityTerm")))
    })
}

/// Whether an object is in all scopes of a quota.
pub fn applies(quota: &Value, counted: Counted<'_>, object: &Value) -> bool {
    let spec = quota.at("spec");
    let plain = |scope: &Value| json!({ "scopeName": scope, "operator": "Exists" });
    spec.items("scopes").iter().all(|scope| counted.in_scope(object, &plain(scope)))
        && spec.at("scopeSelector").items("matchExpressions").iter().all(|scope| counted.in_scope(object, scope))
}

/// What objects of one resource use of a quota.
pub fn used<'a>(
    quota: &Value,
    counted: Counted<'_>,
    objects: impl IntoIterator<Item = &'a Value>,
    now: i64,
) -> Result<Amounts, ApiError> {
    let mut used = Amounts::default();
    for object in objects.into_iter().filter(|object| applies(quota, counted, object)) {
        used.add(&counted.usage(object, now)?);
    }
    Ok(used)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_amount_is_about_one_kind_of_object() {
        for (name, table) in [
            ("pods", "pods"),
            ("count/pods", "pods"),
            ("cpu", "pods"),
            ("limits.memory", "pods"),
            ("requests.ephemeral-storage", "pods"),
            ("requests.hugepages-2Mi", "pods"),
            ("requests.example.com/gpu", "pods"),
            ("services.nodeports", "services"),
            ("requests.storage", "persistentvolumeclaims"),
            ("gold.storageclass.storage.k8s.io/requests.storage", "persistentvolumeclaims"),
            ("gpu.deviceclass.resource.k8s.io/devices", "resourceclaims.resource.k8s.io"),
            ("secrets", "secrets"),
            ("count/secrets", "secrets"),
            ("count/deployments.apps", "deployments.apps"),
        ] {
            let tables = [
                "pods",
                "services",
                "persistentvolumeclaims",
                "resourceclaims.resource.k8s.io",
                "secrets",
                "deployments.apps",
            ];
            let counting: Vec<_> =
                tables.into_iter().filter(|table| Counted::of(table).unwrap().counts(name)).collect();
            assert_eq!(counting, [table], "{name}");
        }
        assert_eq!(Counted::of("events"), None);
    }

    #[test]
    fn an_object_uses_what_it_asks_for() {
        let container = json!({ "resources": {
            "requests": { "cpu": "1", "example.com/gpu": "2", "hugepages-2Mi": "4Mi" }, "limits": { "cpu": "2" },
        } });
        for (table, object, used) in [
            (
                "pods",
                json!({ "spec": { "containers": [container] } }),
                "count/pods=1,cpu=1,hugepages-2Mi=4Mi,limits.cpu=2,pods=1,requests.cpu=1,requests.example.com/gpu=2,requests.hugepages-2Mi=4Mi",
            ),
            ("pods", json!({ "spec": { "containers": [container] }, "status": { "phase": "Failed" } }), "count/pods=1"),
            (
                "services",
                json!({ "spec": { "type": "LoadBalancer", "ports": [{}, {}] } }),
                "count/services=1,services=1,services.loadbalancers=1,services.nodeports=2",
            ),
            (
                "services",
                json!({ "spec": { "type": "LoadBalancer", "allocateLoadBalancerNodePorts": false, "ports": [{ "nodePort": 30000 }, {}] } }),
                "count/services=1,services=1,services.loadbalancers=1,services.nodeports=1",
            ),
            (
                "services",
                json!({ "spec": { "type": "ClusterIP", "ports": [{}] } }),
                "count/services=1,services=1,services.loadbalancers=0,services.nodeports=0",
            ),
            (
                "persistentvolumeclaims",
                json!({ "spec": { "storageClassName": "gold", "resources": { "requests": { "storage": "1Gi" } } } }),
                "count/persistentvolumeclaims=1,gold.storageclass.storage.k8s.io/persistentvolumeclaims=1,gold.storageclass.storage.k8s.io/requests.storage=1Gi,persistentvolumeclaims=1,requests.storage=1Gi",
            ),
            (
                "resourceclaims.resource.k8s.io",
                json!({ "spec": { "devices": { "requests": [
                { "exactly": { "deviceClassName": "gpu", "allocationMode": "ExactCount", "count": 2 } },
                { "firstAvailable": [{ "deviceClassName": "gpu", "allocationMode": "All" }, { "deviceClassName": "nic", "allocationMode": "ExactCount", "count": 1 }] },
            ] } } }),
                "count/resourceclaims.resource.k8s.io=1,gpu.deviceclass.resource.k8s.io/devices=34,nic.deviceclass.resource.k8s.io/devices=1",
            ),
            ("configmaps", json!({}), "configmaps=1,count/configmaps=1"),
            ("deployments.apps", json!({}), "count/deployments.apps=1"),
        ] {
            assert_eq!(Counted::of(table).unwrap().usage(&object, 0).unwrap().to_string(), used, "{object}");
        }
    }

    #[test]
    fn scopes_tell_pods_apart() {
        let pod = json!({ "spec": { "activeDeadlineSeconds": 5, "priorityClassName": "high", "containers": [{}] } });
        for (scope, operator, values, inside) in [
            ("Terminating", "Exists", json!([]), true),
            ("NotTerminating", "Exists", json!([]), false),
            ("BestEffort", "Exists", json!([]), true),
            ("NotBestEffort", "Exists", json!([]), false),
            ("PriorityClass", "Exists", json!([]), true),
            ("PriorityClass", "DoesNotExist", json!([]), false),
            ("PriorityClass", "In", json!(["low", "high"]), true),
            ("PriorityClass", "NotIn", json!(["low"]), true),
            ("CrossNamespacePodAffinity", "Exists", json!([]), false),
            ("VolumeAttributesClass", "Exists", json!([]), false),
        ] {
            let scope = json!({ "scopeName": scope, "operator": operator, "values": values });
            assert_eq!(Counted::Pods.in_scope(&pod, &scope), inside, "{scope}");
            assert!(!Counted::Others("configmaps").in_scope(&pod, &scope));
        }
    }

    #[test]
    fn a_pod_must_say_what_a_quota_limits() {
        let pod = json!({ "spec": {
            "containers": [{ "name": "b" }, { "name": "a", "resources": { "limits": { "cpu": "1" } } }],
            "initContainers": [{ "name": "i" }],
        } });
        let names = ["pods", "limits.cpu", "requests.memory", "requests.example.com/gpu"];
        let unsaid = Counted::Pods.unsaid(&pod, names.into_iter());
        assert_eq!(unsaid.as_deref(), Some("must specify limits.cpu for: b,i; requests.memory for: a,b,i"));
        assert_eq!(Counted::Pods.unsaid(&pod, ["pods"].into_iter()), None);
    }

    #[test]
    fn the_class_of_a_claim_may_be_named_in_the_older_way() {
        let annotations = json!({ CLASS_ANNOTATION: "old" });
        let annotated = json!({ "metadata": { "annotations": annotations }, "spec": { "storageClassName": "new" } });
        assert_eq!(class_of(&annotated), "old");
    }
}
