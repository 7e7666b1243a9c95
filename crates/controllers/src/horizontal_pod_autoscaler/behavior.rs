//! How fast the number of replicas may change.
//!
//! Pure functions on what was recommended and done lately. An autoscaler that says nothing of its behaviour follows older
//! rules than one that says something, if only the default: it holds back on the way down alone, and may double.

use super::report::Conditions;
use kinds::{HorizontalPodAutoscalerSpec, Time};
use object::{Quantity, Value, View};
use std::time::Duration;

/// For how long a lower number is held back unless the autoscaler says otherwise.
const DOWN_WINDOW: Duration = Duration::from_secs(300);
/// How far usage may be off its target before anything is done about it.
const TOLERANCE: f64 = 0.1;
/// Nothing may be looked back at for longer: the longest window that can be asked for.
const MAX_WINDOW: Duration = Duration::from_secs(3600);

/// What was recommended, and what was done, with the time.
#[derive(Clone, Debug, Default)]
pub(super) struct History {
    recommendations: Vec<(Time, i32)>,
    /// By how much the number was changed; down is negative.
    changes: Vec<(Time, i32)>,
    /// A change of which it is not known yet whether the API accepted it.
    pending: i32,
}

impl History {
    /// The first number there is counts as recommended.
    pub(super) fn begin(&mut self, replicas: i32, now: Time) {
        if self.recommendations.is_empty() {
            self.recommendations.push((now, replicas));
        }
        let forgotten = now - MAX_WINDOW;
        // The newest stays, so that the beginning is not taken for a second one.
        let keep_from = self.recommendations.iter().position(|(at, _)| *at >= forgotten);
        let keep_from = keep_from.unwrap_or(self.recommendations.len() - 1);
        self.recommendations.drain(..keep_from);
        self.changes.retain(|(at, _)| *at >= forgotten);
    }

    pub(super) fn scale(&mut self, from: i32, to: i32) {
        self.pending = to - from;
    }

    /// The change that was last made stands.
    pub(super) fn settle(&mut self, at: Time) {
        self.changes.push((at, self.pending));
        self.pending = 0;
    }

    pub(super) fn forget_pending(&mut self) {
        self.pending = 0;
    }

    /// What was recommended within a time.
    fn within(&self, window: Duration, now: Time) -> impl Iterator<Item = i32> {
        let cutoff = now - window;
        self.recommendations.iter().filter(move |(at, _)| *at > cutoff).map(|(_, replicas)| *replicas)
    }

    /// By how much the number was changed within a time.
    fn changed(&self, period: Duration, now: Time) -> i32 {
        let cutoff = now - period;
        self.changes.iter().filter(|(at, _)| *at > cutoff).map(|(_, change)| change).sum()
    }
}

/// What an autoscaler says of how it may scale.
#[derive(Clone, Debug)]
pub(super) struct Behavior {
    up: Rules,
    down: Rules,
    /// It says something of it at all.
    is_given: bool,
}

#[derive(Clone, Debug)]
struct Rules {
    window: Duration,
    select: Select,
    policies: Vec<Policy>,
    tolerance: f64,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Select {
    Max,
    Min,
    Disabled,
}

#[derive(Clone, Copy, Debug)]
struct Policy {
    is_percent: bool,
    value: i32,
    period: Duration,
}

/// How far usage may be off on either side.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tolerance {
    down: f64,
    up: f64,
}

impl Tolerance {
    pub(super) fn allows(self, ratio: f64) -> bool {
        1.0 - self.down <= ratio && ratio <= 1.0 + self.up
    }
}

impl Behavior {
    pub(super) fn of(spec: &HorizontalPodAutoscalerSpec) -> Self {
        let given = spec.behavior.as_ref();
        let rules = |field: &str, window| Rules::of(given.map_or(&Value::Null, |given| given.at(field)), window);
        Behavior {
            up: rules("scaleUp", Duration::ZERO),
            down: rules("scaleDown", DOWN_WINDOW),
            is_given: given.is_some(),
        }
    }

    pub(super) fn tolerance(&self) -> Tolerance {
        Tolerance { down: self.down.tolerance, up: self.up.tolerance }
    }

    /// The number that is allowed of what is proposed; why it is another one stands in the conditions.
    pub(super) fn normalize(
        &self,
        history: &mut History,
        current: i32,
        proposed: i32,
        bounds: (i32, i32),
        now: Time,
        conditions: &mut Conditions,
    ) -> i32 {
        let stable = self.stabilize(history, current, proposed, now);
        history.recommendations.push((now, proposed));
        let (reason, message) = match stable {
            _ if stable == proposed => ("ReadyForNewScale", "recommended size matches current size"),
            _ if self.is_given && proposed >= current => (
                "ScaleUpStabilized",
                "recent recommendations were lower than current one, applying the lowest recent recommendation",
            ),
            _ => (
                "ScaleDownStabilized",
                "recent recommendations were higher than current one, applying the highest recent recommendation",
            ),
        };
        conditions.set("AbleToScale", true, reason, message);
        let (allowed, reason, message) = self.limit(history, current, stable, bounds, now);
        conditions.set("ScalingLimited", allowed != stable, reason, message);
        allowed
    }

