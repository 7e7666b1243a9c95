//! Everything a store holds: the current state, the state at the oldest kept revision, and every change between them.

use super::protocol::group_of;
use ambient::{Ambient, Clock, Timestamp};
use bytes::Bytes;
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;
use store::{Change, Error, Item, Range, Revision, Sqlite, SqliteOptions, Store, WatchRequest};

/// Reading history must not wait for changes that are missing.
const PATIENCE: Duration = Duration::from_secs(20);

pub type State = BTreeMap<Bytes, Item>;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Contents {
    pub revision: Revision,
    pub compacted: Revision,
    pub state: State,
    /// The state at `compacted`.
    pub oldest: State,
    /// Every change after `compacted`, with what was there before.
    pub changes: Vec<Change>,
}

/// Opens what a worker left behind. Its clock stands in the past and it keeps all history, so that nothing expires and
/// nothing is swept while it is looked at.
pub async fn open(dir: &Path) -> Result<Sqlite, Error> {
    let ambient = Ambient { clock: Clock::simulated(Timestamp(0)), ..Ambient::real() };
    Sqlite::open(&ambient, SqliteOptions::new(dir)).await
}

/// Opens, reads and closes.
pub async fn of(dir: &Path) -> Result<Contents, Error> {
    let store = open(dir).await?;
    let contents = Contents::read(&store).await;
    store.close().await;
    contents
}

impl Contents {
    pub async fn read(store: &dyn Store) -> Result<Contents, Error> {
        let current = store.range(Range::default()).await?;
        let compacted = store.status().await?.compacted;
        let oldest = state(store.range(Range::default().at(compacted)).await?.items);
        let mut changes = Vec::new();
        let mut watch = store.watch(WatchRequest::new("", compacted).with_previous()).await?;
        let mut seen = compacted;
        while seen < current.revision {
            let batch = tokio::time::timeout(PATIENCE, watch.next()).await;
            let batch = batch.unwrap_or_else(|_| panic!("the history ends at {seen}, not at {}", current.revision))?;
            seen = batch.revision;
            changes.extend(batch.changes);
        }
        Ok(Contents { revision: current.revision, compacted, state: state(current.items), oldest, changes })
    }

    /// The state at a kept revision, by replaying the changes up to it.
    pub fn state_at(&self, revision: Revision) -> State {
        let mut state = self.oldest.clone();
        self.changes
            .iter()
            .take_while(|change| change.revision <= revision)
            .for_each(|change| apply(&mut state, change));
        state
    }

    /// The changes of each revision, in order.
    pub fn revisions(&self) -> impl Iterator<Item = &[Change]> {
        self.changes.chunk_by(|a, b| a.revision == b.revision)
    }

    /// Whether history leads from the oldest state to the current one without a gap, and groups always agree.
    pub fn check(&self) -> Result<(), String> {
        let mut state = self.oldest.clone();
        check_groups(&state).map_err(|what| format!("at {}: {what}", self.compacted))?;
        let mut expected = self.compacted;
        for changes in self.revisions() {
            expected = expected.next();
            if changes[0].revision != expected {
                return Err(format!("revision {expected} is missing, {} follows", changes[0].revision));
            }
            for change in changes {
                if state.get(&change.key) != change.previous.as_ref() {
                    return Err(format!("{change:?} does not follow {:?}", state.get(&change.key)));
                }
                apply(&mut state, change);
            }
            if changes.iter().any(|change| group_of(&change.key).is_some()) {
                check_groups(&state).map_err(|what| format!("at {expected}: {what}"))?;
            }
        }
        if expected != self.revision {
            return Err(format!("history ends at {expected}, the store is at {}", self.revision));
        }
        match state == self.state {
            true => Ok(()),
            false => Err(format!("history leads to {state:?}, the state is {:?}", self.state)),
        }
    }

    /// Whether the store itself finds the same state at a kept revision.
    pub async fn check_past(&self, store: &dyn Store, revision: Revision) -> Result<(), String> {
        let read = store.range(Range::default().at(revision)).await.map_err(|error| error.to_string())?;
        match state(read.items) == self.state_at(revision) {
            true => Ok(()),
            false => Err(format!("the state read at {revision} is not what history leads to")),
        }
    }
}

fn state(items: Vec<Item>) -> State {
    items.into_iter().map(|item| (item.key.clone(), item)).collect()
}

fn apply(state: &mut State, change: &Change) {
    match &change.current {
        Some(item) => state.insert(change.key.clone(), item.clone()),
        None => state.remove(&change.key),
    };
}

/// All members of a group are there or none, with one value of one revision.
fn check_groups(state: &State) -> Result<(), String> {
    let mut groups: BTreeMap<&[u8], Vec<&Item>> = BTreeMap::new();
    for (key, item) in state {
        if let Some(group) = group_of(key) {
            groups.entry(group).or_default().push(item);
        }
    }
    for (group, items) in groups {
        let agree =
            items.iter().all(|item| (&item.value, item.mod_revision) == (&items[0].value, items[0].mod_revision));
        if items.len() != super::protocol::GROUP_MEMBERS.len() || !agree {
            return Err(format!("half a transaction in group {}: {items:?}", String::from_utf8_lossy(group)));
        }
    }
    Ok(())
}
