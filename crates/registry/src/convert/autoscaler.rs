//! HorizontalPodAutoscalers: the older version knows the use of processors and nothing else. Other metrics, behavior
//! and conditions are kept in annotations there.

use crate::strategy::autoscaler::default_metric;
use object::{Edit, Map, Value, View, json};

const METRICS: &str = "autoscaling.alpha.kubernetes.io/metrics";
const CURRENT_METRICS: &str = "autoscaling.alpha.kubernetes.io/current-metrics";
const CONDITIONS: &str = "autoscaling.alpha.kubernetes.io/conditions";
const BEHAVIOR: &str = "autoscaling.alpha.kubernetes.io/behavior";

/// A field of the newer form, as a path, and what the older form calls it.
type Pair = (&'static [&'static str], &'static str);
type Pairs = &'static [Pair];
/// A field, what identifies a metric there, its targets and its current values.
type Source = (&'static str, &'static [Pairs], Pairs, Pairs);

const IDENTIFIER: [Pair; 2] = [(&["metric", "name"], "metricName"), (&["metric", "selector"], "selector")];
const EXTERNAL: [Pair; 2] = [(&["metric", "name"], "metricName"), (&["metric", "selector"], "metricSelector")];
const DESCRIBED: [Pair; 1] = [(&["describedObject"], "target")];
const NAMED: [Pair; 2] = [(&["name"], "name"), (&["container"], "container")];

const TARGET_VALUE: Pair = (&["target", "value"], "targetValue");
const TARGET_AVERAGE: Pair = (&["target", "averageValue"], "targetAverageValue");
const TARGET_UTILIZATION: Pair = (&["target", "averageUtilization"], "targetAverageUtilization");
const CURRENT_VALUE: Pair = (&["current", "value"], "currentValue");
const CURRENT_AVERAGE: Pair = (&["current", "averageValue"], "currentAverageValue");
const CURRENT_UTILIZATION: Pair = (&["current", "averageUtilization"], "currentAverageUtilization");

/// The sources of metrics: what identifies them, and how a target and a current value are named. The first target that
/// is set gives the target its type.
const SOURCES: [Source; 5] = [
    (
        "object",
        &[&DESCRIBED, &IDENTIFIER],
        &[(&["target", "averageValue"], "averageValue"), TARGET_VALUE],
        &[(&["current", "averageValue"], "averageValue"), CURRENT_VALUE],
    ),
    ("pods", &[&IDENTIFIER], &[TARGET_AVERAGE], &[CURRENT_AVERAGE]),
    ("resource", &[&NAMED], &[TARGET_UTILIZATION, TARGET_AVERAGE], &[CURRENT_UTILIZATION, CURRENT_AVERAGE]),
    ("containerResource", &[&NAMED], &[TARGET_UTILIZATION, TARGET_AVERAGE], &[CURRENT_UTILIZATION, CURRENT_AVERAGE]),
    ("external", &[&EXTERNAL], &[TARGET_VALUE, TARGET_AVERAGE], &[CURRENT_VALUE, CURRENT_AVERAGE]),
];

/// The fields of a source, as a target or as a current value.
fn pairs(identity: &[&[Pair]], amounts: &[Pair]) -> Vec<Pair> {
    identity.iter().flat_map(|pairs| pairs.iter()).chain(amounts).copied().collect()
}

fn older_metric(metric: &Value) -> Value {
    let mut older = json!({ "type": metric.text("type") });
    for (source, identity, targets, currents) in SOURCES.iter().filter(|(source, ..)| metric.has(source)) {
        let mut fields = Map::new();
        let all = pairs(identity, &[*targets, *currents].concat());
        for (path, name) in all {
            let value = metric.at(source).path(path);
            if !value.is_null() {
                fields.insert(name.to_owned(), value.clone());
            }
        }
        older.set(source, fields);
    }
    older
}

fn newer_metric(metric: &Value, is_current: bool) -> Value {
    let mut newer = json!({ "type": metric.text("type") });
    for (source, identity, targets, currents) in SOURCES.iter().filter(|(source, ..)| metric.has(source)) {
        let amounts = if is_current { currents } else { targets };
        let older = metric.at(source);
        let mut fields = json!({});
        for (path, name) in pairs(identity, amounts).into_iter().filter(|(_, name)| older.has(name)) {
            put(&mut fields, path, older.at(name).clone());
        }
        let given = targets.iter().filter(|_| !is_current).find(|(_, name)| older.has(name));
        if let Some((path, _)) = given {
            let kind = match path.last() {
                Some(&"averageUtilization") => "Utilization",
                Some(&"averageValue") => "AverageValue",
                _ => "Value",
            };
            put(&mut fields, &["target", "type"], json!(kind));
        }
        newer.set(source, fields);
    }
    newer
}

