//! When a cron job runs: `*/5 9-17 * * mon-fri`, `@hourly`, `@every 90s`. The clock is the caller's.
//!
//! Five fields, as sets of the numbers they allow. The day of the month and the day of the week are joined by "or",
//! unless one of them is a star: `0 0 13 * fri` is every thirteenth and every Friday.

mod next;

pub use next::Zone;

/// The numbers a field allows, and whether it was a star, which says more than allowing all of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field {
    bits: u64,
    pub star: bool,
}

impl Field {
    pub fn allows(self, number: u32) -> bool {
        number < u64::BITS && self.bits & (1 << number) != 0
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Schedule {
    Fields {
        /// 0 to 59.
        minutes: Field,
        /// 0 to 23.
        hours: Field,
        /// 1 to 31.
        days: Field,
        /// 1 to 12.
        months: Field,
        /// 0 to 6, from Sunday.
        weekdays: Field,
    },
    /// Again and again after so many seconds, at least one.
    Every { seconds: u64 },
}

impl Schedule {
    /// Whether it runs on such a day.
    pub fn allows_day(self, day: u32, weekday: u32) -> bool {
        match self {
            Schedule::Every { .. } => true,
            Schedule::Fields { days, weekdays, .. } => {
                let (by_day, by_weekday) = (days.allows(day), weekdays.allows(weekday));
                if days.star || weekdays.star { by_day && by_weekday } else { by_day || by_weekday }
            }
        }
    }
}

/// A schedule that cannot be understood; the message says why, in the words users of Kubernetes know.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct InvalidSchedule(String);

fn invalid<T>(message: impl Into<String>) -> Result<T, InvalidSchedule> {
    Err(InvalidSchedule(message.into()))
}

struct Bounds {
    least: u32,
    most: u32,
    /// Names for numbers, from the least on.
    names: &'static [&'static str],
}

const MINUTES: Bounds = Bounds { least: 0, most: 59, names: &[] };
const HOURS: Bounds = Bounds { least: 0, most: 23, names: &[] };
const DAYS: Bounds = Bounds { least: 1, most: 31, names: &[] };
const MONTHS: Bounds = Bounds {
    least: 1,
    most: 12,
    names: &["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"],
};
const WEEKDAYS: Bounds = Bounds { least: 0, most: 6, names: &["sun", "mon", "tue", "wed", "thu", "fri", "sat"] };

/// Words for schedules that many want.
const DESCRIPTORS: [(&str, &str); 7] = [
    ("@yearly", "0 0 1 1 *"),
    ("@annually", "0 0 1 1 *"),
    ("@monthly", "0 0 1 * *"),
    ("@weekly", "0 0 * * 0"),
    ("@daily", "0 0 * * *"),
    ("@midnight", "0 0 * * *"),
    ("@hourly", "0 * * * *"),
];

impl std::str::FromStr for Schedule {
    type Err = InvalidSchedule;

