//! What the server decides of a pod: its first status, selectors that depend on its labels, and its profile.

use super::annotations::APP_ARMOR;
use super::default::CONTAINER_LISTS;
use super::resources::qos_class;
use object::{Edit, Value, View, json};

const AFFINITIES: [&str; 2] = ["podAffinity", "podAntiAffinity"];

pub(super) fn prepare(new: &mut Value, old: Option<&Value>) {
    if let Some(spec) = new.object("spec") {
        drop_disabled(spec);
    }
    if old.is_none() {
        let mut status = json!({ "phase": "Pending", "qosClass": qos_class(new) });
        if !new.at("spec").items("schedulingGates").is_empty() {
            status.set("conditions", json!([gated()]));
        }
        new.set("status", status);
        join_label_keys(new);
        app_armor_field(new);
    }
}

fn gated() -> Value {
    json!({
        "type": "PodScheduled",
        "status": "False",
        "reason": "SchedulingGated",
        "message": "Scheduling is blocked due to non-empty scheduling gates",
    })
}

/// Fields of features that are not ready for use stay out.
pub(in crate::strategy) fn drop_disabled(spec: &mut Value) {
    for list in CONTAINER_LISTS {
        for container in spec.each(list) {
            if let Some(lifecycle) = container.object("lifecycle") {
                lifecycle.remove("stopSignal");
            }
        }
    }
    for volume in spec.each("volumes") {
        let Some(projected) = volume.object("projected") else { continue };
        for source in projected.each("sources") {
            source.remove("clusterTrustBundle");
            source.remove("podCertificate");
        }
    }
}

/// Selectors that shall match or miss the pod's own labels get their values now, since the labels may change later.
fn join_label_keys(pod: &mut Value) {
    let has_terms = pod.at("spec").has("affinity") || pod.at("spec").has("topologySpreadConstraints");
    if !has_terms {
        return;
    }
    let labels = pod.path(&["metadata", "labels"]).clone();
    let Some(spec) = pod.object("spec") else { return };
    if let Some(affinity) = spec.object("affinity") {
        for kind in AFFINITIES {
            let Some(affinity) = affinity.object(kind) else { continue };
            for term in affinity.each("preferredDuringSchedulingIgnoredDuringExecution") {
                if let Some(term) = term.object("podAffinityTerm") {
                    join(term, &labels);
                }
            }
            affinity.each("requiredDuringSchedulingIgnoredDuringExecution").for_each(|term| join(term, &labels));
        }
    }
    spec.each("topologySpreadConstraints").for_each(|constraint| join(constraint, &labels));
}

fn join(term: &mut Value, labels: &Value) {
    let mut expressions = Vec::new();
    for (field, operator) in [("matchLabelKeys", "In"), ("mismatchLabelKeys", "NotIn")] {
        for key in term.items(field).iter().filter_map(Value::as_str) {
            if let Some(value) = labels.at(key).as_str() {
                expressions.push(json!({ "key": key, "operator": operator, "values": [value] }));
            }
        }
    }
    if expressions.is_empty() {
        return;
    }
    // Without a selector nothing is matched, and adding to it would change that.
    let Some(selector) = term.object("labelSelector") else { return };
    let mut all = selector.items("matchExpressions").to_vec();
    all.extend(expressions);
    selector.set("matchExpressions", all);
}

/// A profile that is given the old way, as an annotation, becomes a field.
fn app_armor_field(pod: &mut Value) {
    let annotations = pod.path(&["metadata", "annotations"]).as_object();
    let Some(annotations) = annotations.filter(|all| all.keys().any(|key| key.starts_with(APP_ARMOR))) else {
        return;
    };
    if pod.at("spec").at("os").text("name") == "windows" {
        return;
    }
    let annotations = annotations.clone();
    let Some(spec) = pod.object("spec") else { return };
    let whole = spec.path(&["securityContext", "appArmorProfile"]).clone();
    for list in CONTAINER_LISTS {
        for container in spec.each(list) {
            let annotation = annotations.text(&format!("{APP_ARMOR}{}", container.text("name")));
            let Some(profile) = app_armor_profile(annotation).filter(|profile| *profile != whole) else { continue };
            if !container.at("securityContext").has("appArmorProfile") {
                container.object_or_new("securityContext").set("appArmorProfile", profile);
            }
        }
    }
}

/// The field that means what an annotation says; none if it says nothing that can be meant.
pub(super) fn app_armor_profile(annotation: &str) -> Option<Value> {
    match (annotation, annotation.strip_prefix("localhost/")) {
        ("unconfined", _) => Some(json!({ "type": "Unconfined" })),
        ("runtime/default", _) => Some(json!({ "type": "RuntimeDefault" })),
        (_, Some(profile)) if !profile.is_empty() && profile.trim() == profile => {
            Some(json!({ "type": "Localhost", "localhostProfile": profile }))
        }
        _ => None,
    }
}
