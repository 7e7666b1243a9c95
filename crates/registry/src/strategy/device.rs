//! Devices that are asked for: DeviceClasses, ResourceClaims and the templates of claims.

use crate::strategy::place::Place;
use crate::strategy::value::set_if_empty;
use crate::strategy::volume::validate_driver_name;
use crate::strategy::{PLAIN, Strategy, device_taint, node_selector, resource_name};
use cel::DeviceSelector;
use object::field::Errors;
use object::{Edit, Value, View, json, name};

pub const DEVICE_CLASS: Strategy = Strategy { validate: Some(validate_class), generation: true, ..PLAIN };
pub const RESOURCE_CLAIM: Strategy = Strategy {
    default: Some(|claim| default_spec(claim.object_or_new("spec"))),
    validate: Some(validate_claim),
    validate_status: Some(validate_claim_status),
    ..PLAIN
};
pub const RESOURCE_CLAIM_TEMPLATE: Strategy = Strategy {
    default: Some(|template| default_spec(template.object_or_new("spec").object_or_new("spec"))),
    validate: Some(validate_template),
    ..PLAIN
};

const MAX_ITEMS: usize = 32;
const MAX_ALTERNATIVES: usize = 8;
const MAX_CONSUMERS: usize = 256;
const MAX_BINDING_CONDITIONS: usize = 4;
const MAX_BYTES: usize = 10 * 1024;
const IDENTIFIER_MAX_BYTES: usize = 32;
const NO_SUCH_REQUEST: &str =
    "must be the name of a request in the claim or the name of a request and a subrequest separated by '/'";

fn default_spec(spec: &mut Value) {
    let Some(devices) = spec.object("devices") else { return };
    for request in devices.each("requests") {
        request.each("firstAvailable").for_each(default_request);
        if let Some(exactly) = request.object("exactly") {
            default_request(exactly);
        }
    }
}

fn default_request(request: &mut Value) {
    set_if_empty(request, "allocationMode", "ExactCount");
    if request.text("allocationMode") == "ExactCount" && request.int("count").unwrap_or_default() == 0 {
        request.set("count", 1);
    }
}

fn validate_class(new: &Value, _old: Option<&Value>, errors: &mut Errors) {
    let spec = Place::field_of(new, "spec");
    validate_selectors(&spec, errors);
    spec.field("config").at_most(errors, MAX_ITEMS);
    spec.field("config").items().for_each(|config| validate_configuration(&config, errors));
    let extended = spec.field("extendedResourceName");
    if extended.is_set() && !resource_name::is_extended(extended.text()) {
        extended.invalid(errors, "must be a valid extended resource name");
    }
}

fn validate_selectors(place: &Place, errors: &mut Errors) {
    place.field("selectors").at_most(errors, MAX_ITEMS);
    for selector in place.field("selectors").items() {
        let cel = selector.field("cel");
        if !cel.is_set() {
            cel.required(errors, "");
            continue;
        }
        validate_expression(&cel.field("expression"), errors);
    }
}

fn validate_expression(expression: &Place, errors: &mut Errors) {
    if expression.text().len() > MAX_BYTES {
        expression.too_long(errors, MAX_BYTES);
        return;
    }
    match DeviceSelector::compile(expression.text()) {
        Err(detail) => expression.invalid_value(errors, expression.text(), detail),
        Ok(selector) if selector.is_too_complex() => expression.forbidden(errors, "too complex, exceeds cost limit"),
        Ok(_) => {}
    }
}

fn validate_configuration(config: &Place, errors: &mut Errors) {
    let opaque = config.field("opaque");
    if !opaque.is_set() {
        opaque.required(errors, "");
        return;
    }
    validate_driver_name(&opaque.field("driver"), errors);
    let parameters = opaque.field("parameters");
    if !parameters.is_set() {
        parameters.required(errors, "");
    } else if !parameters.value().is_object() {
        parameters.invalid_value(errors, "<value omitted>", "must be a valid JSON object");
    } else if parameters.value().to_string().len() > MAX_BYTES {
        parameters.too_long(errors, MAX_BYTES);
    }
}

fn validate_claim(new: &Value, old: Option<&Value>, errors: &mut Errors) {
    let spec = Place::field_of(new, "spec");
    match old {
        Some(old) => spec.unchanged(errors, old.at("spec")),
        None => validate_devices(&spec.field("devices"), errors),
    }
}

