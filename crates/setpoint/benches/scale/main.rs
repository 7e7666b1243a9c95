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
mod way;
mod world;

use figures::Report;
use std::path::PathBuf;
use std::process::ExitCode;
use tokio::runtime::{Builder, Runtime};

#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

fn main() -> ExitCode {
    let mut report = Report::from_arguments("scale");
    if report.wants("heal") {
        // One client that waits: a second thread would add its own hand-overs to what is measured.
        let alone = runtime(Builder::new_current_thread());
        match report.option("against").map(PathBuf::from) {
            None => alone.block_on(heal::measure(&mut report)),
            Some(other) => {
                let apart = runtime(Builder::new_multi_thread());
                alone.block_on(heal::compare(&mut report, &other, apart.handle()));
            }
        }
    }
    runtime(Builder::new_multi_thread()).block_on(run(&mut report));
    report.finish()
}

fn runtime(mut builder: Builder) -> Runtime {
    builder.worker_threads(2).enable_all().build().expect("a runtime can be made")
}

async fn run(report: &mut Report) {
    if report.wants("outside") {
        outside::measure(report).await;
    }
    if report.wants("inside") {
        inside::measure(report).await;
    }
    if report.wants("growth") {
        growth::measure(report).await;
    }
    if report.wants("large") {
        large::measure(report).await;
    }
    if report.asks_for("limit") {
        limit::measure(report).await;
    }
}
