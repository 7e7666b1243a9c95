//! How long a simulated pod takes for what, and how it ends: what is said of its behaviour, and what is usual.

use super::behavior::Behavior;
use super::restart;
use kinds::Pod;
use std::time::Duration;

/// How long a pod runs that is meant to end.
const DEFAULT_RUN: Duration = Duration::from_secs(1);

#[derive(Clone, Debug, PartialEq)]
pub(super) struct Life {
    /// `pull-seconds` and `start-seconds`: how long until its containers run.
    pub delay: Duration,
    /// `pull: fail`: its images cannot be had.
    pub is_pullable: bool,
    /// `ready-seconds`: how long after that it is ready; never with `ready: "false"`.
    pub ready: Option<Duration>,
    /// `run-seconds`: how long it runs; for ever if absent and it is not meant to end.
    pub run: Option<Duration>,
    /// `exit-code`: how it ends.
    pub exit_code: i32,
    /// `failure-rate`: how often, from 0 to 1, it ends with code 1 instead.
    pub failure_rate: f64,
    /// `stop-seconds`: how long it takes to stop, unless it is given less.
    pub stop: Duration,
}

impl Life {
    pub(super) fn of(pod: &Pod, behavior: &Behavior) -> Self {
        let said = |name: &str| behavior.get(name);
        let seconds = |name: &str| {
            let number = said(name)?.parse::<f64>().ok()?;
            Duration::try_from_secs_f64(number).ok()
        };
        let ends = !matches!(restart::policy(pod), "Always" | "");
        Life {
            delay: seconds("pull-seconds").unwrap_or_default() + seconds("start-seconds").unwrap_or_default(),
            is_pullable: said("pull") != Some("fail"),
            ready: (said("ready") != Some("false")).then(|| seconds("ready-seconds").unwrap_or_default()),
            run: seconds("run-seconds").or_else(|| ends.then_some(DEFAULT_RUN)),
            exit_code: said("exit-code").and_then(|code| code.parse().ok()).unwrap_or(0),
            failure_rate: said("failure-rate").and_then(|rate| rate.parse().ok()).unwrap_or(0.0),
            stop: seconds("stop-seconds").unwrap_or_default(),
        }
    }

    /// How a run ends: the same for the same pod and the same run, whoever asks.
    pub(super) fn code(&self, pod: &Pod, run: i32) -> i32 {
        let start = 0xcbf2_9ce4_8422_2325 ^ u64::from(run.unsigned_abs());
        let mixed = pod.metadata.uid.bytes();
        let hash = mixed.fold(start, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3));
        let chance = (hash.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 11) as f64 / (1_u64 << 53) as f64;
        if chance < self.failure_rate { 1 } else { self.exit_code }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kinds::{ConfigMap, Object};
    use object::{Value, json};
    use runtime::Caches;

    fn pod(uid: &str, annotations: &Value) -> Object<Pod> {
        Object::of(&json!({ "metadata": { "uid": uid, "annotations": annotations } }))
    }

    fn life(pod: &Pod) -> Life {
        Life::of(pod, &Behavior::of_pod(pod, &Behavior::default(), &Caches::default().with::<ConfigMap>()))
    }

    #[test]
    fn what_is_not_said_or_makes_no_sense_is_as_usual() {
        let said = json!({ "simulated.setpoint.dev/run-seconds": "7", "simulated.setpoint.dev/pull-seconds": "-1" });
        let said = life(&pod("u", &said));
        assert_eq!((said.run, said.delay), (Some(Duration::from_secs(7)), Duration::ZERO));
        assert_eq!(life(&pod("u", &json!({}))).run, None);
    }

    #[test]
    fn so_many_runs_fail_as_the_rate_says() {
        let life = life(&pod("u", &json!({ "simulated.setpoint.dev/failure-rate": "0.3" })));
        let failed = (0..1000).filter(|number| life.code(&pod(&format!("uid-{number}"), &json!({})), 0) == 1).count();
        assert!((250..350).contains(&failed), "{failed}");
    }
}
