//! The nodes and what is on them, as the scheduler sees them: kept up to date change by change, never rebuilt, and
//! ahead of the caches by what it has decided itself.
//!
//! Every node has a slot. A log says which slots have changed, so that whoever remembers something about nodes looks
//! again at those alone.

mod topology;

use crate::devices::Stock;
use crate::needs::{HostPort, Shape};
use kinds::{Amounts, Key, Labels, Node, Object, Pod, Taint};
use runtime::Caches;
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
pub(crate) use topology::{NOWHERE, Topology};

pub(crate) type Slot = u32;

#[derive(Debug, Default)]
pub(crate) struct Cluster {
    spots: Vec<Spot>,
    /// By slot; they decide between nodes that are equally good.
    salts: Vec<u64>,
    slots: BTreeMap<String, Slot>,
    vacant: Vec<Slot>,
    /// Where pods are.
    homes: HashMap<Key, Slot>,
    /// How many of them have which priority.
    priorities: BTreeMap<i32, usize>,
    topologies: Vec<Topology>,
    /// How often nodes came, went or were moved within topologies.
    layout: u64,
    pub(crate) namespaces: BTreeMap<String, Labels>,
    /// How many nodes have an image.
    images: HashMap<String, usize>,
    nodes: usize,
    log: Vec<Slot>,
    /// How many entries of the log have been dropped.
    forgotten: usize,
    /// What is looked up only for the few pods that need it: volumes, claims, budgets.
    pub(crate) caches: Caches,
    /// Volumes that are spoken for, and the claim they are meant for: the caches do not know yet.
    pub(crate) taken_volumes: BTreeMap<String, Key>,
    pub(crate) devices: Stock,
}

/// A node with the pods on it; without the node if only pods speak of it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Spot {
    pub name: String,
    pub node: Option<Arc<Object<Node>>>,
    pub capacity: Amounts,
    pub max_pods: i64,
    pub used: Amounts,
    /// For comparisons: with what is usual for pods that ask for nothing.
    pub estimate: Amounts,
    pub residents: Vec<Resident>,
    /// Pods that are to come here once those in their way are gone.
    pub nominated: Vec<Resident>,
    pub ports: Vec<HostPort>,
    /// That it takes no new pods, where it says so. It counts from that moment, whether or not the taint is there yet.
    pub cordon: Option<Taint>,
}

#[derive(Clone, Debug)]
pub(crate) struct Resident {
    pub pod: Arc<Object<Pod>>,
    pub shape: Shape,
}

impl Resident {
    pub(crate) fn is(&self, key: &Key) -> bool {
        let meta = &self.pod.metadata;
        meta.name == key.name && meta.namespace == key.namespace
    }
}

impl Cluster {
    pub(crate) fn new(caches: Caches) -> Self {
        Cluster { caches, ..Cluster::default() }
    }

    /// How many nodes there are.
    pub(crate) fn len(&self) -> usize {
        self.nodes
    }

    /// One more than the highest slot.
    pub(crate) fn slots(&self) -> Slot {
        self.spots.len() as Slot
    }

    pub(crate) fn spot(&self, slot: Slot) -> &Spot {
        &self.spots[slot as usize]
    }

    pub(crate) fn salt(&self, slot: Slot) -> u64 {
        self.salts[slot as usize]
    }

    pub(crate) fn slot(&self, node: &str) -> Option<Slot> {
        self.slots.get(node).copied()
    }

    /// Where a pod is, or is going to be.
    pub(crate) fn home(&self, pod: &Key) -> Option<&Spot> {
        self.homes.get(pod).map(|slot| self.spot(*slot))
    }

    /// Whether any pod that has a node matters less than one of this priority.
    pub(crate) fn has_lesser(&self, priority: i32) -> bool {
        self.priorities.range(..priority).next().is_some()
    }

    pub(crate) fn image_spread(&self, image: &str) -> usize {
        self.images.get(image).copied().unwrap_or(0)
    }

    /// What has changed since the log was read up to `seen`; none if that is not known any more.
    pub(crate) fn changed_since(&self, seen: usize) -> Option<&[Slot]> {
        self.log.get(seen.checked_sub(self.forgotten)?..)
    }

    /// The end of the log.
    pub(crate) fn now(&self) -> usize {
        self.forgotten + self.log.len()
    }

    fn touch(&mut self, slot: Slot) {
        if self.log.len() > 4 * self.spots.len() + 1024 {
            let half = self.log.len() / 2;
            self.log.drain(..half);
            self.forgotten += half;
        }
        self.log.push(slot);
    }

    /// Everything may be different: nobody may rely on what they remember.
    pub(crate) fn touch_all(&mut self) {
        self.forgotten = self.now() + 1;
        self.log.clear();
    }

