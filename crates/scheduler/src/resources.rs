//! What nodes are compared by, and what pods count for when they are.

use kinds::{Amounts, Pod};

/// What a container counts as when nodes are compared and it asks for nothing, so that pods which ask for nothing
/// spread too: thousandths of a core, and bytes.
const USUAL_CPU: i64 = 100;
const USUAL_MEMORY: i64 = 200 << 20;

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
        let (wanted, capacity) = (self.of(wanted), self.of(capacity));
        let is_idle = wanted == 0 && matches!(self, Resource::Other(_));
        (capacity != 0 && !is_idle).then(|| (self.of(used) + wanted, capacity))
    }

    pub(crate) fn of(&self, amounts: &Amounts) -> i64 {
        match self {
            Resource::Cpu => amounts.cpu,
            Resource::Memory => amounts.memory,
            Resource::Disk => amounts.disk,
            Resource::Other(name) => amounts.other(name),
        }
    }
}

/// What a pod takes of a node, for comparing nodes: who asks for nothing takes what is usual.
pub(crate) fn estimated(pod: &Pod) -> Amounts {
    Amounts::total(pod, |container, mut taken| {
        let requests = &container.resources.requests;
        if !requests.contains_key("cpu") {
            taken.cpu = USUAL_CPU;
        }
        if !requests.contains_key("memory") {
            taken.memory = USUAL_MEMORY;
        }
        taken
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use kinds::Object;
    use object::json;

    #[test]
    fn who_asks_for_nothing_counts_as_usual_in_comparisons_alone() {
        let pod: Object<Pod> = Object::of(
            &json!({ "spec": { "containers": [{}, json!({ "resources": { "requests": { "cpu": "1" } } })] } }),
        );
        assert_eq!((Amounts::taken_by(&pod).cpu, estimated(&pod).cpu), (1000, 1100));
        assert_eq!((Amounts::taken_by(&pod).memory, estimated(&pod).memory), (0, 2 * USUAL_MEMORY));
    }
}
