//! Job: runs pods until enough of them have succeeded, or too many have failed.
//!
//! What its pods have come to is [`tally`]'s business, whether that is the end [`verdict`]'s, and how many run in the
//! meantime [`pods`]'. It first writes what it knows, then lets go of the pods that are counted, and only then creates
//! or deletes any, so that what cannot be created does not keep anything from being counted. Deleting jobs that have
//! ended is left to others.

mod backoff;
mod indexes;
mod pods;
mod policy;
mod tally;
#[cfg(test)]
mod tests;
mod verdict;

use crate::workload::{candidates, claim, delete_pod, owners_of};
use backoff::Failures;
use kinds::{JOB_TRACKING, Job, Key, Object, Pod, Time};
use object::{Edit, Value, View, json};
use parking_lot::Mutex;
use runtime::{Caches, Controller, Note, Plan, Request, Write};
use std::sync::Arc;
use tally::{Tally, has_failed};
use verdict::Verdict;

/// Jobs that name anybody else as their controller are left to them.
const NAME: &str = "kubernetes.io/job-controller";
/// The label by which pods say which job has made them.
const JOB_NAME: &str = "batch.kubernetes.io/job-name";

pub(crate) fn controller() -> Controller {
    let failures = Mutex::new(Failures::default());
    Controller::new("job-controller")
        .primary::<Job>()
        .watches::<Pod>(|pod, caches| {
            let mut owners = owners_of(pod, &caches.of::<Job>(), |job, labels| job.spec.selector.matches(labels));
            owners.extend(left_by(pod));
            owners
        })
        .plans(move |caches, request| plan(&observe(caches, request), request, &mut failures.lock()))
}

struct Observed {
    /// None if it is gone.
    job: Option<Arc<Object<Job>>>,
    /// Pods that are its own, or might be.
    candidates: Vec<Arc<Object<Pod>>>,
    /// Pods that wait to be counted by a job of this name, be it this one or one that was there before, or one that
    /// has let them go.
    waiting: Vec<Arc<Object<Pod>>>,
}

fn observe(caches: &Caches, request: &Request) -> Observed {
    let Key { namespace, name } = &request.key;
    let (job, pods) = (caches.of::<Job>().get(&request.key), caches.of::<Pod>());
    let uid = job.as_ref().map(|job| job.metadata.uid.as_str());
    let mut waiting = pods.by("job", &format!("{namespace}/{name}"));
    let orphans = pods.by("orphan", namespace);
    waiting.extend(orphans.into_iter().filter(|pod| left_by(pod).is_some_and(|key| key.name == *name)));
    Observed { candidates: uid.map(|uid| candidates(&pods, namespace, uid)).unwrap_or_default(), waiting, job }
}

/// The job that has made a pod, if the pod waits to be counted and is nobody's any more.
fn left_by(pod: &Object<Pod>) -> Option<Key> {
    let meta = &pod.metadata;
    let name = Some(meta.label(JOB_NAME)).filter(|name| !name.is_empty());
    let is_left = meta.controller().is_none() && tally::is_tracked(pod);
    name.filter(|_| is_left).map(|name| Key::new(meta.namespace.as_str(), name))
}

/// Whether a job will count a pod that waits for that: because it is its own, or about to be adopted.
fn counts_or_adopts(job: &Job, pod: &Pod) -> bool {
    let meta = &pod.metadata;
    let adopts = meta.controller().is_none()
        && job.spec.selector.matches(&meta.labels)
        && !job.metadata.is_being_deleted()
        && !meta.is_being_deleted();
    meta.is_controlled_by(&job.metadata.uid) || adopts
}

fn plan(observed: &Observed, request: &Request, failures: &mut Failures) -> Plan {
    let mut plan = Plan::default();
    let job = observed.job.as_ref().filter(|job| is_mine(job));
    if observed.job.is_some() && job.is_none() {
        return plan;
    }
    // Pods of a job that is gone or over wait in vain.
    let counts = job.filter(|job| job.finished().is_none());
    for pod in &observed.waiting {
        if !counts.is_some_and(|job| counts_or_adopts(job, pod)) {
            pods::release(&mut plan, pod);
        }
    }
    match counts {
        Some(job) => reconcile(&mut plan, job, &observed.candidates, request, failures),
        None => failures.forget(&request.key),
    }
    plan
}

fn is_mine(job: &Job) -> bool {
    let mode = job.spec.completion_mode.as_str();
    job.spec.managed_by.as_deref().is_none_or(|name| name == NAME) && matches!(mode, "" | "NonIndexed" | "Indexed")
}

