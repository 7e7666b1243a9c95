//! PersistentVolumes: one source each, which stays.

use crate::strategy::place::Place;
use crate::strategy::value::{quantity, same, set_if_empty};
use crate::strategy::{PLAIN, Strategy, node, node_selector};
use object::field::Errors;
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
    let spec = Place::field_of(new, "spec");
    spec.field("accessModes").require(errors);
    validate_access_modes(&spec, errors);
    validate_capacity(&spec, errors);
    let policy = spec.field("persistentVolumeReclaimPolicy");
    if !policy.is_empty() {
        policy.one_of(errors, &["Delete", "Recycle", "Retain"]);
    }
    validate_affinity(&spec, errors);
    validate_source(&spec, errors);
    spec.field("storageClassName").follows_if_set(errors, name::dns_subdomain);
    spec.field("volumeMode").one_of_if_set(errors, &MODES);
    let class = spec.field("volumeAttributesClassName");
    if class.is_set() {
        if class.require_because(errors, "an empty string is disallowed") {
            class.follows(errors, name::dns_subdomain);
        }
        if !spec.field("csi").is_set() {
            let detail = "has to be specified when using volumeAttributesClassName";
            spec.field("csi").required(errors, detail);
        }
    }
    if let Some(old) = old {
        validate_change(&spec, old.at("spec"), errors);
    }
}

/// The ways a volume may be used; one of them excludes all others.
pub fn validate_access_modes(spec: &Place, errors: &mut Errors) {
    let modes = spec.field("accessModes");
    for mode in spec.field("accessModes").values() {
        modes.with(mode).one_of(errors, &ACCESS_MODES);
    }
    let known = || {
        spec.field("accessModes")
            .values()
            .iter()
            .filter(|mode| mode.as_str().is_some_and(|mode| ACCESS_MODES.contains(&mode)))
    };
    if known().any(|mode| mode == "ReadWriteOncePod") && known().any(|mode| mode != "ReadWriteOncePod") {
        modes.forbidden(errors, "may not use ReadWriteOncePod with other access modes");
    }
}

fn validate_capacity(spec: &Place, errors: &mut Errors) {
    let capacity = spec.field("capacity");
    capacity.require(errors);
    if !capacity.field("storage").is_set() || capacity.value().as_object().is_some_and(|amounts| amounts.len() > 1) {
        capacity.not_supported_value(errors, capacity.value().clone(), &["storage"]);
    }
    for (_, amount) in spec.field("capacity").entries() {
        let value = quantity(amount.value());
        if value.is_negative() || value.is_zero() {
            amount.invalid(errors, "must be greater than zero");
        }
    }
}

fn validate_affinity(spec: &Place, errors: &mut Errors) {
    let affinity = spec.field("nodeAffinity");
    if !affinity.is_set() {
        return;
    }
    let required = affinity.field("required");
    if !required.is_set() {
        required.required(errors, "must specify required node constraints");
    } else {
        node_selector::validate(&required, errors);
    }
}

fn validate_source(spec: &Place, errors: &mut Errors) {
    let mut sources = SOURCES.iter().filter(|(source, _)| spec.field(source).is_set());
    let Some((source, required)) = sources.next() else {
        spec.required(errors, "must specify a volume type");
        return;
    };
    let place = spec.field(source);
    for field in *required {
        place.field(field).require(errors);
    }
    match *source {
        "hostPath" | "local" => {
            let path = place.field("path");
            if path.text().split('/').any(|step| step == "..") {
                path.invalid_value(errors, path.text(), "must not contain '..'");
            }
        }
        "nfs" if !place.field("path").text().starts_with('/') => {
            place.field("path").invalid_value(errors, place.field("path").text(), "must be an absolute path");
        }
        "csi" => validate_csi(&place, errors),
        _ => {}
    }
    if *source == "local" && !spec.field("nodeAffinity").is_set() {
        spec.field("nodeAffinity").required(errors, "Local volume requires node affinity");
    }
    for (other, _) in sources {
        spec.field(other).forbidden(errors, "may not specify more than 1 volume type");
    }
    let is_root = !spec.value().at("hostPath").text("path").is_empty()
        && spec.value().at("hostPath").text("path").chars().all(|c| c == '/');
    if is_root && spec.field("persistentVolumeReclaimPolicy").text() == "Recycle" {
        let detail = "may not be 'recycle' for a hostPath mount of '/'";
        spec.field("persistentVolumeReclaimPolicy").forbidden(errors, detail);
    }
}

