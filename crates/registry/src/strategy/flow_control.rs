//! FlowSchemas and PriorityLevelConfigurations: who waits for whom when there is too much to do.

use crate::strategy::place::Place;
use crate::strategy::value::same;
use crate::strategy::{PLAIN, Strategy};
use object::field::Errors;
use object::{Edit, Value, View, json, name};

pub const FLOW_SCHEMA: Strategy = Strategy {
    default: Some(default_schema),
    validate: Some(validate_schema),
    validate_status: Some(validate_conditions),
    generation: true,
    ..PLAIN
};
pub const PRIORITY_LEVEL: Strategy = Strategy {
    default: Some(default_level),
    validate: Some(validate_level),
    validate_status: Some(validate_conditions),
    generation: true,
    ..PLAIN
};

const MAX_PRECEDENCE: i64 = 10_000;
const DEFAULT_PRECEDENCE: i64 = 1_000;
const MAX_QUEUES: i64 = 10_000_000;
const EXEMPT: &str = "exempt";
const CATCH_ALL: &str = "catch-all";
const VERBS: [&str; 9] = ["create", "delete", "deletecollection", "get", "list", "patch", "proxy", "update", "watch"];

fn default_schema(schema: &mut Value) {
    let spec = schema.object_or_new("spec");
    if spec.int("matchingPrecedence").unwrap_or_default() == 0 {
        spec.set("matchingPrecedence", DEFAULT_PRECEDENCE);
    }
}

fn validate_schema(new: &Value, _old: Option<&Value>, errors: &mut Errors) {
    let spec = Place::field_of(new, "spec");
    let precedence = spec.field("matchingPrecedence");
    let detail = match precedence.int() {
        ..=0 => Some("must be a positive value".to_owned()),
        1 if new.at("metadata").text("name") != EXEMPT => {
            Some("only the schema named 'exempt' may have matchingPrecedence 1".to_owned())
        }
        number if number > MAX_PRECEDENCE => Some(format!("must not be greater than {MAX_PRECEDENCE}")),
        _ => None,
    };
    detail.into_iter().for_each(|detail| precedence.invalid(errors, detail));
    let method = spec.field("distinguisherMethod");
    if method.is_set() {
        method.field("type").one_of(errors, &["ByNamespace", "ByUser"]);
    }
    let level = spec.descend(&["priorityLevelConfiguration", "name"]);
    if level.require_because(errors, "must reference a priority level") {
        level.follows(errors, name::dns_subdomain);
    }
    for rule in spec.field("rules").items() {
        rule.field("subjects").require_because(errors, "subjects must contain at least one value");
        rule.field("subjects").items().for_each(|subject| validate_subject(&subject, errors));
        if rule.field("resourceRules").is_empty() && rule.field("nonResourceRules").is_empty() {
            let detail = "at least one of resourceRules and nonResourceRules has to be non-empty";
            rule.required(errors, detail);
        }
        rule.field("resourceRules").items().for_each(|rule| validate_resource_rule(&rule, errors));
        rule.field("nonResourceRules").items().for_each(|rule| validate_url_rule(&rule, errors));
    }
}

/// Each kind of subject and the field that names one.
const SUBJECTS: [(&str, &str); 3] = [("Group", "group"), ("ServiceAccount", "serviceAccount"), ("User", "user")];

fn validate_subject(subject: &Place, errors: &mut Errors) {
    let kind = subject.field("kind").text();
    let Some((_, wanted)) = SUBJECTS.iter().find(|(name, _)| *name == kind) else {
        subject.field("kind").one_of(errors, &SUBJECTS.map(|(kind, _)| kind));
        return;
    };
    let named = subject.field(wanted);
    if !named.is_set() {
        named.required(errors, format!("{wanted} is required when subject kind is '{kind}'"));
    } else {
        let name = named.field("name");
        if name.require(errors) && *wanted == "serviceAccount" && name.text() != "*" {
            name.follows(errors, name::dns_subdomain);
        }
        let namespace = named.field("namespace");
        if *wanted == "serviceAccount"
            && namespace.require_because(errors, "must specify namespace for service account")
        {
            namespace.follows(errors, name::dns_label);
        }
    }
    for (other, field) in SUBJECTS.iter().filter(|(_, field)| field != wanted && subject.field(field).is_set()) {
        let detail = format!("{field} is forbidden when subject kind is not '{other}'");
        subject.field(field).forbidden(errors, detail);
    }
}

/// A list that has something in it, and either names things or means everything. Returns whether it names things.
fn validate_list(rule: &Place, field: &str, missing: &str, words: &str, errors: &mut Errors) -> bool {
    let list = rule.field(field);
    let everything = rule.field(field).values().iter().any(|item| item == "*");
    if list.require_because(errors, missing) && everything && rule.field(field).values().len() > 1 {
        list.invalid(errors, format!("if '*' is present, must not specify other {words}"));
    }
    !everything
}

