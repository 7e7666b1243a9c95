//! What a simulated node says of itself.

use super::fleet::Member;
use kinds::{Lease, Node, Object, Time};
use object::{Edit, Quantity, Value, json};
use std::time::Duration;

/// Where the leases of nodes are.
pub(super) const LEASES: &str = "kube-node-lease";
/// How often a lease is renewed.
const HEARTBEAT: Duration = Duration::from_secs(10);
/// Nodes renew their leases at the same moments, so many times a second: writes that come together are cheap.
const BEATS: i64 = 4;
const BETWEEN_BEATS: Duration = Duration::from_micros(1_000_000 / BEATS as u64);
const LEASE_SECONDS: i32 = 40;
/// How often a node reports its status if nothing is different.
const REPORT: Duration = Duration::from_secs(300);
/// What a node can do that others may not be able to, sorted.
const FEATURES: [&str; 4] = [
    "ExtendWebSocketsToKubelet",
    "InPlacePodLevelResourcesVerticalScaling",
    "InPlacePodVerticalScalingInitContainers",
    kinds::RESTART_ALL,
];

pub(super) fn address(index: usize) -> String {
    format!("10.{}.{}.{}", 128 + (index >> 16 & 0x3f), index >> 8 & 0xff, index & 0xff)
}

/// How many addresses a node has for its pods.
pub(super) const POD_ADDRESSES: usize = 254;

/// Addresses of pods are not reachable; they only have to differ.
pub(super) fn pod_address(node: usize, number: usize) -> String {
    let address = node * 256 + number % POD_ADDRESSES + 1;
    format!("10.{}.{}.{}", 192 + (address >> 16 & 0x3f), address >> 8 & 0xff, address & 0xff)
}

/// The number of an address of a node, if it is one.
pub(super) fn pod_number(node: usize, address: &str) -> Option<usize> {
    let last: usize = address.rsplit('.').next()?.parse().ok()?;
    let number = last.checked_sub(1).filter(|number| *number < POD_ADDRESSES)?;
    (pod_address(node, number) == address).then_some(number)
}

/// The object a node registers with.
pub(super) fn node(member: &Member<'_>, now: Time) -> Value {
    let (name, group) = (member.name(), member.group);
    let mut labels = json!({
        "kubernetes.io/hostname": name, "kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64", "type": "simulated",
        "beta.kubernetes.io/os": "linux", "beta.kubernetes.io/arch": "amd64",
    });
    if group.zones > 0 {
        labels.set("topology.kubernetes.io/zone", format!("zone-{}", member.number % group.zones));
        labels.set("topology.kubernetes.io/region", "simulated");
    }
    for (key, value) in &group.labels {
        labels.set(key, value.as_str());
    }
    let taint = |(key, taint): (&String, &String)| {
        let (value, effect) = taint.rsplit_once(':').unwrap_or(("", taint));
        json!({ "key": key, "value": value, "effect": effect })
    };
    let mut spec = json!({});
    if !group.taints.is_empty() {
        spec.set("taints", group.taints.iter().map(taint).collect::<Vec<_>>());
    }
    json!({
        "kind": "Node", "apiVersion": "v1", "metadata": { "name": name, "labels": labels },
        "spec": spec, "status": body(member, &[], now),
    })
}

pub(super) fn needs_report(node: &Node, now: Time) -> bool {
    let ready = node.condition("Ready");
    let reported = ready.and_then(|ready| ready.last_heartbeat_time);
    ready.is_none_or(|ready| ready.status != "True") || reported.is_none_or(|reported| now.since(reported) >= REPORT)
}

/// The status of a node that is well.
pub(super) fn status(member: &Member<'_>, node: &Node, now: Time) -> Value {
    body(member, &node.status.conditions, now)
}

