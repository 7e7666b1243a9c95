//! kill -9 at arbitrary moments, some cycles of what `make torture` does for thousands.

use std::path::PathBuf;
use std::time::Duration;
use testkit::torture::driver;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hundred_kills_lose_nothing_that_was_acknowledged() {
    let options = driver::Options {
        program: PathBuf::from(env!("CARGO_BIN_EXE_torture")),
        cycles: 100,
        seed: 20_260_101,
        // On the disk that holds the build, not on a tmpfs where a sync costs nothing.
        within: PathBuf::from(env!("CARGO_TARGET_TMPDIR")),
        longest: Duration::from_millis(120),
    };
    let summary = driver::run(&options, |_| {}).await.unwrap_or_else(|failure| panic!("{failure}"));
    assert_eq!(summary.cycles, 100);
    // The numbers depend on the machine; a worker that never gets to write would prove nothing.
    assert!(summary.acknowledged > 1_000, "{summary:?}");
}
