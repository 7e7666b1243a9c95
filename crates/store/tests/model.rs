//! Random histories on a store and on a model of it that is too simple to be wrong: they must agree on everything.
//!
//! The model keeps every state as a map. Watches stay open across writes, compaction and reopening, and are read now
//! and then; a watch may end with Compacted only if it really fell behind, and must never skip, repeat or reorder.

use bytes::Bytes;
use proptest::prelude::*;
use std::collections::BTreeMap;
use store::{Change, Error, Item, Outcome, Range, Revision, Txn, Watch, WatchRequest};
use testkit::backend::Backend;
use testkit::etcd::{Etcd, available_versions};

#[derive(Clone, Debug)]
enum Op {
    Put(u8),
    Delete(u8),
    Create(u8),
    /// Updates a key that was read when it was current, or one write ago.
    Update(u8, bool),
    /// Puts the first two keys and deletes the third, if they differ.
    Several(u8, u8, u8),
    /// These name a kept revision by how far it lies between the oldest and the newest, in 256ths.
    Compact(u8),
    ReadAt(u8, u8),
    RangeAt(u8, u8, u8),
    Watch(u8, u8),
    ReadWatches,
    Reopen,
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        6 => any::<u8>().prop_map(Op::Put),
        2 => any::<u8>().prop_map(Op::Delete),
        2 => any::<u8>().prop_map(Op::Create),
        3 => any::<(u8, bool)>().prop_map(|(key, current)| Op::Update(key, current)),
        3 => any::<(u8, u8, u8)>().prop_map(|(a, b, c)| Op::Several(a, b, c)),
        1 => any::<u8>().prop_map(Op::Compact),
        3 => any::<(u8, u8)>().prop_map(|(key, at)| Op::ReadAt(key, at)),
        3 => any::<(u8, u8, u8)>().prop_map(|(prefix, at, limit)| Op::RangeAt(prefix, at, limit)),
        2 => any::<(u8, u8)>().prop_map(|(prefix, after)| Op::Watch(prefix, after)),
        2 => Just(Op::ReadWatches),
        1 => Just(Op::Reopen),
    ]
}

fn key(n: u8) -> Bytes {
    Bytes::from(format!("{}/{}", ["a", "b"][usize::from(n % 2)], n / 2 % 4))
}

fn prefix(n: u8) -> &'static str {
    ["", "a", "a/", "b/", "b/3", "c"][usize::from(n) % 6]
}

/// Every state there ever was, and every change.
struct Model {
    compacted: Revision,
    head: Revision,
    states: BTreeMap<Revision, BTreeMap<Bytes, Item>>,
    changes: Vec<Change>,
}

impl Model {
    fn now(&self) -> &BTreeMap<Bytes, Item> {
        &self.states[&self.head]
    }

    fn kept(&self, fraction: u8) -> Revision {
        Revision(self.compacted.0 + (self.head.0 - self.compacted.0) * u64::from(fraction) / 255)
    }

    fn holds(&self, txn: &Txn) -> bool {
        let modified = |key| self.now().get(key).map(|item: &Item| item.mod_revision);
        txn.conditions.iter().all(|condition| modified(&condition.key) == condition.expected)
    }

    /// Makes the changes of a transaction whose conditions hold.
    fn make(&mut self, txn: Txn) {
        let (mut state, revision, mut changed) = (self.now().clone(), self.head.next(), false);
        for operation in txn.operations {
            let key = operation.key().clone();
            let previous = state.get(&key).cloned();
            let current = match operation {
                store::Operation::Put { value, .. } => Some(Item::new(store::KeyValue::new(
                    key.clone(),
                    value,
                    previous.as_ref().map_or(revision, |item| item.create_revision),
                    revision,
                    previous.as_ref().map_or(1, |item| item.version + 1),
                ))),
                store::Operation::Delete { .. } if previous.is_none() => continue,
                store::Operation::Delete { .. } => None,
            };
            match &current {
                Some(item) => state.insert(key.clone(), item.clone()),
                None => state.remove(&key),
            };
            changed = true;
            self.changes.push(Change { revision, key, current, previous });
        }
        if changed {
            self.head = revision;
            self.states.insert(revision, state);
        }
    }
}

/// A watch under way, and the changes it still has to deliver.
struct Watching {
    watch: Watch,
    prefix: &'static str,
    after: Revision,
}

struct Run {
    backend: Backend,
    model: Model,
    watches: Vec<Watching>,
    writes: u32,
}

impl Run {
    async fn new(backend: Backend) -> Self {
        let head = backend.store.revision().await.unwrap();
        let model = Model { compacted: head, head, states: [(head, BTreeMap::new())].into(), changes: Vec::new() };
        Run { backend, model, watches: Vec::new(), writes: 0 }
    }

    fn value(&mut self) -> Bytes {
        self.writes += 1;
        Bytes::from(format!("value {}", self.writes))
    }

