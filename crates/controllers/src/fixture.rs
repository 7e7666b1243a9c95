//! For tests: a namespace without a server, in which plans are carried out until nothing is left to do.

use kinds::{
    CSIDriver, ControllerRevision, CronJob, DaemonSet, Deployment, EndpointSlice, Endpoints, Job, Key, Kind, Node,
    Object, PersistentVolume, PersistentVolumeClaim, Pod, PodDisruptionBudget, ReplicaSet, ReplicationController,
    ResourceClaim, ResourceClaimTemplate, Service, StatefulSet, StorageClass, Time, VolumeAttachment,
};
use object::{Edit, Value, View, json};
use runtime::{Caches, Note, Plan, Request, Write};
use std::collections::BTreeMap;
use std::time::Duration;

pub(crate) const NOW: Time = Time::from_seconds(1_767_225_600);
/// More rounds than any test needs: a loop that goes on for so long has no fixed point.
const MAX_ROUNDS: usize = 200;

pub(crate) struct World {
    objects: BTreeMap<(String, String), Value>,
    count: u64,
    pub(crate) now: Time,
    /// After so many writes the rest of a plan is lost, once: as if the program had ended there and begun anew.
    pub(crate) crash_after: Option<usize>,
    /// What was told, a line each: `Normal Reason message`.
    pub(crate) events: Vec<String>,
    /// What was written, in the words of `kubectl`.
    pub(crate) writes: Vec<String>,
}

impl World {
    pub(crate) fn new() -> Self {
        World {
            objects: BTreeMap::new(),
            count: 0,
            now: NOW,
            crash_after: None,
            events: Vec::new(),
            writes: Vec::new(),
        }
    }

    /// Adds an object of a kind, as a server would store it.
    pub(crate) fn create<K: Kind>(&mut self, mut object: Value) -> String {
        self.count += 1;
        let count = self.count;
        let metadata = object.object_or_new("metadata");
        if !metadata.has("name") {
            let prefix = metadata.text("generateName").to_owned();
            metadata.set("name", format!("{prefix}{count:05}"));
        }
        if K::ID.namespaced {
            metadata.set_default("namespace", "default");
        }
        metadata.set_default("uid", format!("uid-{count}"));
        metadata.set_default("creationTimestamp", self.now);
        metadata.set_default("generation", 1);
        metadata.set("resourceVersion", count.to_string());
        let name = metadata.text("name").to_owned();
        let key = (K::ID.plural.to_string(), name.clone());
        assert!(!self.objects.contains_key(&key), "{key:?} is there already");
        self.objects.insert(key, object);
        name
    }

    pub(crate) fn get<K: Kind>(&self, name: &str) -> &Value {
        &self.objects[&(K::ID.plural.to_string(), name.to_owned())]
    }

    pub(crate) fn names<K: Kind>(&self) -> Vec<&str> {
        let mine = self.objects.keys().filter(|(plural, _)| *plural == K::ID.plural);
        mine.map(|(_, name)| name.as_str()).collect()
    }

    pub(crate) fn all<K: Kind>(&self) -> Vec<Value> {
        let mine = self.objects.iter().filter(|((plural, _), _)| *plural == K::ID.plural);
        mine.map(|(_, object)| object.clone()).collect()
    }

    /// Somebody changes an object.
    pub(crate) fn edit<K: Kind>(&mut self, name: &str, edit: impl FnOnce(&mut Value)) {
        self.count += 1;
        let key = (K::ID.plural.to_string(), name.to_owned());
        let object = self.objects.get_mut(&key).unwrap_or_else(|| panic!("no {key:?}"));
        let before = object.at("spec").clone();
        edit(object);
        let changed = *object.at("spec") != before;
        let metadata = object.object_or_new("metadata");
        metadata.set("resourceVersion", self.count.to_string());
        let generation = metadata.int("generation").unwrap_or(0);
        metadata.set("generation", generation + i64::from(changed));
        self.reap(&key);
    }

    pub(crate) fn remove<K: Kind>(&mut self, name: &str) {
        self.objects.remove(&(K::ID.plural.to_string(), name.to_owned()));
    }

    /// Whatever is being deleted and held by nothing is gone. Pods stay until somebody removes them if they are held.
    fn reap(&mut self, key: &(String, String)) {
        let gone = self.objects.get(key).is_some_and(|object| {
            let metadata = object.at("metadata");
            metadata.has("deletionTimestamp") && metadata.items("finalizers").is_empty()
        });
        if gone {
            self.objects.remove(key);
        }
    }

    pub(crate) fn caches(&self) -> Caches {
        let mut caches = Caches::default();
        macro_rules! put {
            ($($kind:ident),*) => {$(
                caches = caches.with::<$kind>();
                for object in self.all::<$kind>() {
                    caches.put(Object::<$kind>::of(&object));
                }
            )*};
        }
        put!(
            CSIDriver,
            ControllerRevision,
            CronJob,
            DaemonSet,
            Deployment,
            EndpointSlice,
            Endpoints,
            Job,
            Node,
            PersistentVolume,
            PersistentVolumeClaim,
            Pod,
            PodDisruptionBudget,
            ReplicaSet,
            ReplicationController,
            ResourceClaim,
            ResourceClaimTemplate,
            Service,
            StatefulSet,
            StorageClass,
            VolumeAttachment
        );
        caches
    }

    pub(crate) fn request(&self, name: &str) -> Request {
        Request { key: Key::new("default", name), now: self.now, failure: None }
    }

