//! Pods that wait for a node: which is next, and which have to wait for something to change.
//!
//! A pod is in one of four places: next in line, waiting out its back-off, parked until something happens that may help
//! it, or in hand. Parked pods are kept by what they ask for, so that what helps one of them is found out once.
//!
//! Pods that ask for the same get the same answer. So when something may help them, one of them goes ahead: if it finds a
//! place the next one follows, and if not the others need not try. However many wait, room for one costs two tries.

mod entry;
mod parked;

use crate::figures::{Figures, Pending};
use crate::needs::Shape;
use crate::verdict::Plugin;
use entry::Place;
pub(crate) use entry::{Backoff, Entry};
use kinds::{Key, Object, Pod};
pub(crate) use parked::Stuck;
use parked::{Call, Parked};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// Whatever happens or not, a parked pod is tried again after this long.
const MAX_PARKED: Duration = Duration::from_secs(300);

#[derive(Debug, Default)]
pub(crate) struct Queue {
    waits: Backoff,
    figures: Figures,
    /// One key for each pod, which all the places share.
    entries: HashMap<Arc<Key>, Entry>,
    active: BTreeMap<(Reverse<i32>, u64), Arc<Key>>,
    backoff: BTreeMap<(Instant, u64), Arc<Key>>,
    parked: BTreeMap<u32, Parked>,
    /// Parked pods by when they are tried again at the latest.
    deadlines: BTreeMap<(Instant, u64), Arc<Key>>,
    next: u64,
}

impl Queue {
    pub(crate) fn new(waits: Backoff, figures: Figures) -> Self {
        Queue { waits, figures, ..Queue::default() }
    }

    /// How many wait where; those with gates are not known here.
    pub(crate) fn pending(&self) -> Pending {
        let (active, backoff, unschedulable) = (self.active.len(), self.backoff.len(), self.deadlines.len());
        Pending { active, backoff, unschedulable, gated: 0 }
    }

    /// A pod that waits, or what became of it meanwhile. One that asks for something else now is tried at once. Returns
    /// whether it is another pod than before.
    pub(crate) fn put(&mut self, pod: Arc<Object<Pod>>, shape: Shape) -> bool {
        let key = pod.shared_key().clone();
        if let Some(entry) = self.entries.get_mut(&key) {
            let same = entry.shape.number == shape.number && entry.pod.metadata.uid == pod.metadata.uid;
            entry.pod = pod.clone();
            if same || entry.place == Place::InHand {
                return false;
            }
        }
        self.remove(&key);
        let turn = self.turn();
        let entry = Entry {
            key: key.clone(),
            pod,
            shape,
            nominated: None,
            failures: 0,
            since: None,
            refused_by: Vec::new(),
            until: None,
            deadline: None,
            turn,
            place: Place::InHand,
        };
        self.entries.insert(key.clone(), entry);
        self.activate(&key, "UnscheduledPodAdd");
        true
    }

    /// Gives the pods that `is_meant` other shapes; they need the same as before.
    pub(crate) fn reshape(&mut self, is_meant: impl Fn(&Pod) -> bool, mut shape: impl FnMut(&Pod, &Shape) -> Shape) {
        // In an order that is the same in every run, since shapes are numbered as they come.
        let meant: BTreeSet<Arc<Key>> =
            self.entries.iter().filter(|(_, entry)| is_meant(&entry.pod)).map(|(key, _)| key.clone()).collect();
        // Those that one has gone ahead for are not alike any more.
        let mut parted: BTreeMap<u32, Call> = BTreeMap::new();
        for key in &meant {
            let Some(entry) = self.entries.get_mut(key) else { continue };
            let shape = shape(&entry.pod, &entry.shape);
            let before = std::mem::replace(&mut entry.shape, shape.clone());
            let Some(parked) = self.parked.get_mut(&before.number) else { continue };
            if let Some((_, call)) = &parked.ahead {
                parted.extend([before.number, shape.number].map(|number| (number, call.clone())));
            }
            if !parked.remove(entry) {
                continue;
            }
            let plugins = parked.plugins.clone();
            if parked.is_empty() {
                self.parked.remove(&before.number);
            }
            self.parked.entry(shape.number).or_insert_with(|| Parked::new(&shape, &plugins)).put(entry);
        }
        for (shape, call) in parted {
            if let Some(parked) = self.parked.get_mut(&shape) {
                parked.ahead = None;
                self.follow(shape, &call);
            }
        }
    }

    /// A pod that waits, and where it does.
    pub(crate) fn get(&self, key: &Key) -> Option<(&Entry, &'static str)> {
        let entry = self.entries.get(key)?;
        let queue = match entry.place {
            Place::InHand | Place::Active => "active",
            Place::Backoff { .. } => "backoff",
            Place::Parked => "unschedulable",
        };
        Some((entry, queue))
    }

