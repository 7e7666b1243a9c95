//! Garbage collector: what has lost all its owners goes; what is deleted in the foreground goes after its dependents;
//! what is deleted as an orphanage lets go of them first.
//!
//! It watches every kind there is, custom ones included, for their metadata alone. Whether an owner is missing that it
//! has not seen go is asked of the API, since a watch may be behind. Every deletion is conditional on the version that
//! the decision was made from.

mod graph;

use graph::{Graph, Node, Uid};
use kinds::{Id, Key, OwnerReference, Partial, Raw};
use object::{ApiError, Reason, Value, View, json};
use parking_lot::Mutex;
use runtime::{
    Client, Context, Controller, DeleteOptions, Discovered, ListOptions, Note, Plan, Propagation, Queue, Request, Sink,
    Target, Write,
};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

/// Upstream has as many.
const WORKERS: usize = 20;
/// How often to look whether there are new kinds.
const DISCOVERY: Duration = Duration::from_secs(30);
/// Kinds that are too many and never owned.
const IGNORED: [(&str, &str); 2] = [("", "events"), ("events.k8s.io", "events")];

pub(crate) fn controller() -> Controller {
    let (graph, kinds) = Default::default();
    let collector = Arc::new(Collector { graph, kinds, ready: ambient::watch::Sender::new(false) });
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

#[derive(Debug)]
struct Collector {
    graph: Mutex<Graph>,
    /// The kinds that are watched, by group and kind, since that is how references name them.
    kinds: Mutex<BTreeMap<(String, String), Arc<Id>>>,
    /// Nothing is collected before every kind has been seen in this term: an owner might be among the rest.
    ready: ambient::watch::Sender<bool>,
}

/// For as long as the graph is kept up to date. When it ends, what is known may be out of date before the next begins.
struct Term<'a>(&'a Collector);

