//! Devices that are asked for: DeviceClasses, ResourceClaims and the templates of claims. Whether selectors can be
//! compiled is checked where they are compiled.

use crate::strategy::place::{Place, set_if_empty};
use crate::strategy::volume::validate_driver_name;
use crate::strategy::{PLAIN, Strategy, node_selector, resource_name};
use object::field::{Error, Errors};
use object::{Edit, Value, View, name};

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

pub const TAINT_EFFECTS: [&str; 3] = ["NoExecute", "NoSchedule", "None"];
const MAX_ITEMS: usize = 32;
const MAX_ALTERNATIVES: usize = 8;
const MAX_CONSUMERS: usize = 256;
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
    let spec = Place::root(new).child("spec");
    validate_selectors(&spec, errors);
    spec.child("config").at_most(MAX_ITEMS, errors);
    spec.list("config").for_each(|config| validate_configuration(&config, errors));
    let extended = spec.child("extendedResourceName");
    if !extended.is_null() && !resource_name::is_extended(extended.string()) {
        errors.push(extended.invalid("must be a valid extended resource name"));
    }
}

fn validate_selectors(place: &Place, errors: &mut Errors) {
    place.child("selectors").at_most(MAX_ITEMS, errors);
    for selector in place.list("selectors") {
        let cel = selector.child("cel");
        if cel.is_null() {
            errors.push(Error::required(&cel.path, ""));
        }
        cel.child("expression").shorter_than(MAX_BYTES, errors);
    }
}

fn validate_configuration(config: &Place, errors: &mut Errors) {
    let opaque = config.child("opaque");
    if opaque.is_null() {
        errors.push(Error::required(&opaque.path, ""));
        return;
    }
    validate_driver_name(&opaque.child("driver"), errors);
    let parameters = opaque.child("parameters");
    if parameters.is_null() {
        errors.push(Error::required(&parameters.path, ""));
    } else if !parameters.is_object() {
        errors.push(Error::invalid(&parameters.path, "<value omitted>", "must be a valid JSON object"));
    } else if parameters.value.to_string().len() > MAX_BYTES {
        errors.push(Error::too_long(&parameters.path, MAX_BYTES));
    }
}

fn validate_claim(new: &Value, old: Option<&Value>, errors: &mut Errors) {
    let spec = Place::root(new).child("spec");
    match old {
        Some(old) => spec.unchanged(old.at("spec"), errors),
        None => validate_devices(&spec.child("devices"), errors),
    }
}

fn validate_template(new: &Value, old: Option<&Value>, errors: &mut Errors) {
    let spec = Place::root(new).child("spec");
    if let Some(old) = old {
        spec.unchanged(old.at("spec"), errors);
        return;
    }
    let metadata = spec.child("metadata");
    metadata.child("labels").labels(errors);
    let fields = metadata.value.as_object().into_iter().flatten();
    for (field, _) in fields.filter(|(field, _)| !matches!(field.as_str(), "labels" | "annotations")) {
        metadata.child(field).forbidden("cannot be set", errors);
    }
    validate_devices(&spec.descend(&["spec", "devices"]), errors);
}

fn validate_devices(devices: &Place, errors: &mut Errors) {
    for field in ["requests", "constraints", "config"] {
        devices.child(field).at_most(MAX_ITEMS, errors);
    }
    devices.list("requests").for_each(|request| validate_request(&request, errors));
    devices.unique_by("requests", "name", errors);
    for constraint in devices.list("constraints") {
        validate_references(&constraint, devices, errors);
        let attributes = ["matchAttribute", "distinctAttribute"].map(|field| constraint.child(field));
        match attributes.iter().find(|attribute| !attribute.is_null()) {
            Some(attribute) => validate_attribute(attribute, errors),
            None => errors.push(Error::required(&attributes[0].path, "")),
        }
    }
    for config in devices.list("config") {
        validate_references(&config, devices, errors);
        validate_configuration(&config, errors);
    }
}

