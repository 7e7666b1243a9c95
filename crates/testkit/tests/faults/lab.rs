//! A data directory to be mistreated, the workers that live in it, and what is known about it.

use std::path::{Path, PathBuf};
use testkit::torture::contents::{self, Contents};
use testkit::torture::driver;
use testkit::torture::ledger::Ledger;
use testkit::torture::process::{Life, Process};
use testkit::torture::protocol::Line;
use testkit::torture::worker::Options;

/// SQLite's name for the write-ahead log beside `log.db`.
pub(crate) const WAL: &str = "log.db-wal";
/// Checkpoints start once the write-ahead log has 16 MiB of pages.
const CHECKPOINT_BYTES: u64 = 16 << 20;

#[derive(Debug)]
pub(crate) struct Lab {
    root: tempfile::TempDir,
    /// What is in the directory now.
    pub(crate) before: Contents,
    operations: u64,
}

impl Lab {
    /// An empty directory in memory where there is such a file system: what these tests do to files needs no disk.
    pub(crate) fn new() -> Self {
        let memory = Path::new("/dev/shm");
        let within = if memory.is_dir() { memory.to_owned() } else { std::env::temp_dir() };
        let root = tempfile::Builder::new().prefix("faults").tempdir_in(within).unwrap();
        Lab { root, before: Contents::default(), operations: 1 }
    }

    pub(crate) fn dir(&self) -> PathBuf {
        self.root.path().join("data")
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.root.path().join(name)
    }

    /// How much of a file is in use: room that was made for later is zeros at its end, and nobody misses it.
    pub(crate) fn used_bytes(&self, file: &str) -> u64 {
        let path = self.dir().join(file);
        let bytes = if path.exists() { std::fs::read(path).unwrap() } else { Vec::new() };
        bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last as u64 + 1)
    }

    /// Options for the next worker: its operations are new ones.
    pub(crate) fn worker(&mut self, seed: u64) -> Options {
        self.operations += 1 << 32;
        Options { first: self.operations, ..Options::new(self.dir(), seed) }
    }

    pub(crate) fn start(&self, options: &Options, environment: &[(&str, String)]) -> Process {
        Process::start(Path::new(env!("CARGO_BIN_EXE_torture")), options, environment).unwrap()
    }

    /// Runs a worker until all is answered and kills it then: everything is acknowledged, nothing is cleaned up.
    pub(crate) async fn fill(&mut self, options: &Options) -> Life {
        let mut process = self.start(options, &[]);
        assert!(process.until(|line| *line == Line::Done).await, "the worker ended early");
        process.kill().await.unwrap()
    }

    /// Checks a worker's directory by way of a copy, so that it stays as it was left.
    pub(crate) async fn look(&self, life: &Life) -> (Ledger, Contents) {
        let ledger = Ledger::new(&self.before, life);
        let copy = self.path("look");
        driver::copy_dir(&self.dir(), &copy).unwrap();
        let contents = contents::of(&copy).await.unwrap();
        ledger.check(&contents).unwrap_or_else(|what| panic!("{what}"));
        (ledger, contents)
    }

    /// Fills the write-ahead log until it is about to be checkpointed.
    pub(crate) async fn fill_to_the_brim(&mut self, seed: u64) {
        while self.used_bytes(WAL) < CHECKPOINT_BYTES - (1 << 20) {
            let options = self.worker(seed + self.operations);
            let options = Options { operations: Some(20), value_bytes: 16_000, ..options };
            self.fill(&options).await;
        }
        assert!(self.used_bytes(WAL) < CHECKPOINT_BYTES, "the write-ahead log is too long already");
        driver::copy_dir(&self.dir(), &self.path("brim")).unwrap();
        driver::copy_dir(&self.dir(), &self.path("look")).unwrap();
        self.before = contents::of(&self.path("look")).await.unwrap();
    }

    /// Goes back to where [`Lab::fill_to_the_brim`] stopped.
    pub(crate) fn back_to_the_brim(&self) {
        driver::copy_dir(&self.path("brim"), &self.dir()).unwrap();
    }

    /// Starts over with an empty directory.
    pub(crate) fn clear(&mut self) {
        if self.dir().exists() {
            std::fs::remove_dir_all(self.dir()).unwrap();
        }
        self.before = Contents::default();
    }
}
