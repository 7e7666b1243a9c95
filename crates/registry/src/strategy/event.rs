//! Events, in the core group and in their own: two versions of one kind with different names for the same fields.

use crate::strategy::place::Place;
use crate::strategy::value::same;
use crate::strategy::{PLAIN, Strategy};
use object::field::Errors;
use object::{Value, View, name};

pub const CORE: Strategy = Strategy {
    name: |_| Vec::new(),
    validate: Some(|new, _, errors| validate_common(new, &CORE_NAMES, errors)),
    create_on_update: true,
    ..PLAIN
};
pub const EVENTS: Strategy =
    Strategy { name: name::dns_subdomain, validate: Some(validate_strictly), create_on_update: true, ..PLAIN };

const MAX_BYTES: usize = 128;
const MESSAGE_MAX_BYTES: usize = 1024;

/// What the fields are called in a version. Messages name most of them as the core group does.
struct Names {
    involved: &'static str,
    message: &'static str,
    controller: &'static str,
}

const CORE_NAMES: Names = Names { involved: "involvedObject", message: "message", controller: "reportingComponent" };
const EVENTS_NAMES: Names = Names { involved: "regarding", message: "note", controller: "reportingController" };

/// What the events group calls a field and how messages call it, for all that does not change.
const IMMUTABLE: [(&str, &str); 13] = [
    ("regarding", "involvedObject"),
    ("reason", "reason"),
    ("note", "message"),
    ("deprecatedSource", "source"),
    ("deprecatedFirstTimestamp", "firstTimestamp"),
    ("deprecatedLastTimestamp", "lastTimestamp"),
    ("deprecatedCount", "count"),
    ("type", "type"),
    ("eventTime", "eventTime"),
    ("action", "action"),
    ("related", "related"),
    ("reportingController", "reportingController"),
    ("reportingInstance", "reportingInstance"),
];
/// What only events of old carry.
const DEPRECATED: [(&str, &str); 4] = [
    ("deprecatedFirstTimestamp", "firstTimestamp"),
    ("deprecatedLastTimestamp", "lastTimestamp"),
    ("deprecatedCount", "count"),
    ("deprecatedSource", "source"),
];

/// Whom an event is about lives where the event lives. Events with a time of their own say who saw what.
fn validate_common(event: &Value, names: &Names, errors: &mut Errors) {
    let namespace = event.at("metadata").text("namespace");
    let involved = event.at(names.involved).text("namespace");
    let has_time = event.has("eventTime");
    let matches = match (involved, has_time) {
        ("", false) => matches!(namespace, "" | "default"),
        ("", true) => matches!(namespace, "default" | "kube-system"),
        (involved, false) => involved == namespace,
        (_, true) => true,
    };
    if !matches {
        let place = Place::named(event, "involvedObject.namespace");
        place.invalid_value(errors, involved, "does not match event.namespace");
    }
    if has_time {
        let root = Place::object(event);
        let controller = root.field(names.controller);
        controller.require(errors);
        controller.follows(errors, name::qualified_name);
        for field in ["reportingInstance", "action", "reason"] {
            let place = root.field(field);
            place.require(errors);
            validate_length(&place, MAX_BYTES, errors);
        }
        validate_length(&Place::named(event.at(names.message), "message"), MESSAGE_MAX_BYTES, errors);
    }
    Place::named(event, "namespace").text_follows(errors, namespace, name::dns_subdomain);
}

fn validate_length(place: &Place, max: usize, errors: &mut Errors) {
    if place.text().len() > max {
        place.invalid_value(errors, "", format!("can have at most {max} characters"));
    }
}

fn validate_strictly(new: &Value, old: Option<&Value>, errors: &mut Errors) {
    validate_common(new, &EVENTS_NAMES, errors);
    let event = Place::object(new);
    match old {
        None => {
            validate_series(new, errors);
            event.field("eventTime").require(errors);
            if !matches!(new.text("type"), "Normal" | "Warning") {
                let detail = format!("has invalid value: {}", new.text("type"));
                event.field("type").invalid_value(errors, "", detail);
            }
            for (field, shown) in DEPRECATED {
                let place = event.field(field);
                if !place.is_empty() && place.number() != Some(0) {
                    Place::named(place.value(), shown).invalid_value(errors, "", "needs to be unset");
                }
            }
        }
        Some(old) => {
            if !same(new.at("series"), old.at("series")) {
                validate_series(new, errors);
            }
            for (field, shown) in IMMUTABLE {
                Place::named(new.at(field), shown).unchanged(errors, old.at(field));
            }
        }
    }
}

fn validate_series(event: &Value, errors: &mut Errors) {
    let series = Place::field_of(event, "series");
    if series.is_set() {
        if series.field("count").int() < 2 {
            series.field("count").invalid_value(errors, "", "should be at least 2");
        }
        series.field("lastObservedTime").require(errors);
    }
}

#[cfg(test)]
mod tests {

    use crate::strategy::check::{each_change_has_its_message, each_mistake_has_its_message};
    use object::json;

    #[test]
    fn an_event_lives_where_its_object_does() {
        let good = json!({ "metadata": { "namespace": "a" }, "involvedObject": { "namespace": "a" } });
        each_mistake_has_its_message(
            "core.v1.Event",
            &good,
            &[(
                "involvedObject.namespace",
                json!("b"),
                &["involvedObject.namespace: Invalid value: \"b\": does not match event.namespace"],
            )],
        );
    }

    #[test]
    fn the_newer_version_is_strict_and_stays() {
        let good = json!({
            "metadata": { "namespace": "a" }, "regarding": { "namespace": "a" }, "eventTime": "2026-01-02T03:04:05.000000Z",
            "type": "Normal", "reason": "Started", "action": "Starting", "reportingController": "x.io/y", "reportingInstance": "z",
        });
        each_mistake_has_its_message(
            "events.v1.Event",
            &good,
            &[
                ("type", json!("Odd"), &["type: Invalid value: \"\": has invalid value: Odd"]),
                ("action", json!(""), &["action: Required value"]),
                ("deprecatedCount", json!(3), &["count: Invalid value: \"\": needs to be unset"]),
                (
                    "series",
                    json!({ "count": 1, "lastObservedTime": "2026-01-02T03:04:05.000000Z" }),
                    &["series.count: Invalid value: \"\": should be at least 2"],
                ),
                ("note", json!("x".repeat(1025)), &["message: Invalid value: \"\": can have at most 1024 characters"]),
            ],
        );
        each_change_has_its_message(
            "events.v1.Event",
            &good,
            &[
                ("reason", json!("Stopped"), &["reason: Invalid value: \"Stopped\": field is immutable"]),
                ("note", json!("new"), &["message: Invalid value: \"new\": field is immutable"]),
            ],
        );
    }
}