fn body(member: &Member<'_>, old: &[kinds::Condition], now: Time) -> Value {
    let amount = |(name, amount): (&String, &Quantity)| (name.clone(), Value::String(amount.to_string()));
    let resources = Value::Object(member.group.capacity.iter().map(amount).collect());
    let condition = |kind: &str, status: &str, reason: &str, message: &str| {
        let before = kinds::condition(old, kind).filter(|before| before.status == status);
        let since = before.and_then(|before| before.last_transition_time).unwrap_or(now);
        json!({
            "type": kind, "status": status, "reason": reason, "message": message,
            "lastHeartbeatTime": now, "lastTransitionTime": since,
        })
    };
    json!({
        "capacity": resources, "allocatable": resources, "declaredFeatures": FEATURES,
        "conditions": [
            condition("MemoryPressure", "False", "KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
            condition("DiskPressure", "False", "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
            condition("PIDPressure", "False", "KubeletHasSufficientPID", "kubelet has sufficient PID available"),
            condition("Ready", "True", "KubeletReady", "kubelet is posting ready status"),
        ],
        "addresses": [
            { "type": "InternalIP", "address": address(member.index) },
            { "type": "Hostname", "address": member.name() },
        ],
        "nodeInfo": {
            "kubeletVersion": "v1.36.0", "operatingSystem": "linux", "architecture": "amd64",
            "osImage": "simulated", "kernelVersion": "simulated", "containerRuntimeVersion": "simulated://1",
            "kubeProxyVersion": "", "machineID": "", "systemUUID": "", "bootID": "",
        },
    })
}

pub(super) enum Renewal {
    Create(Value),
    Patch(Value),
}

/// The lease of a node, if it is time to renew it.
pub(super) fn renewal(name: &str, lease: Option<&Object<Lease>>, now: Time) -> Option<Renewal> {
    let Some(lease) = lease else {
        return Some(Renewal::Create(json!({
            "kind": "Lease", "apiVersion": "coordination.k8s.io/v1",
            "metadata": { "name": name, "namespace": LEASES },
            "spec": { "holderIdentity": name, "leaseDurationSeconds": LEASE_SECONDS, "renewTime": now.to_micro_text() },
        })));
    };
    let due = lease.spec.renew_time.is_none_or(|renewed| now.since(renewed) >= HEARTBEAT - BETWEEN_BEATS);
    due.then(|| Renewal::Patch(json!({ "spec": { "renewTime": now.to_micro_text() } })))
}

/// How long it is until the next renewal.
pub(super) fn until_renewal(now: Time) -> Duration {
    let late = now.0.rem_euclid(1_000_000 / BEATS);
    HEARTBEAT - Duration::from_micros(late.unsigned_abs())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simulated::fleet::Group;
    use object::View;

    #[test]
    fn a_node_is_what_its_group_says() {
        let group = Group::parse("4,name=big,cpu=64,zones=3,label.disk=ssd,taint.gpu=yes:NoSchedule").unwrap();
        let node = node(&Member { index: 9, number: 3, group: &group }, Time(0));
        assert_eq!(node.path(&["metadata", "name"]), "big-3");
        assert_eq!(node.path(&["metadata", "labels", "topology.kubernetes.io/zone"]), "zone-0");
        assert_eq!(node.path(&["metadata", "labels", "disk"]), "ssd");
        assert_eq!(node["spec"]["taints"], json!([{ "key": "gpu", "value": "yes", "effect": "NoSchedule" }]));
        assert_eq!(node.path(&["status", "allocatable", "cpu"]), "64");
        assert_eq!(node.path(&["metadata", "labels", "beta.kubernetes.io/os"]), "linux");
        assert!(FEATURES.is_sorted());
    }

    #[test]
    fn addresses_differ() {
        assert_ne!(pod_address(0, 0), pod_address(1, 0));
        assert_ne!(address(1), address(257));
    }

    #[test]
    fn nodes_renew_their_leases_together_and_none_too_late() {
        for now in [0, 1, 249_999, 250_000, 1_234_567_890].map(Time) {
            let next = Time(now.0 + until_renewal(now).as_micros() as i64);
            assert_eq!(next.0 % 250_000, 0);
            assert!(next.since(now) <= HEARTBEAT);
            let lease = json!({ "metadata": { "name": "a" }, "spec": { "renewTime": now.to_micro_text() } });
            let lease = Object::<Lease>::of(&lease);
            assert!(renewal("a", Some(&lease), next).is_some());
            assert!(renewal("a", Some(&lease), Time(now.0 + 5_000_000)).is_none());
        }
    }
}
