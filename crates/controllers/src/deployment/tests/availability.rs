//! Rollouts with real sets, in whatever order the loops get their turn: none is ever up to date about the other.

use super::*;
use crate::replica_set;
use kinds::Pod;
use proptest::prelude::*;

#[derive(Clone, Debug)]
enum Turn {
    Deployment,
    /// One of the sets looks after its pods, and reports.
    Set(usize),
    /// One of the pods that are not ready yet becomes so.
    Ready(usize),
    /// Somebody wants another image.
    Image(u8),
}

fn turns() -> impl Strategy<Value = Vec<Turn>> {
    let turn = prop_oneof![
        8 => Just(Turn::Deployment),
        8 => any::<usize>().prop_map(Turn::Set),
        6 => any::<usize>().prop_map(Turn::Ready),
        1 => (0..3_u8).prop_map(Turn::Image),
    ];
    prop::collection::vec(turn, 1..150)
}

fn sets_planned(caches: &Caches, request: &Request) -> Plan {
    replica_set::observe(caches, request).map(|observed| replica_set::plan(&observed, request)).unwrap_or_default()
}

fn is_ready(pod: &Value) -> bool {
    !pod.at("status").items("conditions").is_empty()
}

/// One of several; none if there are none.
fn one_of<T>(all: impl IntoIterator<Item = T>, lot: usize) -> Option<T> {
    let mut all: Vec<T> = all.into_iter().collect();
    (!all.is_empty()).then(|| all.swap_remove(lot % all.len()))
}

fn take(world: &mut World, turn: &Turn) {
    match turn {
        Turn::Deployment => drop(world.step("web", &planned)),
        Turn::Set(lot) => {
            let set = one_of(world.names::<ReplicaSet>(), *lot).map(str::to_owned);
            set.into_iter().for_each(|set| drop(world.step(&set, &sets_planned)));
        }
        Turn::Ready(lot) => {
            let starting = world.all::<Pod>().into_iter().filter(|pod| !is_ready(pod));
            let Some(pod) = one_of(starting, *lot) else { return };
            let status = json!({ "phase": "Running", "conditions": [{ "type": "Ready", "status": "True" }] });
            world.edit::<Pod>(pod.at("metadata").text("name"), |pod| pod.set("status", status));
        }
        Turn::Image(image) => use_image(world, &format!("v{image}")),
    }
}

/// Everybody gets turns until nothing is left to do.
fn finish(world: &mut World) {
    for _ in 0..100 {
        let before = world.writes.len();
        let sets: Vec<String> = world.names::<ReplicaSet>().into_iter().map(str::to_owned).collect();
        take(world, &Turn::Deployment);
        sets.iter().for_each(|set| drop(world.step(set, &sets_planned)));
        let starting = world.all::<Pod>().iter().filter(|pod| !is_ready(pod)).count();
        (0..starting).for_each(|_| take(world, &Turn::Ready(0)));
        if world.writes.len() == before && starting == 0 {
            return;
        }
    }
    panic!("the rollout never ends");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    /// Never are fewer pods available than a deployment says, nor are there to be more than it allows; and every rollout
    /// ends.
    #[test]
    fn a_rollout_stays_within_its_limits_whoever_is_late(
        replicas in 1..6_i32, surge in 0..3_i32, unavailable in 0..3_i32, turns in turns(),
    ) {
        let unavailable = if surge == 0 { unavailable.max(1) } else { unavailable };
        let mut deployment = deployment(replicas);
        deployment["spec"]["strategy"]["rollingUpdate"] = json!({ "maxSurge": surge, "maxUnavailable": unavailable });
        let mut world = World::new();
        world.create::<Deployment>(deployment);
        finish(&mut world);
        for (at, turn) in turns.iter().enumerate() {
            take(&mut world, turn);
            let available = world.all::<Pod>().iter().filter(|pod| is_ready(pod)).count() as i32;
            let total = sizes(&world).iter().sum::<i64>();
            prop_assert!(available >= replicas - unavailable, "{available} of {replicas} after {:?}", &turns[..=at]);
            prop_assert!(total <= i64::from(replicas + surge), "{total} of {replicas} after {:?}", &turns[..=at]);
        }
        finish(&mut world);
        let image = world.get::<Deployment>("web")["spec"]["template"]["spec"]["containers"].clone();
        let images: Vec<Value> = world.all::<Pod>().iter().map(|pod| pod["spec"]["containers"].clone()).collect();
        prop_assert_eq!(images, vec![image; replicas as usize]);
    }
}
