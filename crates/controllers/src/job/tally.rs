//! The tally of a job: what its pods have come to, each counted once.
//!
//! A pod carries a finalizer until it is counted. Its uid is first noted in the status as uncounted, then the finalizer
//! is removed, and only when that is seen does the counter go up and the note go away. So a crash at any point neither
//! loses nor repeats a count. Successes of indexed jobs need no notes: an index is in the set or it is not.

use super::backoff::finished_at;
use super::indexes::Indexes;
use super::policy::{self, Failure};
use super::verdict::Verdict;
use kinds::{JOB_TRACKING, Job, Object, Pod, Uncounted};
use object::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// So many pods at most are noted as uncounted at a time, which keeps statuses small.
const MAX_UNCOUNTED: usize = 500;
pub(super) const INDEX: &str = "batch.kubernetes.io/job-completion-index";
pub(super) const INDEX_FAILURES: &str = "batch.kubernetes.io/job-index-failure-count";
pub(super) const INDEX_IGNORED_FAILURES: &str = "batch.kubernetes.io/job-index-ignored-failure-count";

type PodRef = Arc<Object<Pod>>;

pub(super) struct Tally<'a> {
    pub(super) job: &'a Object<Job>,
    pub(super) pods: &'a [PodRef],
    pub(super) active: Vec<PodRef>,
    pub(super) terminating: Vec<&'a PodRef>,
    /// Including what is not in the counters of the status yet.
    pub(super) succeeded: i32,
    pub(super) failed: i32,
    pub(super) succeeded_indexes: Indexes,
    /// If indexes fail each by themselves.
    pub(super) failed_indexes: Option<Indexes>,
    /// The last failed pod of each index that is to be tried again: it stays until its successor is there, which takes
    /// over its count of failures.
    pub(super) replaceable: BTreeMap<i32, &'a PodRef>,
    /// What the counters of the status come to, now that these finalizers are gone.
    counted: (i32, i32),
    /// Those whose finalizers are still there.
    uncounted: Uncounted,
}

/// Whether a job counts by index.
pub(super) fn is_indexed(job: &Job) -> bool {
    job.spec.completion_mode == "Indexed"
}

pub(super) fn is_tracked(pod: &Pod) -> bool {
    pod.metadata.has_finalizer(JOB_TRACKING)
}

pub(super) fn index(pod: &Pod) -> Option<i32> {
    pod.metadata.annotation(INDEX).parse().ok().filter(|index| *index >= 0)
}

/// Whether a pod is replaced only when it has ended, and not as soon as it is told to.
pub(super) fn waits_for_the_end(job: &Job) -> bool {
    job.spec.pod_replacement_policy == "Failed" || job.spec.pod_failure_policy.is_some()
}

pub(super) fn has_failed(job: &Job, pod: &Pod) -> bool {
    let deleted = pod.metadata.is_being_deleted() && pod.status.phase != "Succeeded";
    pod.status.phase == "Failed" || deleted && !waits_for_the_end(job)
}

/// How often pods of an index have failed before this one; those that did not count included if `all`.
pub(super) fn earlier_failures(pod: &Pod, all: bool) -> i32 {
    let number = |annotation| pod.metadata.annotation(annotation).parse::<i32>().unwrap_or(0).max(0);
    number(INDEX_FAILURES) + if all { number(INDEX_IGNORED_FAILURES) } else { 0 }
}

