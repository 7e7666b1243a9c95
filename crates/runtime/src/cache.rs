//! A cache: the objects of one kind as they were last seen, and the ways to look them up.
//!
//! A loop reads from here and nowhere else. What it gets are shared references; nothing is copied or decoded twice.

use ambient::watch;
use kinds::{Key, Kind, Object};
use parking_lot::RwLock;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

#[derive(Debug)]
pub struct Cache<K: Kind> {
    content: RwLock<Content<K>>,
    progress: watch::Sender<Progress>,
    reads: AtomicU64,
}

/// How far a cache has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Everything that was there at first has been seen.
    pub synced: bool,
    /// Everything up to this version has been seen.
    pub version: u64,
}

type Bucket<K> = BTreeMap<Arc<Key>, Arc<Object<K>>>;

/// Every object is in `objects`, and in each of `indexes` under whatever values that index gives it.
#[derive(Debug)]
struct Content<K: Kind> {
    objects: Bucket<K>,
    /// By the UID of the controller, and then in the order of [`Kind::INDEXES`].
    indexes: Vec<BTreeMap<String, Bucket<K>>>,
}

/// Where among the indexes objects are found by their controllers, and where those of the kind start.
const OWNED: usize = 0;
const OF_KIND: usize = 1;

/// What became different: one of the two is there, or both.
#[derive(Debug)]
pub struct Change<K> {
    pub old: Option<Arc<Object<K>>>,
    pub new: Option<Arc<Object<K>>>,
}

impl<K> Clone for Change<K> {
    fn clone(&self) -> Self {
        Change { old: self.old.clone(), new: self.new.clone() }
    }
}

impl<K> Change<K> {
    /// Something that is there and was not.
    pub fn new(object: Arc<Object<K>>) -> Self {
        Change { old: None, new: Some(object) }
    }

    /// The object before and after, as far as there is one.
    pub fn sides(&self) -> impl Iterator<Item = &Arc<Object<K>>> {
        self.old.iter().chain(self.new.iter())
    }
}

impl<K: Kind> Default for Cache<K> {
    fn default() -> Self {
        let content = Content {
            objects: BTreeMap::new(),
            indexes: (0..OF_KIND + K::INDEXES.len()).map(|_| BTreeMap::new()).collect(),
        };
        Cache {
            content: RwLock::new(content),
            progress: watch::Sender::new(Progress::default()),
            reads: AtomicU64::new(0),
        }
    }
}

impl<K: Kind> Cache<K> {
    pub fn get(&self, key: &Key) -> Option<Arc<Object<K>>> {
        self.read().objects.get(key).cloned()
    }

    /// An object in a namespace, by name.
    pub fn named(&self, namespace: &str, name: &str) -> Option<Arc<Object<K>>> {
        self.get(&Key::new(namespace, name))
    }

    /// Everything, in the order of namespaces and names.
    pub fn all(&self) -> Vec<Arc<Object<K>>> {
        self.read().objects.values().cloned().collect()
    }

    /// Everything in a namespace, in the order of names.
    pub fn in_namespace(&self, namespace: &str) -> Vec<Arc<Object<K>>> {
        let content = self.read();
        let from = Key::new(namespace, "");
        let range = content.objects.range(from..).take_while(|(key, _)| key.namespace == namespace);
        range.map(|(_, object)| object.clone()).collect()
    }

    /// Whatever has the object with this UID as its controller.
    pub fn owned_by(&self, uid: &str) -> Vec<Arc<Object<K>>> {
        self.read().indexes[OWNED].get(uid).into_iter().flat_map(|bucket| bucket.values().cloned()).collect()
    }

    /// Whatever an index of the kind has under a value.
    pub fn by(&self, index: &str, value: &str) -> Vec<Arc<Object<K>>> {
        let at = K::INDEXES.iter().position(|(name, _)| *name == index);
        let at = at.unwrap_or_else(|| panic!("{} has no index {index:?}", K::ID.kind));
        self.read().indexes[OF_KIND + at].get(value).into_iter().flat_map(|bucket| bucket.values().cloned()).collect()
    }

    pub fn len(&self) -> usize {
        self.content.read().objects.len()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How often something was looked up.
    pub fn reads(&self) -> u64 {
        self.reads.load(Ordering::Relaxed)
    }

    pub fn progress(&self) -> watch::Receiver<Progress> {
        self.progress.subscribe()
    }

    fn read(&self) -> parking_lot::RwLockReadGuard<'_, Content<K>> {
        self.reads.fetch_add(1, Ordering::Relaxed);
        self.content.read()
    }

