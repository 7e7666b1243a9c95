//! Pods that are placed together or not at all.
//!
//! A gang is tried as one: each pod takes its place among what is there, those before it included. If enough of them
//! find one, all of those are bound; if not, every place is given back at once, so that nothing is held while the rest
//! is waited for, and two gangs that want the same room cannot block each other. Where it is enough that pods which
//! matter less leave, they are made to, and only then.

use super::{Decision, Scheduler, is_claim_of};
use crate::cluster::Resident;
use crate::devices::Reservation;
use crate::groups::Groups;
use crate::preemption::{self, Room};
use crate::queue::Entry;
use crate::verdict::{Diagnosis, GroupVerdict, Plugin};
use crate::volumes::Preparation;
use kinds::{Key, Object, Pod, PodGroup};
use runtime::Change;
use std::cmp::Reverse;
use std::sync::Arc;
use tokio::time::Instant;

/// What is said of pods that would have a place if enough others of their gang had one.
const OTHERS_MISSING: GroupVerdict =
    GroupVerdict::Unschedulable("waiting for minCount pods from a gang to be scheduled");

/// A pod of a gang, and what came of trying to place it.
struct Member {
    entry: Entry,
    found: Result<Place, Box<Diagnosis>>,
    /// Others that have to leave before it can have its place.
    room: Option<Room>,
}

/// Where a pod is to be, and what is set aside for it.
pub(super) struct Place {
    pub(super) node: String,
    pub(super) volumes: Preparation,
    pub(super) devices: Reservation,
}

/// A pod that was taken off its node to see what that would help.
struct Displaced {
    resident: Resident,
    node: String,
}

impl Scheduler {
    /// The group of a pod, where groups are regarded.
    pub(super) fn group_of(&self, pod: &Pod) -> Option<Key> {
        pod.spec.scheduling_group.as_ref()?;
        self.groups.as_ref().and_then(|_| pod.group())
    }

    fn groups(&mut self) -> &mut Groups {
        self.groups.get_or_insert_default()
    }

    pub fn group_changed(&mut self, change: &Change<PodGroup>) {
        let Some(one) = change.sides().next() else { return };
        let key = one.key();
        self.joins(&key, |groups| groups.declare(&key, change.new.clone()));
    }

    /// What a pod waits for before it is worth a try, on account of its group.
    pub(super) fn lacks_group(&self, pod: &Pod) -> Option<String> {
        let key = self.group_of(pod)?;
        self.groups.as_ref()?.lacks(&key)
    }

    /// Somebody joins a group. Those come who had to wait for that.
    pub(super) fn joins(&mut self, key: &Key, join: impl FnOnce(&mut Groups)) {
        let groups = self.groups();
        join(groups);
        for pod in groups.released(key) {
            if self.gated.contains(&pod.key()) {
                self.await_node(&pod);
            }
        }
    }

    /// The gang that a pod is in.
    pub(super) fn gang_of(&self, pod: &Pod) -> Option<Key> {
        let key = self.group_of(pod)?;
        self.groups.as_ref().is_some_and(|groups| groups.is_gang(&key)).then_some(key)
    }

    /// Decides about a whole gang, given one of its pods.
    pub(super) fn decide_gang(&mut self, key: &Key, first: Entry, now: Instant) {
        let entries = self.gather(key, first, now);
        if self.groups().lacks(key).is_some() {
            // Some have left since.
            return entries.iter().for_each(|entry| self.await_node(&entry.pod));
        }
        if let Some(error) = differing_schedulers(&entries) {
            return self.fail_gang(key, entries, &error, now);
        }
        let missing = self.groups().missing(key);
        let mut members = self.try_all(entries);
        let count = |members: &[Member]| members.iter().filter(|member| member.found.is_ok()).count();
        if count(&members) >= missing {
            return self.admit(key, members, now);
        }
        let displaced = self.displace(&mut members, missing);
        let is_possible = count(&members) >= missing;
        self.give_back(&members, displaced);
        match is_possible {
            true => self.await_victims(key, members, now),
            false => self.turn_away(key, members, now),
        }
    }

    /// All pods of a gang that wait: the most important first, then who waited longest.
    fn gather(&mut self, key: &Key, first: Entry, now: Instant) -> Vec<Entry> {
        let own = first.pod.key();
        let others = self.groups().waiting(key).into_iter().filter(|other| *other != own);
        let mut entries = vec![first];
        entries.extend(others.filter_map(|pod| self.queue.take(&pod, now)));
        entries.sort_by_key(|entry| (Reverse(entry.shape.priority), entry.turn()));
        entries
    }

