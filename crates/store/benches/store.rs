//! What the store must reach, measured: each row prints the figure, its bound, and whether it holds.
//!
//! `cargo bench -p store` runs all rows, `cargo bench -p store -- writers` those whose name contains the word. Times
//! vary from run to run on a shared machine; the bounds are chosen to hold with room on two cores.

#![allow(clippy::print_stdout, reason = "a benchmark prints its figures")]

use ambient::{Ambient, Clock};
use bytes::Bytes;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use store::{Memory, Range, Retention, Revision, Sqlite, SqliteOptions, Store, Txn, WatchRequest};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// A figure and what it has to be.
struct Row {
    name: &'static str,
    figure: f64,
    unit: &'static str,
    bound: Bound,
}

enum Bound {
    AtLeast(f64),
    AtMost(f64),
}

impl Row {
    fn holds(&self) -> bool {
        match self.bound {
            Bound::AtLeast(bound) => self.figure >= bound,
            Bound::AtMost(bound) => self.figure <= bound,
        }
    }

    fn print(&self) {
        let (word, bound) = match self.bound {
            Bound::AtLeast(bound) => ("at least", bound),
            Bound::AtMost(bound) => ("at most", bound),
        };
        let verdict = if self.holds() { "ok" } else { "MISSED" };
        println!("{:<58} {:>13.2} {:<9} {word} {bound:<11} {verdict}", self.name, self.figure, self.unit);
    }
}

type Scenario = fn(&tokio::runtime::Runtime) -> Vec<Row>;

const ALL: &[(&str, Scenario)] = &[
    ("writers", writers),
    ("lone-writer", lone_writer),
    ("reopen", reopen),
    ("watchers", watchers),
    ("memory", memory),
    ("churn", churn),
];

fn main() {
    let words: Vec<String> = std::env::args().skip(1).filter(|word| !word.starts_with('-')).collect();
    let chosen = ALL.iter().filter(|(name, _)| words.is_empty() || words.iter().any(|word| name.contains(word)));
    let mut missed = 0;
    for (_, scenario) in chosen {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        let rows = scenario(&runtime);
        rows.iter().for_each(Row::print);
        missed += rows.iter().filter(|row| !row.holds()).count();
    }
    assert_eq!(missed, 0, "{missed} figures missed their bound");
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

fn percentile(sorted: &[Duration], fraction: f64) -> f64 {
    sorted[((sorted.len() - 1) as f64 * fraction) as usize].as_secs_f64() * 1e3
}

/// `count` puts by each of `writers`; the latencies, sorted, and the whole time.
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
    let mut latencies: Vec<Duration> = tasks.join_all().await.into_iter().flatten().collect();
    let whole = start.elapsed();
    latencies.sort_unstable();
    (latencies, whole)
}

fn writers(runtime: &tokio::runtime::Runtime) -> Vec<Row> {
    let dir = directory();
    let (latencies, whole) = runtime.block_on(async {
        let store = open(dir.path(), Retention::default()).await;
        let measured = put_from(store.clone(), 32, 10_000).await;
        store.close().await;
        measured
    });
    let rate = latencies.len() as f64 / whole.as_secs_f64();
    let row = |name, figure, unit, bound| Row { name, figure, unit, bound };
    vec![
        row("32 writers of 1 KiB, each put synced", rate, "puts/s", Bound::AtLeast(30_000.0)),
        row("32 writers of 1 KiB, p50", percentile(&latencies, 0.5), "ms", Bound::AtMost(8.0)),
        row("32 writers of 1 KiB, p99", percentile(&latencies, 0.99), "ms", Bound::AtMost(8.0)),
        row("32 writers of 1 KiB, p99.9", percentile(&latencies, 0.999), "ms", Bound::AtMost(50.0)),
    ]
}

fn lone_writer(runtime: &tokio::runtime::Runtime) -> Vec<Row> {
    let dir = directory();
    let (latencies, _) = runtime.block_on(async {
        let store = open(dir.path(), Retention::default()).await;
        let measured = put_from(store.clone(), 1, 5_000).await;
        store.close().await;
        measured
    });
    vec![Row {
        name: "one writer of 1 KiB, p50",
        figure: percentile(&latencies, 0.5),
        unit: "ms",
        bound: Bound::AtMost(0.5),
    }]
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

fn reopen(runtime: &tokio::runtime::Runtime) -> Vec<Row> {
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
    vec![Row {
        name: "reopen 100,000 keys of 1 KiB",
        figure: elapsed.as_secs_f64(),
        unit: "s",
        bound: Bound::AtMost(1.0),
    }]
}

fn watchers(runtime: &tokio::runtime::Runtime) -> Vec<Row> {
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
    let row = |name, figure| Row { name, figure, unit: "events/s", bound: Bound::AtLeast(1_000_000.0) };
    vec![row("1,000 watchers of 1,000 puts, memory", memory), row("1,000 watchers of 1,000 puts, SQLite", sqlite)]
}

fn resident_bytes() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<f64>().unwrap() * 1024.0
}

/// Measured in a process of its own, so that what other rows left behind does not count.
fn memory(runtime: &tokio::runtime::Runtime) -> Vec<Row> {
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
            println!("{} {}", resident_bytes(), status.live_bytes);
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
    let row = |name, figure| Row { name, figure, unit: "x live", bound: Bound::AtMost(1.4) };
    vec![
        row("resident less 20 MiB, 100,000 keys just written", run()),
        row("resident less 20 MiB, 100,000 keys reopened", run()),
    ]
}

fn churn(runtime: &tokio::runtime::Runtime) -> Vec<Row> {
    const KEYS: usize = 1000;
    const WRITERS: usize = 64;
    const PUTS: usize = 1_000_000;
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
        // Beside history and live data there is the write-ahead log.
        let bound = retention.bytes + status.live_bytes + (32 << 20);
        (status.disk_bytes as f64 / bound as f64, rate)
    });
    vec![
        Row {
            name: "1,000,000 overwrites of 1,000 keys: files",
            figure: disk,
            unit: "x bound",
            bound: Bound::AtMost(1.0),
        },
        Row {
            name: "1,000,000 overwrites of 1,000 keys: rate",
            figure: rate,
            unit: "puts/s",
            bound: Bound::AtLeast(30_000.0),
        },
    ]
}