fn put(value: &mut Value, path: &[&str], field: Value) {
    match path {
        [] => {}
        [last] => value.set(last, field),
        [first, rest @ ..] => put(value.object_or_new(first), rest, field),
    }
}

/// The use of processors, which the older version has a field for.
fn is_cpu_utilization(metric: &Value, place: &str) -> bool {
    metric.text("type") == "Resource"
        && metric.at("resource").text("name") == "cpu"
        && metric.path(&["resource", place]).has("averageUtilization")
}

pub(crate) fn to_older(autoscaler: &mut Value) {
    let spec = autoscaler.object_or_new("spec");
    let metrics = match spec.remove("metrics") {
        Value::Array(metrics) => metrics,
        _ => Vec::new(),
    };
    let behavior = spec.remove("behavior");
    let (processors, others): (Vec<_>, Vec<_>) =
        metrics.into_iter().partition(|metric| is_cpu_utilization(metric, "target"));
    if let Some(metric) = processors.first() {
        let percent = metric.path(&["resource", "target", "averageUtilization"]).clone();
        spec.set("targetCPUUtilizationPercentage", percent);
    }
    let status = autoscaler.object_or_new("status");
    let (current, conditions) = (status.remove("currentMetrics"), status.remove("conditions"));
    let current = current.as_array().map_or(&[][..], Vec::as_slice);
    if let Some(metric) = current.iter().rev().find(|metric| is_cpu_utilization(metric, "current")) {
        let percent = metric.path(&["resource", "current", "averageUtilization"]).clone();
        status.set("currentCPUUtilizationPercentage", percent);
    }
    let list = |metrics: &[Value]| Value::Array(metrics.iter().map(older_metric).collect());
    note(autoscaler, METRICS, &list(&others));
    note(autoscaler, CURRENT_METRICS, &list(current));
    note(autoscaler, CONDITIONS, &conditions);
    note(autoscaler, BEHAVIOR, &with_first_letters(&behavior, char::to_ascii_uppercase));
}

/// Writes an annotation, if there is something to write.
fn note(autoscaler: &mut Value, key: &str, value: &Value) {
    let has_annotations = autoscaler.at("metadata").has("annotations");
    if !crate::strategy::value::is_empty(value) {
        autoscaler.object_or_new("metadata").object_or_new("annotations").set(key, value.to_string());
    } else if has_annotations {
        autoscaler.object_or_new("metadata").object_or_new("annotations").remove(key);
    }
}

/// Reads an annotation and removes it. What cannot be read was written by somebody else and is dropped.
fn take_note(autoscaler: &mut Value, key: &str) -> Value {
    let Some(metadata) = autoscaler.object("metadata") else { return Value::Null };
    let Some(annotations) = metadata.object("annotations") else { return Value::Null };
    let text = annotations.remove(key);
    if annotations.as_object().is_some_and(Map::is_empty) {
        metadata.remove("annotations");
    }
    object::json::parse(text.as_str().unwrap_or_default().as_bytes()).unwrap_or(Value::Null)
}

/// Behavior is noted with the names its fields have in Go.
fn with_first_letters(value: &Value, change: fn(&char) -> char) -> Value {
    match value {
        Value::Object(fields) => fields
            .iter()
            .filter(|(_, value)| !value.is_null())
            .map(|(name, value)| {
                let mut letters = name.chars();
                let first = letters.next().map(|first| change(&first));
                (first.into_iter().chain(letters).collect::<String>(), with_first_letters(value, change))
            })
            .collect::<Map>()
            .into(),
        Value::Array(items) => items.iter().map(|item| with_first_letters(item, change)).collect(),
        other => other.clone(),
    }
}