    /// Puts an object in the place of whatever had its name; returns what is different.
    pub(crate) fn put(&self, object: Object<K>) -> Change<K> {
        let object = Arc::new(object);
        let old = self.content.write().put(&object);
        Change { old, new: Some(object) }
    }

    pub(crate) fn remove(&self, key: &Key) -> Change<K> {
        Change { old: self.content.write().remove(key), new: None }
    }

    /// The names of everything that is not among `kept`.
    pub(crate) fn others(&self, kept: &std::collections::BTreeSet<Key>) -> Vec<Key> {
        let content = self.content.read();
        content.objects.keys().filter(|key| !kept.contains(&***key)).map(|key| (**key).clone()).collect()
    }

    pub(crate) fn version_of(&self, key: &Key) -> Option<String> {
        self.content.read().objects.get(key).map(|object| object.meta().resource_version.clone())
    }

    pub(crate) fn advance(&self, version: u64, synced: bool) {
        self.progress.send_modify(|progress| {
            progress.version = progress.version.max(version);
            progress.synced |= synced;
        });
    }
}

impl<K: Kind> Content<K> {
    fn put(&mut self, object: &Arc<Object<K>>) -> Option<Arc<Object<K>>> {
        let (key, old) = match self.objects.entry(object.shared_key().clone()) {
            Entry::Occupied(mut entry) => (entry.key().clone(), Some(entry.insert(object.clone()))),
            Entry::Vacant(entry) => {
                let key = entry.key().clone();
                entry.insert(object.clone());
                (key, None)
            }
        };
        for (at, index) in self.indexes.iter_mut().enumerate() {
            let before = old.as_ref().map(|old| values(at, old)).unwrap_or_default();
            let after = values(at, object);
            // Most changes move an object to no other place.
            before.iter().filter(|value| !after.contains(value)).for_each(|value| take(index, value, &key));
            for value in after {
                index.entry(value).or_default().insert(key.clone(), object.clone());
            }
        }
        old
    }

    fn remove(&mut self, key: &Key) -> Option<Arc<Object<K>>> {
        let object = self.objects.remove(key)?;
        for (at, index) in self.indexes.iter_mut().enumerate() {
            values(at, &object).iter().for_each(|value| take(index, value, key));
        }
        Some(object)
    }
}

/// What an object is found by in an index.
fn values<K: Kind>(index: usize, object: &Object<K>) -> Vec<String> {
    match index.checked_sub(OF_KIND) {
        None => object.meta().controller().map(|owner| owner.uid.clone()).into_iter().collect(),
        Some(at) => K::INDEXES[at].1(object),
    }
}

fn take<K>(index: &mut BTreeMap<String, Bucket<K>>, value: &str, key: &Key) {
    if let Some(bucket) = index.get_mut(value) {
        bucket.remove(key);
        if bucket.is_empty() {
            index.remove(value);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kinds::Pod;
    use object::{Value, json};

    fn pod(name: &str, node: &str, owner: &str) -> Object<Pod> {
        let owners: Value = match owner {
            "" => json!([]),
            uid => json!([{ "uid": uid, "controller": true }]),
        };
        Object::of(&json!({
            "metadata": { "namespace": "a", "name": name, "ownerReferences": owners }, "spec": { "nodeName": node },
        }))
    }

    fn names(pods: &[Arc<Object<Pod>>]) -> Vec<&str> {
        pods.iter().map(|pod| pod.metadata.name.as_str()).collect()
    }

    #[test]
    fn an_object_is_found_by_what_it_is_now_and_not_by_what_it_was() {
        let cache = Cache::<Pod>::default();
        cache.put(pod("x", "", "u1"));
        cache.put(pod("y", "n1", "u1"));
        assert_eq!(names(&cache.owned_by("u1")), ["x", "y"]);
        assert_eq!(names(&cache.by("node", "n1")), ["y"]);
        let change = cache.put(pod("y", "n2", ""));
        assert_eq!(change.old.unwrap().spec.node_name, "n1");
        assert_eq!(names(&cache.owned_by("u1")), ["x"]);
        assert!(cache.by("node", "n1").is_empty());
        cache.remove(&Key::new("a", "y"));
        assert!(cache.by("node", "n2").is_empty() && cache.named("a", "y").is_none());
        assert_eq!(names(&cache.in_namespace("a")), ["x"]);
        assert!(cache.in_namespace("b").is_empty());
    }
}
