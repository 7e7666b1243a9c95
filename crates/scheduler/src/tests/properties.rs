//! What holds for whatever pods and nodes there are.

use super::{Fixture, merge, node, pod, told};
use crate::Decision;
use object::{Value, json};
use proptest::prelude::*;
use proptest::test_runner::TestCaseError;
use std::collections::{BTreeMap, BTreeSet};

#[derive(Clone, Debug)]
struct Machine {
    cpu: i64,
    zone: usize,
    tainted: bool,
    closed: bool,
}

#[derive(Clone, Debug)]
struct Wish {
    cpu: i64,
    app: usize,
    tolerates: bool,
    zone: Option<usize>,
    apart: bool,
    spread: bool,
}

fn machines() -> impl Strategy<Value = Vec<Machine>> {
    let machine = (1..6_i64, 0..3_usize, prop::bool::weighted(0.2));
    prop::collection::vec(machine.prop_map(|(cpu, zone, tainted)| Machine { cpu, zone, tainted, closed: false }), 1..8)
}

fn wishes() -> impl Strategy<Value = Vec<Wish>> {
    let wish = (
        1..4_i64,
        0..3_usize,
        any::<bool>(),
        prop::option::weighted(0.2, 0..3_usize),
        prop::bool::weighted(0.2),
        prop::bool::weighted(0.2),
    );
    let wish =
        wish.prop_map(|(cpu, app, tolerates, zone, apart, spread)| Wish { cpu, app, tolerates, zone, apart, spread });
    prop::collection::vec(wish, 1..24)
}

fn machine(number: usize, machine: &Machine) -> Value {
    let taints = if machine.tainted { json!([{ "key": "k", "effect": "NoSchedule" }]) } else { json!([]) };
    node(
        &format!("n{number}"),
        &json!({
            "metadata": { "labels": { "topology.kubernetes.io/zone": format!("z{}", machine.zone) } },
            "spec": { "taints": taints, "unschedulable": machine.closed },
            "status": { "allocatable": { "cpu": machine.cpu.to_string() } },
        }),
    )
}

fn wish(number: usize, wish: &Wish) -> Value {
    let selector = json!({ "matchLabels": { "app": format!("a{}", wish.app) } });
    let container = json!({ "name": "c", "resources": { "requests": { "cpu": wish.cpu.to_string() } } });
    let mut made = pod(
        &format!("p{number}"),
        &json!({ "metadata": { "labels": { "app": format!("a{}", wish.app) } }, "spec": { "containers": [container] } }),
    );
    if wish.tolerates {
        merge(&mut made, &json!({ "spec": { "tolerations": [{ "operator": "Exists" }] } }));
    }
    if let Some(zone) = wish.zone {
        merge(&mut made, &json!({ "spec": { "nodeSelector": { "topology.kubernetes.io/zone": format!("z{zone}") } } }));
    }
    if wish.apart {
        let term = json!({ "topologyKey": "kubernetes.io/hostname", "labelSelector": selector });
        let apart = json!({ "podAntiAffinity": { "requiredDuringSchedulingIgnoredDuringExecution": [term] } });
        merge(&mut made, &json!({ "spec": { "affinity": apart } }));
    }
    if wish.spread {
        let constraint = json!({
            "topologyKey": "topology.kubernetes.io/zone", "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule",
            "labelSelector": selector,
        });
        merge(&mut made, &json!({ "spec": { "topologySpreadConstraints": [constraint] } }));
    }
    made
}

/// What happens to a cluster.
#[derive(Clone, Debug)]
enum Step {
    /// A pod like one of a few is made.
    Made(usize),
    /// Whoever that is goes, whether it has a place or not.
    Gone(usize),
    /// Somebody's binding fails.
    Failed(usize),
    /// A node takes no pods for a while, or does again.
    Switched(usize),
    /// Somebody who has a place belongs to another app.
    Relabelled(usize, usize),
    Passed(u64),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        6 => any::<usize>().prop_map(Step::Made),
        3 => any::<usize>().prop_map(Step::Gone),
        1 => any::<usize>().prop_map(Step::Failed),
        1 => any::<usize>().prop_map(Step::Switched),
        1 => (any::<usize>(), 0..3_usize).prop_map(|(lot, app)| Step::Relabelled(lot, app)),
        1 => (0..20_u64).prop_map(Step::Passed),
    ];
    prop::collection::vec(step, 1..80)
}

