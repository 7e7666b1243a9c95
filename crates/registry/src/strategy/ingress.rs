//! Ingresses and their classes.

use crate::strategy::place::Place;
use crate::strategy::{PLAIN, Strategy, address};
use object::field::{Error, Errors, Path};
use object::{Edit, Value, View, name};

pub const INGRESS: Strategy = Strategy {
    validate: Some(validate),
    validate_status: Some(validate_status),
    warn: Some(warn),
    generation: true,
    ..PLAIN
};
pub const INGRESS_CLASS: Strategy =
    Strategy { default: Some(default_class), validate: Some(validate_class), generation: true, ..PLAIN };

const CLASS_ANNOTATION: &str = "kubernetes.io/ingress.class";
const CONTROLLER_MAX_BYTES: usize = 250;
const NOT_AN_ADDRESS: &str = "must be a DNS name, not an IP address";
const FORBIDDEN_IN_PATHS: [&str; 5] = ["//", "/./", "/../", "%2f", "%2F"];
const FORBIDDEN_AT_THE_END: [&str; 2] = ["/..", "/."];

fn validate(new: &Value, old: Option<&Value>, errors: &mut Errors) {
    let spec = Place::root(new).child("spec");
    if spec.items("rules").is_empty() && !spec.has("defaultBackend") {
        let detail = "either `defaultBackend` or `rules` must be specified";
        errors.push(Error::invalid(&spec.path, spec.at("rules").clone(), detail));
    }
    let backend = spec.child("defaultBackend");
    if !backend.is_null() {
        validate_backend(&backend, errors);
    }
    for rule in spec.list("rules") {
        let host = rule.child("host");
        if address::parse(host.string()).is_some() {
            errors.push(host.invalid(NOT_AN_ADDRESS));
        }
        host.optional_follows(host_name, errors);
        let http = rule.child("http");
        if !http.is_null() {
            http.child("paths").required("", errors);
            http.list("paths").for_each(|path| validate_path(&path, errors));
        }
    }
    for tls in spec.list("tls") {
        tls.list("hosts").for_each(|host| host.follows(host_name, errors));
        tls.child("secretName").optional_follows(name::dns_subdomain, errors);
    }
    let class = spec.child("ingressClassName");
    if !class.is_null() {
        class.follows(name::dns_subdomain, errors);
    }
    let annotation = new.path(&["metadata", "annotations"]).at(CLASS_ANNOTATION);
    if old.is_none() && !annotation.is_null() && !class.is_null() && annotation != class.value {
        let path = Path::new("annotations").child(CLASS_ANNOTATION);
        let detail = "must match `ingressClassName` when both are specified";
        errors.push(Error::invalid(&path, annotation.clone(), detail));
    }
}

/// A host, or all hosts below one.
fn host_name(text: &str) -> Vec<String> {
    if !text.contains('*') {
        return name::dns_subdomain(text);
    }
    let good = text.strip_prefix("*.").is_some_and(|rest| name::dns_subdomain(rest).is_empty());
    if good {
        return Vec::new();
    }
    vec![
        "a wildcard DNS-1123 subdomain must start with '*.', followed by a valid DNS subdomain, which must consist of \
         lower case alphanumeric characters, '-' or '.' and end with an alphanumeric character (e.g. '*.example.com', \
         regex used for validation is '\\*\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
            .to_owned(),
    ]
}

