//! What users delete, and what becomes of what depends on it. This is seen on the way to the API, since afterwards nobody
//! can tell why something is gone.
//!
//! Three things must not happen, whatever else does: what was to be left behind is collected; what was to go as well is
//! left behind; and an owner goes before those that it has to wait for.

use super::{World, oracle};
use async_trait::async_trait;
use bytes::Bytes;
use http::{Method, Request, Response};
use kinds::{Id, Meta, Partial, Raw, Time};
use object::{ApiError, Value, View};
use parking_lot::Mutex;
use runtime::{DeleteOptions, Events, Propagation, Target, Transport};
use std::sync::Arc;
use std::time::Duration;

/// An owner that is deleted in the foreground waits for what the collector has seen. A watch that was cut may be behind by
/// less than this; what it shows later is collected all the same, only not before its owner.
const SEEN_AFTER: Duration = Duration::from_secs(30);

/// Who acts on what becomes of dependents.
const COLLECTOR: &str = "system:serviceaccount:kube-system:generic-garbage-collector";

/// What users have deleted, as far as nobody has asked for anything else since.
#[derive(Debug, Default)]
pub(super) struct Deletions {
    open: Mutex<Vec<Deletion>>,
    /// What went wrong.
    wrong: Mutex<Vec<String>>,
}

#[derive(Clone, Debug)]
struct Deletion {
    at: Time,
    path: String,
    uid: String,
    propagation: Propagation,
    /// What named it as an owner when it was deleted.
    dependents: Vec<(Id, Meta)>,
}

impl Deletion {
    fn has(&self, uid: &str) -> bool {
        self.dependents.iter().any(|(_, meta)| meta.uid == uid)
    }

    /// Whether something that names it keeps it from going.
    fn waits_for(&self, dependent: &Meta) -> bool {
        let was_seen = dependent.creation_timestamp.is_some_and(|created| self.at.since(created) > SEEN_AFTER);
        let mut names = dependent.owner_references.iter().filter(|owner| owner.uid == self.uid);
        names.any(|owner| self.propagation == Propagation::Orphan || owner.block_owner_deletion && was_seen)
    }
}

impl Deletions {
    pub(super) fn wrong(&self) -> Vec<String> {
        self.wrong.lock().clone()
    }

    /// Somebody else deletes what is at a path, or below it: what becomes of its dependents is up to them.
    fn forget(&self, path: &str) {
        let is_below =
            |other: &str| other.strip_prefix(path).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
        self.open.lock().retain(|deletion| !is_below(&deletion.path));
    }

    /// Something was collected.
    fn collected(&self, what: &Meta) {
        for deletion in self.open.lock().iter().filter(|deletion| deletion.propagation == Propagation::Orphan) {
            let names_it = what.owner_references.iter().any(|owner| owner.uid == deletion.uid);
            if names_it && deletion.has(&what.uid) {
                let (name, owner) = (&what.name, &deletion.path);
                self.wrong.lock().push(format!("{name} was collected and should have outlived {owner}"));
            }
        }
    }

    /// Something has no owners any more.
    fn released(&self, uid: &str) {
        let open = self.open.lock();
        for deletion in open.iter().filter(|deletion| deletion.propagation != Propagation::Orphan && deletion.has(uid))
        {
            self.wrong.lock().push(format!("{uid} was let go of and should have gone with {}", deletion.path));
        }
    }
}

/// A user deletes something, and says what is to become of what depends on it.
pub(super) async fn delete(world: &World, target: &Target, options: &DeleteOptions) -> Result<Raw, ApiError> {
    let path = target.id.path(&target.key.namespace, &target.key.name);
    let found = world.admin.get_raw(&target.id, &target.key).await?;
    let meta = found.and_then(|raw| Partial::read(&raw).ok()).map(|partial| partial.metadata).unwrap_or_default();
    world.deletions.forget(&path);
    // Of two that are asked for at a time either may have begun.
    if !meta.uid.is_empty() && !meta.is_being_deleted() {
        let mut dependents = oracle::everything(world).await;
        dependents.retain(|(_, other)| {
            let is_named = other.owner_references.iter().any(|owner| owner.uid == meta.uid);
            let is_alone = other.owner_references.len() == 1;
            is_named && (is_alone || options.propagation == Propagation::Orphan)
        });
        let (at, propagation) = (Time::from_millis(world.clock().wall().0), options.propagation);
        let deletion = Deletion { at, path: path.clone(), uid: meta.uid, propagation, dependents };
        world.deletions.open.lock().push(deletion);
    }
    let deleted = world.admin.delete(target, options).await;
    if deleted.is_err() {
        world.deletions.forget(&path);
    }
    deleted
}

/// The way of a loop to the API.
#[derive(Debug)]
pub(super) struct Witnessed {
    inner: Arc<dyn Transport>,
    deletions: Arc<Deletions>,
    is_collector: bool,
}

impl Witnessed {
    pub(super) fn new(inner: Arc<dyn Transport>, deletions: Arc<Deletions>, account: &str) -> Self {
        Witnessed { inner, deletions, is_collector: account == COLLECTOR }
    }

    async fn metadata(&self, path: &str) -> Option<Meta> {
        let request = Request::get(path).body(Bytes::new()).ok()?;
        let response = self.inner.send(request).await.ok()?;
        let found = response.status().is_success().then(|| Raw::from(response.into_body()))?;
        Partial::read(&found).ok().map(|partial| partial.metadata)
    }

    /// The collector has patched something: let go of it, or let it go.
    async fn patched(&self, path: &str, metadata: &Value) {
        let uid = metadata.text("uid");
        if metadata.has("ownerReferences") && metadata.items("ownerReferences").is_empty() {
            self.deletions.released(uid);
        }
        if !metadata.has("finalizers") {
            return;
        }
        let gone: Vec<_> = self.deletions.open.lock().iter().filter(|deletion| deletion.uid == uid).cloned().collect();
        for deletion in gone {
            for (id, dependent) in &deletion.dependents {
                let now = self.metadata(&id.path(&dependent.namespace, &dependent.name)).await;
                if now.is_some_and(|now| now.uid == dependent.uid && deletion.waits_for(&now)) {
                    self.deletions.wrong.lock().push(format!("{path} went before {} {}", id.kind, dependent.name));
                }
            }
        }
    }
}

#[async_trait]
impl Transport for Witnessed {
    async fn send(&self, request: Request<Bytes>) -> Result<Response<Bytes>, ApiError> {
        let path = request.uri().path().to_owned();
        match (request.method(), self.is_collector) {
            (&Method::DELETE, false) => {
                self.deletions.forget(&path);
                self.inner.send(request).await
            }
            (&Method::DELETE, true) => {
                // It deletes what is as it has seen it, which is thus how it is now.
                let before = self.metadata(&path).await;
                let response = self.inner.send(request).await?;
                if let Some(before) = before.filter(|_| response.status().is_success()) {
                    self.deletions.collected(&before);
                }
                Ok(response)
            }
            (&Method::PATCH, true) => {
                let patch = object::json::parse(request.body()).map_err(ApiError::internal)?;
                let response = self.inner.send(request).await?;
                if response.status().is_success() {
                    self.patched(&path, patch.at("metadata")).await;
                }
                Ok(response)
            }
            _ => self.inner.send(request).await,
        }
    }

    async fn watch(&self, request: Request<Bytes>) -> Result<Box<dyn Events>, ApiError> {
        self.inner.watch(request).await
    }
}