    fn try_all(&mut self, entries: Vec<Entry>) -> Vec<Member> {
        // Pods that ask the same get the same answer, until another has got a place.
        let mut refused: Option<(u32, Box<Diagnosis>)> = None;
        let mut members = Vec::new();
        for entry in entries {
            let promised = entry.nominated.clone().unwrap_or_default();
            self.cluster.withdraw(&entry.pod.key(), &promised);
            let known = refused.as_ref().filter(|(shape, _)| *shape == entry.shape.number && promised.is_empty());
            let found = match known {
                Some((_, diagnosis)) => Err(diagnosis.clone()),
                None => self.find_place(&entry, &promised),
            };
            let claims = !entry.shape.claims.is_empty() || !entry.pod.spec.resource_claims.is_empty();
            refused = found.as_ref().err().filter(|_| !claims).map(|diagnosis| (entry.shape.number, diagnosis.clone()));
            members.push(Member { entry, found, room: None });
        }
        members
    }

    fn find_place(&mut self, entry: &Entry, promised: &str) -> Result<Place, Box<Diagnosis>> {
        let claims = self.claims(&entry.pod, &entry.shape);
        let claims = claims.map_err(|(plugin, general)| Box::new(self.without_claims(&entry.pod, plugin, general)))?;
        let mut ranking = self.ranking(&entry.shape, claims);
        let found = match self.choose(&mut ranking, &entry.pod, promised) {
            Some(slot) => self.assume(&ranking, &entry.pod, slot),
            None => Err(Box::new(ranking.diagnose(&self.cluster))),
        };
        self.keep(ranking);
        found
    }

    /// Takes those away that matter less, pod by pod, until enough of a gang have a place.
    fn displace(&mut self, members: &mut [Member], missing: usize) -> Vec<Displaced> {
        let mut displaced = Vec::new();
        let mut placed = members.iter().filter(|member| member.found.is_ok()).count();
        for member in members.iter_mut().filter(|member| member.found.is_err()) {
            if placed >= missing {
                break;
            }
            let Some(room) = self.room_for(member) else { continue };
            for victim in &room.victims {
                displaced.extend(self.take_off(&victim.key()));
            }
            let entry = &member.entry;
            self.cluster.put_pod(entry.pod.clone(), entry.shape.clone(), &room.node);
            let node = room.node.clone();
            member.found = Ok(Place { node, volumes: Preparation::default(), devices: Reservation::default() });
            member.room = Some(room);
            placed += 1;
        }
        displaced
    }

    /// Room that others could make for a pod; if they cannot, that is added to why it waits.
    fn room_for(&mut self, member: &mut Member) -> Option<Room> {
        let Err(diagnosis) = &mut member.found else { return None };
        let entry = &member.entry;
        let claims = self.claims(&entry.pod, &entry.shape).ok().filter(|_| diagnosis.error.is_none())?;
        let mut ranking = self.ranking(&entry.shape, claims);
        ranking.update(&self.cluster);
        let room = preemption::make_room(&mut ranking, &self.cluster, &entry.pod);
        let has_devices = !ranking.devices.is_empty();
        if ranking.profile.preemption.is_some() {
            self.figures.preempted(room.as_ref().ok().map(|room| room.victims.len()));
        }
        self.keep(ranking);
        match room {
            // What a device would free is not known before it is free.
            Ok(room) => (!has_devices).then_some(room),
            Err(why) => {
                diagnosis.afterwards = why.message().into_iter().collect();
                None
            }
        }
    }

    fn take_off(&mut self, key: &Key) -> Option<Displaced> {
        let spot = self.cluster.home(key)?;
        let node = spot.name.clone();
        let resident = spot.residents.iter().find(|resident| resident.is(key))?.clone();
        self.cluster.remove_pod(key);
        Some(Displaced { resident, node })
    }

    /// Everything is as it was before the gang was tried.
    fn give_back(&mut self, members: &[Member], displaced: Vec<Displaced>) {
        for member in members.iter().filter(|member| member.found.is_ok()) {
            let pod = &member.entry.pod;
            self.cluster.remove_pod(&pod.key());
            self.assumed.remove(&pod.key());
            self.cluster.taken_volumes.retain(|_, claim| !is_claim_of(claim, pod));
            self.cluster.devices.settle(&pod.metadata.uid);
        }
        for Displaced { resident, node } in displaced {
            self.cluster.put_pod(resident.pod, resident.shape, &node);
        }
    }

    /// Enough have a place: they are bound. The others are on their own from now on.
    fn admit(&mut self, key: &Key, members: Vec<Member>, now: Instant) {
        for Member { entry, found, .. } in members {
            match found {
                Ok(place) => {
                    let decision = self.send(entry, place, now);
                    self.decided.push_back(decision);
                }
                Err(_) => {
                    let decision = self.decide(entry, now);
                    self.decided.extend(decision);
                }
            }
        }
        self.tell_group(key, GroupVerdict::Scheduled);
    }

