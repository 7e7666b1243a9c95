//! Between the scheduler and the API: changes go in as the caches see them, decisions go out as bindings and reports.
//!
//! Deciding never waits for the API. Bindings are sent in bundles, many at a time; one that fails puts its pod back.

mod inbox;

use crate::actions::{self, Outcome, Pace};
use crate::config::Configuration;
use crate::devices::binding;
use crate::explanation::Explanation;
use crate::figures::{Ending, Figures};
use crate::profile::chosen_by;
use crate::scheduler::{Decision, Scheduler};
use crate::verdict::Plugin;
use ambient::{Ambient, Clock};
use inbox::{Inbox, News};
use kinds::{
    CSIDriver, CSINode, CSIStorageCapacity, DeviceClass, DeviceTaintRule, Key, Namespace, Node, PersistentVolume,
    PersistentVolumeClaim, Pod, PodDisruptionBudget, PodGroup, ReplicaSet, ReplicationController, ResourceClaim,
    ResourceSlice, Service, StatefulSet, StorageClass, Time,
};
use prometheus::Registry;
use runtime::{Caches, Change, Context, Controller};
use std::sync::Arc;
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;

/// So many pods are decided about before what has changed meanwhile is looked at.
const ROUND: usize = 256;
/// So many are bound by one task; tasks run beside each other.
const BUNDLE: usize = 32;
/// So many reports that nobody waits for are made at a time.
const REPORTS: usize = 8;
/// So many decisions may be under way to the API, and so many reports that nobody waits for may wait for their turn: whoever
/// can be placed does not wait behind those that cannot.
const UNDER_WAY: usize = 1024;
const UNTOLD: usize = 16 * 1024;

/// Where the scheduler of this process can be asked, while it leads.
#[derive(Clone, Debug)]
pub struct Desk(Inbox);

/// Another scheduler leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotLeading;

impl Desk {
    /// What stands in the way of a pod that waits; none if it does not wait here.
    pub async fn explain(&self, pod: Key) -> Result<Option<Explanation>, NotLeading> {
        let (answer, answered) = oneshot::channel();
        match self.0.put(News::Question(pod, answer)) {
            true => answered.await.map_err(|_| NotLeading),
            false => Err(NotLeading),
        }
    }
}

/// The scheduler as a loop, and where it can be asked.
pub fn controller(configuration: Configuration, registry: &Registry) -> (Controller, Desk) {
    let inbox = Inbox::default();
    let figures = Figures::new(registry);
    let told = |inbox: &Inbox| inbox.clone();
    let (pods, nodes, namespaces, services) = (told(&inbox), told(&inbox), told(&inbox), told(&inbox));
    let (slices, claims) = (told(&inbox), told(&inbox));
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
        .watches_changes::<Service>(move |change, _| {
            services.put(News::Service(change.clone()));
            Vec::new()
        })
        .watches_changes::<ResourceSlice>(move |change, _| {
            slices.put(News::Slice(change.clone()));
            Vec::new()
        })
        .watches_changes::<ResourceClaim>(move |change, _| {
            claims.put(News::Claim(change.clone()));
            Vec::new()
        })
        .reads::<ReplicaSet>()
        .reads::<ReplicationController>()
        .reads::<StatefulSet>()
        .reads::<PodDisruptionBudget>();
    let controller = helped_by::<PersistentVolumeClaim>(controller, &inbox, VOLUMES);
    let controller = helped_by::<PersistentVolume>(controller, &inbox, VOLUMES);
    let controller = helped_by::<StorageClass>(controller, &inbox, VOLUMES);
    let controller = helped_by::<CSINode>(controller, &inbox, VOLUMES);
    let controller = helped_by::<CSIDriver>(controller, &inbox, VOLUMES);
    let controller = helped_by::<CSIStorageCapacity>(controller, &inbox, VOLUMES);
    let controller = helped_by::<DeviceClass>(controller, &inbox, DEVICES);
    let groups = told(&inbox);
    let controller = match configuration.pod_groups {
        false => controller,
        true => controller.watches_changes::<PodGroup>(move |change, _| {
            groups.put(News::Group(change.clone()));
            Vec::new()
        }),
    };
    let rules = told(&inbox);
    let controller = match configuration.device_taint_rules {
        false => controller,
        true => controller.watches_changes::<DeviceTaintRule>(move |change, _| {
            rules.put(News::TaintRule(change.clone()));
            Vec::new()
        }),
    };
    let desk = Desk(inbox.clone());
    let controller = controller.source(move |context, _, ambient| {
        let loops =
            Loop { inbox: inbox.clone(), figures: figures.clone(), context, ambient, reporting: Arc::default() };
        let configuration = configuration.clone();
        async move { loops.run(&configuration).await }
    });
    (controller, desk)
}