    /// A topology by the label it goes by.
    pub(crate) fn topology(&mut self, key: &str) -> usize {
        if let Some(at) = self.topologies.iter().position(|topology| topology.is_by(key)) {
            return at;
        }
        let mut topology = Topology::new(key);
        for (slot, spot) in self.spots.iter().enumerate() {
            topology.assign(slot as Slot, spot.node.as_ref().map(|node| &***node));
        }
        self.topologies.push(topology);
        self.topologies.len() - 1
    }

    /// Changes with whatever nodes are where in topologies.
    pub(crate) fn layout(&self) -> u64 {
        self.layout
    }

    pub(crate) fn topology_at(&self, at: usize) -> &Topology {
        &self.topologies[at]
    }

    /// The number of a topology that somebody has asked for before.
    pub(crate) fn known_topology(&self, key: &str) -> Option<usize> {
        self.topologies.iter().position(|topology| topology.is_by(key))
    }

    fn slot_for(&mut self, name: &str) -> Slot {
        if let Some(slot) = self.slots.get(name) {
            return *slot;
        }
        let slot = self.vacant.pop().unwrap_or_else(|| {
            self.spots.push(Spot::default());
            self.salts.push(0);
            self.spots.len() as Slot - 1
        });
        self.spots[slot as usize] = Spot { name: name.to_owned(), ..Spot::default() };
        self.salts[slot as usize] = salt(name);
        self.slots.insert(name.to_owned(), slot);
        slot
    }

    /// Takes in a node as it is now. Returns its slot if anything that matters is different.
    pub(crate) fn put_node(&mut self, node: Arc<Object<Node>>) -> Option<Slot> {
        let slot = self.slot_for(&node.metadata.name);
        let old = self.spots[slot as usize].node.take();
        let same = old.as_ref().is_some_and(|old| matters_alike(old, &node));
        if !same {
            self.count_images(old.as_deref(), -1);
            self.count_images(Some(&node), 1);
            self.topologies.iter_mut().for_each(|topology| topology.assign(slot, Some(&node)));
            self.layout += 1;
        }
        self.nodes += usize::from(old.is_none());
        let spot = &mut self.spots[slot as usize];
        spot.capacity = Amounts::read(&node.status.allocatable);
        spot.max_pods = node.status.allocatable.get("pods").map_or(0, |pods| pods.units());
        spot.cordon = cordon(&node);
        spot.node = Some(node);
        if same {
            return None;
        }
        self.touch(slot);
        Some(slot)
    }

    pub(crate) fn remove_node(&mut self, name: &str) {
        let Some(slot) = self.slot(name) else { return };
        let node = self.spots[slot as usize].node.take();
        self.count_images(node.as_deref(), -1);
        self.nodes -= usize::from(node.is_some());
        self.topologies.iter_mut().for_each(|topology| topology.assign(slot, None));
        self.layout += 1;
        self.touch(slot);
        self.vacate(slot);
    }

    /// Gives a slot back that nothing speaks of any more.
    fn vacate(&mut self, slot: Slot) {
        let spot = &self.spots[slot as usize];
        if spot.node.is_none() && spot.residents.is_empty() && spot.nominated.is_empty() {
            self.slots.remove(&spot.name);
            self.vacant.push(slot);
            self.spots[slot as usize] = Spot::default();
        }
    }

    fn count_images(&mut self, node: Option<&Object<Node>>, by: isize) {
        let images = node.into_iter().flat_map(|node| &node.status.images).flat_map(|image| &image.names);
        for name in images {
            let count = self.images.entry(name.clone()).or_default();
            *count = count.saturating_add_signed(by);
        }
    }

    /// Puts a pod on a node, from wherever it was. Returns what is news: that it has left a place, or was something else
    /// there, and that it is where and what it is now.
    pub(crate) fn put_pod(&mut self, pod: Arc<Object<Pod>>, shape: Shape, node: &str) -> [Option<(Slot, Shape)>; 2] {
        let key = pod.key();
        let slot = self.slot_for(node);
        if self.homes.get(&key) == Some(&slot) {
            let spot = &mut self.spots[slot as usize];
            let resident = spot.residents.iter_mut().find(|resident| resident.is(&key));
            if let Some(resident) = resident.filter(|resident| resident.shape.number == shape.number) {
                let same = resident.pod.metadata.is_being_deleted() == pod.metadata.is_being_deleted();
                resident.pod = pod;
                if same {
                    return [None, None];
                }
                self.touch(slot);
                return [None, Some((slot, shape))];
            }
        }
        let before = self.remove_pod(&key);
        let terms = shape.needs.terms();
        terms.for_each(|term| {
            self.topology(&term.topology);
        });
        let slot = self.slot_for(node);
        *self.priorities.entry(shape.priority).or_default() += 1;
        let spot = &mut self.spots[slot as usize];
        spot.take(Resident { pod, shape: shape.clone() });
        self.homes.insert(key, slot);
        self.touch(slot);
        [before, Some((slot, shape))]
    }

