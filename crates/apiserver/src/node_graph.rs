//! What objects have to do with which nodes, followed from what is there to every change. It decides what nodes may see.
//!
//! Pods are many and reading one costs something, so this is done by a task, a moment behind the cache. Where the cache
//! starts over, so does the graph.

use crate::api::Api;
use ambient::watch;
use authz::node::Graph;
use futures::FutureExt;
use futures::future::select_all;
use parking_lot::{RwLock, RwLockReadGuard};
use registry::Object;
use registry::cache::{Cache, Watch};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use store::Revision;

/// What ties objects to nodes: kinds and their tables.
const FOLLOWED: [(&str, &str); 6] = [
    ("Pod", "pods"),
    ("PersistentVolume", "persistentvolumes"),
    ("PersistentVolumeClaim", "persistentvolumeclaims"),
    ("VolumeAttachment", "volumeattachments.storage.k8s.io"),
    ("ResourceClaim", "resourceclaims.resource.k8s.io"),
    ("ResourceSlice", "resourceslices.resource.k8s.io"),
];
/// After so many objects whoever reads them lets others work.
const BREATH: usize = 100;

/// How far each table has been followed.
type Seen = [Revision; FOLLOWED.len()];

#[derive(Debug)]
pub(crate) struct NodeGraph {
    shared: Arc<Shared>,
    /// Whether it is followed: only once there is a node that asks.
    is_followed: AtomicBool,
}

#[derive(Debug)]
struct Shared {
    graph: RwLock<Graph>,
    /// None until what is there has been read.
    seen: watch::Sender<Option<Seen>>,
}

impl Default for NodeGraph {
    fn default() -> Self {
        let shared = Shared { graph: RwLock::default(), seen: watch::Sender::new(None) };
        NodeGraph { shared: Arc::new(shared), is_followed: AtomicBool::new(false) }
    }
}

impl NodeGraph {
    pub(crate) fn read(&self) -> RwLockReadGuard<'_, Graph> {
        self.shared.graph.read()
    }

    /// Follows from now on, if it does not yet.
    pub(crate) fn follow(&self, api: &Api) {
        if !self.is_followed.swap(true, Ordering::AcqRel) {
            let (shared, cache) = (self.shared.clone(), api.registry.cache.clone());
            api.ambient.tasks.spawn_until_stopped("node graph", async move { shared.follow(&cache).await });
        }
    }

    /// Waits until every change that the cache shows now is known here.
    pub(crate) async fn caught_up(&self, cache: &Cache) {
        let last = FOLLOWED.map(|(_, table)| cache.last_change(table));
        let is_there = |seen: &Seen| seen.iter().zip(&last).all(|(seen, last)| seen >= last);
        // The sender is in `self`, so this cannot fail.
        let _ = self.shared.seen.subscribe().wait_for(|seen| seen.as_ref().is_some_and(is_there)).await;
    }
}

impl Shared {
    async fn follow(&self, cache: &Cache) {
        loop {
            let (graph, seen) = read_all(cache).await;
            *self.graph.write() = graph;
            self.seen.send_replace(Some(seen));
            let mut watches = Vec::new();
            for ((_, table), after) in FOLLOWED.iter().zip(seen) {
                watches.push(cache.watch(table, after));
            }
            self.keep_up(watches).await;
            tracing::warn!("what nodes may see is read anew");
        }
    }

    /// Takes in every change, until one of the tables cannot be followed any more.
    async fn keep_up(&self, mut watches: Vec<Watch>) {
        loop {
            let (events, at, _) = select_all(watches.iter_mut().map(|watch| watch.next().boxed())).await;
            let Ok(events) = events else { return };
            for event in &events {
                let known = event.current().is_some_and(|pod| knows(&self.graph.read(), at, pod));
                if !known {
                    let object = event.current().map(|object| object.tree());
                    let (namespace, name) = (event.object.namespace(), event.object.name());
                    self.graph.write().apply(FOLLOWED[at].0, namespace, name, object.as_ref());
                }
            }
            let last = events.last().map(|event| event.revision());
            self.seen.send_if_modified(|seen| match (seen, last) {
                (Some(seen), Some(last)) => {
                    seen[at] = last;
                    true
                }
                _ => false,
            });
        }
    }
}

/// Everything there is, and how far that goes.
async fn read_all(cache: &Cache) -> (Graph, Seen) {
    let (mut graph, mut seen, mut count) = (Graph::default(), Seen::default(), 0);
    for (at, (kind, table)) in FOLLOWED.into_iter().enumerate() {
        let snapshot = cache.snapshot(table);
        seen[at] = snapshot.revision;
        for object in snapshot.under(b"", b"") {
            if !knows(&graph, at, object) {
                graph.apply(kind, object.namespace(), object.name(), Some(&object.tree()));
            }
            count += 1;
            if count % BREATH == 0 {
                tokio::task::yield_now().await;
            }
        }
    }
    (graph, seen)
}

/// Whether an object says nothing new. Reading it costs more than all the rest, and is not always needed.
fn knows(graph: &Graph, at: usize, object: &Object) -> bool {
    FOLLOWED[at].0 == "Pod" && graph.knows_all_of_pod(object.namespace(), object.name(), &object.json())
}