fn validate_path(place: &Place, errors: &mut Errors) {
    let (kind, path) = (place.child("pathType"), place.child("path"));
    if kind.is_null() {
        errors.push(Error::required(&kind.path, "pathType must be specified"));
        return;
    }
    let text = path.string();
    let mut wrong = |detail: String| errors.push(Error::invalid(&path.path, text, detail));
    match kind.string() {
        "Exact" | "Prefix" => {
            if !text.starts_with('/') {
                wrong("must be an absolute path".to_owned());
            }
            let inside = FORBIDDEN_IN_PATHS.iter().filter(|part| text.contains(**part));
            inside.for_each(|part| wrong(format!("must not contain '{part}'")));
            let at_the_end = FORBIDDEN_AT_THE_END.iter().filter(|part| text.ends_with(**part));
            at_the_end.for_each(|part| wrong(format!("cannot end with '{part}'")));
        }
        "ImplementationSpecific" if !text.is_empty() && !text.starts_with('/') => {
            wrong("must be an absolute path".to_owned());
        }
        _ => kind.one_of(&["Exact", "ImplementationSpecific", "Prefix"], errors),
    }
    validate_backend(&place.child("backend"), errors);
}

fn validate_backend(backend: &Place, errors: &mut Errors) {
    let wrong = |detail: &str| Error::invalid(&backend.path, "", detail);
    match (backend.has("resource"), backend.has("service")) {
        (true, true) => errors.push(wrong("cannot set both resource and service backends")),
        (false, false) => errors.push(wrong("resource or service backend is required")),
        (true, false) => validate_reference(&backend.child("resource"), errors),
        (false, true) => {
            let service = backend.child("service");
            service.child("name").required_follows(name::dns_label, errors);
            let port = service.child("port");
            match (port.text("name"), port.int("number").unwrap_or_default()) {
                ("", 0) => errors.push(Error::required(&backend.path, "port name or number is required")),
                ("", _) => port.child("number").port(errors),
                (_, 0) => port.child("name").follows(name::port_name, errors),
                _ => errors.push(wrong("cannot set both port name & port number")),
            }
        }
    }
}

fn validate_reference(reference: &Place, errors: &mut Errors) {
    let group = reference.child("apiGroup");
    if !group.is_null() {
        group.follows(name::dns_subdomain, errors);
    }
    reference.child("kind").required_follows(name::path_segment, errors);
    reference.child("name").required_follows(name::path_segment, errors);
}

fn validate_status(new: &Value, old: &Value, errors: &mut Errors) {
    let kept = old.path(&["status", "loadBalancer"]).items("ingress");
    for ingress in Place::root(new).descend(&["status", "loadBalancer"]).list("ingress") {
        let (ip, host) = (ingress.child("ip"), ingress.child("hostname"));
        if !kept.iter().any(|kept| kept.at("ip") == ip.value) {
            ip.optional_follows(address::address, errors);
        }
        host.optional_follows(name::dns_subdomain, errors);
        if address::parse(host.string()).is_some() {
            errors.push(host.invalid(NOT_AN_ADDRESS));
        }
    }
}

fn warn(new: &Value, old: Option<&Value>) -> Vec<String> {
    let annotated = new.path(&["metadata", "annotations"]).has(CLASS_ANNOTATION);
    if old.is_none() && annotated && !new.at("spec").has("ingressClassName") {
        vec![format!("annotation {CLASS_ANNOTATION:?} is deprecated, please use 'spec.ingressClassName' instead")]
    } else {
        Vec::new()
    }
}

fn default_class(class: &mut Value) {
    if let Some(parameters) = class.object("spec").and_then(|spec| spec.object("parameters")) {
        parameters.set_default("scope", "Cluster");
    }
}

fn validate_class(new: &Value, old: Option<&Value>, errors: &mut Errors) {
    let spec = Place::root(new).child("spec");
    let controller = spec.child("controller");
    if let Some(old) = old {
        controller.unchanged(old.path(&["spec", "controller"]), errors);
    }
    controller.shorter_than(CONTROLLER_MAX_BYTES, errors);
    if controller.required("", errors) {
        controller.follows(domain_prefixed_path, errors);
    }
    let parameters = spec.child("parameters");
    if !parameters.is_null() {
        validate_reference(&parameters, errors);
        let namespace = parameters.child("namespace");
        match parameters.text("scope") {
            "Namespace" if namespace.is_null() => {
                errors.push(Error::required(&namespace.path, "`parameters.scope` is set to 'Namespace'"));
            }
            "Namespace" => namespace.follows(name::dns_label, errors),
            "Cluster" if !namespace.is_null() => {
                errors.push(Error::forbidden(&namespace.path, "`parameters.scope` is set to 'Cluster'"));
            }
            _ => parameters.child("scope").one_of(&["Cluster", "Namespace"], errors),
        }
    }
}

