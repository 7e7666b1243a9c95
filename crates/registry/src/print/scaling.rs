//! How scales and autoscalers look.

use super::text::{NONE, UNKNOWN, UNSET, age, count, first, name, quantity};
use super::{AGE, Column, NAME, Printer, integer, printer, string};
use object::{Value, View, json};

printer!(SCALE = |object, now| {
    string("Name", "Name of the object") => name(object),
    integer("Desired", "Pods that are wanted") => count(object.at("spec"), "replicas"),
    integer("Available", "Pods that are there") => count(object.at("status"), "replicas"),
    AGE => age(object, now),
});

const AUTOSCALER: &[Column] = &[
    NAME,
    string("Reference", "What is scaled"),
    string("Targets", "What is measured, and what is aimed at"),
    string("MinPods", "Fewest pods there may be"),
    string("MaxPods", "Most pods there may be"),
    string("Replicas", "Pods that are there"),
    AGE,
];

pub const HORIZONTAL_POD_AUTOSCALER: Printer = Printer {
    columns: AUTOSCALER,
    cells: |object, now| {
        let (wanted, measured) = (object.at("spec").items("metrics"), object.at("status").items("currentMetrics"));
        autoscaler(object, wanted, measured, now)
    },
};

/// The older version knows one metric only, and not as one of a list.
pub const HORIZONTAL_POD_AUTOSCALER_V1: Printer = Printer {
    columns: AUTOSCALER,
    cells: |object, now| {
        let metric = |field: &str, value: &Value| json!({ "type": "Resource", "resource": { "name": "cpu", field: { "averageUtilization": value } } });
        let target = object.at("spec").at("targetCPUUtilizationPercentage");
        let wanted = if target.is_null() { vec![] } else { vec![metric("target", target)] };
        let measured = [metric("current", object.at("status").at("currentCPUUtilizationPercentage"))];
        autoscaler(object, &wanted, &measured, now)
    },
};

fn autoscaler(object: &Value, wanted: &[Value], measured: &[Value], now: i64) -> Vec<Value> {
    let (spec, status) = (object.at("spec"), object.at("status"));
    let target = spec.at("scaleTargetRef");
    vec![
        name(object).into(),
        format!("{}/{}", target.text("kind"), target.text("name")).into(),
        targets(wanted, measured).into(),
        spec.int("minReplicas").map_or_else(|| UNSET.to_owned(), |min| min.to_string()).into(),
        count(spec, "maxReplicas").into(),
        count(status, "currentReplicas").into(),
        age(object, now).into(),
    ]
}

fn targets(wanted: &[Value], measured: &[Value]) -> String {
    const SHOWN: usize = 2;
    if wanted.is_empty() {
        return NONE.to_owned();
    }
    let texts = wanted.iter().enumerate().map(|(at, metric)| target(metric, measured.get(at)));
    first(SHOWN, &texts.collect::<Vec<_>>(), ", ")
}

/// What is measured and what is aimed at, for one metric: `cpu: 30%/80%`.
fn target(metric: &Value, measured: Option<&Value>) -> String {
    let source = match metric.text("type") {
        "External" => "external",
        "Pods" => "pods",
        "Object" => "object",
        "Resource" => "resource",
        "ContainerResource" => "containerResource",
        _ => return "<unknown type>".to_owned(),
    };
    let wanted = metric.at(source);
    let of_resource = matches!(source, "resource" | "containerResource");
    let field = match source {
        "pods" => "averageValue",
        _ if wanted.at("target").has("averageValue") => "averageValue",
        _ if of_resource => "averageUtilization",
        _ => "value",
    };
    let current = measured.map(|measured| measured.at(source)).filter(|current| !current.is_null());
    let current = current.map(|current| current.at("current").at(field));
    // Averages of the outside world and utilizations may be unknown though the metric is there.
    let may_be_absent = field == "averageUtilization" || (field == "averageValue" && !of_resource && source != "pods");
    let current = match current {
        None => UNKNOWN.to_owned(),
        Some(Value::Null) if may_be_absent => UNKNOWN.to_owned(),
        Some(amount) => shown(amount, field),
    };
    let target = match wanted.at("target").at(field) {
        Value::Null if field == "averageUtilization" => "<auto>".to_owned(),
        amount => shown(amount, field),
    };
    match field {
        _ if of_resource => format!("{}: {current}/{target}", wanted.text("name")),
        "averageValue" if source != "pods" => format!("{current}/{target} (avg)"),
        _ => format!("{current}/{target}"),
    }
}

