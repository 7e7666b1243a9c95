//! CronJob: starts a job at each time of its schedule, and deletes those that ended long ago.
//!
//! The name of a job follows from the time it was due, so no time is served twice. That a job was started is seen from
//! the job: what the status says of it is written when it is there. Running jobs is left to [`crate::job`]; which time
//! is due is [`due`]'s business.

mod due;
#[cfg(test)]
mod tests;

use due::{Due, Timetable};
use kinds::{CronJob, Job, Kind, Object, Time};
use object::{Edit, Value, View, json};
use runtime::{Caches, Controller, DeleteOptions, Note, Plan, Propagation, Request};
use std::sync::Arc;
use std::time::Duration;

const SCHEDULED: &str = "batch.kubernetes.io/cronjob-scheduled-timestamp";
/// Looks a little later than a job is due, so that the clock is certainly past that.
const PADDING: Duration = Duration::from_millis(100);

pub(crate) fn controller() -> Controller {
    Controller::new("cronjob-controller")
        .primary::<CronJob>()
        .owns::<Job, CronJob>()
        .plans(|caches, request| observe(caches, request).map(|observed| plan(&observed, request)).unwrap_or_default())
}

struct Observed {
    cron: Arc<Object<CronJob>>,
    jobs: Vec<Arc<Object<Job>>>,
    /// Whatever has the name of the job that is due.
    namesake: Option<Arc<Object<Job>>>,
}

fn observe(caches: &Caches, request: &Request) -> Option<Observed> {
    let jobs = caches.of::<Job>();
    let cron = caches.of::<CronJob>().get(&request.key)?;
    let due = Timetable::of(&cron).ok().and_then(|table| table.due(&cron, request.now, true).ok()?.time);
    let namesake = due.and_then(|due| jobs.named(&cron.metadata.namespace, &name(&cron, due)));
    Some(Observed { jobs: jobs.owned_by(&cron.metadata.uid), namesake, cron })
}

/// The name of the job for a time.
fn name(cron: &CronJob, due: Time) -> String {
    format!("{}-{}", cron.metadata.name, due.seconds().div_euclid(60))
}

fn plan(observed: &Observed, request: &Request) -> Plan {
    let cron = &observed.cron;
    let mut plan = Plan::default();
    let mut record = Record::of(cron);
    record.follow(&mut plan, &observed.jobs);
    let mut steps = Plan::default();
    if !cron.metadata.is_being_deleted() {
        forget_old(&mut steps, cron, &observed.jobs);
        start(&mut steps, &mut record, observed, request);
    }
    plan.status(cron, record.json());
    plan.writes.extend(steps.writes);
    plan.events.extend(steps.events);
    plan.requeue_after = steps.requeue_after;
    plan
}

/// What the status says of the jobs.
struct Record<'a> {
    cron: &'a Object<CronJob>,
    /// References to those that run, as they are in the status.
    active: Vec<Value>,
    last_scheduled: Option<Time>,
    last_successful: Option<Time>,
}

impl<'a> Record<'a> {
    fn of(cron: &'a Object<CronJob>) -> Self {
        Record {
            cron,
            active: cron.json().at("status").items("active").to_vec(),
            last_scheduled: cron.status.last_schedule_time,
            last_successful: cron.status.last_successful_time,
        }
    }

    fn has(&self, uid: &str) -> bool {
        self.active.iter().any(|reference| reference.text("uid") == uid)
    }

    /// Brings the record up to date with the jobs that there are.
    fn follow(&mut self, plan: &mut Plan, jobs: &[Arc<Object<Job>>]) {
        for job in jobs {
            let (meta, listed) = (&job.metadata, self.has(&job.metadata.uid));
            let scheduled = Time::parse(meta.annotation(SCHEDULED)).filter(|at| name(self.cron, *at) == meta.name);
            self.last_scheduled = self.last_scheduled.max(scheduled);
            match job.finished() {
                Some(condition) => {
                    if listed {
                        self.drop(&meta.uid);
                        let message = format!("Saw completed job: {}, condition: {}", meta.name, condition.kind);
                        plan.event(Note::normal(self.cron, "SawCompletedJob", message));
                    }
                    let succeeded = condition.kind == "Complete";
                    let completed = job.status.completion_time.filter(|_| succeeded);
                    self.last_successful = self.last_successful.max(completed);
                }
                None if listed || meta.is_being_deleted() => {}
                None if scheduled.is_some() => self.active.push(reference(job)),
                None => {
                    let message = format!("Saw a job that the controller did not create or forgot: {}", meta.name);
                    plan.event(Note::warning(self.cron, "UnexpectedJob", message));
                }
            }
        }
        let is_there = |reference: &Value| jobs.iter().any(|job| job.metadata.uid == reference.text("uid"));
        for gone in self.active.iter().filter(|reference| !is_there(reference)) {
            let message = format!("Active job went missing: {}", gone.text("name"));
            plan.event(Note::normal(self.cron, "MissingJob", message));
        }
        self.active.retain(is_there);
    }

