//! Moments and spans of time as the language reads and writes them.

use jiff::civil::{Date, DateTime, date};
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use std::cmp::Ordering;
use std::fmt;

/// A moment between the first and the last of the years of four digits. Jiff's own ends a day earlier, which would
/// make nothing of what people write for "never".
#[derive(Clone, Copy, Debug)]
pub struct Moment {
    /// Since 1970.
    nanos: i128,
    /// How many seconds the clocks are ahead of Greenwich where it was written, which is how it is written again.
    ahead: i32,
}

impl PartialEq for Moment {
    fn eq(&self, other: &Self) -> bool {
        self.nanos == other.nanos
    }
}

impl Eq for Moment {}

impl PartialOrd for Moment {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Moment {
    fn cmp(&self, other: &Self) -> Ordering {
        self.nanos.cmp(&other.nanos)
    }
}

const EPOCH: DateTime = date(1970, 1, 1).at(0, 0, 0, 0);
const NANOS: i128 = 1_000_000_000;
const FIRST_SECOND: i128 = -62_135_596_800;
const LAST_SECOND: i128 = 253_402_300_799;

const UNITS: [(&str, i128); 8] = [
    ("ns", 1),
    ("us", 1_000),
    ("µs", 1_000),
    ("μs", 1_000),
    ("ms", 1_000_000),
    ("s", NANOS),
    ("m", 60 * NANOS),
    ("h", 3600 * NANOS),
];

impl Moment {
    /// What Go takes for no time at all.
    pub const FIRST: Moment = Moment { nanos: FIRST_SECOND * NANOS, ahead: 0 };

    /// None beyond the years there are.
    pub fn from_nanos(nanos: i128) -> Option<Moment> {
        (FIRST_SECOND..=LAST_SECOND).contains(&nanos.div_euclid(NANOS)).then_some(Moment { nanos, ahead: 0 })
    }

    /// So many nanoseconds later, at the same place.
    pub fn later(self, nanos: i128) -> Option<Moment> {
        Some(Moment { ahead: self.ahead, ..Moment::from_nanos(self.nanos + nanos)? })
    }

    pub fn from_seconds(seconds: i64) -> Option<Moment> {
        Moment::from_nanos(i128::from(seconds) * NANOS)
    }

    /// RFC 3339, and nothing else.
    pub fn parse(text: &str) -> Option<Moment> {
        let zone = text.rfind(['Z', '+', '-']).filter(|zone| *zone >= 19)?;
        let (local, zone) = text.split_at(zone);
        let exact = local.as_bytes()[10] == b'T' && local.as_bytes()[16] == b':';
        let local: DateTime = local.parse().ok().filter(|_| exact)?;
        let ahead = if zone == "Z" { 0 } else { offset(zone)? };
        let moment = Moment::from_nanos(local.duration_since(EPOCH).as_nanos() - i128::from(ahead) * NANOS)?;
        Some(Moment { ahead, ..moment })
    }

    /// The beginning of a day.
    pub fn parse_date(text: &str) -> Option<Moment> {
        let day: Date = text.parse().ok().filter(|_| text.len() == 10)?;
        Moment::from_nanos(day.at(0, 0, 0, 0).duration_since(EPOCH).as_nanos())
    }

    pub fn nanos(self) -> i128 {
        self.nanos
    }

    pub fn seconds(self) -> i64 {
        i64::try_from(self.nanos.div_euclid(NANOS)).expect("years of four digits have few seconds")
    }

    /// As people at some place have it: in a zone with a name, or so many hours and minutes from Greenwich.
    pub(crate) fn at(self, zone: &str) -> Option<DateTime> {
        let ahead = match zone {
            "" | "UTC" => 0,
            zone if zone.contains(':') => offset(zone)?,
            zone => {
                let last = Timestamp::MAX.as_second();
                let timestamp = Timestamp::from_second(self.seconds().min(last)).ok()?;
                TimeZone::get(zone).ok()?.to_offset(timestamp).seconds()
            }
        };
        self.civil(ahead)
    }

    fn civil(self, ahead: i32) -> Option<DateTime> {
        let nanos = self.nanos + i128::from(ahead) * NANOS;
        let seconds = i64::try_from(nanos.div_euclid(NANOS)).ok()?;
        let rest = i32::try_from(nanos.rem_euclid(NANOS)).ok()?;
        EPOCH.checked_add(SignedDuration::new(seconds, rest)).ok()
    }
}

impl fmt::Display for Moment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let local = self.civil(self.ahead).ok_or(fmt::Error)?;
        match self.ahead {
            0 => write!(f, "{local}Z"),
            ahead => {
                let sign = if ahead < 0 { '-' } else { '+' };
                write!(f, "{local}{sign}{:02}:{:02}", ahead.abs() / 3600, ahead.abs() / 60 % 60)
            }
        }
    }
}

