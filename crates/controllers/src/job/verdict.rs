//! Whether a job is over, and how.

use super::policy::{self, Failure};
use super::tally::{Tally, is_indexed};
use kinds::{Job, Pod, Time};
use object::View;
use std::time::Duration;

/// How a job ends. It is reported at once, and made final when no pod is left.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    Succeeded { reason: String, message: String },
    Failed { reason: String, message: String },
}

fn failed(reason: &str, message: impl Into<String>) -> Verdict {
    Verdict::Failed { reason: reason.to_owned(), message: message.into() }
}

fn succeeded(reason: &str, message: impl Into<String>) -> Verdict {
    Verdict::Succeeded { reason: reason.to_owned(), message: message.into() }
}

/// The verdict, if there is one whatever else the pods do: those that still run are then deleted.
pub(super) fn early(tally: &Tally, now: Time) -> Option<Verdict> {
    let job = tally.job;
    earlier(job).or_else(|| failed_by_pod(tally)).or_else(|| out_of_limits(tally, now)).or_else(|| by_index(tally))
}

/// What was decided before stays so.
fn earlier(job: &Job) -> Option<Verdict> {
    let is = |kind: &str| kinds::condition(&job.status.conditions, kind).filter(|condition| condition.status == "True");
    let met = is("SuccessCriteriaMet").map(|condition| succeeded(&condition.reason, condition.message.as_str()));
    met.or_else(|| is("FailureTarget").map(|condition| failed(&condition.reason, condition.message.as_str())))
}

fn failed_by_pod(tally: &Tally) -> Option<Verdict> {
    tally.pods.iter().find_map(|pod| match tally.failure(pod)? {
        Failure::FailsJob(message) => Some(failed("PodFailurePolicy", message)),
        _ => None,
    })
}

fn out_of_limits(tally: &Tally, now: Time) -> Option<Verdict> {
    let job = tally.job;
    let limit = job.spec.backoff_limit.unwrap_or(i32::MAX);
    if tally.failed > limit || restarts_exceed(job, tally.pods.iter().map(|pod| &***pod), limit) {
        return Some(failed("BackoffLimitExceeded", "Job has reached the specified backoff limit"));
    }
    let left = until_deadline(job, now)?;
    left.is_zero().then(|| failed("DeadlineExceeded", "Job was active longer than specified deadline"))
}

/// Where containers are restarted in place, restarts count as failures.
fn restarts_exceed<'a>(job: &Job, pods: impl Iterator<Item = &'a Pod>, limit: i32) -> bool {
    if job.spec.template.json.at("spec").text("restartPolicy") != "OnFailure" {
        return false;
    }
    let running = pods.filter(|pod| matches!(pod.status.phase.as_str(), "Running" | "Pending"));
    let restarts: i64 = running
        .flat_map(|pod| pod.status.container_statuses.iter().chain(&pod.status.init_container_statuses))
        .map(|status| i64::from(status.restart_count))
        .sum();
    restarts >= i64::from(limit.max(1))
}

/// How long the job may go on, if there is a limit and it runs. One that has not begun begins now.
pub(super) fn until_deadline(job: &Job, now: Time) -> Option<Duration> {
    let seconds = job.spec.active_deadline_seconds.filter(|_| !job.spec.suspend)?;
    let allowed = Duration::from_secs(u64::try_from(seconds).unwrap_or(0));
    Some((job.status.start_time.unwrap_or(now) + allowed).since(now))
}

fn by_index(tally: &Tally) -> Option<Verdict> {
    let job = tally.job;
    if !is_indexed(job) {
        return None;
    }
    if let Some(failed_indexes) = &tally.failed_indexes {
        let count = failed_indexes.len();
        if job.spec.max_failed_indexes.is_some_and(|most| count > most) {
            let message = "Job has exceeded the specified maximal number of failed indexes";
            return Some(failed("MaxFailedIndexesExceeded", message));
        }
        if count > 0 && count + tally.succeeded_indexes.len() >= tally.completions() {
            return Some(failed("FailedIndexes", "Job has failed indexes"));
        }
    }
    let policy = job.spec.success_policy.as_ref();
    policy::success(policy, tally.completions(), &tally.succeeded_indexes)
        .map(|message| succeeded("SuccessPolicy", message))
}

/// The verdict, if enough pods have succeeded and none is left running.
pub(super) fn complete(tally: &Tally) -> Option<Verdict> {
    let enough = match tally.job.spec.completions {
        Some(completions) => tally.succeeded >= completions,
        None => tally.succeeded > 0,
    };
    let message = "Reached expected number of succeeded pods";
    (enough && tally.active.is_empty()).then(|| succeeded("CompletionsReached", message))
}
