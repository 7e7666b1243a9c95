//! Volumes, claims and classes.

use crate::{Condition, LabelSelector, Meta, ObjectReference, Resources, kind};
use object::{Quantity, Value};
use serde::Deserialize;
use std::collections::BTreeMap;

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct PersistentVolume {
    pub metadata: Meta,
    pub spec: PersistentVolumeSpec,
    pub status: PersistentVolumeStatus,
}

kind!(PersistentVolume, "v1", "persistentvolumes", cluster,
    "claim" => |volume| volume.spec.claim_ref.iter().map(|claim| format!("{}/{}", claim.namespace, claim.name)).collect());

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct PersistentVolumeSpec {
    pub capacity: BTreeMap<String, Quantity>,
    pub access_modes: Vec<String>,
    pub claim_ref: Option<ObjectReference>,
    pub persistent_volume_reclaim_policy: String,
    pub storage_class_name: String,
    pub volume_mode: Option<String>,
    pub node_affinity: Option<Value>,
    pub host_path: Option<Value>,
    pub local: Option<Value>,
    pub csi: Option<Value>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct PersistentVolumeStatus {
    pub phase: String,
    pub message: String,
    pub reason: String,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct PersistentVolumeClaim {
    pub metadata: Meta,
    pub spec: PersistentVolumeClaimSpec,
    pub status: PersistentVolumeClaimStatus,
}

kind!(PersistentVolumeClaim, "v1", "persistentvolumeclaims", namespaced);

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct PersistentVolumeClaimSpec {
    pub access_modes: Vec<String>,
    pub selector: LabelSelector,
    pub resources: Resources,
    pub volume_name: String,
    /// Absent: the default class; empty: none.
    pub storage_class_name: Option<String>,
    pub volume_mode: Option<String>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct PersistentVolumeClaimStatus {
    pub phase: String,
    pub access_modes: Vec<String>,
    pub capacity: BTreeMap<String, Quantity>,
    pub conditions: Vec<Condition>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct StorageClass {
    pub metadata: Meta,
    pub provisioner: String,
    pub parameters: BTreeMap<String, String>,
    pub reclaim_policy: Option<String>,
    pub volume_binding_mode: Option<String>,
    pub allow_volume_expansion: bool,
    pub mount_options: Vec<String>,
}

kind!(StorageClass, "storage.k8s.io/v1", "storageclasses", cluster);

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct VolumeAttachment {
    pub metadata: Meta,
    pub spec: VolumeAttachmentSpec,
    pub status: VolumeAttachmentStatus,
}

kind!(VolumeAttachment, "storage.k8s.io/v1", "volumeattachments", cluster);

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct VolumeAttachmentSpec {
    pub attacher: String,
    pub node_name: String,
    pub source: Value,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct VolumeAttachmentStatus {
    pub attached: bool,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct CSIDriver {
    pub metadata: Meta,
    pub spec: CSIDriverSpec,
}

kind!(CSIDriver, "storage.k8s.io/v1", "csidrivers", cluster);

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct CSIDriverSpec {
    pub attach_required: Option<bool>,
}
