//! The store on an etcd cluster, which several servers may share.
//!
//! | file | owns |
//! |---|---|
//! | `connect` | the members, their connections, deadlines, and which of them is asked |
//! | `failure` | what goes wrong, and what follows from it |
//! | `keys` | the root under which our keys live in etcd |
//! | `reads` | linearizable reads, now or at a revision |
//! | `stream` | complete revisions in order, out of an etcd watch |
//! | `follow` | the feed of recent changes, kept up with etcd |
//! | `history` | changes older than the feed |
//! | `lease` | keys that expire, on shared leases |
//! | `retention` | compaction by age |
//!
//! etcd compares, assigns revisions and keeps history; nothing of that is done twice here. Its revisions are those of
//! the whole cluster, so keys outside our root move them too, and they start at one.
//!
//! Left out on purpose: etcd's user names and passwords. Client certificates do the same and do not expire by the
//! minute.

mod connect;
mod failure;
mod follow;
mod history;
mod keys;
mod lease;
mod reads;
mod retention;
mod stream;

pub use connect::{EtcdClientCertificate, EtcdTls};

use crate::feed::Feed;
use crate::{
    Condition, Error, Follower, Following, Get, Item, Operation, Outcome, Range, RangeResult, Result, Retention,
    Revision, Status, Store, Txn, Watch, WatchRequest,
};
use ambient::{Ambient, Tasks};
use bytes::Bytes;
use connect::{Member, Members, REQUEST_TIMEOUT, Repeat};
use etcd_client::proto::{PbResponseOp, PbTxnOpResponse};
use etcd_client::{Compare, CompareOp, PutOptions, TxnOp, TxnResponse};
use failure::Failure;
use keys::{Root, count, from_wire, to_wire};
use lease::Leases;
use reads::{FIRST, Reads};
use std::sync::Arc;
use tokio::time::Instant;

const DEFAULT_ROOT: &[u8] = b"/setpoint/";

/// Where the cluster is and what of it is ours.
#[derive(Clone, Debug)]
pub struct EtcdOptions {
    /// The addresses of the members, such as `https://10.0.0.1:2379`.
    pub endpoints: Vec<String>,
    /// The prefix of all our keys in etcd.
    pub root: Bytes,
    pub tls: Option<EtcdTls>,
    /// Only the age counts: etcd does not say how many bytes its history has. Its own quota bounds those.
    pub retention: Retention,
}

impl EtcdOptions {
    pub fn new(endpoints: impl IntoIterator<Item = impl Into<String>>) -> Self {
        EtcdOptions {
            endpoints: endpoints.into_iter().map(Into::into).collect(),
            root: Bytes::from_static(DEFAULT_ROOT),
            tls: None,
            retention: Retention::default(),
        }
    }
}

#[derive(Debug)]
pub struct Etcd {
    reads: Reads,
    leases: Leases,
    feed: Arc<Feed>,
    tasks: Tasks,
}

impl Etcd {
    /// Connects to a cluster that answers; once connected, the store outlives any outage.
    pub async fn connect(ambient: &Ambient, options: EtcdOptions) -> Result<Self> {
        if options.root.is_empty() {
            return Err(Error::Invalid("the root of our keys in etcd must not be empty".to_owned()));
        }
        let tasks = ambient.tasks.child();
        let connected = Etcd::start(ambient, options, tasks.clone()).await;
        if connected.is_err() {
            tasks.stop().await;
        }
        connected
    }

    async fn start(ambient: &Ambient, options: EtcdOptions, tasks: Tasks) -> Result<Self> {
        let members = Members::new(&options.endpoints, options.tls.as_ref(), &ambient.clock, &tasks).await?;
        let members = Arc::new(members);
        let reads = Reads { members: members.clone(), root: Root(options.root) };
        let head = reads.revision().await?;
        let compacted = reads.compacted().await?;
        let feed = Feed::start(head, compacted, Some(Arc::new(reads.clone())), &tasks);
        tasks.spawn_until_stopped("etcd-feed", follow::follow(reads.clone(), feed.clone(), ambient.random.fork()));
        let retained = retention::retain(members.clone(), feed.clone(), options.retention.age);
        tasks.spawn_until_stopped("etcd-retention", retained);
        Ok(Etcd { leases: Leases::new(members), reads, feed, tasks })
    }

    fn endpoints(&self) -> &str {
        self.reads.members.endpoints()
    }

    /// Makes a transaction on leases that etcd should still know.
    async fn make(&self, txn: &Txn, deadline: Instant) -> Result<TxnResponse, Failure> {
        let mut leases = Vec::with_capacity(txn.operations.len());
        for operation in &txn.operations {
            leases.push(match operation {
                Operation::Put { ttl: Some(ttl), .. } => self.leases.lease(*ttl, deadline).await?,
                Operation::Put { ttl: None, .. } | Operation::Delete { .. } => NO_LEASE,
            });
        }
        let make = |member: Member| {
            let request = request(&self.reads.root, txn, &leases);
            async move { member.kv().txn(request).await }
        };
        let made = self.reads.members.call(Repeat::Never, deadline, make).await;
        if made.as_ref().is_err_and(|failure| *failure == Failure::LeaseNotFound) {
            self.leases.forget(&leases).await;
        }
        made
    }
}

