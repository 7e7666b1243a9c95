//! How much of everything a pod asks for, and a node has.

use kinds::{Container, Dict, Pod};
use object::Quantity;

/// What a container counts as when nodes are compared and it asks for nothing, so that pods which ask for nothing
/// spread too: thousandths of a core, and bytes.
const USUAL_CPU: i64 = 100;
const USUAL_MEMORY: i64 = 200 << 20;

/// Amounts of resources. Those that every node has are fields, for speed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Amounts {
    /// In thousandths of a core.
    pub cpu: i64,
    pub memory: i64,
    /// Local disk that is gone with the pod.
    pub disk: i64,
    /// Everything else, sorted by name.
    pub others: Vec<(String, i64)>,
}

/// A resource that nodes are compared by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Resource {
    Cpu,
    Memory,
    Disk,
    Other(String),
}

impl Resource {
    pub(crate) fn named(name: &str) -> Self {
        match name {
            "cpu" => Resource::Cpu,
            "memory" => Resource::Memory,
            "ephemeral-storage" => Resource::Disk,
            other => Resource::Other(other.to_owned()),
        }
    }

    /// How much a node with `capacity` would have in use with a pod, and of how much. None if that says nothing: the
    /// node has none of it, or it is a device that the pod does not ask for.
    pub(crate) fn share(&self, used: &Amounts, wanted: &Amounts, capacity: &Amounts) -> Option<(i64, i64)> {
        let (wanted, capacity) = (wanted.of(self), capacity.of(self));
        let is_idle = wanted == 0 && matches!(self, Resource::Other(_));
        (capacity != 0 && !is_idle).then(|| (used.of(self) + wanted, capacity))
    }
}

impl Amounts {
    pub(crate) fn of(&self, resource: &Resource) -> i64 {
        match resource {
            Resource::Cpu => self.cpu,
            Resource::Memory => self.memory,
            Resource::Disk => self.disk,
            Resource::Other(name) => self.other(name),
        }
    }

    pub(crate) fn read(amounts: &Dict<Quantity>) -> Self {
        let mut read = Amounts::default();
        for (name, quantity) in amounts {
            match name.as_str() {
                "cpu" => read.cpu = quantity.millis(),
                "memory" => read.memory = quantity.units(),
                "ephemeral-storage" => read.disk = quantity.units(),
                "pods" => {}
                _ => read.others.push((name.clone(), quantity.units())),
            }
        }
        read
    }

    pub(crate) fn other(&self, name: &str) -> i64 {
        self.others.iter().find(|(other, _)| other == name).map_or(0, |(_, amount)| *amount)
    }

    pub(crate) fn add(&mut self, more: &Amounts) {
        self.merge(more, |a, b| a + b);
    }

    pub(crate) fn subtract(&mut self, less: &Amounts) {
        self.merge(less, |a, b| a - b);
    }

    fn at_least(&mut self, other: &Amounts) {
        self.merge(other, i64::max);
    }

    fn merge(&mut self, with: &Amounts, both: fn(i64, i64) -> i64) {
        self.cpu = both(self.cpu, with.cpu);
        self.memory = both(self.memory, with.memory);
        self.disk = both(self.disk, with.disk);
        for (name, amount) in &with.others {
            match self.others.binary_search_by(|(other, _)| other.cmp(name)) {
                Ok(at) => self.others[at].1 = both(self.others[at].1, *amount),
                Err(at) => self.others.insert(at, (name.clone(), both(0, *amount))),
            }
        }
    }
}

/// What a pod takes of a node.
pub(crate) fn requested(pod: &Pod) -> Amounts {
    total(pod, |container| Amounts::read(&container.resources.requests))
}

/// The same for comparing nodes: who asks for nothing takes what is usual.
pub(crate) fn estimated(pod: &Pod) -> Amounts {
    total(pod, |container| {
        let requests = &container.resources.requests;
        let mut amounts = Amounts::read(requests);
        if !requests.contains_key("cpu") {
            amounts.cpu = USUAL_CPU;
        }
        if !requests.contains_key("memory") {
            amounts.memory = USUAL_MEMORY;
        }
        amounts
    })
}

/// Containers run together, beside the sidecars started before them. Init containers run one after the other, each
/// beside the sidecars before it. What is said for the pod as a whole goes over what its containers say.
fn total(pod: &Pod, of: impl Fn(&Container) -> Amounts) -> Amounts {
    let mut running = Amounts::default();
    let mut starting = Amounts::default();
    for container in &pod.spec.init_containers {
        let mut with = running.clone();
        with.add(&of(container));
        starting.at_least(&with);
        if container.is_sidecar() {
            running = with;
        }
    }
    pod.spec.containers.iter().for_each(|container| running.add(&of(container)));
    running.at_least(&starting);
    if let Some(whole) = &pod.spec.resources {
        let said = Amounts::read(&whole.requests);
        let named = |name: &str| whole.requests.contains_key(name);
        running.cpu = if named("cpu") { said.cpu } else { running.cpu };
        running.memory = if named("memory") { said.memory } else { running.memory };
        running.others.retain(|(name, _)| !named(name));
        running.add(&Amounts { others: said.others, ..Amounts::default() });
    }
    running.add(&Amounts::read(&pod.spec.overhead));
    running
}

#[cfg(test)]
mod tests {
    use super::*;
    use kinds::Object;
    use object::{Value, json};

    fn container(cpu: &str) -> Value {
        json!({ "resources": { "requests": { "cpu": cpu } } })
    }

    fn sidecar(cpu: &str) -> Value {
        json!({ "resources": { "requests": { "cpu": cpu } }, "restartPolicy": "Always" })
    }

    #[test]
    fn a_pod_asks_for_what_it_takes_at_its_busiest() {
        for (spec, cpu) in [
            (json!({ "containers": [container("1"), container("500m")] }), 1500),
            (json!({ "containers": [container("1")], "initContainers": [container("2"), container("3")] }), 3000),
            (json!({ "containers": [container("1")], "initContainers": [sidecar("1"), container("3")] }), 4000),
            (json!({ "containers": [container("4")], "initContainers": [sidecar("1"), container("3")] }), 5000),
            (json!({ "containers": [container("4")], "resources": { "requests": { "cpu": "7" } } }), 7000),
            (json!({ "containers": [container("4")], "overhead": { "cpu": "250m" } }), 4250),
        ] {
            let pod: Object<Pod> = Object::of(&json!({ "metadata": {}, "spec": spec }));
            assert_eq!(requested(&pod).cpu, cpu, "{spec}");
        }
    }

    #[test]
    fn devices_are_counted_by_name() {
        let gpu = |count: i64| Amounts { others: vec![("example.com/gpu".into(), count)], ..Amounts::default() };
        let mut amounts = gpu(1);
        amounts.add(&gpu(2));
        amounts.subtract(&gpu(1));
        assert_eq!(amounts.other("example.com/gpu"), 2);
        assert_eq!(amounts.other("example.com/none"), 0);
    }

    #[test]
    fn who_asks_for_nothing_counts_as_usual_in_comparisons_alone() {
        let pod: Object<Pod> = Object::of(&json!({ "spec": { "containers": [{}, container("1")] } }));
        assert_eq!((requested(&pod).cpu, estimated(&pod).cpu), (1000, 1100));
        assert_eq!((requested(&pod).memory, estimated(&pod).memory), (0, 2 * USUAL_MEMORY));
    }
}
