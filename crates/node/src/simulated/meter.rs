//! What simulated nodes and pods use.
//!
//! A pod says itself, by annotations, how much it uses; its containers share that. A node uses what its pods use, and a
//! little of its own.

use super::machine;
use kinds::{Node, Pod};
use object::Quantity;
use runtime::Caches;

const CPU: &str = "simulated.setpoint.dev/cpu";
const MEMORY: &str = "simulated.setpoint.dev/memory";
/// What a pod uses that says nothing: thousandths of a processor, and bytes.
const POD: (i64, i64) = (1, 10 << 20);
/// What a node uses for itself.
const IDLE: (i64, i64) = (50, 512 << 20);

/// Knows what is used: thousandths of a processor, and bytes.
#[derive(Clone, Debug)]
pub struct Meter {
    caches: Caches,
}

impl Meter {
    /// On the caches of the loops that keep the nodes.
    pub fn new(caches: Caches) -> Self {
        Meter { caches }
    }

    pub fn node(&self, name: &str) -> Option<(i64, i64)> {
        machine::index(name)?;
        self.caches.of::<Node>().named("", name)?;
        let pods = self.caches.of::<Pod>().by("node", name);
        let used = pods.iter().filter(|pod| pod.status.phase == "Running").map(|pod| of_pod(pod));
        Some(used.fold(IDLE, |(cpu, memory), (of_cpu, of_memory)| (cpu + of_cpu, memory + of_memory)))
    }

    /// Of each container, by name; none unless the pod runs on one of these nodes.
    pub fn pod(&self, namespace: &str, name: &str) -> Option<Vec<(String, (i64, i64))>> {
        let pod = self.caches.of::<Pod>().named(namespace, name)?;
        machine::index(&pod.spec.node_name).filter(|_| pod.status.phase == "Running")?;
        let (cpu, memory) = of_pod(&pod);
        let count = i64::try_from(pod.spec.containers.len().max(1)).unwrap_or(i64::MAX);
        let share = (cpu / count, memory / count);
        Some(pod.spec.containers.iter().map(|container| (container.name.clone(), share)).collect())
    }
}

fn of_pod(pod: &Pod) -> (i64, i64) {
    let said = |annotation: &str| pod.metadata.annotation(annotation).parse::<Quantity>().ok();
    (said(CPU).map_or(POD.0, Quantity::millis), said(MEMORY).map_or(POD.1, Quantity::units))
}

#[cfg(test)]
mod tests {
    use super::*;
    use kinds::Object;
    use object::json;

    #[test]
    fn a_pod_uses_what_it_says_and_a_node_what_its_pods_use() {
        let mut caches = Caches::default().with::<Node>().with::<Pod>();
        caches.put(Object::<Node>::of(&json!({ "metadata": { "name": "node-0" } })));
        let pod = |name: &str, annotations, phase: &str| {
            let containers = json!([{ "name": "a" }, { "name": "b" }]);
            Object::<Pod>::of(&json!({
                "metadata": { "name": name, "namespace": "default", "annotations": annotations },
                "spec": { "nodeName": "node-0", "containers": containers }, "status": { "phase": phase },
            }))
        };
        caches.put(pod("busy", json!({ CPU: "1", MEMORY: "1Gi" }), "Running"));
        caches.put(pod("quiet", json!({}), "Running"));
        caches.put(pod("done", json!({ CPU: "1" }), "Succeeded"));
        let meter = Meter::new(caches);
        let half = (500, 512 << 20);
        assert_eq!(meter.pod("default", "busy").unwrap(), [("a".to_owned(), half), ("b".to_owned(), half)]);
        assert_eq!(meter.node("node-0"), Some((1051, (512 + 1024 + 10) << 20)));
        assert_eq!((meter.node("other"), meter.pod("default", "done")), (None, None));
    }
}
