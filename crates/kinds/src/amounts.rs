//! How much of everything a pod takes of its node, and a node has.

use crate::{Container, ContainerStatus, Dict, Empty, Pod, Resources};
use object::Quantity;

/// Amounts of resources. Those that every node has are fields, for speed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Amounts {
    /// In thousandths of a core.
    pub cpu: i64,
    pub memory: i64,
    /// Local disk that is gone with the pod.
    pub disk: i64,
    /// Everything else, sorted by name.
    pub others: Vec<(String, i64)>,
}

impl Amounts {
    pub fn read(amounts: &Dict<Quantity>) -> Self {
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

    pub fn other(&self, name: &str) -> i64 {
        self.others.iter().find(|(other, _)| other == name).map_or(0, |(_, amount)| *amount)
    }

    pub fn add(&mut self, more: &Amounts) {
        self.merge(more, |a, b| a + b);
    }

    pub fn subtract(&mut self, less: &Amounts) {
        self.merge(less, |a, b| a - b);
    }

    /// Each at least as much as in `other`.
    pub fn at_least(&mut self, other: &Amounts) {
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

    /// What a pod takes of a node: what it asks for, and while it is resized what it still has.
    pub fn taken_by(pod: &Pod) -> Self {
        Amounts::total(pod, |_, taken| taken)
    }

    /// The same with what each container takes as `adjust` says.
    ///
    /// Containers run together, beside the sidecars started before them. Init containers run one after the other, each
    /// beside the sidecars before it. What is said for the pod as a whole goes over what its containers say.
    pub fn total(pod: &Pod, adjust: impl Fn(&Container, Amounts) -> Amounts) -> Self {
        let resizing = pod.is_resizing();
        Amounts::gather(pod, |asked, has| held(pod, asked, has.filter(|_| resizing)), adjust)
    }

    /// What a pod asks for, whether it has that or not.
    pub fn asked_by(pod: &Pod) -> Self {
        Amounts::gather(pod, |asked, _| Amounts::read(asked), |_, asked| asked)
    }

    /// What a pod has been promised by its node: while a resize is not granted, not what it asks for.
    pub fn promised_to(pod: &Pod) -> Self {
        let resizing = pod.is_resizing();
        let promised = |asked: &Dict<Quantity>, has: Option<Has<'_>>| match has {
            Some((resources, promised)) if resizing && !resources.is_empty() => Amounts::read(promised),
            _ => Amounts::read(asked),
        };
        Amounts::gather(pod, promised, |_, promised| promised)
    }

    fn gather(
        pod: &Pod,
        count: impl Fn(&Dict<Quantity>, Option<Has<'_>>) -> Amounts,
        adjust: impl Fn(&Container, Amounts) -> Amounts,
    ) -> Self {
        let of = |container: &Container, statuses: &[ContainerStatus]| {
            let status = statuses.iter().find(|status| status.name == container.name);
            let has = status.map(|status| (&*status.resources, &*status.allocated_resources));
            adjust(container, count(&container.resources.requests, has))
        };
        let mut running = Amounts::default();
        let mut starting = Amounts::default();
        for container in &pod.spec.init_containers {
            let is_sidecar = container.is_sidecar();
            let mut with = running.clone();
            with.add(&of(container, if is_sidecar { &pod.status.init_container_statuses } else { &[] }));
            starting.at_least(&with);
            if is_sidecar {
                running = with;
            }
        }
        pod.spec.containers.iter().for_each(|container| running.add(&of(container, &pod.status.container_statuses)));
        running.at_least(&starting);
        if let Some(whole) = &pod.spec.resources {
            let said = count(&whole.requests, Some((&*pod.status.resources, &*pod.status.allocated_resources)));
            let named = |name: &str| whole.requests.contains_key(name);
            running.cpu = if named("cpu") { said.cpu } else { running.cpu };
            running.memory = if named("memory") { said.memory } else { running.memory };
            running.others.retain(|(name, _)| !named(name));
            running.add(&Amounts { others: said.others, ..Amounts::default() });
        }
        running.add(&Amounts::read(&pod.spec.overhead));
        running
    }
}

/// What something has, and what it has been promised.
type Has<'a> = (&'a Resources, &'a Dict<Quantity>);

/// What is asked for, or what is there until a resize is done, whichever is more. A resize that can never be done is not
/// waited for.
fn held(pod: &Pod, asked: &Dict<Quantity>, has: Option<Has<'_>>) -> Amounts {
    let asked = Amounts::read(asked);
    let Some((resources, promised)) = has.filter(|(resources, _)| !resources.is_empty()) else { return asked };
    let mut held = Amounts::read(&resources.requests);
    held.at_least(&Amounts::read(promised));
    if pod.condition("PodResizePending").is_none_or(|pending| pending.reason != "Infeasible") {
        held.at_least(&asked);
    }
    held
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Object;
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
            assert_eq!(Amounts::taken_by(&pod).cpu, cpu, "{spec}");
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
    fn while_a_pod_is_resized_the_larger_size_counts() {
        let of = |asked: &str, has: &str, promised: &str, reason: &str| {
            let status = json!({
                "name": "c", "resources": { "requests": { "cpu": has } }, "allocatedResources": { "cpu": promised },
            });
            let asked = json!({ "name": "c", "resources": { "requests": { "cpu": asked } } });
            let pod: Object<Pod> = Object::of(&json!({
                "spec": { "containers": [asked] },
                "status": {
                    "containerStatuses": [status],
                    "conditions": [{ "type": "PodResizePending", "status": "True", "reason": reason }],
                },
            }));
            [Amounts::taken_by(&pod), Amounts::asked_by(&pod), Amounts::promised_to(&pod)].map(|amounts| amounts.cpu)
        };
        for (asked, has, promised, reason, expected) in [
            ("1", "1", "1", "", [1000, 1000, 1000]),
            ("2", "1", "1", "", [2000, 2000, 1000]),
            ("2", "1", "1", "Deferred", [2000, 2000, 1000]),
            ("2", "1", "1", "Infeasible", [1000, 2000, 1000]),
            ("1", "2", "1", "", [2000, 1000, 1000]),
            ("1", "1", "3", "Infeasible", [3000, 1000, 3000]),
        ] {
            assert_eq!(of(asked, has, promised, reason), expected, "{asked} {has} {promised} {reason}");
        }
    }
}
