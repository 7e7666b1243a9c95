//! PersistentVolumes: one source each, which stays.

use crate::strategy::place::{Place, quantity, same, set_if_empty};
use crate::strategy::{PLAIN, Strategy, node, node_selector};
use object::field::{Error, Errors, Path};
use object::{Edit, Value, View, json, name};

pub const STRATEGY: Strategy =
    Strategy { default: Some(default), prepare: Some(prepare), validate: Some(validate), warn: Some(warn), ..PLAIN };

pub const ACCESS_MODES: [&str; 4] = ["ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod"];
pub const MODES: [&str; 2] = ["Block", "Filesystem"];
pub const STORAGE_CLASS_ANNOTATION: &str = "volume.beta.kubernetes.io/storage-class";
pub const STORAGE_CLASS_DEPRECATED: &str = "deprecated since v1.8; use \"storageClassName\" attribute instead";

/// Where a volume can come from, and what has to be said about it.
const SOURCES: [(&str, &[&str]); 22] = [
    ("hostPath", &["path"]),
    ("gcePersistentDisk", &["pdName"]),
    ("awsElasticBlockStore", &["volumeID"]),
    ("glusterfs", &["endpoints", "path"]),
    ("flocker", &[]),
    ("nfs", &["server", "path"]),
    ("rbd", &["monitors", "image"]),
    ("quobyte", &["registry", "volume"]),
    ("cephfs", &["monitors"]),
    ("iscsi", &["targetPortal", "iqn"]),
    ("cinder", &["volumeID"]),
    ("fc", &[]),
    ("flexVolume", &["driver"]),
    ("azureFile", &["secretName", "shareName"]),
    ("vsphereVolume", &["volumePath"]),
    ("photonPersistentDisk", &["pdID"]),
    ("portworxVolume", &["volumeID"]),
    ("azureDisk", &["diskName", "diskURI"]),
    ("scaleIO", &["gateway", "system", "volumeName"]),
    ("local", &["path"]),
    ("storageos", &[]),
    ("csi", &["volumeHandle"]),
];

/// Sources that no longer work, and since when.
const DEPRECATED_SOURCES: [(&str, &str, &str); 6] = [
    ("cephfs", "cephfs", "deprecated in v1.28, non-functional in v1.31+"),
    ("photonPersistentDisk", "photonPersistentDisk", "deprecated in v1.11, non-functional in v1.16+"),
    ("scaleIO", "scaleIO", "deprecated in v1.16, non-functional in v1.22+"),
    ("storageos", "storageOS", "deprecated in v1.22, non-functional in v1.25+"),
    ("glusterfs", "glusterfs", "deprecated in v1.25, non-functional in v1.26+"),
    ("rbd", "rbd", "deprecated in v1.28, non-functional in v1.31+"),
];

const SECRETS_OF_CSI: [&str; 4] =
    ["controllerPublishSecretRef", "controllerExpandSecretRef", "nodePublishSecretRef", "nodeExpandSecretRef"];

fn default(volume: &mut Value) {
    set_if_empty(volume.object_or_new("status"), "phase", "Pending");
    let spec = volume.object_or_new("spec");
    set_if_empty(spec, "persistentVolumeReclaimPolicy", "Retain");
    spec.set_default("volumeMode", "Filesystem");
}

fn prepare(new: &mut Value, old: Option<&Value>) {
    if old.is_none() {
        new.set("status", json!({ "phase": "Pending" }));
    }
}

fn validate(new: &Value, old: Option<&Value>, errors: &mut Errors) {
    let spec = Place::root(new).child("spec");
    spec.child("accessModes").required("", errors);
    validate_access_modes(&spec, errors);
    validate_capacity(&spec, errors);
    let policy = spec.child("persistentVolumeReclaimPolicy");
    if !policy.is_empty() {
        policy.one_of(&["Delete", "Recycle", "Retain"], errors);
    }
    validate_affinity(&spec, errors);
    validate_source(&spec, errors);
    spec.child("storageClassName").optional_follows(name::dns_subdomain, errors);
    spec.child("volumeMode").optional_one_of(&MODES, errors);
    let class = spec.child("volumeAttributesClassName");
    if !class.is_null() {
        if class.required("an empty string is disallowed", errors) {
            class.follows(name::dns_subdomain, errors);
        }
        if !spec.has("csi") {
            let detail = "has to be specified when using volumeAttributesClassName";
            errors.push(Error::required(&spec.child("csi").path, detail));
        }
    }
    if let Some(old) = old {
        validate_change(&spec, old.at("spec"), errors);
    }
}

