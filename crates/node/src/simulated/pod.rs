//! The life of a simulated pod, as a pure function of what is known of it.
//!
//! Unless it says otherwise it runs, and is ready, as soon as it is bound; that takes one write. All containers of a pod
//! do the same at the same time.

use super::life::Life;
use super::resize::{self, Resize};
use super::{restart, status};
use crate::admission::Refusal;
use kinds::{ContainerStatus, Pod, ReadinessGate, Time};
use object::{Edit, Value};
use std::time::Duration;

/// How often a resize is tried again for which there is no room.
const RESIZE_RETRY: Duration = Duration::from_secs(3);

#[derive(Debug, PartialEq)]
pub(super) enum Step {
    /// This is its status now, and what people are told.
    Report(Value, Vec<Remark>),
    /// It has stopped, and can go.
    Remove,
    /// Nothing to do, for so long.
    Wait(Option<Duration>),
}

/// What becomes an event. Pods to which nothing happens have none: there may be very many of them.
#[derive(Debug, PartialEq)]
pub(super) struct Remark {
    pub warning: bool,
    pub reason: String,
    pub message: String,
}

impl Remark {
    fn new(warning: bool, reason: &str, message: impl Into<String>) -> Self {
        Remark { warning, reason: reason.to_owned(), message: message.into() }
    }
}

/// Where a pod is.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place<'a> {
    pub address: &'a str,
    pub host: &'a str,
    /// Whether it may use what it claims.
    pub has_devices: bool,
    /// Why it cannot start there.
    pub refusal: Option<&'a Refusal>,
    /// Whether it can have what it asks for, if that is not what it has.
    pub resize: Option<&'a Resize>,
}

pub(super) fn step(pod: &Pod, life: &Life, place: Place<'_>, now: Time) -> Step {
    let mut step = match pod.metadata.deletion_timestamp {
        Some(deletion) => stop(pod, life, deletion, now),
        None if pod.is_finished() => Step::Wait(None),
        None => live(pod, life, place, now),
    };
    if let Step::Report(status, _) = &mut step {
        status.set("observedGeneration", pod.metadata.generation);
    }
    step
}

fn report(status: Value) -> Step {
    Step::Report(status, Vec::new())
}

/// What is asked to stop stops when it is done, and at the latest when its time is up.
fn stop(pod: &Pod, life: &Life, deletion: Time, now: Time) -> Step {
    let grace = Duration::from_secs(pod.metadata.deletion_grace_period_seconds.unwrap_or(0).unsigned_abs());
    let left = deletion.since(now);
    let asked_for = grace.saturating_sub(left);
    let rest = life.stop.min(grace).saturating_sub(asked_for);
    if !rest.is_zero() {
        return Step::Wait(Some(rest));
    }
    // How it ended is only told where somebody keeps the pod and can see it: all others go with a single write, which
    // decides how fast many pods go at once.
    if pod.metadata.finalizers.is_empty() || pod.is_finished() {
        return Step::Remove;
    }
    let code = if life.stop > grace { status::KILLED } else { status::STOPPED };
    report(status::ended(pod, code, now))
}

/// Until it has been active for as long as it may.
fn live(pod: &Pod, life: &Life, place: Place<'_>, now: Time) -> Step {
    if let Some(refusal) = place.refusal {
        let remark = Remark::new(true, &refusal.reason, &refusal.message);
        return Step::Report(status::rejected(pod, refusal, now), vec![remark]);
    }
    let seconds = pod.spec.active_deadline_seconds.map(|seconds| Duration::from_secs(seconds.unsigned_abs()));
    let deadline = pod.status.start_time.zip(seconds).map(|(start, seconds)| start + seconds);
    if deadline.is_some_and(|deadline| deadline <= now) {
        let remark = Remark::new(false, "DeadlineExceeded", status::OVERDUE);
        return Step::Report(status::overdue(pod, status::KILLED, now), vec![remark]);
    }
    let step = match pod.status.phase.as_str() {
        "Running" => run(pod, life, place, now),
        _ => begin(pod, life, place, now),
    };
    match (step, deadline.map(|deadline| deadline.since(now))) {
        (Step::Wait(rest), Some(left)) => Step::Wait(Some(rest.map_or(left, |rest| rest.min(left)))),
        (step, _) => step,
    }
}

fn begin(pod: &Pod, life: &Life, place: Place<'_>, now: Time) -> Step {
    let waits = !life.is_pullable || !life.delay.is_zero() || !place.has_devices;
    let wait = |rest: Option<Duration>| match waiting_for(pod) {
        // Whoever has changed it wants to know that this was seen.
        Some(reason) if is_behind(pod) => report(status::creating(pod, reason, place, now)),
        _ => Step::Wait(rest),
    };
    match pod.status.start_time {
        None if waits => report(status::creating(pod, "ContainerCreating", place, now)),
        _ if !place.has_devices => wait(None),
        Some(since) if since + life.delay > now => wait(Some((since + life.delay).since(now))),
        _ if life.is_pullable => report(status::running(pod, place, is_ready_at_once(life), now)),
        _ if waiting_for(pod) == Some(NO_IMAGE) => wait(None),
        _ => Step::Report(status::creating(pod, NO_IMAGE, place, now), without_images(pod)),
    }
}

