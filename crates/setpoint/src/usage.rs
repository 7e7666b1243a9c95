//! What nodes and pods use, for the API to tell: the figures of simulated nodes.

use ambient::Clock;
use apiserver::{Sample, Usage, UsageSource};
use node::simulated::{Fleet, Meter};
use runtime::Caches;
use std::time::Duration;

/// Over how long figures are said to be measured.
const WINDOW: Duration = Duration::from_secs(15);

#[derive(Debug)]
pub struct SimulatedUsage {
    meter: Meter,
    clock: Clock,
}

impl SimulatedUsage {
    /// From caches that hold nodes, pods and ConfigMaps.
    pub fn new(caches: &Caches, fleet: &Fleet, clock: &Clock) -> Self {
        let meter = Meter::new(caches.clone(), fleet.clone(), clock.clone());
        SimulatedUsage { meter, clock: clock.clone() }
    }

    fn sample<T>(&self, usage: T) -> Sample<T> {
        Sample { at: i64::try_from(self.clock.wall().0 / 1000).unwrap_or(i64::MAX), window: WINDOW, usage }
    }
}

impl UsageSource for SimulatedUsage {
    fn node(&self, name: &str) -> Option<Sample<Usage>> {
        Some(self.sample(usage(self.meter.node(name)?)))
    }

    fn pod(&self, namespace: &str, name: &str) -> Option<Sample<Vec<(String, Usage)>>> {
        let containers = self.meter.pod(namespace, name)?;
        Some(self.sample(containers.into_iter().map(|(name, used)| (name, usage(used))).collect()))
    }
}

fn usage((cpu_millis, memory_bytes): (i64, i64)) -> Usage {
    Usage { cpu_millis, memory_bytes }
}
