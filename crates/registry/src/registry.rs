//! The resources that are served now, the cache they are read from, and the one way to write them.

use crate::cache::{Cache, StartError};
use crate::{Object, Resource, Seal, Served};
use ambient::Ambient;
use bytes::Bytes;
use object::{ApiError, Reason};
use parking_lot::RwLock;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;
use store::{Condition, Operation, Outcome, Revision, Store, Txn};

#[derive(Debug)]
pub struct Registry {
    pub store: Arc<dyn Store>,
    pub cache: Cache,
    seal: Arc<dyn Seal>,
    resources: RwLock<Arc<Resources>>,
}

/// All rows, and the way to one of them.
#[derive(Debug, Default)]
pub struct Resources {
    rows: Vec<Arc<Resource>>,
    /// Group, version, plural.
    by_path: HashMap<String, HashMap<String, HashMap<String, Arc<Resource>>>>,
}

impl Resources {
    pub fn new(rows: Vec<Arc<Resource>>) -> Self {
        let mut by_path: HashMap<String, HashMap<String, HashMap<String, Arc<Resource>>>> = HashMap::new();
        for row in &rows {
            let versions = by_path.entry(row.group.to_string()).or_default();
            versions.entry(row.version.to_string()).or_default().insert(row.plural.to_string(), row.clone());
        }
        Resources { rows, by_path }
    }

    pub fn rows(&self) -> &[Arc<Resource>] {
        &self.rows
    }

    pub fn get(&self, group: &str, version: &str, plural: &str) -> Option<&Arc<Resource>> {
        self.by_path.get(group)?.get(version)?.get(plural)
    }

    pub fn has_version(&self, group: &str, version: &str) -> bool {
        self.by_path.get(group).is_some_and(|versions| versions.contains_key(version))
    }

    pub fn has_group(&self, group: &str) -> bool {
        self.by_path.contains_key(group)
    }

    /// The row of a kind, in the version it is stored in.
    pub fn stored(&self, resource: &Arc<Resource>) -> Arc<Resource> {
        if !resource.is_converted() {
            return resource.clone();
        }
        let stored = |row: &&Arc<Resource>| row.table == resource.table && row.api_version() == resource.stored_as;
        self.rows.iter().find(stored).unwrap_or(resource).clone()
    }

    pub fn of_kind(&self, api_version: &str, kind: &str) -> Option<&Arc<Resource>> {
        self.rows.iter().find(|row| row.kind == kind && row.api_version() == api_version)
    }
}

/// One change of one object, made only if the object is still as expected.
#[derive(Clone, Debug)]
pub struct Write {
    pub key: Bytes,
    /// The revision that the object must be at; none: it must not be there.
    pub expected: Option<Revision>,
    /// The new bytes; none: it is deleted.
    pub body: Option<Bytes>,
    pub ttl: Option<Duration>,
}

#[derive(Debug)]
pub enum Committed {
    At(Revision),
    /// Somebody else was faster. The objects as they are now, in the order of the writes.
    Conflict(Vec<Option<Arc<Object>>>),
}

impl Registry {
    /// With what is served everywhere.
    pub async fn start(store: Arc<dyn Store>, seal: Arc<dyn Seal>, ambient: &Ambient) -> Result<Self, StartError> {
        let cache = Cache::start(store.clone(), seal.clone(), &ambient.tasks).await?;
        let resources = RwLock::new(Arc::new(Resources::new(Served::default().rows())));
        Ok(Registry { store, cache, seal, resources })
    }

    /// With what is asked for besides.
    pub fn serving(self, served: &Served) -> Self {
        *self.resources.write() = Arc::new(Resources::new(served.rows()));
        self
    }

    pub fn resources(&self) -> Arc<Resources> {
        self.resources.read().clone()
    }

    /// Waits until the cache shows everything that was acknowledged before the call.
    pub async fn catch_up(&self) -> Result<(), ApiError> {
        self.cache.current().await.map(|_| ()).map_err(|error| unavailable(&error))
    }

    /// An object, as of now: no write that was acknowledged before the call is missed.
    pub async fn get(&self, key: &[u8]) -> Result<Option<Arc<Object>>, ApiError> {
        self.catch_up().await?;
        Ok(self.cache.get(key))
    }

    /// Stores anew what is not sealed as it would be now: after a key was rotated, or sealing began. Returns how many.
    pub async fn reseal(&self) -> Result<usize, ApiError> {
        let all = self.store.range(store::Range::default()).await.map_err(|error| unavailable(&error))?;
        let mut count = 0;
        for item in all.items.iter().filter(|item| !self.seal.is_current(&item.key, &item.value)) {
            let body = self.seal.open(&item.key, &item.value).map_err(|error| ApiError::internal(error.to_string()))?;
            let write = Write { key: item.key.clone(), expected: Some(item.mod_revision), body: Some(body), ttl: None };
            // One that somebody has changed meanwhile was sealed by that.
            count += usize::from(matches!(self.commit(&[write]).await?, Committed::At(_)));
        }
        Ok(count)
    }

    /// Makes all writes at one revision, or none of them.
    pub async fn commit(&self, writes: &[Write]) -> Result<Committed, ApiError> {
        let mut txn = Txn::default();
        for write in writes {
            txn.conditions.push(Condition { key: write.key.clone(), expected: write.expected });
            txn.operations.push(match &write.body {
                Some(body) => Operation::Put {
                    key: write.key.clone(),
                    value: self.seal.seal(&write.key, body.clone()),
                    ttl: write.ttl,
                },
                None => Operation::Delete { key: write.key.clone() },
            });
        }
        match self.store.commit(txn).await.map_err(|error| unavailable(&error))? {
            Outcome::Committed(revision) => Ok(Committed::At(revision)),
            Outcome::Conflict { current, .. } => {
                let read = |item: &store::Item| {
                    let body = self.seal.open(&item.key, &item.value)?;
                    Ok(Arc::new(Object::new(item.key.clone(), item.mod_revision, body)?))
                };
                let current = current.iter().map(|item| item.as_ref().map(read).transpose());
                let current: Result<_, crate::Unreadable> = current.collect();
                Ok(Committed::Conflict(current.map_err(|error| ApiError::internal(error.to_string()))?))
            }
        }
    }
}

/// What a client is told of a failure of the store.
pub(crate) fn unavailable(error: &store::Error) -> ApiError {
    use store::Error;
    let reason = match error {
        Error::TooLarge { .. } => Reason::RequestEntityTooLarge,
        Error::Compacted { .. } => Reason::Expired,
        Error::FutureRevision { .. } | Error::Unknown(_) => Reason::Timeout,
        Error::Unavailable(_) | Error::Closed => Reason::ServiceUnavailable,
        Error::Invalid(_) | Error::Failed(_) | Error::Damaged { .. } | Error::Open { .. } => Reason::InternalError,
    };
    ApiError::new(reason, error.to_string())
}
