//! Volumes, claims and classes.

use crate::{Condition, Dict, Key, LabelSelector, Meta, ObjectReference, Resources, kind};
use object::{Quantity, Value};
use serde::Deserialize;

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct PersistentVolume {
    pub metadata: Meta,
    pub spec: PersistentVolumeSpec,
    pub status: PersistentVolumeStatus,
}

kind!(PersistentVolume, "v1", "persistentvolumes", cluster,
    "claim" => |volume| volume.spec.claim_ref.iter().map(|claim| format!("{}/{}", claim.namespace, claim.name)).collect(),
    "free" => |volume| Vec::from_iter(volume.spec.claim_ref.is_none().then(|| volume.class().to_owned())),
    "attributes" => |volume| volume.attributes_classes());

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct PersistentVolumeSpec {
    pub capacity: Dict<Quantity>,
    pub access_modes: Vec<String>,
    pub claim_ref: Option<ObjectReference>,
    pub persistent_volume_reclaim_policy: String,
    pub storage_class_name: String,
    pub volume_mode: Option<String>,
    pub volume_attributes_class_name: Option<String>,
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

impl PersistentVolume {
    /// The name of its class; empty if it is in none.
    pub fn class(&self) -> &str {
        self.metadata.annotations.get(CLASS_ANNOTATION).map_or(&self.spec.storage_class_name, |name| name)
    }

    /// How large it is.
    pub fn capacity(&self) -> Quantity {
        self.spec.capacity.get(STORAGE).copied().unwrap_or_default()
    }

    /// Whether it is, or is meant to be, this claim's: not only one of the same name, once that is known.
    pub fn is_for(&self, claim: &PersistentVolumeClaim) -> bool {
        let meta = &claim.metadata;
        self.spec.claim_ref.as_ref().is_some_and(|reference| {
            let same = reference.name == meta.name && reference.namespace == meta.namespace;
            same && (reference.uid.is_empty() || reference.uid == meta.uid)
        })
    }

    /// The names of the attribute classes that it refers to.
    pub fn attributes_classes(&self) -> Vec<String> {
        Vec::from_iter(self.spec.volume_attributes_class_name.clone())
    }

    /// The name of the claim that it is for.
    pub fn claim_key(&self) -> Option<Key> {
        self.spec.claim_ref.as_ref().map(|claim| Key::new(claim.namespace.as_str(), claim.name.as_str()))
    }
}

/// How much of a class can be made for some nodes.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct CSIStorageCapacity {
    pub metadata: Meta,
    pub storage_class_name: String,
    /// Absent, it is for no node.
    pub node_topology: LabelSelector,
    pub capacity: Option<Quantity>,
    pub maximum_volume_size: Option<Quantity>,
}

kind!(CSIStorageCapacity, "storage.k8s.io/v1", "csistoragecapacities", namespaced,
    "class" => |capacity| vec![capacity.storage_class_name.clone()]);

impl CSIStorageCapacity {
    /// The largest volume that can be made; none if that is not known.
    pub fn largest(&self) -> Option<Quantity> {
        self.maximum_volume_size.or(self.capacity)
    }
}

/// How classes were named before there was a field for it; it still counts.
const CLASS_ANNOTATION: &str = "volume.beta.kubernetes.io/storage-class";
/// What the size of volumes goes by among resources.
const STORAGE: &str = "storage";

/// How a volume is used if nothing is said.
pub fn volume_mode(mode: Option<&String>) -> &str {
    mode.map_or("Filesystem", String::as_str)
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct PersistentVolumeClaim {
    pub metadata: Meta,
    pub spec: PersistentVolumeClaimSpec,
    pub status: PersistentVolumeClaimStatus,
}

kind!(PersistentVolumeClaim, "v1", "persistentvolumeclaims", namespaced,
    "volume" => |claim| vec![claim.spec.volume_name.clone()],
    "waiting" => |claim| Vec::from_iter(claim.spec.volume_name.is_empty().then(|| claim.class().to_owned())),
    "attributes" => |claim| claim.attributes_classes());

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
    pub volume_attributes_class_name: Option<String>,
    pub data_source: Option<Value>,
}

