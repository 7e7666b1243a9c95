//! How quotas, budgets, admission and flow control look.

use super::text::{NONE, UNSET, age, condition, count, join, name, plain, quantity, size, strings};
use super::{AGE, NAME, integer, printer, string};
use object::{Value, View};

printer!(RESOURCE_QUOTA = |object, now| {
    NAME => name(object),
    string("Request", "What is used, of what may be requested") => usage(object.at("status"), false),
    string("Limit", "What is used, of what limits may add up to") => usage(object.at("status"), true),
    AGE => age(object, now),
});

/// The resources of a quota that are limits, or all others.
fn usage(status: &Value, limits: bool) -> String {
    let hard = status.entries("hard").filter(|(resource, _)| resource.starts_with("limits.") == limits);
    let used = |resource: &str| quantity(status.at("used").at(resource));
    join(hard.map(|(resource, hard)| format!("{resource}: {}/{}", used(resource), quantity(hard))), ", ")
}

printer!(POD_DISRUPTION_BUDGET = |object, now| {
    NAME => name(object),
    string("Min Available", "How many pods must stay") => pods(object, "minAvailable"),
    string("Max Unavailable", "How many pods may be gone") => pods(object, "maxUnavailable"),
    integer("Allowed Disruptions", "How many pods may be evicted now") => count(object.at("status"), "disruptionsAllowed"),
    AGE => age(object, now),
});

/// A number of pods, or a share of them.
fn pods(budget: &Value, field: &str) -> String {
    match budget.at("spec").at(field) {
        Value::Null => "N/A".to_owned(),
        number => plain(number),
    }
}

printer!(
    /// Mutating and validating webhooks.
    WEBHOOK_CONFIGURATION = |object, now| {
        NAME => name(object),
        integer("Webhooks", "Number of webhooks") => size(object, "webhooks"),
        AGE => age(object, now),
    }
);

printer!(VALIDATING_ADMISSION_POLICY = |object, now| {
    NAME => name(object),
    integer("Validations", "Number of rules") => size(object.at("spec"), "validations"),
    string("ParamKind", "Kind of its parameters") => parameter_kind(object.at("spec").at("paramKind")),
    AGE => age(object, now),
});

printer!(MUTATING_ADMISSION_POLICY = |object, now| {
    NAME => name(object),
    integer("Mutations", "Number of changes") => size(object.at("spec"), "mutations"),
    string("ParamKind", "Kind of its parameters") => parameter_kind(object.at("spec").at("paramKind")),
    AGE => age(object, now),
});

fn parameter_kind(kind: &Value) -> String {
    if kind.is_null() {
        return UNSET.to_owned();
    }
    format!("{}/{}", kind.text("apiVersion"), kind.text("kind"))
}

printer!(
    /// Bindings of mutating and of validating policies.
    ADMISSION_POLICY_BINDING = |object, now| {
        NAME => name(object),
        string("PolicyName", "Policy that is put to use") => object.at("spec").text("policyName"),
        string("ParamRef", "Its parameters") => parameters(object.at("spec").at("paramRef")),
        AGE => age(object, now),
    }
);

fn parameters(reference: &Value) -> String {
    match (reference.text("namespace"), reference.text("name")) {
        (_, "") if reference.has("selector") => selector_struct(reference.at("selector")),
        (_, "") => UNSET.to_owned(),
        ("", name) => format!("*/{name}"),
        (namespace, name) => format!("{namespace}/{name}"),
    }
}

/// A label selector written out field by field, which is how it has always been shown here.
fn selector_struct(selector: &Value) -> String {
    let labels = selector.entries("matchLabels").map(|(key, value)| format!("{key}: {},", plain(value)));
    let expressions = selector.items("matchExpressions").iter().map(|expression| {
        let (key, operator) = (expression.text("key"), expression.text("operator"));
        let values = join(strings(expression, "values"), " ");
        format!("LabelSelectorRequirement{{Key:{key},Operator:{operator},Values:[{values}],}},")
    });
    format!(
        "&LabelSelector{{MatchLabels:map[string]string{{{}}},MatchExpressions:[]LabelSelectorRequirement{{{}}},}}",
        labels.collect::<String>(),
        expressions.collect::<String>(),
    )
}

printer!(FLOW_SCHEMA = |object, now| {
    NAME => name(object),
    string("PriorityLevel", "Level its requests are served at")
        => object.path(&["spec", "priorityLevelConfiguration"]).text("name"),
    string("MatchingPrecedence", "Schemas with the lowest are asked first") => count(object.at("spec"), "matchingPrecedence"),
    string("DistinguisherMethod", "What tells its flows apart") => distinguisher(object.at("spec")),
    AGE => age(object, now),
    string("MissingPL", "Whether the level does not exist")
        => condition(object.at("status"), "Dangling").map_or("?", |condition| condition.text("status")),
});

fn distinguisher(spec: &Value) -> &str {
    if spec.has("distinguisherMethod") { spec.at("distinguisherMethod").text("type") } else { NONE }
}