fn validate_template(new: &Value, old: Option<&Value>, errors: &mut Errors) {
    let spec = Place::field_of(new, "spec");
    if let Some(old) = old {
        spec.unchanged(errors, old.at("spec"));
        return;
    }
    let metadata = spec.field("metadata");
    metadata.field("labels").labels(errors);
    let fields = metadata.value().as_object().into_iter().flatten();
    for (field, _) in fields.filter(|(field, _)| !matches!(field.as_str(), "labels" | "annotations")) {
        metadata.field(field).forbid(errors, "cannot be set");
    }
    validate_devices(&spec.descend(&["spec", "devices"]), errors);
}

fn validate_devices(devices: &Place, errors: &mut Errors) {
    for field in ["requests", "constraints", "config"] {
        devices.field(field).at_most(errors, MAX_ITEMS);
    }
    devices.field("requests").items().for_each(|request| validate_request(&request, errors));
    devices.field("requests").unique_by(errors, "name");
    for constraint in devices.field("constraints").items() {
        validate_references(&constraint, devices, errors);
        let attributes = ["matchAttribute", "distinctAttribute"].map(|field| constraint.field(field));
        match attributes.iter().find(|attribute| attribute.is_set()) {
            Some(attribute) => validate_attribute(attribute, errors),
            None => {
                let detail = "exactly one of \"matchAttribute\" or \"distinctAttribute\" is required, but multiple fields are set";
                constraint.required(errors, detail);
            }
        }
    }
    for config in devices.field("config").items() {
        validate_references(&config, devices, errors);
        validate_configuration(&config, errors);
    }
}

/// A name that says whose it is.
fn validate_attribute(attribute: &Place, errors: &mut Errors) {
    validate_qualified_name(attribute.text(), attribute, errors);
    if !attribute.text().contains('/') {
        attribute.invalid(errors, "a fully qualified name must be a domain and a name separated by a slash");
    }
}

/// A name of an attribute or a capacity: an identifier, and whose it is if it is not the driver's.
pub fn validate_qualified_name(text: &str, place: &Place, errors: &mut Errors) {
    let (domain, id) = text.split_once('/').map_or((None, text), |(domain, id)| (Some(domain), id));
    if let Some(domain) = domain {
        match domain {
            "" => place.invalid_value(errors, "", "the domain must not be empty"),
            domain => validate_driver_name(&place.with(&Value::from(domain)), errors),
        }
    }
    if domain.is_some() && id.is_empty() {
        place.invalid_value(errors, "", "the name must not be empty");
        return;
    }
    if id.len() > IDENTIFIER_MAX_BYTES {
        place.too_long(errors, IDENTIFIER_MAX_BYTES);
    }
    let starts_well = id.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_');
    if !starts_well || !id.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '_') {
        let detail = "a valid C identifier must start with alphabetic character or '_', followed by a string of \
                      alphanumeric characters or '_' (e.g. 'my_name',  or 'MY_NAME',  or 'MyName', regex used for \
                      validation is '[A-Za-z_][A-Za-z0-9_]*')";
        place.invalid_value(errors, id, detail);
    }
}

fn validate_request(request: &Place, errors: &mut Errors) {
    request.field("name").follows(errors, name::dns_label);
    let one = "exactly one of `exactly` or `firstAvailable` is required";
    match (request.field("exactly").is_set(), !request.field("firstAvailable").is_empty()) {
        (false, false) => request.required(errors, one),
        (true, true) => {
            let detail = format!("{one}, but multiple fields are set");
            request.invalid_value(errors, Value::Null, detail);
        }
        (true, false) => validate_exact(&request.field("exactly"), errors),
        (false, true) => {
            request.field("firstAvailable").at_most(errors, MAX_ALTERNATIVES);
            for alternative in request.field("firstAvailable").items() {
                alternative.field("name").follows(errors, name::dns_label);
                validate_exact(&alternative, errors);
            }
            request.field("firstAvailable").unique_by(errors, "name");
        }
    }
}

fn validate_exact(request: &Place, errors: &mut Errors) {
    request.field("deviceClassName").require_follows(errors, name::dns_subdomain);
    validate_selectors(request, errors);
    let count = request.field("count");
    match (request.field("allocationMode").text(), count.int()) {
        ("All", 0) | ("ExactCount", 1..) => {}
        ("All", _) => count.invalid(errors, "must not be specified when allocationMode is 'All'"),
        ("ExactCount", _) => count.invalid(errors, "must be greater than zero"),
        _ => request.field("allocationMode").one_of(errors, &["All", "ExactCount"]),
    }
    request.field("tolerations").items().for_each(|toleration| device_taint::validate_toleration(&toleration, errors));
}