/// Empty caches of everything that is looked up: for whoever decides without the API.
pub fn caches() -> Caches {
    Caches::default()
        .with::<CSIDriver>()
        .with::<CSINode>()
        .with::<CSIStorageCapacity>()
        .with::<DeviceClass>()
        .with::<PersistentVolume>()
        .with::<PersistentVolumeClaim>()
        .with::<Pod>()
        .with::<PodDisruptionBudget>()
        .with::<ReplicaSet>()
        .with::<ReplicationController>()
        .with::<ResourceClaim>()
        .with::<StatefulSet>()
        .with::<StorageClass>()
}

const VOLUMES: &[Plugin] =
    &[Plugin::VolumeBinding, Plugin::VolumeZone, Plugin::NodeVolumeLimits, Plugin::VolumeRestrictions];

const DEVICES: &[Plugin] = &[Plugin::DynamicResources, Plugin::NodeResourcesFit];

fn helped_by<K: kinds::Kind>(controller: Controller, inbox: &Inbox, plugins: &'static [Plugin]) -> Controller {
    let inbox = inbox.clone();
    controller.watches_changes::<K>(move |change, _| {
        inbox.put(News::Helps(plugins, event_of(change)));
        Vec::new()
    })
}

/// What a change is called among the events that help pods which wait.
pub(crate) fn event_of<K: kinds::Kind>(change: &Change<K>) -> String {
    let what = match (&change.old, &change.new) {
        (None, _) => "Add",
        (Some(_), Some(_)) => "Update",
        (Some(_), None) => "Delete",
    };
    format!("{}{what}", K::ID.kind)
}

/// The scheduler at work.
struct Loop {
    inbox: Inbox,
    figures: Figures,
    context: Context,
    ambient: Ambient,
    /// Held by the reports that are being made.
    reporting: Arc<tokio::sync::Mutex<()>>,
}

/// A decision, and when it was begun.
struct Attempt {
    decision: Decision,
    begun: Instant,
}

type Done = mpsc::UnboundedSender<(Pace, Outcome)>;

/// How many decisions are being carried out.
#[derive(Default)]
struct UnderWay {
    reports: usize,
    others: usize,
}

impl UnderWay {
    fn of(&mut self, pace: Pace) -> &mut usize {
        match pace {
            Pace::Idle => &mut self.reports,
            Pace::Quick | Pace::Slow => &mut self.others,
        }
    }

    /// How many more there may be, of whatever sort they turn out to be.
    fn room(&self) -> usize {
        (UNDER_WAY - self.others).min(UNTOLD - self.reports)
    }
}

/// A look at the queue that nothing asks for.
const IDLE: std::time::Duration = std::time::Duration::from_secs(60);

impl Loop {
    async fn run(&self, configuration: &Configuration) {
        let _open = self.inbox.open();
        binding::catch_up(&self.context).await;
        let mut scheduler = self.begin(configuration);
        let (done, mut outcomes) = mpsc::unbounded_channel();
        let mut under_way = UnderWay::default();
        loop {
            let now = self.ambient.clock.monotonic();
            while let Ok((pace, outcome)) = outcomes.try_recv() {
                *under_way.of(pace) -= 1;
                scheduler.carried_out(&outcome, now);
            }
            // After that, so that whatever was seen before something was carried out is known by then.
            self.inbox.take().into_iter().for_each(|news| take_in(&mut scheduler, news, now));
            let attempts = self.decide(&mut scheduler, under_way.room(), now);
            attempts.iter().for_each(|attempt| *under_way.of(actions::pace(&attempt.decision)) += 1);
            self.figures.pending(scheduler.pending());
            let idle = attempts.is_empty();
            self.carry_out(attempts, &done);
            if !idle {
                tokio::task::yield_now().await;
                continue;
            }
            let due = scheduler.queue.due().filter(|_| under_way.room() > 0).unwrap_or(now + IDLE);
            tokio::select! {
                biased;
                () = self.inbox.filled() => {}
                Some((pace, outcome)) = outcomes.recv() => {
                    *under_way.of(pace) -= 1;
                    scheduler.carried_out(&outcome, now);
                }
                () = tokio::time::sleep_until(due) => {}
            }
        }
    }

    /// A scheduler that knows what the caches do.
    fn begin(&self, configuration: &Configuration) -> Scheduler {
        let caches = &self.context.caches;
        let mut scheduler = Scheduler::counted(caches.clone(), configuration, self.figures.clone());
        for node in caches.of::<Node>().all() {
            scheduler.node_changed(&Change::new(node));
        }
        for namespace in caches.of::<Namespace>().all() {
            scheduler.namespace_changed(&Change::new(namespace));
        }
        for service in caches.of::<Service>().all() {
            scheduler.service_changed(&Change::new(service));
        }
        let now = self.ambient.clock.monotonic();
        for slice in caches.of::<ResourceSlice>().all() {
            scheduler.slice_changed(&Change::new(slice), now);
        }
        let rules = configuration.device_taint_rules.then(|| caches.of::<DeviceTaintRule>().all());
        for rule in rules.into_iter().flatten() {
            scheduler.taint_rule_changed(&Change::new(rule), now);
        }
        for claim in caches.of::<ResourceClaim>().all() {
            scheduler.claim_changed(&Change::new(claim), now);
        }
        let groups = configuration.pod_groups.then(|| caches.of::<PodGroup>().all());
        for group in groups.into_iter().flatten() {
            scheduler.group_changed(&Change::new(group));
        }
        for pod in caches.of::<Pod>().all() {
            scheduler.pod_changed(&Change::new(pod));
        }
        scheduler
    }

