//! The watch cache: all live objects and the recent events, in commit order, whatever the backend.
//!
//! One task follows the store. Readers take snapshots, which cost a reference count and never change; watchers are
//! cursors into the ring of their resource. Everything moves together: a reader that has seen a revision finds its
//! events in the ring, and the other way round.

mod ring;
mod watch;

use crate::seal::Seal;
use crate::stored::{Object, Unreadable};
use ambient::Tasks;
use bytes::Bytes;
use imbl::OrdMap;
use parking_lot::RwLock;
use ring::Ring;
pub use ring::{Event, EventKind};
use std::collections::HashMap;
use std::ops::Bound;
use std::sync::Arc;
use store::{Change, Item, Range, Revision, Store, WatchRequest};
pub use watch::{Lost, Watch};

#[derive(Clone)]
pub struct Cache(Arc<Shared>);

struct Shared {
    store: Arc<dyn Store>,
    seal: Arc<dyn Seal>,
    state: RwLock<State>,
    /// The revision of the state, for those who wait for one. Sent after the state has changed.
    revision: ambient::watch::Sender<Revision>,
}

#[derive(Default)]
struct State {
    revision: Revision,
    /// By the first segment of the key.
    tables: HashMap<Arc<str>, Table>,
}

struct Table {
    objects: OrdMap<Bytes, Arc<Object>>,
    ring: Ring,
    /// Told of every new event.
    events: ambient::watch::Sender<u64>,
}

/// All objects of one resource at one revision.
#[derive(Clone, Debug)]
pub struct Snapshot {
    pub revision: Revision,
    objects: OrdMap<Bytes, Arc<Object>>,
}

impl Snapshot {
    pub fn get(&self, key: &[u8]) -> Option<&Arc<Object>> {
        self.objects.get(key)
    }

    /// Those whose keys start with `prefix`, from `start` on, in order.
    pub fn under<'a>(&'a self, prefix: &'a [u8], start: &[u8]) -> impl Iterator<Item = &'a Arc<Object>> + 'a {
        let first = Bytes::copy_from_slice(prefix.max(start));
        let range = self.objects.range((Bound::Included(first), Bound::Unbounded));
        range.map(|(_, object)| object).take_while(move |object| object.key.starts_with(prefix))
    }
}

impl std::fmt::Debug for Cache {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Cache").field("revision", &self.revision()).finish_non_exhaustive()
    }
}

impl Cache {
    /// Reads everything there is, then follows the store until `tasks` stops.
    pub async fn start(store: Arc<dyn Store>, seal: Arc<dyn Seal>, tasks: &Tasks) -> Result<Self, StartError> {
        let cache = Cache(Arc::new(Shared {
            store,
            seal,
            state: RwLock::default(),
            revision: ambient::watch::Sender::new(Revision::ZERO),
        }));
        let revision = cache.load().await?;
        let following = cache.clone();
        tasks.spawn_until_stopped("watch cache", async move { following.follow(revision).await });
        Ok(cache)
    }

    async fn load(&self) -> Result<Revision, StartError> {
        let everything = self.0.store.range(Range::default()).await?;
        let mut state = State { revision: everything.revision, tables: HashMap::new() };
        let mut by_table: HashMap<Arc<str>, Vec<(Bytes, Arc<Object>)>> = HashMap::new();
        for item in &everything.items {
            let object = self.0.object(item)?;
            by_table.entry(table_of(&item.key).into()).or_default().push((item.key.clone(), Arc::new(object)));
        }
        for (name, objects) in by_table {
            state.tables.insert(name, Table { objects: objects.into_iter().collect(), ..Table::new(state.revision) });
        }
        // Tables that are known keep whoever waits on them; what changed while nobody was told is for them to read.
        *self.0.state.write() = state;
        self.0.revision.send_replace(everything.revision);
        Ok(everything.revision)
    }

    /// Applies what the store tells, in its order. Where the store has forgotten what comes next, starts over.
    async fn follow(&self, mut revision: Revision) {
        const PAUSE: std::time::Duration = std::time::Duration::from_millis(100);
        loop {
            let request = WatchRequest::new(Bytes::new(), revision).with_previous();
            let failure = match self.0.store.watch(request).await {
                Ok(mut watch) => loop {
                    match watch.next().await {
                        Ok(batch) => {
                            self.0.apply(batch.revision, batch.changes);
                            revision = batch.revision;
                        }
                        Err(error) => break error,
                    }
                },
                Err(error) => error,
            };
            tracing::warn!(%failure, "the watch cache lost the store");
            if matches!(failure, store::Error::Closed) {
                return;
            }
            if matches!(failure, store::Error::Compacted { .. }) {
                match self.load().await {
                    Ok(loaded) => revision = loaded,
                    Err(error) => tracing::error!(%error, "the watch cache cannot be filled"),
                }
            }
            tokio::time::sleep(PAUSE).await;
        }
    }

    pub fn revision(&self) -> Revision {
        self.0.state.read().revision
    }

