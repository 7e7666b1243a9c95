//! Kill, reopen, compare, again: on one directory for many cycles, so that damage would add up.

use super::contents::{self, Contents};
use super::ledger::Ledger;
use super::process::{Life, Process};
use super::worker;
use ambient::Random;
use std::path::{Path, PathBuf};
use std::time::Duration;
use store::{Revision, Store};

/// A fresh directory after this many cycles, so that opening a new store is killed often too.
const CYCLES_PER_DIRECTORY: u64 = 25;
/// Numbers of operations set aside for each cycle.
const OPERATIONS_PER_CYCLE: u64 = 1 << 32;

#[derive(Clone, Debug)]
pub struct Options {
    /// The program that becomes a worker.
    pub program: PathBuf,
    pub cycles: u64,
    pub seed: u64,
    /// Where directories are made.
    pub within: PathBuf,
    /// The longest life of a worker.
    pub longest: Duration,
}

/// What many cycles came to.
#[derive(Clone, Copy, Debug, Default)]
pub struct Summary {
    pub cycles: u64,
    pub acknowledged: u64,
    pub revisions: u64,
    /// Workers that died before they had opened the store.
    pub killed_opening: u64,
    /// Workers whose life saw some of the write-ahead log moved into the database.
    pub checkpointed: u64,
    /// Cycles after which the next worker, not the driver, had to recover.
    pub left_unrecovered: u64,
}

/// A cycle that went wrong; its directory is kept.
#[derive(Debug)]
pub struct Failure {
    pub cycle: u64,
    pub seed: u64,
    pub dir: PathBuf,
    pub what: String,
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Failure { cycle, seed, dir, what } = self;
        write!(f, "cycle {cycle} failed (--seed {seed}, directory {} kept): {what}", dir.display())
    }
}

/// Runs all cycles; `progress` is called after each.
pub async fn run(options: &Options, mut progress: impl FnMut(&Summary)) -> Result<Summary, Failure> {
    let random = Random::seeded(options.seed);
    let mut summary = Summary::default();
    while summary.cycles < options.cycles {
        let dir = tempfile::tempdir_in(&options.within).expect("a temporary directory can be made");
        let mut before = Contents::default();
        for _ in 0..CYCLES_PER_DIRECTORY.min(options.cycles - summary.cycles) {
            let cycle = Cycle { number: summary.cycles, random: random.fork(), dir: dir.path().join("data") };
            match cycle.run(options, &before, &mut summary).await {
                Ok(after) => before = after,
                Err(what) => {
                    let dir = dir.keep();
                    return Err(Failure { cycle: summary.cycles, seed: options.seed, dir, what });
                }
            }
            summary.cycles += 1;
            progress(&summary);
        }
    }
    Ok(summary)
}

struct Cycle {
    number: u64,
    random: Random,
    dir: PathBuf,
}

impl Cycle {
    async fn run(&self, options: &Options, before: &Contents, summary: &mut Summary) -> Result<Contents, String> {
        let random = &self.random;
        let worker = worker::Options {
            first: 1 + self.number * OPERATIONS_PER_CYCLE,
            writers: 1 + random.below(32),
            value_bytes: 1 << (4 + random.below(13)),
            history_bytes: 16 << (10 + random.below(8)),
            ..worker::Options::new(&self.dir, random.next())
        };
        // Short lives are as interesting as long ones.
        let longest = 1 + random.below(u64::try_from(options.longest.as_micros()).unwrap_or(u64::MAX));
        let life = Duration::from_micros(2_000 + random.below(longest));
        let database = || self.dir.join("log.db").metadata().and_then(|metadata| metadata.modified()).ok();
        let moved_before = database();
        let process = Process::start(&options.program, &worker, &[]).map_err(|error| error.to_string())?;
        let life = process.kill_after(life).await.map_err(|error| error.to_string())?;
        let ledger = Ledger::new(before, &life);
        check_ending(&ledger, &life)?;
        summary.checkpointed += u64::from(moved_before.is_some() && database() != moved_before);
        let leave = random.chance(0.5);
        let contents = match leave {
            true => self.check_copy(&ledger).await?,
            false => check(&self.dir, &ledger, random).await?,
        };
        summary.left_unrecovered += u64::from(leave);
        summary.acknowledged += ledger.acknowledgements() as u64;
        summary.revisions += contents.revision.0 - before.revision.0;
        summary.killed_opening += u64::from(life.lines.is_empty());
        Ok(contents)
    }

    /// Looks at a copy, so that the next worker finds what this one left, its write-ahead log included.
    async fn check_copy(&self, ledger: &Ledger) -> Result<Contents, String> {
        let copy = self.dir.with_extension("copy");
        copy_dir(&self.dir, &copy).map_err(|error| format!("cannot copy the directory: {error}"))?;
        let contents = check(&copy, ledger, &self.random).await?;
        std::fs::remove_dir_all(&copy).map_err(|error| format!("cannot remove the copy: {error}"))?;
        Ok(contents)
    }
}

/// A worker that nobody hinders neither fails nor ends.
fn check_ending(ledger: &Ledger, life: &Life) -> Result<(), String> {
    match (&ledger.failure, &ledger.unopened, life.status.code()) {
        (None, None, None) => Ok(()),
        (failure, unopened, code) => {
            Err(format!("the worker failed by itself: {failure:?} {unopened:?}, exit code {code:?}"))
        }
    }
}

/// Opens a directory and compares all that is in it with what was acknowledged.
pub async fn check(dir: &Path, ledger: &Ledger, random: &Random) -> Result<Contents, String> {
    let store = contents::open(dir).await.map_err(|error| format!("cannot be opened: {error}"))?;
    let contents = Contents::read(&store).await.map_err(|error| format!("cannot be read: {error}"))?;
    ledger.check(&contents)?;
    let kept = 1 + contents.revision.0 - contents.compacted.0;
    contents.check_past(&store, Revision(contents.compacted.0 + random.below(kept))).await?;
    store.close().await;
    Ok(contents)
}

/// Copies the files of a data directory; there are no directories in it.
pub fn copy_dir(from: &Path, to: &Path) -> std::io::Result<()> {
    if to.exists() {
        std::fs::remove_dir_all(to)?;
    }
    std::fs::create_dir_all(to)?;
    if !from.exists() {
        return Ok(());
    }
    for entry in std::fs::read_dir(from)? {
        let entry = entry?;
        std::fs::copy(entry.path(), to.join(entry.file_name()))?;
    }
    Ok(())
}
