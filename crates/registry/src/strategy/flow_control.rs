//! FlowSchemas and PriorityLevelConfigurations: who waits for whom when there is too much to do.

use crate::strategy::place::{Place, same};
use crate::strategy::{PLAIN, Strategy};
use object::field::{Error, Errors};
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
    let spec = Place::root(new).child("spec");
    let precedence = spec.child("matchingPrecedence");
    let detail = match precedence.as_i64().unwrap_or_default() {
        ..=0 => Some("must be a positive value".to_owned()),
        1 if new.at("metadata").text("name") != EXEMPT => {
            Some("only the schema named 'exempt' may have matchingPrecedence 1".to_owned())
        }
        number if number > MAX_PRECEDENCE => Some(format!("must not be greater than {MAX_PRECEDENCE}")),
        _ => None,
    };
    errors.extend(detail.map(|detail| precedence.invalid(detail)));
    let method = spec.child("distinguisherMethod");
    if !method.is_null() {
        method.child("type").one_of(&["ByNamespace", "ByUser"], errors);
    }
    let level = spec.descend(&["priorityLevelConfiguration", "name"]);
    if level.required("must reference a priority level", errors) {
        level.follows(name::dns_subdomain, errors);
    }
    for rule in spec.list("rules") {
        rule.child("subjects").required("subjects must contain at least one value", errors);
        rule.list("subjects").for_each(|subject| validate_subject(&subject, errors));
        if rule.items("resourceRules").is_empty() && rule.items("nonResourceRules").is_empty() {
            let detail = "at least one of resourceRules and nonResourceRules has to be non-empty";
            errors.push(Error::required(&rule.path, detail));
        }
        rule.list("resourceRules").for_each(|rule| validate_resource_rule(&rule, errors));
        rule.list("nonResourceRules").for_each(|rule| validate_url_rule(&rule, errors));
    }
}

/// Each kind of subject and the field that names one.
const SUBJECTS: [(&str, &str); 3] = [("Group", "group"), ("ServiceAccount", "serviceAccount"), ("User", "user")];

fn validate_subject(subject: &Place, errors: &mut Errors) {
    let kind = subject.text("kind");
    let Some((_, wanted)) = SUBJECTS.iter().find(|(name, _)| *name == kind) else {
        subject.child("kind").one_of(&SUBJECTS.map(|(kind, _)| kind), errors);
        return;
    };
    let named = subject.child(wanted);
    if named.is_null() {
        errors.push(Error::required(&named.path, format!("{wanted} is required when subject kind is '{kind}'")));
    } else {
        let name = named.child("name");
        if name.required("", errors) && *wanted == "serviceAccount" && name.string() != "*" {
            name.follows(name::dns_subdomain, errors);
        }
        let namespace = named.child("namespace");
        if *wanted == "serviceAccount" && namespace.required("must specify namespace for service account", errors) {
            namespace.follows(name::dns_label, errors);
        }
    }
    for (other, field) in SUBJECTS.iter().filter(|(_, field)| field != wanted && subject.has(field)) {
        let detail = format!("{field} is forbidden when subject kind is not '{other}'");
        errors.push(Error::forbidden(&subject.child(field).path, detail));
    }
}

/// A list that has something in it, and either names things or means everything. Returns whether it names things.
fn validate_list(rule: &Place, field: &str, missing: &str, words: &str, errors: &mut Errors) -> bool {
    let list = rule.child(field);
    let everything = rule.items(field).iter().any(|item| item == "*");
    if list.required(missing, errors) && everything && rule.items(field).len() > 1 {
        errors.push(list.invalid(format!("if '*' is present, must not specify other {words}")));
    }
    !everything
}

fn validate_verbs(rule: &Place, errors: &mut Errors) {
    let known = |verb: &Value| verb.as_str().is_some_and(|verb| VERBS.contains(&verb));
    if validate_list(rule, "verbs", "verbs must contain at least one value", "verbs", errors)
        && !rule.items("verbs").iter().all(known)
    {
        let verbs = rule.child("verbs");
        errors.push(Error::not_supported(&verbs.path, verbs.value.clone(), &VERBS));
    }
}

fn validate_resource_rule(rule: &Place, errors: &mut Errors) {
    validate_verbs(rule, errors);
    validate_list(rule, "apiGroups", "resource rules must supply at least one api group", "api groups", errors);
    validate_list(rule, "resources", "resource rules must supply at least one resource", "resources", errors);
    if rule.items("namespaces").is_empty() && rule.flag("clusterScope") {
        return;
    }
    let missing = "resource rules that are not cluster scoped must supply at least one namespace";
    if validate_list(rule, "namespaces", missing, "namespaces", errors) {
        for namespace in rule.list("namespaces") {
            let intro = "each member of this list must be '*' or a DNS-1123 label; ";
            let wrong = name::dns_label(namespace.string()).into_iter();
            errors.extend(wrong.map(|message| namespace.invalid(format!("{intro}{message}"))));
        }
    }
}