/// Seconds ahead of Greenwich, from `+02:30`; without a sign it is ahead too.
fn offset(text: &str) -> Option<i32> {
    let (hours, minutes) = text.strip_prefix(['+', '-']).unwrap_or(text).split_once(':')?;
    let digits = |text: &str| match text.as_bytes() {
        [b'0'..=b'9', b'0'..=b'9'] => text.parse::<i32>().ok(),
        _ => None,
    };
    let seconds = digits(hours)? * 3600 + digits(minutes)? * 60;
    Some(if text.starts_with('-') { -seconds } else { seconds })
}

/// Nanoseconds, from `1h30m`, `-1.5s`, `0`.
pub(crate) fn parse_duration(text: &str) -> Option<i64> {
    let mut rest = text.strip_prefix(['+', '-']).unwrap_or(text);
    if rest == "0" {
        return Some(0);
    }
    let mut nanos: i128 = 0;
    let mut parts = 0;
    while !rest.is_empty() {
        let digits = |text: &str| text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
        let (whole, tail) = rest.split_at(digits(rest));
        let (fraction, tail) = match tail.strip_prefix('.') {
            Some(tail) => tail.split_at(digits(tail)),
            None => ("", tail),
        };
        let (unit, tail) = tail.split_at(tail.find(|c: char| c.is_ascii_digit() || c == '.').unwrap_or(tail.len()));
        let (_, scale) = UNITS.iter().find(|(known, _)| *known == unit)?;
        if whole.is_empty() && fraction.is_empty() {
            return None;
        }
        nanos =
            nanos.checked_add(if whole.is_empty() { 0 } else { whole.parse::<i128>().ok()?.checked_mul(*scale)? })?;
        let mut place = *scale;
        for digit in fraction.bytes() {
            place /= 10;
            nanos += i128::from(digit - b'0') * place;
        }
        (rest, parts) = (tail, parts + 1);
    }
    let nanos = if text.starts_with('-') { -nanos } else { nanos };
    i64::try_from(nanos).ok().filter(|_| parts > 0)
}

/// In seconds: `5400s`, `0.25s`.
pub(crate) fn format_duration(nanos: i64) -> String {
    let magnitude = nanos.unsigned_abs();
    let sign = if nanos < 0 { "-" } else { "" };
    let fraction = format!("{:09}", magnitude % 1_000_000_000);
    match fraction.trim_end_matches('0') {
        "" => format!("{sign}{}s", magnitude / 1_000_000_000),
        fraction => format!("{sign}{}.{fraction}s", magnitude / 1_000_000_000),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_are_read_and_written_as_in_go() {
        for (text, seconds) in [
            ("0", Some("0s")),
            ("1h30m", Some("5400s")),
            ("-1.5s", Some("-1.5s")),
            ("+.5ms", Some("0.0005s")),
            ("1us1ns", Some("0.000001001s")),
            ("1", None),
            ("", None),
            ("s", None),
            ("1d", None),
            ("9223372036855s", None),
        ] {
            assert_eq!(parse_duration(text).map(format_duration).as_deref(), seconds, "{text}");
        }
    }

    #[test]
    fn moments_are_read_in_one_form_only() {
        for (text, good) in [
            ("2026-01-02T03:04:05Z", true),
            ("2026-01-02T03:04:05.123456789+02:00", true),
            ("2026-01-02 03:04:05Z", false),
            ("2026-01-02T03:04:05", false),
            ("2026-01-02", false),
            ("0000-01-01T00:00:00Z", false),
            ("9999-12-31T23:59:59Z", true),
            ("9999-12-31T23:59:59-01:00", false),
            ("2026-01-02T03:04:05+2:00", false),
            ("2026-02-30T03:04:05Z", false),
            ("", false),
        ] {
            assert_eq!(Moment::parse(text).is_some(), good, "{text}");
        }
    }

    #[test]
    fn moments_are_written_as_short_as_they_are() {
        for text in ["2026-01-02T03:04:05Z", "1969-12-31T23:59:59.25Z", "0001-01-01T00:00:00Z"] {
            assert_eq!(Moment::parse(text).unwrap().to_string(), text);
        }
        let elsewhere = Moment::parse("2026-01-02T05:04:05.500+02:00").unwrap();
        assert_eq!(elsewhere.to_string(), "2026-01-02T05:04:05.5+02:00");
        assert_eq!(elsewhere, Moment::parse("2026-01-02T03:04:05.5Z").unwrap());
    }
}
