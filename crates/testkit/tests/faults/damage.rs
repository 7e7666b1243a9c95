//! Files that are cut or have a bit flipped: opening gives exactly what was acknowledged, or says what is wrong.
//!
//! A cut or damaged tail of the write-ahead log looks to SQLite like the end of it. What tells them apart is the file
//! `acknowledged` beside the log. Deleting or damaging that file disables this check and nothing else, so nothing here
//! damages it together with another one.

use super::lab::{Lab, WAL};
use ambient::Random;
use std::collections::BTreeMap;
use std::path::Path;
use store::{Error, Range, Revision, Store, Txn};
use testkit::torture::contents::{self, Contents};
use testkit::torture::driver;
use testkit::torture::worker::Options;

/// How a damaged directory was received.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Verdict {
    /// Opened, and everything is as it was.
    Whole,
    /// Opened with the right state, but some of its history is damaged and says so.
    HistoryDamaged,
    Refused,
}

/// A directory in which everything was acknowledged, and what is in it.
struct Specimen {
    lab: Lab,
    contents: Contents,
}

impl Specimen {
    /// Closed in order: there is no write-ahead log.
    async fn closed() -> Self {
        let mut lab = Lab::new();
        let options = Options { operations: Some(400), value_bytes: 12_000, close: true, ..lab.worker(21) };
        let life = lab.start(&options, &[]).end().await.unwrap();
        assert_eq!(life.status.code(), Some(0));
        let (_, contents) = lab.look(&life).await;
        Specimen { lab, contents }
    }

    /// Killed: everything is in the write-ahead log.
    async fn killed() -> Self {
        let mut lab = Lab::new();
        let options = Options { operations: Some(400), value_bytes: 12_000, ..lab.worker(22) };
        let life = lab.fill(&options).await;
        let (_, contents) = lab.look(&life).await;
        Specimen { lab, contents }
    }

    /// Killed after a checkpoint: the database has newer pages than the beginning of the write-ahead log.
    async fn checkpointed() -> Self {
        let mut lab = Lab::new();
        lab.fill_to_the_brim(23).await;
        // One large transaction is the last, so that the checkpoint it causes is not followed by a write.
        let options = Options { operations: Some(1), writers: 1, value_bytes: 1 << 20, ..lab.worker(0) };
        let mut contents = lab.before.clone();
        let mut seed = 0;
        while !lab.dir().join("log.db").metadata().is_ok_and(|metadata| metadata.len() > 1 << 20) {
            seed += 1;
            let first = options.first + seed;
            let life = lab.fill(&Options { first, seed, ..options.clone() }).await;
            lab.before = contents;
            contents = lab.look(&life).await.1;
        }
        Specimen { lab, contents }
    }

    /// Left when the last write has just been checkpointed: the database is newer than all of the write-ahead log but
    /// its last frames, and yet the next to open will read every page that is in it from there.
    async fn all_in_the_database() -> Self {
        let lab = Lab::new();
        let source = lab.path("source");
        let store = contents::open(&source).await.unwrap();
        // Not the first one: there the database still grows, and SQLite notices that it has another size.
        let is_later = |file: &[u8]| number(file, 12, u32::from_be_bytes) >= 3;
        let is_moved = |index: &[u8]| number(index, 16, u32::from_ne_bytes) == number(index, 96, u32::from_ne_bytes);
        let read = |name: &str| std::fs::read(source.join(name)).unwrap();
        for n in 0.. {
            // Old rows make room for new ones, so that the database stays as long as it is.
            store.compact(Revision(n).before()).await.unwrap();
            store.commit(Txn::put(format!("k{}", n % 300), vec![b'v'; 150])).await.unwrap();
            // Writes nothing, and is answered by the writer after what it did when it had answered the put.
            store.commit(Txn::delete("nothing")).await.unwrap();
            if is_moved(&read("log.db-shm")) && is_later(&read(WAL)) {
                break;
            }
        }
        driver::copy_dir(&source, &lab.dir()).unwrap();
        let contents = Contents::read(&store).await.unwrap();
        store.close().await;
        Specimen { lab, contents }
    }

