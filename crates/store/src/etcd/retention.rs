//! Compaction by age: what was the present long enough ago becomes the oldest revision kept.
//!
//! Several servers on one cluster all do this. It does no harm: each compacts to about the same revision, and etcd
//! says so to those who come late.

use super::connect::{Member, Members, REQUEST_TIMEOUT, Repeat};
use super::failure::Failure;
use super::keys::to_wire;
use crate::Revision;
use crate::feed::Feed;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// How finely the past is known: history is kept for up to an eighth longer than asked.
const SAMPLES: u32 = 8;
const SHORTEST_INTERVAL: Duration = Duration::from_secs(1);

/// Compacts for ever.
pub(super) async fn retain(members: Arc<Members>, feed: Arc<Feed>, age: Duration) {
    let interval = (age / SAMPLES).max(SHORTEST_INTERVAL);
    let mut samples = Samples::default();
    loop {
        let now = members.clock().monotonic();
        samples.taken.push_back((now, feed.head()));
        if let Some(revision) = samples.due(now, age).filter(|revision| *revision > feed.compacted()) {
            match compact(&members, revision).await {
                Ok(()) => forget(&feed, revision),
                Err(Failure::Compacted) => tracing::debug!(%revision, "another server has compacted already"),
                Err(failure) => tracing::warn!(%revision, ?failure, "etcd was not compacted; trying later"),
            }
        }
        tokio::time::sleep(interval).await;
    }
}

/// Makes `revision` the oldest one kept.
pub(super) async fn compact(members: &Members, revision: Revision) -> Result<(), Failure> {
    let compact = |member: Member| async move { member.kv().compact(to_wire(revision), None).await };
    members.call(Repeat::Harmless, members.deadline(REQUEST_TIMEOUT), compact).await.map(drop)
}

/// Lets the feed follow a compaction.
pub(super) fn forget(feed: &Feed, revision: Revision) {
    feed.trim(|_, oldest| oldest.revision <= revision);
    feed.set_compacted(revision);
}

/// Which revision was the present at which time, oldest first; never more than about [`SAMPLES`].
#[derive(Debug, Default)]
struct Samples {
    taken: VecDeque<(Instant, Revision)>,
}

impl Samples {
    /// The newest revision that has been the present for as long as `age`, if that was not told before.
    fn due(&mut self, now: Instant, age: Duration) -> Option<Revision> {
        let mut due = None;
        while let Some((_, revision)) = self.taken.pop_front_if(|(taken, _)| *taken + age <= now) {
            due = Some(revision);
        }
        due
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ambient::Clock;

    #[test]
    fn a_revision_is_due_once_when_it_has_been_the_present_long_enough_ago() {
        let start = Clock::system().monotonic();
        let at = |seconds| start + Duration::from_secs(seconds);
        let mut samples = Samples::default();
        samples.taken.extend([(at(0), Revision(5)), (at(10), Revision(8)), (at(20), Revision(9))]);
        let age = Duration::from_secs(60);
        assert_eq!(samples.due(at(59), age), None);
        assert_eq!(samples.due(at(75), age), Some(Revision(8)));
        assert_eq!(samples.due(at(75), age), None);
        assert_eq!(samples.due(at(80), age), Some(Revision(9)));
    }
}
