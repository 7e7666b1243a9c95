//! Leases: how etcd deletes a key after a time.
//!
//! A lease costs etcd about as much as a key, so puts share leases: one is granted for somewhat longer than asked
//! and then serves every put that must live about that long. A key never expires early. It expires late by at most
//! [`window`], a second from rounding, and what etcd itself takes: half a second, and more after an election.

use super::connect::{Member, Members, Repeat};
use super::failure::Failure;
use super::keys::count;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Mutex;
use tokio::time::Instant;

/// All keys of a lease are deleted in one revision, so there must not be too many.
const MAX_KEYS_PER_LEASE: usize = 1000;
/// Leases that may still be given further keys; beyond, the one that ends first gets no more.
const MAX_OPEN: usize = 1024;
/// etcd counts in seconds, and what is between is rounded up.
const ROUNDING: Duration = Duration::from_secs(1);

/// How much later than asked a key may expire, so that leases can be shared.
fn window(ttl: Duration) -> Duration {
    (ttl / 20).max(Duration::from_secs(1))
}

#[derive(Debug)]
pub(super) struct Leases {
    members: Arc<Members>,
    /// Held while a lease is granted, so that all who wait for the same one share it.
    open: Mutex<Open>,
}

impl Leases {
    pub(super) fn new(members: Arc<Members>) -> Self {
        Leases { members, open: Mutex::new(Open::default()) }
    }

    /// A lease for one key that must live for `ttl` from now on.
    pub(super) async fn lease(&self, ttl: Duration, deadline: Instant) -> Result<i64, Failure> {
        let Ok(mut open) = tokio::time::timeout_at(deadline, self.open.lock()).await else {
            return Err(Failure::NotSent("no lease was granted in time".to_owned()));
        };
        let now = self.members.clock().monotonic();
        if let Some(id) = open.take(now, ttl) {
            return Ok(id);
        }
        let asked = Duration::from_secs((ttl + window(ttl)).as_secs_f64().ceil() as u64);
        let seconds = i64::try_from(asked.as_secs()).unwrap_or(i64::MAX);
        let grant = |member: Member| async move { member.lease().grant(seconds, None).await };
        match self.members.call(Repeat::Harmless, deadline, grant).await {
            Ok(granted) => {
                let granted_ttl = Duration::from_secs(count(granted.ttl()));
                open.add(now, asked, granted_ttl, granted.id());
                Ok(granted.id())
            }
            // A lease without keys changes nothing and goes away by itself.
            Err(Failure::Lost(cause)) => Err(Failure::NotSent(cause)),
            Err(failure) => Err(failure),
        }
    }

    /// Gives no more keys to a lease that etcd does not know any more.
    pub(super) async fn forget(&self, ids: &[i64]) {
        self.open.lock().await.leases.retain(|(_, id), _| !ids.contains(id));
    }
}

/// The leases that may be given further keys.
#[derive(Debug, Default)]
struct Open {
    /// By when they end; the value is the number of keys given.
    leases: BTreeMap<(Instant, i64), usize>,
    /// What etcd granted where less was asked: it grants nothing shorter.
    shortest: Duration,
}

impl Open {
    /// The lease that ends first among those that serve, counted for one more key.
    fn take(&mut self, now: Instant, ttl: Duration) -> Option<i64> {
        let latest = (ttl + window(ttl) + ROUNDING).max(self.shortest);
        let serving = (now + ttl, i64::MIN)..=(now + latest, i64::MAX);
        let (lease, keys) = self.leases.range_mut(serving).next()?;
        *keys += 1;
        let (lease, full) = (*lease, *keys >= MAX_KEYS_PER_LEASE);
        if full {
            self.leases.remove(&lease);
        }
        Some(lease.1)
    }

    /// Notes a lease granted for a key that was asked for at `now`.
    fn add(&mut self, now: Instant, asked: Duration, granted: Duration, id: i64) {
        self.leases.retain(|(end, _), _| *end > now);
        if granted > asked {
            self.shortest = granted;
        }
        self.leases.insert((now + granted, id), 1);
        while self.leases.len() > MAX_OPEN {
            self.leases.pop_first();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ambient::Clock;

    const HOUR: Duration = Duration::from_secs(3600);

    fn seconds(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn a_lease_serves_while_it_lasts_long_enough_and_not_much_longer() {
        let now = Clock::system().monotonic();
        let mut open = Open::default();
        open.add(now, seconds(3780), seconds(3780), 1);
        for (later, ttl, found) in [
            (0, HOUR, Some(1)),
            (180, HOUR, Some(1)),
            (181, HOUR, None),
            (181, seconds(3590), Some(1)),
            (0, seconds(1800), None),
        ] {
            assert_eq!(open.take(now + seconds(later), ttl), found, "{later} s later, for {ttl:?}");
        }
    }

    #[test]
    fn a_lease_takes_a_bounded_number_of_keys() {
        let now = Clock::system().monotonic();
        let mut open = Open::default();
        open.add(now, seconds(3780), seconds(3780), 1);
        let taken = (0..2 * MAX_KEYS_PER_LEASE).map_while(|_| open.take(now, HOUR)).count();
        assert_eq!(taken, MAX_KEYS_PER_LEASE - 1, "the first key is the one it was granted for");
    }

    #[test]
    fn a_lease_that_etcd_made_longer_than_asked_is_shared_all_the_same() {
        let now = Clock::system().monotonic();
        let mut open = Open::default();
        open.add(now, seconds(2), seconds(8), 1);
        assert_eq!(open.take(now, seconds(1)), Some(1));
    }

    #[test]
    fn the_number_of_open_leases_is_bounded() {
        let now = Clock::system().monotonic();
        let mut open = Open::default();
        for n in 0..2 * MAX_OPEN as u64 {
            open.add(now, seconds(10 + n), seconds(10 + n), i64::try_from(n).unwrap());
        }
        assert_eq!(open.leases.len(), MAX_OPEN);
    }
}
