//! A store of any kind, fresh, for one test: the contract and property suites run on each of them.

use crate::etcd::{Etcd as Server, Version, available_versions};
use ambient::Ambient;
use bytes::Bytes;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use store::{Etcd, EtcdOptions, Memory, Retention, Sqlite, SqliteOptions, Store};

type Opening = Pin<Box<dyn Future<Output = Arc<dyn Store>> + Send>>;

/// A fresh store and what keeps it alive. Everything is gone when this is dropped.
pub struct Backend {
    pub store: Arc<dyn Store>,
    /// Opens the same data again; none for a store that lives in memory only.
    reopen: Option<Box<dyn Fn() -> Opening + Send + Sync>>,
    /// The server behind the store, if it is this store's alone.
    server: Option<Arc<Server>>,
}

impl fmt::Debug for Backend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.store.fmt(f)
    }
}

impl Backend {
    pub fn memory() -> Self {
        Backend { store: Arc::new(Memory::new(&Ambient::real(), Retention::default())), reopen: None, server: None }
    }

    pub async fn sqlite() -> Self {
        let dir = Arc::new(tempfile::tempdir().expect("a temporary directory can be made"));
        Self::reopenable(move || {
            let dir = dir.clone();
            Box::pin(async move {
                let store = Sqlite::open(&Ambient::real(), SqliteOptions::new(dir.path())).await;
                Arc::new(store.expect("the store opens")) as Arc<dyn Store>
            })
        })
        .await
    }

    /// A store on an etcd server of its own; none where that version is not installed.
    pub async fn etcd(version: Version) -> Option<Self> {
        if !available_versions().contains(&version) {
            return None;
        }
        let server = Arc::new(Server::start(version).await);
        let mut backend = Self::etcd_at(server.endpoints(), "/test/").await;
        backend.server = Some(server);
        Some(backend)
    }

    /// A store under `root` on servers that somebody else keeps running.
    pub async fn etcd_at(endpoints: Vec<String>, root: &str) -> Self {
        let options = EtcdOptions { root: Bytes::copy_from_slice(root.as_bytes()), ..EtcdOptions::new(endpoints) };
        Self::reopenable(move || {
            let options = options.clone();
            Box::pin(async move {
                let store = Etcd::connect(&Ambient::real(), options).await;
                Arc::new(store.expect("etcd answers")) as Arc<dyn Store>
            })
        })
        .await
    }

    /// A store that `open` opens, and opens again with the same data.
    pub async fn reopenable(open: impl Fn() -> Opening + Send + Sync + 'static) -> Self {
        Backend { store: open().await, reopen: Some(Box::new(open)), server: None }
    }

    /// Closes the store and opens it again where its data outlives that. What happened before is then no longer in
    /// memory, so reads of the past and old watches have to come from where the backend keeps its history.
    pub async fn reopened(mut self) -> Self {
        if let Some(reopen) = &self.reopen {
            self.store.close().await;
            self.store = Arc::new(Memory::new(&Ambient::real(), Retention::default()));
            self.store = reopen().await;
        }
        self
    }
}
