//! Attach and detach: volumes of CSI drivers are attached to the nodes whose pods use them, and to no others.
//!
//! Keys are nodes. A VolumeAttachment asks the driver to attach a volume, and its deletion to detach it; the status of
//! the node says what it may mount. A volume that the node still has mounted stays, for as long as the node is well:
//! taking it away from under the pods would cost data. An attachment that has outlived its volume goes like any other.
//! Nodes that see to this themselves are left alone, and so are drivers that attach nothing.

mod wanted;

use kinds::{CSIDriver, Key, Node, Object, PersistentVolume, PersistentVolumeClaim, Pod, Time, VolumeAttachment};
use object::{Edit, Value, json};
use parking_lot::Mutex;
use runtime::{Caches, Controller, Note, Plan, Request};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use wanted::{Wanted, attachment_name, device_name, device_on};

/// By this a node says that it leaves attaching to this loop.
const MANAGED: &str = "volumes.kubernetes.io/controller-managed-attach-detach";
/// By this an administrator says that a node is off and nothing on it runs any more.
const OUT_OF_SERVICE: &str = "node.kubernetes.io/out-of-service";
/// How long a node that is not well is given to let go of a volume.
const MAX_UNMOUNT_WAIT: Duration = Duration::from_secs(6 * 60);
/// How soon to look again at a volume that cannot be attached or detached yet.
const RETRY: Duration = Duration::from_secs(10);

pub(crate) fn controller() -> Controller {
    let unwanted = Mutex::new(Unwanted::default());
    Controller::new("attachdetach-controller")
        .primary::<Node>()
        .watches::<Pod>(|pod, _| match pod.claims().next() {
            Some(_) => keys_of(&pod.spec.node_name),
            None => Vec::new(),
        })
        .watches::<VolumeAttachment>(|attachment, _| keys_of(&attachment.spec.node_name))
        .watches::<PersistentVolumeClaim>(|claim, caches| {
            let pods = caches.of::<Pod>().by("claim", &claim.key().to_string());
            pods.iter().flat_map(|pod| keys_of(&pod.spec.node_name)).collect()
        })
        .reads::<PersistentVolume>()
        .reads::<CSIDriver>()
        .plans(move |caches, request| {
            let observed = observe(caches, request);
            plan(&observed, &mut unwanted.lock(), request)
        })
}

fn keys_of(node: &str) -> Vec<Key> {
    Vec::from_iter((!node.is_empty()).then(|| Key::cluster(node)))
}

/// Since when attachments have not been wanted any more, by name.
type Unwanted = BTreeMap<String, Time>;

struct Observed {
    node: Option<Arc<Object<Node>>>,
    /// What the pods of the node need, by the name of the attachment.
    wanted: BTreeMap<String, Wanted>,
    attachments: Vec<Attachment>,
}

/// An attachment to the node that this loop has made.
struct Attachment {
    object: Arc<Object<VolumeAttachment>>,
    /// What the node calls the volume; none if that is gone and the node does not speak of it.
    device: Option<String>,
    is_needed: bool,
}

fn observe(caches: &Caches, request: &Request) -> Observed {
    let node = caches.of::<Node>().get(&request.key);
    let wanted = wanted::by_pods(caches, &request.key.name);
    let volumes = caches.of::<PersistentVolume>();
    let attachments = caches.of::<VolumeAttachment>().by("node", &request.key.name);
    let own = attachments.into_iter().filter_map(|object| {
        let name = &object.metadata.name;
        match volumes.named("", object.volume()?) {
            Some(volume) => {
                let csi = volume.spec.csi.as_ref()?;
                let is_needed = wanted.contains_key(name);
                let is_own = *name == attachment_name(csi, &request.key.name);
                is_own.then(|| Attachment { object, device: Some(device_name(csi)), is_needed })
            }
            None => {
                // Pods hold on to a volume that is not seen: it may only not have been seen yet.
                let is_needed = wanted::is_claimed(caches, object.volume()?, &request.key.name);
                let device = node.as_ref().and_then(|node| device_on(node, name));
                wanted::is_attachment_name(name).then_some(Attachment { object, device, is_needed })
            }
        }
    });
    Observed { attachments: own.collect(), wanted, node }
}

