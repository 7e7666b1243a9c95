//! PersistentVolumeClaims: what is asked for stays, but for growing and for what the system fills in.

use crate::strategy::place::Place;
use crate::strategy::value::{quantity, same, set_if_empty};
use crate::strategy::volume::{MODES, STORAGE_CLASS_ANNOTATION, STORAGE_CLASS_DEPRECATED, validate_access_modes};
use crate::strategy::{PLAIN, Strategy, label_selector, resource_name};
use object::field::Errors;
use object::{Edit, Value, View, json, name};

pub const STRATEGY: Strategy = Strategy {
    default: Some(default),
    prepare: Some(prepare),
    validate: Some(validate),
    validate_status: Some(validate_status),
    warn: Some(warn),
    ..PLAIN
};

const RESIZE_STATUSES: [&str; 5] = [
    "ControllerResizeInProgress",
    "ControllerResizeInfeasible",
    "NodeResizeInProgress",
    "NodeResizeInfeasible",
    "NodeResizePending",
];

fn default(claim: &mut Value) {
    set_if_empty(claim.object_or_new("status"), "phase", "Pending");
    claim.object_or_new("spec").set_default("volumeMode", "Filesystem");
}

fn prepare(new: &mut Value, old: Option<&Value>) {
    if old.is_none() {
        new.set("status", json!({ "phase": "Pending" }));
    }
    let had_source = old.is_some_and(|old| old.at("spec").has("dataSource") || old.at("spec").has("dataSourceRef"));
    let spec = new.object_or_new("spec");
    // The older of the two fields never meant anything but another claim or a snapshot.
    if !had_source && !spec.has("dataSourceRef") && !is_claim_or_snapshot(spec.at("dataSource")) {
        spec.remove("dataSource");
    }
    align_sources(spec);
}

fn is_claim_or_snapshot(source: &Value) -> bool {
    matches!(
        (source.text("kind"), source.text("apiGroup")),
        ("PersistentVolumeClaim", "") | ("VolumeSnapshot", "snapshot.storage.k8s.io")
    )
}

/// Either of the two fields fills the other, unless the source is in another namespace.
fn align_sources(spec: &mut Value) {
    let (source, reference) = (spec.at("dataSource").clone(), spec.at("dataSourceRef").clone());
    if source.is_object() && reference.is_null() {
        spec.set("dataSourceRef", source);
    } else if reference.is_object() && source.is_null() && reference.text("namespace").is_empty() {
        let mut source = reference;
        source.remove("namespace");
        spec.set("dataSource", source);
    }
}

fn validate(new: &Value, old: Option<&Value>, errors: &mut Errors) {
    let claim = Place::object(new);
    validate_spec(&claim.field("spec"), errors);
    if let Some(old) = old {
        validate_change(&claim, old, errors);
    }
}

/// The rules of a claim's spec, also where it is a template.
pub fn validate_spec(spec: &Place, errors: &mut Errors) {
    spec.field("accessModes").require_because(errors, "at least 1 access mode is required");
    label_selector::validate(&spec.field("selector"), errors);
    validate_access_modes(spec, errors);
    let resources = spec.field("resources");
    let request = resources.key("storage").with(spec.value().path(&["resources", "requests", "storage"]));
    let amount = quantity(request.value());
    if !request.is_set() {
        request.required(errors, "");
    } else if amount.is_negative() || amount.is_zero() {
        request.invalid(errors, "must be greater than zero");
    }
    spec.field("storageClassName").follows_if_set(errors, name::dns_subdomain);
    spec.field("volumeMode").one_of_if_set(errors, &MODES);
    for field in ["dataSource", "dataSourceRef"] {
        validate_source(&spec.field(field), errors);
    }
    let (source, reference) = (spec.field("dataSource").value(), spec.field("dataSourceRef").value());
    if source.is_object() && !reference.text("namespace").is_empty() {
        let detail = "may not be specified when dataSourceRef.namespace is specified";
        spec.invalid_value(errors, json!({}), detail);
    } else if source.is_object() && reference.is_object() && !names_the_same(source, reference) {
        spec.invalid_value(errors, json!({}), "must match dataSourceRef");
    }
    spec.field("volumeAttributesClassName").follows_if_set(errors, name::dns_subdomain);
}

fn names_the_same(source: &Value, reference: &Value) -> bool {
    ["apiGroup", "kind", "name"].iter().all(|field| same(source.at(field), reference.at(field)))
}

