//! The watch cache: all live objects and the recent events, in commit order, whatever the backend.
//!
//! The store hands over every commit as soon as it is durable, and where little is written before its author hears of
//! it: then nobody who has been answered waits for the cache. Readers take snapshots, which cost a reference count and
//! never change; watchers are cursors into the ring of their resource. Everything moves together: a reader that has seen
//! a revision finds its events in the ring, and the other way round.

mod observers;
mod ring;
mod watch;

use crate::seal::Seal;
use crate::stored::{Object, Unreadable};
use ambient::Tasks;
use bytes::Bytes;
use imbl::OrdMap;
use observers::Observers;
use parking_lot::{Mutex, RwLock};
use ring::Ring;
pub use ring::{Event, EventKind};
use std::collections::HashMap;
use std::ops::Bound;
use std::sync::Arc;
use store::{Change, Commit, Follower, Following, Item, Range, Revision, Store};
use tokio::sync::Notify;
pub use watch::{Lost, Watch};

/// So many watchers of a resource are woken by whoever brings an event. More are woken by a task: the store does not wait
/// for that.
const FEW_WATCHERS: usize = 32;

#[derive(Clone)]
pub struct Cache(Arc<Shared>);

struct Shared {
    store: Arc<dyn Store>,
    seal: Arc<dyn Seal>,
    state: RwLock<State>,
    observers: Observers,
    /// The revision of the state, for those who wait for one. Sent after the state has changed.
    revision: ambient::watch::Sender<Revision>,
    /// Those of whom many are still to be told of an event: each is in here once.
    crowds: Mutex<Vec<Signal>>,
    /// There is something in `crowds`.
    crowded: Notify,
}

/// Told of every new event.
type Signal = ambient::watch::Sender<u64>;

#[derive(Default)]
struct State {
    revision: Revision,
    /// By the first segment of the key.
    tables: HashMap<Arc<str>, Table>,
}

struct Table {
    objects: OrdMap<Bytes, Arc<Object>>,
    ring: Ring,
    signals: Arc<Signals>,
}

/// Whom to tell of events. Whoever is woken may take the turn of the thread that wakes: a client for as long as it takes to
/// send an event, a loop for as long as it plans and writes. So clients come first.
struct Signals {
    clients: Signal,
    loops: Signal,
}

impl Default for Signals {
    fn default() -> Self {
        Signals { clients: Signal::new(0), loops: Signal::new(0) }
    }
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
        self.0.fmt(f)
    }
}

impl Cache {
    /// Reads everything there is, then follows the store until `tasks` stops.
    pub async fn start(store: Arc<dyn Store>, seal: Arc<dyn Seal>, tasks: &Tasks) -> Result<Self, StartError> {
        let cache = Cache(Arc::new(Shared {
            store,
            seal,
            state: RwLock::default(),
            observers: Observers::default(),
            revision: ambient::watch::Sender::new(Revision::ZERO),
            crowds: Mutex::default(),
            crowded: Notify::new(),
        }));
        cache.load().await?;
        let (first, following, waking) = (cache.follow().await?, cache.clone(), cache.clone());
        tasks.spawn_until_stopped("watch cache", async move { following.keep_following(first).await });
        tasks.spawn_until_stopped("watch cache wake-ups", async move { waking.wake_crowds().await });
        Ok(cache)
    }

    async fn load(&self) -> Result<(), StartError> {
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
        // Watchers of a table that is replaced have to start over. Observers are told what is different.
        let observers = self.0.observers.0.read();
        let old = std::mem::replace(&mut *self.0.state.write(), state);
        Observers::tell_differences(&observers, &old, &self.0.state.read());
        self.0.revision.send_replace(everything.revision);
        Ok(())
    }

    /// From here on the store hands over what comes after what is known.
    async fn follow(&self) -> store::Result<Following> {
        self.0.store.follow(self.revision(), self.0.clone()).await
    }

