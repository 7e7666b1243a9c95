//! When a schedule comes next, in a time zone.
//!
//! A schedule is a set of points in time: those at which a clock on the wall there shows what its fields allow. So an
//! hour that is skipped in spring runs nothing, and one that is repeated in autumn runs twice, as everything that is
//! due every hour must.

use super::Schedule;
use jiff::tz::TimeZone;
use jiff::{Timestamp, Zoned};

/// What does not come within so many seconds, some five years, never comes: the thirty-first of February.
const HORIZON_SECONDS: i64 = 5 * 366 * 24 * 3600;

/// A time zone of the tables that are part of the program.
#[derive(Clone, Debug)]
pub struct Zone(TimeZone);

impl Zone {
    pub fn utc() -> Self {
        Zone(TimeZone::UTC)
    }

    /// By its exact name.
    pub fn named(name: &str) -> Option<Self> {
        // The tables do not care about case; Kubernetes does.
        let zone = TimeZone::get(name).ok().filter(|zone| zone.iana_name() == Some(name))?;
        Some(Zone(zone))
    }

    /// `2006-01-02T15:04:05+01:00`, or with a `Z` where there is no offset.
    pub fn format(&self, seconds: i64) -> Option<String> {
        let zoned = Timestamp::from_second(seconds).ok()?.to_zoned(self.0.clone());
        let offset = if zoned.offset().is_zero() { "Z" } else { "%:z" };
        Some(zoned.strftime(&format!("%Y-%m-%dT%H:%M:%S{offset}")).to_string())
    }
}

impl Schedule {
    /// The zone that an old schedule begins with: `TZ=Europe/Berlin 0 9 * * *`.
    pub fn zone_of(text: &str) -> Option<&str> {
        let rest = text.strip_prefix("TZ=").or_else(|| text.strip_prefix("CRON_TZ="))?;
        Some(rest.split_once(' ')?.0)
    }

    /// The first point in time after `after`, both in seconds since 1970; none if there is none.
    pub fn next(self, after: i64, zone: &Zone) -> Option<i64> {
        if let Schedule::Every { seconds } = self {
            return after.checked_add(i64::try_from(seconds).ok()?);
        }
        let end = after.checked_add(HORIZON_SECONDS)?;
        let mut at = after.checked_add(1)?;
        while at <= end {
            let timestamp = Timestamp::from_second(at).ok()?;
            let wait = self.seconds_until_possible(&timestamp.to_zoned(zone.0.clone()));
            if wait == 0 {
                return Some(at);
            }
            // Clocks go on evenly only until they are changed; from there on it is looked at anew.
            let change = zone.0.following(timestamp).next().map(|change| change.timestamp().as_second());
            at = change.map_or(at + wait, |change| change.min(at + wait));
        }
        None
    }

