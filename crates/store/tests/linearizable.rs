//! Concurrent clients on one store: what they are told fits one order of events, and that order fits real time.

use ambient::{Clock, Random};
use bytes::Bytes;
use std::sync::Arc;
use store::{Change, Error, Outcome, Revision, Store, Txn, WatchRequest};
use testkit::backend::Backend;
use testkit::etcd::{Cluster, available_versions};
use testkit::history::{self, Answer, Call, Condition, Found, Kind};

const CLIENTS: u64 = 8;
const CALLS: u64 = 120;
const KEYS: u64 = 3;

fn found(item: Option<store::Item>) -> Option<Found> {
    item.map(|item| (item.mod_revision, item.value.clone()))
}

/// One random call, recorded.
async fn call(store: &dyn Store, random: &Random, value: Bytes, known: &mut Option<Revision>) -> Call {
    let (clock, key) = (Clock::system(), Bytes::from(format!("k{}", random.below(KEYS))));
    let start = clock.monotonic();
    let kind = match random.below(3) {
        0 => {
            let get = loop {
                // A read that failed told nothing, so it is as if it had never been.
                match store.get(&key, None).await {
                    Ok(get) => break get,
                    Err(Error::Unavailable(_)) => {}
                    Err(error) => panic!("{error}"),
                }
            };
            *known = get.item.as_ref().map(|item| item.mod_revision);
            Kind::Read { revision: get.revision, found: found(get.item) }
        }
        choice => {
            let put = Txn::put(key.clone(), value.clone());
            let (condition, txn) = match (choice, *known) {
                (1, _) => (Condition::None, put),
                (_, None) => (Condition::ModifiedAt(None), put.when_absent(key.clone())),
                (_, Some(at)) => (Condition::ModifiedAt(Some(at)), put.when_unmodified(key.clone(), at)),
            };
            let answer = match store.commit(txn).await {
                Ok(Outcome::Committed(revision)) => {
                    *known = Some(revision);
                    Answer::Committed(revision)
                }
                Ok(Outcome::Conflict { revision, mut current }) => {
                    Answer::Conflict { revision, found: found(current.remove(0)) }
                }
                Err(Error::Unknown(_) | Error::Unavailable(_)) => Answer::Unknown,
                Err(error) => panic!("{error}"),
            };
            Kind::Write { value, condition, answer }
        }
    };
    Call { key, start, end: clock.monotonic(), kind }
}

/// Runs the clients and returns what they were told.
async fn run(store: Arc<dyn Store>, seed: u64) -> Vec<Call> {
    let random = Random::seeded(seed);
    let mut clients = tokio::task::JoinSet::new();
    for client in 0..CLIENTS {
        let (store, random) = (store.clone(), random.fork());
        clients.spawn(async move {
            let (mut calls, mut known) = (Vec::new(), None);
            for n in 0..CALLS {
                calls.push(call(&*store, &random, format!("{client}/{n}").into(), &mut known).await);
            }
            calls
        });
    }
    clients.join_all().await.into_iter().flatten().collect()
}

/// Every change since `base`.
async fn log(store: &dyn Store, base: Revision) -> Vec<Change> {
    let (mut watch, head) = (store.watch(WatchRequest::new("", base)).await.unwrap(), store.revision().await.unwrap());
    let mut changes = Vec::new();
    while watch.progress() < head {
        changes.extend(watch.next().await.unwrap().changes);
    }
    changes
}

async fn check(backend: Backend, seed: u64) {
    let base = backend.store.revision().await.unwrap();
    let calls = run(backend.store.clone(), seed).await;
    let log = log(&*backend.store, base).await;
    history::check(&calls, &log, base);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn memory_is_linearizable() {
    for seed in 0..20 {
        check(Backend::memory(), seed).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn sqlite_is_linearizable() {
    for seed in 0..10 {
        check(Backend::sqlite().await, seed).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn etcd_is_linearizable() {
    for version in available_versions() {
        let backend = Backend::etcd(version).await.expect("the version is available");
        check(backend, 1).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn etcd_is_linearizable_while_a_member_is_lost() {
    for version in available_versions() {
        let mut cluster = Cluster::start(version, 3).await;
        let backend = Backend::etcd_at(cluster.endpoints(), "/test/").await;
        let base = backend.store.revision().await.unwrap();
        let mut progress = backend.store.watch(WatchRequest::new("", base)).await.unwrap();
        let killing = async {
            // Once the clients are well under way.
            while progress.progress().0 < base.0 + 100 {
                progress.next().await.unwrap();
            }
            cluster.members[0].kill();
        };
        let (calls, ()) = tokio::join!(run(backend.store.clone(), 2), killing);
        let log = log(&*backend.store, base).await;
        history::check(&calls, &log, base);
    }
}
