//! Times as objects carry them: RFC 3339 in UTC, in seconds or microseconds. And as HTTP carries them.

use jiff::Timestamp;

/// Seconds since 1970 and the nanoseconds beyond them; none if the text is no time.
pub fn parse(text: &str) -> Option<(i64, u32)> {
    let timestamp: Timestamp = text.parse().ok()?;
    let nanos = timestamp.as_nanosecond().rem_euclid(1_000_000_000);
    let seconds = timestamp.as_nanosecond().div_euclid(1_000_000_000);
    Some((i64::try_from(seconds).ok()?, u32::try_from(nanos).ok()?))
}

/// A span of time as Go writes it: `1m30s`, `17.5s`; none if the text is none, or goes backwards.
pub fn parse_duration(text: &str) -> Option<std::time::Duration> {
    text.parse::<jiff::SignedDuration>().ok()?.try_into().ok()
}

/// A span of time as Go writes it, to the second: `1m30s`.
pub fn format_duration(span: std::time::Duration) -> String {
    let (hours, minutes, seconds) = (span.as_secs() / 3600, span.as_secs() / 60 % 60, span.as_secs() % 60);
    match (hours, minutes) {
        (0, 0) => format!("{seconds}s"),
        (0, _) => format!("{minutes}m{seconds}s"),
        _ => format!("{hours}h{minutes}m{seconds}s"),
    }
}

/// `2006-01-02T15:04:05Z`; none if the time is beyond what can be written.
pub fn format(seconds: i64) -> Option<String> {
    Some(Timestamp::from_second(seconds).ok()?.strftime("%Y-%m-%dT%H:%M:%SZ").to_string())
}

/// `2006-01-02T15:04:05.000000Z`
pub fn format_micros(seconds: i64, nanos: u32) -> Option<String> {
    let timestamp = Timestamp::new(seconds, i32::try_from(nanos / 1000 * 1000).ok()?).ok()?;
    Some(timestamp.strftime("%Y-%m-%dT%H:%M:%S.%6fZ").to_string())
}

/// `Mon, 02 Jan 2006 15:04:05 GMT`, as in the headers of HTTP.
pub fn format_http(seconds: i64) -> Option<String> {
    Some(Timestamp::from_second(seconds).ok()?.strftime("%a, %d %b %Y %H:%M:%S GMT").to_string())
}

/// Whether there is a time zone of this name in the tables that are part of the program.
pub fn is_zone(name: &str) -> bool {
    crate::cron::Zone::named(name).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_written_as_clients_expect() {
        assert_eq!(format(1_767_323_045).unwrap(), "2026-01-02T03:04:05Z");
        assert_eq!(format_micros(1_767_323_045, 6_789).unwrap(), "2026-01-02T03:04:05.000006Z");
        assert_eq!(format_http(1_767_323_045).unwrap(), "Fri, 02 Jan 2026 03:04:05 GMT");
        assert_eq!(format(-1).unwrap(), "1969-12-31T23:59:59Z");
        assert_eq!(format(i64::MAX), None);
    }

    #[test]
    fn offsets_and_fractions_are_understood() {
        assert_eq!(parse("2026-01-02T03:04:05Z"), Some((1_767_323_045, 0)));
        assert_eq!(parse("2026-01-02T05:04:05.5+02:00"), Some((1_767_323_045, 500_000_000)));
        assert_eq!(parse("1969-12-31T23:59:59.25Z"), Some((-1, 250_000_000)));
        assert_eq!(parse("yesterday"), None);
    }

    #[test]
    fn spans_are_read_as_go_writes_them() {
        let seconds = |text: &str| parse_duration(text).map(|span| span.as_secs_f64());
        assert_eq!([seconds("30s"), seconds("1m0s"), seconds("1h2m3.5s")], [Some(30.0), Some(60.0), Some(3723.5)]);
        assert_eq!(
            ["30s", "1m0s", "1h2m3s"].map(|text| format_duration(parse_duration(text).unwrap())),
            ["30s", "1m0s", "1h2m3s"]
        );
        assert_eq!([seconds("-1s"), seconds("soon"), seconds("")], [None, None, None]);
    }

    #[test]
    fn time_zones_are_known_by_their_exact_names() {
        for (name, known) in [
            ("Europe/Berlin", true),
            ("UTC", true),
            ("Etc/GMT+5", true),
            ("europe/berlin", false),
            ("Mars/Base", false),
        ] {
            assert_eq!(is_zone(name), known, "{name}");
        }
    }
}