    /// Copies the directory, damages the copy and looks what a store makes of it.
    async fn damaged(&self, what: &str, damage: impl FnOnce(&Path)) -> Verdict {
        let copy = self.lab.path("damaged");
        driver::copy_dir(&self.lab.dir(), &copy).unwrap();
        damage(&copy);
        let store = match contents::open(&copy).await {
            Ok(store) => store,
            Err(Error::Damaged { .. } | Error::Open { .. }) => return Verdict::Refused,
            Err(other) => panic!("{what}: {other}"),
        };
        let range = store.range(Range::default()).await.unwrap();
        let state: BTreeMap<_, _> = range.items.into_iter().map(|item| (item.key.clone(), item)).collect();
        assert!(range.revision == self.contents.revision, "{what}: opens at {}", range.revision);
        assert!(state == self.contents.state, "{what}: opens with another state");
        let verdict = match Contents::read(&store).await {
            Ok(found) => {
                found.check().unwrap_or_else(|inconsistent| panic!("{what}: {inconsistent}"));
                let kept = |contents: &Contents| -> Vec<_> {
                    let oldest = self.contents.compacted;
                    contents.changes.iter().filter(|change| change.revision > oldest).cloned().collect()
                };
                assert!(kept(&found) == kept(&self.contents), "{what}: opens with another history");
                Verdict::Whole
            }
            Err(Error::Damaged { .. }) => Verdict::HistoryDamaged,
            Err(other) => panic!("{what}: {other}"),
        };
        store.close().await;
        verdict
    }

    async fn flip_bits(&self, file: &str, times: u64, seed: u64) -> BTreeMap<Verdict, u64> {
        let random = Random::seeded(seed);
        let length = self.lab.used_bytes(file);
        let mut verdicts = BTreeMap::new();
        for _ in 0..times * rounds() {
            let (byte, bit) = (random.below(length), random.below(8));
            let what = format!("bit {bit} of byte {byte} of {file} flipped (seed {seed})");
            let verdict = self.damaged(&what, |dir| flip(&dir.join(file), byte, bit)).await;
            *verdicts.entry(verdict).or_insert(0) += 1;
        }
        verdicts
    }
}

/// For a longer search than a test run should take.
fn rounds() -> u64 {
    std::env::var("FAULT_ROUNDS").map_or(1, |rounds| rounds.parse().unwrap())
}

fn flip(file: &Path, byte: u64, bit: u64) {
    use std::os::unix::fs::FileExt;
    let file = std::fs::File::options().read(true).write(true).open(file).unwrap();
    let mut content = [0];
    file.read_exact_at(&mut content, byte).unwrap();
    file.write_all_at(&[content[0] ^ 1 << bit], byte).unwrap();
}

/// A field of SQLite's write-ahead log or of its index.
fn number(file: &[u8], at: usize, read: fn([u8; 4]) -> u32) -> u32 {
    read(file[at..at + 4].try_into().unwrap())
}

fn cut(file: &Path, length: u64) {
    std::fs::File::options().write(true).open(file).unwrap().set_len(length).unwrap();
}

/// Cuts every file at many lengths; returns how often each file's cut was refused.
async fn check_cuts(specimen: &Specimen, times: u64) -> BTreeMap<String, u64> {
    let random = Random::seeded(31);
    let mut refused = BTreeMap::new();
    for entry in std::fs::read_dir(specimen.lab.dir()).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        let length = specimen.lab.used_bytes(&name);
        let pages = (0..times).map(|_| random.below(length / 8192 + 1) * 8192);
        let anywhere = (0..times).map(|_| random.below(length.max(1)));
        let ends = [0, 1, 24, 32, 100, 512, length.saturating_sub(1), length.saturating_sub(8192)];
        for length in pages.chain(anywhere).chain(ends).filter(|cut| *cut < length) {
            let what = format!("{name} cut to {length}");
            let verdict = specimen.damaged(&what, |dir| cut(&dir.join(&name), length)).await;
            *refused.entry(name.clone()).or_insert(0) += u64::from(verdict == Verdict::Refused);
        }
    }
    refused
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_bit_flipped_after_a_clean_close_is_harmless_or_found() {
    let specimen = Specimen::closed().await;
    let verdicts = specimen.flip_bits("log.db", 300, 41).await;
    assert!(verdicts.get(&Verdict::Refused).is_some_and(|refused| *refused > 50), "{verdicts:?}");
}