impl<'a> Tally<'a> {
    pub(super) fn new(job: &'a Object<Job>, pods: &'a [PodRef]) -> Self {
        let before = job.status.uncounted_terminated_pods.clone().unwrap_or_default();
        let held: BTreeSet<_> =
            pods.iter().filter(|pod| is_tracked(pod)).map(|pod| pod.metadata.uid.as_str()).collect();
        let is_held = |uid: &String| held.contains(uid.as_str());
        let (succeeded, released_succeeded): (Vec<_>, Vec<_>) = before.succeeded.into_iter().partition(is_held);
        let (failed, released_failed): (Vec<_>, Vec<_>) = before.failed.into_iter().partition(is_held);
        let plus = |number: i32, list: &[String]| number + i32::try_from(list.len()).unwrap_or(i32::MAX);
        let mut tally = Tally {
            job,
            pods,
            active: pods.iter().filter(|pod| pod.is_active()).cloned().collect(),
            terminating: pods.iter().filter(|pod| pod.metadata.is_being_deleted() && !pod.is_finished()).collect(),
            counted: (plus(job.status.succeeded, &released_succeeded), plus(job.status.failed, &released_failed)),
            uncounted: Uncounted { succeeded, failed },
            succeeded: 0,
            failed: 0,
            succeeded_indexes: Indexes::default(),
            failed_indexes: None,
            replaceable: BTreeMap::new(),
        };
        tally.sum_up();
        tally
    }

    fn sum_up(&mut self) {
        let noted: BTreeSet<_> = self.uncounted.succeeded.iter().chain(&self.uncounted.failed).collect();
        // What was noted stays so: a pod that was told to go may succeed before it goes.
        let new: Vec<_> = self.uncountable().filter(|pod| !noted.contains(&pod.metadata.uid)).collect();
        let count =
            |test: &dyn Fn(&Pod) -> bool| i32::try_from(new.iter().filter(|pod| test(pod)).count()).unwrap_or(i32::MAX);
        let succeeded = count(&|pod| pod.status.phase == "Succeeded");
        let failed = count(&|pod| self.failure(pod).is_some_and(|failure| failure.is_counted()));
        let done = new.iter().filter(|pod| pod.status.phase == "Succeeded").filter_map(|pod| index(pod));
        let before = Indexes::parse(&self.job.status.completed_indexes, self.completions());
        let done = is_indexed(self.job).then(|| before.with(done));
        let noted = |list: &[String]| i32::try_from(list.len()).unwrap_or(i32::MAX);
        self.succeeded = self.counted.0 + noted(&self.uncounted.succeeded) + succeeded;
        self.failed = self.counted.1 + noted(&self.uncounted.failed) + failed;
        if let Some(done) = done {
            self.succeeded_indexes = done;
            self.succeeded = self.succeeded_indexes.len();
            self.failed_indexes = self.job.spec.backoff_limit_per_index.map(|limit| self.failed_indexes(limit));
            self.replaceable = self.replaceable();
        }
    }

    pub(super) fn completions(&self) -> i32 {
        self.job.spec.completions.unwrap_or(0)
    }

