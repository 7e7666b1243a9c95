//! Conversions between the versions of one kind. An object is stored in one version and served in any.
//!
//! What an older version cannot hold travels in annotations, so going there and back changes nothing.

mod autoscaler;

use crate::Resource;
pub(crate) use autoscaler::to_newer as autoscaler_to_newer;
use object::{Edit, Value, View};

/// A group and a version.
type Version = (&'static str, &'static str);
/// A kind, from where, to where, and how.
type Conversion = (&'static str, Version, Version, fn(&mut Value));

const EVENTS: Version = ("events.k8s.io", "v1");
const CORE: Version = ("", "v1");

const AUTOSCALERS: [Version; 2] = [("autoscaling", "v1"), ("autoscaling", "v2")];

/// Each kind with two versions, and the way from one to the other.
const CONVERSIONS: [Conversion; 4] = [
    ("Event", CORE, EVENTS, |event| rename(event, |(core, events)| (core, events))),
    ("Event", EVENTS, CORE, |event| rename(event, |(core, events)| (events, core))),
    ("HorizontalPodAutoscaler", AUTOSCALERS[0], AUTOSCALERS[1], autoscaler::to_newer),
    ("HorizontalPodAutoscaler", AUTOSCALERS[1], AUTOSCALERS[0], autoscaler::to_older),
];

/// Makes an object of one group and version one of another. The kind is the one the object names; a kind without a
/// conversion between the two only changes its version.
pub fn convert(value: &mut Value, from: (&str, &str), to: (&str, &str)) {
    if from == to {
        return;
    }
    let known = CONVERSIONS
        .iter()
        .find(|(kind, known_from, known_to, _)| *kind == value.text("kind") && *known_from == from && *known_to == to);
    if let Some((.., change)) = known {
        change(value);
    }
    let (group, version) = to;
    let api_version = if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") };
    value.set("apiVersion", api_version);
}

/// What a field of a kind is called in the version that is stored.
pub fn stored_field(resource: &Resource, field: &str) -> String {
    if resource.kind != "Event" || resource.group != EVENTS.0 {
        return field.to_owned();
    }
    let (first, rest) = field.split_once('.').map_or((field, None), |(first, rest)| (first, Some(rest)));
    let stored = EVENT_FIELDS.iter().find(|(_, served)| *served == first).map_or(first, |(stored, _)| stored);
    rest.map_or_else(|| stored.to_owned(), |rest| format!("{stored}.{rest}"))
}

/// What the core group and the events group call the same field.
const EVENT_FIELDS: [(&str, &str); 7] = [
    ("involvedObject", "regarding"),
    ("message", "note"),
    ("source", "deprecatedSource"),
    ("firstTimestamp", "deprecatedFirstTimestamp"),
    ("lastTimestamp", "deprecatedLastTimestamp"),
    ("count", "deprecatedCount"),
    ("reportingComponent", "reportingController"),
];

fn rename(event: &mut Value, direction: fn((&'static str, &'static str)) -> (&'static str, &'static str)) {
    for (from, to) in EVENT_FIELDS.map(direction) {
        match event.remove(from) {
            Value::Null => {}
            value => event.set(to, value),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use object::json;

    #[test]
    fn an_event_is_the_same_by_other_names() {
        let core = json!({
            "apiVersion": "v1", "kind": "Event", "metadata": { "name": "a", "namespace": "b" },
            "involvedObject": { "kind": "Pod", "name": "p" }, "message": "Started", "reason": "Started", "type": "Normal",
            "source": { "component": "kubelet" }, "firstTimestamp": "2026-01-02T03:04:05Z",
            "lastTimestamp": "2026-01-02T03:04:06Z", "count": 2, "reportingComponent": "kubelet", "reportingInstance": "n",
        });
        let mut event = core.clone();
        convert(&mut event, CORE, EVENTS);
        assert_eq!(event["apiVersion"], "events.k8s.io/v1");
        assert_eq!((&event["regarding"]["name"], &event["note"]), (&json!("p"), &json!("Started")));
        assert_eq!((&event["deprecatedCount"], event.has("count")), (&json!(2), false));
        convert(&mut event, EVENTS, CORE);
        assert_eq!(event, core);
    }

    #[test]
    fn a_kind_that_is_the_same_in_both_versions_only_changes_its_version() {
        let mut object = json!({ "apiVersion": "example.com/v1", "kind": "Thing", "spec": {} });
        convert(&mut object, ("example.com", "v1"), ("example.com", "v2"));
        assert_eq!(object, json!({ "apiVersion": "example.com/v2", "kind": "Thing", "spec": {} }));
    }
}