/// The row then seems to be an older value of the other key, and its own key to still have the value before.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_key_that_turns_into_another_one_is_found() {
    let lab = Lab::new();
    let store = contents::open(&lab.dir()).await.unwrap();
    for (key, value) in [("k1", "older value"), ("k1", "newer value"), ("k3", "something else")] {
        store.commit(Txn::put(key, value)).await.unwrap();
    }
    let contents = Contents::read(&store).await.unwrap();
    store.close().await;
    drop(store);
    let specimen = Specimen { lab, contents };
    let file = std::fs::read(specimen.lab.dir().join("log.db")).unwrap();
    let key = file.windows(13).rposition(|bytes| bytes == b"k1newer value").expect("closing leaves it in the database");
    let verdict = specimen.damaged("k1 turned into k3", |dir| flip(&dir.join("log.db"), key as u64 + 1, 1)).await;
    assert_eq!(verdict, Verdict::Refused);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_bit_flipped_after_a_kill_is_harmless_or_found() {
    let specimen = Specimen::killed().await;
    let verdicts = specimen.flip_bits(WAL, 250, 42).await;
    assert!(verdicts.get(&Verdict::Refused).is_some_and(|refused| *refused > 50), "{verdicts:?}");
    specimen.flip_bits("log.db", 60, 43).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_bit_flipped_in_a_write_ahead_log_that_is_in_the_database_already_is_harmless_or_found() {
    let specimen = Specimen::checkpointed().await;
    specimen.flip_bits(WAL, 60, 44).await;
    specimen.flip_bits("log.db", 30, 45).await;
}

/// SQLite takes what comes before the flipped bit for the whole write-ahead log, and puts pages from there over newer
/// ones in the database: a mixture that can look sound and be at the newest revision.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_bit_flipped_where_old_pages_would_cover_newer_ones_is_found() {
    let specimen = Specimen::all_in_the_database().await;
    for frame in (0..40).chain([500, 2000]) {
        let byte = 32 + frame * (24 + 8192) + 4000;
        let what = format!("frame {frame} damaged");
        let verdict = specimen.damaged(&what, |dir| flip(&dir.join(WAL), byte, 3)).await;
        assert_eq!(verdict, Verdict::Refused, "{what}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_file_cut_after_a_clean_close_is_found() {
    let refused = check_cuts(&Specimen::closed().await, 25).await;
    assert!(refused["log.db"] > 50, "{refused:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_file_cut_after_a_kill_is_found() {
    let refused = check_cuts(&Specimen::killed().await, 25).await;
    assert!(refused[WAL] > 50, "{refused:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_write_ahead_log_cut_after_a_checkpoint_is_harmless_or_found() {
    check_cuts(&Specimen::checkpointed().await, 8).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_missing_file_is_found() {
    for specimen in [Specimen::closed().await, Specimen::killed().await] {
        let remove = |name: &'static str| move |dir: &Path| std::fs::remove_file(dir.join(name)).unwrap();
        assert_eq!(specimen.damaged("no log.db", remove("log.db")).await, Verdict::Refused);
        if specimen.lab.dir().join(WAL).exists() {
            assert_eq!(specimen.damaged("no write-ahead log", remove(WAL)).await, Verdict::Refused);
        }
        assert_eq!(specimen.damaged("no note", remove("acknowledged")).await, Verdict::Whole);
    }
}
