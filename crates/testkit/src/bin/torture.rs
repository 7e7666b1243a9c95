//! Kills a store thousands of times and shows that it keeps what it acknowledged.
//!
//! `torture --cycles 2000 [--seed N] [--dir D]` drives; `torture worker ...` is what it starts and kills, and
//! `torture restore BACKUP DIRECTORY` is there to be interrupted too.

use ambient::{Clock, Random};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;
use testkit::torture::{driver, worker};

const USAGE: &str = "torture [--cycles N] [--seed N] [--dir DIRECTORY]";
/// How often to say how far it has come.
const PROGRESS_EVERY: u64 = 100;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    let runtime = runtime.expect("the system can start threads");
    let outcome = match arguments.split_first() {
        Some((word, rest)) if word == "worker" => {
            worker::Options::parse(rest).map(|options| runtime.block_on(worker::run(options)))
        }
        Some((word, [backup, dir])) if word == "restore" => Ok(restore(backup.as_ref(), dir.as_ref())),
        _ => parse(&arguments).map(|options| runtime.block_on(drive(&options))),
    };
    // A worker may leave tasks behind that wait for a store that has failed.
    runtime.shutdown_background();
    outcome.unwrap_or_else(|error| {
        say(&format!("{error}\nusage: {USAGE}"));
        ExitCode::from(64)
    })
}

fn parse(arguments: &[String]) -> Result<driver::Options, String> {
    let mut options = driver::Options {
        program: std::env::current_exe().map_err(|error| format!("cannot find this program: {error}"))?,
        cycles: 2000,
        seed: Random::from_entropy().below(1 << 32),
        within: std::env::temp_dir(),
        longest: Duration::from_millis(250),
    };
    for pair in arguments.chunks(2) {
        let [name, value] = pair else { return Err(format!("{} has no value", pair[0])) };
        let number = || value.parse::<u64>().map_err(|_| format!("{name} {value}: not a number"));
        match name.as_str() {
            "--cycles" => options.cycles = number()?,
            "--seed" => options.seed = number()?,
            "--dir" => options.within = PathBuf::from(value),
            _ => return Err(format!("there is no option {name}")),
        }
    }
    Ok(options)
}

async fn drive(options: &driver::Options) -> ExitCode {
    let clock = Clock::system();
    let start = clock.monotonic();
    say(&format!("torture: {} cycles from seed {}", options.cycles, options.seed));
    let report = |summary: &driver::Summary| {
        let driver::Summary { cycles, acknowledged, revisions, killed_opening, checkpointed, left_unrecovered } =
            summary;
        format!(
            "{cycles} cycles in {:.1} s: {acknowledged} writes acknowledged, {revisions} revisions, \
             {killed_opening} killed before the store was open, {checkpointed} with a checkpoint, \
             {left_unrecovered} left to the next worker to recover",
            start.elapsed().as_secs_f64()
        )
    };
    let outcome = driver::run(options, |summary| {
        if summary.cycles % PROGRESS_EVERY == 0 && summary.cycles < options.cycles {
            say(&format!("torture: {}", report(summary)));
        }
    });
    match outcome.await {
        Ok(summary) => {
            say(&format!("torture: passed, nothing lost: {}", report(&summary)));
            ExitCode::SUCCESS
        }
        Err(failure) => {
            say(&format!("torture: FAILED: {failure}"));
            ExitCode::FAILURE
        }
    }
}

fn restore(backup: &Path, dir: &Path) -> ExitCode {
    match store::restore(backup, dir) {
        Ok(_) => ExitCode::SUCCESS,
        Err(error) => {
            say(&error.to_string());
            ExitCode::FAILURE
        }
    }
}

fn say(line: &str) {
    // If nobody reads this, the exit code still tells.
    let _ = writeln!(std::io::stdout(), "{line}");
}