fn validate_url_rule(rule: &Place, errors: &mut Errors) {
    validate_verbs(rule, errors);
    let missing = "nonResourceURLs must contain at least one value";
    if !validate_list(rule, "nonResourceURLs", missing, "non-resource URLs", errors) {
        return;
    }
    for url in rule.list("nonResourceURLs") {
        let text = url.string();
        let stars = text.matches('*').count();
        let problems = [
            (text.is_empty(), "must not be empty"),
            (!text.starts_with('/'), "must start with slash"),
            (text.contains(' '), "must not contain white-space"),
            (text.contains("//"), "must not contain double slash"),
            (stars > 1 || (stars == 1 && !text.ends_with("/*")), "wildcard can only do suffix matching"),
        ];
        errors.extend(problems.iter().find(|(wrong, _)| *wrong).map(|(_, detail)| url.invalid(*detail)));
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
    let spec = Place::root(new).child("spec");
    let name = new.at("metadata").text("name");
    let kind = spec.child("type");
    if (name == EXEMPT) != (kind.string() == "Exempt") {
        errors.push(Error::invalid(&kind.path, kind.string(), "must be 'Exempt' if and only if `name` is 'exempt'"));
    }
    let (limited, exempt) = (spec.child("limited"), spec.child("exempt"));
    match kind.string() {
        "Exempt" => {
            limited.forbidden("must be nil if the type is not Limited", errors);
            validate_shares(&exempt, errors);
        }
        "Limited" => {
            exempt.forbidden("must be nil if the type is Limited", errors);
            if limited.required("must not be empty when type is Limited", errors) {
                validate_shares(&limited, errors);
                validate_response(&limited.child("limitResponse"), errors);
            }
        }
        _ => kind.required_one_of(&["Exempt", "Limited"], errors),
    }
    let fixed = json!({
        "type": "Limited",
        "limited": { "nominalConcurrencyShares": 5, "lendablePercent": 0, "limitResponse": { "type": "Reject" } },
    });
    if name == CATCH_ALL && !same(spec.value, &fixed) {
        errors.push(spec.invalid(format!("spec of '{name}' must equal the fixed value")));
    }
}

fn validate_shares(level: &Place, errors: &mut Errors) {
    let shares = level.child("nominalConcurrencyShares");
    if shares.as_i64().is_some_and(|shares| shares < 0) {
        errors.push(shares.invalid("must be a non-negative integer"));
    }
    let lendable = level.child("lendablePercent");
    if !lendable.is_null() {
        lendable.within(0, 100, errors);
    }
    let borrowing = level.child("borrowingLimitPercent");
    if borrowing.as_i64().is_some_and(|percent| percent < 0) {
        errors.push(borrowing.invalid("if specified, must be a non-negative integer"));
    }
}

fn validate_response(response: &Place, errors: &mut Errors) {
    let queuing = response.child("queuing");
    match response.text("type") {
        "Reject" => queuing.forbidden("must be nil if limited.limitResponse.type is not Limited", errors),
        "Queue" => {
            if queuing.required("must not be empty if limited.limitResponse.type is Limited", errors) {
                validate_queuing(&queuing, errors);
            }
        }
        _ => response.child("type").required_one_of(&["Queue", "Reject"], errors),
    }
}

fn validate_queuing(queuing: &Place, errors: &mut Errors) {
    for field in ["queueLengthLimit", "queues", "handSize"] {
        let number = queuing.child(field);
        if number.as_i64().unwrap_or_default() <= 0 {
            errors.push(number.invalid("must be positive"));
        }
    }
    let (queues, hand) = (queuing.child("queues"), queuing.child("handSize"));
    let deck = queues.as_i64().unwrap_or_default();
    if deck > MAX_QUEUES {
        errors.push(queues.invalid(format!("must not be greater than {MAX_QUEUES}")));
    }
    let size = hand.as_i64().unwrap_or_default();
    if size > deck {
        errors.push(hand.invalid(format!("should not be greater than queues ({deck})")));
    } else if (0..size).map(|dealt| ((deck - dealt) as f64).log2()).sum::<f64>() > 60.0 {
        errors.push(hand.invalid(format!(
            "required entropy bits of deckSize {deck} and handSize {size} should not be greater than 60"
        )));
    }
}

fn validate_conditions(new: &Value, _old: &Value, errors: &mut Errors) {
    let status = Place::root(new).child("status");
    status.unique_by("conditions", "type", errors);
    for condition in status.list("conditions") {
        condition.child("type").required("", errors);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::strategy::place::testing::{each_mistake_has_its_message, filled};

    #[test]
    fn a_flow_has_subjects_rules_and_a_level() {
        let good = json!({ "metadata": { "name": "a" }, "spec": {
            "priorityLevelConfiguration": { "name": "b" },
            "rules": [{
                "subjects": [{ "kind": "User", "user": { "name": "jane" } }],
                "resourceRules": [{ "verbs": ["*"], "apiGroups": ["*"], "resources": ["*"], "namespaces": ["*"] }],
            }],
        } });
        assert_eq!(filled(&FLOW_SCHEMA, "flowcontrol.v1.FlowSchema", &good)["spec"]["matchingPrecedence"], 1000);
        each_mistake_has_its_message(
            &FLOW_SCHEMA,
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
        let limited = filled(&PRIORITY_LEVEL, kind, &good)["spec"]["limited"].clone();
        assert_eq!(limited["nominalConcurrencyShares"], 30);
        assert_eq!(limited["limitResponse"]["queuing"], json!({ "handSize": 8, "queues": 64, "queueLengthLimit": 50 }));
        let mut settled = good;
        settled["spec"]["limited"]["limitResponse"]["queuing"]["queues"] = json!(64);
        each_mistake_has_its_message(
            &PRIORITY_LEVEL,
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
