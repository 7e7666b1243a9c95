//! Deletes jobs some time after they have ended, if they say so; their pods go with them.

use kinds::{Job, Object, Time};
use runtime::{Controller, DeleteOptions, Plan, Propagation};
use std::time::Duration;

pub(crate) fn controller() -> Controller {
    Controller::new("ttl-after-finished-controller").primary::<Job>().plans(|caches, request| {
        let job = caches.of::<Job>().get(&request.key);
        job.map(|job| plan(&job, request.now)).unwrap_or_default()
    })
}

fn plan(job: &Object<Job>, now: Time) -> Plan {
    let mut plan = Plan::default();
    let ended = job.finished().and_then(|condition| condition.last_transition_time);
    let (Some(ended), Some(seconds)) = (ended, job.spec.ttl_seconds_after_finished) else { return plan };
    if job.metadata.is_being_deleted() {
        return plan;
    }
    let left = (ended + Duration::from_secs(u64::try_from(seconds).unwrap_or(0))).since(now);
    if left.is_zero() {
        // Only in this version: somebody may just have given it more time.
        let options =
            DeleteOptions { propagation: Propagation::Foreground, unchanged: true, ..DeleteOptions::default() };
        plan.delete_with(job, options);
    } else {
        plan.requeue_after(left);
    }
    plan
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::NOW;
    use object::{Value, json};

    #[test]
    fn a_job_goes_when_its_time_after_the_end_is_over() {
        let job = |ttl: Value, kind: &str, deletion: Value| {
            let condition = json!({ "type": kind, "status": "True", "lastTransitionTime": "2025-12-31T23:59:50Z" });
            Object::<Job>::of(&json!({
                "metadata": { "name": "work", "namespace": "default", "deletionTimestamp": deletion },
                "spec": { "ttlSecondsAfterFinished": ttl },
                "status": { "conditions": [condition] },
            }))
        };
        let none = || Value::Null;
        for (what, job, deletes, waits) in [
            ("over", job(json!(10), "Complete", none()), true, None),
            ("at once", job(json!(0), "Failed", none()), true, None),
            ("not yet", job(json!(15), "Failed", none()), false, Some(5)),
            ("it runs", job(json!(0), "Suspended", none()), false, None),
            ("it stays", job(none(), "Complete", none()), false, None),
            ("it goes already", job(json!(0), "Complete", json!("2026-01-01T00:00:00Z")), false, None),
        ] {
            let plan = plan(&job, NOW);
            assert_eq!(!plan.writes.is_empty(), deletes, "{what}");
            assert_eq!(plan.requeue_after, waits.map(Duration::from_secs), "{what}");
        }
    }
}
