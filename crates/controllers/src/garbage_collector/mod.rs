//! Garbage collector: what has lost all its owners goes; what is deleted in the foreground goes after its dependents;
//! what is deleted as an orphanage lets go of them first.
//!
//! It watches every kind there is, custom ones included, for their metadata alone. Whether an owner is missing that it
//! has not seen go is asked of the API, since a watch may be behind. Every deletion is conditional on the version that
//! the decision was made from.

mod graph;
mod plan;

use graph::{Graph, Node, Uid};
use kinds::{Id, Key, OwnerReference, Partial, Raw};
use object::{ApiError, Reason};
use parking_lot::Mutex;
use plan::{Observed, Owners, Standing, plan, release};
use runtime::{Client, Context, Controller, Discovered, ListOptions, Plan, Queue, Request, Sink};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::time::Duration;

/// Upstream has as many.
const WORKERS: usize = 20;
/// How often to look whether there are new kinds.
const DISCOVERY: Duration = Duration::from_secs(30);
/// Kinds that are too many and never owned.
const IGNORED: [(&str, &str); 2] = [("", "events"), ("events.k8s.io", "events")];

pub(crate) fn controller() -> Controller {
    let collector = Arc::new(Collector::default());
    let watched = collector.clone();
    Controller::new("generic-garbage-collector")
        .reports_as("garbage-collector-controller")
        .workers(WORKERS)
        .source(move |context, queue, ambient| watched.clone().watch(context, queue, ambient))
        .plans_with(move |context, request| {
            let collector = collector.clone();
            async move { collector.reconcile(&context.client, &request).await }
        })
}

#[derive(Debug, Default)]
struct Collector {
    graph: Mutex<Graph>,
    /// The kinds that are watched, by group and kind, since that is how references name them.
    kinds: Mutex<BTreeMap<(String, String), Arc<Id>>>,
    /// Nothing is collected before every kind has been seen in this term: an owner might be among the rest.
    ready: AtomicBool,
}

/// For as long as the graph is kept up to date. When it ends, what is known may be out of date before the next begins.
struct Term<'a>(&'a Collector);

impl Drop for Term<'_> {
    fn drop(&mut self) {
        self.0.ready.store(false, SeqCst);
    }
}

/// One kind's part in the graph. Keys are UIDs.
struct Watched {
    collector: Arc<Collector>,
    id: Arc<Id>,
    queue: Queue<Key>,
    synced: ambient::watch::Sender<bool>,
}

impl Collector {
    /// Watches every kind there is; looks again and again whether there are new ones.
    async fn watch(self: Arc<Self>, context: Context, queue: Queue<Key>, ambient: ambient::Ambient) {
        let _term = Term(&self);
        // Those of an earlier term have ended with it.
        self.kinds.lock().clear();
        loop {
            match context.client.discover().await {
                Ok(found) => {
                    for synced in self.watch_new(found, &context.client, &queue, &ambient) {
                        // The sender lives as long as its task, which ends with this one.
                        let _ = synced.clone().wait_for(|synced| *synced).await;
                    }
                    if !self.ready.swap(true, SeqCst) {
                        for uid in self.graph.lock().unfinished() {
                            queue.add(Key::cluster(&*uid));
                        }
                    }
                }
                Err(error) => tracing::warn!(%error, "the kinds there are cannot be learnt"),
            }
            tokio::time::sleep(DISCOVERY).await;
        }
    }

    fn watch_new(
        self: &Arc<Self>,
        found: Vec<Discovered>,
        client: &Client,
        queue: &Queue<Key>,
        ambient: &ambient::Ambient,
    ) -> Vec<ambient::watch::Receiver<bool>> {
        let mut started = Vec::new();
        let wanted = found.into_iter().filter(|resource| {
            let ignored = IGNORED.contains(&(resource.id.group(), &resource.id.plural));
            !ignored && ["list", "watch", "delete"].iter().all(|verb| resource.can(verb))
        });
        for Discovered { id, .. } in wanted {
            let (name, id) = ((id.group().to_owned(), id.kind.to_string()), Arc::new(id));
            if self.kinds.lock().insert(name, id.clone()).is_some() {
                continue;
            }
            let synced = ambient::watch::Sender::new(false);
            started.push(synced.subscribe());
            let part = Watched { collector: self.clone(), id, queue: queue.clone(), synced };
            let (client, random) = (client.clone(), ambient.random.fork());
            ambient.tasks.spawn_until_stopped("garbage watch", async move {
                runtime::reflect(&client, &part.id, &part, &random).await;
            });
        }
        started
    }

    async fn reconcile(&self, client: &Client, request: &Request) -> Result<Plan, ApiError> {
        if !self.ready.load(SeqCst) {
            // Whatever there is to do is looked for then.
            return Ok(Plan::default());
        }
        let uid = &request.key.name;
        let Some(node) = self.graph.lock().get(uid) else { return Ok(Plan::default()) };
        let observed = if node.waits_to_orphan() {
            let mut dependents = self.live_dependents(client, &node).await?;
            if !dependents.iter().any(|(dependent, raw)| release(dependent, raw, uid).is_some()) {
                dependents = self.unseen_dependents(client, &node).await?;
            }
            Observed::Orphaning { dependents, own: client.get_raw(&node.id, &node.key).await? }
        } else if node.waits_for_dependents() {
            // The dependents go by the rules for what is owned, now that their owner waits.
            let is_blocked = self.graph.lock().is_blocked(uid);
            Observed::Waiting { own: if is_blocked { None } else { client.get_raw(&node.id, &node.key).await? } }
        } else {
            let owners = self.classify(client, &node).await?;
            let is_partial = owners.any(Standing::Solid) && owners.any_but(Standing::Solid);
            let own = if is_partial { client.get_raw(&node.id, &node.key).await? } else { None };
            Observed::Owned { owners, dependents: self.dependents(uid), own }
        };
        Ok(plan(&node, &observed))
    }