    /// Makes others leave; those who have a place keep it until all of them can have theirs.
    fn await_victims(&mut self, key: &Key, members: Vec<Member>, now: Instant) {
        let verdict = GroupVerdict::Unschedulable("pod group is waiting for preemption to complete");
        for Member { entry: Entry { pod, shape, .. }, found, room } in members {
            let diagnosis = match found {
                Ok(place) => {
                    match &room {
                        Some(room) => self.nominate(&pod, &shape, room),
                        None => {
                            self.cluster.nominate(pod.clone(), shape.clone(), &place.node);
                            self.queue.nominate(&pod.key(), &place.node);
                        }
                    }
                    Diagnosis::of_group(&verdict)
                }
                Err(diagnosis) => *diagnosis,
            };
            self.queue.park(&pod.key(), &[Plugin::GangScheduling, Plugin::NodeResourcesFit], now);
            self.decided.push_back(Decision::Wait { pod, diagnosis, room });
        }
        self.tell_group(key, verdict);
    }

    /// Too few have a place: nobody gets one, and all wait for what may help any of them.
    fn turn_away(&mut self, key: &Key, members: Vec<Member>, now: Instant) {
        let mut plugins = vec![Plugin::GangScheduling];
        for diagnosis in members.iter().filter_map(|member| member.found.as_ref().err()) {
            let others = diagnosis.plugins.iter().filter(|plugin| !plugins.contains(plugin)).copied();
            plugins.extend(others.collect::<Vec<_>>());
        }
        let is_waiting = members.iter().any(|member| self.waits_for_victims(&member.entry));
        for Member { entry: Entry { pod, shape, nominated, .. }, found, .. } in members {
            // Whoever has been promised a place keeps it while those in the way are leaving, and no longer.
            match nominated.filter(|_| is_waiting) {
                Some(node) => self.cluster.nominate(pod.clone(), shape, &node),
                None => self.queue.withdraw(&pod.key()),
            }
            let diagnosis =
                found.err().map(|diagnosis| *diagnosis).unwrap_or_else(|| Diagnosis::of_group(&OTHERS_MISSING));
            match diagnosis.error.is_some() {
                true => self.queue.retry(&pod.key(), now),
                false => self.queue.park(&pod.key(), &plugins, now),
            }
            self.decided.push_back(Decision::Wait { pod, diagnosis, room: None });
        }
        self.tell_group(key, GroupVerdict::Unschedulable(""));
    }

    fn waits_for_victims(&mut self, entry: &Entry) -> bool {
        let Some(claims) = entry.nominated.as_ref().and_then(|_| self.claims(&entry.pod, &entry.shape).ok()) else {
            return false;
        };
        let mut ranking = self.ranking(&entry.shape, claims);
        ranking.update(&self.cluster);
        let waits = preemption::waits_for_victims(&ranking, &self.cluster, &entry.pod);
        self.keep(ranking);
        waits
    }

    /// Something is wrong with a gang as a whole.
    fn fail_gang(&mut self, key: &Key, entries: Vec<Entry>, error: &str, now: Instant) {
        for Entry { pod, nominated, .. } in entries {
            self.cluster.withdraw(&pod.key(), &nominated.unwrap_or_default());
            self.queue.withdraw(&pod.key());
            self.queue.retry(&pod.key(), now);
            let diagnosis = Diagnosis::failure(error.to_owned());
            self.decided.push_back(Decision::Wait { pod, diagnosis, room: None });
        }
        self.tell_group(key, GroupVerdict::Error(error.to_owned()));
    }

    /// A pod of a group was placed by itself, or not.
    pub(super) fn tell_alone(&mut self, key: &Key, decision: &Decision) {
        let is_placed = matches!(decision, Decision::Bind { .. });
        self.tell_group(key, if is_placed { GroupVerdict::Scheduled } else { GroupVerdict::Unschedulable("") });
    }

    /// Says in a group what became of it, unless it says so already.
    fn tell_group(&mut self, key: &Key, verdict: GroupVerdict) {
        let group = self.groups().tell(key, &verdict);
        self.decided.extend(group.map(|group| Decision::Group { group, verdict }));
    }

    /// Keeps the place of a pod of a gang that did not get to it, so that nobody else takes it before the next try: the
    /// others of the gang have theirs.
    pub(super) fn keep_place(&mut self, pod: &Arc<Object<Pod>>, node: Option<&str>) {
        let waiting = self.gang_of(pod).and_then(|_| self.queue.get(&pod.key()));
        if let (Some(shape), Some(node)) = (waiting.map(|(entry, _)| entry.shape.clone()), node) {
            let before = self.queue.nomination(&pod.key()).unwrap_or_default();
            self.cluster.withdraw(&pod.key(), &before);
            self.queue.nominate(&pod.key(), node);
            self.cluster.nominate(pod.clone(), shape, node);
        }
    }
}

/// One scheduler places a gang, by one profile.
fn differing_schedulers(entries: &[Entry]) -> Option<String> {
    let name = |entry: &Entry| entry.shape.profile.clone();
    let first = entries.first().map(name)?;
    let other = entries.iter().map(name).find(|other| *other != first)?;
    Some(format!(
        "all pods in a single pod group should have the same .spec.schedulerName set, got: {other:?} and {first:?}"
    ))
}
