//! ResourceSlices: the devices a driver offers, and which nodes can reach them.

use crate::strategy::device::{validate_binding_conditions, validate_pool_name, validate_qualified_name};
use crate::strategy::place::Place;
use crate::strategy::volume::validate_driver_name;
use crate::strategy::{PLAIN, Strategy, device_capacity, device_taint, node_selector};
use object::field::Errors;
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
    let spec = Place::field_of(new, "spec");
    validate_driver_name(&spec.field("driver"), errors);
    validate_pool(&spec.field("pool"), errors);
    if let Some(old) = old {
        for path in [&["pool", "name"][..], &["driver"], &["nodeName"]] {
            spec.descend(path).unchanged(errors, old.at("spec").path(path));
        }
    }
    let one = "exactly one of `nodeName`, `nodeSelector`, `allNodes`, `perDeviceNodeSelection` is required";
    validate_nodes(&spec, &NODES_OF_SLICE, "must be either unset or set to a non-empty string", one, errors);
    let terms = spec.descend(&["nodeSelector", "nodeSelectorTerms"]);
    if terms.value().as_array().is_some_and(|terms| terms.len() > 1) {
        terms.invalid(errors, "must have exactly one node selector term");
    }
    if spec.field("sharedCounters").is_set() && spec.field("devices").is_set() {
        spec.invalid_value(errors, "", "only one of `sharedCounters` or `devices` is allowed");
    }
    let is_large = |device: &Value| {
        device.has("taints")
            || device.has("consumesCounters")
            || device.entries("attributes").any(|(_, value)| VALUES[4..].iter().any(|list| value.has(list)))
    };
    let max = if spec.field("devices").values().iter().any(is_large) { MAX_LARGE_DEVICES } else { MAX_DEVICES };
    spec.field("devices").at_most(errors, max);
    spec.field("devices")
        .items()
        .for_each(|device| validate_device(&device, spec.field("perDeviceNodeSelection").flag(), errors));
    spec.field("devices").unique_by(errors, "name");
    spec.field("sharedCounters").at_most(errors, MAX_COUNTER_SETS);
    for set in spec.field("sharedCounters").items() {
        set.field("name").require_follows(errors, name::dns_label);
        set.field("counters").require(errors);
    }
    spec.field("sharedCounters").unique_by(errors, "name");
}

fn validate_pool(pool: &Place, errors: &mut Errors) {
    validate_pool_name(&pool.field("name"), errors);
    let (count, generation) = (pool.field("resourceSliceCount"), pool.field("generation"));
    if count.int() <= 0 {
        count.invalid(errors, "must be greater than zero");
    }
    if generation.int() < 0 {
        generation.invalid(errors, "must be greater than or equal to zero");
    }
}

/// Exactly one way to say which nodes are meant.
fn validate_nodes(place: &Place, ways: &[&str], not_empty: &str, one: &str, errors: &mut Errors) {
    let mut set = Vec::new();
    for way in ways.iter().filter(|way| place.field(way).is_set()) {
        let value = place.field(way);
        match value.value() {
            Value::Bool(false) => value.invalid(errors, "must be either unset or set to true"),
            Value::String(text) if text.is_empty() => value.invalid(errors, not_empty),
            Value::String(_) => {
                set.push(format!("`{way}`"));
                value.follows(errors, name::dns_subdomain);
            }
            Value::Object(_) => {
                set.push(format!("`{way}`"));
                node_selector::validate(&value, errors);
            }
            _ => set.push(format!("`{way}`")),
        }
    }
    match set.len() {
        0 => place.required(errors, one),
        1 => {}
        _ => {
            let detail = format!("{one}, but multiple fields are set");
            place.invalid_value(errors, format!("{{{}}}", set.join(", ")), detail);
        }
    }
}

fn validate_device(device: &Place, selects_nodes: bool, errors: &mut Errors) {
    device.field("name").follows(errors, name::dns_label);
    let properties = device.value().entries("attributes").count() + device.value().entries("capacity").count();
    if properties > MAX_PROPERTIES {
        let detail = format!("the total number of attributes and capacities must not exceed {MAX_PROPERTIES}");
        device.invalid_value(errors, properties, detail);
    }
    for (key, attribute) in device.field("attributes").entries() {
        validate_qualified_name(key, &device.field("attributes"), errors);
        validate_attribute(&attribute, errors);
    }
    let is_shared = device.field("allowMultipleAllocations").flag();
    for (key, capacity) in device.field("capacity").entries() {
        validate_qualified_name(key, &device.field("capacity"), errors);
        device_capacity::validate(&capacity, is_shared, errors);
    }
    device.field("taints").at_most(errors, MAX_TAINTS);
    device.field("taints").items().for_each(|taint| device_taint::validate_taint(&taint, errors));
    validate_binding_conditions(device, errors);
    if selects_nodes {
        let one = "exactly one of `nodeName`, `nodeSelector`, or `allNodes` is required when `perDeviceNodeSelection` is set \
                   to true in the ResourceSlice spec";
        validate_nodes(device, &NODES_OF_DEVICE, "must not be empty", one, errors);
    } else if NODES_OF_DEVICE.iter().any(|field| device.field(field).is_set()) {
        let detail = "`nodeName`, `nodeSelector` and `allNodes` can only be set if `perDeviceNodeSelection` is set to true in \
                      the ResourceSlice spec";
        device.invalid_value(errors, Value::Null, detail);
    }
}

fn validate_attribute(attribute: &Place, errors: &mut Errors) {
    for text in ["string", "version"].map(|field| attribute.field(field)) {
        text.shorter_than(errors, VALUE_MAX_BYTES);
    }
    for field in &VALUES[4..] {
        let list = attribute.field(field);
        if list.value().as_array().is_some_and(Vec::is_empty) {
            list.invalid(errors, "must not be empty if specified");
        }
        attribute.field(field).items().for_each(|item| item.shorter_than(errors, VALUE_MAX_BYTES));
    }
    match VALUES.iter().filter(|field| attribute.field(field).is_set()).count() {
        0 => attribute.invalid_value(errors, "", "exactly one value must be specified"),
        1 => {}
        _ => attribute.invalid(errors, "exactly one value must be specified"),
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

    use crate::strategy::check::{each_change_has_its_message, each_mistake_has_its_message};
    use object::json;

    #[test]
    fn each_mistake_is_reported() {
        let good = json!({ "spec": {
            "driver": "gpu.example.com", "pool": { "name": "n1", "resourceSliceCount": 1 }, "nodeName": "n1",
            "devices": [{ "name": "a", "attributes": { "model": { "string": "x" } } }],
        } });
        each_mistake_has_its_message(
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
                (
                    "spec.devices.0.bindingConditions",
                    json!(["example.com/ready"]),
                    &["spec.devices[0].bindingFailureConditions: Invalid value: []: bindingFailureConditions are \
                       required to use bindingConditions"],
                ),
            ],
        );
        each_change_has_its_message(
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