    /// How long a clock that is not changed meanwhile takes until it may show something that is allowed; nothing if it
    /// does now.
    fn seconds_until_possible(self, clock: &Zoned) -> i64 {
        let Schedule::Fields { minutes, hours, months, .. } = self else { return 0 };
        let number = |value: i8| u32::from(value.unsigned_abs());
        let second = i64::from(clock.second());
        let in_hour = i64::from(clock.minute()) * 60 + second;
        let in_day = i64::from(clock.hour()) * 3600 + in_hour;
        let weekday = number(clock.weekday().to_sunday_zero_offset());
        if !months.allows(number(clock.month())) {
            let days_left = i64::from(clock.days_in_month()) - i64::from(clock.day());
            days_left * 86_400 + 86_400 - in_day
        } else if !self.allows_day(number(clock.day()), weekday) {
            86_400 - in_day
        } else if !hours.allows(number(clock.hour())) {
            3600 - in_hour
        } else if second > 0 || !minutes.allows(number(clock.minute())) {
            60 - second
        } else {
            0
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn zone(name: &str) -> Zone {
        Zone::named(name).unwrap()
    }

    fn seconds(text: &str) -> i64 {
        crate::time::parse(text).unwrap().0
    }

    fn next(schedule: &str, after: &str, name: &str) -> String {
        let schedule: Schedule = schedule.parse().unwrap();
        let found = schedule.next(seconds(after), &zone(name));
        found.and_then(|found| zone(name).format(found)).unwrap_or_default()
    }

    #[test]
    fn the_next_time_is_later_and_fits() {
        for (schedule, after, zone, expected) in [
            ("0 * * * *", "2026-01-01T00:00:00Z", "UTC", "2026-01-01T01:00:00Z"),
            ("0 * * * *", "2025-12-31T23:59:59Z", "UTC", "2026-01-01T00:00:00Z"),
            ("30 9 * * mon-fri", "2026-01-02T09:30:00Z", "UTC", "2026-01-05T09:30:00Z"),
            ("0 0 29 2 *", "2026-01-01T00:00:00Z", "UTC", "2028-02-29T00:00:00Z"),
            ("0 0 31 2 *", "2026-01-01T00:00:00Z", "UTC", ""),
            ("0 0 13 * 5", "2026-02-13T00:00:00Z", "UTC", "2026-02-20T00:00:00Z"),
            ("@every 90s", "2026-01-01T00:00:07Z", "UTC", "2026-01-01T00:01:37Z"),
            ("0 9 * * *", "2026-01-01T07:30:00Z", "Europe/Berlin", "2026-01-01T09:00:00+01:00"),
            ("0 9 * * *", "2026-07-01T06:30:00Z", "Europe/Berlin", "2026-07-01T09:00:00+02:00"),
        ] {
            assert_eq!(next(schedule, after, zone), expected, "{schedule} after {after} in {zone}");
        }
    }

    #[test]
    fn what_is_skipped_does_not_run_and_what_is_repeated_runs_twice() {
        let berlin = "Europe/Berlin";
        assert_eq!(next("30 2 * * *", "2026-03-28T12:00:00Z", berlin), "2026-03-30T02:30:00+02:00");
        assert_eq!(next("30 2 * * *", "2026-10-24T12:00:00Z", berlin), "2026-10-25T02:30:00+02:00");
        assert_eq!(next("30 2 * * *", "2026-10-25T00:30:00Z", berlin), "2026-10-25T02:30:00+01:00");
        assert_eq!(next("30 2 * * *", "2026-10-25T01:30:00Z", berlin), "2026-10-26T02:30:00+01:00");
        assert_eq!(next("0 * * * *", "2026-10-25T00:00:00Z", berlin), "2026-10-25T02:00:00+01:00");
    }

    /// Every point of a year is found, and nothing else: compared with looking at every minute of it.
    #[test]
    fn over_a_whole_year_exactly_the_minutes_that_fit_are_found() {
        let (start, end) = (seconds("2025-12-31T23:00:00Z"), seconds("2027-01-01T01:00:00Z"));
        for (name, texts) in [
            ("UTC", vec!["0 0 1 */2 *"]),
            ("Europe/Berlin", vec!["*/30 1-3 * * *", "0 0 * * 0"]),
            ("America/New_York", vec!["15 1,2 * 3,11 *"]),
            ("Australia/Lord_Howe", vec!["*/15 1,2 * 4,10 *"]),
            ("America/Santiago", vec!["0 0 * * *"]),
            ("Asia/Kathmandu", vec!["45 5 * * 1-5"]),
        ] {
            for text in texts {
                let (schedule, zone): (Schedule, _) = (text.parse().unwrap(), zone(name));
                let Schedule::Fields { minutes, hours, months, .. } = schedule else { panic!("these are fields") };
                let shows = |at: i64| {
                    let clock = Timestamp::from_second(at).unwrap().to_zoned(zone.0.clone());
                    let number = |value: i8| u32::try_from(value).unwrap();
                    months.allows(number(clock.month()))
                        && schedule.allows_day(number(clock.day()), number(clock.weekday().to_sunday_zero_offset()))
                        && hours.allows(number(clock.hour()))
                        && minutes.allows(number(clock.minute()))
                };
                let expected: Vec<i64> = (start + 60..end).step_by(60).filter(|at| shows(*at)).collect();
                let mut found = Vec::new();
                let mut at = start;
                while let Some(next) = schedule.next(at, &zone).filter(|next| *next < end) {
                    found.push(next);
                    at = next;
                }
                assert_eq!(found, expected, "{text} in {name}");
            }
        }
    }

    #[test]
    fn old_schedules_may_name_their_zone() {
        assert_eq!(Schedule::zone_of("TZ=Europe/Berlin 0 9 * * *"), Some("Europe/Berlin"));
        assert_eq!(Schedule::zone_of("CRON_TZ=UTC @daily"), Some("UTC"));
        assert_eq!(Schedule::zone_of("0 9 * * *"), None);
    }
}
