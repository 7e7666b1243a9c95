//! An object as a write sees it: a tree, and the owners of its fields beside it.
//!
//! Objects that have a status are written several times within moments: a pod is created, bound and started. So what a
//! write has made of one is kept for a while, and the next one need not read it from its bytes.

use crate::ownership;
use bytes::Bytes;
use object::{Edit, Map, Value, View};
use parking_lot::Mutex;
use registry::{Object, Resource};
use schema::apply::Managers;
use std::collections::{HashMap, VecDeque};
use store::Revision;

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Known {
    /// In the stored version, without `managedFields`.
    pub(crate) value: Value,
    pub(crate) managers: Managers,
}

impl Known {
    /// What is about to be stored.
    pub(crate) fn new(resource: &Resource, mut value: Value, managers: Managers) -> Self {
        if value.text("apiVersion") != &*resource.stored_as {
            value.set("apiVersion", &*resource.stored_as);
        }
        Known { value, managers }
    }

    pub(crate) fn of(object: &Object) -> Self {
        let mut value = object.tree();
        let managers = match ownership::set_aside(&mut value) {
            Value::Null => object.managers(),
            fields => Managers::decode(Some(&fields)).unwrap_or_default(),
        };
        Known { value, managers }
    }

    /// The bytes to store.
    pub(crate) fn encode(&self, resource: &Resource) -> Bytes {
        static EMPTY: Map = Map::new();
        let fields = self.value.as_object().unwrap_or(&EMPTY);
        registry::encode_owned(&resource.stored_as, &resource.kind, fields, &self.managers)
    }

    /// The object as clients see it.
    pub(crate) fn whole(&self) -> Value {
        let mut value = self.value.clone();
        ownership::record(&mut value, Some(&self.managers));
        value
    }
}

/// What was written lately.
#[derive(Debug, Default)]
pub(crate) struct Recent(Mutex<Kept>);

#[derive(Debug, Default)]
struct Kept {
    objects: HashMap<Bytes, Entry>,
    /// In the order in which they were written. What has been taken or written again since is still in it.
    order: VecDeque<(Bytes, Revision)>,
    bytes: usize,
}

#[derive(Debug)]
struct Entry {
    revision: Revision,
    known: Known,
    bytes: usize,
}

/// So much is kept, counted as it is stored; as trees it is about seven times that.
const MAX_BYTES: usize = 3 << 19;
const MAX_WRITES: usize = 16_384;

impl Recent {
    /// Keeps what was written, as the object that it has become.
    pub(crate) fn keep(&self, resource: &Resource, object: &Object, mut known: Known) {
        if resource.subresource("status").is_none() {
            return;
        }
        let (key, revision, bytes) = (object.key.clone(), object.revision, object.len());
        known.value.object_or_new("metadata").set("resourceVersion", revision.to_string());
        // Trees are dropped once nobody has to wait for that: it takes as long as making them.
        let mut dropped = Vec::new();
        let mut kept = self.0.lock();
        dropped.extend(kept.remove(&key));
        kept.bytes += bytes;
        kept.order.push_back((key.clone(), revision));
        kept.objects.insert(key, Entry { revision, known, bytes });
        while kept.bytes > MAX_BYTES || kept.order.len() > MAX_WRITES {
            let Some((key, revision)) = kept.order.pop_front() else { break };
            if kept.objects.get(&key).is_some_and(|entry| entry.revision == revision) {
                dropped.extend(kept.remove(&key));
            }
        }
        drop(kept);
    }

    /// What is known of an object, which is about to be written again.
    pub(crate) fn take(&self, object: &Object) -> Known {
        let entry = self.0.lock().remove(&object.key);
        match entry.filter(|entry| entry.revision == object.revision) {
            Some(entry) => {
                debug_assert_eq!(entry.known, Known::of(object), "what is kept is what is stored");
                entry.known
            }
            None => Known::of(object),
        }
    }
}

impl Kept {
    fn remove(&mut self, key: &[u8]) -> Option<Entry> {
        let entry = self.objects.remove(key)?;
        self.bytes -= entry.bytes;
        Some(entry)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use object::json;

    fn object(name: &str, revision: u64, text: &str) -> Object {
        let value = json!({ "metadata": { "name": name }, "data": { "text": text } });
        let body = registry::encode("v1", "ConfigMap", value.as_object().unwrap());
        Object::new(Bytes::from(format!("configmaps/default/{name}")), Revision(revision), body).unwrap()
    }

    fn keep(recent: &Recent, object: &Object) {
        let pods = registry::builtin().iter().find(|row| row.table == "pods").unwrap();
        recent.keep(pods, object, Known::of(object));
    }

    #[test]
    fn what_was_written_is_known_in_that_version_only() {
        let recent = Recent::default();
        keep(&recent, &object("a", 1, "old"));
        let newer = object("a", 2, "new");
        assert_eq!(recent.take(&newer).value["data"]["text"], "new");
        keep(&recent, &newer);
        assert_eq!(recent.0.lock().objects.len(), 1);
        assert_eq!(recent.take(&newer).value["metadata"]["resourceVersion"], "2");
        let kept = recent.0.lock();
        assert_eq!((kept.objects.len(), kept.bytes), (0, 0));
    }

    #[test]
    fn only_so_much_is_kept() {
        let recent = Recent::default();
        let text = "x".repeat(1 << 20);
        for revision in 0..8 {
            keep(&recent, &object(&format!("large-{revision}"), revision, &text));
        }
        assert!(recent.0.lock().bytes <= MAX_BYTES);
        for revision in 0..2 * MAX_WRITES as u64 {
            let lease = object("lease", revision, "");
            keep(&recent, &lease);
            recent.take(&lease);
        }
        assert!(recent.0.lock().order.len() <= MAX_WRITES);
    }
}