const NO_IMAGE: &str = "ImagePullBackOff";

fn without_images(pod: &Pod) -> Vec<Remark> {
    let image = pod.spec.containers.first().map_or("", |container| container.image.as_str());
    vec![
        Remark::new(false, "BackOff", format!("Back-off pulling image {image:?}")),
        Remark::new(true, "Failed", format!("Error: {NO_IMAGE}")),
    ]
}

fn is_ready_at_once(life: &Life) -> bool {
    life.ready.is_some_and(|delay| delay.is_zero())
}

fn waiting_for(pod: &Pod) -> Option<&str> {
    let container = pod.status.container_statuses.first()?;
    container.state.waiting.as_ref().map(|waiting| waiting.reason.as_str())
}

/// Whether what was reported is of an earlier version of what is wanted.
fn is_behind(pod: &Pod) -> bool {
    pod.status.observed_generation != pod.metadata.generation
}

fn run(pod: &Pod, life: &Life, place: Place<'_>, now: Time) -> Step {
    let container = pod.status.container_statuses.first();
    let restarts = container.map_or(0, |container| container.restart_count);
    if let Some(ended) = container.and_then(ended_and_waits) {
        let again = ended + restart::backoff(restarts);
        return match again <= now {
            true => report(status::restarted(pod, is_ready_at_once(life), now)),
            false => Step::Wait(Some(again.since(now))),
        };
    }
    let running = container.and_then(|container| container.state.running.as_ref()?.started_at);
    let since = running.or(pod.status.start_time).unwrap_or(now);
    let end = life.run.map(|run| since + run);
    if end.is_some_and(|end| end <= now) {
        return end_of_run(pod, life, restarts, now.since(since), now);
    }
    let ready_at = life.ready.map(|delay| since + delay);
    let works = ready_at.is_some_and(|at| at <= now);
    if let Some(step) = place.resize.and_then(|resize| take_on_size(pod, life, resize, works, now)) {
        return step;
    }
    let wanted = works && gates_are_open(pod);
    if pod.is_ready() != wanted || container.is_some_and(|container| container.ready != works) || is_behind(pod) {
        return report(status::readiness(pod, works, now));
    }
    let retry = matches!(place.resize, Some(Resize::Pending { reason: resize::DEFERRED, .. }));
    let retry = retry.then(|| now + RESIZE_RETRY);
    let next = ready_at.filter(|at| *at > now).into_iter().chain(end).chain(retry).min();
    Step::Wait(next.map(|next| next.since(now)))
}

/// A resize is done, or it is told why it is not, unless that is known.
fn take_on_size(pod: &Pod, life: &Life, resize: &Resize, works: bool, now: Time) -> Option<Step> {
    match resize {
        Resize::Granted => {
            let restarts = || pod.spec.containers.iter().zip(pod.status.container_statuses.iter());
            let restarted = restarts().any(|(one, before)| resize::needs_restart(pod, one, Some(before)));
            let ready = works && (!restarted || is_ready_at_once(life));
            Some(report(status::resized(pod, ready, now)))
        }
        Resize::Pending { reason, message } => {
            let known = pod.condition(status::RESIZE_PENDING).is_some_and(|told| {
                told.reason == *reason
                    && told.message == *message
                    && told.observed_generation == pod.metadata.generation
            });
            (!known).then(|| report(status::pending(pod, works, reason, message, now)))
        }
    }
}

/// When a container ended that is to be started again.
fn ended_and_waits(container: &ContainerStatus) -> Option<Time> {
    container.state.waiting.as_ref()?;
    container.last_state.terminated.as_ref()?.finished_at
}

fn end_of_run(pod: &Pod, life: &Life, restarts: i32, ran: Duration, now: Time) -> Step {
    let code = life.code(pod, restarts);
    if !restart::is_due(pod, code) {
        return report(status::ended(pod, code, now));
    }
    let wait = restart::backoff_after(ran, restarts + 1);
    if wait.is_zero() {
        return report(status::restarted_after(pod, code, now));
    }
    let remark = |name: &str| {
        let message = format!("Back-off restarting failed container {name} in pod {}", status::described(pod));
        Remark::new(true, "BackOff", message)
    };
    let remarks = pod.spec.containers.iter().map(|container| remark(&container.name)).collect();
    Step::Report(status::backing_off(pod, code, wait, now), remarks)
}

pub(super) fn gates_are_open(pod: &Pod) -> bool {
    let open =
        |gate: &ReadinessGate| pod.condition(&gate.condition_type).is_some_and(|condition| condition.status == "True");
    pod.spec.readiness_gates.iter().all(open)
}

#[cfg(test)]
mod tests;
