//! APIServices: which server answers for a group and version.

use crate::strategy::place::Place;
use crate::strategy::webhook::default_client;
use crate::strategy::{PLAIN, Strategy};
use object::field::Errors;
use object::{Edit, Value, View, base64, json, name};

pub const STRATEGY: Strategy = Strategy {
    name: name::path_segment,
    default: Some(|service| default_client(service.object_or_new("spec"))),
    prepare: Some(prepare),
    validate: Some(validate),
    validate_status: Some(validate_status),
    unconditional_update: false,
    ..PLAIN
};

/// What this server answers itself is there from the start.
fn prepare(new: &mut Value, old: Option<&Value>) {
    if old.is_none() && !new.at("spec").has("service") {
        let created = new.path(&["metadata", "creationTimestamp"]).clone();
        let mut condition = json!({
            "type": "Available", "status": "True", "reason": "Local", "message": "Local APIServices are always available",
        });
        if !created.is_null() {
            condition.set("lastTransitionTime", created);
        }
        new.object_or_new("status").set("conditions", json!([condition]));
    }
}

fn validate(new: &Value, old: Option<&Value>, errors: &mut Errors) {
    let root = Place::object(new);
    let spec = root.field("spec");
    let (name, group, version) = (root.descend(&["metadata", "name"]), spec.field("group"), spec.field("version"));
    let expected = format!("{}.{}", version.text(), group.text());
    if old.is_none() && name::path_segment(name.text()).is_empty() && name.text() != expected {
        name.invalid(errors, format!("must be `spec.version+\".\"+spec.group`: {expected:?}"));
    }
    if group.is_empty() && version.text() != "v1" {
        group.required(errors, "only v1 may have an empty group and it better be legacy kube");
    }
    group.follows_if_set(errors, name::dns_subdomain);
    version.follows(errors, name::dns_1035_label);
    for (field, max) in [("groupPriorityMinimum", 20_000), ("versionPriority", 1_000)] {
        let priority = spec.field(field);
        let number = priority.int();
        if !(1..=max).contains(&number) {
            priority.invalid_value(errors, number, format!("must be positive and less than {max}"));
        }
    }
    let (service, bundle, insecure) =
        (spec.field("service"), spec.field("caBundle"), spec.field("insecureSkipTLSVerify"));
    if !service.is_set() {
        if !bundle.is_empty() {
            let bytes = base64::decode(bundle.text()).map_or(0, |bytes| bytes.len());
            let detail = "local APIServices may not have a caBundle";
            bundle.invalid_value(errors, format!("{bytes} bytes"), detail);
        }
        if spec.field("insecureSkipTLSVerify").flag() {
            insecure.invalid(errors, "local APIServices may not have insecureSkipTLSVerify");
        }
        return;
    }
    service.field("namespace").require(errors);
    service.field("name").require(errors);
    let port = service.field("port");
    if !(1..=65535).contains(&port.int()) {
        port.invalid(errors, "port is not valid: must be between 1 and 65535, inclusive");
    }
    if spec.field("insecureSkipTLSVerify").flag() && !bundle.is_empty() {
        insecure.invalid(errors, "may not be true if caBundle is present");
    }
}

fn validate_status(new: &Value, _old: &Value, errors: &mut Errors) {
    for condition in Place::field_of(new, "status").field("conditions").items() {
        condition.field("status").one_of(errors, &["True", "False", "Unknown"]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::strategy::check::each_mistake_has_its_message;

    #[test]
    fn each_mistake_is_reported() {
        let good = json!({ "metadata": { "name": "v1.example.com" }, "spec": {
            "group": "example.com", "version": "v1", "groupPriorityMinimum": 100, "versionPriority": 10,
            "service": { "name": "a", "namespace": "b" },
        } });
        each_mistake_has_its_message(
            "apiregistration.v1.APIService",
            &good,
            &[
                (
                    "metadata.name",
                    json!("x"),
                    &[
                        "metadata.name: Invalid value: \"x\": must be `spec.version+\".\"+spec.group`: \"v1.example.com\"",
                    ],
                ),
                (
                    "spec.versionPriority",
                    json!(0),
                    &["spec.versionPriority: Invalid value: 0: must be positive and less than 1000"],
                ),
                ("spec.service.name", json!(""), &["spec.service.name: Required value"]),
                (
                    "spec.service",
                    json!({ "name": "a", "namespace": "b", "port": 70000 }),
                    &[
                        "spec.service.port: Invalid value: 70000: port is not valid: must be between 1 and 65535, inclusive",
                    ],
                ),
            ],
        );
    }

    #[test]
    fn what_is_local_is_available() {
        let mut local = json!({ "metadata": { "creationTimestamp": "2026-01-02T03:04:05Z" }, "spec": {} });
        prepare(&mut local, None);
        assert_eq!(local["status"]["conditions"][0]["reason"], "Local");
    }
}
