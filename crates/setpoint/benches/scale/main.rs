//! The path from a Deployment to ready pods, in small and in large: `cargo bench -p setpoint --bench scale`.
//!
//! The server is the real program in a process of its own, on SQLite with fsync; whoever asks and measures is here and
//! talks to it over TLS, on the same machine. Scenarios can be chosen by name, as in `-- outside growth`.

mod growth;
mod heal;
mod inside;
mod large;
mod limit;
mod outside;
mod world;

use figures::Report;
use std::process::ExitCode;

#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

fn main() -> ExitCode {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    runtime.expect("a runtime can be made").block_on(run())
}

async fn run() -> ExitCode {
    let mut report = Report::from_arguments("scale");
    if report.wants("outside") {
        outside::measure(&mut report).await;
    }
    if report.wants("heal") {
        heal::measure(&mut report).await;
    }
    if report.wants("inside") {
        inside::measure(&mut report).await;
    }
    if report.wants("growth") {
        growth::measure(&mut report).await;
    }
    if report.wants("large") {
        large::measure(&mut report).await;
    }
    if report.asks_for("limit") {
        limit::measure(&mut report).await;
    }
    report.finish()
}
