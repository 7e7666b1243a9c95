//! What simulated nodes and pods use.
//!
//! What is said of a pod's behaviour is how much it uses; its containers share that. It is an amount (`250m`), or goes up
//! and down between two in so many seconds (`100m..900m/600`). A node uses what its pods use, and a little of its own.

use super::Fleet;
use super::behavior::Behavior;
use ambient::Clock;
use kinds::{Node, Pod};
use object::Quantity;
use runtime::Caches;

/// What a pod uses that says nothing: thousandths of a processor, and bytes.
const POD: (i64, i64) = (1, 10 << 20);
/// What a node uses for itself.
const IDLE: (i64, i64) = (50, 512 << 20);

/// Knows what is used: thousandths of a processor, and bytes.
#[derive(Clone, Debug)]
pub struct Meter {
    caches: Caches,
    fleet: Fleet,
    clock: Clock,
}

impl Meter {
    /// On the caches of the loops that keep the nodes.
    pub fn new(caches: Caches, fleet: Fleet, clock: Clock) -> Self {
        Meter { caches, fleet, clock }
    }

    fn seconds(&self) -> f64 {
        self.clock.wall().0 as f64 / 1000.0
    }

    pub fn node(&self, name: &str) -> Option<(i64, i64)> {
        self.fleet.member(name)?;
        self.caches.of::<Node>().named("", name)?;
        let pods = self.caches.of::<Pod>().by("node", name);
        let used = pods.iter().filter(|pod| pod.status.phase == "Running").map(|pod| self.of_pod(pod));
        Some(used.fold(IDLE, |(cpu, memory), (of_cpu, of_memory)| (cpu + of_cpu, memory + of_memory)))
    }

    fn of_pod(&self, pod: &Pod) -> (i64, i64) {
        let of_node = Behavior::of_node_named(&pod.spec.node_name, &self.caches);
        let behavior = Behavior::of_pod(pod, &of_node, &self.caches);
        let said = |name: &str, unit: fn(Quantity) -> i64| at(behavior.get(name)?, unit, self.seconds());
        (said("cpu", Quantity::millis).unwrap_or(POD.0), said("memory", Quantity::units).unwrap_or(POD.1))
    }

    /// Of each container, by name; none unless the pod runs on one of these nodes.
    pub fn pod(&self, namespace: &str, name: &str) -> Option<Vec<(String, (i64, i64))>> {
        let pod = self.caches.of::<Pod>().named(namespace, name)?;
        self.fleet.member(&pod.spec.node_name).filter(|_| pod.status.phase == "Running")?;
        let (cpu, memory) = self.of_pod(&pod);
        let count = i64::try_from(pod.spec.containers.len().max(1)).unwrap_or(i64::MAX);
        let share = (cpu / count, memory / count);
        Some(pod.spec.containers.iter().map(|container| (container.name.clone(), share)).collect())
    }
}

/// An amount at a time.
fn at(said: &str, unit: fn(Quantity) -> i64, seconds: f64) -> Option<i64> {
    let amount = |text: &str| text.trim().parse().ok().map(unit);
    let Some((low, rest)) = said.split_once("..") else { return amount(said) };
    let (high, period) = rest.split_once('/')?;
    let (low, high) = (amount(low)? as f64, amount(high)? as f64);
    let period = period.parse::<f64>().ok().filter(|period| *period > 0.0)?;
    // Up in the first half, down in the second.
    let phase = (seconds / period).fract() * 2.0;
    let share = if phase <= 1.0 { phase } else { 2.0 - phase };
    Some((low + (high - low) * share) as i64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use kinds::{ConfigMap, Object};
    use object::json;

    const CPU: &str = "simulated.setpoint.dev/cpu";
    const MEMORY: &str = "simulated.setpoint.dev/memory";

    #[test]
    fn a_pod_uses_what_it_says_and_a_node_what_its_pods_use() {
        let mut caches = Caches::default().with::<ConfigMap>().with::<Node>().with::<Pod>();
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
        let meter = Meter::new(caches, Fleet::of(1), Clock::simulated(ambient::Timestamp(0)));
        let half = (500, 512 << 20);
        assert_eq!(meter.pod("default", "busy").unwrap(), [("a".to_owned(), half), ("b".to_owned(), half)]);
        assert_eq!(meter.node("node-0"), Some((1051, (512 + 1024 + 10) << 20)));
        assert_eq!((meter.node("other"), meter.pod("default", "done")), (None, None));
    }

    #[test]
    fn usage_can_go_up_and_down() {
        let at = |said: &str, seconds: f64| at(said, Quantity::millis, seconds);
        let day = "100m..900m/600";
        let expected = [Some(100), Some(500), Some(900), Some(500), Some(100)];
        assert_eq!([0.0, 150.0, 300.0, 450.0, 600.0].map(|seconds| at(day, seconds)), expected);
        assert_eq!((at("2", 7.0), at("", 0.0), at("1..2", 0.0), at("1..2/0", 0.0)), (Some(2000), None, None, None));
    }
}
