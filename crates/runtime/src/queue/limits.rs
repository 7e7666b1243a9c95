//! How long a key that has failed waits: the longer of what its own failures and those of all keys together ask for.

use std::time::Duration;
use tokio::time::Instant;

/// After the first failure; doubled with each that follows.
const BASE_DELAY: Duration = Duration::from_millis(5);
const MAX_BACK_OFF: Duration = Duration::from_secs(1000);
const RETRIES_PER_SECOND: u32 = 10;
const RETRY_BURST: u32 = 100;

/// The defaults are upstream's.
#[derive(Clone, Debug, PartialEq)]
pub struct Limits {
    /// What a key waits after its first failure; doubled with each that follows.
    pub base: Duration,
    /// What no key waits longer than for its own failures.
    pub max: Duration,
    /// For all keys together, or no such limit.
    pub bucket: Option<Bucket>,
}

/// So many retries at once, and then so many a second.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bucket {
    /// At least one.
    pub per_second: u32,
    pub burst: u32,
}

impl Default for Limits {
    fn default() -> Self {
        let bucket = Bucket { per_second: RETRIES_PER_SECOND, burst: RETRY_BURST };
        Limits { base: BASE_DELAY, max: MAX_BACK_OFF, bucket: Some(bucket) }
    }
}

impl Limits {
    /// What a key waits that had failed so often before it failed again.
    pub(super) fn back_off(&self, failures: u32) -> Duration {
        self.base.saturating_mul(2_u32.saturating_pow(failures)).min(self.max)
    }
}

/// How much has been drawn from a bucket: the time at which it will be full again, in whole tokens, so that equal
/// draws give equal waits on every machine.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Refill(Option<Instant>);

impl Refill {
    /// Draws a token; says how long until it is there.
    pub(super) fn reserve(&mut self, bucket: &Bucket, now: Instant) -> Duration {
        let token = Duration::from_secs(1) / bucket.per_second.max(1);
        let full = self.0.map_or(now, |full| full.max(now)) + token;
        self.0 = Some(full);
        (full - now).saturating_sub(token.saturating_mul(bucket.burst))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ambient::Clock;

    #[test]
    fn waits_double_from_5_ms_to_1000_s_and_never_overflow() {
        let limits = Limits::default();
        let waits: Vec<u128> = (0..20).map(|failures| limits.back_off(failures).as_millis()).collect();
        let doubled = [5, 10, 20, 40, 80, 160, 320, 640, 1280, 2560, 5120, 10240, 20480, 40960, 81920, 163840, 327680];
        assert_eq!(waits, [&doubled[..], &[655_360, 1_000_000, 1_000_000]].concat());
        assert_eq!(limits.back_off(u32::MAX), MAX_BACK_OFF);
    }

    #[tokio::test(start_paused = true)]
    async fn a_bucket_gives_its_burst_at_once_and_refills_at_its_rate() {
        let (clock, bucket) = (Clock::system(), Bucket { per_second: 10, burst: 3 });
        let mut refill = Refill::default();
        let mut draw = |count: usize| -> Vec<u128> {
            (0..count).map(|_| refill.reserve(&bucket, clock.monotonic()).as_millis()).collect()
        };
        assert_eq!(draw(5), [0, 0, 0, 100, 200]);
        tokio::time::advance(Duration::from_millis(400)).await;
        assert_eq!(draw(3), [0, 0, 100]);
        tokio::time::advance(Duration::from_secs(3600)).await;
        assert_eq!(draw(4), [0, 0, 0, 100]);
    }
}