fn reconcile(
    plan: &mut Plan,
    job: &Object<Job>,
    candidates: &[Arc<Object<Pod>>],
    request: &Request,
    failures: &mut Failures,
) {
    let now = request.now;
    let mut claims = Plan::default();
    let pods = claim(&mut claims, job, candidates, |pod| job.spec.selector.matches(&pod.metadata.labels));
    if !claims.writes.is_empty() {
        track(&mut claims, candidates);
        plan.writes.extend(claims.writes);
        return;
    }
    let mut tally = Tally::new(job, &pods);
    let verdict = verdict::early(&tally, now).or_else(|| verdict::complete(&tally));
    let released = tally.note(verdict.as_ref());
    report(plan, &tally, verdict.as_ref(), now);
    released.iter().for_each(|pod| pods::release(plan, pod));
    let succeeded = pods.iter().map(|pod| &***pod).filter(|pod| pod.status.phase == "Succeeded");
    // Those that were not wanted any more have not failed, however they end.
    let was_wanted = |pod: &Pod| tally::is_tracked(pod) || !pod.metadata.is_being_deleted();
    let failed = pods.iter().map(|pod| &***pod).filter(|pod| has_failed(job, pod) && was_wanted(pod));
    let wait = failures.wait(job, succeeded, failed, now);
    if verdict.is_some() {
        tally.active.iter().for_each(|pod| delete_pod(plan, job, pod));
        return;
    }
    if !job.metadata.is_being_deleted() {
        pods::manage(plan, &tally, wait, now);
    }
    if let Some(delay) = verdict::until_deadline(job, now) {
        plan.requeue_after(delay);
    }
}

/// A pod that is adopted is held until it is counted, and one that is let go is not.
fn track(plan: &mut Plan, pods: &[Arc<Object<Pod>>]) {
    for write in &mut plan.writes {
        let Write::Patch { target, patch, owner, .. } = write else { continue };
        let Some(pod) = pods.iter().find(|pod| pod.metadata.uid == target.uid) else { continue };
        let mut finalizers = pod.metadata.finalizers.to_vec();
        finalizers.retain(|name| name != JOB_TRACKING);
        if owner.is_some() {
            finalizers.push(JOB_TRACKING.to_owned());
        }
        patch.object_or_new("metadata").set("finalizers", finalizers);
    }
}

/// The conditions of a job, as JSON.
struct Conditions {
    list: Vec<Value>,
    now: Time,
}

impl Conditions {
    /// Sets a condition; returns whether it was another one before. What was never true is not said to be false.
    fn set(&mut self, kind: &str, status: &str, reason: &str, message: &str) -> bool {
        let new = json!({
            "type": kind,
            "status": status,
            "reason": reason,
            "message": message,
            "lastProbeTime": self.now,
            "lastTransitionTime": self.now,
        });
        let same = |old: &Value| ["status", "reason", "message"].iter().all(|field| old.at(field) == new.at(field));
        match self.list.iter_mut().find(|condition| condition.text("type") == kind) {
            Some(old) if same(old) => return false,
            Some(old) => *old = new,
            None if status == "False" => return false,
            None => self.list.push(new),
        }
        true
    }
}

fn report(plan: &mut Plan, tally: &Tally, verdict: Option<&Verdict>, now: Time) {
    let job = tally.job;
    let before = job.json();
    let mut conditions = Conditions { list: before.at("status").items("conditions").to_vec(), now };
    let mut status = tally.json();
    let mut start = job.status.start_time.or((!job.spec.suspend).then_some(now));
    let mut news = None;
    match verdict {
        Some(verdict) => {
            news = conclude(&mut conditions, &mut status, tally, verdict);
            let too_many = job.spec.completions.is_some_and(|completions| tally.succeeded > completions);
            if too_many && news.is_some() && matches!(verdict, Verdict::Succeeded { .. }) {
                let message = "Too many succeeded pods running after completion count reached";
                plan.event(Note::warning(job, "TooManySucceededPods", message));
            }
        }
        None if job.metadata.is_being_deleted() => {}
        None if job.spec.suspend => {
            if conditions.set("Suspended", "True", "JobSuspended", "Job suspended") {
                news = Some(Note::normal(job, "Suspended", "Job suspended"));
                start = None;
            }
        }
        None => {
            if conditions.set("Suspended", "False", "JobResumed", "Job resumed") {
                news = Some(Note::normal(job, "Resumed", "Job resumed"));
                // The deadline is about the time in which it runs without a break.
                start = Some(now);
            }
        }
    }
    // What has ended has begun, be it while it was suspended.
    let begun = start.or((news.is_some() && verdict.is_some()).then_some(now));
    if let Some(begun) = begun {
        status.set("startTime", begun);
    }
    if !conditions.list.is_empty() {
        status.set("conditions", conditions.list);
    }
    let writes = plan.writes.len();
    plan.status(job, status);
    if let Some(news) = news.filter(|_| plan.writes.len() > writes) {
        plan.on_success(news);
    }
}

/// Notes how the job ends, and, when nothing is left of its pods to wait for, that it has.
fn conclude(conditions: &mut Conditions, status: &mut Value, tally: &Tally, verdict: &Verdict) -> Option<Note> {
    let (first, last, reason, message) = match verdict {
        Verdict::Succeeded { reason, message } => ("SuccessCriteriaMet", "Complete", reason, message),
        Verdict::Failed { reason, message } => ("FailureTarget", "Failed", reason, message),
    };
    conditions.set(first, "True", reason, message);
    if !tally.is_settled() || !tally.active.is_empty() || !tally.terminating.is_empty() {
        return None;
    }
    conditions.set(last, "True", reason, message);
    if last == "Failed" {
        return Some(Note::warning(tally.job, reason, message.as_str()));
    }
    status.set("completionTime", conditions.now);
    Some(Note::normal(tally.job, "Completed", "Job completed"))
}
