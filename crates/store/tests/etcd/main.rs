//! What is special to the etcd backend, against real servers: lost members, compaction by others, TLS, leases, sizes.
//! What every backend promises is tested elsewhere, for all of them alike.

mod compaction;
mod outages;
mod requests;
mod tls;
mod watches;

use ambient::{Ambient, Clock, Random, Tasks};
use store::{Change, Etcd, EtcdOptions, Outcome, Revision, Store, Txn, Watch};
use testkit::etcd::Etcd as Server;

fn ambient() -> Ambient {
    Ambient { clock: Clock::system(), random: Random::seeded(1), tasks: Tasks::new() }
}

async fn connect(endpoints: Vec<String>) -> Etcd {
    Etcd::connect(&ambient(), EtcdOptions::new(endpoints)).await.expect("etcd answers")
}

async fn commit(store: &Etcd, txn: Txn) -> Revision {
    match store.commit(txn).await.expect("etcd answers") {
        Outcome::Committed(revision) => revision,
        conflict @ Outcome::Conflict { .. } => panic!("no condition was given, but {conflict:?}"),
    }
}

/// Compacts behind the store's back.
async fn compact_elsewhere(server: &Server, revision: Revision) {
    let revision = i64::try_from(revision.0).expect("etcd's revisions fit");
    server.client().await.compact(revision, None).await.expect("etcd answers");
}

/// Reads a watch up to a revision at which it has a change.
async fn read_until(watch: &mut Watch, revision: Revision) -> Vec<Change> {
    let mut changes = Vec::new();
    while watch.progress() < revision {
        changes.extend(watch.next().await.expect("the watch goes on").changes);
    }
    changes
}