pub(crate) fn to_newer(autoscaler: &mut Value) {
    let [metrics, current, conditions, behavior] =
        [METRICS, CURRENT_METRICS, CONDITIONS, BEHAVIOR].map(|key| take_note(autoscaler, key));
    let list = |noted: &Value, is_current: bool| -> Vec<Value> {
        let noted = noted.as_array().map_or(&[][..], Vec::as_slice);
        noted.iter().map(|metric| newer_metric(metric, is_current)).collect()
    };
    let spec = autoscaler.object_or_new("spec");
    let mut all = list(&metrics, false);
    let percent = spec.remove("targetCPUUtilizationPercentage");
    if !percent.is_null() || all.is_empty() {
        let mut metric = default_metric();
        if !percent.is_null() {
            put(&mut metric, &["resource", "target", "averageUtilization"], percent);
        }
        all.push(metric);
    }
    spec.set("metrics", all);
    if behavior.is_object() {
        spec.set("behavior", with_first_letters(&behavior, char::to_ascii_lowercase));
    }
    let status = autoscaler.object_or_new("status");
    let percent = status.remove("currentCPUUtilizationPercentage");
    let current = match list(&current, true) {
        noted if noted.is_empty() && !percent.is_null() => {
            vec![
                json!({ "type": "Resource", "resource": { "name": "cpu", "current": { "averageUtilization": percent } } }),
            ]
        }
        noted => noted,
    };
    if !current.is_empty() {
        status.set("currentMetrics", current);
    }
    if conditions.is_array() {
        status.set("conditions", conditions);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target(kind: &str, field: &str, value: impl Into<Value>) -> Value {
        let mut target = json!({ "type": kind });
        target.set(field, value);
        target
    }

    fn autoscaler() -> Value {
        json!({
            "metadata": { "name": "a", "annotations": { "own": "x" } },
            "spec": {
                "scaleTargetRef": { "kind": "Deployment", "name": "a" }, "minReplicas": 1, "maxReplicas": 3,
                "metrics": [
                    { "type": "Pods", "pods": { "metric": { "name": "m" }, "target": target("AverageValue", "averageValue", "5") } },
                    { "type": "Object", "object": {
                        "describedObject": { "kind": "Ingress", "name": "i" }, "metric": { "name": "m" },
                        "target": target("Value", "value", "7"),
                    } },
                    { "type": "External", "external": {
                        "metric": { "name": "q", "selector": { "matchLabels": { "a": "b" } } }, "target": target("AverageValue", "averageValue", "2"),
                    } },
                    { "type": "ContainerResource", "containerResource": {
                        "name": "cpu", "container": "c", "target": target("Utilization", "averageUtilization", 60),
                    } },
                    { "type": "Resource", "resource": { "name": "cpu", "target": target("Utilization", "averageUtilization", 50) } },
                ],
                "behavior": { "scaleDown": { "policies": [{ "type": "Pods", "value": 1, "periodSeconds": 60 }] } },
            },
            "status": {
                "currentReplicas": 1, "desiredReplicas": 2, "conditions": [{ "type": "AbleToScale", "status": "True" }],
                "currentMetrics": [{ "type": "Resource", "resource": { "name": "cpu", "current": { "averageUtilization": 40, "averageValue": "4m" } } }],
            },
        })
    }

    #[test]
    fn going_to_the_older_version_and_back_changes_nothing() {
        let mut value = autoscaler();
        to_older(&mut value);
        assert_eq!(value["spec"]["targetCPUUtilizationPercentage"], 50);
        assert_eq!(value["status"]["currentCPUUtilizationPercentage"], 40);
        assert!(!value["spec"].has("metrics") && !value["spec"].has("behavior") && !value["status"].has("conditions"));
        let annotations = &value["metadata"]["annotations"];
        assert!(
            annotations.text(BEHAVIOR).contains("\"ScaleDown\":{\"Policies\":[{\"PeriodSeconds\":60"),
            "{annotations}"
        );
        assert!(
            annotations
                .text(METRICS)
                .contains("{\"pods\":{\"metricName\":\"m\",\"targetAverageValue\":\"5\"},\"type\":\"Pods\"}")
        );
        to_newer(&mut value);
        assert_eq!(value, autoscaler());
    }

    #[test]
    fn going_to_the_newer_version_and_back_changes_nothing() {
        let older = json!({
            "metadata": { "name": "a" },
            "spec": { "scaleTargetRef": { "kind": "Deployment", "name": "a" }, "maxReplicas": 3, "targetCPUUtilizationPercentage": 70 },
            "status": { "currentReplicas": 1, "desiredReplicas": 1 },
        });
        let mut value = older.clone();
        to_newer(&mut value);
        assert_eq!(value["spec"]["metrics"][0]["resource"]["target"], target("Utilization", "averageUtilization", 70));
        to_older(&mut value);
        assert_eq!(value, older);
    }

    #[test]
    fn without_any_metric_processors_count() {
        let mut value = json!({ "metadata": {}, "spec": {}, "status": {} });
        to_newer(&mut value);
        assert_eq!(value["spec"]["metrics"], json!([default_metric()]));
    }
}