    fn dependents(&self, uid: &str) -> Vec<Arc<Node>> {
        let graph = self.graph.lock();
        graph.dependents(uid).iter().filter_map(|uid| graph.get(uid)).collect()
    }

    /// The dependents of an object as they are now: what is let go of must lose nothing else.
    async fn live_dependents(&self, client: &Client, node: &Node) -> Result<Vec<(Arc<Node>, Raw)>, ApiError> {
        let mut live = Vec::new();
        for dependent in self.dependents(&node.uid) {
            if let Some(raw) = client.get_raw(&dependent.id, &dependent.key).await? {
                live.push((dependent, raw));
            }
        }
        Ok(live)
    }

    /// The dependents of an object, of every kind, as the API knows them: a watch may be behind, and what it has not shown
    /// when its owner goes would be collected. It takes a list of each kind; but nobody orphans often.
    async fn unseen_dependents(&self, client: &Client, node: &Node) -> Result<Vec<(Arc<Node>, Raw)>, ApiError> {
        let namespace = node.key.namespace.as_str();
        let mut kinds: Vec<_> = self.kinds.lock().values().cloned().collect();
        kinds.retain(|id| id.namespaced || namespace.is_empty());
        let mut found = Vec::new();
        for id in kinds {
            let list = match client.list_raw(&id, namespace, &ListOptions::default()).await {
                Err(error) if error.reason() == Reason::NotFound => continue,
                list => list?,
            };
            for raw in list.items {
                let object = Partial::read(&raw).map_err(ApiError::internal)?;
                if object.metadata.owner_references.iter().any(|owner| *owner.uid == *node.uid) {
                    found.push((Arc::new(Node::new(&id, &object)), raw));
                }
            }
        }
        Ok(found)
    }

    /// How each owner of an object stands.
    async fn classify(&self, client: &Client, node: &Node) -> Result<Owners, ApiError> {
        let mut owners = Vec::new();
        for reference in &node.owners {
            let (known, is_gone) = {
                let graph = self.graph.lock();
                (graph.get(&reference.uid), graph.is_gone(&reference.uid))
            };
            let standing = match known {
                Some(owner) if !owner.key.namespace.is_empty() && owner.key.namespace != node.key.namespace => {
                    Standing::Elsewhere
                }
                Some(owner) if owner.waits_for_dependents() => Standing::Waiting,
                Some(_) => Standing::Solid,
                None if is_gone => Standing::Gone,
                None => self.ask(client, node, reference).await?,
            };
            owners.push((reference.clone(), standing));
        }
        Ok(Owners(owners))
    }

    /// Asks the API for an owner that no watch has shown.
    async fn ask(&self, client: &Client, node: &Node, reference: &OwnerReference) -> Result<Standing, ApiError> {
        let group = reference.api_version.split_once('/').map_or("", |(group, _)| group);
        let id = self.kinds.lock().get(&(group.to_owned(), reference.kind.clone())).cloned();
        let Some(id) = id else {
            // Of a kind that nobody knows nothing is known either: it may come back.
            return Ok(Standing::Solid);
        };
        let namespace = if id.namespaced { node.key.namespace.as_str() } else { "" };
        let found = client.get_raw(&id, &Key::new(namespace, reference.name.as_str())).await?;
        let found = found.and_then(|raw| Partial::read(&raw).ok());
        if found.is_some_and(|owner| owner.metadata.uid == reference.uid) {
            return Ok(Standing::Solid);
        }
        self.graph.lock().remember_gone(&reference.uid);
        Ok(Standing::Gone)
    }
}

impl Sink for Watched {
    type Item = Partial;

    fn read(&self, raw: Raw) -> Result<Partial, ApiError> {
        Partial::read(&raw).map_err(ApiError::internal)
    }

    fn put(&self, item: Partial) {
        let woken = self.collector.graph.lock().put(Node::new(&self.id, &item));
        self.wake(woken);
    }

    fn remove(&self, key: &Key) {
        let woken = self.collector.graph.lock().remove(&self.id, key);
        self.wake(woken);
    }

    fn version_of(&self, key: &Key) -> Option<String> {
        self.collector.graph.lock().version_of(&self.id, key)
    }

    fn others(&self, seen: &BTreeSet<Key>) -> Vec<Key> {
        let mut keys = self.collector.graph.lock().keys(&self.id);
        keys.retain(|key| !seen.contains(key));
        keys
    }

    fn advance(&self, _version: u64, synced: bool) {
        if synced {
            self.synced.send_replace(true);
        }
    }
}

impl Watched {
    fn wake(&self, woken: Vec<Uid>) {
        if self.collector.ready.load(SeqCst) {
            woken.into_iter().for_each(|uid| self.queue.add(Key::cluster(&*uid)));
        }
    }
}
