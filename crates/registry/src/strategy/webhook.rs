//! Configurations of admission webhooks, and what they share with others that ask a webhook or match requests.

use crate::strategy::place::Place;
use crate::strategy::{PLAIN, Strategy, label_selector};
use object::field::{Error, Errors};
use object::{Edit, Value, View, json, name};

/// What all configurations of admission have in common.
pub const ADMISSION: Strategy = Strategy { generation: true, unconditional_update: false, ..PLAIN };

pub const VALIDATING: Strategy =
    Strategy { default: Some(|hooks| default(hooks, false)), validate: Some(validate), ..ADMISSION };
pub const MUTATING: Strategy =
    Strategy { default: Some(|hooks| default(hooks, true)), validate: Some(validate), ..ADMISSION };

pub const FAILURE_POLICIES: [&str; 2] = ["Fail", "Ignore"];
pub const MATCH_POLICIES: [&str; 2] = ["Equivalent", "Exact"];
pub const REINVOCATION_POLICIES: [&str; 2] = ["IfNeeded", "Never"];
const SIDE_EFFECTS: [&str; 2] = ["None", "NoneOnDryRun"];
const OPERATIONS: [&str; 5] = ["*", "CONNECT", "CREATE", "DELETE", "UPDATE"];
const SCOPES: [&str; 3] = ["*", "Cluster", "Namespaced"];
const MAX_CONDITIONS: usize = 64;
const HTTPS_PORT: i64 = 443;

fn default(configuration: &mut Value, is_mutating: bool) {
    for hook in configuration.each("webhooks") {
        hook.set_default("failurePolicy", "Fail");
        default_matching(hook, "rules");
        hook.set_default("timeoutSeconds", 10);
        if is_mutating {
            hook.set_default("reinvocationPolicy", "Never");
        }
        if let Some(config) = hook.object("clientConfig") {
            default_client(config);
        }
    }
}

/// What is matched unless something is said.
pub fn default_matching(matching: &mut Value, rules: &str) {
    matching.set_default("matchPolicy", "Equivalent");
    matching.set_default("namespaceSelector", json!({}));
    matching.set_default("objectSelector", json!({}));
    matching.each(rules).for_each(|rule| rule.set_default("scope", "*"));
}

/// The port of a service that nobody has named.
pub fn default_client(config: &mut Value) {
    if let Some(service) = config.object("service") {
        service.set_default("port", HTTPS_PORT);
    }
}

fn validate(new: &Value, _old: Option<&Value>, errors: &mut Errors) {
    let configuration = Place::root(new);
    for hook in configuration.list("webhooks") {
        validate_hook(&hook, errors);
        validate_versions(&hook.child("admissionReviewVersions"), &["v1", "v1beta1"], errors);
    }
    configuration.unique_by("webhooks", "name", errors);
}

fn validate_hook(hook: &Place, errors: &mut Errors) {
    let name = hook.child("name");
    if name.required("", errors) {
        let wrong = name::dns_subdomain(name.string());
        if !wrong.is_empty() {
            errors.push(name.invalid(wrong.join(",")));
        } else if name.string().split('.').count() < 3 {
            errors.push(name.invalid("should be a domain with at least three segments separated by dots"));
        }
    }
    hook.list("rules").for_each(|rule| validate_rule(&rule, errors));
    hook.child("failurePolicy").optional_one_of(&FAILURE_POLICIES, errors);
    hook.child("matchPolicy").optional_one_of(&MATCH_POLICIES, errors);
    let effects = hook.child("sideEffects");
    if effects.is_null() {
        errors.push(Error::required(&effects.path, format!("must specify one of {}", SIDE_EFFECTS.join(", "))));
    }
    effects.optional_one_of(&SIDE_EFFECTS, errors);
    let timeout = hook.child("timeoutSeconds");
    if timeout.as_i64().is_some_and(|seconds| !(1..=30).contains(&seconds)) {
        errors.push(timeout.invalid("the timeout value must be between 1 and 30 seconds"));
    }
    validate_selectors(hook, errors);
    validate_client(&hook.child("clientConfig"), errors);
    validate_conditions(hook, errors);
    hook.child("reinvocationPolicy").optional_one_of(&REINVOCATION_POLICIES, errors);
}

pub fn validate_selectors(matching: &Place, errors: &mut Errors) {
    for field in ["namespaceSelector", "objectSelector"] {
        label_selector::validate(matching.at(field), &matching.child(field).path, errors);
    }
}

