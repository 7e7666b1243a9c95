//! The scheduler without the API: what has changed goes in, decisions come out.

mod claims;
mod devices;
mod explain;
mod gang;
mod news;
mod promises;

use crate::cluster::{Cluster, Slot, salt};
use crate::config::Configuration;
use crate::devices::Reservation;
use crate::figures::{Figures, Pending};
use crate::groups::Groups;
use crate::needs::{Needs, Shape, Shapes};
use crate::preemption::{self, NoRoom, Room};
use crate::profile::{Profile, chosen_by};
use crate::queue::{Entry, Queue};
use crate::ranking::{Claims, Ranking};
use crate::siblings::{self, Services};
use crate::verdict::{Diagnosis, GroupVerdict, Plugin};
use crate::volumes::Preparation;
use gang::Place;
use kinds::{Key, Namespace, Node, Object, Pod, PodGroup, Service};
use runtime::{Caches, Change};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use tokio::time::Instant;

/// Together the rankings that are kept remember so many nodes at most.
const REMEMBERED: usize = 1 << 20;

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
            Some(pod) if !gone(pod) && !pod.spec.node_name.is_empty() => self.place(pod, change.old.as_deref()),
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
    fn place(&mut self, pod: &Arc<Object<Pod>>, old: Option<&Object<Pod>>) {
        let key = pod.key();
        self.unqueue(&key);
        if let Some(group) = self.group_of(pod) {
            self.joins(&group, |groups| groups.places(&group, pod.key()));
        }
        let is_news = !(self.assumed.remove(&key) || old.is_some_and(|old| is_alike(old, pod)));
        if !is_news && self.cluster.confirm(pod) {
            return;
        }
        let shape = self.shape(pod);
        if self.cluster.put_pod(pod.clone(), shape.clone(), &pod.spec.node_name) {
            self.freed.extend(self.cluster.slot(&pod.spec.node_name).map(|slot| (slot, "AssignedPodUpdate")));
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
        let home = self.cluster.home(key).map(|spot| spot.residents.iter().find(|resident| resident.is(key)));
        self.moved.extend(home.flatten().map(|resident| resident.shape.clone()));
        self.freed.extend(self.cluster.remove_pod(key).map(|slot| (slot, "AssignedPodDelete")));
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

    /// Decides about one pod; nothing if there is nothing new to be said about it.
    fn decide(&mut self, entry: Entry, now: Instant) -> Option<Decision> {
        let nominated = entry.nominated.as_deref().unwrap_or_default();
        self.cluster.withdraw(&entry.pod.key(), nominated);
        let claims = match self.claims(&entry.pod, &entry.shape) {
            Ok(claims) => claims,
            Err((plugin, general)) => return Some(self.wait_for_claims(entry.pod, plugin, general, now)),
        };
        let mut ranking = self.ranking(&entry.shape, claims);
        let decision = match self.choose(&mut ranking, &entry.pod, nominated) {
            Some(slot) => {
                let place = self.assume(&ranking, &entry.pod, slot);
                Some(self.send(entry, place, now))
            }
            None if self.is_late(&ranking, &entry) => {
                self.queue.put_back(&entry.pod.key());
                None
            }
            None => Some(self.wait(&mut ranking, entry.pod, now)),
        };
        self.keep(ranking);
        decision
    }

    /// Whether others were faster than a pod that came for room on a node: all is as it was when it was tried last.
    fn is_late(&self, ranking: &Ranking, entry: &Entry) -> bool {
        let could_preempt = || ranking.shape.preempts && self.cluster.has_lesser(ranking.shape.priority);
        ranking.is_closed() && self.queue.is_ahead(&entry.pod.key()) && !could_preempt()
    }

    /// Puts a pod in its place, with what it needs there set aside for it.
    fn assume(&mut self, ranking: &Ranking, pod: &Arc<Object<Pod>>, slot: Slot) -> Place {
        let spot = self.cluster.spot(slot);
        let node = spot.name.clone();
        let prepared = spot.node.as_ref().and_then(|node| ranking.volumes.prepare(&self.cluster, node).ok());
        let volumes = Preparation { timeout: ranking.profile.binding_timeout, ..prepared.unwrap_or_default() };
        self.cluster.taken_volumes.extend(volumes.matched.iter().cloned());
        let devices = ranking.devices.reserve(&mut self.cluster, &node, ranking.profile.binding_timeout);
        self.assumed.insert(pod.key());
        self.cluster.put_pod(pod.clone(), ranking.shape.clone(), &node);
        Place { node, volumes, devices }
    }

    /// A pod is on its way to its place.
    fn send(&mut self, entry: Entry, place: Place, now: Instant) -> Decision {
        let Entry { pod, shape, failures, since, .. } = entry;
        let tries = Tries { count: failures + 1, since: since.unwrap_or(now) };
        self.queue.remove(&pod.key());
        if let Some(group) = self.group_of(&pod) {
            self.joins(&group, |groups| groups.places(&group, pod.key()));
        }
        // Others may have waited for such a pod to be somewhere.
        self.moved.push(shape);
        let Place { node, volumes, devices } = place;
        Decision::Bind { pod, node, volumes, devices, tries }
    }

    fn wait(&mut self, ranking: &mut Ranking, pod: Arc<Object<Pod>>, now: Instant) -> Decision {
        let mut diagnosis = ranking.diagnose(&self.cluster);
        if diagnosis.error.is_some() {
            self.queue.retry(&pod.key(), now);
            return Decision::Wait { pod, diagnosis, room: None };
        }
        diagnosis.release = ranking.devices.release(&diagnosis.reasons);
        let room = preemption::make_room(ranking, &self.cluster, &pod);
        if ranking.profile.preemption.is_some() {
            self.figures.preempted(room.as_ref().ok().map(|room| room.victims.len()));
        }
        let room = match room {
            Ok(room) => {
                self.nominate(&pod, &ranking.shape, &room);
                Some(room)
            }
            Err(why) => {
                let claims = ranking.profile.filters_by(Plugin::DynamicResources);
                let claims = claims.then(|| ranking.devices.outlook(diagnosis.release.as_ref()).to_owned());
                // Whoever has been promised a place keeps it while those in the way are leaving.
                diagnosis.is_lost = matches!(why, NoRoom::Nowhere(_));
                match self.queue.nomination(&pod.key()) {
                    Some(node) if diagnosis.is_lost => {
                        self.withdraw(&pod.key(), &node);
                        self.queue.withdraw(&pod.key());
                    }
                    Some(node) => self.cluster.nominate(pod.clone(), ranking.shape.clone(), &node),
                    None => {}
                }
                diagnosis.afterwards = claims.into_iter().chain(why.message()).collect();
                None
            }
        };
        self.queue.park(&pod.key(), &diagnosis.plugins, now);
        Decision::Wait { pod, diagnosis, room }
    }

    fn choose(&mut self, ranking: &mut Ranking, pod: &Pod, nominated: &str) -> Option<Slot> {
        ranking.update(&self.cluster);
        let first = self.cluster.slot(nominated).filter(|slot| ranking.does(&self.cluster, *slot, None).is_ok());
        first.or_else(|| ranking.choose(&self.cluster, salt(&pod.metadata.uid)))
    }

    fn ranking(&mut self, shape: &Shape, claims: Claims) -> Ranking {
        self.rankings.remove(&shape.number).unwrap_or_else(|| {
            let profile = self.profiles.get(&shape.profile).cloned();
            let profile = profile.unwrap_or_else(|| Arc::new(Profile::new(&shape.profile)));
            Ranking::new(shape.clone(), claims, profile, &mut self.cluster)
        })
    }

    /// Remembers a ranking for the next pod of its shape, in the place of the oldest if there are too many.
    fn keep(&mut self, ranking: Ranking) {
        // What is known about claims may be wrong by the time the next pod comes.
        if !ranking.shape.claims.is_empty() || !ranking.devices.is_empty() {
            return;
        }
        let most = (REMEMBERED / self.cluster.slots().max(1) as usize).clamp(4, 1024);
        while self.rankings.len() >= most {
            self.rankings.pop_first();
        }
        self.rankings.insert(ranking.shape.number, ranking);
    }
}

fn is_claim_of(claim: &Key, pod: &Pod) -> bool {
    claim.namespace == pod.metadata.namespace && pod.claims().any(|name| name == claim.name)
}

/// Whether a pod that has a node is the same for others: how far it has come changes nothing.
fn is_alike(old: &Pod, new: &Pod) -> bool {
    let (before, after) = (&old.metadata, &new.metadata);
    before.uid == after.uid
        && before.generation == after.generation
        && before.is_being_deleted() == after.is_being_deleted()
        && before.labels == after.labels
        && old.spec.node_name == new.spec.node_name
        && !(old.is_resizing() || new.is_resizing())
}
