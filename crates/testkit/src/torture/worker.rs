//! The process that is going to die: it opens a store and writes to it at full speed, saying on standard output what
//! it sends and what was answered.

use super::protocol::{Action, FLEETING, LEASED, Line};
use ambient::{Ambient, Random};
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use store::{Outcome, Retention, Sqlite, SqliteOptions, Store, Txn};

/// How the worker ends when it is not killed.
pub const UNOPENED: u8 = 2;
pub const FAILED: u8 = 3;

/// How often each writer tries again on a store that has failed: nothing of it may be acknowledged.
const TRIES_AFTER_FAILURE: u32 = 20;
/// Few enough that most writes replace something, which is what sweeping lives on.
const KEYS: u64 = 24;

#[derive(Clone, Debug)]
pub struct Options {
    pub dir: PathBuf,
    pub seed: u64,
    /// The number of the first operation: what it writes is told from what other workers wrote in the same directory.
    pub first: u64,
    pub writers: u64,
    /// How many operations there are in all; none: without end.
    pub operations: Option<u64>,
    /// The size of the largest value.
    pub value_bytes: u64,
    /// How much history is kept; little means that sweeping never stops.
    pub history_bytes: u64,
    /// Whether to close the store when everything is done, rather than to wait for the end.
    pub close: bool,
}

impl Options {
    pub fn new(dir: impl Into<PathBuf>, seed: u64) -> Self {
        Options {
            dir: dir.into(),
            seed,
            first: 1,
            writers: 8,
            operations: None,
            value_bytes: 2000,
            history_bytes: 128 << 10,
            close: false,
        }
    }

    /// The command line that [`Options::parse`] reads.
    pub fn arguments(&self) -> Vec<String> {
        let numbers = [
            ("--seed", self.seed),
            ("--first", self.first),
            ("--writers", self.writers),
            ("--operations", self.operations.unwrap_or(0)),
            ("--value-bytes", self.value_bytes),
            ("--history-bytes", self.history_bytes),
            ("--close", u64::from(self.close)),
        ];
        let numbers = numbers.into_iter().flat_map(|(name, number)| [name.to_owned(), number.to_string()]);
        let dir = ["worker".to_owned(), "--dir".to_owned(), self.dir.display().to_string()];
        dir.into_iter().chain(numbers).collect()
    }

    /// Reads what follows the word `worker`.
    pub fn parse(arguments: &[String]) -> Result<Self, String> {
        let mut options = Options::new("", 0);
        for pair in arguments.chunks(2) {
            let [name, value] = pair else { return Err(format!("{} has no value", pair[0])) };
            let number = || value.parse::<u64>().map_err(|_| format!("{name} {value}: not a number"));
            match name.as_str() {
                "--dir" => options.dir = PathBuf::from(value),
                "--seed" => options.seed = number()?,
                "--first" => options.first = number()?,
                "--writers" => options.writers = number()?,
                "--operations" => options.operations = Some(number()?).filter(|operations| *operations != 0),
                "--value-bytes" => options.value_bytes = number()?,
                "--history-bytes" => options.history_bytes = number()?,
                "--close" => options.close = number()? != 0,
                _ => return Err(format!("there is no option {name}")),
            }
        }
        Ok(options)
    }
}

/// Writes a line whole; a listener that is gone ends the worker, for nobody would know what it did.
fn say(line: &Line) {
    let text = format!("{line}\n");
    std::io::stdout().lock().write_all(text.as_bytes()).expect("somebody listens");
}

#[derive(Debug)]
struct Worker {
    options: Options,
    store: Sqlite,
    /// The number of the next operation.
    next: AtomicU64,
    failed: AtomicBool,
}

