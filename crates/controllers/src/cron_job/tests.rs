//! Schedules over days: the loop against jobs that end as told.

use super::*;
use crate::fixture::World;

fn planned(caches: &Caches, request: &Request) -> Plan {
    observe(caches, request).map(|observed| plan(&observed, request)).unwrap_or_default()
}

fn world(edit: impl FnOnce(&mut Value)) -> World {
    let mut world = World::new();
    let mut cron = json!({
        "metadata": { "name": "tick", "uid": "c" },
        "spec": {
            "schedule": "0 * * * *",
            "concurrencyPolicy": "Allow",
            "suspend": false,
            "successfulJobsHistoryLimit": 2,
            "failedJobsHistoryLimit": 1,
            "jobTemplate": { "metadata": { "labels": { "a": "b" } }, "spec": { "template": {} } },
        },
    });
    edit(cron.object_or_new("spec"));
    world.create::<CronJob>(cron);
    world
}

/// Waits for as long as the loop says, again and again, for so many hours.
fn pass(world: &mut World, hours: i64, check: &mut dyn FnMut(&mut World)) {
    let end = Time::from_seconds(world.now.seconds() + hours * 3600 + 1);
    while let Some(delay) = world.settle("tick", &planned) {
        check(world);
        if world.now + delay > end {
            break;
        }
        world.now = world.now + delay;
    }
    world.settle("tick", &planned);
}

fn end(world: &mut World, name: &str, kind: &str) {
    let now = world.now;
    world.edit::<Job>(name, |job| {
        let condition = json!({ "type": kind, "status": "True", "lastTransitionTime": now });
        job["status"] = json!({ "startTime": now, "completionTime": now, "conditions": [condition] });
    });
}

fn end_all(world: &mut World, kind: &str) {
    for job in world.all::<Job>().iter().filter(|job| !job.has("status")) {
        end(world, job.at("metadata").text("name"), kind);
    }
}

fn status(world: &World) -> Value {
    world.get::<CronJob>("tick").at("status").clone()
}

#[test]
fn a_job_is_started_at_each_time_and_only_once() {
    let mut world = world(|_| {});
    pass(&mut world, 1, &mut |_| {});
    let name = "tick-29453820";
    assert_eq!(world.names::<Job>(), [name]);
    let job = world.get::<Job>(name).clone();
    assert_eq!(job["metadata"]["annotations"][SCHEDULED], "2026-01-01T01:00:00Z");
    assert_eq!(
        (&job["metadata"]["labels"], &job["metadata"]["ownerReferences"][0]["uid"]),
        (&json!({ "a": "b" }), &json!("c"))
    );
    let status = status(&world);
    assert_eq!(status["lastScheduleTime"], "2026-01-01T01:00:00Z");
    assert_eq!((&status["active"][0]["name"], &status["active"][0]["uid"]), (&json!(name), &job["metadata"]["uid"]));
    assert_eq!(world.events, [format!("Normal SuccessfulCreate Created job {name}")]);
    end(&mut world, name, "Complete");
    world.settle("tick", &planned);
    assert_eq!(self::status(&world)["lastSuccessfulTime"], world.get::<Job>(name)["status"]["completionTime"]);
    assert!(!self::status(&world).has("active"));
    assert_eq!(world.events[1], format!("Normal SawCompletedJob Saw completed job: {name}, condition: Complete"));
    pass(&mut world, 5, &mut |_| {});
    assert_eq!(world.names::<Job>().len(), 6);
}

#[test]
fn times_are_those_of_the_zone() {
    let mut world = world(|spec| {
        spec["schedule"] = json!("30 9 * * *");
        spec["timeZone"] = json!("Asia/Kolkata");
    });
    pass(&mut world, 24, &mut |_| {});
    let job = world.all::<Job>()[0].clone();
    assert_eq!(job["metadata"]["annotations"][SCHEDULED], "2026-01-01T09:30:00+05:30");
    assert_eq!(status(&world)["lastScheduleTime"], "2026-01-01T04:00:00Z");
}

#[test]
fn a_year_has_a_job_for_each_time_and_the_loop_is_woken_for_nothing_else() {
    let mut world = world(|spec| {
        spec["schedule"] = json!("30 2 * * *");
        spec["timeZone"] = json!("Europe/Berlin");
    });
    let (mut due, mut wakings) = (Vec::new(), 0);
    pass(&mut world, 365 * 24, &mut |world| {
        wakings += 1;
        let jobs = world.all::<Job>();
        assert!(jobs.len() <= 3, "two that have ended are kept, beside the one that runs");
        for job in jobs.iter().filter(|job| !job.has("status")) {
            let at = job.at("metadata").at("annotations").text(SCHEDULED).to_owned();
            assert_eq!(world.now.seconds(), Time::parse(&at).unwrap().seconds(), "{at}");
            due.push(at);
        }
        end_all(world, "Complete");
        // That it has ended is seen at once, and changes nothing about the next time.
        world.settle("tick", &planned);
    });
    // Once every day, but not on the day without half past two, and twice on the day that has it twice.
    assert_eq!((due.len(), wakings), (365, 366));
    assert!(!due.iter().any(|at| at.starts_with("2026-03-29")), "{due:?}");
    let twice: Vec<&String> = due.iter().filter(|at| at.starts_with("2026-10-25")).collect();
    assert_eq!(twice, ["2026-10-25T02:30:00+02:00", "2026-10-25T02:30:00+01:00"]);
}

