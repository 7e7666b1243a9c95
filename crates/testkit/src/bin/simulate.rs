//! Runs seeds of the simulation: `simulate [--seeds N] [--from SEED]`. A seed that fails is printed with what is wrong.
//! `simulate --crashes LIFE` instead lets a server crash after every single write of a plain life of some kinds. With one
//! seed and `SETPOINT_LOG=debug` it also tells what the loops did.

use ambient::Tasks;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use testkit::simulation;

#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

fn main() -> ExitCode {
    let filter = tracing_subscriber::EnvFilter::from_env("SETPOINT_LOG");
    tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).init();
    let mut arguments = std::env::args().skip(1);
    let (mut seeds, mut from) = (200, 0);
    while let Some(argument) = arguments.next() {
        let number = arguments.next().and_then(|text| text.parse::<u64>().ok());
        match (argument.as_str(), number) {
            ("--seeds", Some(number)) => seeds = number,
            ("--from", Some(number)) => from = number,
            ("--crashes", Some(number)) => return crashes(usize::try_from(number).unwrap_or(usize::MAX)),
            _ => {
                eprintln!("simulate: expected --seeds N, --from SEED or --crashes LIFE, got {argument}");
                return ExitCode::FAILURE;
            }
        }
    }
    let progress = Arc::new(Progress { next: AtomicU64::new(from), ..Progress::default() });
    let tasks = Tasks::new();
    for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
        let progress = progress.clone();
        if let Err(error) = tasks.thread("seeds", move || progress.work(from, seeds)) {
            eprintln!("simulate: {error}");
            return ExitCode::FAILURE;
        }
    }
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime can be made");
    runtime.block_on(tasks.stop());
    let failed = progress.failed.load(Ordering::SeqCst);
    eprintln!("{seeds} seeds from {from}, {failed} failed");
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// A crash after each write of a life, until there are no more.
fn crashes(life: usize) -> ExitCode {
    for n in 1.. {
        match simulation::crash_after(life, n) {
            Ok(true) => {}
            Ok(false) => {
                eprintln!("life {life}: {} crashes, none failed", n - 1);
                break;
            }
            Err(problem) => {
                eprintln!("life {life}, a crash after write {n}: {problem}");
                return ExitCode::FAILURE;
            }
        }
    }
    ExitCode::SUCCESS
}

/// What all threads work on.
#[derive(Default)]
struct Progress {
    next: AtomicU64,
    failed: AtomicU64,
    done: AtomicU64,
}

impl Progress {
    fn work(&self, from: u64, seeds: u64) {
        loop {
            let seed = self.next.fetch_add(1, Ordering::SeqCst);
            if seed >= from + seeds {
                return;
            }
            if let Err(problem) = simulation::run(seed) {
                self.failed.fetch_add(1, Ordering::SeqCst);
                eprintln!("seed {seed}: {problem}");
            }
            let done = self.done.fetch_add(1, Ordering::SeqCst) + 1;
            if done.is_multiple_of(100) {
                eprintln!("{done} of {seeds} seeds, {} failed", self.failed.load(Ordering::SeqCst));
            }
        }
    }
}