fn plan(observed: &Observed, unwanted: &mut Unwanted, request: &Request) -> Plan {
    let mut plan = Plan::default();
    if observed.node.as_ref().is_some_and(|node| node.metadata.annotation(MANAGED) != "true") {
        return plan;
    }
    let (mut leaving, mut waiting) = (Vec::new(), false);
    for attachment in &observed.attachments {
        let name = &attachment.object.metadata.name;
        if attachment.is_needed || attachment.object.metadata.is_being_deleted() {
            unwanted.remove(name);
            continue;
        }
        let since = *unwanted.entry(name.clone()).or_insert(request.now);
        if may_detach(observed.node.as_deref(), attachment, request.now.since(since)) {
            unwanted.remove(name);
            leaving.push(attachment);
        } else {
            waiting = true;
        }
    }
    if let Some(node) = &observed.node {
        attach(&mut plan, observed, &request.key.name);
        report(&mut plan, node, &observed.attachments, &leaving);
    }
    // The node is told first: what it no longer sees attached it will not mount.
    for attachment in leaving {
        plan.delete(&*attachment.object);
    }
    if waiting {
        plan.requeue_after(RETRY);
    }
    plan
}

/// Whether a volume that no pod needs can be taken from the node.
fn may_detach(node: Option<&Object<Node>>, attachment: &Attachment, unwanted_for: Duration) -> bool {
    let Some(node) = node else { return true };
    let is_off = node.spec.taints.iter().any(|taint| taint.key == OUT_OF_SERVICE);
    let is_mounted = attachment.device.as_ref().is_some_and(|device| node.status.volumes_in_use.contains(device));
    is_off || !is_mounted || (!node.is_ready() && unwanted_for >= MAX_UNMOUNT_WAIT)
}

/// Asks for what is not attached yet, and says so to the pods where that is not possible.
fn attach(plan: &mut Plan, observed: &Observed, node: &str) {
    for (name, wanted) in &observed.wanted {
        if observed.attachments.iter().any(|attachment| attachment.object.metadata.name == *name) {
            continue;
        }
        let volume = &wanted.volume.metadata.name;
        if wanted.is_elsewhere {
            let message = format!(
                "Multi-Attach error for volume {volume:?} Volume is already exclusively attached to one node and can't \
                 be attached to another"
            );
            for pod in &wanted.pods {
                plan.event(Note::warning(pod, "FailedAttachVolume", message.clone()));
            }
            plan.requeue_after(RETRY);
            continue;
        }
        plan.create::<VolumeAttachment>(json!({
            "metadata": { "name": name },
            "spec": {
                "attacher": wanted.driver, "nodeName": node, "source": { "persistentVolumeName": volume },
            },
        }));
        if let Some(pod) = wanted.pods.first() {
            let failed = format!("AttachVolume.Attach failed for volume {volume:?} : {{error}}");
            plan.on_failure(Note::warning(pod, "FailedAttachVolume", failed));
        }
    }
}

/// What the node may mount: everything that is attached and stays so.
fn report(plan: &mut Plan, node: &Object<Node>, attachments: &[Attachment], leaving: &[&Attachment]) {
    let stays = |attachment: &&Attachment| {
        let object = &attachment.object;
        let leaves = leaving.iter().any(|other| other.object.metadata.name == object.metadata.name);
        object.status.attached && !object.metadata.is_being_deleted() && !leaves
    };
    let mut names: Vec<&str> =
        attachments.iter().filter(stays).filter_map(|attachment| attachment.device.as_deref()).collect();
    names.sort_unstable();
    let reported: Vec<&str> = node.status.volumes_attached.iter().map(|volume| volume.name.as_str()).collect();
    if reported == names {
        return;
    }
    let mut object = node.json();
    let status = object.object_or_new("status");
    status.remove("volumesAttached");
    if !names.is_empty() {
        let attached = names.iter().map(|name| json!({ "name": name, "devicePath": "" }));
        status.set("volumesAttached", attached.collect::<Vec<Value>>());
    }
    let status = status.clone();
    plan.status(node, status);
}

#[cfg(test)]
mod tests;
