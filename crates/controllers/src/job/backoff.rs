//! How long to wait before a failed pod is replaced: ten seconds, twice that after each further failure, ten minutes at
//! most; a success starts it over.

use kinds::{Job, Key, Pod, Time};
use std::collections::BTreeMap;
use std::time::Duration;

const FIRST: Duration = Duration::from_secs(10);
const LAST: Duration = Duration::from_secs(10 * 60);
/// So many failures lead to the longest wait; more need not be remembered.
const REMEMBERED: usize = 7;

/// The failures of jobs. Pods are remembered because they may be gone when their successors are due.
#[derive(Default)]
pub(super) struct Failures(BTreeMap<Key, Record>);

#[derive(Default)]
struct Record {
    job_uid: String,
    last_success: Option<Time>,
    /// The pods that failed since, by uid, with the time at which they did.
    failed: BTreeMap<String, Time>,
}

impl Failures {
    pub(super) fn forget(&mut self, job: &Key) {
        self.0.remove(job);
    }

    /// Takes in which pods have ended, and says how long to wait before others are created.
    pub(super) fn wait<'a>(
        &mut self,
        job: &Job,
        succeeded: impl Iterator<Item = &'a Pod>,
        failed: impl Iterator<Item = &'a Pod>,
        now: Time,
    ) -> Option<Duration> {
        let meta = &job.metadata;
        let record = self.0.entry(Key::new(meta.namespace.as_str(), meta.name.as_str())).or_default();
        if record.job_uid != meta.uid {
            *record = Record { job_uid: meta.uid.clone(), ..Record::default() };
        }
        record.last_success = record.last_success.max(succeeded.map(finished_at).max());
        record.failed.extend(failed.map(|pod| (pod.metadata.uid.clone(), finished_at(pod))));
        record.failed.retain(|_, at| record.last_success.is_none_or(|success| *at > success));
        let count = record.failed.len();
        while record.failed.len() > REMEMBERED {
            let oldest = record.failed.iter().min_by_key(|(_, at)| **at).map(|(uid, _)| uid.clone());
            oldest.and_then(|uid| record.failed.remove(&uid));
        }
        let last = record.failed.values().max()?;
        remaining(count, *last, now)
    }
}

/// How long after `count` failures, the last of them at `last`, there is still to wait.
pub(super) fn remaining(count: usize, last: Time, now: Time) -> Option<Duration> {
    let doublings = u32::try_from(count.saturating_sub(1)).unwrap_or(u32::MAX).min(6);
    let delay = (FIRST * 2_u32.pow(doublings)).min(LAST);
    let left = (last + delay).since(now);
    (count > 0 && !left.is_zero()).then_some(left)
}

/// When a pod ended, as well as that can be known.
pub(super) fn finished_at(pod: &Pod) -> Time {
    let sidecars: Vec<_> = pod.spec.init_containers.iter().filter(|container| container.is_sidecar()).collect();
    let is_sidecar = |name: &str| sidecars.iter().any(|container| container.name == name);
    let late = pod.status.init_container_statuses.iter().filter(|status| is_sidecar(&status.name));
    let ends: Option<Vec<Time>> = pod
        .status
        .container_statuses
        .iter()
        .chain(late)
        .map(|status| status.state.terminated.as_ref().and_then(|terminated| terminated.finished_at))
        .collect();
    let not_ready = pod.condition("Ready").filter(|ready| ready.status == "False");
    let grace =
        Duration::from_secs(u64::try_from(pod.metadata.deletion_grace_period_seconds.unwrap_or(0)).unwrap_or(0));
    ends.and_then(|ends| ends.into_iter().max())
        .or_else(|| not_ready?.last_transition_time)
        .or_else(|| Some(pod.metadata.deletion_timestamp? - grace))
        .or(pod.metadata.creation_timestamp)
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use kinds::Object;
    use object::{Value, json};

    fn ended(uid: &str, at: i64) -> Object<Pod> {
        let finished = Time::from_seconds(at);
        let status = json!([{ "name": "main", "state": { "terminated": { "finishedAt": finished } } }]);
        Object::of(&json!({ "metadata": { "uid": uid }, "status": { "containerStatuses": status } }))
    }

    #[test]
    fn the_wait_doubles_with_each_failure_and_ends_with_a_success() {
        let mut failures = Failures::default();
        let job = Object::<Job>::of(&json!({ "metadata": { "name": "j", "uid": "j" } }));
        let none: [&Object<Pod>; 0] = [];
        let pods: Vec<_> = (0..10).map(|n| ended(&format!("f{n}"), n * 1000)).collect();
        for (count, seconds) in [(1, 10), (2, 20), (3, 40), (7, 600), (10, 600)] {
            let now = Time::from_seconds(i64::try_from(count - 1).unwrap() * 1000);
            let wait = failures.wait(&job, none.iter().map(|pod| &***pod), pods[..count].iter().map(|p| &**p), now);
            assert_eq!(wait, Some(Duration::from_secs(seconds)), "{count}");
        }
        let success = ended("s", 9500);
        let now = Time::from_seconds(9501);
        assert_eq!(failures.wait(&job, [&*success].into_iter(), pods.iter().map(|pod| &**pod), now), None);
        let late = ended("late", 9502);
        let wait = failures.wait(&job, [&*success].into_iter(), [&*late].into_iter(), Time::from_seconds(9503));
        assert_eq!(wait, Some(Duration::from_secs(9)));
    }

    #[test]
    fn the_end_of_a_pod_is_known_from_its_containers_or_else_from_what_is_left() {
        let pod = |value: Value| finished_at(&Object::<Pod>::of(&value)).seconds();
        let at = Time::from_seconds;
        let container = |seconds| json!({ "name": "c", "state": { "terminated": { "finishedAt": at(seconds) } } });
        let running = json!({ "name": "d", "state": { "running": {} } });
        let unready = json!([{ "type": "Ready", "status": "False", "lastTransitionTime": at(7) }]);
        for (what, value, expected) in [
            ("containers", json!({ "status": { "containerStatuses": [container(5), container(6)] } }), 6),
            (
                "one still runs",
                json!({ "status": { "containerStatuses": [container(5), running], "conditions": unready } }),
                7,
            ),
            ("deleted", json!({ "metadata": { "deletionTimestamp": at(40), "deletionGracePeriodSeconds": 30 } }), 10),
            ("nothing", json!({ "metadata": { "creationTimestamp": at(3) } }), 3),
        ] {
            assert_eq!(pod(value), expected, "{what}");
        }
    }
}
