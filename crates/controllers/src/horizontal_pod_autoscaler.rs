//! HorizontalPodAutoscaler: as many replicas as what is measured asks for.
//!
//! Every quarter of a minute the figures are fetched, and each of them proposes a number; the largest counts. Then it is
//! held back: by what was recommended lately, by how fast the number may change, and by its bounds. The number is
//! written through the `scale` of the target, whatever kind that is. What became of it is reported in the next round,
//! which follows at once: a report must not say that something was done which the API then refused.
//!
//! Fetching is [`fetch`]'s business; everything else is pure, with the time and the memory of earlier rounds passed in.

mod behavior;
mod fetch;
mod metric;
mod report;
mod usage;

use behavior::{Behavior, History};
use fetch::{Kinds, Scale};
use kinds::{HorizontalPodAutoscaler, Key, Object, Pod, Selector, Time};
use metric::{Figures, Situation};
use object::{ApiError, Edit, Value};
use parking_lot::Mutex;
use report::Conditions;
use runtime::{Context, Controller, Note, Plan, Request, Write};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// How often the figures are looked at.
const PERIOD: Duration = Duration::from_secs(15);
/// How soon a new number is looked after.
const SOON: Duration = Duration::from_millis(10);

pub(crate) fn controller() -> Controller {
    let memory = Arc::new(Memory::default());
    Controller::new("horizontal-pod-autoscaler").primary::<HorizontalPodAutoscaler>().reads::<Pod>().plans_with(
        move |context, request| {
            let memory = memory.clone();
            async move { reconcile(&memory, &context, &request).await }
        },
    )
}

/// What is known between rounds and stands in no object.
#[derive(Default)]
struct Memory {
    rounds: Mutex<BTreeMap<Key, Round>>,
    /// Whose pods are whose, by autoscaler.
    selectors: Mutex<BTreeMap<Key, Selector>>,
    kinds: Kinds,
}

/// The last round of an autoscaler.
#[derive(Clone, Debug, Default)]
struct Round {
    at: Time,
    generation: i64,
    history: History,
    /// A number that was written and not yet reported.
    pending: Option<Pending>,
}

#[derive(Clone, Debug)]
struct Pending {
    at: Time,
    replicas: i32,
    /// What to report once it stands.
    status: Value,
}

