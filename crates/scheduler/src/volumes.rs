//! Whether a node can have a pod's volumes: those that are there, and those that are made once a node is chosen.

use crate::cluster::{Cluster, Spot};
use crate::filters::{Asked, Verdict};
use crate::needs::Needs;
use crate::verdict::{Plugin, Refusal};
use kinds::{
    CSIDriver, CSINode, CSIStorageCapacity, Key, Labels, Node, NodeSelector, Object, PersistentVolume,
    PersistentVolumeClaim, Pod, StorageClass, volume_mode,
};
use object::{Value, View};
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

/// Which node a claim is to be provisioned for.
pub(crate) const SELECTED_NODE: &str = "volume.kubernetes.io/selected-node";
const BIND_COMPLETED: &str = "pv.kubernetes.io/bind-completed";
const NONE_TO_BIND: &str = "node(s) didn't find available persistent volumes to bind";
/// Of a class whose volumes nobody makes.
const NO_PROVISIONER: &str = "kubernetes.io/no-provisioner";
/// Labels of volumes that say where they can be used, and what the label of a node is called that has not got the same.
const ZONES: [(&str, &str); 4] = [
    ("topology.kubernetes.io/zone", "topology.kubernetes.io/zone"),
    ("topology.kubernetes.io/region", "topology.kubernetes.io/region"),
    ("failure-domain.beta.kubernetes.io/zone", "topology.kubernetes.io/zone"),
    ("failure-domain.beta.kubernetes.io/region", "topology.kubernetes.io/region"),
];

/// What is known about the volumes of a pod.
#[derive(Debug, Default)]
pub(crate) struct Volumes {
    bound: Vec<Arc<Object<PersistentVolume>>>,
    /// Claims that wait for the pod to have a node, the smallest first.
    waiting: Vec<Waiting>,
    /// A claim says it is bound to a volume that is not there.
    lost: bool,
    /// Claims that are for one pod alone and which others have, and on which nodes these are.
    in_use: BTreeMap<String, BTreeSet<String>>,
}

#[derive(Debug)]
struct Waiting {
    claim: Arc<Object<PersistentVolumeClaim>>,
    class: Arc<Object<StorageClass>>,
}

/// What has to happen to claims before the pod can be bound.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Preparation {
    /// Volumes, and the claims that get them.
    pub matched: Vec<(String, Key)>,
    pub provisioned: Vec<Key>,
    /// What is not bound after this long is given up, and the pod looks for another node.
    pub(crate) timeout: Duration,
}

impl Preparation {
    pub(crate) fn is_empty(&self) -> bool {
        self.matched.is_empty() && self.provisioned.is_empty()
    }
}

impl Volumes {
    /// Looks up the claims of a pod. An error is what stands in the way on every node.
    pub(crate) fn of(pod: &Pod, needs: &Needs, cluster: &Cluster) -> Result<Self, String> {
        let mut volumes = Volumes::default();
        let claims: Vec<Arc<Object<PersistentVolumeClaim>>> =
            needs.claims.iter().map(|name| usable(name, pod, cluster)).collect::<Result<_, _>>()?;
        for claim in claims {
            volumes.note_users(&claim, cluster);
            let volume = claim.spec.volume_name.as_str();
            if !volume.is_empty() && claim.metadata.annotations.contains_key(BIND_COMPLETED) {
                match cluster.caches.of::<PersistentVolume>().get(&Key::cluster(volume)) {
                    Some(volume) => volumes.bound.push(volume),
                    None => volumes.lost = true,
                }
                continue;
            }
            let class = cluster.caches.of::<StorageClass>().get(&Key::cluster(claim.class()));
            match class.filter(|class| class.waits_for_consumer() && volume.is_empty()) {
                Some(class) => volumes.waiting.push(Waiting { claim, class }),
                None => return Err("pod has unbound immediate PersistentVolumeClaims".to_owned()),
            }
        }
        volumes.waiting.sort_by_key(|waiting| waiting.claim.requested());
        Ok(volumes)
    }

    /// Leaves out claims that wait for a node, where nobody is to bind them.
    pub(crate) fn waiting_if(mut self, binds: bool) -> Self {
        if !binds {
            self.waiting.clear();
        }
        self
    }

    fn note_users(&mut self, claim: &Object<PersistentVolumeClaim>, cluster: &Cluster) {
        if !claim.spec.access_modes.iter().any(|mode| mode == "ReadWriteOncePod") {
            return;
        }
        let users = cluster.caches.of::<Pod>().by("claim", &claim.key().to_string());
        let nodes = users.iter().filter_map(|pod| cluster.home(&pod.key())).map(|spot| spot.name.clone());
        let nodes: BTreeSet<String> = nodes.collect();
        if !nodes.is_empty() {
            self.in_use.insert(claim.metadata.name.clone(), nodes);
        }
    }