fn validate_verbs(rule: &Place, errors: &mut Errors) {
    let known = |verb: &Value| verb.as_str().is_some_and(|verb| VERBS.contains(&verb));
    if validate_list(rule, "verbs", "verbs must contain at least one value", "verbs", errors)
        && !rule.field("verbs").values().iter().all(known)
    {
        let verbs = rule.field("verbs");
        verbs.not_supported_value(errors, verbs.value().clone(), &VERBS);
    }
}

fn validate_resource_rule(rule: &Place, errors: &mut Errors) {
    validate_verbs(rule, errors);
    validate_list(rule, "apiGroups", "resource rules must supply at least one api group", "api groups", errors);
    validate_list(rule, "resources", "resource rules must supply at least one resource", "resources", errors);
    if rule.field("namespaces").is_empty() && rule.field("clusterScope").flag() {
        return;
    }
    let missing = "resource rules that are not cluster scoped must supply at least one namespace";
    if validate_list(rule, "namespaces", missing, "namespaces", errors) {
        for namespace in rule.field("namespaces").items() {
            let intro = "each member of this list must be '*' or a DNS-1123 label; ";
            let wrong = name::dns_label(namespace.text()).into_iter();
            wrong.for_each(|message| namespace.invalid(errors, format!("{intro}{message}")));
        }
    }
}

fn validate_url_rule(rule: &Place, errors: &mut Errors) {
    validate_verbs(rule, errors);
    let missing = "nonResourceURLs must contain at least one value";
    if !validate_list(rule, "nonResourceURLs", missing, "non-resource URLs", errors) {
        return;
    }
    for url in rule.field("nonResourceURLs").items() {
        let text = url.text();
        let stars = text.matches('*').count();
        let problems = [
            (text.is_empty(), "must not be empty"),
            (!text.starts_with('/'), "must start with slash"),
            (text.contains(' '), "must not contain white-space"),
            (text.contains("//"), "must not contain double slash"),
            (stars > 1 || (stars == 1 && !text.ends_with("/*")), "wildcard can only do suffix matching"),
        ];
        if let Some((_, detail)) = problems.iter().find(|(wrong, _)| *wrong) {
            url.invalid(errors, *detail);
        }
    }
}

fn default_level(level: &mut Value) {
    let Some(spec) = level.object("spec") else { return };
    if let Some(exempt) = spec.object("exempt") {
        exempt.set_default("nominalConcurrencyShares", 0);
        exempt.set_default("lendablePercent", 0);
    }
    if let Some(limited) = spec.object("limited") {
        limited.set_default("nominalConcurrencyShares", 30);
        limited.set_default("lendablePercent", 0);
        if let Some(queuing) = limited.object("limitResponse").and_then(|response| response.object("queuing")) {
            for (field, usual) in [("handSize", 8), ("queues", 64), ("queueLengthLimit", 50)] {
                if queuing.int(field).unwrap_or_default() == 0 {
                    queuing.set(field, usual);
                }
            }
        }
    }
}

fn validate_level(new: &Value, _old: Option<&Value>, errors: &mut Errors) {
    let spec = Place::field_of(new, "spec");
    let name = new.at("metadata").text("name");
    let kind = spec.field("type");
    if (name == EXEMPT) != (kind.text() == "Exempt") {
        kind.invalid_value(errors, kind.text(), "must be 'Exempt' if and only if `name` is 'exempt'");
    }
    let (limited, exempt) = (spec.field("limited"), spec.field("exempt"));
    match kind.text() {
        "Exempt" => {
            limited.forbid(errors, "must be nil if the type is not Limited");
            validate_shares(&exempt, errors);
        }
        "Limited" => {
            exempt.forbid(errors, "must be nil if the type is Limited");
            if limited.require_because(errors, "must not be empty when type is Limited") {
                validate_shares(&limited, errors);
                validate_response(&limited.field("limitResponse"), errors);
            }
        }
        _ => kind.require_one_of(errors, &["Exempt", "Limited"]),
    }
    let fixed = json!({
        "type": "Limited",
        "limited": { "nominalConcurrencyShares": 5, "lendablePercent": 0, "limitResponse": { "type": "Reject" } },
    });
    if name == CATCH_ALL && !same(spec.value(), &fixed) {
        spec.invalid(errors, format!("spec of '{name}' must equal the fixed value"));
    }
}

fn validate_shares(level: &Place, errors: &mut Errors) {
    let shares = level.field("nominalConcurrencyShares");
    if shares.number().is_some_and(|shares| shares < 0) {
        shares.invalid(errors, "must be a non-negative integer");
    }
    let lendable = level.field("lendablePercent");
    if lendable.is_set() {
        lendable.within(errors, 0, 100);
    }
    let borrowing = level.field("borrowingLimitPercent");
    if borrowing.number().is_some_and(|percent| percent < 0) {
        borrowing.invalid(errors, "if specified, must be a non-negative integer");
    }
}