#[test]
fn only_some_of_the_jobs_that_have_ended_are_kept() {
    let mut world = world(|_| {});
    pass(&mut world, 5, &mut |world| end_all(world, "Complete"));
    assert_eq!(world.names::<Job>().len(), 2);
    pass(&mut world, 3, &mut |world| end_all(world, "Failed"));
    assert_eq!(world.names::<Job>().len(), 3);
    assert!(world.events.iter().any(|event| event == "Normal SuccessfulDelete Deleted job tick-29453820"));
}

#[test]
fn jobs_run_beside_each_other_or_not_as_the_policy_says() {
    for (policy, jobs, event) in [
        ("Allow", 3, None),
        (
            "Forbid",
            1,
            Some(
                "Normal JobAlreadyActive Not starting job because prior execution is running and concurrency policy is Forbid",
            ),
        ),
        ("Replace", 1, Some("Normal SuccessfulDelete Deleted job tick-29453820")),
    ] {
        let mut world = world(|spec| spec["concurrencyPolicy"] = json!(policy));
        pass(&mut world, 3, &mut |_| {});
        assert_eq!(world.names::<Job>().len(), jobs, "{policy}");
        assert_eq!(status(&world)["active"].as_array().unwrap().len(), jobs, "{policy}");
        assert!(!world.events.iter().any(|event| event.contains("MissingJob")), "{policy}");
        if let Some(event) = event {
            assert!(world.events.iter().any(|told| told == event), "{policy}: {:?}", world.events);
        }
    }
}

#[test]
fn a_time_that_was_not_to_be_is_made_up_for_when_the_job_before_has_ended() {
    let mut world = world(|spec| spec["concurrencyPolicy"] = json!("Forbid"));
    pass(&mut world, 2, &mut |_| {});
    end_all(&mut world, "Complete");
    world.settle("tick", &planned);
    assert_eq!(status(&world)["lastScheduleTime"], "2026-01-01T02:00:00Z");
    assert_eq!(world.names::<Job>().len(), 2);
}

#[test]
fn what_is_too_late_is_left_out() {
    let mut world = world(|spec| spec["startingDeadlineSeconds"] = json!(60));
    world.now = world.now + Duration::from_secs(3 * 3600 + 300);
    let delay = world.settle("tick", &planned);
    assert_eq!((world.names::<Job>().len(), delay.unwrap().as_secs()), (0, 3300));
    world.now = world.now + Duration::from_secs(3300 + 30);
    world.settle("tick", &planned);
    assert_eq!(status(&world)["lastScheduleTime"], "2026-01-01T04:00:00Z");
}

#[test]
fn many_missed_times_lead_to_one_job_and_a_warning() {
    let mut world = world(|spec| spec["schedule"] = json!("* * * * *"));
    world.now = world.now + Duration::from_secs(24 * 3600);
    world.settle("tick", &planned);
    assert_eq!(world.names::<Job>().len(), 1);
    assert!(
        world.events[0].starts_with("Warning TooManyMissedTimes too many missed start times."),
        "{:?}",
        world.events
    );
}

#[test]
fn nothing_is_started_while_it_is_suspended_broken_or_being_deleted() {
    for (edit, event) in [
        (json!({ "suspend": true }), None),
        (json!({ "schedule": "often" }), Some("Warning UnparseableSchedule ")),
        (json!({ "timeZone": "Mars/Base" }), Some("Warning UnknownTimeZone ")),
        (json!({ "schedule": "0 0 31 2 *" }), Some("Warning InvalidSchedule ")),
    ] {
        let mut world = world(|spec| {
            edit.as_object().unwrap().iter().for_each(|(key, value)| spec[key] = value.clone());
        });
        world.now = world.now + Duration::from_secs(7200);
        assert_eq!(world.settle("tick", &planned), None, "{edit}");
        assert!(world.names::<Job>().is_empty(), "{edit}");
        assert_eq!(world.events.iter().any(|told| event.is_some_and(|event| told.starts_with(event))), event.is_some());
    }
    let mut world = self::world(|_| {});
    world.edit::<CronJob>("tick", |cron| {
        cron["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
        cron["metadata"]["finalizers"] = json!(["foregroundDeletion"]);
    });
    world.now = world.now + Duration::from_secs(7200);
    world.settle("tick", &planned);
    assert!(world.names::<Job>().is_empty());
}

#[test]
fn jobs_that_others_made_or_took_away_are_noticed() {
    let mut world = world(|_| {});
    pass(&mut world, 1, &mut |_| {});
    let reference = world.all::<Job>()[0]["metadata"]["ownerReferences"].clone();
    world.create::<Job>(json!({ "metadata": { "name": "manual", "ownerReferences": reference }, "spec": {} }));
    let name = world.names::<Job>().into_iter().find(|name| *name != "manual").unwrap().to_owned();
    world.remove::<Job>(&name);
    world.settle("tick", &planned);
    assert!(
        world.events.contains(
            &"Warning UnexpectedJob Saw a job that the controller did not create or forgot: manual".to_owned()
        )
    );
    assert!(world.events.contains(&format!("Normal MissingJob Active job went missing: {name}")));
    assert!(!status(&world).has("active"));
}

#[test]
fn a_crash_after_any_write_neither_skips_nor_repeats_a_time() {
    for crash in 0..12 {
        let mut world = world(|spec| spec["successfulJobsHistoryLimit"] = json!(10));
        world.crash_after = Some(crash);
        pass(&mut world, 4, &mut |world| end_all(world, "Complete"));
        let jobs = ["tick-29453820", "tick-29453880", "tick-29453940", "tick-29454000"];
        assert_eq!(world.names::<Job>(), jobs, "{crash}");
        assert_eq!(status(&world)["lastScheduleTime"], "2026-01-01T04:00:00Z", "{crash}");
    }
}