/// Expressions that have to hold. Whether they can be compiled is checked where they are compiled.
pub fn validate_conditions(place: &Place, errors: &mut Errors) {
    place.child("matchConditions").at_most(MAX_CONDITIONS, errors);
    for condition in place.list("matchConditions") {
        if condition.text("expression").trim().is_empty() {
            errors.push(Error::required(&condition.child("expression").path, ""));
        }
        condition.child("name").required_follows(name::qualified_name, errors);
    }
    place.unique_by("matchConditions", "name", errors);
}

/// Which requests are meant: operations on resources.
pub fn validate_rule(rule: &Place, errors: &mut Errors) {
    let lists = [("operations", "operations"), ("apiGroups", "API groups"), ("apiVersions", "API versions")];
    for (field, words) in lists {
        let list = rule.child(field);
        list.required("", errors);
        if rule.items(field).len() > 1 && rule.items(field).iter().any(|item| item == "*") {
            errors.push(list.invalid(format!("if '*' is present, must not specify other {words}")));
        }
    }
    rule.list("operations").for_each(|operation| operation.one_of(&OPERATIONS, errors));
    for version in rule.list("apiVersions") {
        version.required("", errors);
    }
    validate_resources(rule, errors);
    rule.child("scope").optional_one_of(&SCOPES, errors);
}

fn validate_resources(rule: &Place, errors: &mut Errors) {
    let all = rule.child("resources");
    all.required("", errors);
    let names: Vec<&str> = rule.items("resources").iter().filter_map(Value::as_str).collect();
    let (mut whole, mut everywhere) = (Vec::new(), Vec::new());
    for (index, text) in names.iter().enumerate() {
        if text.is_empty() {
            errors.push(Error::required(&all.path.index(index), ""));
        }
        let Some((resource, subresource)) = text.split_once('/') else { continue };
        let known = [
            (whole.contains(&resource), format!("if '{resource}/*' is present, must not specify {text}")),
            (everywhere.contains(&subresource), format!("if '*/{subresource}' is present, must not specify {text}")),
        ];
        let wrong = known.into_iter().filter(|(wrong, _)| *wrong);
        errors.extend(wrong.map(|(_, detail)| Error::invalid(&all.path.index(index), *text, detail)));
        if subresource == "*" {
            whole.push(resource);
        }
        if resource == "*" {
            everywhere.push(subresource);
        }
    }
    if names.len() > 1 && names.contains(&"*/*") {
        errors.push(all.invalid("if '*/*' is present, must not specify other resources"));
    }
    if names.contains(&"*") && names.iter().any(|name| *name != "*" && !name.contains('/')) {
        errors.push(all.invalid("if '*' is present, must not specify other resources without subresources"));
    }
}

/// The versions of the question a webhook understands; one of them has to be one we speak.
pub fn validate_versions(versions: &Place, accepted: &[&str], errors: &mut Errors) {
    let words = accepted.join(", ");
    if !versions.required(&format!("must specify one of {words}"), errors) {
        return;
    }
    let mut seen: Vec<&str> = Vec::new();
    let items = versions.as_array().map_or(&[][..], Vec::as_slice);
    for (index, item) in items.iter().enumerate() {
        let version = Place::new(item, &versions.path.index(index));
        if seen.contains(&version.string()) {
            errors.push(version.invalid("duplicate version"));
        } else {
            version.follows(name::dns_1035_label, errors);
        }
        seen.push(version.string());
    }
    if !seen.iter().any(|version| accepted.contains(version)) {
        errors.push(versions.invalid(format!("must include at least one of {words}")));
    }
}

/// How to reach a webhook: an address or a service.
pub fn validate_client(config: &Place, errors: &mut Errors) {
    let (url, service) = (config.child("url"), config.child("service"));
    if url.is_null() == service.is_null() {
        errors.push(Error::required(&config.path, "exactly one of url or service is required"));
    } else if service.is_null() {
        validate_url(&url, errors);
    } else {
        service.child("name").required("", errors);
        service.child("namespace").required("", errors);
        let port = service.child("port");
        if !(1..=65535).contains(&port.as_i64().unwrap_or(HTTPS_PORT)) {
            errors.push(port.invalid("port is not valid: must be between 1 and 65535, inclusive"));
        }
        validate_path(&service.child("path"), errors);
    }
}

