//! ResourceSlices: the devices a driver offers, and which nodes can reach them.

use crate::strategy::device::{TAINT_EFFECTS, validate_pool_name, validate_qualified_name};
use crate::strategy::place::Place;
use crate::strategy::volume::validate_driver_name;
use crate::strategy::{PLAIN, Strategy, node_selector};
use object::field::{Error, Errors};
use object::{Value, View, name};

pub const STRATEGY: Strategy = Strategy { validate: Some(validate), warn: Some(warn), generation: true, ..PLAIN };

const MAX_DEVICES: usize = 128;
/// Taints, counters and lists of attributes make each device larger.
const MAX_LARGE_DEVICES: usize = 64;
const MAX_COUNTER_SETS: usize = 8;
const MAX_PROPERTIES: usize = 32;
const MAX_TAINTS: usize = 16;
const VALUE_MAX_BYTES: usize = 64;
const NODES_OF_SLICE: [&str; 4] = ["nodeName", "nodeSelector", "allNodes", "perDeviceNodeSelection"];
const NODES_OF_DEVICE: [&str; 3] = ["nodeName", "nodeSelector", "allNodes"];
const VALUES: [&str; 8] = ["int", "bool", "string", "version", "ints", "bools", "strings", "versions"];

fn validate(new: &Value, old: Option<&Value>, errors: &mut Errors) {
    let spec = Place::root(new).child("spec");
    validate_driver_name(&spec.child("driver"), errors);
    validate_pool(&spec.child("pool"), errors);
    if let Some(old) = old {
        for path in [&["pool", "name"][..], &["driver"], &["nodeName"]] {
            spec.descend(path).unchanged(old.at("spec").path(path), errors);
        }
    }
    let one = "exactly one of `nodeName`, `nodeSelector`, `allNodes`, `perDeviceNodeSelection` is required";
    validate_nodes(&spec, &NODES_OF_SLICE, "must be either unset or set to a non-empty string", one, errors);
    let terms = spec.descend(&["nodeSelector", "nodeSelectorTerms"]);
    if terms.as_array().is_some_and(|terms| terms.len() > 1) {
        errors.push(terms.invalid("must have exactly one node selector term"));
    }
    if spec.has("sharedCounters") && spec.has("devices") {
        errors.push(Error::invalid(&spec.path, "", "only one of `sharedCounters` or `devices` is allowed"));
    }
    let is_large = |device: &Value| {
        device.has("taints")
            || device.has("consumesCounters")
            || device.entries("attributes").any(|(_, value)| VALUES[4..].iter().any(|list| value.has(list)))
    };
    let max = if spec.items("devices").iter().any(is_large) { MAX_LARGE_DEVICES } else { MAX_DEVICES };
    spec.child("devices").at_most(max, errors);
    spec.list("devices").for_each(|device| validate_device(&device, spec.flag("perDeviceNodeSelection"), errors));
    spec.unique_by("devices", "name", errors);
    spec.child("sharedCounters").at_most(MAX_COUNTER_SETS, errors);
    for set in spec.list("sharedCounters") {
        set.child("name").required_follows(name::dns_label, errors);
        set.child("counters").required("", errors);
    }
    spec.unique_by("sharedCounters", "name", errors);
}

fn validate_pool(pool: &Place, errors: &mut Errors) {
    validate_pool_name(&pool.child("name"), errors);
    let (count, generation) = (pool.child("resourceSliceCount"), pool.child("generation"));
    if count.as_i64().unwrap_or_default() <= 0 {
        errors.push(count.invalid("must be greater than zero"));
    }
    if generation.as_i64().unwrap_or_default() < 0 {
        errors.push(generation.invalid("must be greater than or equal to zero"));
    }
}

/// Exactly one way to say which nodes are meant.
fn validate_nodes(place: &Place, ways: &[&str], not_empty: &str, one: &str, errors: &mut Errors) {
    let mut set = Vec::new();
    for way in ways.iter().filter(|way| place.has(way)) {
        let value = place.child(way);
        match value.value {
            Value::Bool(false) => errors.push(value.invalid("must be either unset or set to true")),
            Value::String(text) if text.is_empty() => errors.push(value.invalid(not_empty)),
            Value::String(_) => {
                set.push(format!("`{way}`"));
                value.follows(name::dns_subdomain, errors);
            }
            Value::Object(_) => {
                set.push(format!("`{way}`"));
                node_selector::validate(&value, errors);
            }
            _ => set.push(format!("`{way}`")),
        }
    }
    match set.len() {
        0 => errors.push(Error::required(&place.path, one)),
        1 => {}
        _ => {
            let detail = format!("{one}, but multiple fields are set");
            errors.push(Error::invalid(&place.path, format!("{{{}}}", set.join(", ")), detail));
        }
    }
}