pub async fn run(options: Options) -> ExitCode {
    let ambient = Ambient::real();
    let retention = Retention { bytes: options.history_bytes, ..Retention::default() };
    let opened = Sqlite::open(&ambient, SqliteOptions { retention, ..SqliteOptions::new(&options.dir) });
    let store = match opened.await {
        Ok(store) => store,
        Err(error) => {
            say(&Line::Unopened(error.to_string()));
            return ExitCode::from(UNOPENED);
        }
    };
    say(&Line::Ready(store.revision().await.expect("an open store knows its revision")));
    let next = AtomicU64::new(options.first);
    let worker = Arc::new(Worker { options, store, next, failed: AtomicBool::new(false) });
    let observer = worker.clone();
    ambient.tasks.spawn_until_stopped("failure", async move {
        let error = observer.store.failed().await;
        say(&Line::Failed(error.to_string()));
        observer.failed.store(true, Ordering::SeqCst);
    });
    let writers = ambient.tasks.child();
    let random = Random::seeded(worker.options.seed);
    for _ in 0..worker.options.writers {
        let (worker, random) = (worker.clone(), random.fork());
        writers.spawn("writer", async move { worker.write(&random).await });
    }
    writers.stop().await;
    if worker.failed.load(Ordering::SeqCst) {
        return ExitCode::from(FAILED);
    }
    say(&Line::Done);
    if worker.options.close {
        worker.store.close().await;
        return ExitCode::SUCCESS;
    }
    std::future::pending().await
}

impl Worker {
    async fn write(&self, random: &Random) {
        let mut tries = TRIES_AFTER_FAILURE;
        let end = self.options.operations.map_or(u64::MAX, |operations| self.options.first + operations);
        while tries > 0 {
            let operation = self.next.fetch_add(1, Ordering::Relaxed);
            if operation >= end {
                return;
            }
            if self.failed.load(Ordering::SeqCst) {
                tries -= 1;
            }
            self.act(operation, random).await;
            if random.below(64) == 0 {
                self.compact(random).await;
            }
        }
    }

    async fn act(&self, operation: u64, random: &Random) {
        let action = self.choose(random);
        let transaction = match &action {
            Action::Swap { key, .. } => self.unless_changed(key, action.transaction(operation)).await,
            _ => action.transaction(operation),
        };
        say(&Line::Sent { operation, action });
        say(&match self.store.commit(transaction).await {
            Ok(Outcome::Committed(revision)) => Line::Acknowledged { operation, revision },
            Ok(Outcome::Conflict { .. }) => Line::Conflict { operation },
            Err(error) => Line::Refused { operation, error: error.to_string() },
        });
        // A refusal takes no time; whoever waits for the failure must get to run.
        tokio::task::yield_now().await;
    }

    fn choose(&self, random: &Random) -> Action {
        let n = random.below(KEYS);
        let bytes = random.below(1 + random.below(self.options.value_bytes)) as usize;
        match random.below(16) {
            0..6 => Action::Put { key: format!("plain/{n}"), bytes },
            6..8 => Action::Swap { key: format!("swapped/{}", n % 4), bytes },
            8..10 => Action::Delete { key: format!("plain/{n}") },
            10..13 => Action::PutGroup { group: n % 6, bytes },
            13 => Action::DeleteGroup { group: n % 6 },
            14 => Action::Put { key: format!("{FLEETING}{n}"), bytes },
            _ => Action::Put { key: format!("{LEASED}{n}"), bytes },
        }
    }

    async fn unless_changed(&self, key: &str, transaction: Txn) -> Txn {
        let read = self.store.get(key.as_bytes(), None).await.expect("the current value is in memory");
        match read.item {
            Some(item) => transaction.when_unmodified(item.key.clone(), item.mod_revision),
            None => transaction.when_absent(key.to_owned()),
        }
    }

    async fn compact(&self, random: &Random) {
        let current = self.store.revision().await.expect("the revision is in memory");
        let target = store::Revision(current.0.saturating_sub(random.below(200)));
        // It may be compacted already, or the store may have failed, which the next write will tell.
        if self.store.compact(target).await.is_ok() {
            say(&Line::Compacted(target));
        }
    }
}