    /// Decides about a round of pods, and no more than there is room for.
    fn decide(&self, scheduler: &mut Scheduler, room: usize, now: Instant) -> Vec<Attempt> {
        let mut attempts = Vec::new();
        let mut begun = self.ambient.clock.monotonic();
        while attempts.len() < room.min(ROUND) {
            let Some(decision) = scheduler.next(now) else { break };
            attempts.push(Attempt { decision, begun });
            let ended = self.ambient.clock.monotonic();
            self.figures.decided(ended.duration_since(std::mem::replace(&mut begun, ended)));
        }
        attempts
    }

    fn carry_out(&self, mut attempts: Vec<Attempt>, done: &Done) {
        for (pace, size) in [(Pace::Slow, 1), (Pace::Quick, BUNDLE), (Pace::Idle, REPORTS)] {
            let mut rest = attempts.extract_if(.., |attempt| actions::pace(&attempt.decision) == pace).peekable();
            while rest.peek().is_some() {
                self.spawn(rest.by_ref().take(size).collect(), pace, done);
            }
        }
    }

    /// Carries out some decisions side by side.
    fn spawn(&self, bundle: Vec<Attempt>, pace: Pace, done: &Done) {
        let (context, done, clock) = (self.context.clone(), done.clone(), self.ambient.clock.clone());
        let (figures, reporting) = (self.figures.clone(), self.reporting.clone());
        self.ambient.tasks.spawn_until_stopped("bindings", async move {
            let _turn = match pace {
                Pace::Idle => Some(reporting.lock().await),
                Pace::Quick | Pace::Slow => None,
            };
            let now = Time::from_millis(clock.wall().0);
            let outcomes = bundle.into_iter().map(|attempt| carry_out(attempt, &context, &figures, &clock, now));
            for outcome in futures::future::join_all(outcomes).await {
                // Nobody listens any more when the scheduler has been stopped.
                let _ = done.send((pace, outcome));
            }
        });
    }
}

impl Drop for Loop {
    fn drop(&mut self) {
        self.figures.left();
    }
}

fn take_in(scheduler: &mut Scheduler, news: News, now: Instant) {
    match news {
        News::Pod(change) => scheduler.pod_changed(&change),
        News::Node(change) => scheduler.node_changed(&change),
        News::Namespace(change) => scheduler.namespace_changed(&change),
        News::Service(change) => scheduler.service_changed(&change),
        News::Slice(change) => scheduler.slice_changed(&change, now),
        News::TaintRule(change) => scheduler.taint_rule_changed(&change, now),
        News::Claim(change) => scheduler.claim_changed(&change, now),
        News::Group(change) => scheduler.group_changed(&change),
        News::Helps(plugins, event) => scheduler.helps(plugins, &event, now),
        News::Question(pod, answer) => {
            // Whoever asked may have gone.
            let _ = answer.send(scheduler.explain(&pod));
        }
    }
}

async fn carry_out(attempt: Attempt, context: &Context, figures: &Figures, clock: &Clock, now: Time) -> Outcome {
    let Attempt { decision, begun } = attempt;
    let tries = match &decision {
        Decision::Bind { tries, .. } => Some(*tries),
        Decision::Wait { .. } | Decision::Group { .. } => None,
    };
    let is_error = matches!(&decision, Decision::Wait { diagnosis, .. } if diagnosis.error.is_some());
    let outcome = actions::carry_out(decision, context, now).await;
    let ended = clock.monotonic();
    let (Outcome::Bound(pod) | Outcome::NotBound(pod) | Outcome::Told(pod)) = &outcome else { return outcome };
    let ending = match &outcome {
        Outcome::Bound(_) => Ending::Scheduled,
        Outcome::Told(_) if !is_error => Ending::Unschedulable,
        Outcome::Told(_) | Outcome::NotBound(_) | Outcome::ToldGroup => Ending::Error,
    };
    if let (Ending::Scheduled, Some(tries)) = (&ending, tries) {
        figures.placed(tries.count, ended.duration_since(tries.since));
    }
    figures.ended(ending, chosen_by(pod), ended.duration_since(begun));
    outcome
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reports_that_nobody_waits_for_take_no_room_from_bindings() {
        let mut under_way = UnderWay::default();
        *under_way.of(Pace::Idle) += UNDER_WAY;
        assert_eq!(under_way.room(), UNDER_WAY);
        *under_way.of(Pace::Quick) += UNDER_WAY;
        assert_eq!(under_way.room(), 0, "bindings are bounded");
        let reports = UnderWay { reports: UNTOLD, others: 0 };
        assert_eq!(reports.room(), 0, "and so are reports");
    }
}