fn validate_device(device: &Place, selects_nodes: bool, errors: &mut Errors) {
    device.child("name").follows(name::dns_label, errors);
    let properties = device.entries("attributes").count() + device.entries("capacity").count();
    if properties > MAX_PROPERTIES {
        let detail = format!("the total number of attributes and capacities must not exceed {MAX_PROPERTIES}");
        errors.push(Error::invalid(&device.path, properties, detail));
    }
    for (key, attribute) in device.map("attributes") {
        validate_qualified_name(key, &device.child("attributes"), errors);
        validate_attribute(&attribute, errors);
    }
    for (key, _) in device.map("capacity") {
        validate_qualified_name(key, &device.child("capacity"), errors);
    }
    device.child("taints").at_most(MAX_TAINTS, errors);
    for taint in device.list("taints") {
        taint.child("key").follows(name::qualified_name, errors);
        taint.child("value").optional_follows(name::label_value, errors);
        taint.child("effect").required_one_of(&TAINT_EFFECTS, errors);
    }
    if selects_nodes {
        let one = "exactly one of `nodeName`, `nodeSelector`, or `allNodes` is required when `perDeviceNodeSelection` is set \
                   to true in the ResourceSlice spec";
        validate_nodes(device, &NODES_OF_DEVICE, "must not be empty", one, errors);
    } else if NODES_OF_DEVICE.iter().any(|field| device.has(field)) {
        let detail = "`nodeName`, `nodeSelector` and `allNodes` can only be set if `perDeviceNodeSelection` is set to true in \
                      the ResourceSlice spec";
        errors.push(Error::invalid(&device.path, Value::Null, detail));
    }
}

fn validate_attribute(attribute: &Place, errors: &mut Errors) {
    for text in ["string", "version"].map(|field| attribute.child(field)) {
        text.shorter_than(VALUE_MAX_BYTES, errors);
    }
    for field in &VALUES[4..] {
        let list = attribute.child(field);
        if list.as_array().is_some_and(Vec::is_empty) {
            errors.push(list.invalid("must not be empty if specified"));
        }
        attribute.list(field).for_each(|item| item.shorter_than(VALUE_MAX_BYTES, errors));
    }
    match VALUES.iter().filter(|field| attribute.has(field)).count() {
        0 => errors.push(Error::invalid(&attribute.path, "", "exactly one value must be specified")),
        1 => {}
        _ => errors.push(attribute.invalid("exactly one value must be specified")),
    }
}

fn warn(new: &Value, _old: Option<&Value>) -> Vec<String> {
    let driver = new.at("spec").text("driver");
    let has_capitals = driver.chars().any(char::is_uppercase);
    let warning = || format!("spec.driver: driver names should be lowercase; {driver:?} contains uppercase characters");
    has_capitals.then(warning).into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::strategy::place::testing::{each_change_has_its_message, each_mistake_has_its_message};
    use object::json;

    #[test]
    fn each_mistake_is_reported() {
        let good = json!({ "spec": {
            "driver": "gpu.example.com", "pool": { "name": "n1", "resourceSliceCount": 1 }, "nodeName": "n1",
            "devices": [{ "name": "a", "attributes": { "model": { "string": "x" } } }],
        } });
        each_mistake_has_its_message(
            &STRATEGY,
            "resource.v1.ResourceSlice",
            &good,
            &[
                (
                    "spec.nodeName",
                    json!(null),
                    &[
                        "spec: Required value: exactly one of `nodeName`, `nodeSelector`, `allNodes`, `perDeviceNodeSelection` is \
                   required",
                    ],
                ),
                (
                    "spec.allNodes",
                    json!(true),
                    &[
                        "spec: Invalid value: \"{`nodeName`, `allNodes`}\": exactly one of `nodeName`, `nodeSelector`, `allNodes`, \
                   `perDeviceNodeSelection` is required, but multiple fields are set",
                    ],
                ),
                (
                    "spec.pool.resourceSliceCount",
                    json!(0),
                    &["spec.pool.resourceSliceCount: Invalid value: 0: must be greater than zero"],
                ),
                ("spec.devices.1", json!({ "name": "a" }), &["spec.devices[1].name: Duplicate value: \"a\""]),
                (
                    "spec.devices.0.attributes.model",
                    json!({}),
                    &["spec.devices[0].attributes[model]: Invalid value: \"\": exactly one value must be specified"],
                ),
            ],
        );
        each_change_has_its_message(
            &STRATEGY,
            "resource.v1.ResourceSlice",
            &good,
            &[(
                "spec.driver",
                json!("other.example.com"),
                &["spec.driver: Invalid value: \"other.example.com\": field is immutable"],
            )],
        );
    }
}