fn validate_csi(csi: &Place, errors: &mut Errors) {
    validate_driver_name(&csi.field("driver"), errors);
    for reference in SECRETS_OF_CSI.iter().map(|field| csi.field(field)).filter(|reference| reference.is_set()) {
        reference.field("name").require_follows(errors, name::dns_subdomain);
        reference.field("namespace").require_follows(errors, name::dns_label);
    }
}

/// The name of a driver: a domain, in whatever case.
pub fn validate_driver_name(driver: &Place, errors: &mut Errors) {
    if driver.require(errors) {
        driver.shorter_than(errors, 63);
        driver.follows(errors, |text| name::dns_subdomain(&text.to_lowercase()));
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
    if SOURCES.iter().any(|(source, _)| !same(&told_later(source, spec.field(source).value()), before.at(source))) {
        spec.field("persistentvolumesource")
            .forbidden(errors, "spec.persistentvolumesource is immutable after creation");
    }
    let mode = Place::named(spec.field("volumeMode").value(), "volumeMode");
    mode.unchanged(errors, before.at("volumeMode"));
    let class = spec.field("volumeAttributesClassName");
    if !class.is_set() && before.has("volumeAttributesClassName") {
        class.forbidden(errors, "update from non-nil value to nil is forbidden");
    }
}

fn warn(new: &Value, _old: Option<&Value>) -> Vec<String> {
    let volume = Place::object(new);
    let spec = volume.field("spec");
    let deprecated = [
        (STORAGE_CLASS_ANNOTATION, STORAGE_CLASS_DEPRECATED),
        ("volume.beta.kubernetes.io/mount-options", "deprecated since v1.31; use \"mountOptions\" attribute instead"),
    ];
    let annotations = volume.descend(&["metadata", "annotations"]);
    let found = deprecated.iter().map(|(key, message)| (annotations.key(key), message));
    let found = found.filter(|(place, _)| place.is_set());
    let mut warnings: Vec<String> = found.map(|(place, message)| format!("{place}: {message}")).collect();
    if spec.field("persistentVolumeReclaimPolicy").text() == "Recycle" {
        warnings.push(
            "spec.persistentVolumeReclaimPolicy: The Recycle reclaim policy is deprecated. Instead, the recommended \
             approach is to use dynamic provisioning."
                .to_owned(),
        );
    }
    let terms = spec.descend(&["nodeAffinity", "required"]);
    warnings.extend(terms.field("nodeSelectorTerms").items().flat_map(|term| node::selector_term_warnings(&term)));
    let sources = DEPRECATED_SOURCES.iter().filter(|(source, ..)| spec.field(source).is_set());
    warnings.extend(sources.map(|(_, shown, message)| format!("spec.{shown}: {message}")));
    warnings
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::strategy::check::{each_change_has_its_message, each_mistake_has_its_message};

    fn volume() -> Value {
        json!({ "spec": { "accessModes": ["ReadWriteOnce"], "capacity": { "storage": "1Gi" }, "hostPath": { "path": "/data" } } })
    }

    #[test]
    fn each_mistake_is_reported() {
        each_mistake_has_its_message(
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
            crate::strategy::check::messages("core.v1.PersistentVolume", &local, None),
            ["spec.nodeAffinity: Required value: Local volume requires node affinity"]
        );
    }

    #[test]
    fn the_source_stays() {
        each_change_has_its_message(
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
