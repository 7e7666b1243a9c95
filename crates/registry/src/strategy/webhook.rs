//! Configurations of admission webhooks, and what they share with others that ask a webhook or match requests.

use crate::strategy::place::Place;
use crate::strategy::{PLAIN, Strategy, label_selector};
use object::field::Errors;
use object::{Edit, Value, json, name};

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
    let configuration = Place::object(new);
    for hook in configuration.field("webhooks").items() {
        validate_hook(&hook, errors);
        validate_versions(&hook.field("admissionReviewVersions"), &["v1", "v1beta1"], errors);
    }
    configuration.field("webhooks").unique_by(errors, "name");
}

fn validate_hook(hook: &Place, errors: &mut Errors) {
    let name = hook.field("name");
    if name.require(errors) {
        let wrong = name::dns_subdomain(name.text());
        if !wrong.is_empty() {
            name.invalid(errors, wrong.join(","));
        } else if name.text().split('.').count() < 3 {
            name.invalid(errors, "should be a domain with at least three segments separated by dots");
        }
    }
    hook.field("rules").items().for_each(|rule| validate_rule(&rule, errors));
    hook.field("failurePolicy").one_of_if_set(errors, &FAILURE_POLICIES);
    hook.field("matchPolicy").one_of_if_set(errors, &MATCH_POLICIES);
    let effects = hook.field("sideEffects");
    if !effects.is_set() {
        effects.required(errors, format!("must specify one of {}", SIDE_EFFECTS.join(", ")));
    }
    effects.one_of_if_set(errors, &SIDE_EFFECTS);
    let timeout = hook.field("timeoutSeconds");
    if timeout.number().is_some_and(|seconds| !(1..=30).contains(&seconds)) {
        timeout.invalid(errors, "the timeout value must be between 1 and 30 seconds");
    }
    validate_selectors(hook, errors);
    validate_client(&hook.field("clientConfig"), errors);
    validate_conditions(hook, errors);
    hook.field("reinvocationPolicy").one_of_if_set(errors, &REINVOCATION_POLICIES);
}

pub fn validate_selectors(matching: &Place, errors: &mut Errors) {
    for field in ["namespaceSelector", "objectSelector"] {
        label_selector::validate(&matching.field(field), errors);
    }
}

/// Expressions that have to hold. Whether they can be compiled is checked where they are compiled.
pub fn validate_conditions(place: &Place, errors: &mut Errors) {
    place.field("matchConditions").at_most(errors, MAX_CONDITIONS);
    for condition in place.field("matchConditions").items() {
        if condition.field("expression").text().trim().is_empty() {
            condition.field("expression").required(errors, "");
        }
        condition.field("name").require_follows(errors, name::qualified_name);
    }
    place.field("matchConditions").unique_by(errors, "name");
}

/// Which requests are meant: operations on resources.
pub fn validate_rule(rule: &Place, errors: &mut Errors) {
    let lists = [("operations", "operations"), ("apiGroups", "API groups"), ("apiVersions", "API versions")];
    for (field, words) in lists {
        let list = rule.field(field);
        list.require(errors);
        if rule.field(field).values().len() > 1 && rule.field(field).values().iter().any(|item| item == "*") {
            list.invalid(errors, format!("if '*' is present, must not specify other {words}"));
        }
    }
    rule.field("operations").items().for_each(|operation| operation.one_of(errors, &OPERATIONS));
    for version in rule.field("apiVersions").items() {
        version.require(errors);
    }
    validate_resources(rule, errors);
    rule.field("scope").one_of_if_set(errors, &SCOPES);
}

fn validate_resources(rule: &Place, errors: &mut Errors) {
    let all = rule.field("resources");
    all.require(errors);
    let names: Vec<&str> = rule.field("resources").values().iter().filter_map(Value::as_str).collect();
    let (mut whole, mut everywhere) = (Vec::new(), Vec::new());
    for (index, text) in names.iter().enumerate() {
        if text.is_empty() {
            all.item(index).required(errors, "");
        }
        let Some((resource, subresource)) = text.split_once('/') else { continue };
        let known = [
            (whole.contains(&resource), format!("if '{resource}/*' is present, must not specify {text}")),
            (everywhere.contains(&subresource), format!("if '*/{subresource}' is present, must not specify {text}")),
        ];
        let wrong = known.into_iter().filter(|(wrong, _)| *wrong);
        wrong.for_each(|(_, detail)| all.item(index).invalid_value(errors, *text, detail));
        if subresource == "*" {
            whole.push(resource);
        }
        if resource == "*" {
            everywhere.push(subresource);
        }
    }
    if names.len() > 1 && names.contains(&"*/*") {
        all.invalid(errors, "if '*/*' is present, must not specify other resources");
    }
    if names.contains(&"*") && names.iter().any(|name| *name != "*" && !name.contains('/')) {
        all.invalid(errors, "if '*' is present, must not specify other resources without subresources");
    }
}