/// The ways a volume may be used; one of them excludes all others.
pub fn validate_access_modes(spec: &Place, errors: &mut Errors) {
    let modes = spec.child("accessModes");
    for mode in spec.items("accessModes") {
        Place::new(mode, &modes.path).one_of(&ACCESS_MODES, errors);
    }
    let known = || {
        spec.items("accessModes").iter().filter(|mode| mode.as_str().is_some_and(|mode| ACCESS_MODES.contains(&mode)))
    };
    if known().any(|mode| mode == "ReadWriteOncePod") && known().any(|mode| mode != "ReadWriteOncePod") {
        errors.push(Error::forbidden(&modes.path, "may not use ReadWriteOncePod with other access modes"));
    }
}

fn validate_capacity(spec: &Place, errors: &mut Errors) {
    let capacity = spec.child("capacity");
    capacity.required("", errors);
    if !capacity.has("storage") || capacity.as_object().is_some_and(|amounts| amounts.len() > 1) {
        errors.push(Error::not_supported(&capacity.path, capacity.value.clone(), &["storage"]));
    }
    for (_, amount) in spec.map("capacity") {
        let value = quantity(amount.value);
        if value.is_negative() || value.is_zero() {
            errors.push(amount.invalid("must be greater than zero"));
        }
    }
}

fn validate_affinity(spec: &Place, errors: &mut Errors) {
    let affinity = spec.child("nodeAffinity");
    if affinity.is_null() {
        return;
    }
    let required = affinity.child("required");
    if required.is_null() {
        errors.push(Error::required(&required.path, "must specify required node constraints"));
    } else {
        node_selector::validate(&required, errors);
    }
}

fn validate_source(spec: &Place, errors: &mut Errors) {
    let mut sources = SOURCES.iter().filter(|(source, _)| spec.has(source));
    let Some((source, required)) = sources.next() else {
        errors.push(Error::required(&spec.path, "must specify a volume type"));
        return;
    };
    let place = spec.child(source);
    for field in *required {
        place.child(field).required("", errors);
    }
    match *source {
        "hostPath" | "local" => {
            let path = place.child("path");
            if path.string().split('/').any(|step| step == "..") {
                errors.push(Error::invalid(&path.path, path.string(), "must not contain '..'"));
            }
        }
        "nfs" if !place.text("path").starts_with('/') => {
            errors.push(Error::invalid(&place.child("path").path, place.text("path"), "must be an absolute path"));
        }
        "csi" => validate_csi(&place, errors),
        _ => {}
    }
    if *source == "local" && !spec.has("nodeAffinity") {
        errors.push(Error::required(&spec.child("nodeAffinity").path, "Local volume requires node affinity"));
    }
    for (other, _) in sources {
        errors.push(Error::forbidden(&spec.child(other).path, "may not specify more than 1 volume type"));
    }
    let is_root =
        !spec.at("hostPath").text("path").is_empty() && spec.at("hostPath").text("path").chars().all(|c| c == '/');
    if is_root && spec.text("persistentVolumeReclaimPolicy") == "Recycle" {
        let path = spec.child("persistentVolumeReclaimPolicy").path;
        errors.push(Error::forbidden(&path, "may not be 'recycle' for a hostPath mount of '/'"));
    }
}

fn validate_csi(csi: &Place, errors: &mut Errors) {
    validate_driver_name(&csi.child("driver"), errors);
    for reference in SECRETS_OF_CSI.iter().map(|field| csi.child(field)).filter(|reference| !reference.is_null()) {
        reference.child("name").required_follows(name::dns_subdomain, errors);
        reference.child("namespace").required_follows(name::dns_label, errors);
    }
}

/// The name of a driver: a domain, in whatever case.
pub fn validate_driver_name(driver: &Place, errors: &mut Errors) {
    if driver.required("", errors) {
        driver.shorter_than(63, errors);
        driver.follows(|text| name::dns_subdomain(&text.to_lowercase()), errors);
    }
}

fn validate_change(spec: &Place, before: &Value, errors: &mut Errors) {
    // How to expand a volume may be said later.
    let told_later = |source: &str, now: &Value| {
        let mut now = now.clone();
        if source == "csi" && !before.at("csi").has("controllerExpandSecretRef") {
            now.remove("controllerExpandSecretRef");
        }
        now
    };
    if SOURCES.iter().any(|(source, _)| !same(&told_later(source, spec.at(source)), before.at(source))) {
        errors.push(Error::forbidden(
            &spec.path.child("persistentvolumesource"),
            "spec.persistentvolumesource is immutable after creation",
        ));
    }
    let mode = Place::new(spec.at("volumeMode"), &Path::new("volumeMode"));
    mode.unchanged(before.at("volumeMode"), errors);
    let class = spec.child("volumeAttributesClassName");
    if class.is_null() && before.has("volumeAttributesClassName") {
        errors.push(Error::forbidden(&class.path, "update from non-nil value to nil is forbidden"));
    }
}

