//! How long to wait before a failed pod is replaced: longer and longer on a node that keeps refusing it.

use kinds::Time;
use std::collections::BTreeMap;
use std::time::Duration;

const FIRST: Duration = Duration::from_secs(1);
const LAST: Duration = Duration::from_secs(15 * 60);

/// When a pod of a set was last replaced on a node, and how long the next one has to wait.
#[derive(Default)]
pub(super) struct Failures(BTreeMap<(String, String), (Time, Duration)>);

impl Failures {
    /// How long to wait; if not at all, this counts as one more failure.
    pub(super) fn wait(&mut self, set: &str, node: &str, now: Time) -> Option<Duration> {
        // Whatever has been quiet for so long starts over.
        self.0.retain(|_, (since, _)| now.since(*since) < 2 * LAST);
        let key = (set.to_owned(), node.to_owned());
        match self.0.get(&key) {
            Some((since, delay)) if now.since(*since) < *delay => return Some((*since + *delay).since(now)),
            Some((_, delay)) => {
                let delay = (*delay * 2).min(LAST);
                self.0.insert(key, (now, delay));
            }
            None => {
                self.0.insert(key, (now, FIRST));
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_wait_doubles_up_to_a_limit_and_starts_over_after_a_quiet_time() {
        let mut failures = Failures::default();
        let at = Time::from_seconds;
        assert_eq!(failures.wait("s", "n", at(0)), None);
        assert_eq!(failures.wait("s", "n", at(0)), Some(FIRST));
        assert_eq!(failures.wait("s", "n", at(1)), None);
        assert_eq!(failures.wait("s", "n", at(2)), Some(Duration::from_secs(1)));
        assert_eq!(failures.wait("s", "other", at(2)), None);
        let mut now = 3;
        for _ in 0..12 {
            assert_eq!(failures.wait("s", "n", at(now)), None);
            now += 900;
        }
        assert_eq!(failures.wait("s", "n", at(now - 1)), Some(Duration::from_secs(1)));
        assert_eq!(failures.wait("s", "n", at(now + 1800)), None);
        assert_eq!(failures.wait("s", "n", at(now + 1800)), Some(FIRST));
    }
}
