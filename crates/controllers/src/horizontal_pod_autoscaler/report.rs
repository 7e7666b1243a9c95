//! What an autoscaler says of itself.

use kinds::{HorizontalPodAutoscaler, Object, Time};
use object::{Edit, Value, View, json};

/// The conditions, in the order in which they first came.
pub(super) struct Conditions {
    conditions: Vec<Value>,
    /// The status as it was.
    before: Value,
    generation: i64,
    now: Time,
}

impl Conditions {
    pub(super) fn of(autoscaler: &Object<HorizontalPodAutoscaler>, now: Time) -> Self {
        let before = autoscaler.json().remove("status");
        Conditions {
            conditions: before.items("conditions").to_vec(),
            before,
            generation: autoscaler.metadata.generation,
            now,
        }
    }

    pub(super) fn set(&mut self, kind: &str, holds: bool, reason: &str, message: &str) {
        let status = if holds { "True" } else { "False" };
        let known = self.conditions.iter().position(|condition| condition.text("type") == kind);
        let since = known.map(|at| &self.conditions[at]).filter(|known| known.text("status") == status);
        let since = since.map_or_else(|| Value::from(self.now), |known| known.at("lastTransitionTime").clone());
        let condition = json!({
            "type": kind, "status": status, "lastTransitionTime": since, "reason": reason, "message": message,
        });
        match known {
            Some(at) => self.conditions[at] = condition,
            None => self.conditions.push(condition),
        }
    }

    /// A status in which nothing but the conditions is new.
    pub(super) fn only(self) -> Value {
        let mut status = if self.before.is_object() { self.before } else { json!({}) };
        status.set("conditions", self.conditions);
        status
    }

    pub(super) fn status(self, current: i32, desired: i32, metrics: &[Value]) -> Value {
        json!({
            "observedGeneration": Some(self.generation).filter(|generation| *generation > 0),
            "lastScaleTime": self.before.at("lastScaleTime"),
            "currentReplicas": Some(current).filter(|current| *current > 0),
            "desiredReplicas": desired,
            "currentMetrics": Some(metrics).filter(|metrics| !metrics.is_empty()),
            "conditions": self.conditions,
        })
    }
}
