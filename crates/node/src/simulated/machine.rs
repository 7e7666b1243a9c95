//! What a simulated node says of itself.

use kinds::{Lease, Node, Object, Time};
use object::{Edit, Value, json};
use std::time::Duration;

/// Where the leases of nodes are.
pub(super) const LEASES: &str = "kube-node-lease";
/// How often a lease is renewed.
pub(super) const HEARTBEAT: Duration = Duration::from_secs(10);
const LEASE_SECONDS: i32 = 40;
/// How often a node reports its status if nothing is different.
const REPORT: Duration = Duration::from_secs(300);
const PREFIX: &str = "node-";

pub(super) fn name(index: usize) -> String {
    format!("{PREFIX}{index}")
}

/// Which of the nodes has this name.
pub(super) fn index(name: &str) -> Option<usize> {
    let index = name.strip_prefix(PREFIX)?.parse().ok()?;
    (name == self::name(index)).then_some(index)
}

pub(super) fn address(index: usize) -> String {
    format!("10.{}.{}.{}", 128 + (index >> 16 & 0x3f), index >> 8 & 0xff, index & 0xff)
}

/// Addresses of pods are not reachable; they only have to differ.
pub(super) fn pod_address(node: usize, number: usize) -> String {
    let address = node * 256 + number % 254 + 1;
    format!("10.{}.{}.{}", 192 + (address >> 16 & 0x3f), address >> 8 & 0xff, address & 0xff)
}

/// The object a node registers with.
pub(super) fn node(index: usize, now: Time) -> Value {
    let name = name(index);
    json!({
        "kind": "Node", "apiVersion": "v1",
        "metadata": {
            "name": name,
            "labels": {
                "kubernetes.io/hostname": name, "kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64",
                "type": "simulated",
            },
        },
        "spec": {},
        "status": body(index, &[], now),
    })
}

pub(super) fn needs_report(node: &Node, now: Time) -> bool {
    let ready = node.condition("Ready");
    let reported = ready.and_then(|ready| ready.last_heartbeat_time);
    ready.is_none_or(|ready| ready.status != "True") || reported.is_none_or(|reported| now.since(reported) >= REPORT)
}

/// The status of a node that is well.
pub(super) fn status(index: usize, node: &Node, now: Time) -> Value {
    body(index, &node.status.conditions, now)
}

fn body(index: usize, old: &[kinds::Condition], now: Time) -> Value {
    let resources = json!({ "cpu": "32", "memory": "256Gi", "pods": "110", "ephemeral-storage": "1Ti" });
    let condition = |kind: &str, status: &str, reason: &str, message: &str| {
        let before = kinds::condition(old, kind).filter(|before| before.status == status);
        let since = before.and_then(|before| before.last_transition_time).unwrap_or(now);
        json!({
            "type": kind, "status": status, "reason": reason, "message": message,
            "lastHeartbeatTime": now, "lastTransitionTime": since,
        })
    };
    json!({
        "capacity": resources, "allocatable": resources,
        "conditions": [
            condition("MemoryPressure", "False", "KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
            condition("DiskPressure", "False", "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
            condition("PIDPressure", "False", "KubeletHasSufficientPID", "kubelet has sufficient PID available"),
            condition("Ready", "True", "KubeletReady", "kubelet is posting ready status"),
        ],
        "addresses": [
            { "type": "InternalIP", "address": address(index) }, { "type": "Hostname", "address": name(index) },
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
    Update(Value),
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
    let due = lease.spec.renew_time.is_none_or(|renewed| now.since(renewed) >= HEARTBEAT);
    due.then(|| {
        let mut renewed = lease.json();
        renewed.object_or_new("spec").set("renewTime", now.to_micro_text());
        Renewal::Update(renewed)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use object::View;

    #[test]
    fn names_and_addresses_differ() {
        assert_eq!((index("node-17"), index("node-017"), index("other")), (Some(17), None, None));
        assert_ne!(pod_address(0, 0), pod_address(1, 0));
        assert_eq!(node(3, Time(0)).at("metadata").text("name"), "node-3");
    }
}
