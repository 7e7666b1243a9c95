//! A year of a schedule, and budgets under evictions and faults, in virtual time.

use kinds::{CronJob, Job, Pod, Time};
use object::json;
use std::collections::BTreeMap;
use std::time::Duration;
use testkit::simulation::{World, evict_under_faults, with_loops};

const MINUTE: Duration = Duration::from_secs(60);
const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// Lets the pods of jobs end, as a node would.
async fn end_pods(world: &World) {
    for pod in &world.select::<Pod>("status.phase=Pending").await {
        world.patch(pod, "status", &json!({ "status": { "phase": "Succeeded" } })).await;
    }
}

/// When a job at half past two in Berlin is due in 2026, in seconds since 1970.
fn expected_times() -> Vec<i64> {
    const HALF_HOUR: i64 = 30 * 60;
    let day = |text: &str| Time::parse(text).expect("it is a time").seconds();
    let (spring, autumn) = (day("2026-03-29T00:00:00Z"), day("2026-10-25T00:00:00Z"));
    let mut times = Vec::new();
    let mut midnight = day("2026-01-01T00:00:00Z");
    while midnight < day("2027-01-01T00:00:00Z") {
        let (in_summer, in_winter) = (midnight + HALF_HOUR, midnight + 3 * HALF_HOUR);
        match midnight {
            // From two to three o'clock there is nothing; and this hour is there twice.
            _ if midnight == spring => {}
            _ if midnight == autumn => times.extend([in_summer, in_winter]),
            _ if midnight > spring && midnight < autumn => times.push(in_summer),
            _ => times.push(in_winter),
        }
        midnight += i64::try_from(DAY.as_secs()).unwrap_or(0);
    }
    times
}

#[test]
fn a_year_of_a_cron_job_has_a_job_for_each_time_of_its_zone_and_keeps_only_the_last() {
    with_loops(&["cronjob-controller", "job-controller", "service-account-controller"], async |world: &World| {
        let pods = json!({ "spec": { "restartPolicy": "Never", "containers": [{ "name": "c", "image": "i" }] } });
        let spec = json!({
            "schedule": "30 2 * * *", "timeZone": "Europe/Berlin", "successfulJobsHistoryLimit": 3,
            "jobTemplate": { "spec": { "template": pods } },
        });
        let metadata = json!({ "name": "nightly", "namespace": "default" });
        world.create::<CronJob>(json!({ "metadata": metadata, "spec": spec })).await;
        // When each job was due, and when it was made.
        let mut seen: BTreeMap<i64, i64> = BTreeMap::new();
        world.leap(Duration::from_secs(1)).await;
        // What is due is due at one of two times of a day: half past two is one in summer and another in winter.
        let leaps = [30 * MINUTE, 60 * MINUTE, DAY - 90 * MINUTE];
        for leap in leaps.into_iter().cycle().take(365 * leaps.len()) {
            world.leap(leap).await;
            end_pods(world).await;
            let jobs = world.all::<Job>().await;
            assert!(jobs.len() <= 4, "{} jobs are kept", jobs.len());
            for job in jobs {
                let due = job.metadata.annotation("batch.kubernetes.io/cronjob-scheduled-timestamp");
                let due = Time::parse(due).expect("each job says when it was due").seconds();
                let made = job.metadata.creation_timestamp.expect("the server says when").seconds();
                seen.insert(due, made);
            }
        }
        assert_eq!(seen.keys().copied().collect::<Vec<_>>(), expected_times());
        let late = seen.iter().map(|(due, made)| made - due).max().unwrap_or(0);
        assert!(late <= 1, "a job was {late} seconds late");
    });
}

#[test]
fn evictions_never_take_a_budget_below_what_it_promises() {
    for seed in 0..6 {
        let allowed = evict_under_faults(seed).unwrap_or_else(|problem| panic!("seed {seed}: {problem}"));
        assert!(allowed > 3, "seed {seed}: only {allowed} pods were evicted");
    }
}