/// Pods that come and go, as the scheduler knows them and as they are.
struct Life {
    fixture: Fixture,
    machines: Vec<Machine>,
    /// What each pod that was ever made asks for.
    wishes: Vec<Wish>,
    alive: BTreeSet<usize>,
    homes: BTreeMap<usize, usize>,
    /// Those whose binding can fail no more.
    arrived: BTreeSet<usize>,
}

impl Life {
    fn begin(machines: Vec<Machine>) -> Self {
        let nodes: Vec<Value> = machines.iter().enumerate().map(|(at, one)| machine(at, one)).collect();
        let fixture = Fixture::new(&nodes);
        let (alive, arrived) = (BTreeSet::new(), BTreeSet::new());
        Life { fixture, machines, wishes: Vec::new(), alive, homes: BTreeMap::new(), arrived }
    }

    fn take(&mut self, step: &Step, sorts: &[Wish]) {
        let one_of = |pods: Vec<usize>, lot: usize| (!pods.is_empty()).then(|| pods[lot % pods.len()]);
        match step {
            Step::Made(lot) => {
                let (number, sort) = (self.wishes.len(), sorts[lot % sorts.len()].clone());
                let made = wish(number, &sort);
                self.fixture.scheduler.cluster.caches.put::<kinds::Pod>(kinds::Object::of(&made));
                self.fixture.pod(&made);
                self.alive.insert(number);
                self.wishes.push(sort);
            }
            Step::Gone(lot) => {
                let Some(gone) = one_of(self.alive.iter().copied().collect(), *lot) else { return };
                self.fixture.remove(&wish(gone, &self.wishes[gone]));
                self.alive.remove(&gone);
                self.homes.remove(&gone);
            }
            Step::Failed(lot) => {
                let on_their_way = self.homes.keys().copied().filter(|pod| !self.arrived.contains(pod));
                let Some(failed) = one_of(on_their_way.collect(), *lot) else { return };
                self.homes.remove(&failed);
                self.fixture.fail(&wish(failed, &self.wishes[failed]));
            }
            Step::Switched(lot) => {
                let at = lot % self.machines.len();
                self.machines[at].closed ^= true;
                self.fixture.node(&machine(at, &self.machines[at]));
            }
            Step::Relabelled(lot, app) => {
                let Some(pod) = one_of(self.homes.keys().copied().collect(), *lot) else { return };
                let old = self.bound(pod);
                self.wishes[pod].app = *app;
                self.arrived.insert(pod);
                self.fixture.update(&old, &self.bound(pod));
            }
            Step::Passed(seconds) => self.fixture.pass(*seconds),
        }
    }

    /// A pod that has a place, as the caches see it.
    fn bound(&self, pod: usize) -> Value {
        let mut bound = wish(pod, &self.wishes[pod]);
        merge(&mut bound, &json!({ "spec": { "nodeName": format!("n{}", self.homes[&pod]) } }));
        bound
    }

    /// Lets the scheduler do what there is to do.
    fn settle(&mut self) -> Result<(), TestCaseError> {
        for (pod, node) in placed(&mut self.fixture) {
            prop_assert!(self.alive.contains(&pod) && !self.homes.contains_key(&pod), "{pod} needs no place");
            let fits = fits(pod, node, &self.wishes, &self.machines, &self.homes);
            prop_assert!(fits, "{pod} does not fit on {node}");
            self.homes.insert(pod, node);
        }
        Ok(())
    }

    fn waiting(&self) -> impl Iterator<Item = usize> {
        self.alive.iter().copied().filter(|pod| !self.homes.contains_key(pod))
    }
}

/// Where pods went, in the order in which that was decided.
fn placed(fixture: &mut Fixture) -> Vec<(usize, usize)> {
    let mut homes = Vec::new();
    let number = |name: &str| name[1..].parse::<usize>().unwrap();
    while let Some(decision) = fixture.next() {
        if let Decision::Bind { pod, node, .. } = decision {
            homes.push((number(&pod.metadata.name), number(&node)));
        }
    }
    homes
}