    /// Waits until the cache has reached `revision`.
    pub async fn reached(&self, revision: Revision) {
        if self.revision() >= revision {
            return;
        }
        let mut receiver = self.0.revision.subscribe();
        // The sender lives as long as `self`, so this cannot fail.
        let _ = receiver.wait_for(|current| *current >= revision).await;
    }

    /// Waits until the cache shows everything that was committed before this call.
    pub async fn current(&self) -> store::Result<Revision> {
        let revision = self.0.store.revision().await?;
        self.reached(revision).await;
        Ok(revision)
    }

    pub fn get(&self, key: &[u8]) -> Option<Arc<Object>> {
        self.0.state.read().tables.get(table_of(key))?.objects.get(key).cloned()
    }

    /// One resource; `table` is the first segment of its keys.
    pub fn snapshot(&self, table: &str) -> Snapshot {
        let state = self.0.state.read();
        let objects = state.tables.get(table).map(|table| table.objects.clone()).unwrap_or_default();
        Snapshot { revision: state.revision, objects }
    }

    /// The revision of the newest event of a resource that is at hand; zero if there is none.
    pub fn last_change(&self, table: &str) -> Revision {
        self.0.state.read().tables.get(table).map_or(Revision::ZERO, |table| table.ring.last())
    }

    /// How many objects there are of one resource.
    pub fn count(&self, table: &str) -> usize {
        self.0.state.read().tables.get(table).map_or(0, |table| table.objects.len())
    }

    /// How many objects there are of each resource.
    pub fn counts(&self) -> Vec<(Arc<str>, usize)> {
        self.0.state.read().tables.iter().map(|(name, table)| (name.clone(), table.objects.len())).collect()
    }

    /// The state of one resource at a kept revision, which may be older than the cache: keys under `prefix` from
    /// `start` on, at most `limit` of them, and how many more there are.
    pub async fn earlier(
        &self,
        prefix: Bytes,
        start: Bytes,
        limit: usize,
        at: Revision,
    ) -> Result<(Vec<Arc<Object>>, u64), StartError> {
        let range = Range { prefix, start, limit, at: Some(at) };
        let found = self.0.store.range(range).await?;
        let objects = found.items.iter().map(|item| Ok(Arc::new(self.0.object(item)?)));
        Ok((objects.collect::<Result<_, Unreadable>>()?, found.remaining))
    }
}

/// Why objects cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    #[error(transparent)]
    Store(#[from] store::Error),
    #[error(transparent)]
    Unreadable(#[from] Unreadable),
}

impl Table {
    fn new(revision: Revision) -> Self {
        Table { objects: OrdMap::new(), ring: Ring::new(revision), events: ambient::watch::Sender::new(0) }
    }
}

impl Shared {
    fn object(&self, item: &Item) -> Result<Object, Unreadable> {
        Object::new(item.key.clone(), item.mod_revision, self.seal.open(&item.key, &item.value)?)
    }

    /// The event of a change; none if what is stored cannot be read, which is said in the log.
    fn event(&self, change: &Change, previous: Option<Arc<Object>>) -> Option<Event> {
        let read = |item: &Item| self.object(item).inspect_err(|error| tracing::error!(%error, "skipped")).ok();
        let previous = previous.or_else(|| change.previous.as_ref().and_then(&read).map(Arc::new));
        let (object, kind) = match (&change.current, &previous) {
            (Some(item), None) => (read(item)?, EventKind::Added),
            (Some(item), Some(_)) => (read(item)?, EventKind::Modified),
            (None, Some(previous)) => (previous.at(change.revision), EventKind::Deleted),
            (None, None) => return None,
        };
        Some(Event::new(kind, Arc::new(object), previous))
    }

    fn apply(&self, revision: Revision, changes: Vec<Change>) {
        let mut touched: Vec<ambient::watch::Sender<u64>> = Vec::new();
        {
            let mut state = self.state.write();
            let before = state.revision;
            for change in changes {
                let name = table_of(&change.key);
                if !state.tables.contains_key(name) {
                    state.tables.insert(name.into(), Table::new(before));
                }
                let Some(table) = state.tables.get_mut(name) else { continue };
                let previous = table.objects.get(&change.key).cloned();
                let Some(event) = self.event(&change, previous) else { continue };
                match event.kind {
                    EventKind::Deleted => drop(table.objects.remove(&change.key)),
                    _ => drop(table.objects.insert(change.key.clone(), event.object.clone())),
                }
                table.ring.push(event);
                if !touched.iter().any(|sender| sender.same_channel(&table.events)) {
                    touched.push(table.events.clone());
                }
            }
            state.revision = revision;
        }
        self.revision.send_replace(revision);
        touched.iter().for_each(|events| events.send_modify(|count| *count += 1));
    }
}

/// The first segment of a key: the resource it belongs to.
fn table_of(key: &[u8]) -> &str {
    let end = key.iter().position(|byte| *byte == b'/').unwrap_or(key.len());
    std::str::from_utf8(&key[..end]).unwrap_or_default()
}