    async fn step(&mut self, op: Op) {
        match op {
            Op::Put(n) => {
                let value = self.value();
                self.commit(Txn::put(key(n), value)).await;
            }
            Op::Delete(n) => self.commit(Txn::delete(key(n))).await,
            Op::Create(n) => {
                let value = self.value();
                self.commit(Txn::create(key(n), value)).await;
            }
            Op::Update(n, current) => {
                let (value, modified) = (self.value(), self.model.now().get(&key(n)).map(|item| item.mod_revision));
                let expected = if current { modified } else { modified.map(Revision::before) };
                let txn = Txn::put(key(n), value);
                self.commit(expected.map_or(txn.clone(), |at| txn.when_unmodified(key(n), at))).await;
            }
            Op::Several(a, b, c) => {
                let (first, second) = (self.value(), self.value());
                let keys = [key(a), key(b), key(c)];
                if keys[0] != keys[1] && keys[1] != keys[2] && keys[0] != keys[2] {
                    let [a, b, c] = keys;
                    self.commit(Txn::put(a, first).and_put(b, second).and_delete(c)).await;
                }
            }
            Op::Compact(fraction) => {
                let revision = self.model.kept(fraction);
                self.backend.store.compact(revision).await.unwrap();
                self.model.compacted = revision;
            }
            Op::ReadAt(n, fraction) => self.read_at(&key(n), self.model.kept(fraction)).await,
            Op::RangeAt(n, fraction, limit) => self.range_at(n, self.model.kept(fraction), limit).await,
            Op::Watch(n, fraction) => self.watch(prefix(n), self.model.kept(fraction)).await,
            Op::ReadWatches => self.read_watches().await,
            Op::Reopen => self.reopen().await,
        }
    }

    async fn commit(&mut self, txn: Txn) {
        let outcome = self.backend.store.commit(txn.clone()).await.unwrap();
        if self.model.holds(&txn) {
            self.model.make(txn);
            assert_eq!(outcome, Outcome::Committed(self.model.head));
        } else {
            let now = self.model.now();
            let current = txn.conditions.iter().map(|condition| now.get(&condition.key).cloned()).collect();
            assert_eq!(outcome, Outcome::Conflict { revision: self.model.head, current });
        }
    }

    async fn read_at(&self, key: &Bytes, at: Revision) {
        let expected = self.model.states[&at].get(key);
        assert_eq!(self.backend.store.get(key, Some(at)).await.unwrap().item.as_ref(), expected);
        assert_eq!(self.backend.store.get(key, None).await.unwrap().item.as_ref(), self.model.now().get(key));
    }

    async fn range_at(&self, n: u8, at: Revision, limit: u8) {
        let (prefix, start, limit) = (prefix(n), key(n.rotate_left(3)), usize::from(limit % 5));
        let range = Range::prefix(prefix).starting(start.clone()).limit(limit);
        for (range, state) in [(range.clone().at(at), &self.model.states[&at]), (range, self.model.now())] {
            let result = self.backend.store.range(range).await.unwrap();
            let mut expected: Vec<Item> = state
                .iter()
                .filter(|(key, _)| key.starts_with(prefix.as_bytes()) && **key >= start)
                .map(|(_, item)| item.clone())
                .collect();
            let total = expected.len();
            expected.truncate(if limit == 0 { total } else { limit });
            assert_eq!(result.remaining, (total - expected.len()) as u64);
            assert_eq!(result.items, expected);
        }
    }

    async fn watch(&mut self, prefix: &'static str, after: Revision) {
        let request = WatchRequest::new(prefix, after).with_previous();
        let watch = self.backend.store.watch(request).await.unwrap();
        self.watches.push(Watching { watch, prefix, after });
    }

    async fn read_watches(&mut self) {
        let mut going_on = Vec::new();
        for mut watching in std::mem::take(&mut self.watches) {
            if self.read_watch(&mut watching).await {
                going_on.push(watching);
            }
        }
        self.watches = going_on;
    }

    /// Reads all there is for a watch; false if it has ended.
    async fn read_watch(&self, watching: &mut Watching) -> bool {
        let matters =
            |change: &&Change| change.revision > watching.after && change.key.starts_with(watching.prefix.as_bytes());
        let mut expected: Vec<_> = self.model.changes.iter().filter(matters).cloned().collect();
        while !expected.is_empty() {
            match watching.watch.next().await {
                Ok(batch) => {
                    let rest = expected.split_off(batch.changes.len().min(expected.len()));
                    assert_eq!(batch.changes, expected);
                    expected = rest;
                    watching.after = batch.revision;
                }
                Err(Error::Compacted { compacted, .. }) => {
                    assert!(watching.watch.progress() < compacted, "ended though it had not fallen behind");
                    return false;
                }
                Err(error) => panic!("{error}"),
            }
        }
        true
    }

    async fn reopen(&mut self) {
        self.watches.clear();
        let backend = std::mem::replace(&mut self.backend, Backend::memory());
        self.backend = backend.reopened().await;
        assert_eq!(self.backend.store.revision().await.unwrap(), self.model.head);
    }
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap()
}

async fn agree(backend: Backend, ops: Vec<Op>) {
    let mut run = Run::new(backend).await;
    for op in ops {
        run.step(op).await;
    }
    run.read_watches().await;
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn memory_agrees_with_the_model(ops in proptest::collection::vec(op(), 1..120)) {
        runtime().block_on(async { agree(Backend::memory(), ops).await });
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, ..ProptestConfig::default() })]

    #[test]
    fn sqlite_agrees_with_the_model(ops in proptest::collection::vec(op(), 1..120)) {
        runtime().block_on(async { agree(Backend::sqlite().await, ops).await });
    }
}

#[test]
fn etcd_agrees_with_the_model() {
    let config = ProptestConfig { cases: 20, ..ProptestConfig::default() };
    for version in available_versions() {
        let runtime = runtime();
        let server = runtime.block_on(Etcd::start(version));
        // Each case under a root of its own: revisions and compaction go on from one to the next.
        let case = std::cell::Cell::new(0);
        let mut runner = proptest::test_runner::TestRunner::new(config.clone());
        let agreed = runner.run(&proptest::collection::vec(op(), 1..80), |ops| {
            case.set(case.get() + 1);
            let root = format!("/case-{}/", case.get());
            runtime.block_on(async { agree(Backend::etcd_at(server.endpoints(), &root).await, ops).await });
            Ok(())
        });
        agreed.unwrap_or_else(|failure| panic!("{version:?}: {failure}"));
    }
}