/// A name that says whose it is.
fn validate_attribute(attribute: &Place, errors: &mut Errors) {
    validate_qualified_name(attribute.string(), attribute, errors);
    if !attribute.string().contains('/') {
        errors.push(attribute.invalid("a fully qualified name must be a domain and a name separated by a slash"));
    }
}

/// A name of an attribute or a capacity: an identifier, and whose it is if it is not the driver's.
pub fn validate_qualified_name(text: &str, place: &Place, errors: &mut Errors) {
    let (domain, id) = text.split_once('/').map_or((None, text), |(domain, id)| (Some(domain), id));
    if let Some(domain) = domain {
        match domain {
            "" => errors.push(Error::invalid(&place.path, "", "the domain must not be empty")),
            domain => validate_driver_name(&Place::new(&Value::from(domain), &place.path), errors),
        }
    }
    if domain.is_some() && id.is_empty() {
        errors.push(Error::invalid(&place.path, "", "the name must not be empty"));
        return;
    }
    if id.len() > IDENTIFIER_MAX_BYTES {
        errors.push(Error::too_long(&place.path, IDENTIFIER_MAX_BYTES));
    }
    let starts_well = id.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_');
    if !starts_well || !id.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '_') {
        let detail = "a valid C identifier must start with alphabetic character or '_', followed by a string of \
                      alphanumeric characters or '_' (e.g. 'my_name',  or 'MY_NAME',  or 'MyName', regex used for \
                      validation is '[A-Za-z_][A-Za-z0-9_]*')";
        errors.push(Error::invalid(&place.path, id, detail));
    }
}

fn validate_request(request: &Place, errors: &mut Errors) {
    request.child("name").follows(name::dns_label, errors);
    let one = "exactly one of `exactly` or `firstAvailable` is required";
    match (request.has("exactly"), !request.items("firstAvailable").is_empty()) {
        (false, false) => errors.push(Error::required(&request.path, one)),
        (true, true) => {
            let detail = format!("{one}, but multiple fields are set");
            errors.push(Error::invalid(&request.path, Value::Null, detail));
        }
        (true, false) => validate_exact(&request.child("exactly"), errors),
        (false, true) => {
            request.child("firstAvailable").at_most(MAX_ALTERNATIVES, errors);
            for alternative in request.list("firstAvailable") {
                alternative.child("name").follows(name::dns_label, errors);
                validate_exact(&alternative, errors);
            }
            request.unique_by("firstAvailable", "name", errors);
        }
    }
}

fn validate_exact(request: &Place, errors: &mut Errors) {
    request.child("deviceClassName").required_follows(name::dns_subdomain, errors);
    validate_selectors(request, errors);
    let count = request.child("count");
    match (request.text("allocationMode"), count.as_i64().unwrap_or_default()) {
        ("All", 0) | ("ExactCount", 1..) => {}
        ("All", _) => errors.push(count.invalid("must not be specified when allocationMode is 'All'")),
        ("ExactCount", _) => errors.push(count.invalid("must be greater than zero")),
        _ => request.child("allocationMode").one_of(&["All", "ExactCount"], errors),
    }
    for toleration in request.list("tolerations") {
        toleration.child("key").optional_follows(name::qualified_name, errors);
        let value = toleration.child("value");
        match toleration.text("operator") {
            "Exists" if value.is_empty() => {}
            "Exists" => errors.push(value.invalid("must be empty for operator `Exists`")),
            "Equal" => value.follows(name::label_value, errors),
            _ => toleration.child("operator").required_one_of(&["Equal", "Exists"], errors),
        }
        let effect = toleration.child("effect");
        if !effect.is_empty() {
            effect.one_of(&TAINT_EFFECTS, errors);
        }
    }
}

/// Names of requests, which have to be those of the claim.
fn validate_references(place: &Place, devices: &Place, errors: &mut Errors) {
    place.child("requests").at_most(MAX_ITEMS, errors);
    place.list("requests").for_each(|reference| validate_reference(&reference, devices.value, errors));
    place.unique("requests", errors);
}

