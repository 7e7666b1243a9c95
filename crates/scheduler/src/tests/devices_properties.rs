//! What holds for whatever devices are offered and claimed.

use super::devices::{asks, claim, using};
use super::{Fixture, merge};
use crate::Decision;
use kinds::Key;
use object::{Value, View, json};
use proptest::prelude::*;
use std::collections::BTreeMap;

/// A node with a pool of its own.
#[derive(Clone, Debug)]
struct Machine {
    gadgets: Vec<Gadget>,
    /// How many parts its devices are made of.
    parts: i64,
}

#[derive(Clone, Debug)]
struct Gadget {
    model: i64,
    bus: i64,
    parts: i64,
    /// Whether several can have some of it.
    shared: bool,
}

const CAPACITY: i64 = 4;

#[derive(Clone, Debug)]
struct Wish {
    /// None: all.
    count: Option<usize>,
    model: Option<i64>,
    same_bus: bool,
    admin: bool,
    amount: i64,
}

#[derive(Clone, Debug)]
enum Step {
    Come(Wish),
    /// The n-th of those that have devices is done.
    Leave(usize),
}

/// A device that somebody has.
#[derive(Clone, Debug, PartialEq)]
struct Given {
    pod: usize,
    node: usize,
    gadget: usize,
}

fn machines() -> impl Strategy<Value = Vec<Machine>> {
    let gadget = (0..2_i64, 0..2_i64, 0..4_i64, prop::bool::weighted(0.3));
    let gadget = gadget.prop_map(|(model, bus, parts, shared)| Gadget { model, bus, parts, shared });
    let machine = (prop::collection::vec(gadget, 0..5), 2..7_i64);
    prop::collection::vec(machine.prop_map(|(gadgets, parts)| Machine { gadgets, parts }), 1..4)
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let count = prop_oneof![4 => (1..4_usize).prop_map(Some), 1 => Just(None)];
    let wish = (count, prop::option::of(0..2_i64), prop::bool::weighted(0.3), prop::bool::weighted(0.1), 1..4_i64);
    let wish = wish.prop_map(|(count, model, same_bus, admin, amount)| Wish { count, model, same_bus, admin, amount });
    let step = prop_oneof![3 => wish.prop_map(Step::Come), 1 => (0..8_usize).prop_map(Step::Leave)];
    prop::collection::vec(step, 1..10)
}

fn offer(fixture: &mut Fixture, number: usize, machine: &Machine) {
    let node = format!("n{number}");
    let pool = json!({ "name": node, "generation": 1, "resourceSliceCount": 2 });
    let counters = json!([{ "name": "parts", "counters": { "part": { "value": machine.parts.to_string() } } }]);
    fixture.slice(&format!("{node}-counters"), &json!({ "nodeName": node, "pool": pool, "sharedCounters": counters }));
    let devices = machine.gadgets.iter().enumerate().map(|(at, gadget)| {
        let consumes =
            json!([{ "counterSet": "parts", "counters": { "part": { "value": gadget.parts.to_string() } } }]);
        json!({
            "name": format!("d{at}"), "allowMultipleAllocations": gadget.shared,
            "attributes": { "model": { "int": gadget.model }, "bus": { "int": gadget.bus } },
            "capacity": { "memory": { "value": CAPACITY.to_string() } },
            "consumesCounters": if gadget.parts > 0 { consumes } else { json!([]) },
        })
    });
    let devices: Vec<Value> = devices.collect();
    fixture.slice(&format!("{node}-devices"), &json!({ "nodeName": node, "pool": pool, "devices": devices }));
}

fn wanted(number: usize, wish: &Wish) -> Value {
    let mut more = json!({
        "adminAccess": wish.admin, "capacity": { "requests": { "memory": wish.amount.to_string() } },
    });
    if wish.count.is_none() {
        merge(&mut more, &json!({ "allocationMode": "All" }));
    }
    if let Some(model) = wish.model {
        let expression = format!("device.attributes['gpu.example.com'].model == {model}");
        merge(&mut more, &json!({ "selectors": [{ "cel": { "expression": expression } }] }));
    }
    let mut devices = asks(wish.count.unwrap_or(0) as i64, &more);
    if wish.same_bus {
        devices["constraints"] = json!([{ "matchAttribute": "gpu.example.com/bus" }]);
    }
    claim(&format!("c{number}"), &devices)
}

struct World<'a> {
    machines: &'a [Machine],
    wishes: &'a [Wish],
}

