//! A whole cluster on one thread, under virtual time, from a seed.
//!
//! Users edit at random while faults happen; then the faults stop. From there on one property holds for everything:
//! what is comes to match what is wanted, and then nothing is written any more. Whatever happened follows from the
//! seed, so a failure is replayed by its number.

mod deletions;
mod driver;
mod evictions;
mod faults;
mod oracle;
mod pace;
mod sabotage;
mod users;
mod world;

pub use evictions::evict_under_faults;
pub use faults::Faults;
pub use sabotage::{How, Sabotage};
pub use world::World;

use std::collections::BTreeMap;
use std::time::Duration;
use users::Users;

/// How long users edit and faults happen.
const TURMOIL: Duration = Duration::from_secs(120);
/// The longest pause between two edits.
const MAX_PAUSE_MILLIS: u64 = 5_000;
/// How long everything may take to come to rest: back-off after faults included, and autoscalers that go down step by
/// step, each five minutes after the one before.
const SETTLING: Duration = Duration::from_secs(3600);
/// The same where there are no faults.
const UNDISTURBED: Duration = Duration::from_secs(900);
/// How long nothing may be written then.
const REST: Duration = Duration::from_secs(600);
/// The same where there are many runs that are nearly alike.
const SHORT_REST: Duration = Duration::from_secs(60);

/// What cannot be done may be said again meanwhile, so often of each object: a burst, and one every five minutes.
const MAX_COMPLAINTS: usize = 30;

/// So many of the last writes are shown with a failure.
const RECENT: usize = 40;

/// Runs one seed; says what is wrong, if something is.
pub fn run(seed: u64) -> Result<Report, String> {
    in_virtual_time(simulate(seed))
}

/// What a run did: equal for equal seeds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    pub edits: usize,
    pub crashes: usize,
    pub faults: u64,
    /// The version of the cluster at the end: as many writes were committed.
    pub revision: u64,
    /// Every write of every loop, in order, with its time.
    pub trace: Vec<String>,
}

async fn simulate(seed: u64) -> Result<Report, String> {
    // Every other run has two servers that take turns.
    let servers = 1 + usize::from(seed % 2 == 1);
    let mut world = World::start(seed, servers, world::NODES).await;
    let users = Users::new(&world);
    let mut report = Report::default();
    world.faults.start();
    let end = world.clock().monotonic() + TURMOIL;
    while world.clock().monotonic() < end {
        users.edit(&world).await;
        report.edits += 1;
        let pause = Duration::from_millis(world.random.below(MAX_PAUSE_MILLIS));
        world.perhaps_cut_off();
        report.crashes += world.pause(pause).await;
    }
    users::calm_down(&world).await;
    report.faults = world.faults.stop();
    // Who has not crashed goes on with what it has been through. One may have crashed at the very end, and would stay down.
    report.crashes += world.pause(Duration::ZERO).await;
    settle(&world, REST).await?;
    report.revision = world.revision();
    report.trace = world.trace();
    world.stop().await;
    Ok(report)
}

/// How many parts of all kinds [`crash_after`] knows.
pub const LIVES: usize = users::LIVES;

/// Makes one of each of some kinds, changes them, and lets the server crash after the `n`-th write, and never again.
/// Tells whether there was such a write.
pub fn crash_after(life: usize, n: u64) -> Result<bool, String> {
    in_virtual_time(async move {
        let mut world = World::start(n, 1, world::NODES).await;
        world.faults.only_crash_after(n);
        let mut crashes = 0;
        for step in 0..users::STEPS {
            users::step(&world, life, step).await;
            crashes += world.pause(Duration::from_secs(30)).await;
        }
        crashes += world.pause(Duration::from_secs(60)).await;
        users::calm_down(&world).await;
        world.faults.stop();
        // It may have crashed at the very end, and would stay down.
        crashes += world.pause(Duration::ZERO).await;
        settle(&world, SHORT_REST).await?;
        world.stop().await;
        Ok(crashes > 0)
    })
}