impl Drop for Term<'_> {
    fn drop(&mut self) {
        self.0.ready.send_replace(false);
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
                    if !self.ready.send_replace(true) {
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
        if !*self.ready.borrow() {
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
        if *self.collector.ready.borrow() {
            woken.into_iter().for_each(|uid| self.queue.add(Key::cluster(&*uid)));
        }
    }
}

/// What is known about an object when it is decided upon.
enum Observed {
    /// It lets go of its dependents: they, and itself, as they are now.
    Orphaning { dependents: Vec<(Arc<Node>, Raw)>, own: Option<Raw> },
    /// It waits for its dependents; itself as it is now, if none is left that it has to wait for.
    Waiting { own: Option<Raw> },
    /// It depends on its owners; itself as it is now, if only some of them are left.
    Owned { owners: Owners, dependents: Vec<Arc<Node>>, own: Option<Raw> },
}

struct Owners(Vec<(OwnerReference, Standing)>);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Standing {
    /// It is there.
    Solid,
    /// It is being deleted and waits for its dependents.
    Waiting,
    Gone,
    /// It is in another namespace, where it cannot own anything here.
    Elsewhere,
}

impl Owners {
    fn any(&self, standing: Standing) -> bool {
        self.0.iter().any(|(_, other)| *other == standing)
    }

    fn any_but(&self, standing: Standing) -> bool {
        self.0.iter().any(|(_, other)| *other != standing)
    }
}

fn plan(node: &Node, observed: &Observed) -> Plan {
    let mut plan = Plan::default();
    match observed {
        Observed::Orphaning { dependents, own } => {
            for (dependent, raw) in dependents {
                plan.writes.extend(release(dependent, raw, &node.uid));
            }
            // Patches go out side by side: if this one went with them and another failed, the owner would be gone, and
            // what still names it collected.
            if plan.writes.is_empty() {
                plan.writes.extend(own.as_ref().and_then(|raw| drop_finalizer(node, raw, "orphan")));
            } else {
                plan.requeue_after(Duration::ZERO);
            }
        }
        Observed::Waiting { own } => {
            plan.writes.extend(own.as_ref().and_then(|raw| drop_finalizer(node, raw, "foregroundDeletion")));
        }
        Observed::Owned { owners, dependents, own } => plan_owned(&mut plan, node, owners, dependents, own.as_ref()),
    }
    plan
}

fn plan_owned(plan: &mut Plan, node: &Node, owners: &Owners, dependents: &[Arc<Node>], own: Option<&Raw>) {
    for (reference, _) in owners.0.iter().filter(|(_, standing)| *standing == Standing::Elsewhere) {
        let message = format!(
            "ownerRef [{}/{}, namespace: {}, name: {}, uid: {}] does not exist in namespace {:?}",
            reference.api_version,
            reference.kind,
            node.key.namespace,
            reference.name,
            reference.uid,
            node.key.namespace
        );
        plan.event(Note { warning: true, ..Note::about(target(node), "OwnerRefInvalidNamespace", message) });
    }
    if owners.0.is_empty() {
        return;
    }
    if owners.any(Standing::Solid) {
        let solid =
            |uid: &str| owners.0.iter().any(|(owner, standing)| owner.uid == uid && *standing == Standing::Solid);
        plan.writes.extend(own.and_then(|raw| keep_owners(node, raw, solid)));
        return;
    }
    if node.is_being_deleted {
        return;
    }
    // An owner that waits wants to see all of what is below it gone first.
    let policy = match owners.any(Standing::Waiting) && !dependents.is_empty() {
        true => Propagation::Foreground,
        false => own_policy(node),
    };
    plan.writes.push(delete(node, policy));
}

/// What its finalizers say is to become of its own dependents.
fn own_policy(node: &Node) -> Propagation {
    match (node.orphan, node.foreground) {
        (true, _) => Propagation::Orphan,
        (false, true) => Propagation::Foreground,
        (false, false) => Propagation::Background,
    }
}

fn target(node: &Node) -> Target {
    let (id, key) = (Id::clone(&node.id), Key::clone(&node.key));
    Target { id, key, uid: node.uid.to_string(), version: node.version.to_string() }
}

fn delete(node: &Node, propagation: Propagation) -> Write {
    let options = DeleteOptions { grace_seconds: None, propagation, unchanged: true };
    Write::Delete { target: target(node), options, announce: None }
}

/// Lets go of a dependent, if it is one.
fn release(dependent: &Node, raw: &Raw, owner: &str) -> Option<Write> {
    keep_owners(dependent, raw, |other| other != owner)
}

/// Removes references to owners from an object as it is now; none if there are none of them.
fn keep_owners(node: &Node, raw: &Raw, keep: impl Fn(&str) -> bool) -> Option<Write> {
    let metadata = metadata(node, raw)?;
    let owners = metadata.items("ownerReferences");
    let kept: Vec<&Value> = owners.iter().filter(|owner| keep(owner.text("uid"))).collect();
    (kept.len() < owners.len()).then(|| patch(node, &metadata, "ownerReferences", json!(kept)))
}

fn drop_finalizer(node: &Node, raw: &Raw, name: &str) -> Option<Write> {
    let metadata = metadata(node, raw)?;
    let finalizers = metadata.items("finalizers");
    let kept: Vec<&Value> = finalizers.iter().filter(|finalizer| *finalizer != name).collect();
    (kept.len() < finalizers.len()).then(|| patch(node, &metadata, "finalizers", json!(kept)))
}

/// The metadata of an object, unless another has its name by now.
fn metadata(node: &Node, raw: &Raw) -> Option<Value> {
    let object = object::json::parse(&raw.json).ok()?;
    let metadata = object.at("metadata");
    (*metadata.text("uid") == *node.uid).then(|| metadata.clone())
}

fn patch(node: &Node, metadata: &Value, field: &str, value: Value) -> Write {
    let mut patch = json!({ "uid": &*node.uid, "resourceVersion": metadata.text("resourceVersion") });
    patch[field] = value;
    let patch = json!({ "metadata": patch });
    Write::Patch { target: target(node), subresource: "", patch, owner: None, announce: None }
}

#[cfg(test)]
mod tests;