fn warn(new: &Value, _old: Option<&Value>) -> Vec<String> {
    let volume = Place::root(new);
    let spec = volume.child("spec");
    let deprecated = [
        (STORAGE_CLASS_ANNOTATION, STORAGE_CLASS_DEPRECATED),
        ("volume.beta.kubernetes.io/mount-options", "deprecated since v1.31; use \"mountOptions\" attribute instead"),
    ];
    let annotations =
        deprecated.iter().map(|(key, message)| (volume.descend(&["metadata", "annotations"]).key(key), message));
    let mut warnings: Vec<String> = annotations
        .filter(|(place, _)| !place.is_null())
        .map(|(place, message)| format!("{}: {message}", place.path))
        .collect();
    if spec.text("persistentVolumeReclaimPolicy") == "Recycle" {
        warnings.push(
            "spec.persistentVolumeReclaimPolicy: The Recycle reclaim policy is deprecated. Instead, the recommended \
             approach is to use dynamic provisioning."
                .to_owned(),
        );
    }
    let terms = spec.descend(&["nodeAffinity", "required"]);
    warnings.extend(terms.list("nodeSelectorTerms").flat_map(|term| node::selector_term_warnings(&term)));
    let sources = DEPRECATED_SOURCES.iter().filter(|(source, ..)| spec.has(source));
    warnings.extend(sources.map(|(_, shown, message)| format!("spec.{shown}: {message}")));
    warnings
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::strategy::place::testing::{each_change_has_its_message, each_mistake_has_its_message};

    fn volume() -> Value {
        json!({ "spec": { "accessModes": ["ReadWriteOnce"], "capacity": { "storage": "1Gi" }, "hostPath": { "path": "/data" } } })
    }

    #[test]
    fn each_mistake_is_reported() {
        each_mistake_has_its_message(
            &STRATEGY,
            "core.v1.PersistentVolume",
            &volume(),
            &[
                ("spec.accessModes", json!([]), &["spec.accessModes: Required value"]),
                (
                    "spec.accessModes",
                    json!(["ReadWriteOncePod", "ReadWriteMany"]),
                    &["spec.accessModes: Forbidden: may not use ReadWriteOncePod with other access modes"],
                ),
                (
                    "spec.capacity",
                    json!({ "cpu": "1" }),
                    &["spec.capacity: Unsupported value: {\"cpu\":\"1\"}: supported values: \"storage\""],
                ),
                (
                    "spec.capacity.storage",
                    json!("0"),
                    &["spec.capacity[storage]: Invalid value: \"0\": must be greater than zero"],
                ),
                ("spec.hostPath", json!(null), &["spec: Required value: must specify a volume type"]),
                (
                    "spec.nfs",
                    json!({ "server": "a", "path": "/" }),
                    &["spec.nfs: Forbidden: may not specify more than 1 volume type"],
                ),
                (
                    "spec.hostPath.path",
                    json!("/a/../b"),
                    &["spec.hostPath.path: Invalid value: \"/a/../b\": must not contain '..'"],
                ),
                (
                    "spec.nodeAffinity",
                    json!({ "required": { "nodeSelectorTerms": [{ "matchExpressions": [{ "key": "a", "operator": "Near" }] }] } }),
                    &[
                        "spec.nodeAffinity.required.nodeSelectorTerms[0].matchExpressions[0].operator: Invalid value: \"Near\": not a \
                   valid selector operator",
                    ],
                ),
            ],
        );
        let local = json!({ "spec": { "accessModes": ["ReadWriteOnce"], "capacity": { "storage": "1" }, "local": { "path": "/a" } } });
        assert_eq!(
            crate::strategy::place::testing::messages(&STRATEGY, "core.v1.PersistentVolume", &local, None),
            ["spec.nodeAffinity: Required value: Local volume requires node affinity"]
        );
    }

    #[test]
    fn the_source_stays() {
        each_change_has_its_message(
            &STRATEGY,
            "core.v1.PersistentVolume",
            &volume(),
            &[
                ("spec.capacity.storage", json!("2Gi"), &[]),
                (
                    "spec.hostPath.path",
                    json!("/other"),
                    &[
                        "spec.persistentvolumesource: Forbidden: spec.persistentvolumesource is immutable after creation",
                    ],
                ),
                ("spec.volumeMode", json!("Block"), &["volumeMode: Invalid value: \"Block\": field is immutable"]),
            ],
        );
    }
}
