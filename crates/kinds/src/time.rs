//! A point in time as objects carry it.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::borrow::Cow;
use std::fmt;
use std::time::Duration;

/// Microseconds since 1970: the finest that objects carry. Written in seconds unless asked otherwise.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time(pub i64);

impl Time {
    pub const fn from_seconds(seconds: i64) -> Self {
        Time(seconds * 1_000_000)
    }

    pub fn from_millis(millis: u64) -> Self {
        Time(i64::try_from(millis).unwrap_or(i64::MAX / 1000) * 1000)
    }

    pub fn parse(text: &str) -> Option<Self> {
        let (seconds, nanos) = object::time::parse(text)?;
        Some(Time(seconds.checked_mul(1_000_000)? + i64::from(nanos / 1000)))
    }

    pub fn seconds(self) -> i64 {
        self.0.div_euclid(1_000_000)
    }

    /// `2006-01-02T15:04:05.000000Z`, as leases and newer events carry it.
    pub fn to_micro_text(self) -> String {
        let nanos = u32::try_from(self.0.rem_euclid(1_000_000)).unwrap_or_default() * 1000;
        object::time::format_micros(self.seconds(), nanos).unwrap_or_default()
    }

    /// How long ago `earlier` was; zero if it is yet to come.
    pub fn since(self, earlier: Time) -> Duration {
        Duration::from_micros(u64::try_from(self.0.saturating_sub(earlier.0)).unwrap_or(0))
    }
}

impl std::ops::Add<Duration> for Time {
    type Output = Time;
    fn add(self, rhs: Duration) -> Time {
        Time(self.0.saturating_add(i64::try_from(rhs.as_micros()).unwrap_or(i64::MAX)))
    }
}

impl std::ops::Sub<Duration> for Time {
    type Output = Time;
    fn sub(self, rhs: Duration) -> Time {
        Time(self.0.saturating_sub(i64::try_from(rhs.as_micros()).unwrap_or(i64::MAX)))
    }
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&object::time::format(self.seconds()).unwrap_or_default())
    }
}

impl From<Time> for object::Value {
    fn from(time: Time) -> Self {
        object::Value::String(time.to_string())
    }
}

impl Serialize for Time {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Time {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = Cow::<'de, str>::deserialize(deserializer)?;
        Time::parse(&text).ok_or_else(|| serde::de::Error::custom(format!("{text:?} is no time")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_and_written_as_clients_do() {
        let time: Time = serde_json::from_str("\"2026-01-02T03:04:05.000006Z\"").unwrap();
        assert_eq!(
            (time.to_string(), time.to_micro_text()),
            ("2026-01-02T03:04:05Z".into(), "2026-01-02T03:04:05.000006Z".into())
        );
        assert_eq!((time + Duration::from_secs(60)).since(time), Duration::from_secs(60));
        assert_eq!(time.since(time + Duration::from_secs(1)), Duration::ZERO);
        assert!(serde_json::from_str::<Time>("\"yesterday\"").is_err());
    }
}
