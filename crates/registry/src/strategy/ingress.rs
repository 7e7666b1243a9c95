//! Ingresses and their classes.

use crate::strategy::place::Place;
use crate::strategy::{PLAIN, Strategy, address};
use object::field::Errors;
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
    let spec = Place::field_of(new, "spec");
    if spec.field("rules").is_empty() && !spec.field("defaultBackend").is_set() {
        let detail = "either `defaultBackend` or `rules` must be specified";
        spec.invalid_value(errors, spec.value().at("rules").clone(), detail);
    }
    let backend = spec.field("defaultBackend");
    if backend.is_set() {
        validate_backend(&backend, errors);
    }
    for rule in spec.field("rules").items() {
        let host = rule.field("host");
        if address::parse(host.text()).is_some() {
            host.invalid(errors, NOT_AN_ADDRESS);
        }
        host.follows_if_set(errors, host_name);
        let http = rule.field("http");
        if http.is_set() {
            http.field("paths").require(errors);
            http.field("paths").items().for_each(|path| validate_path(&path, errors));
        }
    }
    for tls in spec.field("tls").items() {
        tls.field("hosts").items().for_each(|host| host.follows(errors, host_name));
        tls.field("secretName").follows_if_set(errors, name::dns_subdomain);
    }
    let class = spec.field("ingressClassName");
    if class.is_set() {
        class.follows(errors, name::dns_subdomain);
    }
    let annotation = new.path(&["metadata", "annotations"]).at(CLASS_ANNOTATION);
    if old.is_none() && !annotation.is_null() && class.is_set() && annotation != class.value() {
        let annotations = Place::named(annotation, "annotations");
        let detail = "must match `ingressClassName` when both are specified";
        annotations.field(CLASS_ANNOTATION).invalid_value(errors, annotation.clone(), detail);
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
    let (kind, path) = (place.field("pathType"), place.field("path"));
    if !kind.is_set() {
        kind.required(errors, "pathType must be specified");
        return;
    }
    let text = path.text();
    let mut wrong = |detail: String| path.invalid_value(errors, text, detail);
    match kind.text() {
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
        _ => kind.one_of(errors, &["Exact", "ImplementationSpecific", "Prefix"]),
    }
    validate_backend(&place.field("backend"), errors);
}

fn validate_backend(backend: &Place, errors: &mut Errors) {
    match (backend.field("resource").is_set(), backend.field("service").is_set()) {
        (true, true) => backend.invalid_value(errors, "", "cannot set both resource and service backends"),
        (false, false) => backend.invalid_value(errors, "", "resource or service backend is required"),
        (true, false) => validate_reference(&backend.field("resource"), errors),
        (false, true) => {
            let service = backend.field("service");
            service.field("name").require_follows(errors, name::dns_label);
            let port = service.field("port");
            match (port.field("name").text(), port.field("number").int()) {
                ("", 0) => backend.required(errors, "port name or number is required"),
                ("", _) => port.field("number").port(errors),
                (_, 0) => port.field("name").follows(errors, name::port_name),
                _ => backend.invalid_value(errors, "", "cannot set both port name & port number"),
            }
        }
    }
}

fn validate_reference(reference: &Place, errors: &mut Errors) {
    let group = reference.field("apiGroup");
    if group.is_set() {
        group.follows(errors, name::dns_subdomain);
    }
    reference.field("kind").require_follows(errors, name::path_segment);
    reference.field("name").require_follows(errors, name::path_segment);
}

fn validate_status(new: &Value, old: &Value, errors: &mut Errors) {
    let kept = old.path(&["status", "loadBalancer"]).items("ingress");
    for ingress in Place::object(new).descend(&["status", "loadBalancer"]).field("ingress").items() {
        let (ip, host) = (ingress.field("ip"), ingress.field("hostname"));
        if !kept.iter().any(|kept| kept.at("ip") == ip.value()) {
            ip.follows_if_set(errors, address::address);
        }
        host.follows_if_set(errors, name::dns_subdomain);
        if address::parse(host.text()).is_some() {
            host.invalid(errors, NOT_AN_ADDRESS);
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
    let spec = Place::field_of(new, "spec");
    let controller = spec.field("controller");
    if let Some(old) = old {
        controller.unchanged(errors, old.path(&["spec", "controller"]));
    }
    controller.shorter_than(errors, CONTROLLER_MAX_BYTES);
    if controller.require(errors) {
        controller.follows(errors, domain_prefixed_path);
    }
    let parameters = spec.field("parameters");
    if parameters.is_set() {
        validate_reference(&parameters, errors);
        let namespace = parameters.field("namespace");
        match parameters.field("scope").text() {
            "Namespace" if !namespace.is_set() => {
                namespace.required(errors, "`parameters.scope` is set to 'Namespace'");
            }
            "Namespace" => namespace.follows(errors, name::dns_label),
            "Cluster" if namespace.is_set() => {
                namespace.forbidden(errors, "`parameters.scope` is set to 'Cluster'");
            }
            _ => parameters.field("scope").one_of(errors, &["Cluster", "Namespace"]),
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

    use crate::strategy::check::{each_change_has_its_message, each_mistake_has_its_message};
    use object::json;

    #[test]
    fn each_mistake_is_reported() {
        let good = json!({ "spec": { "rules": [{
            "host": "a.example.com",
            "http": { "paths": [{ "path": "/", "pathType": "Prefix", "backend": { "service": { "name": "a", "port": { "number": 80 } } } }] },
        }] } });
        let path = "spec.rules.0.http.paths.0";
        each_mistake_has_its_message(
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