    pub(crate) fn nominate(&mut self, key: &Key, node: &str) {
        self.promise(key, Some(node.to_owned()));
    }

    pub(crate) fn withdraw(&mut self, key: &Key) {
        self.promise(key, None);
    }

    /// Who has a place that is kept is not like the others any more.
    fn promise(&mut self, key: &Key, node: Option<String>) {
        let Some(entry) = self.entries.get_mut(key) else { return };
        let parked = self.parked.get_mut(&entry.shape.number);
        let parked = parked.and_then(|parked| parked.remove(entry).then_some(parked));
        entry.nominated = node;
        if let Some(parked) = parked {
            parked.put(entry);
        }
    }

    pub(crate) fn nomination(&self, key: &Key) -> Option<String> {
        self.entries.get(key)?.nominated.clone()
    }

    fn turn(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    pub(crate) fn remove(&mut self, key: &Key) -> Option<Entry> {
        self.take_out(key);
        self.forget_refusal(key);
        self.pass_on(key);
        self.entries.remove(key)
    }

    fn forget_refusal(&mut self, key: &Key) {
        let Some(entry) = self.entries.get_mut(key) else { return };
        self.figures.refused(&std::mem::take(&mut entry.refused_by), &entry.shape.profile, -1);
    }

    /// Takes a pod from wherever it is into the hand.
    fn take_out(&mut self, key: &Key) {
        let Some(entry) = self.entries.get_mut(key) else { return };
        match std::mem::replace(&mut entry.place, Place::InHand) {
            Place::InHand => {}
            Place::Active => {
                self.active.remove(&(Reverse(entry.shape.priority), entry.turn));
            }
            Place::Backoff { until, .. } => {
                self.backoff.remove(&(until, entry.turn));
            }
            Place::Parked => {
                entry.deadline.and_then(|deadline| self.deadlines.remove(&(deadline, entry.turn)));
                if let Some(parked) = self.parked.get_mut(&entry.shape.number) {
                    parked.remove(entry);
                    if parked.is_empty() {
                        self.parked.remove(&entry.shape.number);
                    }
                }
            }
        }
    }

    fn activate(&mut self, key: &Key, event: &str) {
        self.take_out(key);
        self.figures.entered("active", event);
        let Some(entry) = self.entries.get_mut(key) else { return };
        entry.place = Place::Active;
        self.active.insert((Reverse(entry.shape.priority), entry.turn), entry.key.clone());
    }

    fn back_off(&mut self, key: &Key, until: Instant, may_jump: bool, event: &str) {
        self.take_out(key);
        self.figures.entered("backoff", event);
        let Some(entry) = self.entries.get_mut(key) else { return };
        entry.place = Place::Backoff { until, may_jump };
        self.backoff.insert((until, entry.turn), entry.key.clone());
    }

    /// The next pod, which is in hand from now on.
    pub(crate) fn pop(&mut self, now: Instant) -> Option<Entry> {
        self.release(now);
        let key = self.active.first_key_value().map(|(_, key)| key).or_else(|| self.jumper())?.clone();
        self.take(&key, now)
    }

    /// A pod from wherever it waits, which is in hand from now on.
    pub(crate) fn take(&mut self, key: &Key, now: Instant) -> Option<Entry> {
        self.take_out(key);
        let entry = self.entries.get_mut(key)?;
        entry.since.get_or_insert(now);
        Some(entry.clone())
    }

    /// If nobody is in line, whoever backs off for no fault of the API need not wait.
    fn jumper(&self) -> Option<&Arc<Key>> {
        let may_jump = |key: &&Arc<Key>| {
            self.entries.get(*key).is_some_and(|entry| matches!(entry.place, Place::Backoff { may_jump: true, .. }))
        };
        self.backoff.values().find(may_jump)
    }

    /// Lets those come whose time has come.
    fn release(&mut self, now: Instant) {
        while let Some((at, key)) = self.backoff.first_key_value()
            && at.0 <= now
        {
            let key = key.clone();
            self.activate(&key, "BackoffComplete");
        }
        while let Some((at, key)) = self.deadlines.first_key_value()
            && at.0 <= now
        {
            let key = key.clone();
            self.activate(&key, "UnschedulableTimeout");
        }
    }

    /// When something is due by itself.
    pub(crate) fn due(&self) -> Option<Instant> {
        let backoff = self.backoff.first_key_value().map(|((at, _), _)| *at);
        let parked = self.deadlines.first_key_value().map(|((at, _), _)| *at);
        backoff.into_iter().chain(parked).min()
    }

    /// Puts the pod in hand aside: nothing can be done for it as things are.
    pub(crate) fn park(&mut self, key: &Key, plugins: &[Plugin], now: Instant) {
        self.forget_refusal(key);
        let Some(entry) = self.entries.get_mut(key) else { return };
        entry.fail(now, self.waits);
        entry.deadline = Some(now + MAX_PARKED);
        entry.refused_by = plugins.to_vec();
        self.figures.refused(plugins, &entry.shape.profile, 1);
        self.figures.entered("unschedulable", "ScheduleAttemptFailure");
        self.put_back(key);
    }

    /// Puts the pod in hand back where it was, as if it had not been tried.
    pub(crate) fn put_back(&mut self, key: &Key) {
        let Some(entry) = self.entries.get_mut(key) else { return };
        entry.place = Place::Parked;
        self.deadlines.extend(entry.deadline.map(|deadline| ((deadline, entry.turn), entry.key.clone())));
        let (shape, plugins) = (&entry.shape, &entry.refused_by);
        let parked = self.parked.entry(shape.number).or_insert_with(|| Parked::new(shape, plugins));
        // Pods that ask the same are refused by the same, but for what they are in together with others.
        let others = plugins.iter().filter(|plugin| !parked.plugins.contains(plugin)).copied().collect::<Vec<_>>();
        parked.plugins.extend(others);
        parked.put(entry);
        match entry.is_alike() {
            // The answer that it got holds for all of them.
            true => drop(parked.ahead.take_if(|(ahead, _)| **ahead == *key)),
            false => self.pass_on(key),
        }
    }

    /// Puts the pod in hand aside until it is called, or something happens that may help it.
    pub(crate) fn hold(&mut self, key: &Key) {
        if let Some(entry) = self.entries.get_mut(key) {
            entry.deadline = None;
        }
        self.put_back(key);
    }

    /// Tries the pod in hand again after its back-off: what failed was not the search for a node.
    pub(crate) fn retry(&mut self, key: &Key, now: Instant) {
        self.forget_refusal(key);
        let Some(entry) = self.entries.get_mut(key) else { return };
        let until = entry.fail(now, self.waits);
        self.back_off(key, until, false, "ScheduleAttemptFailure");
        self.pass_on(key);
    }

    /// What pods are parked for.
    pub(crate) fn stuck(&self) -> impl Iterator<Item = Stuck<'_>> {
        self.parked.values().map(|parked| Stuck { shape: &parked.shape, plugins: &parked.plugins })
    }

