//! Whether a node takes a pod that was bound to it.
//!
//! Whoever binds a pod may not know what the node knows: that something else has started there meanwhile, or that its
//! labels are different. So the node looks again, before the pod starts and never after. A pod it does not take has
//! failed.
//!
//! Left out: other pods are not sent away for one that is more important, and taints are left to the loop that evicts.

use kinds::{Amounts, Container, ContainerPort, Node, Pod};

/// What the pods of a node take of it together.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Load {
    pub pods: i64,
    pub amounts: Amounts,
    pub ports: Vec<ContainerPort>,
}

impl Load {
    /// One more pod, that takes so much.
    pub fn add(&mut self, pod: &Pod, amounts: &Amounts) {
        self.pods += 1;
        self.amounts.add(amounts);
        self.ports.extend(host_ports(pod).cloned());
    }
}

fn host_ports(pod: &Pod) -> impl Iterator<Item = &ContainerPort> {
    let containers = pod.spec.init_containers.iter().chain(&pod.spec.containers);
    containers.flat_map(|container: &Container| &container.ports).filter(|port| port.host_port > 0)
}

fn conflict(one: &ContainerPort, other: &ContainerPort) -> bool {
    let everywhere = |ip: &str| matches!(ip, "" | "0.0.0.0");
    let same_ip = one.host_ip == other.host_ip || everywhere(&one.host_ip) || everywhere(&other.host_ip);
    same_ip && one.host_port == other.host_port && one.protocol == other.protocol
}

/// Why a node does not take a pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    pub reason: String,
    pub message: String,
}

/// What there is not enough of. Of processors, in thousandths.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shortage<'a> {
    pub resource: &'a str,
    pub requested: i64,
    pub used: i64,
    pub capacity: i64,
}

impl Shortage<'_> {
    /// As kubelets say it.
    pub fn message(&self) -> String {
        let Shortage { resource, requested, used, capacity } = self;
        format!(
            "Node didn't have enough resource: {resource}, requested: {requested}, used: {used}, capacity: {capacity}"
        )
    }

    /// Whether it would not fit if nothing else were there.
    pub fn is_for_good(&self) -> bool {
        self.requested > self.capacity
    }
}

/// Whether a node takes a pod that asks for so much, beside what is there.
pub fn admit(pod: &Pod, asked: &Amounts, node: &Node, load: &Load) -> Result<(), Refusal> {
    let allocatable = &node.status.allocatable;
    if let Some(short) = allocatable.get("pods").and_then(|pods| too_many(load.pods, pods.units())) {
        return Err(short.into());
    }
    // A node that has not said yet what it has does not refuse anything for want of it.
    let shortage =
        if allocatable.is_empty() { None } else { shortage(asked, &load.amounts, &Amounts::read(allocatable)) };
    if let Some(short) = shortage {
        return Err(short.into());
    }
    let failed = |name: &str, why: &str| {
        Err(Refusal { reason: name.to_owned(), message: format!("Predicate {name} failed: {why}") })
    };
    if !is_wanted(pod, node) {
        return failed("NodeAffinity", "node(s) didn't match Pod's node affinity/selector");
    }
    if host_ports(pod).any(|port| load.ports.iter().any(|taken| conflict(port, taken))) {
        return failed("NodePorts", "node(s) didn't have free ports for the requested pod ports");
    }
    Ok(())
}

impl From<Shortage<'_>> for Refusal {
    fn from(short: Shortage<'_>) -> Self {
        Refusal { reason: format!("OutOf{}", short.resource), message: short.message() }
    }
}

fn too_many(pods: i64, capacity: i64) -> Option<Shortage<'static>> {
    (pods >= capacity).then_some(Shortage { resource: "pods", requested: 1, used: pods, capacity })
}

/// The first that there is not enough of. What the node itself has none of, it may have as devices.
pub fn shortage<'a>(asked: &'a Amounts, used: &Amounts, capacity: &Amounts) -> Option<Shortage<'a>> {
    let check = |resource: &'a str, requested: i64, used: i64, capacity: i64| {
        let short = requested > 0 && requested > capacity - used;
        short.then_some(Shortage { resource, requested, used, capacity })
    };
    let others = || {
        let known = asked.others.iter().filter(|(name, _)| capacity.others.iter().any(|(other, _)| other == name));
        known.into_iter().find_map(|(name, amount)| check(name, *amount, used.other(name), capacity.other(name)))
    };
    check("cpu", asked.cpu, used.cpu, capacity.cpu)
        .or_else(|| check("memory", asked.memory, used.memory, capacity.memory))
        .or_else(|| check("ephemeral-storage", asked.disk, used.disk, capacity.disk))
        .or_else(others)
}

