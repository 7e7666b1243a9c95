//! What holds for whatever gangs come and go, and whichever bindings fail.

use super::gang::{gang, member};
use super::{Fixture, asking, node};
use crate::Decision;
use object::{Value, json};
use proptest::prelude::*;
use std::collections::BTreeMap;

/// Pods that ask for the same, in a gang or each for itself.
#[derive(Clone, Debug)]
struct Crowd {
    pods: usize,
    cpu: i64,
    /// How many must be placed before any of them is; none: each is by itself.
    min_count: Option<usize>,
}

#[derive(Clone, Debug)]
enum Step {
    Come(Crowd),
    /// The n-th of those that have come is done, whether it was placed or not.
    Leave(usize),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let gang = (1..6_usize, 1..4_i64, 1..6_usize).prop_map(|(pods, cpu, min)| (pods, cpu, Some(min.min(pods))));
    let alone = (1..3_usize, 1..4_i64).prop_map(|(pods, cpu)| (pods, cpu, None));
    let crowd = prop_oneof![3 => gang, 1 => alone];
    let crowd = crowd.prop_map(|(pods, cpu, min_count)| Crowd { pods, cpu, min_count });
    let step = prop_oneof![3 => crowd.prop_map(Step::Come), 1 => (0..8_usize).prop_map(Step::Leave)];
    prop::collection::vec(step, 1..10)
}

/// Who is there, and where.
#[derive(Debug, Default)]
struct World {
    machines: Vec<i64>,
    crowds: BTreeMap<usize, Crowd>,
    /// Crowd and number of a pod, and its node.
    homes: BTreeMap<(usize, usize), usize>,
}

impl World {
    fn pod(&self, crowd: usize, at: usize) -> Value {
        let Crowd { cpu, min_count, .. } = &self.crowds[&crowd];
        let name = format!("c{crowd}-{at}");
        match min_count {
            Some(_) => member(&name, &format!("c{crowd}"), &cpu.to_string()),
            None => asking(&name, &cpu.to_string()),
        }
    }

    fn free(&self, node: usize) -> i64 {
        let there = self.homes.iter().filter(|(_, home)| **home == node);
        self.machines[node] - there.map(|((crowd, _), _)| self.crowds[crowd].cpu).sum::<i64>()
    }

    /// For how many pods of a size there is room.
    fn room(&self, cpu: i64) -> usize {
        (0..self.machines.len()).map(|node| (self.free(node) / cpu) as usize).sum()
    }

    fn placed(&self, crowd: usize) -> usize {
        self.homes.keys().filter(|(of, _)| *of == crowd).count()
    }
}

fn numbers(name: &str) -> (usize, usize) {
    let (crowd, at) = name[1..].split_once('-').expect("the name of a pod of a crowd");
    (crowd.parse().unwrap(), at.parse().unwrap())
}

/// Carries decisions out until there are none; of the bindings, those fail that `fails` says.
fn settle(fixture: &mut Fixture, world: &mut World, fails: &mut impl Iterator<Item = bool>) {
    loop {
        fixture.pass(60);
        let decisions: Vec<Decision> = std::iter::from_fn(|| fixture.next()).collect();
        if decisions.is_empty() {
            return;
        }
        for decision in &decisions {
            let Decision::Bind { pod, node, .. } = decision else { continue };
            let (crowd, at) = numbers(&pod.metadata.name);
            let mut object = world.pod(crowd, at);
            if fails.next().unwrap_or(false) {
                fixture.not_bound(&object);
                continue;
            }
            world.homes.insert((crowd, at), node[1..].parse().unwrap());
            object["spec"]["nodeName"] = json!(node);
            fixture.pod(&object);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, ..ProptestConfig::default() })]

    /// Once nothing is left to decide, no gang is there in part, no node has more than it can take, and whoever waits
    /// would not fit.
    #[test]
    fn gangs_are_placed_whole_or_not_at_all(
        machines in prop::collection::vec(1..6_i64, 1..6),
        steps in steps(),
        fails in prop::collection::vec(prop::bool::weighted(0.3), 0..20),
    ) {
        let size = |cpu: &i64| json!({ "status": { "allocatable": { "cpu": cpu.to_string() } } });
        let nodes: Vec<Value> = machines.iter().enumerate().map(|(at, cpu)| node(&format!("n{at}"), &size(cpu))).collect();
        let mut fixture = Fixture::with_groups(&nodes);
        let mut world = World { machines, ..World::default() };
        let mut fails = fails.into_iter();
        for (number, step) in steps.into_iter().enumerate() {
            match step {
                Step::Come(crowd) => {
                    let (pods, min_count) = (crowd.pods, crowd.min_count);
                    world.crowds.insert(number, crowd);
                    (0..pods).for_each(|at| fixture.pod(&world.pod(number, at)));
                    if let Some(min_count) = min_count {
                        fixture.group(&gang(&format!("c{number}"), min_count));
                    }
                }
                Step::Leave(nth) => {
                    let Some(crowd) = world.crowds.keys().nth(nth).copied() else { continue };
                    for at in 0..world.crowds[&crowd].pods {
                        fixture.remove(&world.pod(crowd, at));
                        world.homes.remove(&(crowd, at));
                    }
                    world.crowds.remove(&crowd);
                }
            }
            settle(&mut fixture, &mut world, &mut fails);
            prop_assert!((0..world.machines.len()).all(|node| world.free(node) >= 0), "{world:?}");
            for (number, crowd) in &world.crowds {
                let (placed, room) = (world.placed(*number), world.room(crowd.cpu));
                let min_count = crowd.min_count.unwrap_or(0);
                prop_assert!(placed == 0 || placed >= min_count, "{number} is there in part: {world:?}");
                let would_fit = if placed == 0 { room >= min_count.max(1) } else { room > 0 };
                prop_assert!(placed == crowd.pods || !would_fit, "{number} waits and fits: {world:?}");
            }
        }
    }
}
