//! What the store must reach, measured: each row prints the figure, its bound, and whether it holds.
//!
//! `cargo bench -p store` runs all rows, `cargo bench -p store -- writers` those whose name contains the word. Times
//! vary from run to run on a shared machine; the bounds are chosen to hold with room on two cores.

#![allow(clippy::print_stdout, reason = "a benchmark prints its figures")]

use ambient::{Ambient, Clock};
use bytes::Bytes;
use figures::{Process, Report, percentile};
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;
use store::{Memory, Range, Retention, Revision, Sqlite, SqliteOptions, Store, Txn, WatchRequest};

#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

type Scenario = fn(&tokio::runtime::Runtime, &mut Report);

const ALL: &[(&str, Scenario)] = &[
    ("writers", writers),
    ("lone-writer", lone_writer),
    ("reopen", reopen),
    ("watchers", watchers),
    ("memory", memory),
    ("churn", churn),
];

fn main() -> ExitCode {
    let mut report = Report::from_arguments("store");
    for (name, scenario) in ALL {
        if report.wants(name) {
            let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
            scenario(&runtime, &mut report);
        }
    }
    report.finish()
}

async fn open(dir: &Path, retention: Retention) -> Arc<Sqlite> {
    let options = SqliteOptions { retention, ..SqliteOptions::new(dir) };
    Arc::new(Sqlite::open(&Ambient::real(), options).await.unwrap())
}

fn directory() -> tempfile::TempDir {
    // On the disk that holds the build, not on a tmpfs where a sync costs nothing.
    tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap()
}

fn value(size: usize, seed: u64) -> Bytes {
    let random = ambient::Random::seeded(seed);
    let mut bytes = vec![0; size];
    random.fill(&mut bytes);
    Bytes::from(bytes)
}

/// `count` puts by each of `writers`; the latencies, and the whole time.
async fn put_from(store: Arc<dyn Store>, writers: usize, count: usize) -> (Vec<Duration>, Duration) {
    let clock = Clock::system();
    let start = clock.monotonic();
    let mut tasks = tokio::task::JoinSet::new();
    for writer in 0..writers {
        let (store, clock) = (store.clone(), clock.clone());
        tasks.spawn(async move {
            let value = value(1024, writer as u64);
            let mut latencies = Vec::with_capacity(count);
            for n in 0..count {
                let start = clock.monotonic();
                store.commit(Txn::put(format!("/bench/{writer:02}/{n:06}"), value.clone())).await.unwrap();
                latencies.push(start.elapsed());
            }
            latencies
        });
    }
    let latencies = tasks.join_all().await.into_iter().flatten().collect();
    (latencies, start.elapsed())
}

fn writers(runtime: &tokio::runtime::Runtime, report: &mut Report) {
    let dir = directory();
    let (mut latencies, whole) = runtime.block_on(async {
        let store = open(dir.path(), Retention::default()).await;
        let measured = put_from(store.clone(), 32, 10_000).await;
        store.close().await;
        measured
    });
    let rate = latencies.len() as f64 / whole.as_secs_f64();
    report.at_least("32 writers of 1 KiB, each put synced", rate, "puts/s", 30_000.0);
    report.at_most("32 writers of 1 KiB, p50", percentile(&mut latencies, 50.0), "ms", 8.0);
    report.at_most("32 writers of 1 KiB, p99", percentile(&mut latencies, 99.0), "ms", 8.0);
    report.at_most("32 writers of 1 KiB, p99.9", percentile(&mut latencies, 99.9), "ms", 50.0);
}

fn lone_writer(runtime: &tokio::runtime::Runtime, report: &mut Report) {
    let dir = directory();
    let (mut latencies, _) = runtime.block_on(async {
        let store = open(dir.path(), Retention::default()).await;
        let measured = put_from(store.clone(), 1, 5_000).await;
        store.close().await;
        measured
    });
    report.at_most("one writer of 1 KiB, p50", percentile(&mut latencies, 50.0), "ms", 0.5);
}

async fn fill(store: &Arc<Sqlite>, keys: usize) {
    let mut tasks = tokio::task::JoinSet::new();
    for part in 0..64 {
        let store = store.clone();
        tasks.spawn(async move {
            for n in (part..keys).step_by(64) {
                store.commit(Txn::put(format!("/fill/{n:08}"), value(1024, n as u64))).await.unwrap();
            }
        });
    }
    tasks.join_all().await;
}

fn reopen(runtime: &tokio::runtime::Runtime, report: &mut Report) {
    let dir = directory();
    let elapsed = runtime.block_on(async {
        let store = open(dir.path(), Retention::default()).await;
        fill(&store, 100_000).await;
        store.close().await;
        drop(store);
        let start = Clock::system().monotonic();
        let store = open(dir.path(), Retention::default()).await;
        let elapsed = start.elapsed();
        assert_eq!(store.status().await.unwrap().keys, 100_000);
        store.close().await;
        elapsed
    });
    report.at_most("reopen 100,000 keys of 1 KiB", elapsed.as_secs_f64(), "s", 1.0);
}

