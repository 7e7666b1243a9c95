//! HorizontalPodAutoscalers. The older version is judged by what it becomes in the newer one.

use crate::convert::autoscaler_to_newer;
use crate::strategy::place::Place;
use crate::strategy::value::quantity;
use crate::strategy::{PLAIN, Strategy, resource_name};
use object::field::Errors;
use object::{Edit, Value, View, json, name};

pub const V2: Strategy =
    Strategy { default: Some(default), validate: Some(validate), validate_status: Some(validate_status), ..PLAIN };
pub const V1: Strategy = Strategy {
    default: Some(|autoscaler| autoscaler.object_or_new("spec").set_default("minReplicas", 1)),
    validate: Some(validate_older),
    validate_status: Some(validate_status),
    ..PLAIN
};

/// The part of its request that a pod may use before there have to be more of them.
pub const DEFAULT_CPU_PERCENT: i64 = 80;
const MAX_PERIOD_SECONDS: i64 = 1800;
const MAX_WINDOW_SECONDS: i64 = 3600;

/// The metric of those who name none.
pub fn default_metric() -> Value {
    json!({
        "type": "Resource",
        "resource": { "name": "cpu", "target": { "type": "Utilization", "averageUtilization": DEFAULT_CPU_PERCENT } },
    })
}

fn default(autoscaler: &mut Value) {
    let spec = autoscaler.object_or_new("spec");
    spec.set_default("minReplicas", 1);
    if spec.items("metrics").is_empty() {
        spec.set("metrics", json!([default_metric()]));
    }
    let policy = |kind: &str, value: i64| json!({ "type": kind, "value": value, "periodSeconds": 15 });
    if let Some(behavior) = spec.object("behavior") {
        let up = behavior.object_or_new("scaleUp");
        up.set_default("stabilizationWindowSeconds", 0);
        up.set_default("selectPolicy", "Max");
        up.set_default("policies", json!([policy("Pods", 4), policy("Percent", 100)]));
        let down = behavior.object_or_new("scaleDown");
        down.set_default("selectPolicy", "Max");
        down.set_default("policies", json!([policy("Percent", 100)]));
    }
}

fn validate_older(new: &Value, old: Option<&Value>, errors: &mut Errors) {
    let newer = |value: &Value| {
        let mut value = value.clone();
        autoscaler_to_newer(&mut value);
        value
    };
    validate(&newer(new), old.map(newer).as_ref(), errors);
}

fn validate(new: &Value, old: Option<&Value>, errors: &mut Errors) {
    let spec = Place::field_of(new, "spec");
    let (min, max) = (spec.field("minReplicas"), spec.field("maxReplicas"));
    let lowest = i64::from(!old.is_some_and(|old| old.path(&["spec", "minReplicas"]) == 0));
    if min.number().is_some_and(|min| min < lowest) {
        min.invalid(errors, format!("must be greater than or equal to {lowest}"));
    }
    match max.int() {
        0 => max.required(errors, "must be set and greater than 0"),
        ..0 => max.invalid(errors, "must be greater than or equal to 1"),
        _ => {}
    }
    if min.number().is_some_and(|min| max.int() < min) {
        let shown = max.int();
        max.invalid_value(errors, shown, "must be greater than or equal to `minReplicas`");
    }
    let target = spec.field("scaleTargetRef");
    let known = old.map(|old| old.path(&["spec", "scaleTargetRef"]));
    let unchanged = known.is_some_and(|old| {
        old.text("apiVersion") == target.field("apiVersion").text() && old.text("kind") == target.field("kind").text()
    });
    validate_reference(&target, !unchanged, target.field("kind").text() != "ReplicationController", errors);
    spec.field("metrics").items().for_each(|metric| validate_metric(&metric, errors));
    let scales_to_zero = |metric: &&Value| matches!(metric.text("type"), "Object" | "External");
    if min.number() == Some(0) && !spec.field("metrics").values().iter().any(|metric| scales_to_zero(&metric)) {
        let detail = "must specify at least one Object or External metric to support scaling to zero replicas";
        spec.field("metrics").forbidden(errors, detail);
    }
    let behavior = spec.field("behavior");
    for direction in ["scaleUp", "scaleDown"] {
        let rules = behavior.field(direction);
        if rules.is_set() {
            validate_rules(&rules, errors);
        }
    }
}

fn validate_reference(reference: &Place, check_version: bool, needs_group: bool, errors: &mut Errors) {
    reference.field("kind").require_follows(errors, name::path_segment);
    reference.field("name").require_follows(errors, name::path_segment);
    let version = reference.field("apiVersion");
    let text = version.text();
    let detail = match text.matches('/').count() {
        _ if !check_version => return,
        0 if needs_group => "apiVersion must specify API group".to_owned(),
        0 | 1 => return,
        _ => format!("unexpected GroupVersion string: {text}"),
    };
    version.invalid_value(errors, text, detail);
}