    fn drop(&mut self, uid: &str) {
        self.active.retain(|reference| reference.text("uid") != uid);
    }

    fn json(&self) -> Value {
        json!({
            "active": Some(&self.active).filter(|active| !active.is_empty()),
            "lastScheduleTime": self.last_scheduled,
            "lastSuccessfulTime": self.last_successful,
        })
    }
}

fn reference(job: &Job) -> Value {
    let meta = &job.metadata;
    json!({
        "apiVersion": Job::ID.api_version,
        "kind": Job::ID.kind,
        "namespace": meta.namespace,
        "name": meta.name,
        "uid": meta.uid,
        "resourceVersion": meta.resource_version,
    })
}

/// Deletes the oldest of the jobs that have ended, so that only so many of each kind stay.
fn forget_old(plan: &mut Plan, cron: &Object<CronJob>, jobs: &[Arc<Object<Job>>]) {
    for (kind, limit) in
        [("Complete", cron.spec.successful_jobs_history_limit), ("Failed", cron.spec.failed_jobs_history_limit)]
    {
        let Some(limit) = limit.and_then(|limit| usize::try_from(limit).ok()) else { continue };
        let has_ended = |job: &&Arc<Object<Job>>| {
            !job.metadata.is_being_deleted() && job.finished().is_some_and(|condition| condition.kind == kind)
        };
        let mut ended: Vec<_> = jobs.iter().filter(has_ended).collect();
        ended.sort_by_key(|job| (job.status.start_time.is_none(), job.status.start_time, job.metadata.name.clone()));
        let excess = ended.len().saturating_sub(limit);
        ended.into_iter().take(excess).for_each(|job| delete(plan, cron, job));
    }
}

fn delete(plan: &mut Plan, cron: &Object<CronJob>, job: &Object<Job>) {
    let options = DeleteOptions { propagation: Propagation::Background, ..DeleteOptions::default() };
    plan.delete_with(job, options)
        .on_success(Note::normal(cron, "SuccessfulDelete", "Deleted job {name}"))
        .on_failure(Note::warning(cron, "FailedDelete", "Deleted job: {error}"));
}

/// Starts the job that is due, if it may be started, and looks again when the next one is.
fn start(plan: &mut Plan, record: &mut Record, observed: &Observed, request: &Request) {
    let (cron, now) = (&observed.cron, request.now);
    let warn = |plan: &mut Plan, reason: &str, message: String| {
        plan.event(Note::warning(cron, reason, message));
    };
    if cron.spec.suspend {
        return;
    }
    let table = match Timetable::of(cron) {
        Ok(table) => table,
        Err((reason, message)) => return warn(plan, reason, message),
    };
    let due = match table.due(cron, now, true) {
        Ok(due) => due,
        Err(message) => {
            let message = format!("invalid schedule: {} : {message}", cron.spec.schedule);
            return warn(plan, "InvalidSchedule", message);
        }
    };
    plan.requeue_after(table.until_next(cron, now) + PADDING);
    let Due { time: Some(time), many_missed, .. } = due else { return };
    if many_missed {
        let advice = "Set or decrease .spec.startingDeadlineSeconds or check clock skew";
        warn(plan, "TooManyMissedTimes", format!("too many missed start times. {advice}"));
    }
    let deadline = cron.spec.starting_deadline_seconds.unwrap_or(i64::MAX);
    if now.seconds() - time.seconds() > deadline {
        let time = object::time::format_http(time.seconds()).unwrap_or_default().replace("GMT", "+0000");
        return warn(plan, "MissSchedule", format!("Missed scheduled time to start a job: {time}"));
    }
    // A job of this name, whoever made it, means that this time has been served.
    if record.last_scheduled == Some(time) || observed.namesake.is_some() {
        return;
    }
    match cron.spec.concurrency_policy.as_str() {
        "Forbid" if !record.active.is_empty() => {
            let message = "Not starting job because prior execution is running and concurrency policy is Forbid";
            plan.event(Note::normal(cron, "JobAlreadyActive", message));
            return;
        }
        "Replace" => {
            for job in observed.jobs.iter().filter(|job| record.has(&job.metadata.uid)) {
                delete(plan, cron, job);
            }
            record.active.clear();
        }
        _ => {}
    }
    plan.create::<Job>(job(cron, time, &table))
        .on_success(Note::normal(cron, "SuccessfulCreate", "Created job {name}"))
        .on_failure(Note::warning(cron, "FailedCreate", "Error creating job: {error}"));
}

fn job(cron: &Object<CronJob>, time: Time, table: &Timetable) -> Value {
    let template = &cron.spec.job_template;
    let mut metadata = json!({
        "name": name(cron, time),
        "namespace": cron.metadata.namespace,
        "ownerReferences": [cron.metadata.controller_reference(&CronJob::ID)],
    });
    for field in ["labels", "annotations"] {
        let value = template.at("metadata").at(field);
        if !value.is_null() {
            metadata.set(field, value.clone());
        }
    }
    metadata.object_or_new("annotations").set(SCHEDULED, table.format(time));
    json!({ "metadata": metadata, "spec": template.at("spec") })
}
