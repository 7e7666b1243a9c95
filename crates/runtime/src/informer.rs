//! An informer: one watch of one kind, which keeps a cache and wakes whoever is interested.
//!
//! It starts with a streaming list, goes on from where a watch ended, and starts over when the server has forgotten
//! that place; what is different then is worked out against the cache, so nobody sees a change twice. There is no queue
//! between the watch and the cache: handlers only add keys to work queues, and cannot be slow.

use crate::cache::{Cache, Change, Progress};
use crate::client::{Client, ListOptions};
use crate::transport::{Event, Events};
use ambient::Ambient;
use kinds::{Id, Key, Kind, Object, Raw};
use object::{ApiError, Reason};
use parking_lot::RwLock;
use std::any::Any;
use std::collections::BTreeSet;
use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;

/// Waits between two attempts, doubling from the first to the last, each up to twice as long by chance.
const MIN_BACKOFF: Duration = Duration::from_millis(100);
const MAX_BACKOFF: Duration = Duration::from_secs(30);

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
        ambient.tasks.spawn_until_stopped("informer", async move { self.run(&client, &random).await });
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

    async fn run(&self, client: &Client, random: &ambient::Random) {
        let mut after: Option<String> = None;
        let mut backoff = MIN_BACKOFF;
        loop {
            match self.follow(client, &mut after).await {
                Ok(()) => backoff = MIN_BACKOFF,
                Err(error) => {
                    if matches!(error.reason(), Reason::Expired | Reason::Gone) {
                        after = None;
                    }
                    tracing::debug!(kind = %K::ID.kind, %error, "watch ended");
                    let jitter = random.below(1 + u64::try_from(backoff.as_millis()).unwrap_or(u64::MAX));
                    tokio::time::sleep(backoff + Duration::from_millis(jitter)).await;
                    backoff = (backoff * 2).min(MAX_BACKOFF);
                }
            }
        }
    }

    /// Follows one watch to its end.
    async fn follow(&self, client: &Client, after: &mut Option<String>) -> Result<(), ApiError> {
        let mut events = client.watch(&K::ID, "", &ListOptions::default(), after.as_deref()).await?;
        if after.is_none() {
            *after = Some(self.sync(&mut *events).await?);
        }
        while let Some(batch) = events.next().await {
            for event in batch? {
                if let Some(version) = self.apply(event)? {
                    *after = Some(version);
                }
            }
        }
        Ok(())
    }

    /// Reads the list that a watch starts with, and makes the cache that.
    async fn sync(&self, events: &mut dyn Events) -> Result<String, ApiError> {
        let mut seen = BTreeSet::new();
        while let Some(batch) = events.next().await {
            for event in batch? {
                match event {
                    Event::Added(raw) | Event::Modified(raw) => {
                        let object = read::<K>(raw)?;
                        seen.insert(object.key());
                        if self.cache.version_of(&object.key()).as_ref() != Some(&object.meta().resource_version) {
                            self.tell(&self.cache.put(object));
                        }
                    }
                    Event::Deleted(raw) => {
                        seen.remove(&read::<K>(raw)?.key());
                    }
                    Event::Bookmark { version, initial_end } => {
                        if initial_end {
                            for key in self.cache.others(&seen) {
                                self.tell(&self.cache.remove(&key));
                            }
                            self.cache.advance(number(&version), true);
                            return Ok(version);
                        }
                    }
                }
            }
        }
        Err(ApiError::new(Reason::InternalError, "the watch ended within the list it starts with"))
    }

    /// Takes an event in; returns the version up to which everything has been seen.
    fn apply(&self, event: Event) -> Result<Option<String>, ApiError> {
        let version = match event {
            Event::Added(raw) | Event::Modified(raw) => {
                let object = read::<K>(raw)?;
                let version = object.meta().resource_version.clone();
                self.tell(&self.cache.put(object));
                version
            }
            Event::Deleted(raw) => {
                let object = read::<K>(raw)?;
                self.tell(&self.cache.remove(&object.key()));
                object.meta().resource_version.clone()
            }
            Event::Bookmark { version, .. } => version,
        };
        self.cache.advance(number(&version), false);
        Ok(Some(version))
    }

    fn tell(&self, change: &Change<K>) {
        for handler in self.handlers.read().iter() {
            handler(change);
        }
    }
}

fn read<K: Kind>(raw: Raw) -> Result<Object<K>, ApiError> {
    Object::read(raw).map_err(ApiError::internal)
}

fn number(version: &str) -> u64 {
    version.parse().unwrap_or(0)
}

/// The caches of a process: one per kind, shared by all its loops. Which there are is settled before they start.
#[derive(Clone, Debug, Default)]
pub struct Caches(Arc<Vec<Arc<dyn AnyInformer>>>);

impl Caches {
    /// The cache of a kind.
    ///
    /// # Panics
    /// If no loop has declared that it reads the kind.
    pub fn of<K: Kind>(&self) -> Arc<Cache<K>> {
        let informer = self.informer::<K>();
        informer.unwrap_or_else(|| panic!("no loop has declared that it reads {}", K::ID.plural)).cache.clone()
    }

    fn informer<K: Kind>(&self) -> Option<Arc<Informer<K>>> {
        let found = self.0.iter().find(|informer| informer.id() == K::ID)?;
        found.clone().as_any().downcast().ok()
    }

    pub(crate) fn all(&self) -> &[Arc<dyn AnyInformer>] {
        &self.0
    }

    /// The informer of a kind, made now if there is none.
    pub(crate) fn declare<K: Kind>(&mut self) -> Arc<Informer<K>> {
        if let Some(informer) = self.informer::<K>() {
            return informer;
        }
        let informer = Arc::new(Informer::<K>::default());
        let informers = Arc::get_mut(&mut self.0).expect("kinds are declared before the caches are shared");
        informers.push(informer.clone());
        informer
    }

    /// Waits until the cache of a kind has seen a version; at once if nobody keeps one.
    pub(crate) async fn reached(&self, id: &Id, version: u64) {
        let Some(informer) = self.0.iter().find(|informer| informer.id() == *id) else { return };
        // The sender lives in the informer, which is in `self`.
        let _ = informer.progress().wait_for(|progress| progress.version >= version).await;
    }

    /// Waits until every cache has seen everything that was there at first.
    pub async fn synced(&self) {
        for informer in self.0.iter() {
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