impl Drop for Etcd {
    fn drop(&mut self) {
        self.feed.end(Error::Closed);
        self.tasks.cancel();
    }
}

#[async_trait::async_trait]
impl Store for Etcd {
    async fn get(&self, key: &[u8], at: Option<Revision>) -> Result<Get> {
        self.reads.get(key, at).await
    }

    async fn range(&self, request: Range) -> Result<RangeResult> {
        self.reads.range(&request).await
    }

    async fn commit(&self, txn: Txn) -> Result<Outcome> {
        txn.check()?;
        let deadline = self.reads.members.deadline(REQUEST_TIMEOUT);
        let made = match self.make(&txn, deadline).await {
            // The lease ended early, such as by being revoked. Nothing was changed, and the next one is a new one.
            Err(Failure::LeaseNotFound) => self.make(&txn, deadline).await,
            made => made,
        };
        let response = made.map_err(|failure| failure.of_write(self.endpoints(), txn.bytes()))?.0;
        let revision = from_wire(response.header.map_or(0, |header| header.revision));
        match response.succeeded {
            true => Ok(Outcome::Committed(revision)),
            false => {
                let current = response.responses.into_iter().map(|response| found(&self.reads.root, response));
                Ok(Outcome::Conflict { revision, current: current.collect() })
            }
        }
    }

    async fn watch(&self, request: WatchRequest) -> Result<Watch> {
        self.feed.watch(request)
    }

    async fn follow(&self, after: Revision, follower: Arc<dyn Follower>) -> Result<Following> {
        self.feed.follow(after, follower)
    }

    async fn compact(&self, revision: Revision) -> Result<()> {
        let compacted = match revision {
            // etcd has no such revision; to keep everything is what it does anyway.
            Revision::ZERO => Err(Failure::Compacted),
            revision => retention::compact(&self.reads.members, revision).await,
        };
        match compacted {
            Ok(()) => {}
            // That is also etcd's answer where exactly this has been done before. Whether its first revision, before
            // any change, is the compacted one does not show otherwise.
            Err(Failure::Compacted) => match self.reads.compacted().await? {
                compacted if compacted == revision => {}
                Revision::ZERO if revision == FIRST => {}
                compacted => return Err(Error::Compacted { requested: revision, compacted }),
            },
            Err(Failure::Future) => return Err(self.reads.future_error(revision).await),
            Err(failure) => return Err(failure.of_read(self.endpoints())),
        }
        retention::forget(&self.feed, revision);
        Ok(())
    }

    async fn revision(&self) -> Result<Revision> {
        self.reads.revision().await
    }

    /// etcd does not tell values from their history, so both count as live; `disk_bytes` is one member's.
    async fn status(&self) -> Result<Status> {
        let (revision, keys) = self.reads.count().await?;
        let ask = |member: Member| async move { member.maintenance().status().await };
        let deadline = self.reads.members.deadline(REQUEST_TIMEOUT);
        let status = self.reads.members.call(Repeat::Harmless, deadline, ask).await;
        let status = status.map_err(|failure| failure.of_read(self.endpoints()))?;
        Ok(Status {
            revision,
            compacted: self.feed.compacted(),
            keys,
            live_bytes: count(status.raft_used_db_size()),
            history_bytes: 0,
            disk_bytes: count(status.db_size()),
            watchers: self.feed.watchers(),
        })
    }

    /// An etcd that is away may come back, so the store never fails for good.
    async fn failed(&self) -> Error {
        std::future::pending().await
    }

    async fn close(&self) {
        self.reads.members.close().await;
        self.feed.end(Error::Closed);
        self.tasks.stop().await;
    }
}

const NO_LEASE: i64 = 0;

/// The transaction in etcd's words; `leases` has one for each operation.
fn request(root: &Root, txn: &Txn, leases: &[i64]) -> etcd_client::Txn {
    let operations = txn.operations.iter().zip(leases).map(|(operation, lease)| match operation {
        Operation::Put { key, value, .. } => {
            TxnOp::put(root.add(key), value.to_vec(), Some(PutOptions::new().with_lease(*lease)))
        }
        Operation::Delete { key } => TxnOp::delete(root.add(key), None),
    });
    let reads = txn.conditions.iter().map(|condition| TxnOp::get(root.add(&condition.key), None));
    etcd_client::Txn::new()
        .when(txn.conditions.iter().map(|condition| compare(root, condition)).collect::<Vec<_>>())
        .and_then(operations.collect::<Vec<_>>())
        .or_else(reads.collect::<Vec<_>>())
}

fn compare(root: &Root, condition: &Condition) -> Compare {
    let key = root.add(&condition.key);
    match condition.expected {
        None => Compare::create_revision(key, CompareOp::Equal, 0),
        // No key was ever modified at zero, but to etcd an absent one was: this never holds.
        Some(Revision::ZERO) => Compare::version(key, CompareOp::Less, 0),
        Some(revision) => Compare::mod_revision(key, CompareOp::Equal, to_wire(revision)),
    }
}

/// The item that one of the reads of a transaction found.
fn found(root: &Root, response: PbResponseOp) -> Option<Item> {
    match response.response {
        Some(PbTxnOpResponse::ResponseRange(range)) => range.kvs.into_iter().next().and_then(|kv| root.item(kv)),
        _ => None,
    }
}
