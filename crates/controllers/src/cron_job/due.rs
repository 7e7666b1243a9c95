//! Which time of a schedule is due: the latest one that has come since the last job, or since there is the schedule.

use kinds::{CronJob, Time};
use object::cron::{Schedule, Zone};
use std::time::Duration;

/// More missed times than that are worth a warning: a clock may be wrong.
const MANY: i64 = 100;

/// A schedule and the time zone it is meant in.
pub(super) struct Timetable {
    schedule: Schedule,
    zone: Zone,
}

/// What has come to be due.
pub(super) struct Due {
    /// The latest time that has come, if any.
    pub(super) time: Option<Time>,
    pub(super) many_missed: bool,
    /// Where the search began, unless there was something to be found.
    next_from: Time,
}

impl Timetable {
    /// Of a cron job; or the reason and the message of what is wrong with it.
    pub(super) fn of(cron: &CronJob) -> Result<Self, (&'static str, String)> {
        let text = cron.spec.schedule.as_str();
        let name = cron.spec.time_zone.as_deref();
        let zone = match name.or_else(|| Schedule::zone_of(text)) {
            None => Zone::utc(),
            Some(name) => Zone::named(name).ok_or_else(|| {
                ("UnknownTimeZone", format!("invalid timeZone: \"{name}\": unknown time zone {name}"))
            })?,
        };
        let schedule = text
            .parse()
            .map_err(|error| ("UnparseableSchedule", format!("unparseable schedule: \"{text}\" : {error}")))?;
        Ok(Timetable { schedule, zone })
    }

    fn next(&self, after: Time) -> Option<Time> {
        self.schedule.next(after.seconds(), &self.zone).map(Time::from_seconds)
    }

    /// A time as it is written there.
    pub(super) fn format(&self, time: Time) -> String {
        self.zone.format(time.seconds()).unwrap_or_default()
    }

    /// What is due by now. Times that are too late to be served are left out if `in_time`.
    pub(super) fn due(&self, cron: &CronJob, now: Time, in_time: bool) -> Result<Due, String> {
        let mut earliest = cron.status.last_schedule_time.or(cron.metadata.creation_timestamp).unwrap_or(now);
        if let Some(seconds) = cron.spec.starting_deadline_seconds.filter(|_| in_time) {
            earliest = earliest.max(now - Duration::from_secs(u64::try_from(seconds).unwrap_or(0)));
        }
        let never = || "time difference between two schedules is less than 1 second".to_owned();
        let first = self.next(earliest).ok_or_else(never)?;
        if now < first {
            return Ok(Due { time: None, many_missed: false, next_from: earliest });
        }
        let second = self.next(first).ok_or_else(never)?;
        if now < second {
            return Ok(Due { time: Some(first), many_missed: false, next_from: first });
        }
        // How many there were is estimated from the first two; the last of them is searched from shortly before.
        let gap = second.seconds() - first.seconds();
        let missed = (now.seconds() - first.seconds()) / gap + 1;
        let estimate = first.seconds() + (missed - 2) * gap;
        let mut latest = self.come(estimate, now).unwrap_or_else(|| self.last_before(second, now));
        while let Some(time) = self.come(latest.seconds(), now) {
            latest = time;
        }
        Ok(Due { time: Some(latest), many_missed: missed > MANY, next_from: latest })
    }

    /// The next time after that second, if it has come.
    fn come(&self, after: i64, now: Time) -> Option<Time> {
        self.next(Time::from_seconds(after)).filter(|time| *time <= now)
    }

    /// The last time that has come, where times have become rarer since `known`, which is one: halves what lies between.
    fn last_before(&self, known: Time, now: Time) -> Time {
        let (mut latest, mut end) = (known, now.seconds());
        while latest.seconds() < end {
            let middle = i64::midpoint(latest.seconds(), end);
            match self.come(middle, now) {
                Some(time) => latest = time,
                None => end = middle,
            }
        }
        latest
    }