impl PersistentVolumeClaim {
    /// The name of the class it wants; empty if it wants none, or has yet to be given the default one.
    pub fn class(&self) -> &str {
        let annotated = self.metadata.annotations.get(CLASS_ANNOTATION);
        annotated.or(self.spec.storage_class_name.as_ref()).map_or("", String::as_str)
    }

    /// Whether it says which class it wants; none is an answer too.
    pub fn names_class(&self) -> bool {
        self.metadata.annotations.contains_key(CLASS_ANNOTATION) || self.spec.storage_class_name.is_some()
    }

    /// The names of the attribute classes that it refers to: the one it wants, has, and is on the way to.
    pub fn attributes_classes(&self) -> Vec<String> {
        let target = self.status.modify_volume_status.as_ref().map(|status| status.target.clone());
        let names = [
            self.spec.volume_attributes_class_name.clone(),
            self.status.current_volume_attributes_class_name.clone(),
            target,
        ];
        names.into_iter().flatten().filter(|name| !name.is_empty()).collect()
    }

    /// How large a volume it wants.
    pub fn requested(&self) -> Quantity {
        self.spec.resources.requests.get(STORAGE).copied().unwrap_or_default()
    }

    /// How large the volume is that it has.
    pub fn capacity(&self) -> Quantity {
        self.status.capacity.get(STORAGE).copied().unwrap_or_default()
    }
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct PersistentVolumeClaimStatus {
    pub phase: String,
    pub access_modes: Vec<String>,
    pub capacity: Dict<Quantity>,
    pub conditions: Vec<Condition>,
    pub current_volume_attributes_class_name: Option<String>,
    pub modify_volume_status: Option<ModifyVolumeStatus>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct ModifyVolumeStatus {
    #[serde(rename = "targetVolumeAttributesClassName")]
    pub target: String,
}

/// What volumes can be turned into while they are in use.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct VolumeAttributesClass {
    pub metadata: Meta,
}

kind!(VolumeAttributesClass, "storage.k8s.io/v1", "volumeattributesclasses", cluster);

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct StorageClass {
    pub metadata: Meta,
    pub provisioner: String,
    pub parameters: Dict<String>,
    pub reclaim_policy: Option<String>,
    pub volume_binding_mode: Option<String>,
    pub allow_volume_expansion: bool,
    pub mount_options: Vec<String>,
    /// Where volumes can be made; nowhere in particular if empty.
    pub allowed_topologies: Vec<Value>,
}

kind!(StorageClass, "storage.k8s.io/v1", "storageclasses", cluster);

impl StorageClass {
    pub fn is_default(&self) -> bool {
        let marks = ["storageclass.kubernetes.io/is-default-class", "storageclass.beta.kubernetes.io/is-default-class"];
        marks.iter().any(|mark| self.metadata.annotation(mark) == "true")
    }

    /// Whether claims are bound only once it is known where they are used.
    pub fn waits_for_consumer(&self) -> bool {
        self.volume_binding_mode.as_deref() == Some("WaitForFirstConsumer")
    }
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct VolumeAttachment {
    pub metadata: Meta,
    pub spec: VolumeAttachmentSpec,
    pub status: VolumeAttachmentStatus,
}

kind!(VolumeAttachment, "storage.k8s.io/v1", "volumeattachments", cluster,
    "node" => |attachment| vec![attachment.spec.node_name.clone()],
    "volume" => |attachment| attachment.volume().map(str::to_owned).into_iter().collect());

impl VolumeAttachment {
    /// The name of the volume that is attached; none if it is one that only a pod knows.
    pub fn volume(&self) -> Option<&str> {
        self.spec.source.get("persistentVolumeName")?.as_str()
    }
}

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
    /// Whether it says how much it can make where.
    pub storage_capacity: bool,
    pub attach_required: Option<bool>,
}

/// What drivers a node has, and how many volumes each can attach there.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct CSINode {
    pub metadata: Meta,
    pub spec: CSINodeSpec,
}

kind!(CSINode, "storage.k8s.io/v1", "csinodes", cluster);

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct CSINodeSpec {
    pub drivers: Vec<CSINodeDriver>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct CSINodeDriver {
    pub name: String,
    pub allocatable: VolumeNodeResources,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct VolumeNodeResources {
    /// Absent: without limit.
    pub count: Option<i64>,
}
