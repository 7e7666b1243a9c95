//! PersistentVolumeClaims: what is asked for stays, but for growing and for what the system fills in.

use crate::strategy::place::{Place, quantity, same, set_if_empty};
use crate::strategy::volume::{MODES, STORAGE_CLASS_ANNOTATION, STORAGE_CLASS_DEPRECATED, validate_access_modes};
use crate::strategy::{PLAIN, Strategy, label_selector, resource_name};
use object::field::{Error, Errors, Path};
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
    let claim = Place::root(new);
    validate_spec(&claim.child("spec"), errors);
    if let Some(old) = old {
        validate_change(&claim, old, errors);
    }
}

/// The rules of a claim's spec, also where it is a template.
pub fn validate_spec(spec: &Place, errors: &mut Errors) {
    spec.child("accessModes").required("at least 1 access mode is required", errors);
    label_selector::validate(spec.at("selector"), &spec.child("selector").path, errors);
    validate_access_modes(spec, errors);
    let request = Place {
        value: spec.value.path(&["resources", "requests", "storage"]),
        path: spec.child("resources").path.key("storage"),
    };
    let amount = quantity(request.value);
    if request.is_null() {
        errors.push(Error::required(&request.path, ""));
    } else if amount.is_negative() || amount.is_zero() {
        errors.push(request.invalid("must be greater than zero"));
    }
    spec.child("storageClassName").optional_follows(name::dns_subdomain, errors);
    spec.child("volumeMode").optional_one_of(&MODES, errors);
    for field in ["dataSource", "dataSourceRef"] {
        validate_source(&spec.child(field), errors);
    }
    let (source, reference) = (spec.at("dataSource"), spec.at("dataSourceRef"));
    if source.is_object() && !reference.text("namespace").is_empty() {
        let detail = "may not be specified when dataSourceRef.namespace is specified";
        errors.push(Error::invalid(&spec.path, json!({}), detail));
    } else if source.is_object() && reference.is_object() && !names_the_same(source, reference) {
        errors.push(Error::invalid(&spec.path, json!({}), "must match dataSourceRef"));
    }
    spec.child("volumeAttributesClassName").optional_follows(name::dns_subdomain, errors);
}

fn names_the_same(source: &Value, reference: &Value) -> bool {
    ["apiGroup", "kind", "name"].iter().all(|field| same(source.at(field), reference.at(field)))
}

fn validate_source(source: &Place, errors: &mut Errors) {
    if source.is_null() {
        return;
    }
    source.child("name").required("", errors);
    source.child("kind").required("", errors);
    if source.text("apiGroup").is_empty() && source.text("kind") != "PersistentVolumeClaim" {
        let detail = "must be 'PersistentVolumeClaim' when referencing the default apiGroup";
        errors.push(Error::invalid(&source.path, source.text("kind"), detail));
    }
    source.child("apiGroup").optional_follows(name::dns_subdomain, errors);
    source.child("namespace").optional_follows(name::dns_label, errors);
}

fn validate_change(claim: &Place, old: &Value, errors: &mut Errors) {
    let (spec, before) = (claim.child("spec"), old.at("spec"));
    let annotation = |claim: &Value| claim.path(&["metadata", "annotations", STORAGE_CLASS_ANNOTATION]).clone();
    if !may_name_class(&annotation(claim.value), &annotation(old), &spec, before) {
        let place = claim.descend(&["metadata", "annotations"]).key(STORAGE_CLASS_ANNOTATION);
        place.unchanged(&annotation(old), errors);
    }
    if !same(&without_what_may_change(claim.value, old), before) {
        errors.push(Error::forbidden(
            &spec.path,
            "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims",
        ));
    }
    let requested = |spec: &Value| quantity(spec.path(&["resources", "requests", "storage"]));
    let storage = spec.descend(&["resources", "requests", "storage"]).path;
    // A request that could not be met may be taken back, but not to less than there is already.
    let there = quantity(old.path(&["status", "capacity", "storage"]));
    if requested(&spec) < requested(before) && requested(&spec) <= there {
        errors.push(Error::forbidden(&storage, "field can not be less than status.capacity"));
    }
    Place::new(spec.at("volumeMode"), &Path::new("volumeMode")).unchanged(before.at("volumeMode"), errors);
    let class = spec.child("volumeAttributesClassName");
    if old.at("status").has("currentVolumeAttributesClassName") && class.is_empty() {
        let to = if class.is_null() { "nil" } else { "empty string" };
        let detail = format!("update to {to} is forbidden when status.currentVolumeAttributesClassName is not nil");
        errors.push(Error::forbidden(&class.path, detail));
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
    let claim = Place::root(new);
    let modes = Place::new(new.path(&["spec", "accessModes"]), &Path::new("Spec").child("accessModes"));
    modes.required("", errors);
    let status = claim.child("status");
    for (_, amount) in status.map("capacity") {
        if quantity(amount.value).is_negative() {
            errors.push(amount.invalid("must be a valid resource quantity"));
        }
    }
    let statuses = status.child("allocatedResourceStatuses");
    for (name, state) in status.entries("allocatedResourceStatuses") {
        if !state.as_str().is_some_and(|state| RESIZE_STATUSES.contains(&state)) {
            errors.push(Error::not_supported(&statuses.path, name, &RESIZE_STATUSES));
        }
    }
    for (_, amount) in status.map("allocatedResources") {
        resource_name::validate_amount("storage", &amount, errors);
    }
}

fn warn(new: &Value, _old: Option<&Value>) -> Vec<String> {
    let claim = Place::root(new);
    let annotation = claim.descend(&["metadata", "annotations"]).key(STORAGE_CLASS_ANNOTATION);
    let mut warnings = Vec::new();
    if !annotation.is_null() {
        warnings.push(format!("{}: {STORAGE_CLASS_DEPRECATED}", annotation.path));
    }
    for list in ["requests", "limits"] {
        let amount = claim.descend(&["spec", "resources", list]).key("storage");
        if quantity(amount.value).millis() % 1000 != 0 {
            let text = amount.string();
            warnings.push(format!("{}: fractional byte value {text:?} is invalid, must be an integer", amount.path));
        }
    }
    warnings
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::strategy::place::testing::{each_change_has_its_message, each_mistake_has_its_message, filled};

    fn claim() -> Value {
        json!({
            "spec": { "accessModes": ["ReadWriteOnce"], "resources": { "requests": { "storage": "2Gi" } } },
            "status": { "phase": "Bound", "capacity": { "storage": "1Gi" } },
        })
    }

    #[test]
    fn each_mistake_is_reported() {
        each_mistake_has_its_message(
            &STRATEGY,
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
            &STRATEGY,
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
        let mut new = filled(&STRATEGY, "core.v1.PersistentVolumeClaim", &claim());
        new["spec"]["dataSource"] = json!({ "kind": "PersistentVolumeClaim", "name": "a" });
        prepare(&mut new, None);
        assert_eq!(new["spec"]["dataSourceRef"], json!({ "kind": "PersistentVolumeClaim", "name": "a" }));
        let mut other = claim();
        other["spec"]["dataSource"] = json!({ "kind": "Pod", "name": "a" });
        prepare(&mut other, None);
        assert!(!other["spec"].has("dataSource") && !other["spec"].has("dataSourceRef"));
    }
}