struct Observed {
    autoscaler: Arc<Object<HorizontalPodAutoscaler>>,
    scale: Result<Scale, String>,
    /// The pods that the target selects; or why that cannot be said: an event's reason and the text.
    pods: Result<Vec<Arc<Object<Pod>>>, (&'static str, String)>,
    /// For each metric what was measured, or why it could not be.
    figures: Vec<Result<Figures, String>>,
}

async fn reconcile(memory: &Memory, context: &Context, request: &Request) -> Result<Plan, ApiError> {
    let key = &request.key;
    let autoscaler = context.caches.of::<HorizontalPodAutoscaler>().get(key);
    let Some(autoscaler) = autoscaler.filter(|autoscaler| !autoscaler.metadata.is_being_deleted()) else {
        memory.rounds.lock().remove(key);
        memory.selectors.lock().remove(key);
        return Ok(Plan::default());
    };
    let mut round = memory.rounds.lock().get(key).cloned().unwrap_or_default();
    if let Some(wait) = round.rest(&autoscaler, request.now) {
        let mut plan = Plan::default();
        plan.requeue_after(wait);
        return Ok(plan);
    }
    let scale = fetch::scale(&context.client, &memory.kinds, &autoscaler).await;
    let mut observed = Observed { autoscaler, scale, pods: Ok(Vec::new()), figures: Vec::new() };
    if let Some(scale) = observed.scale.as_ref().ok().filter(|_| round.pending.is_none())
        && bound(&observed.autoscaler, scale.replicas).is_none()
    {
        let all = context.caches.of::<Pod>().in_namespace(&key.namespace);
        observed.pods = memory.selected(key, &scale.selector, &all);
        if observed.pods.is_ok() {
            let (client, selector) = (&context.client, scale.selector.clone());
            for spec in &observed.autoscaler.spec.metrics {
                let figures = fetch::figures(client, &memory.kinds, &key.namespace, spec, &selector).await;
                observed.figures.push(figures);
            }
        }
    }
    let plan = plan(&observed, &mut round, request);
    memory.rounds.lock().insert(key.clone(), round);
    Ok(plan)
}

impl Round {
    /// How long until it is time for the next one, if nothing has changed.
    fn rest(&self, autoscaler: &HorizontalPodAutoscaler, now: Time) -> Option<Duration> {
        let due = self.pending.is_some() || self.generation != autoscaler.metadata.generation;
        let passed = now.since(self.at);
        (!due && passed < PERIOD).then(|| PERIOD - passed)
    }
}

impl Memory {
    /// The pods that a target selects, unless another autoscaler has some of them.
    fn selected(
        &self,
        key: &Key,
        selector: &str,
        pods: &[Arc<Object<Pod>>],
    ) -> Result<Vec<Arc<Object<Pod>>>, (&'static str, String)> {
        if selector.is_empty() {
            return Err(("SelectorRequired", "selector is required".to_owned()));
        }
        let parsed = Selector::parse(selector).map_err(|error| {
            let text = format!("couldn't convert selector into a corresponding internal selector object: {error}");
            ("InvalidSelector", text)
        })?;
        let matches =
            |selector: &Selector, pod: &Pod| selector.matches(|name| pod.metadata.labels.get(name).map(String::as_str));
        let own: Vec<_> = pods.iter().filter(|pod| matches(&parsed, pod)).cloned().collect();
        let mut selectors = self.selectors.lock();
        selectors.insert(key.clone(), parsed);
        let selecting = selectors.iter().filter(|(other, selector)| {
            other.namespace == key.namespace && own.iter().any(|pod| matches(selector, pod))
        });
        let selecting: Vec<_> =
            selecting.map(|(Key { namespace, name }, _)| format!("{{{name} {namespace}}}")).collect();
        if selecting.len() < 2 {
            return Ok(own);
        }
        let selecting = selecting.join(" ");
        Err((
            "AmbiguousSelector",
            format!("pods by selector {selector} are controlled by multiple HPAs: [{selecting}]"),
        ))
    }
}

/// What follows from the number alone, without any figures: a new number and why, or that nothing is scaled at all.
fn bound(autoscaler: &HorizontalPodAutoscaler, replicas: i32) -> Option<Option<(i32, &'static str)>> {
    let (min, max) = (min_replicas(autoscaler), autoscaler.spec.max_replicas);
    match replicas {
        0 if min != 0 => Some(None),
        _ if replicas > max => Some(Some((max, "Current number of replicas above Spec.MaxReplicas"))),
        _ if replicas < min => Some(Some((min, "Current number of replicas below Spec.MinReplicas"))),
        _ => None,
    }
}

fn min_replicas(autoscaler: &HorizontalPodAutoscaler) -> i32 {
    autoscaler.spec.min_replicas.unwrap_or(1)
}

fn plan(observed: &Observed, round: &mut Round, request: &Request) -> Plan {
    let autoscaler = &observed.autoscaler;
    let mut plan = Plan::default();
    let mut conditions = Conditions::of(autoscaler, request.now);
    (round.at, round.generation) = (request.now, autoscaler.metadata.generation);
    plan.requeue_after(PERIOD);
    let scale = match &observed.scale {
        Ok(scale) => scale,
        Err(why) => {
            plan.event(Note::warning(autoscaler, "FailedGetScale", why.as_str()));
            let message = format!("the HPA controller was unable to get the target's current scale: {why}");
            conditions.set("AbleToScale", false, "FailedGetScale", &message);
            plan.status(autoscaler, conditions.only());
            return plan;
        }
    };
    if let Some(pending) = round.pending.take() {
        plan.status(autoscaler, settled(pending, scale, &mut round.history, conditions));
        return plan;
    }
    let message = "the HPA controller was able to get the target's current scale";
    conditions.set("AbleToScale", true, "SucceededGetScale", message);
    round.history.begin(scale.replicas, request.now);
    match bound(autoscaler, scale.replicas) {
        Some(None) => {
            let message = "scaling is disabled since the replica count of the target is zero";
            conditions.set("ScalingActive", false, "ScalingDisabled", message);
            plan.status(autoscaler, conditions.status(scale.replicas, scale.replicas, &[]));
        }
        Some(Some((replicas, reason))) => {
            let rescale = Rescale { replicas, reason: reason.to_owned(), metrics: Vec::new() };
            rescale.plan(&mut plan, observed, scale, round, conditions, request.now);
        }
        None => plan_by_metrics(&mut plan, observed, scale, round, conditions, request.now),
    }
    plan
}

/// What is reported of a number that was written: that it stands, or that it does not.
fn settled(pending: Pending, scale: &Scale, history: &mut History, mut conditions: Conditions) -> Value {
    if scale.replicas == pending.replicas {
        history.settle(pending.at);
        return pending.status;
    }
    history.forget_pending();
    let message = format!(
        "the HPA controller was unable to update the target scale: it has {} replicas instead of {}",
        scale.replicas, pending.replicas
    );
    conditions.set("AbleToScale", false, "FailedUpdateScale", &message);
    conditions.only()
}

/// Lets the figures decide.
fn plan_by_metrics(
    plan: &mut Plan,
    observed: &Observed,
    scale: &Scale,
    round: &mut Round,
    mut conditions: Conditions,
    now: Time,
) {
    let autoscaler = &observed.autoscaler;
    let behavior = Behavior::of(&autoscaler.spec);
    let proposed = match &observed.pods {
        Ok(pods) => {
            let situation = Situation {
                namespace: &autoscaler.metadata.namespace,
                replicas: scale.replicas,
                reported_replicas: scale.reported_replicas,
                pods,
                tolerance: behavior.tolerance(),
                now,
            };
            metric::propose(plan, autoscaler, &observed.figures, &situation, &mut conditions)
        }
        Err((reason, why)) => {
            plan.event(Note::warning(autoscaler, reason, why.as_str()));
            let (reason, message) = match *reason {
                "SelectorRequired" => ("InvalidSelector", "the HPA target's scale is missing a selector"),
                reason => (reason, why.as_str()),
            };
            conditions.set("ScalingActive", false, reason, message);
            Err((why.clone(), Vec::new()))
        }
    };
    let proposal = match proposed {
        Ok(proposal) => proposal,
        Err((why, metrics)) => {
            plan.event(Note::warning(autoscaler, "FailedComputeMetricsReplicas", why));
            let desired = autoscaler.status.desired_replicas;
            plan.status(autoscaler, conditions.status(scale.replicas, desired, &metrics));
            return;
        }
    };
    let bounds = (min_replicas(autoscaler), autoscaler.spec.max_replicas);
    let allowed =
        behavior.normalize(&mut round.history, scale.replicas, proposal.replicas, bounds, now, &mut conditions);
    let reason = match proposal.replicas.cmp(&scale.replicas) {
        std::cmp::Ordering::Greater => format!("{} above target", proposal.metric),
        std::cmp::Ordering::Less => "All metrics below target".to_owned(),
        std::cmp::Ordering::Equal => String::new(),
    };
    if allowed == scale.replicas {
        plan.status(autoscaler, conditions.status(scale.replicas, scale.replicas, &proposal.statuses));
        return;
    }
    let rescale = Rescale { replicas: allowed, reason, metrics: proposal.statuses };
    rescale.plan(plan, observed, scale, round, conditions, now);
}

/// A new number for the target.
struct Rescale {
    replicas: i32,
    reason: String,
    /// What is reported of the metrics that led to it.
    metrics: Vec<Value>,
}

impl Rescale {
    fn plan(
        self,
        plan: &mut Plan,
        observed: &Observed,
        scale: &Scale,
        round: &mut Round,
        mut conditions: Conditions,
        now: Time,
    ) {
        let (autoscaler, Rescale { replicas, reason, metrics }) = (&observed.autoscaler, self);
        let mut object = scale.object.clone();
        object.object_or_new("spec").set("replicas", replicas);
        // Whatever else has changed about the target, this is how many it should have.
        object.object_or_new("metadata").remove("resourceVersion");
        plan.writes.push(Write::Update { id: scale.id.clone(), subresource: "scale", object, announce: None });
        let (told, failed) = (
            format!("New size: {replicas}; reason: {reason}"),
            format!("New size: {replicas}; reason: {reason}; error: {{error}}"),
        );
        plan.on_success(Note::normal(autoscaler, "SuccessfulRescale", told)).on_failure(Note::warning(
            autoscaler,
            "FailedRescale",
            failed,
        ));
        let message = format!("the HPA controller was able to update the target scale to {replicas}");
        conditions.set("AbleToScale", true, "SucceededRescale", &message);
        let mut status = conditions.status(scale.replicas, replicas, &metrics);
        status.set("lastScaleTime", now);
        round.history.scale(scale.replicas, replicas);
        round.pending = Some(Pending { at: now, replicas, status });
        plan.requeue_after(SOON);
    }
}

#[cfg(test)]
mod tests;