/// Names of requests, which have to be those of the claim.
fn validate_references(place: &Place, devices: &Place, errors: &mut Errors) {
    place.field("requests").at_most(errors, MAX_ITEMS);
    place.field("requests").items().for_each(|reference| validate_reference(&reference, devices.value(), errors));
    place.field("requests").unique(errors);
}

fn validate_reference(reference: &Place, devices: &Value, errors: &mut Errors) {
    let (main, rest) =
        reference.text().split_once('/').map_or((reference.text(), None), |(main, sub)| (main, Some(sub)));
    let request = devices.items("requests").iter().find(|request| request.text("name") == main);
    let found = request.is_some_and(|request| {
        rest.is_none_or(|sub| request.items("firstAvailable").iter().any(|other| other.text("name") == sub))
    });
    if !found {
        reference.invalid(errors, NO_SUCH_REQUEST);
    }
}

fn validate_claim_status(new: &Value, old: &Value, errors: &mut Errors) {
    let status = Place::field_of(new, "status");
    let (reserved, allocation) = (status.field("reservedFor"), status.field("allocation"));
    reserved.at_most(errors, MAX_CONSUMERS);
    for consumer in status.field("reservedFor").items() {
        for field in ["resource", "name", "uid"] {
            consumer.field(field).require(errors);
        }
    }
    status.field("reservedFor").unique_by(errors, "uid");
    if !allocation.is_set() {
        reserved.forbid(errors, "may not be specified when `allocated` is not set");
        return;
    }
    let known = old.at("status").items("reservedFor");
    let is_new = |consumer: &Value| !known.contains(consumer);
    if new.at("metadata").has("deletionTimestamp") && status.field("reservedFor").values().iter().any(is_new) {
        let detail = "new entries may not be added while `deallocationRequested` or `deletionTimestamp` are set";
        reserved.forbidden(errors, detail);
    }
    let was = old.path(&["status", "allocation"]);
    if !was.is_null() {
        allocation.unchanged(errors, was);
        return;
    }
    let devices = allocation.field("devices");
    for result in devices.field("results").items() {
        validate_reference(&result.field("request"), new.path(&["spec", "devices"]), errors);
        validate_driver_name(&result.field("driver"), errors);
        validate_pool_name(&result.field("pool"), errors);
        result.field("device").follows(errors, name::dns_label);
        validate_binding_conditions(&result, errors);
        result
            .field("tolerations")
            .items()
            .for_each(|toleration| device_taint::validate_toleration(&toleration, errors));
    }
    if allocation.field("nodeSelector").is_set() {
        node_selector::validate(&allocation.field("nodeSelector"), errors);
    }
}

/// What has to be said of a device before pods can be bound to it, and what ends the wait for that: both or none.
pub fn validate_binding_conditions(device: &Place, errors: &mut Errors) {
    let [wanted, failed] = ["bindingConditions", "bindingFailureConditions"].map(|field| device.field(field));
    for conditions in [&wanted, &failed] {
        conditions.at_most(errors, MAX_BINDING_CONDITIONS);
        conditions.items().for_each(|condition| condition.follows(errors, name::qualified_name));
    }
    [&wanted, &failed].iter().for_each(|conditions| conditions.unique(errors));
    for condition in failed.items().filter(|condition| wanted.values().contains(condition.value())) {
        condition.invalid(errors, "bindingFailureConditions must not overlap with bindingConditions");
    }
    match (wanted.values().is_empty(), failed.values().is_empty()) {
        (true, false) => {
            wanted.invalid_value(errors, json!([]), "bindingConditions are required to use bindingFailureConditions");
        }
        (false, true) => {
            failed.invalid_value(errors, json!([]), "bindingFailureConditions are required to use bindingConditions");
        }
        _ => {}
    }
}

