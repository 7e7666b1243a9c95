//! Between the scheduler and the API: changes go in as the caches see them, decisions go out as bindings and reports.
//!
//! Deciding never waits for the API. Bindings are sent in bundles, many at a time; one that fails puts its pod back.

use crate::actions::{self, Outcome};
use crate::config::Configuration;
use crate::scheduler::{Decision, Scheduler};
use crate::verdict::Plugin;
use ambient::Ambient;
use kinds::{
    CSINode, Namespace, Node, PersistentVolume, PersistentVolumeClaim, Pod, PodDisruptionBudget, ReplicaSet,
    ReplicationController, Service, StatefulSet, StorageClass, Time,
};
use parking_lot::Mutex;
use runtime::{Caches, Change, Context, Controller};
use std::sync::Arc;
use tokio::sync::{Notify, mpsc};

/// So many pods are decided about before what has changed meanwhile is looked at.
const ROUND: usize = 256;
/// So many are bound by one task; tasks run beside each other.
const BUNDLE: usize = 32;
/// So many decisions may be under way to the API.
const UNDER_WAY: usize = 1024;

/// What the scheduler is told.
#[derive(Debug)]
enum News {
    Pod(Change<Pod>),
    Node(Change<Node>),
    Namespace(Change<Namespace>),
    /// Something that pods refused by these may have waited for.
    Helps(&'static [Plugin]),
}

/// Changes that wait to be looked at; closed while nobody does.
#[derive(Clone, Debug, Default)]
struct Inbox(Arc<(Mutex<Option<Vec<News>>>, Notify)>);

impl Inbox {
    fn put(&self, news: News) {
        if let Some(waiting) = self.0.0.lock().as_mut() {
            waiting.push(news);
            self.0.1.notify_one();
        }
    }

    /// Open until what is returned is dropped: a scheduler that does not lead must not collect what it never reads.
    fn open(&self) -> Open {
        *self.0.0.lock() = Some(Vec::new());
        Open(self.clone())
    }

    fn take(&self) -> Vec<News> {
        self.0.0.lock().as_mut().map(std::mem::take).unwrap_or_default()
    }