/// A domain and something below it: `example.com/controller`.
fn domain_prefixed_path(text: &str) -> Vec<String> {
    let Some((domain, path)) = text.split_once('/').filter(|(domain, path)| !domain.is_empty() && !path.is_empty())
    else {
        return vec!["must be a domain-prefixed path (such as \"acme.io/foo\")".to_owned()];
    };
    let mut wrong = name::dns_subdomain(domain);
    if !path.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"/-._~%!$&'()*+,;=:".contains(&byte)) {
        wrong.push("Invalid path (regex used for validation is '[A-Za-z0-9/\\-._~%!$&'()*+,;=:]+')".to_owned());
    }
    wrong
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::strategy::place::testing::{each_change_has_its_message, each_mistake_has_its_message};
    use object::json;

    #[test]
    fn each_mistake_is_reported() {
        let good = json!({ "spec": { "rules": [{
            "host": "a.example.com",
            "http": { "paths": [{ "path": "/", "pathType": "Prefix", "backend": { "service": { "name": "a", "port": { "number": 80 } } } }] },
        }] } });
        let path = "spec.rules.0.http.paths.0";
        each_mistake_has_its_message(
            &INGRESS,
            "networking.v1.Ingress",
            &good,
            &[
                (
                    "spec.rules",
                    json!([]),
                    &["spec: Invalid value: null: either `defaultBackend` or `rules` must be specified"],
                ),
                (
                    "spec.rules.0.host",
                    json!("10.0.0.1"),
                    &["spec.rules[0].host: Invalid value: \"10.0.0.1\": must be a DNS name, not an IP address"],
                ),
                ("spec.rules.0.host", json!("*.example.com"), &[]),
                (
                    &format!("{path}.pathType"),
                    json!(null),
                    &["spec.rules[0].http.paths[0].pathType: Required value: pathType must be specified"],
                ),
                (
                    &format!("{path}.path"),
                    json!("a//b"),
                    &[
                        "spec.rules[0].http.paths[0].path: Invalid value: \"a//b\": must be an absolute path",
                        "spec.rules[0].http.paths[0].path: Invalid value: \"a//b\": must not contain '//'",
                    ],
                ),
                (
                    &format!("{path}.backend"),
                    json!({}),
                    &[
                        "spec.rules[0].http.paths[0].backend: Invalid value: \"\": resource or service backend is required",
                    ],
                ),
                (
                    &format!("{path}.backend.service.port"),
                    json!({}),
                    &["spec.rules[0].http.paths[0].backend: Required value: port name or number is required"],
                ),
            ],
        );
    }

    #[test]
    fn a_class_belongs_to_one_controller() {
        let class = json!({ "spec": { "controller": "example.com/a" } });
        each_mistake_has_its_message(
            &INGRESS_CLASS,
            "networking.v1.IngressClass",
            &class,
            &[
                (
                    "spec.controller",
                    json!("a"),
                    &[
                        "spec.controller: Invalid value: \"a\": must be a domain-prefixed path (such as \"acme.io/foo\")",
                    ],
                ),
                ("spec.controller", json!(""), &["spec.controller: Required value"]),
                (
                    "spec.parameters",
                    json!({ "kind": "A", "name": "b", "scope": "Namespace" }),
                    &["spec.parameters.namespace: Required value: `parameters.scope` is set to 'Namespace'"],
                ),
            ],
        );
        each_change_has_its_message(
            &INGRESS_CLASS,
            "networking.v1.IngressClass",
            &class,
            &[(
                "spec.controller",
                json!("example.com/b"),
                &["spec.controller: Invalid value: \"example.com/b\": field is immutable"],
            )],
        );
    }
}
