//! Backup while writing, and restoring: what comes back is the state at one revision, and never an old revision.

use super::lab::Lab;
use super::shim::{Fault, Shim};
use ambient::{Ambient, Random};
use bytes::Bytes;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use store::{Error, Outcome, Range, Revision, Sqlite, SqliteOptions, Store, Txn, WatchRequest};
use testkit::torture::contents;
use tokio::task::JoinSet;

type Values = BTreeMap<Bytes, (Bytes, Revision)>;

async fn values(store: &dyn Store, at: Option<Revision>) -> Values {
    let range = store.range(Range { at, ..Range::default() }).await.unwrap();
    range.items.into_iter().map(|item| (item.key.clone(), (item.value.clone(), item.mod_revision))).collect()
}

async fn put(store: &dyn Store, n: u64) -> Revision {
    let mut value = vec![0; (n * 37 % 9000) as usize];
    Random::seeded(n).fill(&mut value);
    let txn = Txn::put(format!("a/{}", n % 50), value.clone()).and_put(format!("b/{}", n % 50), value);
    match store.commit(txn).await.unwrap() {
        Outcome::Committed(revision) => revision,
        conflict @ Outcome::Conflict { .. } => panic!("{conflict:?}"),
    }
}

/// A store with something in it, and a verified backup of all of it.
async fn store_and_backup(lab: &Lab) -> (Sqlite, PathBuf, Revision) {
    let store = contents::open(&lab.dir()).await.unwrap();
    for n in 0..120 {
        put(&store, n).await;
    }
    let backup = lab.path("backup");
    let revision = store.backup(&backup).await.unwrap();
    (store, backup, revision)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_backup_made_while_writing_is_the_state_at_its_revision() {
    let lab = Lab::new();
    let store = Arc::new(Sqlite::open(&Ambient::real(), SqliteOptions::new(lab.dir())).await.unwrap());
    let mut writers = JoinSet::new();
    for writer in 0..4 {
        let store = store.clone();
        writers.spawn(async move {
            for n in 0..250 {
                put(&*store, writer + 4 * n).await;
            }
        });
    }
    let (mut backups, mut last) = (Vec::new(), Revision::ZERO);
    std::fs::create_dir(lab.path("backups")).unwrap();
    while !writers.is_empty() {
        while writers.try_join_next().is_some_and(|ended| ended.is_ok()) {}
        let file = lab.path(&format!("backups/{}", backups.len()));
        let revision = store.backup(&file).await.unwrap();
        assert!(revision >= last);
        last = revision;
        backups.push((file, revision));
    }
    assert!(backups.len() > 1, "writing was over too soon");
    let left = std::fs::read_dir(lab.path("backups")).unwrap().count();
    assert_eq!(left, backups.len(), "a backup is one file");
    for (file, revision) in &backups {
        let dir = file.with_extension("restored");
        let base = store::restore(file, &dir).unwrap();
        let restored = contents::open(&dir).await.unwrap();
        assert_eq!(values(&restored, None).await, values(&*store, Some(*revision)).await);
        assert!(base > store.revision().await.unwrap());
        restored.close().await;
    }
    store.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_of_a_restored_store_never_sees_a_revision_again() {
    let lab = Lab::new();
    let (store, backup, at_backup) = store_and_backup(&lab).await;
    let mut seen = at_backup;
    for n in 200..300 {
        seen = put(&store, n).await;
    }
    store.close().await;
    let dir = lab.path("restored");
    let base = store::restore(&backup, &dir).unwrap();
    assert!(base > seen);
    let restored = contents::open(&dir).await.unwrap();
    assert_eq!(restored.revision().await.unwrap(), base);
    let stale = restored.watch(WatchRequest::new("", seen)).await.map(|_| ());
    assert_eq!(stale, Err(Error::Compacted { requested: seen, compacted: base }));
    let mut watch = restored.watch(WatchRequest::new("", base)).await.unwrap();
    let next = put(&restored, 1000).await;
    assert_eq!(next, base.next());
    assert_eq!(watch.next().await.unwrap().revision, next);
    restored.close().await;
    let reopened = contents::open(&dir).await.unwrap();
    assert_eq!(reopened.revision().await.unwrap(), next);
    reopened.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_damaged_backup_is_refused() {
    let lab = Lab::new();
    let (store, backup, _) = store_and_backup(&lab).await;
    let expected = values(&store, None).await;
    store.close().await;
    let good = std::fs::read(&backup).unwrap();
    let random = Random::seeded(51);
    let mut refused = 0;
    for round in 0..200 {
        let mut bad = good.clone();
        if round % 4 == 0 {
            bad.truncate(random.below(good.len() as u64) as usize);
        } else {
            bad[random.below(good.len() as u64) as usize] ^= 1 << random.below(8);
        }
        let (file, dir) = (lab.path("bad"), lab.path("restored"));
        std::fs::write(&file, bad).unwrap();
        match store::restore(&file, &dir) {
            Err(Error::Damaged { .. } | Error::Open { .. }) => {
                refused += 1;
                assert!(!dir.join("log.db").exists(), "round {round}: a refused restore leaves a store behind");
            }
            Err(other) => panic!("round {round}: {other}"),
            Ok(_) => {
                // The bit was one that nothing uses.
                let restored = contents::open(&dir).await.unwrap();
                assert_eq!(values(&restored, None).await, expected, "round {round}");
                restored.close().await;
                std::fs::remove_dir_all(&dir).unwrap();
            }
        }
    }
    assert!(refused >= 50, "{refused} of 200");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn restoring_over_a_store_is_refused_and_leaves_it_alone() {
    let lab = Lab::new();
    let (store, backup, _) = store_and_backup(&lab).await;
    put(&store, 500).await;
    let expected = values(&store, None).await;
    let refuse = |dir: &Path| match store::restore(&backup, dir) {
        Err(Error::Open { what, .. }) => assert!(what.contains("restore into an empty directory"), "{what}"),
        other => panic!("{other:?}"),
    };
    refuse(&lab.dir());
    store.close().await;
    drop(store);
    refuse(&lab.dir());
    let store = contents::open(&lab.dir()).await.unwrap();
    assert_eq!(values(&store, None).await, expected);
    store.close().await;
    drop(store);
    // What is left of a store is enough: a write-ahead log would be taken for the restored store's own.
    std::fs::write(lab.dir().join("log.db-wal"), "left").unwrap();
    std::fs::remove_file(lab.dir().join("log.db")).unwrap();
    refuse(&lab.dir());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_restore_interrupted_anywhere_leaves_no_store_or_all_of_it() {
    let (lab, shim) = (Lab::new(), Shim::build());
    let (store, backup, _) = store_and_backup(&lab).await;
    let expected = values(&store, None).await;
    store.close().await;
    let dir = lab.path("restored");
    let mut finished = false;
    for at in (1..).step_by(3) {
        let fault = Fault { kind: "power", file: "", at, seed: at };
        let mut restore = Command::new(env!("CARGO_BIN_EXE_torture"));
        restore.arg("restore").arg(&backup).arg(&dir).envs(shim.environment(&dir, fault));
        finished = restore.status().unwrap().success();
        if !finished && !dir.join("restoring.db").exists() {
            assert!(!dir.join("log.db").exists(), "{at}: nothing was begun, and yet there is a store");
            continue;
        }
        match contents::open(&dir).await {
            Ok(restored) => {
                assert!(finished, "interrupted at call {at}: there is a store");
                assert_eq!(values(&restored, None).await, expected);
                restored.close().await;
                break;
            }
            Err(Error::Open { what, .. }) => assert!(what.contains("a restore into it did not finish"), "{at}: {what}"),
            Err(other) => panic!("interrupted at call {at}: {other}"),
        }
    }
    assert!(finished);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_backup_that_does_not_exist_makes_no_store() {
    let lab = Lab::new();
    let error = store::restore(&lab.path("nothing"), &lab.dir()).unwrap_err();
    assert!(matches!(&error, Error::Open { what, .. } if what.contains("there is no such backup")), "{error}");
    assert!(!lab.dir().exists());
}