    /// What has to be done so that the claims that wait can be used on a node; or why they cannot be.
    pub(crate) fn prepare(&self, cluster: &Cluster, node: &Node) -> Result<Preparation, &'static str> {
        let mut preparation = Preparation::default();
        for Waiting { claim, class } in &self.waiting {
            let selected = claim.metadata.annotation(SELECTED_NODE);
            if !selected.is_empty() {
                // It is being made already, and where is settled.
                if selected != node.metadata.name {
                    return Err(NONE_TO_BIND);
                }
                preparation.provisioned.push(claim.key());
            } else if let Some(volume) = find(claim, cluster, node, &preparation) {
                preparation.matched.push((volume, claim.key()));
            } else if !can_be_made(class, node) {
                return Err(NONE_TO_BIND);
            } else if !has_capacity(claim, class, cluster, node) {
                return Err("node(s) did not have enough free storage");
            } else {
                preparation.provisioned.push(claim.key());
            }
        }
        Ok(preparation)
    }
}

/// A claim that a pod mounts, if nothing is wrong with it.
fn usable(name: &str, pod: &Pod, cluster: &Cluster) -> Result<Arc<Object<PersistentVolumeClaim>>, String> {
    let (meta, is_made) = (&pod.metadata, pod.makes_claim(name));
    let Some(claim) = cluster.caches.of::<PersistentVolumeClaim>().named(&meta.namespace, name) else {
        return Err(match is_made {
            true => format!("waiting for ephemeral volume controller to create the persistentvolumeclaim \"{name}\""),
            false => format!("persistentvolumeclaim \"{name}\" not found"),
        });
    };
    if claim.status.phase == "Lost" {
        let volume = &claim.spec.volume_name;
        return Err(format!("persistentvolumeclaim \"{name}\" bound to non-existent persistentvolume \"{volume}\""));
    }
    if claim.metadata.is_being_deleted() {
        return Err(format!("persistentvolumeclaim \"{name}\" is being deleted"));
    }
    if is_made && claim.metadata.controller().is_none_or(|owner| owner.uid != meta.uid) {
        let (space, pod) = (&meta.namespace, &meta.name);
        return Err(format!("PVC {space}/{name} was not created for pod {space}/{pod} (pod is not owner)"));
    }
    Ok(claim)
}

/// The smallest free volume that does for a claim and can be used on a node.
fn find(claim: &Object<PersistentVolumeClaim>, cluster: &Cluster, node: &Node, taken: &Preparation) -> Option<String> {
    let free = cluster.caches.of::<PersistentVolume>().by("free", claim.class());
    let does = |volume: &&Arc<Object<PersistentVolume>>| {
        let (name, spec) = (&volume.metadata.name, &volume.spec);
        let for_another = cluster.taken_volumes.get(name).is_some_and(|other| *other != claim.key());
        let selector = &claim.spec.selector;
        volume.status.phase == "Available"
            && !for_another
            && !taken.matched.iter().any(|(other, _)| other == name)
            && volume.capacity() >= claim.requested()
            && claim.spec.access_modes.iter().all(|mode| spec.access_modes.contains(mode))
            && volume_mode(spec.volume_mode.as_ref()) == volume_mode(claim.spec.volume_mode.as_ref())
            && (selector.is_absent() || selector.matches(&volume.metadata.labels))
            && reaches(volume, node)
    };
    let smallest = free.iter().filter(does).min_by_key(|volume| (volume.capacity(), volume.metadata.name.clone()));
    smallest.map(|volume| volume.metadata.name.clone())
}

/// Whether a volume can be used on a node.
fn reaches(volume: &PersistentVolume, node: &Node) -> bool {
    let required = volume.spec.node_affinity.as_ref().map_or(&Value::Null, |affinity| affinity.at("required"));
    required.is_null() || NodeSelector::read(required).matches(node)
}

/// Whether volumes of a class are made for a node.
fn can_be_made(class: &StorageClass, node: &Node) -> bool {
    let holds = |expression: &Value| {
        let value = node.metadata.labels.get(expression.text("key"));
        value.is_some_and(|value| expression.items("values").iter().any(|one| one == value))
    };
    let allowed = &class.allowed_topologies;
    let provisioner = class.provisioner.as_str();
    !matches!(provisioner, "" | NO_PROVISIONER)
        && (allowed.is_empty() || allowed.iter().any(|term| term.items("matchLabelExpressions").iter().all(holds)))
}

/// Whether there is room for a volume where a node reaches, as far as the driver says how much there is.
fn has_capacity(
    claim: &Object<PersistentVolumeClaim>,
    class: &Object<StorageClass>,
    cluster: &Cluster,
    node: &Node,
) -> bool {
    let driver = cluster.caches.of::<CSIDriver>().get(&Key::cluster(class.provisioner.as_str()));
    if !driver.is_some_and(|driver| driver.spec.storage_capacity) {
        return true;
    }
    let suffices = |capacity: &Arc<Object<CSIStorageCapacity>>| {
        let reach = &capacity.node_topology;
        let is_large_enough = capacity.largest().is_some_and(|largest| largest >= claim.requested());
        is_large_enough && !reach.is_absent() && reach.matches(&node.metadata.labels)
    };
    cluster.caches.of::<CSIStorageCapacity>().by("class", &class.metadata.name).iter().any(suffices)
}

