//! Which volumes the pods of a node need attached.

use aws_lc_rs::digest::{SHA256, SHA256_OUTPUT_LEN, digest};
use kinds::{CSIDriver, Node, Object, PersistentVolume, PersistentVolumeClaim, Pod, VolumeAttachment};
use object::{Value, View};
use runtime::Caches;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;

/// How the names of attachments start.
const PREFIX: &str = "csi-";
/// How the names start that nodes have for volumes of drivers.
const DEVICES: &str = "kubernetes.io/csi/";

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

/// Whether a pod of the node names a volume through its claim, whether that volume is seen or not.
pub(super) fn is_claimed(caches: &Caches, volume: &str, node: &str) -> bool {
    let claims = caches.of::<PersistentVolumeClaim>();
    let names = |pod: &Object<Pod>| {
        let mut claims = pod.claims().filter_map(|claim| claims.named(&pod.metadata.namespace, &claim));
        claims.any(|claim| claim.spec.volume_name == volume)
    };
    caches.of::<Pod>().by("node", node).iter().any(|pod| !pod.is_finished() && names(pod))
}

/// The name under which a volume is attached to a node; nodes find it by computing the same.
pub(super) fn attachment_name(csi: &Value, node: &str) -> String {
    name_of(csi.text("driver"), csi.text("volumeHandle"), node)
}

fn name_of(driver: &str, handle: &str, node: &str) -> String {
    let hashed = digest(&SHA256, format!("{handle}{driver}{node}").as_bytes());
    hashed.as_ref().iter().fold(PREFIX.to_owned(), |mut name, byte| {
        let _ = write!(name, "{byte:02x}");
        name
    })
}

/// Whether a name is of the form that [`attachment_name`] gives.
pub(super) fn is_attachment_name(name: &str) -> bool {
    let is_digit = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    name.strip_prefix(PREFIX).is_some_and(|hash| hash.len() == 2 * SHA256_OUTPUT_LEN && hash.bytes().all(is_digit))
}

/// What a node calls a volume that is attached to it.
pub(super) fn device_name(csi: &Value) -> String {
    format!("{DEVICES}{}^{}", csi.text("driver"), csi.text("volumeHandle"))
}

/// What a node calls a volume by the name of its attachment, if it says anything of it: the name itself does not tell.
pub(super) fn device_on(node: &Node, attachment: &str) -> Option<String> {
    let attached = node.status.volumes_attached.iter().map(|volume| &volume.name);
    let mut devices = node.status.volumes_in_use.iter().chain(attached);
    let is_it = |device: &&String| {
        let parts = device.strip_prefix(DEVICES).and_then(|volume| volume.split_once('^'));
        parts.is_some_and(|(driver, handle)| name_of(driver, handle, &node.metadata.name) == attachment)
    };
    devices.find(is_it).cloned()
}