fn validate_source(source: &Place, errors: &mut Errors) {
    if !source.is_set() {
        return;
    }
    source.field("name").require(errors);
    source.field("kind").require(errors);
    if source.field("apiGroup").text().is_empty() && source.field("kind").text() != "PersistentVolumeClaim" {
        let detail = "must be 'PersistentVolumeClaim' when referencing the default apiGroup";
        source.invalid_value(errors, source.field("kind").text(), detail);
    }
    source.field("apiGroup").follows_if_set(errors, name::dns_subdomain);
    source.field("namespace").follows_if_set(errors, name::dns_label);
}

fn validate_change(claim: &Place, old: &Value, errors: &mut Errors) {
    let (spec, before) = (claim.field("spec"), old.at("spec"));
    let annotation = |claim: &Value| claim.path(&["metadata", "annotations", STORAGE_CLASS_ANNOTATION]).clone();
    if !may_name_class(&annotation(claim.value()), &annotation(old), spec.value(), before) {
        let annotations = claim.descend(&["metadata", "annotations"]);
        annotations.key(STORAGE_CLASS_ANNOTATION).unchanged(errors, &annotation(old));
    }
    if !same(&without_what_may_change(claim.value(), old), before) {
        spec.forbidden(
            errors,
            "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims",
        );
    }
    let requested = |spec: &Value| quantity(spec.path(&["resources", "requests", "storage"]));
    let storage = spec.descend(&["resources", "requests", "storage"]);
    // A request that could not be met may be taken back, but not to less than there is already.
    let there = quantity(old.path(&["status", "capacity", "storage"]));
    if requested(spec.value()) < requested(before) && requested(spec.value()) <= there {
        storage.forbidden(errors, "field can not be less than status.capacity");
    }
    Place::named(spec.field("volumeMode").value(), "volumeMode").unchanged(errors, before.at("volumeMode"));
    let class = spec.field("volumeAttributesClassName");
    if old.at("status").has("currentVolumeAttributesClassName") && class.is_empty() {
        let to = if !class.is_set() { "nil" } else { "empty string" };
        let detail = format!("update to {to} is forbidden when status.currentVolumeAttributesClassName is not nil");
        class.forbidden(errors, detail);
    }
}

/// Whether the class moves from the annotation of old into its field.
fn may_name_class(annotation: &Value, was: &Value, spec: &Value, before: &Value) -> bool {
    was.is_string()
        && !before.has("storageClassName")
        && spec.at("storageClassName") == was
        && (annotation.is_null() || annotation == was)
}

/// The new spec, with everything that may change as it was.
fn without_what_may_change(claim: &Value, old: &Value) -> Value {
    let (mut spec, before) = (claim.at("spec").clone(), old.at("spec"));
    let keep = |spec: &mut Value, field: &str| match before.at(field) {
        Value::Null => drop(spec.remove(field)),
        value => spec.set(field, value.clone()),
    };
    if before.text("volumeName").is_empty() {
        keep(&mut spec, "volumeName");
    }
    let was = old.path(&["metadata", "annotations", STORAGE_CLASS_ANNOTATION]);
    if !before.has("storageClassName") && (was.is_null() || spec.at("storageClassName") == was) {
        keep(&mut spec, "storageClassName");
    }
    if claim.at("status").text("phase") == "Bound" {
        keep(&mut spec, "volumeAttributesClassName");
        if let Some(requests) = spec.object("resources").and_then(|resources| resources.object("requests")) {
            requests.set("storage", before.path(&["resources", "requests", "storage"]).clone());
        }
    }
    // Either of the two may have been filled in since.
    let mut aligned = before.clone();
    align_sources(&mut aligned);
    for field in ["dataSource", "dataSourceRef"] {
        if same(spec.at(field), aligned.at(field)) {
            keep(&mut spec, field);
        }
    }
    spec
}

fn validate_status(new: &Value, _old: &Value, errors: &mut Errors) {
    let claim = Place::object(new);
    let modes = Place::named(new.path(&["spec", "accessModes"]), "Spec.accessModes");
    modes.require(errors);
    let status = claim.field("status");
    for (_, amount) in status.field("capacity").entries() {
        if quantity(amount.value()).is_negative() {
            amount.invalid(errors, "must be a valid resource quantity");
        }
    }
    let statuses = status.field("allocatedResourceStatuses");
    for (name, state) in status.value().entries("allocatedResourceStatuses") {
        if !state.as_str().is_some_and(|state| RESIZE_STATUSES.contains(&state)) {
            statuses.not_supported_value(errors, name, &RESIZE_STATUSES);
        }
    }
    for (_, amount) in status.field("allocatedResources").entries() {
        resource_name::validate_amount("storage", &amount, errors);
    }
}

