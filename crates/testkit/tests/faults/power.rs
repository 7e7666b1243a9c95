//! Power is lost at hundreds of points: what was written since the last sync of a file is gone, torn, or there.

use super::lab::Lab;
use super::shim::{Fault, Shim};
use ambient::Random;
use testkit::torture::driver;
use testkit::torture::ledger::Ledger;
use testkit::torture::worker::Options;

/// What the shim ends the process with.
const LOST: i32 = 137;

/// Loses power at the given call and checks what comes back. Returns how many writes were acknowledged.
async fn lose_power(lab: &mut Lab, shim: &Shim, at: u64, seed: u64) -> usize {
    let random = Random::seeded(seed);
    let options = Options {
        operations: Some(20_000),
        writers: 1 + random.below(6),
        value_bytes: 1 << (4 + random.below(10)),
        history_bytes: 4 << (10 + random.below(6)),
        close: true,
        ..lab.worker(seed)
    };
    let environment = shim.environment(&lab.dir(), Fault { kind: "power", file: "", at, seed });
    let life = lab.start(&options, &environment).end().await.unwrap();
    let ledger = Ledger::new(&lab.before, &life);
    assert_eq!(life.status.code(), Some(LOST), "seed {seed}: {:?} {:?}", ledger.failure, ledger.unopened);
    match driver::check(&lab.dir(), &ledger, &random).await {
        Ok(contents) => lab.before = contents,
        Err(what) => panic!("power lost at call {at}, seed {seed}: {what}"),
    }
    ledger.acknowledgements()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn power_lost_at_any_point_loses_nothing_that_was_acknowledged() {
    let (mut lab, shim, random) = (Lab::new(), Shim::build(), Random::seeded(11));
    let mut acknowledged = 0;
    for seed in 0..240 {
        // Some directories see several losses.
        if seed % 3 == 0 {
            lab.clear();
        }
        acknowledged += lose_power(&mut lab, &shim, 1 + random.below(1 + random.below(900)), seed).await;
    }
    assert!(acknowledged > 240, "{acknowledged} acknowledgements prove little");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn power_lost_during_a_checkpoint_loses_nothing_that_was_acknowledged() {
    let (mut lab, shim, random) = (Lab::new(), Shim::build(), Random::seeded(12));
    lab.fill_to_the_brim(5).await;
    let before = lab.before.clone();
    for seed in 0..60 {
        lab.back_to_the_brim();
        lab.before = before.clone();
        lose_power(&mut lab, &shim, 1 + random.below(2500), 1000 + seed).await;
    }
}