impl World<'_> {
    /// Whether all this can be given at the same time.
    fn is_legal(&self, given: &[Given]) -> bool {
        let taken = |given: &&Given| !self.wishes[given.pod].admin;
        self.machines.iter().enumerate().all(|(node, machine)| {
            let mut parts = 0;
            let fits = machine.gadgets.iter().enumerate().all(|(gadget, it)| {
                let users: Vec<&Given> =
                    given.iter().filter(taken).filter(|one| (one.node, one.gadget) == (node, gadget)).collect();
                parts += if users.is_empty() { 0 } else { it.parts };
                let amount: i64 = users.iter().map(|one| self.wishes[one.pod].amount).sum();
                if it.shared { amount <= CAPACITY } else { users.len() <= 1 }
            });
            fits && parts <= machine.parts
        })
    }

    /// Devices of a node that a pod asks for, as far as each by itself is concerned.
    fn candidates(&self, pod: usize, node: usize, given: &[Given]) -> Vec<usize> {
        let wish = &self.wishes[pod];
        let has_left = |gadget: usize| {
            let others =
                given.iter().filter(|one| (one.node, one.gadget) == (node, gadget) && !self.wishes[one.pod].admin);
            let amount: i64 = others.map(|one| self.wishes[one.pod].amount).sum();
            !self.machines[node].gadgets[gadget].shared || amount + wish.amount <= CAPACITY
        };
        let all = self.machines[node].gadgets.iter().enumerate();
        let meant = all.filter(|(at, it)| wish.model.is_none_or(|model| model == it.model) && has_left(*at));
        meant.map(|(at, _)| at).collect()
    }

    fn fits(&self, pod: usize, node: usize, given: &[Given]) -> bool {
        let candidates = self.candidates(pod, node, given);
        let count = self.wishes[pod].count.unwrap_or(candidates.len());
        (0..1_u32 << candidates.len()).any(|chosen| {
            let chosen: Vec<usize> =
                candidates.iter().enumerate().filter(|(at, _)| chosen & (1 << at) != 0).map(|(_, one)| *one).collect();
            let buses: std::collections::BTreeSet<i64> =
                chosen.iter().map(|gadget| self.machines[node].gadgets[*gadget].bus).collect();
            let together =
                given.iter().cloned().chain(chosen.iter().map(|gadget| Given { pod, node, gadget: *gadget }));
            count > 0
                && chosen.len() == count
                && (!self.wishes[pod].same_bus || buses.len() == 1)
                && self.is_legal(&together.collect::<Vec<Given>>())
        })
    }
}

fn number(name: &str) -> usize {
    name[1..].parse().expect("a letter and a number")
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, ..ProptestConfig::default() })]

    /// No device is given twice, unless it is for many or to look at; and whoever waits could have none anywhere.
    #[test]
    fn devices_are_given_once_and_who_waits_could_have_none(machines in machines(), steps in steps()) {
        let nodes: Vec<String> = (0..machines.len()).map(|at| format!("n{at}")).collect();
        let mut fixture = Fixture::with_devices(&nodes.iter().map(String::as_str).collect::<Vec<&str>>());
        machines.iter().enumerate().for_each(|(at, machine)| offer(&mut fixture, at, machine));
        let wishes: Vec<Wish> = steps.iter().filter_map(|step| match step {
            Step::Come(wish) => Some(wish.clone()),
            Step::Leave(_) => None,
        }).collect();
        let world = World { machines: &machines, wishes: &wishes };
        let (mut claims, mut given, mut waiting) = (BTreeMap::new(), Vec::<Given>::new(), Vec::new());
        let mut next = 0..wishes.len();
        for step in &steps {
            match step {
                Step::Come(wish) => {
                    let at = next.next().expect("a pod for each wish");
                    let name = format!("c{at}");
                    claims.insert(Key::new("default", name.as_str()), wanted(at, wish));
                    fixture.claim(&wanted(at, wish));
                    fixture.user(&using(&format!("p{at}"), &[&name]));
                    waiting.push(at);
                }
                Step::Leave(nth) => {
                    let users: std::collections::BTreeSet<usize> = given.iter().map(|one| one.pod).collect();
                    let Some(pod) = users.iter().nth(*nth).copied() else { continue };
                    given.retain(|one| one.pod != pod);
                    fixture.remove(&using(&format!("p{pod}"), &[&format!("c{pod}")]));
                    fixture.claim(&wanted(pod, &wishes[pod]));
                }
            }
            // Each time so long that nobody waits to be woken: who wants all of what is left may be helped by another who
            // takes some of it.
            let mut is_settled = false;
            while !is_settled {
                is_settled = true;
                fixture.pass(400);
                while let Some(decision) = fixture.next() {
                    let Decision::Bind { pod, node, devices, .. } = &decision else { continue };
                    is_settled = false;
                    let (pod, node) = (number(&pod.metadata.name), number(node));
                    let allocation = devices.allocations().remove(0).1;
                    for result in allocation.path(&["devices"]).items("results") {
                        given.push(Given { pod, node, gadget: number(result.text("device")) });
                    }
                    prop_assert!(world.is_legal(&given), "{given:?}");
                    waiting.retain(|other| *other != pod);
                    fixture.carry_out(&decision, &mut claims);
                }
            }
            for pod in &waiting {
                let possible = (0..machines.len()).find(|node| world.fits(*pod, *node, &given));
                prop_assert!(possible.is_none(), "{pod} waits and could be on {possible:?} beside {given:?}");
            }
        }
    }
}