fn warn(new: &Value, _old: Option<&Value>) -> Vec<String> {
    let claim = Place::object(new);
    let annotations = claim.descend(&["metadata", "annotations"]);
    let annotation = annotations.key(STORAGE_CLASS_ANNOTATION);
    let mut warnings = Vec::new();
    if annotation.is_set() {
        warnings.push(format!("{annotation}: {STORAGE_CLASS_DEPRECATED}"));
    }
    for list in ["requests", "limits"] {
        let resources = claim.descend(&["spec", "resources"]);
        let list = resources.field(list);
        let amount = list.key("storage");
        if quantity(amount.value()).millis() % 1000 != 0 {
            let text = amount.text();
            warnings.push(format!("{amount}: fractional byte value {text:?} is invalid, must be an integer"));
        }
    }
    warnings
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::strategy::check::{each_change_has_its_message, each_mistake_has_its_message, filled};

    fn claim() -> Value {
        json!({
            "spec": { "accessModes": ["ReadWriteOnce"], "resources": { "requests": { "storage": "2Gi" } } },
            "status": { "phase": "Bound", "capacity": { "storage": "1Gi" } },
        })
    }

    #[test]
    fn each_mistake_is_reported() {
        each_mistake_has_its_message(
            "core.v1.PersistentVolumeClaim",
            &claim(),
            &[
                (
                    "spec.accessModes",
                    json!([]),
                    &["spec.accessModes: Required value: at least 1 access mode is required"],
                ),
                (
                    "spec.accessModes",
                    json!(["RWO"]),
                    &[
                        "spec.accessModes: Unsupported value: \"RWO\": supported values: \"ReadOnlyMany\", \"ReadWriteMany\", \
                   \"ReadWriteOnce\", \"ReadWriteOncePod\"",
                    ],
                ),
                ("spec.resources", json!({}), &["spec.resources[storage]: Required value"]),
                (
                    "spec.resources.requests.storage",
                    json!("0"),
                    &["spec.resources[storage]: Invalid value: \"0\": must be greater than zero"],
                ),
                (
                    "spec.dataSource",
                    json!({ "kind": "Pod", "name": "a" }),
                    &[
                        "spec.dataSource: Invalid value: \"Pod\": must be 'PersistentVolumeClaim' when referencing the default apiGroup",
                    ],
                ),
            ],
        );
    }

    #[test]
    fn a_claim_stays_but_for_growing() {
        let immutable = "spec: Forbidden: spec is immutable after creation except resources.requests and \
                         volumeAttributesClassName for bound claims";
        each_change_has_its_message(
            "core.v1.PersistentVolumeClaim",
            &claim(),
            &[
                ("spec.resources.requests.storage", json!("3Gi"), &[]),
                (
                    "spec.resources.requests.storage",
                    json!("1Gi"),
                    &["spec.resources.requests.storage: Forbidden: field can not be less than status.capacity"],
                ),
                ("spec.volumeName", json!("pv"), &[]),
                ("spec.storageClassName", json!("fast"), &[]),
                ("spec.accessModes", json!(["ReadWriteMany"]), &[immutable]),
                ("spec.selector", json!({ "matchLabels": { "a": "b" } }), &[immutable]),
            ],
        );
    }

    #[test]
    fn either_form_of_the_source_fills_the_other() {
        let mut new = filled("core.v1.PersistentVolumeClaim", &claim());
        new["spec"]["dataSource"] = json!({ "kind": "PersistentVolumeClaim", "name": "a" });
        prepare(&mut new, None);
        assert_eq!(new["spec"]["dataSourceRef"], json!({ "kind": "PersistentVolumeClaim", "name": "a" }));
        let mut other = claim();
        other["spec"]["dataSource"] = json!({ "kind": "Pod", "name": "a" });
        prepare(&mut other, None);
        assert!(!other["spec"].has("dataSource") && !other["spec"].has("dataSourceRef"));
    }
}