fn validate_url(url: &Place, errors: &mut Errors) {
    let form = "; desired format: https://host[/path]";
    let (scheme, rest) = url.string().split_once("://").unwrap_or(("", url.string()));
    if scheme != "https" {
        let detail = format!("'https' is the only allowed URL scheme{form}");
        errors.push(Error::invalid(&url.path, scheme, detail));
    }
    let (rest, fragment) = rest.split_once('#').unwrap_or((rest, ""));
    let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
    let authority = if scheme.is_empty() { "" } else { rest.split('/').next().unwrap_or_default() };
    let (user, host) = authority.rsplit_once('@').unwrap_or(("", authority));
    if host.is_empty() {
        errors.push(Error::invalid(&url.path, "", format!("host must be specified{form}")));
    }
    let forbidden = [
        (user, "user information is not permitted in the URL"),
        (fragment, "fragments are not permitted in the URL"),
        (query, "query parameters are not permitted in the URL"),
    ];
    let found = forbidden.into_iter().filter(|(part, _)| !part.is_empty());
    errors.extend(found.map(|(part, detail)| Error::invalid(&url.path, part, detail)));
}

fn validate_path(path: &Place, errors: &mut Errors) {
    let text = path.string();
    if matches!(text, "" | "/") {
        return;
    }
    if text != "//" && !text.starts_with('/') {
        errors.push(path.invalid("must start with a '/'"));
    }
    let inner = text.strip_prefix('/').unwrap_or(text);
    for (index, step) in inner.strip_suffix('/').unwrap_or(inner).split('/').enumerate() {
        if step.is_empty() {
            errors.push(path.invalid(format!("segment[{index}] may not be empty")));
        } else {
            let wrong = name::dns_subdomain(step).into_iter();
            errors.extend(wrong.map(|message| path.invalid(format!("segment[{index}]: {message}"))));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::strategy::place::testing::{each_mistake_has_its_message, filled};

    const KIND: &str = "admissionregistration.v1.MutatingWebhookConfiguration";

    fn configuration() -> Value {
        json!({ "webhooks": [{
            "name": "a.example.com", "sideEffects": "None", "admissionReviewVersions": ["v1"],
            "clientConfig": { "service": { "name": "s", "namespace": "n", "path": "/mutate" } },
            "rules": [{ "operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"] }],
        }] })
    }

    #[test]
    fn the_usual_is_filled_in() {
        let hook = filled(&MUTATING, KIND, &configuration())["webhooks"][0].clone();
        assert_eq!(hook["clientConfig"]["service"]["port"], 443);
        assert_eq!((&hook["failurePolicy"], &hook["matchPolicy"]), (&json!("Fail"), &json!("Equivalent")));
        assert_eq!((&hook["timeoutSeconds"], &hook["rules"][0]["scope"]), (&json!(10), &json!("*")));
        assert_eq!((&hook["reinvocationPolicy"], &hook["objectSelector"]), (&json!("Never"), &json!({})));
    }

    #[test]
    fn each_mistake_is_reported() {
        each_mistake_has_its_message(
            &MUTATING,
            KIND,
            &configuration(),
            &[
                (
                    "webhooks.0.name",
                    json!("short.name"),
                    &[
                        "webhooks[0].name: Invalid value: \"short.name\": should be a domain with at least three segments separated \
                   by dots",
                    ],
                ),
                (
                    "webhooks.0.sideEffects",
                    json!(null),
                    &["webhooks[0].sideEffects: Required value: must specify one of None, NoneOnDryRun"],
                ),
                (
                    "webhooks.0.admissionReviewVersions",
                    json!(["v2"]),
                    &[
                        "webhooks[0].admissionReviewVersions: Invalid value: [\"v2\"]: must include at least one of v1, v1beta1",
                    ],
                ),
                (
                    "webhooks.0.clientConfig",
                    json!({}),
                    &["webhooks[0].clientConfig: Required value: exactly one of url or service is required"],
                ),
                (
                    "webhooks.0.clientConfig",
                    json!({ "url": "http://example.com/x?y=z" }),
                    &[
                        "webhooks[0].clientConfig.url: Invalid value: \"http\": 'https' is the only allowed URL scheme; desired \
                     format: https://host[/path]",
                        "webhooks[0].clientConfig.url: Invalid value: \"y=z\": query parameters are not permitted in the URL",
                    ],
                ),
                (
                    "webhooks.0.timeoutSeconds",
                    json!(31),
                    &[
                        "webhooks[0].timeoutSeconds: Invalid value: 31: the timeout value must be between 1 and 30 seconds",
                    ],
                ),
                (
                    "webhooks.0.rules.0.operations",
                    json!(["*", "CREATE"]),
                    &[
                        "webhooks[0].rules[0].operations: Invalid value: [\"*\",\"CREATE\"]: if '*' is present, must not specify \
                   other operations",
                    ],
                ),
                (
                    "webhooks.0.rules.0.resources",
                    json!(["pods/*", "pods/log"]),
                    &[
                        "webhooks[0].rules[0].resources[1]: Invalid value: \"pods/log\": if 'pods/*' is present, must not specify \
                   pods/log",
                    ],
                ),
            ],
        );
    }
}