    async fn filled(&self) {
        self.0.1.notified().await;
    }
}

struct Open(Inbox);

impl Drop for Open {
    fn drop(&mut self) {
        *self.0.0.0.lock() = None;
    }
}

pub fn controller(configuration: Configuration) -> Controller {
    let inbox = Inbox::default();
    let told = |inbox: &Inbox| inbox.clone();
    let (pods, nodes, namespaces) = (told(&inbox), told(&inbox), told(&inbox));
    let controller = Controller::new(crate::DEFAULT)
        .workers(0)
        .watches_changes::<Pod>(move |change, _| {
            pods.put(News::Pod(change.clone()));
            Vec::new()
        })
        .watches_changes::<Node>(move |change, _| {
            nodes.put(News::Node(change.clone()));
            Vec::new()
        })
        .watches_changes::<Namespace>(move |change, _| {
            namespaces.put(News::Namespace(change.clone()));
            Vec::new()
        })
        .reads::<Service>()
        .reads::<ReplicaSet>()
        .reads::<ReplicationController>()
        .reads::<StatefulSet>()
        .reads::<PodDisruptionBudget>();
    let controller = helped_by::<PersistentVolumeClaim>(controller, &inbox, VOLUMES);
    let controller = helped_by::<PersistentVolume>(controller, &inbox, VOLUMES);
    let controller = helped_by::<StorageClass>(controller, &inbox, VOLUMES);
    let controller = helped_by::<CSINode>(controller, &inbox, VOLUMES);
    controller.source(move |context, _, ambient| run(inbox.clone(), configuration.clone(), context, ambient))
}

/// Empty caches of everything that is looked up: for whoever decides without the API.
pub fn caches() -> Caches {
    Caches::default()
        .with::<CSINode>()
        .with::<PersistentVolume>()
        .with::<PersistentVolumeClaim>()
        .with::<Pod>()
        .with::<PodDisruptionBudget>()
        .with::<ReplicaSet>()
        .with::<ReplicationController>()
        .with::<Service>()
        .with::<StatefulSet>()
        .with::<StorageClass>()
}

const VOLUMES: &[Plugin] =
    &[Plugin::VolumeBinding, Plugin::VolumeZone, Plugin::NodeVolumeLimits, Plugin::VolumeRestrictions];

fn helped_by<K: kinds::Kind>(controller: Controller, inbox: &Inbox, plugins: &'static [Plugin]) -> Controller {
    let inbox = inbox.clone();
    controller.watches_changes::<K>(move |_, _| {
        inbox.put(News::Helps(plugins));
        Vec::new()
    })
}

async fn run(inbox: Inbox, configuration: Configuration, context: Context, ambient: Ambient) {
    let _open = inbox.open();
    let mut scheduler = Scheduler::new(context.caches.clone(), &configuration);
    for node in context.caches.of::<Node>().all() {
        scheduler.node_changed(&Change::new(node));
    }
    for namespace in context.caches.of::<Namespace>().all() {
        scheduler.namespace_changed(&Change::new(namespace));
    }
    for pod in context.caches.of::<Pod>().all() {
        scheduler.pod_changed(&Change::new(pod));
    }
    let (done, mut outcomes) = mpsc::unbounded_channel();
    let mut under_way = 0;
    loop {
        let now = ambient.clock.monotonic();
        for news in inbox.take() {
            match news {
                News::Pod(change) => scheduler.pod_changed(&change),
                News::Node(change) => scheduler.node_changed(&change),
                News::Namespace(change) => scheduler.namespace_changed(&change),
                News::Helps(plugins) => scheduler.helps(plugins, now),
            }
        }
        while let Ok(outcome) = outcomes.try_recv() {
            under_way -= 1;
            scheduler.carried_out(&outcome, now);
        }
        let mut decisions = Vec::new();
        while decisions.len() < ROUND && under_way + decisions.len() < UNDER_WAY {
            let Some(decision) = scheduler.next(now) else { break };
            decisions.push(decision);
        }
        under_way += decisions.len();
        let idle = decisions.is_empty();
        carry_out(decisions, &context, &ambient, &done);
        if !idle {
            tokio::task::yield_now().await;
            continue;
        }
        let due = scheduler.queue.due().unwrap_or(now + IDLE);
        tokio::select! {
            biased;
            () = inbox.filled() => {}
            outcome = outcomes.recv(), if under_way > 0 => {
                under_way -= 1;
                outcome.into_iter().for_each(|outcome| scheduler.carried_out(&outcome, now));
            }
            () = tokio::time::sleep_until(due) => {}
        }
    }
}

/// A look at the queue that nothing asks for.
const IDLE: std::time::Duration = std::time::Duration::from_secs(60);

fn carry_out(decisions: Vec<Decision>, context: &Context, ambient: &Ambient, done: &mpsc::UnboundedSender<Outcome>) {
    let (slow, quick): (Vec<_>, Vec<_>) = decisions.into_iter().partition(actions::takes_long);
    let mut quick = quick.into_iter().peekable();
    let mut bundles: Vec<Vec<Decision>> = slow.into_iter().map(|decision| vec![decision]).collect();
    while quick.peek().is_some() {
        bundles.push(quick.by_ref().take(BUNDLE).collect());
    }
    for bundle in bundles {
        let (context, done, clock) = (context.clone(), done.clone(), ambient.clock.clone());
        ambient.tasks.spawn_until_stopped("bindings", async move {
            let now = Time::from_millis(clock.wall().0);
            let outcomes = bundle.into_iter().map(|decision| actions::carry_out(decision, &context, now));
            for outcome in futures::future::join_all(outcomes).await {
                // Nobody listens any more when the scheduler has been stopped.
                let _ = done.send(outcome);
            }
        });
    }
}