    /// Plans and writes once.
    pub(crate) fn step(&mut self, name: &str, plan: &dyn Fn(&Caches, &Request) -> Plan) -> Plan {
        self.step_request(&self.request(name), plan)
    }

    fn step_request(&mut self, request: &Request, plan: &dyn Fn(&Caches, &Request) -> Plan) -> Plan {
        let planned = plan(&self.caches(), request);
        self.apply(&planned);
        planned
    }

    /// Plans and writes for each of these keys in turn, until there is nothing left to write for any.
    pub(crate) fn settle_all(&mut self, keys: &[Key], plan: &dyn Fn(&Caches, &Request) -> Plan) {
        for _ in 0..MAX_ROUNDS {
            let mut quiet = true;
            for key in keys {
                let request = Request { key: key.clone(), now: self.now, failure: None };
                quiet &= self.step_request(&request, plan).writes.is_empty();
            }
            if quiet {
                return;
            }
        }
        panic!("no fixed point: {:#?}", self.writes.iter().rev().take(8).collect::<Vec<_>>());
    }

    /// Plans and writes until there is nothing left to write; returns how long the loop would then wait.
    pub(crate) fn settle(&mut self, name: &str, plan: &dyn Fn(&Caches, &Request) -> Plan) -> Option<Duration> {
        for _ in 0..MAX_ROUNDS {
            let planned = self.step(name, plan);
            if planned.writes.is_empty() {
                return planned.requeue_after;
            }
        }
        panic!("no fixed point: {:#?}", self.writes.iter().rev().take(8).collect::<Vec<_>>());
    }

    fn apply(&mut self, plan: &Plan) {
        plan.events.iter().for_each(|note| self.tell(note, ""));
        for (write, summary) in plan.writes.iter().zip(plan.summary()) {
            if self.crash_after == Some(self.writes.len()) {
                self.crash_after = None;
                return;
            }
            self.writes.push(summary);
            let name = self.write(write);
            if let Some(note) = write.announce().and_then(|announce| announce.success.as_ref()) {
                self.tell(note, &name);
            }
        }
    }

    fn tell(&mut self, note: &Note, name: &str) {
        let kind = if note.warning { "Warning" } else { "Normal" };
        self.events.push(format!("{kind} {} {}", note.reason, note.message.replace("{name}", name)));
    }

    fn write(&mut self, write: &Write) -> String {
        self.count += 1;
        let count = self.count.to_string();
        match write {
            Write::Create { id, object, .. } => {
                macro_rules! create {
                    ($($kind:ident),*) => {$(
                        if *id == $kind::ID {
                            return self.create::<$kind>(object.clone());
                        }
                    )*};
                }
                create!(
                    ControllerRevision,
                    EndpointSlice,
                    Endpoints,
                    Job,
                    PersistentVolume,
                    PersistentVolumeClaim,
                    Pod,
                    ReplicaSet,
                    ResourceClaim,
                    VolumeAttachment
                );
                panic!("nobody creates {}", id.plural)
            }
            Write::Update { id, subresource, object, .. } => {
                let name = object.path(&["metadata", "name"]).as_str().unwrap_or_default().to_owned();
                let key = (id.plural.to_string(), name.clone());
                let stored = self.objects.get_mut(&key).unwrap_or_else(|| panic!("no {key:?}"));
                let version = stored.at("metadata").text("resourceVersion");
                assert_eq!(object.at("metadata").text("resourceVersion"), version, "a conflict: {key:?}");
                let mut new = object.clone();
                let kept = if subresource.is_empty() { "status" } else { "spec" };
                match stored.at(kept) {
                    Value::Null => drop(new.remove(kept)),
                    value => new.set(kept, value.clone()),
                }
                let generation = stored.at("metadata").int("generation").unwrap_or(0);
                let changed = i64::from(new.at("spec") != stored.at("spec"));
                new.object_or_new("metadata").set("generation", generation + changed);
                new.object_or_new("metadata").set("resourceVersion", count);
                *stored = new;
                self.reap(&key);
                name
            }
            Write::Patch { target, patch, .. } => {
                let key = (target.id.plural.to_string(), target.key.name.clone());
                let stored = self.objects.get_mut(&key).unwrap_or_else(|| panic!("no {key:?}"));
                merge(stored, patch);
                stored.object_or_new("metadata").set("resourceVersion", count);
                self.reap(&key);
                key.1
            }
            Write::Delete { target, .. } => {
                let key = (target.id.plural.to_string(), target.key.name.clone());
                let now = self.now;
                if let Some(stored) = self.objects.get_mut(&key) {
                    stored.object_or_new("metadata").set("deletionTimestamp", now);
                }
                self.reap(&key);
                key.1
            }
            Write::Post { .. } => panic!("nobody posts"),
        }
    }
}

fn merge(into: &mut Value, patch: &Value) {
    let Value::Object(fields) = patch else {
        *into = patch.clone();
        return;
    };
    if !into.is_object() {
        *into = json!({});
    }
    for (field, value) in fields {
        if value.is_null() {
            into.remove(field);
        } else {
            merge(&mut into[field.as_str()], value);
        }
    }
}

/// The status that a plan reports.
pub(crate) fn reported(plan: &Plan) -> Value {
    plan.writes
        .iter()
        .find_map(|write| match write {
            Write::Update { subresource: "status", object, .. } => Some(object.at("status").clone()),
            _ => None,
        })
        .unwrap_or_default()
}