    fn from_str(text: &str) -> Result<Self, InvalidSchedule> {
        if text.is_empty() {
            return invalid("empty spec string");
        }
        let text = without_zone(text)?;
        if let Some(duration) = text.strip_prefix("@every ") {
            return match parse_duration(duration) {
                Some(seconds) => Ok(Schedule::Every { seconds: seconds.max(1) }),
                None => invalid(format!("failed to parse duration {text}: time: invalid duration {duration:?}")),
            };
        }
        if text.starts_with('@') {
            return match DESCRIPTORS.iter().find(|(word, _)| *word == text) {
                Some((_, fields)) => fields.parse(),
                None => invalid(format!("unrecognized descriptor: {text}")),
            };
        }
        let fields: Vec<_> = text.split_whitespace().collect();
        let [minutes, hours, days, months, weekdays] = fields.as_slice() else {
            return invalid(format!("expected exactly 5 fields, found {}: [{}]", fields.len(), fields.join(" ")));
        };
        Ok(Schedule::Fields {
            minutes: parse_field(minutes, &MINUTES)?,
            hours: parse_field(hours, &HOURS)?,
            days: parse_field(days, &DAYS)?,
            months: parse_field(months, &MONTHS)?,
            weekdays: parse_field(weekdays, &WEEKDAYS)?,
        })
    }
}

/// Schedules of old may begin with a time zone, which is a field of its own today.
fn without_zone(text: &str) -> Result<&str, InvalidSchedule> {
    let Some(rest) = text.strip_prefix("TZ=").or_else(|| text.strip_prefix("CRON_TZ=")) else { return Ok(text) };
    match rest.split_once(' ') {
        Some((zone, _)) if !crate::time::is_zone(zone) => {
            invalid(format!("provided bad location {zone}: unknown time zone {zone}"))
        }
        Some((_, rest)) => Ok(rest.trim()),
        None => invalid("invalid schedule format: a time zone without a schedule"),
    }
}

fn parse_field(text: &str, bounds: &Bounds) -> Result<Field, InvalidSchedule> {
    let mut field = Field { bits: 0, star: false };
    for range in text.split(',').filter(|range| !range.is_empty()) {
        let part = parse_range(range, bounds)?;
        field = Field { bits: field.bits | part.bits, star: field.star || part.star };
    }
    Ok(field)
}

fn parse_range(text: &str, bounds: &Bounds) -> Result<Field, InvalidSchedule> {
    let parts: Vec<_> = text.split('/').collect();
    let ends: Vec<_> = parts[0].split('-').collect();
    let is_star = matches!(ends[0], "*" | "?");
    let (start, mut end) = match ends.as_slice() {
        _ if is_star => (bounds.least, bounds.most),
        [one] => (parse_number(one, bounds)?, parse_number(one, bounds)?),
        [first, last] => (parse_number(first, bounds)?, parse_number(last, bounds)?),
        _ => return invalid(format!("too many hyphens: {text}")),
    };
    let step = match parts.as_slice() {
        [_] => 1,
        [_, step] => {
            // `5/10` means from five on.
            if ends.len() == 1 {
                end = bounds.most;
            }
            parse_number(step, &MINUTES)?
        }
        _ => return invalid(format!("too many slashes: {text}")),
    };
    let (least, most) = (bounds.least, bounds.most);
    if start < least {
        return invalid(format!("beginning of range ({start}) below minimum ({least}): {text}"));
    }
    if end > most {
        return invalid(format!("end of range ({end}) above maximum ({most}): {text}"));
    }
    if start > end {
        return invalid(format!("beginning of range ({start}) beyond end of range ({end}): {text}"));
    }
    if step == 0 {
        return invalid(format!("step of range should be a positive number: {text}"));
    }
    let numbers = (start..=end).step_by(step as usize);
    Ok(Field { bits: numbers.fold(0, |bits, number| bits | (1 << number)), star: is_star && step == 1 })
}

fn parse_number(text: &str, bounds: &Bounds) -> Result<u32, InvalidSchedule> {
    let name = bounds.names.iter().position(|name| text.eq_ignore_ascii_case(name));
    if let Some(index) = name {
        return Ok(bounds.least + index as u32);
    }
    match text.parse::<i64>() {
        Ok(number) if number < 0 => invalid(format!("negative number ({number}) not allowed: {text}")),
        Ok(number) => Ok(u32::try_from(number).unwrap_or(u32::MAX)),
        Err(_) => invalid(format!("failed to parse int from {text}: strconv.Atoi: parsing {text:?}: invalid syntax")),
    }
}

/// `1h30m`, in whole seconds.
fn parse_duration(text: &str) -> Option<u64> {
    const UNITS: [(&str, f64); 7] =
        [("ns", 1e-9), ("us", 1e-6), ("\u{b5}s", 1e-6), ("ms", 1e-3), ("s", 1.0), ("m", 60.0), ("h", 3600.0)];
    let mut rest = text.strip_prefix('+').unwrap_or(text);
    if rest == "0" {
        return Some(0);
    }
    let mut seconds = 0.0;
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
        let number: f64 = rest[..digits].parse().ok()?;
        let unit = &rest[digits..];
        let length = unit.find(|c: char| c.is_ascii_digit() || c == '.').unwrap_or(unit.len());
        let (_, factor) = UNITS.iter().find(|(name, _)| *name == &unit[..length])?;
        seconds += number * factor;
        rest = &unit[length..];
    }
    (!text.is_empty() && seconds < u32::MAX.into()).then_some(seconds as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Schedule, String> {
        text.parse().map_err(|error: InvalidSchedule| error.to_string())
    }

    fn numbers(field: Field) -> Vec<u32> {
        (0..64).filter(|number| field.allows(*number)).collect()
    }

    #[test]
    fn fields_are_sets_of_numbers() {
        let Schedule::Fields { minutes, hours, days, months, weekdays } =
            parse("*/15 9-11,20 ? feb MON-fri/2").unwrap()
        else {
            panic!("these are fields")
        };
        assert_eq!(numbers(minutes), [0, 15, 30, 45]);
        assert_eq!(numbers(hours), [9, 10, 11, 20]);
        assert_eq!(numbers(months), [2]);
        assert_eq!(numbers(weekdays), [1, 3, 5]);
        assert!(days.star && !minutes.star && days.allows(31) && !days.allows(0));
    }

    #[test]
    fn days_are_joined_by_or_unless_one_is_a_star() {
        let cases = [
            ("0 0 13 * 5", [true, true, false]),
            ("0 0 * * 5", [false, true, false]),
            ("0 0 13 * *", [true, false, false]),
        ];
        for (text, expected) in cases {
            let schedule = parse(text).unwrap();
            let days = [schedule.allows_day(13, 1), schedule.allows_day(7, 5), schedule.allows_day(8, 2)];
            assert_eq!(days, expected, "{text}");
        }
    }

    #[test]
    fn words_stand_for_schedules() {
        assert_eq!(parse("@weekly"), parse("0 0 * * sun"));
        assert_eq!(parse("@every 1m30s"), Ok(Schedule::Every { seconds: 90 }));
        assert_eq!(parse("@every 10ms"), Ok(Schedule::Every { seconds: 1 }));
        assert_eq!(parse("TZ=UTC 5/20 * * * *"), parse("5,25,45 * * * *"));
    }

    #[test]
    fn what_cannot_be_meant_is_refused_in_words_users_know() {
        for (text, message) in [
            ("", "empty spec string"),
            ("* * * *", "expected exactly 5 fields, found 4: [* * * *]"),
            ("60 * * * *", "end of range (60) above maximum (59): 60"),
            ("* * 0 * *", "beginning of range (0) below minimum (1): 0"),
            ("* * * * 5-1", "beginning of range (5) beyond end of range (1): 5-1"),
            ("*/0 * * * *", "step of range should be a positive number: */0"),
            ("1-2-3 * * * *", "too many hyphens: 1-2-3"),
            ("1/2/3 * * * *", "too many slashes: 1/2/3"),
            ("x * * * *", "failed to parse int from x: strconv.Atoi: parsing \"x\": invalid syntax"),
            ("@often", "unrecognized descriptor: @often"),
            ("@every day", "failed to parse duration @every day: time: invalid duration \"day\""),
            ("TZ=Mars/Base * * * * *", "provided bad location Mars/Base: unknown time zone Mars/Base"),
        ] {
            assert_eq!(parse(text), Err(message.to_owned()), "{text}");
        }
    }
}
