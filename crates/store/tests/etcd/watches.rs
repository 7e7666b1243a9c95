//! Watches of what is older than memory reaches, larger than a message, or not ours.

use super::{commit, connect, read_until};
use futures::{StreamExt, stream};
use std::collections::BTreeMap;
use store::{Batch, MAX_TXN_BYTES, Range, Revision, Store, Txn, WatchRequest};
use testkit::etcd::{Etcd as Server, available_versions};

#[tokio::test]
async fn a_watch_from_long_ago_is_read_from_etcd_itself() {
    const WRITES: usize = 2500;
    for version in available_versions() {
        let server = Server::start(version).await;
        let writer = connect(server.endpoints()).await;
        let from_zero = writer.watch(WatchRequest::new("", Revision::ZERO)).await;
        let mut from_zero = from_zero.expect("an etcd that was never compacted has all its history");
        let writes = (0..WRITES).map(|n| commit(&writer, Txn::put(format!("k{}", n % 50), format!("{n}"))));
        let written: Vec<Revision> = stream::iter(writes).buffer_unordered(64).collect().await;
        let newest = written.into_iter().max().unwrap();

        // To a store that connects now, all of that is older than what it has in memory.
        let store = connect(server.endpoints()).await;
        let request = WatchRequest::new("", Revision::ZERO).with_previous();
        let mut old = store.watch(request).await.unwrap();
        let (told, lived) = (read_until(&mut old, newest).await, read_until(&mut from_zero, newest).await);
        assert_eq!(told.len(), WRITES);
        assert!(told.windows(2).all(|pair| pair[0].revision < pair[1].revision), "each revision has one change");
        for (told, lived) in told.iter().zip(&lived) {
            assert_eq!((told.revision, &told.current), (lived.revision, &lived.current));
        }
        let mut values = BTreeMap::new();
        for change in told {
            assert_eq!(change.previous, values.insert(change.key, change.current.unwrap()), "the value before");
        }

        let next = commit(&writer, Txn::put("k0", "new")).await;
        assert_eq!(old.next().await.unwrap().revision, next, "the watch goes on with what is new");
        writer.close().await;
        store.close().await;
    }
}

#[tokio::test]
async fn a_revision_that_etcd_tells_in_pieces_arrives_whole() {
    const KEYS: usize = 4;
    for version in available_versions() {
        let server = Server::start(version).await;
        let store = connect(server.endpoints()).await;
        let start = store.revision().await.unwrap();
        let mut live = store.watch(WatchRequest::new("", start).with_previous()).await.unwrap();
        let put = |round: u8| {
            (0..KEYS).fold(Txn::default(), |txn, n| txn.and_put(format!("k{n}"), vec![round; MAX_TXN_BYTES / 5]))
        };
        // With the values before, an update is larger than any message etcd sends in one piece.
        let (first, second) = (commit(&store, put(1)).await, commit(&store, put(2)).await);
        let other = connect(server.endpoints()).await;
        let mut old = other.watch(WatchRequest::new("", start).with_previous()).await.unwrap();
        for watch in [&mut live, &mut old] {
            let changes = read_until(watch, second).await;
            let count = |revision| changes.iter().filter(|change| change.revision == revision).count();
            assert_eq!((count(first), count(second)), (KEYS, KEYS), "{version:?}");
            assert!(changes[KEYS..].iter().all(|change| change.previous.as_ref().unwrap().value[0] == 1));
        }
        other.close().await;
        store.close().await;
    }
}

#[tokio::test]
async fn foreign_keys_move_revisions_and_show_up_nowhere() {
    for version in available_versions() {
        let server = Server::start(version).await;
        let store = connect(server.endpoints()).await;
        let mut foreign = server.client().await;
        foreign.put("/setpoint", "the root without its end", None).await.unwrap();
        let start = commit(&store, Txn::put("k", "v")).await;
        let mut watch = store.watch(WatchRequest::new("", start)).await.unwrap();
        foreign.put("/setpoint0", "just after ours", None).await.unwrap();
        foreign.put("a", "long before ours", None).await.unwrap();

        assert_eq!(store.revision().await.unwrap(), Revision(start.0 + 2));
        let all = store.range(Range::prefix("")).await.unwrap();
        assert_eq!((all.revision, all.items.len(), all.remaining), (Revision(start.0 + 2), 1, 0));
        assert_eq!(all.items[0].key, "k");
        let status = store.status().await.unwrap();
        assert_eq!((status.keys, status.revision), (1, Revision(start.0 + 2)));
        let last = commit(&store, Txn::delete("k")).await;
        let Batch { revision, changes } = watch.next().await.unwrap();
        assert_eq!((revision, changes.len(), changes[0].revision), (last, 1, last));
        store.close().await;
    }
}
