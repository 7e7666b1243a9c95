//! The clock: wall time for what people and other machines read, monotonic time for deadlines.
//!
//! Monotonic time is always tokio's, so `tokio::time::pause` governs every deadline. A simulated clock derives wall
//! time from it too; a system clock asks the operating system.

use std::ops::{Add, Sub};
use std::time::Duration;
use tokio::time::Instant;

/// Wall time in milliseconds since 1970, the resolution at which Setpoint stores and compares it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(pub u64);

impl Timestamp {
    /// 2026-01-01T00:00:00Z, where simulated time begins.
    pub const EPOCH_2026: Timestamp = Timestamp(1_767_225_600_000);

    /// How long ago `earlier` was; zero if the clock was set back meanwhile.
    pub fn since(self, earlier: Timestamp) -> Duration {
        Duration::from_millis(self.0.saturating_sub(earlier.0))
    }
}

impl Add<Duration> for Timestamp {
    type Output = Timestamp;
    fn add(self, rhs: Duration) -> Timestamp {
        Timestamp(self.0.saturating_add(u64::try_from(rhs.as_millis()).unwrap_or(u64::MAX)))
    }
}

impl Sub<Duration> for Timestamp {
    type Output = Timestamp;
    fn sub(self, rhs: Duration) -> Timestamp {
        Timestamp(self.0.saturating_sub(u64::try_from(rhs.as_millis()).unwrap_or(u64::MAX)))
    }
}

/// A source of wall and monotonic time; cheap to clone.
#[derive(Clone, Debug)]
pub struct Clock(Source);

#[derive(Clone, Debug)]
enum Source {
    System,
    /// Wall time is `epoch` plus what tokio's clock has advanced since `start`.
    Simulated {
        epoch: Timestamp,
        start: Instant,
    },
}

#[allow(clippy::disallowed_methods, reason = "this module is the one that reads the clocks")]
impl Clock {
    pub fn system() -> Self {
        Clock(Source::System)
    }

    /// A clock that shows `epoch` now and advances with tokio's, paused or not.
    pub fn simulated(epoch: Timestamp) -> Self {
        Clock(Source::Simulated { epoch, start: Instant::now() })
    }

    /// Wall time. It may jump; never compute a deadline from it.
    pub fn wall(&self) -> Timestamp {
        match &self.0 {
            Source::System => {
                let since_epoch = std::time::SystemTime::now()
                    .duration_since(std::time::UNIX_EPOCH)
                    .expect("the system clock is set after 1970");
                Timestamp(u64::try_from(since_epoch.as_millis()).expect("milliseconds since 1970 fit in 64 bits"))
            }
            Source::Simulated { epoch, start } => *epoch + Instant::now().duration_since(*start),
        }
    }

    /// Monotonic time: for deadlines, leases and measurements.
    pub fn monotonic(&self) -> Instant {
        Instant::now()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn simulated_wall_time_follows_paused_time() {
        let clock = Clock::simulated(Timestamp::EPOCH_2026);
        let before = clock.wall();
        tokio::time::advance(Duration::from_secs(3600)).await;
        assert_eq!(clock.wall().since(before), Duration::from_secs(3600));
    }

    #[test]
    fn a_clock_set_back_never_yields_a_negative_age() {
        assert_eq!(Timestamp(5).since(Timestamp(9)), Duration::ZERO);
    }
}