fn validate_rules(rules: &Place, errors: &mut Errors) {
    let window = rules.field("stabilizationWindowSeconds");
    match window.number() {
        Some(..0) => window.invalid(errors, "must be greater than or equal to zero"),
        Some(seconds) if seconds > MAX_WINDOW_SECONDS => {
            window.invalid(errors, format!("must be less than or equal to {MAX_WINDOW_SECONDS}"));
        }
        _ => {}
    }
    rules.field("selectPolicy").one_of_if_set(errors, &["Disabled", "Max", "Min"]);
    rules.field("policies").require_because(errors, "must specify at least one Policy");
    for policy in rules.field("policies").items() {
        policy.field("type").one_of(errors, &["Percent", "Pods"]);
        for field in ["value", "periodSeconds"] {
            let number = policy.field(field);
            if number.int() <= 0 {
                number.invalid(errors, "must be greater than zero");
            }
        }
        let period = policy.field("periodSeconds");
        if period.int() > MAX_PERIOD_SECONDS {
            period.invalid(errors, format!("must be less than or equal to {MAX_PERIOD_SECONDS}"));
        }
    }
    let tolerance = rules.field("tolerance");
    if quantity(tolerance.value()).is_negative() {
        tolerance.invalid(errors, "must be greater than or equal to 0");
    }
}

/// Each type of metric, its field, the ways to give its target, and what to say if there is none or more than one.
type Source = (&'static str, &'static str, &'static [&'static str], &'static str, Option<&'static str>);

const SOURCES: [Source; 5] = [
    (
        "ContainerResource",
        "containerResource",
        &["averageUtilization", "averageValue"],
        "must set either a target raw value or a target utilization",
        Some("may not set both a target raw value and a target utilization"),
    ),
    (
        "External",
        "external",
        &["averageValue", "value"],
        "must set either a target value for metric or a per-pod target",
        Some("may not set both a target value for metric and a per-pod target"),
    ),
    ("Object", "object", &["averageValue", "value"], "must set either a target value or averageValue", None),
    ("Pods", "pods", &["averageValue"], "must specify a positive target averageValue", None),
    (
        "Resource",
        "resource",
        &["averageUtilization", "averageValue"],
        "must set either a target raw value or a target utilization",
        Some("may not set both a target raw value and a target utilization"),
    ),
];

fn validate_metric(metric: &Place, errors: &mut Errors) {
    let kind = metric.field("type");
    if kind.is_empty() {
        kind.required(errors, "must specify a metric source type");
    }
    kind.one_of(errors, &SOURCES.map(|(kind, ..)| kind));
    let expected = SOURCES.iter().find(|(name, ..)| *name == kind.text()).map(|(_, field, ..)| *field);
    let mut present: Vec<&str> =
        SOURCES.iter().map(|(_, field, ..)| *field).filter(|field| metric.field(field).is_set()).collect();
    // The order in which Kubernetes looks at them decides which one it judges.
    present.sort_by_key(|field| {
        ["object", "external", "pods", "resource", "containerResource"].iter().position(|f| f == field)
    });
    if let Some(first) = present.first() {
        validate_source(&metric.field(first), first, errors);
    }
    if let Some(expected) = expected.filter(|expected| !present.contains(expected)) {
        let detail = "must populate information for the given metric source";
        metric.field(expected).required(errors, detail);
    }
    if present.len() != 1 {
        for other in present.iter().filter(|field| Some(**field) != expected) {
            let detail = "must populate the given metric source only";
            metric.field(other).forbidden(errors, detail);
        }
    }
}

fn validate_source(source: &Place, field: &str, errors: &mut Errors) {
    let Some((_, _, ways, missing, both)) = SOURCES.iter().find(|(_, name, ..)| *name == field) else { return };
    if field == "object" {
        validate_reference(&source.field("describedObject"), true, false, errors);
    }
    if matches!(field, "object" | "external" | "pods") {
        let identifier = source.descend(&["metric", "name"]);
        if identifier.require_because(errors, "must specify a metric name") {
            identifier.follows(errors, name::path_segment);
        }
    } else if source.field("name").require_because(errors, "must specify a resource name")
        && field == "containerResource"
    {
        resource_name::validate_container(source.field("name").text(), &source.field("name"), errors);
    }
    if field == "containerResource" && source.field("container").require_because(errors, "must specify a container") {
        source.field("container").follows(errors, name::dns_label);
    }
    let target = source.field("target");
    validate_target(&target, errors);
    match ways.iter().filter(|way| target.field(way).is_set()).count() {
        0 => target.field(ways[0]).required(errors, *missing),
        1 => {}
        _ => both.iter().for_each(|detail| target.field(ways[1]).forbidden(errors, *detail)),
    }
}

