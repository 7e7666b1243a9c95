//! An informer: one watch of one kind, which keeps a cache and wakes whoever is interested.
//!
//! There is no queue between the watch and the cache: handlers only add keys to work queues, and cannot be slow.

use crate::cache::{Cache, Change, Progress};
use crate::client::Client;
use crate::executor::Answer;
use crate::reflector::{Sink, reflect};
use ambient::Ambient;
use ambient::watch;
use kinds::{Id, Key, Kind, Object, Raw};
use object::ApiError;
use parking_lot::RwLock;
use std::any::{Any, TypeId};
use std::collections::BTreeSet;
use std::fmt::Debug;
use std::sync::{Arc, Weak};

type Handler<K> = Box<dyn Fn(&Change<K>) + Send + Sync>;

pub(crate) struct Informer<K: Kind> {
    pub cache: Arc<Cache<K>>,
    handlers: RwLock<Vec<Handler<K>>>,
}

impl<K: Kind> Debug for Informer<K> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Informer({})", K::ID.kind)
    }
}

/// An informer of whatever kind.
pub(crate) trait AnyInformer: Debug + Send + Sync {
    fn id(&self) -> Id;
    fn progress(&self) -> watch::Receiver<Progress>;
    fn reads(&self) -> u64;
    /// Whether the object is there and not on its way out.
    fn has(&self, key: &Key, uid: &str) -> bool;
    fn start(self: Arc<Self>, client: Client, ambient: &Ambient);
    fn as_any(self: Arc<Self>) -> Arc<dyn Any + Send + Sync>;
}

impl<K: Kind> Default for Informer<K> {
    fn default() -> Self {
        Informer { cache: Arc::default(), handlers: RwLock::default() }
    }
}

impl<K: Kind> AnyInformer for Informer<K> {
    fn id(&self) -> Id {
        K::ID
    }

    fn progress(&self) -> watch::Receiver<Progress> {
        self.cache.progress()
    }

    fn reads(&self) -> u64 {
        self.cache.reads()
    }

    fn has(&self, key: &Key, uid: &str) -> bool {
        self.cache.get(key).is_some_and(|object| object.meta().uid == uid && !object.meta().is_being_deleted())
    }

    fn start(self: Arc<Self>, client: Client, ambient: &Ambient) {
        let random = ambient.random.fork();
        ambient.tasks.spawn_until_stopped("informer", async move { reflect(&client, &K::ID, &*self, &random).await });
    }

    fn as_any(self: Arc<Self>) -> Arc<dyn Any + Send + Sync> {
        self
    }
}

impl<K: Kind> Informer<K> {
    /// Tells `handler` of everything that is known, and of every change from now on.
    pub(crate) fn handle(&self, handler: impl Fn(&Change<K>) + Send + Sync + 'static) {
        let mut handlers = self.handlers.write();
        for object in self.cache.all() {
            handler(&Change { old: None, new: Some(object) });
        }
        handlers.push(Box::new(handler));
    }

    fn tell(&self, change: &Change<K>) {
        for handler in self.handlers.read().iter() {
            handler(change);
        }
    }
}

impl<K: Kind> Sink for Informer<K> {
    type Item = Object<K>;

    fn read(&self, raw: Raw) -> Result<Object<K>, ApiError> {
        Object::read(raw).map_err(ApiError::internal)
    }

    fn put(&self, item: Object<K>) {
        self.tell(&self.cache.put(item));
    }

    fn remove(&self, key: &Key) {
        self.tell(&self.cache.remove(key));
    }

    fn version_of(&self, key: &Key) -> Option<String> {
        self.cache.version_of(key)
    }

    fn others(&self, seen: &BTreeSet<Key>) -> Vec<Key> {
        self.cache.others(seen)
    }

    fn advance(&self, version: u64, synced: bool) {
        self.cache.advance(version, synced);
    }
}

/// The caches of a process: one per kind, shared by all its loops. Which there are is settled before they start.
#[derive(Clone, Debug, Default)]
pub struct Caches(Arc<Informers>);

/// By the types by which objects are read: looked up for every event and every plan, so nobody is asked for their type.
type Informers = Vec<(TypeId, Arc<dyn AnyInformer>)>;

/// Caches that are there for as long as somebody else has them.
#[derive(Clone, Debug)]
pub(crate) struct WeakCaches(Weak<Informers>);

impl WeakCaches {
    pub(crate) fn upgrade(&self) -> Option<Caches> {
        self.0.upgrade().map(Caches)
    }
}

impl Caches {
    pub(crate) fn downgrade(&self) -> WeakCaches {
        WeakCaches(Arc::downgrade(&self.0))
    }

    /// The cache of a kind.
    ///
    /// # Panics
    /// If no loop has declared that it reads the kind.
    pub fn of<K: Kind>(&self) -> Arc<Cache<K>> {
        let informer = self.informer::<K>();
        informer.unwrap_or_else(|| panic!("no loop has declared that it reads {}", K::ID.plural)).cache.clone()
    }

    fn informer<K: Kind>(&self) -> Option<Arc<Informer<K>>> {
        let (_, found) = self.0.iter().find(|(view, _)| *view == TypeId::of::<K>())?;
        found.clone().as_any().downcast().ok()
    }

    pub(crate) fn all(&self) -> impl Iterator<Item = &Arc<dyn AnyInformer>> {
        self.0.iter().map(|(_, informer)| informer)
    }

    /// The informer of a kind, made now if there is none.
    pub(crate) fn declare<K: Kind>(&mut self) -> Arc<Informer<K>> {
        if let Some(informer) = self.informer::<K>() {
            return informer;
        }
        let informer = Arc::new(Informer::<K>::default());
        let informers = Arc::get_mut(&mut self.0).expect("kinds are declared before the caches are shared");
        informers.push((TypeId::of::<K>(), informer.clone()));
        informer
    }

    /// Waits until the cache of a kind has seen a version; at once if nobody keeps one.
    pub(crate) async fn reached(&self, id: &Id, version: u64) {
        let Some(informer) = self.all().find(|informer| informer.id() == *id) else { return };
        // The sender lives in the informer, which is in `self`.
        let _ = informer.progress().wait_for(|progress| progress.version >= version).await;
    }

    /// Waits until the cache of a kind has seen what a write was answered with: for loops that write with the client of
    /// somebody else, whose writes the executor knows nothing of.
    pub async fn seen(&self, id: &Id, written: &Raw) {
        self.reached(id, Answer::read(written).version.unwrap_or(0)).await;
    }

    /// Waits until every cache has seen everything that was there at first.
    pub async fn synced(&self) {
        for informer in self.all() {
            let _ = informer.progress().wait_for(|progress| progress.synced).await;
        }
    }

    /// For tests of what is observed: with a cache of a kind, empty at first.
    pub fn with<K: Kind>(mut self) -> Self {
        self.declare::<K>();
        self
    }

    /// For tests of what is observed: puts an object into the cache of its kind.
    pub fn put<K: Kind>(&mut self, object: Object<K>) {
        self.declare::<K>().cache.put(object);
    }
}

/// Names of objects, where a mapping has them as text: `namespace/name`.
pub fn split_key(text: &str) -> Key {
    match text.split_once('/') {
        Some((namespace, name)) => Key::new(namespace, name),
        None => Key::cluster(text),
    }
}