fn validate_response(response: &Place, errors: &mut Errors) {
    let queuing = response.field("queuing");
    match response.field("type").text() {
        "Reject" => queuing.forbid(errors, "must be nil if limited.limitResponse.type is not Limited"),
        "Queue" => {
            if queuing.require_because(errors, "must not be empty if limited.limitResponse.type is Limited") {
                validate_queuing(&queuing, errors);
            }
        }
        _ => response.field("type").require_one_of(errors, &["Queue", "Reject"]),
    }
}

fn validate_queuing(queuing: &Place, errors: &mut Errors) {
    for field in ["queueLengthLimit", "queues", "handSize"] {
        let number = queuing.field(field);
        if number.int() <= 0 {
            number.invalid(errors, "must be positive");
        }
    }
    let (queues, hand) = (queuing.field("queues"), queuing.field("handSize"));
    let deck = queues.int();
    if deck > MAX_QUEUES {
        queues.invalid(errors, format!("must not be greater than {MAX_QUEUES}"));
    }
    let size = hand.int();
    if size > deck {
        hand.invalid(errors, format!("should not be greater than queues ({deck})"));
    } else if (0..size).map(|dealt| ((deck - dealt) as f64).log2()).sum::<f64>() > 60.0 {
        hand.invalid(
            errors,
            format!("required entropy bits of deckSize {deck} and handSize {size} should not be greater than 60"),
        );
    }
}

fn validate_conditions(new: &Value, _old: &Value, errors: &mut Errors) {
    let status = Place::field_of(new, "status");
    status.field("conditions").unique_by(errors, "type");
    for condition in status.field("conditions").items() {
        condition.field("type").require(errors);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::strategy::check::{each_mistake_has_its_message, filled};

    #[test]
    fn a_flow_has_subjects_rules_and_a_level() {
        let good = json!({ "metadata": { "name": "a" }, "spec": {
            "priorityLevelConfiguration": { "name": "b" },
            "rules": [{
                "subjects": [{ "kind": "User", "user": { "name": "jane" } }],
                "resourceRules": [{ "verbs": ["*"], "apiGroups": ["*"], "resources": ["*"], "namespaces": ["*"] }],
            }],
        } });
        assert_eq!(filled("flowcontrol.v1.FlowSchema", &good)["spec"]["matchingPrecedence"], 1000);
        each_mistake_has_its_message(
            "flowcontrol.v1.FlowSchema",
            &good,
            &[
                (
                    "spec.matchingPrecedence",
                    json!(1),
                    &[
                        "spec.matchingPrecedence: Invalid value: 1: only the schema named 'exempt' may have matchingPrecedence 1",
                    ],
                ),
                (
                    "spec.rules.0.subjects",
                    json!([]),
                    &["spec.rules[0].subjects: Required value: subjects must contain at least one value"],
                ),
                (
                    "spec.rules.0.subjects.0",
                    json!({ "kind": "Group", "user": { "name": "jane" } }),
                    &[
                        "spec.rules[0].subjects[0].group: Required value: group is required when subject kind is 'Group'",
                        "spec.rules[0].subjects[0].user: Forbidden: user is forbidden when subject kind is not 'User'",
                    ],
                ),
                (
                    "spec.rules.0.nonResourceRules",
                    json!([{ "verbs": ["get"], "nonResourceURLs": ["x"] }]),
                    &[
                        "spec.rules[0].nonResourceRules[0].nonResourceURLs[0]: Invalid value: \"x\": must start with slash",
                    ],
                ),
            ],
        );
    }

    #[test]
    fn a_level_queues_or_rejects() {
        let good = json!({ "metadata": { "name": "a" }, "spec": {
            "type": "Limited", "limited": { "limitResponse": { "type": "Queue", "queuing": {} } },
        } });
        let kind = "flowcontrol.v1.PriorityLevelConfiguration";
        let limited = filled(kind, &good)["spec"]["limited"].clone();
        assert_eq!(limited["nominalConcurrencyShares"], 30);
        assert_eq!(limited["limitResponse"]["queuing"], json!({ "handSize": 8, "queues": 64, "queueLengthLimit": 50 }));
        let mut settled = good;
        settled["spec"]["limited"]["limitResponse"]["queuing"]["queues"] = json!(64);
        each_mistake_has_its_message(
            kind,
            &settled,
            &[
                (
                    "spec.type",
                    json!("Exempt"),
                    &[
                        "spec.type: Invalid value: \"Exempt\": must be 'Exempt' if and only if `name` is 'exempt'",
                        "spec.limited: Forbidden: must be nil if the type is not Limited",
                    ],
                ),
                (
                    "spec.limited.limitResponse.queuing.handSize",
                    json!(65),
                    &[
                        "spec.limited.limitResponse.queuing.handSize: Invalid value: 65: should not be greater than queues (64)",
                    ],
                ),
                (
                    "spec.limited.limitResponse",
                    json!({ "type": "Queue" }),
                    &[
                        "spec.limited.limitResponse.queuing: Required value: must not be empty if limited.limitResponse.type is \
                   Limited",
                    ],
                ),
            ],
        );
    }
}
