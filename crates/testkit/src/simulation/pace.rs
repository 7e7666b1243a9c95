//! How fast loops write. Whatever happens, no loop has reason to write the same thing again and again: it backs off from
//! what fails, and what succeeds is done.

use ambient::Timestamp;
use parking_lot::Mutex;
use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

/// So many writes of one loop to one place, within [`WINDOW`], are more than honest work takes: several times what the
/// busiest of all has been seen to need.
const MOST: usize = 200;
const WINDOW: Duration = Duration::from_secs(10);

/// The writes of late.
#[derive(Debug, Default)]
pub(super) struct Pace(Mutex<Recent>);

#[derive(Debug, Default)]
struct Recent {
    /// When, by who wrote, how and where.
    times: BTreeMap<String, VecDeque<Timestamp>>,
    /// The first that was too much.
    excess: Option<String>,
}

impl Pace {
    /// Notes a write; says whether it is too much. Then it must not be answered: time would never pass again.
    pub(super) fn is_too_fast(&self, what: &str, now: Timestamp) -> bool {
        let recent = &mut *self.0.lock();
        let times = recent.times.entry(what.to_owned()).or_default();
        times.push_back(now);
        while times.front().is_some_and(|first| *first + WINDOW < now) {
            times.pop_front();
        }
        let is_too_fast = times.len() > MOST;
        if is_too_fast {
            recent.excess.get_or_insert_with(|| format!("{} times within {WINDOW:?}: {what}", times.len()));
        }
        is_too_fast
    }

    /// What was written too often, if something was.
    pub(super) fn excess(&self) -> Option<String> {
        self.0.lock().excess.clone()
    }
}
