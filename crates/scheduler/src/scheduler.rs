//! The scheduler without the API: what has changed goes in, decisions come out.

mod claims;
mod decide;
mod devices;
mod explain;
mod gang;
mod news;
mod promises;

use crate::cluster::{Cluster, Slot};
use crate::config::Configuration;
use crate::devices::Reservation;
use crate::figures::{Figures, Pending};
use crate::groups::Groups;
use crate::needs::{Needs, Shape, Shapes};
use crate::preemption::Room;
use crate::profile::{Profile, chosen_by};
use crate::queue::{Entry, Queue};
use crate::ranking::Ranking;
use crate::siblings::{self, Services};
use crate::verdict::{Diagnosis, GroupVerdict};
use crate::volumes::Preparation;
use kinds::{Key, Namespace, Node, Object, Pod, PodGroup, Service};
use runtime::{Caches, Change};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use tokio::time::Instant;

#[derive(Debug)]
pub struct Scheduler {
    pub(crate) cluster: Cluster,
    pub(crate) queue: Queue,
    shapes: Shapes,
    services: Services,
    profiles: BTreeMap<String, Arc<Profile>>,
    rankings: BTreeMap<u32, Ranking>,
    /// Pods that are on their way to a node by a decision that the caches have not seen yet.
    assumed: BTreeSet<Key>,
    /// Nodes that have room they had not, and pods that are elsewhere or otherwise than before: who it may help is
    /// asked before the next decision.
    freed: Vec<(Slot, &'static str)>,
    moved: Vec<Shape>,
    /// Pods that are not to be placed yet.
    gated: BTreeSet<Key>,
    /// Pods that others are being made to go for, and whether something has happened meanwhile that may help them. They are
    /// not tried before all of those are leaving, or more would have to.
    clearing: BTreeMap<Key, bool>,
    /// None where pods are not placed in groups.
    groups: Option<Groups>,
    /// What was decided together and has not been given out yet.
    decided: VecDeque<Decision>,
    figures: Figures,
}

/// How often and since when a pod has been tried, this time included.
#[derive(Clone, Copy, Debug)]
pub struct Tries {
    pub(crate) count: u32,
    pub(crate) since: Instant,
}

/// What is to be done about a pod.
#[derive(Debug)]
pub enum Decision {
    /// A node does; before that, something may have to be done about volumes and devices.
    Bind { pod: Arc<Object<Pod>>, node: String, volumes: Preparation, devices: Reservation, tries: Tries },
    /// No node does; others may have to go so that one does.
    Wait { pod: Arc<Object<Pod>>, diagnosis: Diagnosis, room: Option<Room> },
    /// What became of a group as a whole is to be told.
    Group { group: Arc<Object<PodGroup>>, verdict: GroupVerdict },
}

impl Scheduler {
    pub fn new(caches: Caches, configuration: &Configuration) -> Self {
        Scheduler::counted(caches, configuration, Figures::default())
    }

    pub(crate) fn counted(caches: Caches, configuration: &Configuration, figures: Figures) -> Self {
        let known = configuration.profiles.iter();
        let profiles = known.map(|profile| (profile.name.clone(), Arc::new(profile.clone()))).collect();
        Scheduler {
            cluster: Cluster::new(caches),
            queue: Queue::new(configuration.backoff, figures.clone()),
            shapes: Shapes::default(),
            services: Services::default(),
            profiles,
            rankings: BTreeMap::new(),
            assumed: BTreeSet::new(),
            freed: Vec::new(),
            moved: Vec::new(),
            gated: BTreeSet::new(),
            clearing: BTreeMap::new(),
            groups: configuration.pod_groups.then(Groups::default),
            decided: VecDeque::new(),
            figures,
        }
    }

    fn profile(&self, pod: &Pod) -> Option<Arc<Profile>> {
        self.profiles.get(chosen_by(pod)).cloned()
    }

    fn shape(&mut self, pod: &Pod) -> Shape {
        let profile = self.profile(pod).unwrap_or_else(|| Arc::new(Profile::new(&pod.spec.scheduler_name)));
        let siblings = siblings::selector(pod, &self.services, &self.cluster.caches);
        let needs = Needs::read(pod, &profile, siblings);
        let fresh = self.shapes.begin_to_look_at(&needs);
        if !fresh.is_empty() {
            let shapes = &mut self.shapes;
            let is_meant = |pod: &Pod| pod.metadata.labels.keys().any(|key| fresh.contains(key));
            self.cluster.reshape(is_meant, |pod, before| shapes.again(pod, before));
            self.queue.reshape(is_meant, |pod, before| shapes.again(pod, before));
        }
        self.shapes.of(needs)
    }

    pub fn pod_changed(&mut self, change: &Change<Pod>) {
        let gone = |pod: &Object<Pod>| pod.is_finished();
        match &change.new {
            Some(pod) if !gone(pod) && !pod.spec.node_name.is_empty() => self.place(pod),
            Some(pod) if !gone(pod) => {
                let nominated = |pod: &Pod| pod.status.nominated_node_name.clone();
                let is_said = change.old.as_ref().is_some_and(|old| nominated(old) != nominated(pod));
                self.await_node(pod);
                if is_said {
                    self.renominate(pod);
                }
            }
            Some(pod) => self.forget(&pod.key()),
            None => change.old.iter().for_each(|old| self.forget(&old.key())),
        }
    }