fn watchers(runtime: &tokio::runtime::Runtime, report: &mut Report) {
    const WATCHERS: usize = 1000;
    const PUTS: usize = 1000;
    let rate = |store: Arc<dyn Store>| async move {
        let mut tasks = tokio::task::JoinSet::new();
        for _ in 0..WATCHERS {
            let mut watch = store.watch(WatchRequest::new("/bench/", Revision::ZERO)).await.unwrap();
            tasks.spawn(async move {
                let mut seen = 0;
                while seen < PUTS {
                    seen += watch.next().await.unwrap().changes.len();
                }
            });
        }
        let start = Clock::system().monotonic();
        put_from(store, 32, PUTS.div_ceil(32)).await;
        tasks.join_all().await;
        (WATCHERS * PUTS) as f64 / start.elapsed().as_secs_f64()
    };
    let dir = directory();
    let (memory, sqlite) = runtime.block_on(async {
        let memory = rate(Arc::new(Memory::new(&Ambient::real(), Retention::default()))).await;
        let sqlite = rate(open(dir.path(), Retention::default()).await).await;
        (memory, sqlite)
    });
    report.at_least("1,000 watchers of 1,000 puts, memory", memory, "events/s", 1_000_000.0);
    report.at_least("1,000 watchers of 1,000 puts, SQLite", sqlite, "events/s", 1_000_000.0);
}

/// Measured in a process of its own, so that what other rows left behind does not count.
fn memory(runtime: &tokio::runtime::Runtime, report: &mut Report) {
    const CHILD: &str = "STORE_BENCH_MEMORY_DIR";
    if let Ok(dir) = std::env::var(CHILD) {
        runtime.block_on(async {
            let store = open(Path::new(&dir), Retention::default()).await;
            let first = store.revision().await.unwrap() == Revision::ZERO;
            if first {
                fill(&store, 100_000).await;
            }
            let listed = store.range(Range::prefix("/fill/")).await.unwrap();
            assert_eq!(listed.items.len(), 100_000);
            drop(listed);
            let status = store.status().await.unwrap();
            println!("{} {}", Process::this().resident_mib() * f64::from(1 << 20), status.live_bytes);
            store.close().await;
        });
        std::process::exit(0);
    }
    let dir = directory();
    let run = || {
        let program = std::env::current_exe().unwrap();
        let output = std::process::Command::new(program).arg("memory").env(CHILD, dir.path()).output().unwrap();
        let printed = String::from_utf8(output.stdout).unwrap();
        let mut numbers = printed.split_whitespace().map(|number| number.parse::<f64>().unwrap());
        (numbers.next().unwrap() - f64::from(20 << 20)) / numbers.next().unwrap()
    };
    report.at_most("resident less 20 MiB, 100,000 keys just written", run(), "x live", 1.4);
    report.at_most("resident less 20 MiB, 100,000 keys reopened", run(), "x live", 1.4);
}

fn churn(runtime: &tokio::runtime::Runtime, report: &mut Report) {
    const KEYS: usize = 1000;
    const WRITERS: usize = 64;
    const PUTS: usize = 1_000_000;
    /// So many times what should be kept is kept until little is written.
    const WHILE_BUSY: u64 = 4;
    let dir = directory();
    let retention = Retention::default();
    let (disk, rate) = runtime.block_on(async {
        let store = open(dir.path(), retention).await;
        let start = Clock::system().monotonic();
        let mut tasks = tokio::task::JoinSet::new();
        for writer in 0..WRITERS {
            let store = store.clone();
            tasks.spawn(async move {
                let value = value(1024, writer as u64);
                for n in 0..PUTS / WRITERS {
                    let key = (n * WRITERS + writer) % KEYS;
                    store.commit(Txn::put(format!("/churn/{key:04}"), value.clone())).await.unwrap();
                }
            });
        }
        tasks.join_all().await;
        let rate = PUTS as f64 / start.elapsed().as_secs_f64();
        let status = store.status().await.unwrap();
        store.close().await;
        // Beside live data and history, of which there is more while much is written, there is the write-ahead log.
        let bound = WHILE_BUSY * retention.bytes + status.live_bytes + (32 << 20);
        (status.disk_bytes as f64 / bound as f64, rate)
    });
    report.at_most("1,000,000 overwrites of 1,000 keys: files", disk, "x bound", 1.0);
    report.at_least("1,000,000 overwrites of 1,000 keys: rate", rate, "puts/s", 30_000.0);
}