    /// Something has happened that may help the parked pods of a shape.
    pub(crate) fn wake(&mut self, shape: u32, event: &str, now: Instant) {
        let Some(parked) = self.parked.get(&shape) else { return };
        let call = Call { event: event.to_owned(), at: now };
        parked.others.clone().iter().for_each(|key| self.come(key, &call));
        self.follow(shape, &call);
    }

    /// Something has happened that may help one parked pod.
    pub(crate) fn call(&mut self, key: &Key, event: &str, now: Instant) {
        if self.entries.get(key).is_some_and(|entry| entry.place == Place::Parked) {
            self.come(key, &Call { event: event.to_owned(), at: now });
        }
    }

    /// A parked pod gets in line, once its back-off is over.
    fn come(&mut self, key: &Key, call: &Call) {
        match self.entries.get(key).and_then(|entry| entry.until).filter(|until| *until > call.at) {
            Some(until) => self.back_off(key, until, true, &call.event),
            None => self.activate(key, &call.event),
        }
    }

    /// Lets the next of those that are alike go ahead, unless one has.
    fn follow(&mut self, shape: u32, call: &Call) {
        let Some(parked) = self.parked.get_mut(&shape).filter(|parked| parked.ahead.is_none()) else { return };
        let Some(key) = parked.alike.values().next().cloned() else { return };
        parked.ahead = Some((key.clone(), call.clone()));
        self.come(&key, call);
    }

    /// If a pod has gone ahead, what it found out does not hold for the others: the next one goes.
    fn pass_on(&mut self, key: &Key) {
        let Some(shape) = self.entries.get(key).map(|entry| entry.shape.number) else { return };
        let Some(parked) = self.parked.get_mut(&shape) else { return };
        if let Some((_, call)) = parked.ahead.take_if(|(ahead, _)| **ahead == *key) {
            self.follow(shape, &call);
        }
    }

    /// Whether a pod was made to come because something may help it.
    pub(crate) fn is_ahead(&self, key: &Key) -> bool {
        let parked = self.entries.get(key).and_then(|entry| self.parked.get(&entry.shape.number));
        parked.and_then(|parked| parked.ahead.as_ref()).is_some_and(|(ahead, _)| **ahead == *key)
    }
}