fn validate_reference(reference: &Place, devices: &Value, errors: &mut Errors) {
    let (main, rest) =
        reference.string().split_once('/').map_or((reference.string(), None), |(main, sub)| (main, Some(sub)));
    let request = devices.items("requests").iter().find(|request| request.text("name") == main);
    let found = request.is_some_and(|request| {
        rest.is_none_or(|sub| request.items("firstAvailable").iter().any(|other| other.text("name") == sub))
    });
    if !found {
        errors.push(reference.invalid(NO_SUCH_REQUEST));
    }
}

fn validate_claim_status(new: &Value, old: &Value, errors: &mut Errors) {
    let status = Place::root(new).child("status");
    let (reserved, allocation) = (status.child("reservedFor"), status.child("allocation"));
    reserved.at_most(MAX_CONSUMERS, errors);
    for consumer in status.list("reservedFor") {
        for field in ["resource", "name", "uid"] {
            consumer.child(field).required("", errors);
        }
    }
    status.unique_by("reservedFor", "uid", errors);
    if allocation.is_null() {
        reserved.forbidden("may not be specified when `allocated` is not set", errors);
        return;
    }
    let known = old.at("status").items("reservedFor");
    let is_new = |consumer: &Value| !known.contains(consumer);
    if new.at("metadata").has("deletionTimestamp") && status.items("reservedFor").iter().any(is_new) {
        let detail = "new entries may not be added while `deallocationRequested` or `deletionTimestamp` are set";
        errors.push(Error::forbidden(&reserved.path, detail));
    }
    let was = old.path(&["status", "allocation"]);
    if !was.is_null() {
        allocation.unchanged(was, errors);
        return;
    }
    let devices = allocation.child("devices");
    for result in devices.list("results") {
        validate_reference(&result.child("request"), new.path(&["spec", "devices"]), errors);
        validate_driver_name(&result.child("driver"), errors);
        validate_pool_name(&result.child("pool"), errors);
        result.child("device").follows(name::dns_label, errors);
    }
    if allocation.has("nodeSelector") {
        node_selector::validate(&allocation.child("nodeSelector"), errors);
    }
}

/// Subdomains with slashes between them.
pub fn validate_pool_name(pool: &Place, errors: &mut Errors) {
    if pool.required("", errors) {
        pool.shorter_than(253, errors);
        for part in pool.string().split('/') {
            let wrong = name::dns_subdomain(part).into_iter();
            errors.extend(wrong.map(|message| Error::invalid(&pool.path, part, message)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::strategy::place::testing::{each_change_has_its_message, each_mistake_has_its_message, filled};
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
        let exactly = filled(&RESOURCE_CLAIM, kind, &claim())["spec"]["devices"]["requests"][0]["exactly"].clone();
        assert_eq!(exactly, json!({ "deviceClassName": "gpus", "allocationMode": "ExactCount", "count": 1 }));
        each_mistake_has_its_message(
            &RESOURCE_CLAIM,
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
        let mut expected = filled(&RESOURCE_CLAIM, kind, &claim())["spec"].clone();
        expected["devices"]["requests"][0]["name"] = json!("x");
        each_change_has_its_message(
            &RESOURCE_CLAIM,
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
            &DEVICE_CLASS,
            "resource.v1.DeviceClass",
            &class,
            &[
                ("spec.selectors.0", json!({}), &["spec.selectors[0].cel: Required value"]),
                (
                    "spec.extendedResourceName",
                    json!("cpu"),
                    &["spec.extendedResourceName: Invalid value: \"cpu\": must be a valid extended resource name"],
                ),
            ],
        );
        let template = json!({ "spec": claim() });
        each_mistake_has_its_message(
            &RESOURCE_CLAIM_TEMPLATE,
            "resource.v1.ResourceClaimTemplate",
            &template,
            &[("spec.metadata", json!({ "name": "a" }), &["spec.metadata.name: Forbidden: cannot be set"])],
        );
    }
}