    /// Goes on wherever the store has left the cache behind. Where it has forgotten what comes next, starts over.
    async fn keep_following(&self, first: Following) {
        const PAUSE: std::time::Duration = std::time::Duration::from_millis(100);
        let mut following = Ok(first);
        loop {
            let failure = match following {
                Ok(following) => following.ended().await,
                Err(error) => error,
            };
            tracing::warn!(%failure, "the watch cache lost the store");
            if matches!(failure, store::Error::Closed) {
                return;
            }
            if matches!(failure, store::Error::Compacted { .. })
                && let Err(error) = self.load().await
            {
                tracing::error!(%error, "the watch cache cannot be filled");
            }
            tokio::time::sleep(PAUSE).await;
            following = self.follow().await;
        }
    }

    async fn wake_crowds(&self) {
        loop {
            self.0.crowded.notified().await;
            let crowds = std::mem::take(&mut *self.0.crowds.lock());
            crowds.iter().for_each(tell);
        }
    }

    pub fn revision(&self) -> Revision {
        self.0.state.read().revision
    }

    /// Waits until the cache has reached `revision`.
    pub async fn reached(&self, revision: Revision) {
        // Not that of the state, which observers may still have to be told of.
        if *self.0.revision.borrow() >= revision {
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
        Table { objects: OrdMap::new(), ring: Ring::new(revision), signals: Arc::default() }
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

    /// Takes a change in; returns the event, if there is one, and who is to be told.
    fn apply(&self, state: &mut State, change: &Change) -> Option<(Arc<Event>, Arc<Signals>)> {
        let name = table_of(&change.key);
        if !state.tables.contains_key(name) {
            state.tables.insert(name.into(), Table::new(state.revision));
        }
        let table = state.tables.get_mut(name)?;
        let previous = table.objects.get(&change.key).cloned();
        let event = Arc::new(self.event(change, previous)?);
        match event.kind {
            EventKind::Deleted => drop(table.objects.remove(&change.key)),
            _ => drop(table.objects.insert(change.key.clone(), event.object.clone())),
        }
        table.ring.push(event.clone());
        Some((event, table.signals.clone()))
    }

    /// Tells watchers, or has them told.
    fn announce(&self, signal: &Signal) {
        if signal.receivers() <= FEW_WATCHERS {
            return tell(signal);
        }
        let mut crowds = self.crowds.lock();
        if !crowds.iter().any(|crowd| crowd.same_channel(signal)) {
            crowds.push(signal.clone());
        }
        drop(crowds);
        self.crowded.notify_one();
    }
}

fn tell(signal: &Signal) {
    signal.send_modify(|count| *count += 1);
}

impl Follower for Shared {
    fn take(&self, revision: Revision, commits: &[Arc<Commit>]) {
        let observers = self.observers.0.read();
        let (mut touched, mut observed): (Vec<Arc<Signals>>, Vec<_>) = Default::default();
        {
            let mut state = self.state.write();
            for change in commits.iter().flat_map(|commit| &commit.changes) {
                let Some((event, signals)) = self.apply(&mut state, change) else { continue };
                let table = table_of(&change.key);
                observed.extend(observers.iter().find(|(name, _)| *name == table).map(|(name, _)| (*name, event)));
                if !touched.iter().any(|known| Arc::ptr_eq(known, &signals)) {
                    touched.push(signals);
                }
            }
            state.revision = revision;
        }
        Observers::tell(&observers, &observed);
        drop(observers);
        self.revision.send_replace(revision);
        touched.iter().for_each(|signals| self.announce(&signals.clients));
        touched.iter().for_each(|signals| self.announce(&signals.loops));
    }
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Cache").field("revision", &self.state.read().revision).finish_non_exhaustive()
    }
}

/// The first segment of a key: the resource it belongs to.
fn table_of(key: &[u8]) -> &str {
    let end = key.iter().position(|byte| *byte == b'/').unwrap_or(key.len());
    std::str::from_utf8(&key[..end]).unwrap_or_default()
}
