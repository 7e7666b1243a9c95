//! Durable, revisioned, watchable state: keys and values are bytes, and nothing here knows of Kubernetes.
//!
//! One trait, [`Store`], and three backends that pass one contract suite: [`Memory`] for tests and simulation,
//! [`Sqlite`] for one machine, [`Etcd`] for several servers on one cluster.
//!
//! What every backend promises:
//! - There is one revision for the whole store. A single writer assigns it, it only grows, and everybody sees changes
//!   in its order. All changes of a transaction share one revision.
//! - A commit that was answered is durable and visible to every later read.
//! - A revision is *kept* from the compacted one to the current one. The state at any kept revision can be read, and
//!   a watch after any kept revision delivers every later change once, in order, never half a revision. Below it both
//!   fail with [`Error::Compacted`].
//! - A slow watcher costs nothing: it is a cursor, not a buffer. It never delays writers or other watchers.
//!
//! Left out on purpose: locks, sessions, range deletes and nested transactions. The layers above need none of them.

mod data;
mod error;
mod etcd;
mod expiry;
mod feed;
mod head;
mod memory;
mod request;
mod rewind;
mod sqlite;
mod timeline;

pub use data::{Batch, Change, Commit, Item, KeyValue, Revision};
pub use error::{Error, Result};
pub use etcd::{Etcd, EtcdClientCertificate, EtcdOptions, EtcdTls};
pub use feed::{Follower, Following, Watch};
pub use memory::Memory;
pub use request::{
    Condition, Get, MAX_KEY_BYTES, MAX_TXN_BYTES, MAX_TXN_OPERATIONS, Operation, Outcome, Range, RangeResult,
    Retention, Status, Txn, WatchRequest,
};
pub use sqlite::{Options as SqliteOptions, Sqlite, restore};

/// The contract. Cheap to share: backends are handed around as `Arc<dyn Store>`.
#[async_trait::async_trait]
pub trait Store: std::fmt::Debug + Send + Sync + 'static {
    /// One key, now or `at` a kept revision.
    async fn get(&self, key: &[u8], at: Option<Revision>) -> Result<Get>;

    /// The keys under a prefix, in order.
    async fn range(&self, request: Range) -> Result<RangeResult>;

    /// Checks every condition and, if all hold, makes every change at one new revision.
    async fn commit(&self, txn: Txn) -> Result<Outcome>;

    /// Every change under a prefix after a kept revision.
    async fn watch(&self, request: WatchRequest) -> Result<Watch>;

    /// Hands a follower every commit after a kept revision as it is published, in order and each once; a lone one of a
    /// local store before its author hears of it. For whoever holds a copy of everything: a follower is told that it
    /// has been left behind, where a watch would go on from history.
    async fn follow(&self, after: Revision, follower: std::sync::Arc<dyn Follower>) -> Result<Following>;

    /// Forgets what came before `revision`: it becomes the oldest kept one. Returns when that is durable.
    async fn compact(&self, revision: Revision) -> Result<()>;

    /// The current revision, linearizable: at least that of every commit answered before the call.
    async fn revision(&self) -> Result<Revision>;

    /// Figures for metrics and health checks; an error means that the store no longer acknowledges writes.
    async fn status(&self) -> Result<Status>;

    /// Resolves with the cause once the store can no longer acknowledge writes; pending forever while it can.
    async fn failed(&self) -> Error;

    /// Finishes what was accepted, refuses the rest, and returns when files and connections are closed.
    async fn close(&self);
}