    /// What is recommended if what was recommended lately counts too.
    fn stabilize(&self, history: &History, current: i32, proposed: i32, now: Time) -> i32 {
        let highest = history.within(self.down.window, now).fold(proposed, i32::max);
        if !self.is_given {
            return highest;
        }
        let lowest = history.within(self.up.window, now).fold(proposed, i32::min);
        current.max(lowest).min(highest)
    }

    fn limit(
        &self,
        history: &History,
        current: i32,
        wanted: i32,
        (min, max): (i32, i32),
        now: Time,
    ) -> (i32, &'static str, &'static str) {
        let (floor, ceiling) = if self.is_given {
            // Each side is looked at only when the number moves that way.
            let floor = if wanted < current { self.down.floor(history, current, now) } else { i32::MIN };
            let ceiling = if wanted > current { self.up.ceiling(history, current, now) } else { i32::MAX };
            (floor, ceiling)
        } else {
            (i32::MIN, current.saturating_mul(2).max(4))
        };
        let moves_or_old = |moves: bool| moves || !self.is_given;
        if wanted > max.min(ceiling) && moves_or_old(wanted > current) {
            return match max > ceiling {
                true => {
                    let message = "the desired replica count is increasing faster than the maximum scale rate";
                    (ceiling, "ScaleUpLimit", message)
                }
                false => (max, "TooManyReplicas", "the desired replica count is more than the maximum replica count"),
            };
        }
        if wanted < min.max(floor) && moves_or_old(wanted < current) {
            return match min < floor {
                true => {
                    let message = "the desired replica count is decreasing faster than the maximum scale rate";
                    (floor, "ScaleDownLimit", message)
                }
                false => (min, "TooFewReplicas", "the desired replica count is less than the minimum replica count"),
            };
        }
        (wanted, "DesiredWithinRange", "the desired count is within the acceptable range")
    }
}

impl Rules {
    fn of(given: &Value, window: Duration) -> Self {
        let seconds =
            |value: Option<i64>| value.and_then(|seconds| u64::try_from(seconds).ok()).map(Duration::from_secs);
        let policies = given.items("policies").iter().map(|policy| Policy {
            is_percent: policy.text("type") == "Percent",
            value: i32::try_from(policy.int("value").unwrap_or(0)).unwrap_or(i32::MAX),
            period: seconds(policy.int("periodSeconds")).unwrap_or_default(),
        });
        let tolerance = given.text("tolerance").parse::<Quantity>().ok();
        Rules {
            window: seconds(given.int("stabilizationWindowSeconds")).unwrap_or(window),
            select: match given.text("selectPolicy") {
                "Min" => Select::Min,
                "Disabled" => Select::Disabled,
                _ => Select::Max,
            },
            policies: policies.collect(),
            tolerance: tolerance.map_or(TOLERANCE, Quantity::approximate),
        }
    }

    /// The most there may be now.
    fn ceiling(&self, history: &History, current: i32, now: Time) -> i32 {
        let allowed = self.allowed(history, current, now, |start, policy| match policy.is_percent {
            true => (start * (1.0 + f64::from(policy.value) / 100.0)).ceil(),
            false => start + f64::from(policy.value),
        });
        let chosen = if self.select == Select::Min { allowed.min() } else { allowed.max() };
        chosen.unwrap_or(current).max(current)
    }

    /// The fewest there may be now.
    fn floor(&self, history: &History, current: i32, now: Time) -> i32 {
        let allowed = self.allowed(history, current, now, |start, policy| match policy.is_percent {
            true => (start * (1.0 - f64::from(policy.value) / 100.0)).trunc(),
            false => start - f64::from(policy.value),
        });
        let chosen = if self.select == Select::Min { allowed.max() } else { allowed.min() };
        chosen.unwrap_or(current).min(current)
    }

    /// What each policy allows, from the number that was there when its period began.
    fn allowed(
        &self,
        history: &History,
        current: i32,
        now: Time,
        change: impl Fn(f64, &Policy) -> f64,
    ) -> impl Iterator<Item = i32> {
        let policies = if self.select == Select::Disabled { &[] } else { self.policies.as_slice() };
        policies.iter().map(move |policy| {
            let start = current - history.changed(policy.period, now);
            // The bounds of the type are those of the number, and rounding is done above.
            change(f64::from(start), policy) as i32
        })
    }
}