    /// Gives the pods that `is_meant` other shapes; they need the same as before.
    pub(crate) fn reshape(&mut self, is_meant: impl Fn(&Pod) -> bool, mut shape: impl FnMut(&Pod, &Shape) -> Shape) {
        for slot in 0..self.slots() {
            let spot = &mut self.spots[slot as usize];
            let pods = spot.residents.iter_mut().chain(&mut spot.nominated);
            let mut is_changed = false;
            for resident in pods.filter(|resident| is_meant(&resident.pod)) {
                resident.shape = shape(&resident.pod, &resident.shape);
                is_changed = true;
            }
            if is_changed {
                self.touch(slot);
            }
        }
    }

    /// A pod is on its node as it is known to be, which `is_alike` tells from what is known. Returns whether it is so.
    pub(crate) fn confirm(&mut self, pod: &Arc<Object<Pod>>, is_alike: impl Fn(&Object<Pod>) -> bool) -> bool {
        let key = pod.key();
        let Some(slot) = self.homes.get(&key) else { return false };
        let spot = &mut self.spots[*slot as usize];
        let resident = spot.residents.iter_mut().find(|resident| resident.is(&key));
        let is_there = |resident: &&mut Resident| spot.name == pod.spec.node_name && is_alike(&resident.pod);
        let Some(resident) = resident.filter(is_there) else { return false };
        resident.pod = pod.clone();
        true
    }

    /// Takes a pod off its node; returns the slot and what it asked for, if it was on one.
    pub(crate) fn remove_pod(&mut self, key: &Key) -> Option<(Slot, Shape)> {
        let slot = self.homes.remove(key)?;
        let spot = &mut self.spots[slot as usize];
        let gone = spot.release(|resident| resident.is(key)).pop()?;
        if let Entry::Occupied(mut count) = self.priorities.entry(gone.shape.priority) {
            *count.get_mut() -= 1;
            if *count.get() == 0 {
                count.remove();
            }
        }
        self.touch(slot);
        self.vacate(slot);
        Some((slot, gone.shape))
    }

    /// Keeps room for a pod that is to come to a node.
    pub(crate) fn nominate(&mut self, pod: Arc<Object<Pod>>, shape: Shape, node: &str) {
        let slot = self.slot_for(node);
        self.spots[slot as usize].nominated.push(Resident { pod, shape });
        self.touch(slot);
    }

    pub(crate) fn withdraw(&mut self, pod: &Key, node: &str) {
        let Some(slot) = self.slot(node) else { return };
        let nominated = &mut self.spots[slot as usize].nominated;
        let before = nominated.len();
        nominated.retain(|resident| !resident.is(pod));
        if nominated.len() != before {
            self.touch(slot);
            self.vacate(slot);
        }
    }
}

impl Spot {
    pub(crate) fn take(&mut self, resident: Resident) {
        self.used.add(&resident.shape.requests);
        self.estimate.add(&resident.shape.estimate);
        self.ports.extend(resident.shape.ports.iter().cloned());
        self.residents.push(resident);
    }

    /// Takes those away that `leaves` picks.
    pub(crate) fn release(&mut self, leaves: impl Fn(&Resident) -> bool) -> Vec<Resident> {
        let gone: Vec<Resident> = self.residents.extract_if(.., |resident| leaves(resident)).collect();
        for Resident { shape, .. } in &gone {
            self.used.subtract(&shape.requests);
            self.estimate.subtract(&shape.estimate);
            for port in &shape.ports {
                if let Some(at) = self.ports.iter().position(|other| other == port) {
                    self.ports.swap_remove(at);
                }
            }
        }
        gone
    }
}

/// Whether a node is the same for whoever wants to be on it: heartbeats alone change nothing.
fn matters_alike(old: &Node, new: &Node) -> bool {
    let conditions = |node: &Node| -> BTreeSet<(String, String)> {
        node.status.conditions.iter().map(|one| (one.kind.clone(), one.status.clone())).collect()
    };
    old.metadata.labels == new.metadata.labels
        && old.spec.taints == new.spec.taints
        && old.spec.unschedulable == new.spec.unschedulable
        && old.status.allocatable == new.status.allocatable
        && old.status.images == new.status.images
        && old.status.declared_features == new.status.declared_features
        && conditions(old) == conditions(new)
}

fn cordon(node: &Node) -> Option<Taint> {
    let taint =
        || Taint { key: "node.kubernetes.io/unschedulable".into(), effect: "NoSchedule".into(), ..Taint::default() };
    node.spec.unschedulable.then(taint)
}

/// A number that stands for a name, the same in every run.
pub(crate) fn salt(name: &str) -> u64 {
    name.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3))
}
