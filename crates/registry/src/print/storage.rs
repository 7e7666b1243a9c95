//! How volumes, claims, and what provides them look.

use super::network::default_name;
use super::text::{NONE, UNSET, age, is_being_deleted, join, name, or, quantity, size, strings, text_or};
use super::{AGE, NAME, boolean, integer, printer, string};
use object::{Value, View};

printer!(PERSISTENT_VOLUME = |object, now| {
    NAME => name(object),
    string("Capacity", "How much it holds") => quantity(object.path(&["spec", "capacity", "storage"])),
    string("Access Modes", "How it can be mounted") => access_modes(object.at("spec")),
    string("Reclaim Policy", "What becomes of it without its claim")
        => object.at("spec").text("persistentVolumeReclaimPolicy"),
    string("Status", "Whether it is bound") => phase(object),
    string("Claim", "Whose it is") => claim(object.at("spec").at("claimRef")),
    string("StorageClass", "Class it belongs to") => storage_class(object),
    string("VolumeAttributesClass", "Class of its attributes")
        => text_or(object.at("spec"), "volumeAttributesClassName", UNSET),
    string("Reason", "Why it has this status") => object.at("status").text("reason"),
    AGE => age(object, now),
    string("VolumeMode", "Whether it is a file system or a block device").wide()
        => text_or(object.at("spec"), "volumeMode", UNSET),
});

printer!(PERSISTENT_VOLUME_CLAIM = |object, now| {
    NAME => name(object),
    string("Status", "Whether it is bound") => phase(object),
    string("Volume", "Volume it is bound to") => object.at("spec").text("volumeName"),
    string("Capacity", "How much the volume holds")
        => if_bound(object, || quantity(object.path(&["status", "capacity", "storage"]))),
    string("Access Modes", "How the volume can be mounted") => if_bound(object, || access_modes(object.at("status"))),
    string("StorageClass", "Class of the volume") => storage_class(object),
    string("VolumeAttributesClass", "Class of its attributes")
        => text_or(object.at("spec"), "volumeAttributesClassName", UNSET),
    AGE => age(object, now),
    string("VolumeMode", "Whether it is a file system or a block device").wide()
        => text_or(object.at("spec"), "volumeMode", UNSET),
});

fn phase(object: &Value) -> &str {
    if is_being_deleted(object) { "Terminating" } else { object.at("status").text("phase") }
}

fn if_bound(claim: &Value, text: impl Fn() -> String) -> String {
    if claim.at("spec").text("volumeName").is_empty() { String::new() } else { text() }
}

fn claim(reference: &Value) -> String {
    if reference.is_null() {
        return String::new();
    }
    format!("{}/{}", reference.text("namespace"), reference.text("name"))
}

/// An annotation named the class before there was a field for it, and still wins.
fn storage_class(object: &Value) -> &str {
    let annotation = object.path(&["metadata", "annotations", "volume.beta.kubernetes.io/storage-class"]);
    annotation.as_str().unwrap_or_else(|| object.at("spec").text("storageClassName"))
}

const ACCESS_MODES: [(&str, &str); 4] =
    [("ReadWriteOnce", "RWO"), ("ReadOnlyMany", "ROX"), ("ReadWriteMany", "RWX"), ("ReadWriteOncePod", "RWOP")];

fn access_modes(of: &Value) -> String {
    let present = ACCESS_MODES.iter().filter(|(mode, _)| strings(of, "accessModes").any(|present| present == *mode));
    join(present.map(|(_, short)| short), ",")
}

printer!(STORAGE_CLASS = |object, now| {
    NAME => default_name(object, &[
        "storageclass.kubernetes.io/is-default-class",
        "storageclass.beta.kubernetes.io/is-default-class",
    ]),
    string("Provisioner", "Who makes the volumes") => object.text("provisioner"),
    string("ReclaimPolicy", "What becomes of volumes without their claim") => text_or(object, "reclaimPolicy", "Delete"),
    string("VolumeBindingMode", "When volumes are made") => text_or(object, "volumeBindingMode", "Immediate"),
    string("AllowVolumeExpansion", "Whether volumes can grow") => object.flag("allowVolumeExpansion"),
    AGE => age(object, now),
});

printer!(VOLUME_ATTRIBUTES_CLASS = |object, now| {
    NAME => name(object),
    string("DriverName", "Driver the attributes are for") => object.text("driverName"),
    AGE => age(object, now),
});

printer!(VOLUME_ATTACHMENT = |object, now| {
    NAME => name(object),
    string("Attacher", "Driver that attaches it").named() => object.at("spec").text("attacher"),
    string("PV", "Volume that is attached") => object.path(&["spec", "source"]).text("persistentVolumeName"),
    string("Node", "Node it is attached to") => object.at("spec").text("nodeName"),
    boolean("Attached", "Whether that is done") => object.at("status").flag("attached"),
    AGE => age(object, now),
});