fn shown(amount: &Value, field: &str) -> String {
    match (field, amount) {
        ("averageUtilization", percent) => format!("{percent}%"),
        (_, Value::Null) => "<nil>".to_owned(),
        (_, amount) => quantity(amount),
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::check;
    use super::*;

    #[test]
    fn a_target_shows_what_is_measured_and_what_is_aimed_at() {
        for (wanted, measured, text) in [
            (
                json!({ "type": "Resource", "resource": { "name": "cpu", "target": { "averageUtilization": 80 } } }),
                json!({ "resource": { "current": { "averageUtilization": 30, "averageValue": "1" } } }),
                "cpu: 30%/80%",
            ),
            (
                json!({ "type": "Resource", "resource": { "name": "cpu", "target": { "averageUtilization": 80 } } }),
                json!({}),
                "cpu: <unknown>/80%",
            ),
            (
                json!({ "type": "Resource", "resource": { "name": "cpu", "target": {} } }),
                json!({}),
                "cpu: <unknown>/<auto>",
            ),
            (
                json!({ "type": "ContainerResource", "containerResource": { "name": "memory", "target": { "averageValue": "1Gi" } } }),
                json!({ "containerResource": { "current": { "averageValue": "512Mi" } } }),
                "memory: 512Mi/1Gi",
            ),
            (
                json!({ "type": "Pods", "pods": { "target": { "averageValue": "100m" } } }),
                json!({ "pods": { "current": { "averageValue": "50m" } } }),
                "50m/100m",
            ),
            (
                json!({ "type": "Object", "object": { "target": { "value": "10" } } }),
                json!({ "object": { "current": { "value": "7" } } }),
                "7/10",
            ),
            (
                json!({ "type": "Object", "object": { "target": { "averageValue": "10" } } }),
                json!({}),
                "<unknown>/10 (avg)",
            ),
            (
                json!({ "type": "External", "external": { "target": { "averageValue": "10" } } }),
                json!({ "external": { "current": { "value": "7" } } }),
                "<unknown>/10 (avg)",
            ),
            (
                json!({ "type": "External", "external": { "target": { "value": "10" } } }),
                json!({ "external": { "current": { "value": "7" } } }),
                "7/10",
            ),
            (json!({ "type": "Weather" }), json!({}), "<unknown type>"),
        ] {
            assert_eq!(target(&wanted, Some(&measured)), text, "{wanted}");
        }
    }

    #[test]
    fn autoscalers_of_both_versions_look_alike() {
        let reference = json!({ "kind": "Deployment", "name": "web" });
        let metric =
            json!({ "type": "Resource", "resource": { "name": "cpu", "target": { "averageUtilization": 80 } } });
        check(
            &HORIZONTAL_POD_AUTOSCALER,
            &[
                (
                    json!({
                        "spec": { "scaleTargetRef": reference, "minReplicas": 2, "maxReplicas": 9, "metrics": [metric] },
                        "status": { "currentReplicas": 3 },
                    }),
                    json!(["Deployment/web", "cpu: <unknown>/80%", "2", 9, 3]),
                ),
                (
                    json!({ "spec": { "scaleTargetRef": reference, "metrics": [metric, metric, metric, metric] } }),
                    json!(["Deployment/web", "cpu: <unknown>/80%, cpu: <unknown>/80% + 2 more...", UNSET, 0, 0]),
                ),
            ],
        );
        check(
            &HORIZONTAL_POD_AUTOSCALER_V1,
            &[
                (
                    json!({
                        "spec": { "scaleTargetRef": reference, "maxReplicas": 9, "targetCPUUtilizationPercentage": 80 },
                        "status": { "currentReplicas": 3, "currentCPUUtilizationPercentage": 40 },
                    }),
                    json!(["Deployment/web", "cpu: 40%/80%", UNSET, 9, 3]),
                ),
                (json!({ "spec": { "scaleTargetRef": reference } }), json!(["Deployment/web", NONE, UNSET, 0, 0])),
            ],
        );
        let scale = json!({ "spec": { "replicas": 3 }, "status": { "replicas": 2 } });
        check(&SCALE, &[(scale, json!(["x", 3, 2]))]);
    }
}
