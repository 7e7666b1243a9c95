//! What the scheduler has yet to be told.

use crate::explanation::Explanation;
use crate::verdict::Plugin;
use kinds::{DeviceTaintRule, Key, Namespace, Node, Pod, PodGroup, ResourceClaim, ResourceSlice, Service};
use parking_lot::Mutex;
use runtime::Change;
use std::sync::Arc;
use tokio::sync::{Notify, oneshot};

/// What the scheduler is told.
#[derive(Debug)]
pub(super) enum News {
    Pod(Change<Pod>),
    Node(Change<Node>),
    Namespace(Change<Namespace>),
    Service(Change<Service>),
    Slice(Change<ResourceSlice>),
    TaintRule(Change<DeviceTaintRule>),
    Claim(Change<ResourceClaim>),
    Group(Change<PodGroup>),
    /// Something that pods refused by these may have waited for, and what it is called.
    Helps(&'static [Plugin], String),
    /// Somebody wants to know what stands in the way of a pod.
    Question(Key, oneshot::Sender<Option<Explanation>>),
}

/// Changes that wait to be looked at; closed while nobody does.
#[derive(Clone, Debug, Default)]
pub(super) struct Inbox(Arc<(Mutex<Option<Vec<News>>>, Notify)>);

impl Inbox {
    /// Returns whether anybody is there to look at it.
    pub(super) fn put(&self, news: News) -> bool {
        let mut waiting = self.0.0.lock();
        let Some(waiting) = waiting.as_mut() else { return false };
        waiting.push(news);
        self.0.1.notify_one();
        true
    }

    /// Open until what is returned is dropped: a scheduler that does not lead must not collect what it never reads.
    pub(super) fn open(&self) -> Open {
        *self.0.0.lock() = Some(Vec::new());
        Open(self.clone())
    }

    pub(super) fn take(&self) -> Vec<News> {
        self.0.0.lock().as_mut().map(std::mem::take).unwrap_or_default()
    }

    pub(super) async fn filled(&self) {
        self.0.1.notified().await;
    }
}

pub(super) struct Open(Inbox);

impl Drop for Open {
    fn drop(&mut self) {
        *self.0.0.0.lock() = None;
    }
}