/// Lets users make some things, change them twice and perhaps delete them, with a loop that may be broken; tells what is
/// found to be wrong a while later.
pub fn found_wrong(seed: u64, names: &[&str], deletes: bool, broken: Option<Sabotage>) -> Result<String, String> {
    in_virtual_time(async move {
        let mut world = World::start_broken(seed, 1, world::NODES, broken).await;
        for step in 0..users::STEPS - usize::from(!deletes) {
            users::step_of(&world, names, step).await;
            world.pause(Duration::from_secs(60)).await;
        }
        users::calm_down(&world).await;
        let mut problems = Vec::new();
        for _ in 0..UNDISTURBED.as_secs() / 60 {
            world.pause(Duration::from_secs(60)).await;
            problems = oracle::problems(&world).await;
            if problems.is_empty() {
                break;
            }
        }
        problems.extend(world.faults.frenzy());
        problems.extend(world.deletions.wrong());
        world.stop().await;
        Ok(problems.join("\n"))
    })
}

/// Runs a test against a cluster in which only these loops work: in virtual time, without faults and nodes.
pub fn with_loops(names: &[&str], test: impl AsyncFnOnce(&World)) {
    let run = in_virtual_time(async move {
        let world = World::start_few(names).await;
        test(&world).await;
        world.stop().await;
        Ok(())
    });
    run.expect("a runtime can be made");
}

fn in_virtual_time<T>(run: impl Future<Output = Result<T, String>>) -> Result<T, String> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
    runtime.map_err(|error| error.to_string())?.block_on(run)
}

/// Waits until everything is as it should be, and sees to it that it stays so without a single write.
async fn settle(world: &World, rest: Duration) -> Result<(), String> {
    let deadline = world.clock().monotonic() + SETTLING;
    let mut problems = vec!["nothing was looked at".to_owned()];
    while world.clock().monotonic() < deadline {
        tokio::time::sleep(Duration::from_secs(5)).await;
        if let Some(frenzy) = world.faults.frenzy() {
            return Err(format!("a loop writes without end: {frenzy}"));
        }
        let wrong = world.deletions.wrong();
        if !wrong.is_empty() {
            return Err(format!("not everything was deleted as was asked for:\n  {}", wrong.join("\n  ")));
        }
        problems = oracle::problems(world).await;
        if problems.is_empty() {
            // What has just come to match may still be reported, or seen by somebody who decides otherwise.
            tokio::time::sleep(Duration::from_secs(60)).await;
            problems = oracle::problems(world).await;
        }
        if problems.is_empty() {
            break;
        }
    }
    if !problems.is_empty() {
        let mut trace = world.trace();
        let recent = trace.split_off(trace.len().saturating_sub(RECENT));
        let (problems, recent) = (problems.join("\n  "), recent.join("\n  "));
        return Err(format!("does not come to match what is wanted:\n  {problems}\nwritten last:\n  {recent}"));
    }
    let before = world.trace().len();
    tokio::time::sleep(rest).await;
    let (complaints, written): (Vec<_>, Vec<_>) =
        world.trace().split_off(before).into_iter().partition(|write| write.contains("/events"));
    let mut often = BTreeMap::<_, usize>::new();
    for complaint in complaints.iter().filter_map(|complaint| complaint.split_once(' ')) {
        *often.entry(complaint.1).or_default() += 1;
    }
    let is_noisy = often.values().any(|times| *times > MAX_COMPLAINTS);
    if !written.is_empty() || is_noisy {
        let written = if written.is_empty() { complaints } else { written };
        return Err(format!("does not come to rest:\n  {}", written.join("\n  ")));
    }
    let problems = oracle::problems(world).await;
    if problems.is_empty() { Ok(()) } else { Err(format!("does not stay as it should:\n  {}", problems.join("\n  "))) }
}