printer!(PRIORITY_LEVEL = |object, now| {
    NAME => name(object),
    string("Type", "Whether it is limited") => object.at("spec").text("type"),
    string("NominalConcurrencyShares", "Its share of the requests served at a time")
        => limit(object.at("spec").at("limited"), "nominalConcurrencyShares"),
    string("Queues", "Number of queues") => limit(queuing(object), "queues"),
    string("HandSize", "Queues a flow is spread over") => limit(queuing(object), "handSize"),
    string("QueueLengthLimit", "Requests that may wait in a queue") => limit(queuing(object), "queueLengthLimit"),
    AGE => age(object, now),
});

fn queuing(level: &Value) -> &Value {
    level.path(&["spec", "limited", "limitResponse", "queuing"])
}

fn limit(settings: &Value, field: &str) -> Value {
    if settings.is_null() { NONE.into() } else { count(settings, field).into() }
}

#[cfg(test)]
mod tests {
    use super::super::tests::check;
    use super::*;
    use object::json;

    #[test]
    fn quotas_show_what_is_used() {
        let hard = json!({ "limits.cpu": "2", "pods": "10", "requests.cpu": "1000m" });
        let status = json!({ "hard": hard, "used": { "pods": "3", "limits.cpu": "500m" } });
        check(
            &RESOURCE_QUOTA,
            &[
                (json!({ "status": status }), json!(["pods: 3/10, requests.cpu: 0/1", "limits.cpu: 500m/2"])),
                (json!({}), json!(["", ""])),
            ],
        );
    }

    #[test]
    fn budgets_show_numbers_and_shares() {
        check(
            &POD_DISRUPTION_BUDGET,
            &[
                (
                    json!({ "spec": { "minAvailable": 2 }, "status": { "disruptionsAllowed": 1 } }),
                    json!(["2", "N/A", 1]),
                ),
                (json!({ "spec": { "maxUnavailable": "50%" } }), json!(["N/A", "50%", 0])),
            ],
        );
    }

    #[test]
    fn admission_shows_its_parameters() {
        check(&WEBHOOK_CONFIGURATION, &[(json!({ "webhooks": [{}, {}] }), json!([2]))]);
        let kind = json!({ "apiVersion": "v1", "kind": "ConfigMap" });
        check(
            &VALIDATING_ADMISSION_POLICY,
            &[
                (json!({ "spec": { "validations": [{}], "paramKind": kind } }), json!([1, "v1/ConfigMap"])),
                (json!({}), json!([0, UNSET])),
            ],
        );
        check(&MUTATING_ADMISSION_POLICY, &[(json!({ "spec": { "mutations": [{}] } }), json!([1, UNSET]))]);
        let selector = json!({
            "matchLabels": { "a": "b" },
            "matchExpressions": [{ "key": "k", "operator": "In", "values": ["x", "y"] }],
        });
        let written = "&LabelSelector{MatchLabels:map[string]string{a: b,},MatchExpressions:[]LabelSelectorRequirement\
            {LabelSelectorRequirement{Key:k,Operator:In,Values:[x y],},},}";
        for (reference, text) in [
            (json!(null), UNSET),
            (json!({ "name": "n" }), "*/n"),
            (json!({ "name": "n", "namespace": "s" }), "s/n"),
            (json!({ "namespace": "s" }), UNSET),
            (json!({ "selector": selector }), written),
        ] {
            let binding = json!({ "spec": { "policyName": "p", "paramRef": reference } });
            check(&ADMISSION_POLICY_BINDING, &[(binding, json!(["p", text]))]);
        }
    }

    #[test]
    fn flow_control_shows_levels_and_queues() {
        let spec = json!({
            "priorityLevelConfiguration": { "name": "l" }, "matchingPrecedence": 7,
            "distinguisherMethod": { "type": "ByUser" },
        });
        let status = json!({ "conditions": [{ "type": "Dangling", "status": "False" }] });
        check(
            &FLOW_SCHEMA,
            &[
                (json!({ "spec": spec, "status": status }), json!(["l", 7, "ByUser", "False"])),
                (json!({}), json!(["", 0, NONE, "?"])),
            ],
        );
        let queuing = json!({ "queues": 64, "handSize": 6, "queueLengthLimit": 50 });
        let limited = |response: Value| {
            let limited = json!({ "nominalConcurrencyShares": 30, "limitResponse": response });
            json!({ "spec": { "type": "Limited", "limited": limited } })
        };
        check(
            &PRIORITY_LEVEL,
            &[
                (limited(json!({ "queuing": queuing })), json!(["Limited", 30, 64, 6, 50])),
                (limited(json!({ "type": "Reject" })), json!(["Limited", 30, NONE, NONE, NONE])),
                (json!({ "spec": { "type": "Exempt" } }), json!(["Exempt", NONE, NONE, NONE, NONE])),
            ],
        );
    }
}