    /// Pods that hold a finalizer and, if that matters, an index that there is.
    fn uncountable(&self) -> impl Iterator<Item = &'a PodRef> {
        self.pods.iter().filter(|pod| is_tracked(pod) && self.has_valid_index(pod))
    }

    fn has_valid_index(&self, pod: &Pod) -> bool {
        !is_indexed(self.job) || index(pod).is_some_and(|index| index < self.completions())
    }

    /// What the failure of a pod means, if it has failed.
    pub(super) fn failure(&self, pod: &Pod) -> Option<Failure> {
        has_failed(self.job, pod).then(|| policy::failure(self.job.spec.pod_failure_policy.as_ref(), pod))
    }

    fn failed_indexes(&self, limit: i32) -> Indexes {
        let text = self.job.status.failed_indexes.as_deref().unwrap_or_default();
        let fails = |pod: &&PodRef| match self.failure(pod) {
            Some(Failure::FailsIndex) => true,
            Some(failure) => failure.is_counted() && earlier_failures(pod, false) >= limit,
            None => false,
        };
        let failed = self.uncountable().filter(fails).filter_map(|pod| index(pod));
        Indexes::parse(text, self.completions()).with(failed)
    }

    fn replaceable(&self) -> BTreeMap<i32, &'a PodRef> {
        let Some(failed) = &self.failed_indexes else { return BTreeMap::new() };
        let active = Indexes::default().with(self.active.iter().filter_map(|pod| index(pod)));
        let is_settled = |index: i32| self.succeeded_indexes.has(index) || failed.has(index) || active.has(index);
        let mut last: BTreeMap<i32, &PodRef> = BTreeMap::new();
        let candidates = self.uncountable().filter(|pod| has_failed(self.job, pod));
        for (index, pod) in candidates.filter_map(|pod| Some((index(pod)?, pod))).filter(|(i, _)| !is_settled(*i)) {
            let rank = |pod: &Pod| (earlier_failures(pod, true), finished_at(pod));
            let known = last.entry(index).or_insert(pod);
            if rank(pod) >= rank(known) {
                *known = pod;
            }
        }
        last
    }

    /// Notes pods that have ended, and says which may lose their finalizers once the notes are written.
    pub(super) fn note(&mut self, verdict: Option<&Verdict>) -> Vec<&'a PodRef> {
        let mut released = Vec::new();
        let mut noted = self.uncounted.succeeded.len() + self.uncounted.failed.len();
        for pod in self.pods.iter().filter(|pod| is_tracked(pod)) {
            if !self.may_go(pod, verdict.is_some()) {
                continue;
            }
            // What is noted is let go of however much there is: only that makes room for others.
            let uid = &pod.metadata.uid;
            if self.uncounted.failed.contains(uid) || self.uncounted.succeeded.contains(uid) {
                released.push(pod);
                continue;
            }
            if noted >= MAX_UNCOUNTED {
                continue;
            }
            released.push(pod);
            if pod.status.phase == "Succeeded" {
                if !is_indexed(self.job) {
                    self.uncounted.succeeded.push(uid.clone());
                }
                noted += 1;
            } else if self.counts_as_failed(pod, verdict) {
                self.uncounted.failed.push(uid.clone());
                noted += 1;
            }
        }
        released
    }

    fn may_go(&self, pod: &PodRef, is_over: bool) -> bool {
        if is_over || self.job.metadata.is_being_deleted() || pod.status.phase == "Succeeded" {
            return true;
        }
        let is_kept = index(pod)
            .and_then(|index| self.replaceable.get(&index))
            .is_some_and(|kept| kept.metadata.uid == pod.metadata.uid);
        has_failed(self.job, pod) && !is_kept
    }

    /// When a job fails, whatever of it has not ended has failed too.
    fn counts_as_failed(&self, pod: &Pod, verdict: Option<&Verdict>) -> bool {
        let swept = matches!(verdict, Some(Verdict::Failed { .. }));
        let failure = policy::failure(self.job.spec.pod_failure_policy.as_ref(), pod);
        (has_failed(self.job, pod) || swept) && self.has_valid_index(pod) && failure.is_counted()
    }

    /// Whether every pod that has ended is in the counters.
    pub(super) fn is_settled(&self) -> bool {
        let noted = self.uncounted.succeeded.len() + self.uncounted.failed.len();
        noted == 0 && !self.pods.iter().any(|pod| is_tracked(pod))
    }

    /// The counters as they are reported.
    pub(super) fn json(&self) -> Value {
        let some = |number: i32| (number > 0).then_some(number);
        let list = |uids: &[String]| (!uids.is_empty()).then(|| uids.to_vec());
        let mut uncounted = json!({});
        for (field, uids) in [("succeeded", &self.uncounted.succeeded), ("failed", &self.uncounted.failed)] {
            list(uids).into_iter().for_each(|uids| uncounted[field] = json!(uids));
        }
        let succeeded = if is_indexed(self.job) { self.succeeded } else { self.counted.0 };
        let completed = Some(self.succeeded_indexes.to_string()).filter(|text| !text.is_empty());
        json!({
            "active": some(i32::try_from(self.active.len()).unwrap_or(i32::MAX)),
            "ready": self.active.iter().filter(|pod| pod.is_ready()).count(),
            "terminating": self.terminating.len(),
            "succeeded": some(succeeded),
            "failed": some(self.counted.1),
            "completedIndexes": completed,
            "failedIndexes": self.failed_indexes.as_ref().map(Indexes::to_string),
            "uncountedTerminatedPods": uncounted,
        })
    }
}