    /// How long until the next time.
    pub(super) fn until_next(&self, cron: &CronJob, now: Time) -> Duration {
        let from = self.due(cron, now, false).map_or(now, |due| due.next_from);
        self.next(from).unwrap_or(now).since(now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kinds::Object;
    use object::{Value, json};

    fn cron(schedule: &str, status: &Value) -> Object<CronJob> {
        Object::of(&json!({
            "metadata": { "name": "tick", "creationTimestamp": "2026-01-01T00:00:30Z" },
            "spec": { "schedule": schedule, "startingDeadlineSeconds": Value::Null },
            "status": status,
        }))
    }

    fn due(cron: &CronJob, now: &str) -> (String, bool, u64) {
        let (table, now) = (Timetable::of(cron).unwrap(), Time::parse(now).unwrap());
        let due = table.due(cron, now, true).unwrap();
        let time = due.time.map(|time| time.to_string()).unwrap_or_default();
        (time, due.many_missed, table.until_next(cron, now).as_secs())
    }

    #[test]
    fn the_latest_time_that_has_come_is_due() {
        let never = json!({});
        let last = |time: &str| json!({ "lastScheduleTime": time });
        for (what, schedule, status, now, expected) in [
            ("not yet", "0 * * * *", &never, "2026-01-01T00:30:00Z", ("", false, 1800)),
            ("just now", "0 * * * *", &never, "2026-01-01T01:00:00Z", ("2026-01-01T01:00:00Z", false, 3600)),
            ("served", "0 * * * *", &last("2026-01-01T01:00:00Z"), "2026-01-01T01:00:05Z", ("", false, 3595)),
            ("several", "0 * * * *", &never, "2026-01-01T05:30:00Z", ("2026-01-01T05:00:00Z", false, 1800)),
            ("very many", "* * * * *", &never, "2026-01-03T00:00:10Z", ("2026-01-03T00:00:00Z", true, 50)),
            ("uneven", "30 6-16/4 * * 1-5", &never, "2026-01-05T11:00:00Z", ("2026-01-05T10:30:00Z", false, 12600)),
            ("rarer since", "1-2 0 1 * *", &never, "2026-01-01T00:03:23Z", ("2026-01-01T00:02:00Z", false, 2_678_257)),
            ("long rarer", "* 0 1 * *", &never, "2026-01-20T10:00:00Z", ("2026-01-01T00:59:00Z", true, 1_000_800)),
            ("again and again", "@every 1h", &never, "2026-01-01T03:30:00Z", ("2026-01-01T03:00:30Z", false, 1830)),
        ] {
            let (time, many, wait) = due(&cron(schedule, status), now);
            assert_eq!((time.as_str(), many, wait), expected, "{what}");
        }
    }

    #[test]
    fn what_is_wrong_with_a_schedule_is_said() {
        let broken = |edit: Value| {
            let mut value = json!({ "spec": { "schedule": "0 * * * *" } });
            edit.as_object().unwrap().iter().for_each(|(key, edit)| value["spec"][key] = edit.clone());
            Timetable::of(&Object::<CronJob>::of(&value)).err().unwrap()
        };
        let (reason, message) = broken(json!({ "timeZone": "Mars/Base" }));
        assert_eq!(
            (reason, message.as_str()),
            ("UnknownTimeZone", "invalid timeZone: \"Mars/Base\": unknown time zone Mars/Base",)
        );
        let (reason, message) = broken(json!({ "schedule": "often" }));
        assert_eq!(reason, "UnparseableSchedule");
        assert!(message.starts_with("unparseable schedule: \"often\" : expected exactly 5 fields"), "{message}");
        let never = cron("59 23 31 2 *", &json!({}));
        let now = Time::parse("2026-01-01T00:30:00Z").unwrap();
        assert!(Timetable::of(&never).unwrap().due(&never, now, true).is_err());
    }
}
