//! A disk that is full, and writes and syncs that fail: the store says why, falls silent, and recovers everything.

use super::lab::{Lab, WAL};
use super::shim::{Fault, Shim};
use ambient::Random;
use std::path::Path;
use std::process::Command;
use testkit::torture::driver;
use testkit::torture::ledger::Ledger;
use testkit::torture::process::Life;
use testkit::torture::worker::{FAILED, Options, UNOPENED};

/// Far more than any fault here lets happen.
const OPERATIONS: u64 = 20_000;

/// What must hold after a worker's store failed: the cause was named, nothing was acknowledged any more, and once the
/// disk works again everything that was acknowledged is there and the store goes on.
async fn check_failed(lab: &mut Lab, life: &Life, cause: &str) {
    let ledger = Ledger::new(&lab.before, life);
    let code = life.status.code();
    let told = ledger.failure.as_ref().or(ledger.unopened.as_ref());
    assert!(code == Some(FAILED.into()) || code == Some(UNOPENED.into()), "{code:?} {told:?}");
    let told = told.expect("a store that fails says so");
    assert!(told.contains(cause), "{told}");
    ledger.check_silence().unwrap();
    for refusal in ledger.refusals() {
        let named = refusal.contains("the store has failed") || refusal.contains("the outcome of the write is unknown");
        assert!(named && refusal.contains(cause), "{refusal}");
    }
    let random = Random::seeded(0);
    lab.before = driver::check(&lab.dir(), &ledger, &random).await.unwrap_or_else(|what| panic!("{what}"));
    let more = Options { operations: Some(50), ..lab.worker(1) };
    let life = lab.fill(&more).await;
    let ledger = Ledger::new(&lab.before, &life);
    driver::check(&lab.dir(), &ledger, &random).await.unwrap_or_else(|what| panic!("after going on: {what}"));
}

async fn run_with(lab: &mut Lab, shim: &Shim, fault: Fault) -> Life {
    let options = Options { operations: Some(OPERATIONS), close: true, ..lab.worker(fault.at) };
    let environment = shim.environment(&lab.dir(), fault);
    lab.start(&options, &environment).end().await.unwrap()
}

async fn fails_with(kind: &'static str, file: &'static str, calls: &[u64], cause: &str) {
    let (mut lab, shim) = (Lab::new(), Shim::build());
    for at in calls {
        lab.clear();
        let life = run_with(&mut lab, &shim, Fault { kind, file, at: *at, seed: 0 }).await;
        check_failed(&mut lab, &life, cause).await;
    }
}

/// The same with a checkpoint about to begin, so that it is the one to be hit.
async fn checkpoint_fails_with(kind: &'static str, calls: &[u64], cause: &str) {
    let (mut lab, shim) = (Lab::new(), Shim::build());
    lab.fill_to_the_brim(7).await;
    let before = lab.before.clone();
    for at in calls {
        lab.back_to_the_brim();
        lab.before = before.clone();
        let life = run_with(&mut lab, &shim, Fault { kind, file: "log.db", at: *at, seed: 0 }).await;
        check_failed(&mut lab, &life, cause).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_failing_write_to_the_write_ahead_log_stops_the_store() {
    fails_with("write-eio", WAL, &[1, 2, 7, 8, 40, 41, 300], "write").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_disk_that_is_full_for_one_write_stops_the_store() {
    fails_with("write-enospc", WAL, &[3, 30, 200], "full").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_short_write_stops_the_store() {
    fails_with("write-short", WAL, &[5, 60, 61, 62], "write").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_sync_that_fails_once_and_then_succeeds_stops_the_store() {
    fails_with("sync-eio", WAL, &[1, 2, 3, 10, 50], "sync").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_note_of_the_revision_that_cannot_be_written_stops_the_store() {
    fails_with("write-eio", "acknowledged", &[1, 20], "cannot note the revision").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_checkpoint_whose_writes_fail_stops_the_store() {
    checkpoint_fails_with("write-eio", &[1, 50, 300], "write").await;
    checkpoint_fails_with("write-enospc", &[2], "full").await;
    checkpoint_fails_with("write-short", &[3], "write").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_checkpoint_whose_sync_fails_stops_the_store() {
    checkpoint_fails_with("sync-eio", &[1], "sync").await;
}

/// A small file system of its own, unmounted whatever happens.
#[derive(Debug)]
struct Mount(std::path::PathBuf);

impl Mount {
    /// Mounts it; none without the right to.
    fn new(at: &Path, options: &str) -> Option<Mount> {
        std::fs::create_dir_all(at).unwrap();
        let mounted = Command::new("mount").args(["-t", "tmpfs", "-o", options, "tmpfs"]).arg(at).output();
        mounted.is_ok_and(|output| output.status.success()).then(|| Mount(at.to_owned()))
    }

    fn remount(&self, options: &str) {
        let options = format!("remount,{options}");
        assert!(Command::new("mount").args(["-o", &options]).arg(&self.0).status().unwrap().success());
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        let unmounted = Command::new("umount").arg(&self.0).status();
        assert!(unmounted.is_ok_and(|status| status.success()), "{} stays mounted", self.0.display());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_full_disk_stops_the_store_and_room_on_it_brings_everything_back() {
    let mut lab = Lab::new();
    for kilobytes in [64, 400, 1500, 6000] {
        lab.clear();
        let Some(mount) = Mount::new(&lab.dir(), &format!("size={kilobytes}k")) else {
            println!("no right to mount a file system: the disk is full by pretence instead");
            return fails_with("write-full", "", &[20, 100, 500], "").await;
        };
        let options = Options { operations: Some(OPERATIONS), close: true, history_bytes: 8 << 20, ..lab.worker(3) };
        let life = lab.start(&options, &[]).end().await.unwrap();
        mount.remount("size=64m");
        check_failed(&mut lab, &life, "").await;
        drop(mount);
    }
}