    /// A pod that has a node.
    fn place(&mut self, pod: &Arc<Object<Pod>>) {
        let key = pod.key();
        self.unqueue(&key);
        if let Some(group) = self.group_of(pod) {
            self.joins(&group, |groups| groups.places(&group, pod.key()));
        }
        let (was_assumed, shapes) = (self.assumed.remove(&key), &self.shapes);
        if self.cluster.confirm(pod, |known| is_alike(known, pod, was_assumed, shapes)) {
            return;
        }
        let shape = self.shape(pod);
        for (slot, shape) in self.cluster.put_pod(pod.clone(), shape, &pod.spec.node_name).into_iter().flatten() {
            self.freed.push((slot, "AssignedPodUpdate"));
            self.moved.push(shape);
        }
    }

    fn unqueue(&mut self, key: &Key) {
        if let Some(Entry { nominated: Some(node), .. }) = self.queue.remove(key) {
            self.withdraw(key, &node);
        }
    }

    /// A pod that has none.
    fn await_node(&mut self, pod: &Arc<Object<Pod>>) {
        let key = pod.key();
        if self.assumed.contains(&key) {
            return;
        }
        if !(pod.is_active() && self.profile(pod).is_some()) {
            return self.forget(&key);
        }
        if let Some(group) = self.group_of(pod) {
            self.joins(&group, |groups| groups.awaits(&group, pod));
        }
        if !pod.spec.scheduling_gates.is_empty() || self.lacks(pod).is_some() {
            self.dismiss(&key);
            if self.gated.insert(key) {
                self.figures.entered("gated", "UnscheduledPodAdd");
            }
            return;
        }
        self.gated.remove(&key);
        let shape = self.shape(pod);
        let before = self.queue.nomination(&key);
        let is_new = self.queue.put(pod.clone(), shape);
        if let Some(before) = before.filter(|_| is_new) {
            self.withdraw(&key, &before);
        }
        // After that, what this scheduler has decided goes before what the caches have seen.
        if is_new {
            self.renominate(pod);
        }
    }

    /// What a pod waits for before it is worth a try.
    pub(crate) fn lacks(&self, pod: &Pod) -> Option<String> {
        self.lacks_claims(pod).or_else(|| self.lacks_group(pod))
    }

    /// A pod that needs no node any more.
    fn forget(&mut self, key: &Key) {
        if let Some(groups) = &mut self.groups {
            groups.leaves(key);
        }
        self.dismiss(key);
    }

    /// A pod that is not to be placed, or not yet.
    fn dismiss(&mut self, key: &Key) {
        self.assumed.remove(key);
        self.gated.remove(key);
        self.clearing.remove(key);
        self.unqueue(key);
        self.leave(key);
    }

    /// A pod is not on its node any more, if it was on one.
    fn leave(&mut self, key: &Key) {
        if let Some((slot, shape)) = self.cluster.remove_pod(key) {
            self.freed.push((slot, "AssignedPodDelete"));
            self.moved.push(shape);
        }
    }

    pub(crate) fn pending(&self) -> Pending {
        Pending { gated: self.gated.len(), ..self.queue.pending() }
    }

    pub fn node_changed(&mut self, change: &Change<Node>) {
        match (&change.new, &change.old) {
            (Some(node), old) => {
                let event = if old.is_some() { "NodeUpdate" } else { "NodeAdd" };
                self.freed.extend(self.cluster.put_node(node.clone()).map(|slot| (slot, event)));
            }
            (None, Some(old)) => self.cluster.remove_node(&old.metadata.name),
            (None, None) => {}
        }
    }

    pub fn service_changed(&mut self, change: &Change<Service>) {
        change.old.iter().for_each(|old| self.services.remove(&old.key()));
        change.new.iter().for_each(|new| self.services.put(new));
    }

    pub fn namespace_changed(&mut self, change: &Change<Namespace>) {
        let (name, labels) = match (&change.new, &change.old) {
            (Some(new), _) => (new.metadata.name.clone(), Some(new.metadata.labels.clone())),
            (None, Some(old)) => (old.metadata.name.clone(), None),
            (None, None) => return,
        };
        if self.cluster.namespaces.get(&name) == labels.as_ref() {
            return;
        }
        let is_new = !self.cluster.namespaces.contains_key(&name);
        match labels {
            Some(labels) => drop(self.cluster.namespaces.insert(name, labels)),
            None => drop(self.cluster.namespaces.remove(&name)),
        }
        // A namespace that was not there has no pods yet that anything could be known about.
        if !is_new {
            self.cluster.touch_all();
            self.rankings.clear();
        }
    }

    /// Decides about the next pod; none if none is to be placed now.
    pub fn next(&mut self, now: Instant) -> Option<Decision> {
        loop {
            if let Some(decision) = self.decided.pop_front() {
                return Some(decision);
            }
            self.wake(now);
            let entry = self.queue.pop(now)?;
            if self.is_clearing(&entry.pod) {
                self.queue.hold(&entry.pod.key());
                continue;
            }
            match self.gang_of(&entry.pod) {
                Some(gang) => self.decide_gang(&gang, entry, now),
                None => {
                    let group = self.group_of(&entry.pod);
                    let Some(decision) = self.decide(entry, now) else { continue };
                    group.iter().for_each(|group| self.tell_alone(group, &decision));
                    return Some(decision);
                }
            }
        }
    }
}

fn is_claim_of(claim: &Key, pod: &Pod) -> bool {
    claim.namespace == pod.metadata.namespace && pod.claims().any(|name| name == claim.name)
}

/// Whether a pod that has a node is the same for others as it was known to be: how far it has come changes nothing, nor
/// does a decision that has been carried out.
fn is_alike(known: &Pod, now: &Pod, was_assumed: bool, shapes: &Shapes) -> bool {
    let (before, after) = (&known.metadata, &now.metadata);
    before.uid == after.uid
        && (was_assumed || before.generation == after.generation)
        && before.is_being_deleted() == after.is_being_deleted()
        && shapes.are_alike(&before.labels, &after.labels)
        && !(known.is_resizing() || now.is_resizing())
}