/// Whether a pod could be on a node, judged by counting everything anew.
fn fits(at: usize, node: usize, wishes: &[Wish], machines: &[Machine], homes: &BTreeMap<usize, usize>) -> bool {
    let (wish, machine) = (&wishes[at], &machines[node]);
    let there: Vec<&Wish> =
        homes.iter().filter(|(pod, home)| **home == node && **pod != at).map(|(pod, _)| &wishes[*pod]).collect();
    let used: i64 = there.iter().map(|other| other.cpu).sum();
    let apart = there.iter().all(|other| other.app != wish.app || !(other.apart || wish.apart));
    let zone_count = |zone: usize| {
        let inside = |(pod, home): &(&usize, &usize)| {
            **pod != at && machines[**home].zone == zone && wishes[**pod].app == wish.app
        };
        homes.iter().filter(inside).count() as i64
    };
    // Zones that the pod could be in.
    let zones: std::collections::BTreeSet<usize> = machines
        .iter()
        .map(|machine| machine.zone)
        .filter(|zone| wish.zone.is_none_or(|wanted| wanted == *zone))
        .collect();
    let least = zones.iter().map(|zone| zone_count(*zone)).min().unwrap_or(0);
    used + wish.cpu <= machine.cpu
        && (!(machine.tainted || machine.closed) || wish.tolerates)
        && wish.zone.is_none_or(|zone| zone == machine.zone)
        && apart
        && (!wish.spread || zone_count(machine.zone) + 1 - least <= 1)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1_000, ..ProptestConfig::default() })]

    /// A pod that has been given a node fits there when it comes; and whoever waits fits nowhere.
    #[test]
    fn bound_pods_fit_and_waiting_pods_fit_nowhere(machines in machines(), wishes in wishes()) {
        let nodes: Vec<Value> = machines.iter().enumerate().map(|(at, one)| machine(at, one)).collect();
        let mut fixture = Fixture::new(&nodes);
        let mut homes = BTreeMap::new();
        for (at, one) in wishes.iter().enumerate() {
            fixture.pod(&wish(at, one));
            for (pod, node) in placed(&mut fixture) {
                prop_assert!(fits(pod, node, &wishes, &machines, &homes), "{pod} does not fit on {node}");
                homes.insert(pod, node);
            }
        }
        for at in (0..wishes.len()).filter(|at| !homes.contains_key(at)) {
            let possible = (0..machines.len()).find(|node| fits(at, *node, &wishes, &machines, &homes));
            prop_assert!(possible.is_none(), "{at} waits and fits on {possible:?}");
        }
    }

    /// The same while pods come and go, bindings fail and nodes are closed, once back-offs are over: of pods that ask for
    /// the same one is tried for all, and nobody is forgotten for it.
    #[test]
    fn nobody_is_forgotten_while_pods_come_and_go(machines in machines(), sorts in wishes(), steps in steps()) {
        let sorts = &sorts[..sorts.len().min(4)];
        let mut life = Life::begin(machines);
        for step in &steps {
            life.take(step, sorts);
            life.settle()?;
        }
        life.fixture.pass(60);
        life.settle()?;
        for pod in life.waiting() {
            let possible = (0..life.machines.len()).find(|node| fits(pod, *node, &life.wishes, &life.machines, &life.homes));
            prop_assert!(possible.is_none(), "{pod} waits and fits on {possible:?}");
        }
    }

    /// It makes no difference in which order nodes became known.
    #[test]
    fn the_order_of_nodes_makes_no_difference(machines in machines(), wishes in wishes()) {
        let mut nodes: Vec<Value> = machines.iter().enumerate().map(|(at, one)| machine(at, one)).collect();
        let run = |nodes: &[Value]| -> Vec<String> {
            let mut fixture = Fixture::new(nodes);
            wishes.iter().enumerate().for_each(|(at, one)| fixture.pod(&wish(at, one)));
            std::iter::from_fn(|| fixture.next()).map(|decision| told(&decision)).collect()
        };
        let forwards = run(&nodes);
        nodes.reverse();
        prop_assert_eq!(forwards, run(&nodes));
    }
}