/// Subdomains with slashes between them.
pub fn validate_pool_name(pool: &Place, errors: &mut Errors) {
    if pool.require(errors) {
        pool.shorter_than(errors, 253);
        for part in pool.text().split('/') {
            pool.text_follows(errors, part, name::dns_subdomain);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::strategy::check::{each_change_has_its_message, each_mistake_has_its_message, filled};
    use object::json;

    fn claim() -> Value {
        json!({ "spec": { "devices": {
            "requests": [{ "name": "gpu", "exactly": { "deviceClassName": "gpus" } }],
            "constraints": [{ "requests": ["gpu"], "matchAttribute": "example.com/model" }],
        } } })
    }

    #[test]
    fn a_claim_asks_for_devices_of_a_class_and_stays() {
        let kind = "resource.v1.ResourceClaim";
        let exactly = filled(kind, &claim())["spec"]["devices"]["requests"][0]["exactly"].clone();
        assert_eq!(exactly, json!({ "deviceClassName": "gpus", "allocationMode": "ExactCount", "count": 1 }));
        each_mistake_has_its_message(
            kind,
            &claim(),
            &[
                (
                    "spec.devices.requests.0.exactly",
                    json!(null),
                    &[
                        "spec.devices.requests[0]: Required value: exactly one of `exactly` or `firstAvailable` is required",
                    ],
                ),
                (
                    "spec.devices.requests.0.exactly.deviceClassName",
                    json!(""),
                    &["spec.devices.requests[0].exactly.deviceClassName: Required value"],
                ),
                (
                    "spec.devices.constraints.0.requests.0",
                    json!("cpu"),
                    &[
                        "spec.devices.constraints[0].requests[0]: Invalid value: \"cpu\": must be the name of a request in the claim \
                   or the name of a request and a subrequest separated by '/'",
                    ],
                ),
                (
                    "spec.devices.constraints.0.matchAttribute",
                    json!("model"),
                    &[
                        "spec.devices.constraints[0].matchAttribute: Invalid value: \"model\": a fully qualified name must be a \
                   domain and a name separated by a slash",
                    ],
                ),
            ],
        );
        let mut expected = filled(kind, &claim())["spec"].clone();
        expected["devices"]["requests"][0]["name"] = json!("x");
        each_change_has_its_message(
            kind,
            &claim(),
            &[(
                "spec.devices.requests.0.name",
                json!("x"),
                &[&format!("spec: Invalid value: {expected}: field is immutable")],
            )],
        );
    }

    #[test]
    fn classes_and_templates_follow_their_rules() {
        let class = json!({ "spec": { "selectors": [{ "cel": { "expression": "true" } }] } });
        each_mistake_has_its_message(
            "resource.v1.DeviceClass",
            &class,
            &[
                ("spec.selectors.0", json!({}), &["spec.selectors[0].cel: Required value"]),
                (
                    "spec.selectors.0.cel.expression",
                    json!("device.driver"),
                    &[
                        "spec.selectors[0].cel.expression: Invalid value: \"device.driver\": must evaluate to bool or the \
                       unknown type, not string",
                    ],
                ),
                (
                    "spec.selectors.0.cel.expression",
                    json!("device.name == 1"),
                    &[
                        "spec.selectors[0].cel.expression: Invalid value: \"device.name == 1\": compilation failed: ERROR: \
                       <input>:1:7: undefined field 'name'\n | device.name == 1\n | ......^",
                    ],
                ),
                (
                    "spec.selectors.0.cel.expression",
                    json!(
                        "[1,2,3,4].all(a, [1,2,3,4].all(b, device.attributes.all(c, device.attributes.all(d, \
                           device.attributes.all(e, a != b && c != d && d != e)))))"
                    ),
                    &["spec.selectors[0].cel.expression: Forbidden: too complex, exceeds cost limit"],
                ),
                (
                    "spec.extendedResourceName",
                    json!("cpu"),
                    &["spec.extendedResourceName: Invalid value: \"cpu\": must be a valid extended resource name"],
                ),
            ],
        );
        let template = json!({ "spec": claim() });
        each_mistake_has_its_message(
            "resource.v1.ResourceClaimTemplate",
            &template,
            &[
                ("spec.metadata", json!({ "name": "a" }), &["spec.metadata.name: Forbidden: cannot be set"]),
                (
                    "spec.spec.devices.requests.0.exactly.selectors",
                    json!([{ "cel": { "expression": "1" } }]),
                    &["spec.spec.devices.requests[0].exactly.selectors[0].cel.expression: Invalid value: \"1\": must \
                       evaluate to bool or the unknown type, not int"],
                ),
            ],
        );
    }
}