/// The versions of the question a webhook understands; one of them has to be one we speak.
pub fn validate_versions(versions: &Place, accepted: &[&str], errors: &mut Errors) {
    let words = accepted.join(", ");
    if !versions.require_because(errors, &format!("must specify one of {words}")) {
        return;
    }
    let mut seen: Vec<&str> = Vec::new();
    for version in versions.items() {
        if seen.contains(&version.text()) {
            version.invalid(errors, "duplicate version");
        } else {
            version.follows(errors, name::dns_1035_label);
        }
        seen.push(version.text());
    }
    if !seen.iter().any(|version| accepted.contains(version)) {
        versions.invalid(errors, format!("must include at least one of {words}"));
    }
}

/// How to reach a webhook: an address or a service.
pub fn validate_client(config: &Place, errors: &mut Errors) {
    let (url, service) = (config.field("url"), config.field("service"));
    if url.is_set() == service.is_set() {
        config.required(errors, "exactly one of url or service is required");
    } else if url.is_set() {
        validate_url(&url, errors);
    } else {
        service.field("name").require(errors);
        service.field("namespace").require(errors);
        let port = service.field("port");
        if !(1..=65535).contains(&port.number().unwrap_or(HTTPS_PORT)) {
            port.invalid(errors, "port is not valid: must be between 1 and 65535, inclusive");
        }
        validate_path(&service.field("path"), errors);
    }
}

fn validate_url(url: &Place, errors: &mut Errors) {
    let form = "; desired format: https://host[/path]";
    let (scheme, rest) = url.text().split_once("://").unwrap_or(("", url.text()));
    if scheme != "https" {
        let detail = format!("'https' is the only allowed URL scheme{form}");
        url.invalid_value(errors, scheme, detail);
    }
    let (rest, fragment) = rest.split_once('#').unwrap_or((rest, ""));
    let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
    let authority = if scheme.is_empty() { "" } else { rest.split('/').next().unwrap_or_default() };
    let (user, host) = authority.rsplit_once('@').unwrap_or(("", authority));
    if host.is_empty() {
        url.invalid_value(errors, "", format!("host must be specified{form}"));
    }
    let forbidden = [
        (user, "user information is not permitted in the URL"),
        (fragment, "fragments are not permitted in the URL"),
        (query, "query parameters are not permitted in the URL"),
    ];
    let found = forbidden.into_iter().filter(|(part, _)| !part.is_empty());
    found.for_each(|(part, detail)| url.invalid_value(errors, part, detail));
}

fn validate_path(path: &Place, errors: &mut Errors) {
    let text = path.text();
    if matches!(text, "" | "/") {
        return;
    }
    if text != "//" && !text.starts_with('/') {
        path.invalid(errors, "must start with a '/'");
    }
    let inner = text.strip_prefix('/').unwrap_or(text);
    for (index, step) in inner.strip_suffix('/').unwrap_or(inner).split('/').enumerate() {
        if step.is_empty() {
            path.invalid(errors, format!("segment[{index}] may not be empty"));
        } else {
            let wrong = name::dns_subdomain(step).into_iter();
            wrong.for_each(|message| path.invalid(errors, format!("segment[{index}]: {message}")));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::strategy::check::{each_mistake_has_its_message, filled};

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
        let hook = filled(KIND, &configuration())["webhooks"][0].clone();
        assert_eq!(hook["clientConfig"]["service"]["port"], 443);
        assert_eq!((&hook["failurePolicy"], &hook["matchPolicy"]), (&json!("Fail"), &json!("Equivalent")));
        assert_eq!((&hook["timeoutSeconds"], &hook["rules"][0]["scope"]), (&json!(10), &json!("*")));
        assert_eq!((&hook["reinvocationPolicy"], &hook["objectSelector"]), (&json!("Never"), &json!({})));
    }

    #[test]
    fn each_mistake_is_reported() {
        each_mistake_has_its_message(
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
