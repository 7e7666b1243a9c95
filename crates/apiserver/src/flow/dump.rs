//! `/debug/api_priority_and_fairness/dump_priority_levels`: how the levels are doing, in upstream's columns.

use super::Flow;
use super::level::Level;

const COLUMNS: [&str; 10] = [
    "PriorityLevelName",
    "ActiveQueues",
    "IsIdle",
    "IsQuiescing",
    "WaitingRequests",
    "ExecutingRequests",
    "DispatchedRequests",
    "RejectedRequests",
    "TimedoutRequests",
    "CancelledRequests",
];

impl Flow {
    pub(crate) fn dump_levels(&self) -> String {
        let directory = self.shared.directory.read().clone();
        let rows: Vec<[String; 10]> = directory.levels().map(|level| row(level)).collect();
        let head = COLUMNS.map(str::to_owned);
        let all: Vec<&[String; 10]> = [&head].into_iter().chain(&rows).collect();
        let mut text = String::new();
        for row in &all {
            for (at, cell) in row.iter().enumerate() {
                let width = all.iter().map(|row| row[at].len()).max().unwrap_or(0);
                match at + 1 < row.len() {
                    true => text.push_str(&format!("{:<1$}", format!("{cell},"), width + 2)),
                    false => text.push_str(&format!("{cell}\n")),
                }
            }
        }
        text
    }
}

/// A level that is being given up is not shown: nothing comes to it. Upstream counts those who waited for too long among
/// those who were cancelled, and so do we.
fn row(level: &Level) -> [String; 10] {
    let digest = level.digest();
    let is_idle = digest.waiting == 0 && digest.tally.executing == 0;
    [
        level.name.clone(),
        digest.queues.to_string(),
        is_idle.to_string(),
        false.to_string(),
        digest.waiting.to_string(),
        digest.tally.executing.to_string(),
        digest.tally.dispatched.to_string(),
        digest.tally.rejected.to_string(),
        0.to_string(),
        digest.tally.gave_up.to_string(),
    ]
}
