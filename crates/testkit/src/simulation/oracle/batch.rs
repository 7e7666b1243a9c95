//! What comes to an end.

use super::scaling::is_full;
use super::{Gaps, Observed, count};
use crate::simulation::users::LAST_DUE;
use kinds::{CronJob, JOB_TRACKING, Job, Object, Pod, Time};
use std::collections::BTreeSet;

/// A job ends, and leaves nothing running; one that nothing may run for waits.
pub(super) fn job(all: &Observed, job: &Object<Job>, gaps: &mut Gaps) {
    let (meta, status) = (&job.metadata, &job.status);
    gaps.same("the number of its running pods", 0, count(all.active(&meta.uid)));
    gaps.same("what it reports to be running", 0, status.active);
    let may_run = !job.spec.suspend && job.spec.parallelism != Some(0);
    gaps.expect("has not ended", !may_run || job.finished().is_some());
    if let Some(end) = job.finished() {
        let is_held = |pod: &Object<Pod>| pod.metadata.has_finalizer(JOB_TRACKING);
        gaps.expect("has ended and still holds pods", !all.owned::<Pod>(&meta.uid).any(is_held));
        let wanted = job.spec.completions.filter(|_| end.kind == "Complete").unwrap_or(0);
        gaps.expect(&format!("is complete with {} of its pods", status.succeeded), status.succeeded >= wanted);
    }
}

/// It has not missed its last time, unless nobody may make another job; knows which of its jobs run, and keeps as many of
/// the others as it should.
pub(super) fn cron_job(all: &Observed, cron: &Object<CronJob>, gaps: &mut Gaps) {
    let due = Time::parse(LAST_DUE).filter(|_| !cron.spec.suspend);
    let is_missed = due > cron.metadata.creation_timestamp && due > cron.status.last_schedule_time;
    gaps.expect("has missed its last time", !is_missed || is_full(all, &cron.metadata.namespace, "count/jobs.batch"));
    let jobs = || all.owned::<Job>(&cron.metadata.uid);
    let running = jobs().filter(|job| job.finished().is_none()).map(|job| job.metadata.uid.as_str());
    let listed: BTreeSet<&str> = cron.status.active.iter().map(|job| job.uid.as_str()).collect();
    gaps.same("its running jobs", running.collect(), listed);
    let limits = [
        ("Complete", cron.spec.successful_jobs_history_limit.unwrap_or(3)),
        ("Failed", cron.spec.failed_jobs_history_limit.unwrap_or(1)),
    ];
    for (kind, limit) in limits {
        let kept = count(jobs().filter(|job| job.finished().is_some_and(|end| end.kind == kind)));
        gaps.expect(&format!("keeps {kept} jobs of which {limit} are wanted: {kind}"), kept <= limit);
    }
}