/// Whether the pod says that it may be there.
fn is_wanted(pod: &Pod, node: &Node) -> bool {
    let labels = &node.metadata.labels;
    let selected = pod.spec.node_selector.iter().all(|(key, value)| labels.get(key) == Some(value));
    selected && pod.spec.required_nodes().is_none_or(|required| required.matches(node))
}

#[cfg(test)]
mod tests {
    use super::*;
    use kinds::Object;
    use object::{Value, json};

    fn pod(spec: &Value) -> Object<Pod> {
        Object::of(&json!({ "metadata": { "name": "p" }, "spec": spec }))
    }

    fn asking(requests: &Value) -> Value {
        json!({ "containers": [{ "name": "c", "resources": { "requests": requests } }] })
    }

    fn on_port(port: i32, ip: &str) -> Value {
        let port = json!({ "containerPort": port, "hostPort": port, "hostIP": ip, "protocol": "TCP" });
        json!({ "containers": [{ "name": "c", "ports": [port] }] })
    }

    fn affine(operator: &str) -> Value {
        let terms = json!([{ "matchExpressions": [{ "key": "zone", "operator": operator, "values": ["a"] }] }]);
        let required = json!({ "requiredDuringSchedulingIgnoredDuringExecution": { "nodeSelectorTerms": terms } });
        json!({ "affinity": { "nodeAffinity": required } })
    }

    #[test]
    fn a_node_takes_what_fits_beside_what_is_there() {
        let allocatable = json!({ "cpu": "4", "memory": "1Gi", "ephemeral-storage": "1Gi", "example.com/gpu": "2" });
        let node: Object<Node> = Object::of(&json!({
            "metadata": { "name": "n", "labels": { "zone": "a" } }, "status": { "allocatable": allocatable },
        }));
        let mut load = Load::default();
        let there = pod(&asking(&json!({ "cpu": "3", "example.com/gpu": "1" })));
        load.add(&there, &Amounts::asked_by(&there));
        load.add(&pod(&on_port(80, "10.0.0.1")), &Amounts::default());
        let short = "Node didn't have enough resource: ";
        let affinity = "Predicate NodeAffinity failed: node(s) didn't match Pod's node affinity/selector";
        let ports = "Predicate NodePorts failed: node(s) didn't have free ports for the requested pod ports";
        for (spec, reason, message) in [
            (asking(&json!({ "cpu": "1" })), "", String::new()),
            (
                asking(&json!({ "cpu": "1001m" })),
                "OutOfcpu",
                format!("{short}cpu, requested: 1001, used: 3000, capacity: 4000"),
            ),
            (
                asking(&json!({ "memory": "2Gi" })),
                "OutOfmemory",
                format!("{short}memory, requested: 2147483648, used: 0, capacity: 1073741824"),
            ),
            (
                asking(&json!({ "ephemeral-storage": "2Gi" })),
                "OutOfephemeral-storage",
                format!("{short}ephemeral-storage, requested: 2147483648, used: 0, capacity: 1073741824"),
            ),
            (
                asking(&json!({ "example.com/gpu": "2" })),
                "OutOfexample.com/gpu",
                format!("{short}example.com/gpu, requested: 2, used: 1, capacity: 2"),
            ),
            (asking(&json!({ "example.com/unheard": "2" })), "", String::new()),
            (json!({ "nodeSelector": { "zone": "a" } }), "", String::new()),
            (json!({ "nodeSelector": { "zone": "b" } }), "NodeAffinity", affinity.to_owned()),
            (affine("In"), "", String::new()),
            (affine("NotIn"), "NodeAffinity", affinity.to_owned()),
            (on_port(81, ""), "", String::new()),
            (on_port(80, "10.0.0.2"), "", String::new()),
            (on_port(80, ""), "NodePorts", ports.to_owned()),
        ] {
            let pod = pod(&spec);
            let refusal = admit(&pod, &Amounts::asked_by(&pod), &node, &load).err();
            let expected = Refusal { reason: reason.to_owned(), message };
            assert_eq!(refusal, Some(expected).filter(|_| !reason.is_empty()), "{spec}");
        }
    }

    #[test]
    fn a_node_takes_so_many_pods_and_no_more() {
        let node: Object<Node> = Object::of(&json!({ "status": { "allocatable": { "pods": "2" } } }));
        let new = pod(&json!({}));
        let admit = |pods: i64| admit(&new, &Amounts::default(), &node, &Load { pods, ..Load::default() });
        assert_eq!(admit(1), Ok(()));
        assert_eq!(
            admit(2).unwrap_err().message,
            "Node didn't have enough resource: pods, requested: 1, used: 2, capacity: 2"
        );
    }
}
