//! The whole control plane under faults, from seeds. `make simulate SEEDS=n` runs more of them.

use testkit::simulation;

/// Runs a part of the seeds, and says which failed and how.
fn run(seeds: std::ops::Range<u64>) {
    let failures: Vec<_> =
        seeds.filter_map(|seed| simulation::run(seed).err().map(|problem| format!("seed {seed}: {problem}"))).collect();
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

macro_rules! parts {
    ($($name:ident: $seeds:expr;)*) => { $(#[test] fn $name() { run($seeds); })* };
}

// Each is a test of its own, so that they run side by side.
parts! {
    everything_comes_to_match_and_to_rest_1: 0..25;
    everything_comes_to_match_and_to_rest_2: 25..50;
    everything_comes_to_match_and_to_rest_3: 50..75;
    everything_comes_to_match_and_to_rest_4: 75..100;
    everything_comes_to_match_and_to_rest_5: 100..125;
    everything_comes_to_match_and_to_rest_6: 125..150;
    everything_comes_to_match_and_to_rest_7: 150..175;
    everything_comes_to_match_and_to_rest_8: 175..200;
}

/// So many writes are passed over between two crashes. `make simulate` crashes after every one.
const STRIDE: usize = 10;

/// A crash after writes of a life of some kinds.
fn crash_after_writes(life: usize) {
    for n in (1..).step_by(STRIDE) {
        match simulation::crash_after(life, n) {
            Ok(true) => {}
            Ok(false) => {
                assert!(n > 20, "there were only {n} writes");
                return;
            }
            Err(problem) => panic!("life {life}, a crash after write {n}: {problem}"),
        }
    }
}

macro_rules! lives {
    ($($name:ident: $life:expr;)*) => {
        $(#[test] fn $name() { crash_after_writes($life); })*
        const _: () = assert!([$($life),*].len() == simulation::LIVES);
    };
}

lives! {
    a_crash_after_a_write_changes_nothing_1: 0;
    a_crash_after_a_write_changes_nothing_2: 1;
    a_crash_after_a_write_changes_nothing_3: 2;
    a_crash_after_a_write_changes_nothing_4: 3;
}

#[test]
fn a_seed_replays_exactly() {
    for seed in [3, 11] {
        let (first, second) = (simulation::run(seed).expect("it passes"), simulation::run(seed).expect("it passes"));
        assert_eq!(first, second, "seed {seed}");
    }
}