printer!(CSI_NODE = |object, now| {
    NAME => name(object),
    integer("Drivers", "Drivers that are installed there") => size(object.at("spec"), "drivers"),
    AGE => age(object, now),
});

printer!(CSI_DRIVER = |object, now| {
    NAME => name(object),
    boolean("AttachRequired", "Whether volumes must be attached first")
        => object.path(&["spec", "attachRequired"]).as_bool().unwrap_or(true),
    boolean("PodInfoOnMount", "Whether the driver is told about the pod") => object.at("spec").flag("podInfoOnMount"),
    boolean("StorageCapacity", "Whether it says how much room there is") => object.at("spec").flag("storageCapacity"),
    string("TokenRequests", "For whom it needs tokens of the pod") => audiences(object.at("spec")),
    boolean("RequiresRepublish", "Whether it wants to be called again") => object.at("spec").flag("requiresRepublish"),
    string("Modes", "Lifecycles of volumes it supports")
        => or(&join(strings(object.at("spec"), "volumeLifecycleModes"), ","), NONE),
    AGE => age(object, now),
});

fn audiences(spec: &Value) -> String {
    if !spec.has("tokenRequests") {
        return UNSET.to_owned();
    }
    join(spec.items("tokenRequests").iter().map(|request| request.text("audience")), ",")
}

#[cfg(test)]
mod tests {
    use super::super::tests::{cells, check};
    use super::*;
    use object::json;

    #[test]
    fn volumes_name_their_claim_and_class() {
        let annotations = json!({ "volume.beta.kubernetes.io/storage-class": "old" });
        let deleted = json!({ "annotations": annotations, "deletionTimestamp": "2026-02-28T00:00:00Z" });
        check(
            &PERSISTENT_VOLUME,
            &[
                (
                    json!({
                        "spec": {
                            "capacity": { "storage": "1024Mi" }, "accessModes": ["ReadWriteMany", "ReadWriteOnce"],
                            "persistentVolumeReclaimPolicy": "Retain", "claimRef": { "namespace": "n", "name": "c" },
                            "storageClassName": "fast", "volumeMode": "Block", "volumeAttributesClassName": "gold",
                        },
                        "status": { "phase": "Bound", "reason": "r" },
                    }),
                    json!(["1Gi", "RWO,RWX", "Retain", "Bound", "n/c", "fast", "gold", "r", "Block"]),
                ),
                (json!({ "metadata": deleted }), json!(["0", "", "", "Terminating", "", "old", UNSET, "", UNSET])),
            ],
        );
    }

    #[test]
    fn claims_show_a_capacity_once_they_are_bound() {
        let status = json!({ "phase": "Bound", "capacity": { "storage": "5Gi" }, "accessModes": ["ReadWriteOncePod"] });
        let spec = json!({ "volumeName": "v", "storageClassName": "fast", "volumeMode": "Filesystem" });
        check(
            &PERSISTENT_VOLUME_CLAIM,
            &[
                (
                    json!({ "spec": spec, "status": status }),
                    json!(["Bound", "v", "5Gi", "RWOP", "fast", UNSET, "Filesystem"]),
                ),
                (json!({ "status": status }), json!(["Bound", "", "", "", "", UNSET, UNSET])),
            ],
        );
    }

    #[test]
    fn classes_and_drivers_show_what_holds_without_being_said() {
        check(&STORAGE_CLASS, &[(json!({ "provisioner": "p" }), json!(["p", "Delete", "Immediate", false]))]);
        let annotations = json!({ "storageclass.beta.kubernetes.io/is-default-class": "true" });
        assert_eq!(cells(&STORAGE_CLASS, json!({ "metadata": { "annotations": annotations } }))[0], "x (default)");
        check(
            &CSI_DRIVER,
            &[
                (json!({}), json!([true, false, false, UNSET, false, NONE])),
                (
                    json!({ "spec": {
                    "attachRequired": false, "podInfoOnMount": true, "storageCapacity": true, "requiresRepublish": true,
                    "tokenRequests": [{ "audience": "a" }, { "audience": "b" }],
                    "volumeLifecycleModes": ["Persistent", "Ephemeral"],
                } }),
                    json!([false, true, true, "a,b", true, "Persistent,Ephemeral"]),
                ),
            ],
        );
        check(&CSI_NODE, &[(json!({ "spec": { "drivers": [{}, {}] } }), json!([2]))]);
        check(&VOLUME_ATTRIBUTES_CLASS, &[(json!({ "driverName": "d" }), json!(["d"]))]);
        let spec = json!({ "attacher": "a", "nodeName": "n", "source": { "persistentVolumeName": "v" } });
        check(
            &VOLUME_ATTACHMENT,
            &[(json!({ "spec": spec, "status": { "attached": true } }), json!(["a", "v", "n", true]))],
        );
    }
}