fn validate_target(target: &Place, errors: &mut Errors) {
    let kind = target.field("type");
    kind.require_because(errors, "must specify a metric target type");
    if !matches!(kind.text(), "Utilization" | "Value" | "AverageValue") {
        let detail = "must be either Utilization, Value, or AverageValue";
        kind.invalid_value(errors, kind.text(), detail);
    }
    for amount in ["value", "averageValue"].map(|field| target.field(field)) {
        let value = quantity(amount.value());
        if amount.is_set() && (value.is_negative() || value.is_zero()) {
            amount.invalid(errors, "must be positive");
        }
    }
    target.field("averageUtilization").positive_if_set(errors);
}

fn validate_status(new: &Value, _old: &Value, errors: &mut Errors) {
    let status = Place::field_of(new, "status");
    ["currentReplicas", "desiredReplicas"].iter().for_each(|field| status.field(field).not_negative(errors));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::strategy::check::{each_mistake_has_its_message, filled};

    fn autoscaler() -> Value {
        json!({ "spec": { "scaleTargetRef": { "apiVersion": "apps/v1", "kind": "Deployment", "name": "a" }, "maxReplicas": 3 } })
    }

    #[test]
    fn without_metrics_it_looks_at_processors() {
        let mut with_behavior = autoscaler();
        with_behavior["spec"]["behavior"] = json!({ "scaleDown": { "selectPolicy": "Min" } });
        let spec = filled("autoscaling.v2.HorizontalPodAutoscaler", &with_behavior)["spec"].clone();
        assert_eq!((&spec["minReplicas"], &spec["metrics"]), (&json!(1), &json!([default_metric()])));
        assert_eq!(
            spec["behavior"]["scaleDown"],
            json!({ "selectPolicy": "Min", "policies": [{ "type": "Percent", "value": 100, "periodSeconds": 15 }] })
        );
        assert_eq!(spec["behavior"]["scaleUp"]["stabilizationWindowSeconds"], 0);
    }

    #[test]
    fn each_mistake_is_reported() {
        let kind = "autoscaling.v2.HorizontalPodAutoscaler";
        each_mistake_has_its_message(
            kind,
            &autoscaler(),
            &[
                (
                    "spec.maxReplicas",
                    json!(0),
                    &[
                        "spec.maxReplicas: Required value: must be set and greater than 0",
                        "spec.maxReplicas: Invalid value: 0: must be greater than or equal to `minReplicas`",
                    ],
                ),
                (
                    "spec.minReplicas",
                    json!(4),
                    &["spec.maxReplicas: Invalid value: 3: must be greater than or equal to `minReplicas`"],
                ),
                (
                    "spec.scaleTargetRef.apiVersion",
                    json!("v1"),
                    &["spec.scaleTargetRef.apiVersion: Invalid value: \"v1\": apiVersion must specify API group"],
                ),
                (
                    "spec.metrics",
                    json!([{ "type": "Resource", "resource": { "name": "cpu", "target": { "type": "Utilization" } } }]),
                    &[
                        "spec.metrics[0].resource.target.averageUtilization: Required value: must set either a target raw value or a \
                   target utilization",
                    ],
                ),
                (
                    "spec.metrics",
                    json!([{ "type": "Pods" }]),
                    &["spec.metrics[0].pods: Required value: must populate information for the given metric source"],
                ),
                (
                    "spec.behavior",
                    json!({ "scaleUp": { "policies": [{ "type": "Pods", "value": 0, "periodSeconds": 2000 }] } }),
                    &[
                        "spec.behavior.scaleUp.policies[0].value: Invalid value: 0: must be greater than zero",
                        "spec.behavior.scaleUp.policies[0].periodSeconds: Invalid value: 2000: must be less than or equal to 1800",
                    ],
                ),
            ],
        );
    }

    #[test]
    fn the_older_version_follows_the_same_rules() {
        let mut older = autoscaler();
        older["spec"]["targetCPUUtilizationPercentage"] = json!(50);
        each_mistake_has_its_message(
            "autoscaling.v1.HorizontalPodAutoscaler",
            &older,
            &[(
                "spec.targetCPUUtilizationPercentage",
                json!(0),
                &["spec.metrics[0].resource.target.averageUtilization: Invalid value: 0: must be greater than 0"],
            )],
        );
    }
}