/// Disks and claims that only one pod at a time can have.
pub(crate) fn restrictions(asked: Asked<'_>, spot: &Spot, _: &Node) -> Verdict {
    let mut taken = spot.residents.iter().flat_map(|resident| &resident.shape.needs.disks);
    let wanted = &asked.needs.disks;
    let conflicts =
        |(disk, reads): &(String, bool)| wanted.iter().any(|(other, only)| other == disk && !(*reads && *only));
    if !wanted.is_empty() && taken.any(conflicts) {
        return Err(Refusal::for_now(Plugin::VolumeRestrictions, "node(s) had no available disk"));
    }
    // Who has a claim could be made to go, if it is on this node.
    let has = |claim: &String| {
        let mut neighbours = spot.residents.iter().filter(|one| one.shape.namespace == asked.needs.namespace);
        neighbours.any(|resident| resident.shape.claims.contains(claim))
    };
    let is_taken =
        |(claim, nodes): (&String, &BTreeSet<String>)| nodes.iter().any(|node| *node != spot.name) || has(claim);
    if asked.volumes.in_use.iter().any(is_taken) {
        let reason = "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already in-use by another pod";
        return Err(Refusal::for_now(Plugin::VolumeRestrictions, reason));
    }
    Ok(())
}

/// How many volumes a driver can attach to a node.
pub(crate) fn limits(asked: Asked<'_>, spot: &Spot, node: &Node) -> Verdict {
    let cluster = asked.cluster;
    let wanted: BTreeSet<(String, String)> = attachments(asked.needs, cluster);
    if wanted.is_empty() {
        return Ok(());
    }
    let Some(drivers) = cluster.caches.of::<CSINode>().get(&Key::cluster(node.metadata.name.as_str())) else {
        return Ok(());
    };
    let there = spot.residents.iter().flat_map(|resident| attachments(&resident.shape, cluster));
    let there: BTreeSet<(String, String)> = there.collect();
    for driver in &drivers.spec.drivers {
        let of_driver = |(name, _): &&(String, String)| *name == driver.name;
        // What is attached already need not be.
        let new = wanted.difference(&there).filter(of_driver).count();
        let all = there.iter().filter(of_driver).count() + new;
        if new > 0 && driver.allocatable.count.is_some_and(|limit| all as i64 > limit) {
            return Err(Refusal::for_now(Plugin::NodeVolumeLimits, "node(s) exceed max volume count"));
        }
    }
    Ok(())
}

/// Drivers, and the volumes of a pod that they attach.
fn attachments(needs: &Needs, cluster: &Cluster) -> BTreeSet<(String, String)> {
    let mut attached = BTreeSet::new();
    for name in &needs.claims {
        let Some(claim) = cluster.caches.of::<PersistentVolumeClaim>().named(&needs.namespace, name) else { continue };
        let volume = cluster.caches.of::<PersistentVolume>().get(&Key::cluster(claim.spec.volume_name.as_str()));
        match volume.as_ref().map(|volume| volume.spec.csi.as_ref()) {
            Some(Some(csi)) => {
                attached.insert((csi.text("driver").to_owned(), csi.text("volumeHandle").to_owned()));
            }
            Some(None) => {}
            None => {
                let class = cluster.caches.of::<StorageClass>().get(&Key::cluster(claim.class()));
                attached.extend(class.map(|class| (class.provisioner.clone(), claim.key().to_string())));
            }
        }
    }
    attached
}

pub(crate) fn binding(asked: Asked<'_>, _: &Spot, node: &Node) -> Verdict {
    let volumes = asked.volumes;
    let away = !volumes.bound.iter().all(|volume| reaches(volume, node));
    let reasons = [
        (away && !volumes.lost).then_some("node(s) didn't match PersistentVolume's node affinity"),
        volumes.prepare(asked.cluster, node).err(),
        volumes.lost.then_some("node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)"),
    ];
    let reasons: Vec<Cow<'static, str>> = reasons.into_iter().flatten().map(Cow::from).collect();
    match reasons.is_empty() {
        true => Ok(()),
        false => Err(Refusal { plugin: Plugin::VolumeBinding, reasons, resolvable: false, is_error: false }),
    }
}

pub(crate) fn zone(asked: Asked<'_>, _: &Spot, node: &Node) -> Verdict {
    let labels: &Labels = &node.metadata.labels;
    let fits = |volume: &Arc<Object<PersistentVolume>>| {
        ZONES.iter().all(|(zone, now_called)| match volume.metadata.labels.get(zone) {
            None => true,
            Some(allowed) => {
                let here = labels.get(zone).or_else(|| labels.get(now_called));
                here.is_some_and(|here| allowed.split("__").any(|one| one == here))
            }
        })
    };
    // Where nodes say nothing of zones there is but one.
    let is_anywhere = ZONES.iter().all(|(zone, _)| !labels.contains_key(zone));
    if is_anywhere || asked.volumes.bound.iter().all(fits) {
        return Ok(());
    }
    Err(Refusal::firm(Plugin::VolumeZone, "node(s) had no available volume zone"))
}
