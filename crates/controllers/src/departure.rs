//! Pods that have to go at a certain time, for a cause that may vanish before.
//!
//! A pod is told why before it is deleted. When the cause goes, so does the intention, and that is told too. What the
//! causes are is the business of the loops that use this.

use crate::pod_condition::{DISRUPTION_TARGET, Verdict, report};
use kinds::{Object, Pod, Time};
use runtime::{Note, Plan};
use std::time::Duration;

/// How a cause is spoken of.
pub(crate) struct Words {
    /// The reason of events.
    pub(crate) event: &'static str,
    /// What is told when a pod is deleted, and when it is not after all. `{pod}` is its name.
    pub(crate) marking: &'static str,
    pub(crate) cancelling: &'static str,
    /// Reason and message of the condition that a pod gets.
    pub(crate) reason: &'static str,
    pub(crate) message: &'static str,
}

/// A pod that is going to be deleted unless something changes.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Pending {
    uid: String,
    /// When that was first clear: for causes that do not say since when they are there.
    since: Time,
}

impl Pending {
    /// What is remembered, if it is of this pod and not of one that had the same name.
    pub(crate) fn of(before: Option<Pending>, pod: &Pod) -> Option<Pending> {
        before.filter(|before| before.uid == pod.metadata.uid)
    }

    /// Since when it has been clear that a pod has to go.
    pub(crate) fn noticed(before: Option<&Pending>, now: Time) -> Time {
        before.map_or(now, |before| before.since)
    }
}

/// What to do with a pod that may stay for so long, or forever; and what to remember of it.
pub(crate) fn plan(
    pod: &Object<Pod>,
    remaining: Option<Duration>,
    before: Option<Pending>,
    words: &Words,
    now: Time,
) -> (Plan, Option<Pending>) {
    let mut plan = Plan::default();
    if pod.metadata.is_being_deleted() {
        return (plan, None);
    }
    let say = |what: &str| Note::normal(pod, words.event, what.replace("{pod}", &pod.key().to_string()));
    let Some(remaining) = remaining else {
        plan.events.extend(before.map(|_| say(words.cancelling)));
        return (plan, None);
    };
    if remaining.is_zero() {
        plan.event(say(words.marking));
        let verdict = Verdict { kind: DISRUPTION_TARGET, status: "True", reason: words.reason, message: words.message };
        report(&mut plan, pod, Some(&verdict), None, now);
        plan.delete(pod);
    } else {
        plan.requeue_after(remaining);
    }
    let since = Pending::noticed(before.as_ref(), now);
    (plan, Some(Pending { uid: pod.metadata.uid.clone(), since }))
}
