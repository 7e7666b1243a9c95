//! Which volumes the pods of a node need attached.

use aws_lc_rs::digest::{SHA256, digest};
use kinds::{CSIDriver, Object, PersistentVolume, PersistentVolumeClaim, Pod, VolumeAttachment};
use object::{Value, View};
use runtime::Caches;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;

/// A volume that has to be attached to a node.
pub(super) struct Wanted {
    pub(super) volume: Arc<Object<PersistentVolume>>,
    pub(super) driver: String,
    /// Whoever waits for it.
    pub(super) pods: Vec<Arc<Object<Pod>>>,
    /// It can be on one node at a time, and is on another.
    pub(super) is_elsewhere: bool,
}

/// What the pods of a node need, by the name of the attachment.
pub(super) fn by_pods(caches: &Caches, node: &str) -> BTreeMap<String, Wanted> {
    let mut wanted: BTreeMap<String, Wanted> = BTreeMap::new();
    for pod in caches.of::<Pod>().by("node", node).iter().filter(|pod| !pod.is_finished()) {
        for claim in pod.claims() {
            let Some((name, found)) = volume_of(caches, pod, &claim, node) else { continue };
            wanted.entry(name).or_insert(found).pods.push(pod.clone());
        }
    }
    wanted
}

fn volume_of(caches: &Caches, pod: &Pod, claim: &str, node: &str) -> Option<(String, Wanted)> {
    let claim = caches.of::<PersistentVolumeClaim>().named(&pod.metadata.namespace, claim)?;
    let volume = caches.of::<PersistentVolume>().named("", &claim.spec.volume_name)?;
    if claim.status.phase != "Bound" || !volume.is_for(&claim) {
        return None;
    }
    let csi = volume.spec.csi.as_ref()?;
    let driver = csi.text("driver").to_owned();
    let attaches = caches.of::<CSIDriver>().named("", &driver).and_then(|driver| driver.spec.attach_required);
    if attaches == Some(false) {
        return None;
    }
    let name = attachment_name(csi, node);
    let is_shared = volume.spec.access_modes.iter().any(|mode| mode.ends_with("Many"));
    let attachments = caches.of::<VolumeAttachment>().by("volume", &volume.metadata.name);
    let is_elsewhere = !is_shared && attachments.iter().any(|attachment| attachment.spec.node_name != node);
    Some((name, Wanted { volume, driver, pods: Vec::new(), is_elsewhere }))
}

/// The name under which a volume is attached to a node; nodes find it by computing the same.
pub(super) fn attachment_name(csi: &Value, node: &str) -> String {
    let hashed = digest(&SHA256, format!("{}{}{node}", csi.text("volumeHandle"), csi.text("driver")).as_bytes());
    hashed.as_ref().iter().fold("csi-".to_owned(), |mut name, byte| {
        let _ = write!(name, "{byte:02x}");
        name
    })
}

/// What a node calls a volume that is attached to it.
pub(super) fn device_name(csi: &Value) -> String {
    format!("kubernetes.io/csi/{}^{}", csi.text("driver"), csi.text("volumeHandle"))
}
