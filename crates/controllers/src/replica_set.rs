//! ReplicaSet: keeps as many pods as wanted, made from its template.
//!
//! It adopts pods that match its selector and belong to nobody, and lets go of those that no longer match. It never
//! changes a pod. Which pods go first when there are too many is [`ranking`]'s business.

use crate::workload::{candidates, claim, condition, create_pod, delete_pod, owners_of, pod_from_template};
use kinds::{Condition, Kind, Labels, Object, Pod, PodTemplate, ReplicaSet, ReplicaSetStatus, Time};
use object::{Value, json};
use runtime::{Cache, Caches, Controller, Plan, Request};
use std::sync::Arc;
use std::time::Duration;

pub(crate) mod ranking;

/// So many pods at most are created or deleted in one go. A change of mind has to wait for that long.
const BURST: usize = 2_000;

pub(crate) fn controller() -> Controller {
    Controller::new("replicaset-controller")
        .primary::<ReplicaSet>()
        .watches::<Pod>(|pod, caches| {
            owners_of(pod, &caches.of::<ReplicaSet>(), |set, labels| set.spec.selector.matches(labels))
        })
        .plans(|caches, request| observe(caches, request).map(|observed| plan(&observed, request)).unwrap_or_default())
}

/// A set of replicas of either kind: a ReplicationController differs only in how its selector is written.
pub(crate) struct Observed<Owner: Kind> {
    pub(crate) owner: Arc<Object<Owner>>,
    /// Pods that are its own, or might be.
    pub(crate) candidates: Vec<Arc<Object<Pod>>>,
    /// Pods of sets with the same owner as this one, these included: so that not all on one node stay.
    pub(crate) related: Vec<Arc<Object<Pod>>>,
}

/// What a set wants.
pub(crate) trait Replicated: Kind {
    fn replicas(&self) -> i32;
    fn min_ready_seconds(&self) -> i64;
    fn selects(&self, labels: &Labels) -> bool;
    fn template(&self) -> &PodTemplate;
    fn status(&self) -> &ReplicaSetStatus;
    /// Whether its status says how many pods are on their way out.
    const COUNTS_TERMINATING: bool;
}

impl Replicated for ReplicaSet {
    const COUNTS_TERMINATING: bool = true;

    fn replicas(&self) -> i32 {
        self.spec.replicas
    }
    fn min_ready_seconds(&self) -> i64 {
        self.spec.min_ready_seconds
    }
    fn selects(&self, labels: &Labels) -> bool {
        self.spec.selector.matches(labels)
    }
    fn template(&self) -> &PodTemplate {
        &self.spec.template
    }
    fn status(&self) -> &ReplicaSetStatus {
        &self.status
    }
}

pub(crate) fn observe(caches: &Caches, request: &Request) -> Option<Observed<ReplicaSet>> {
    let (sets, pods) = (caches.of::<ReplicaSet>(), caches.of::<Pod>());
    let owner = sets.get(&request.key)?;
    let related = match owner.metadata.controller() {
        Some(reference) => {
            sets.owned_by(&reference.uid).iter().flat_map(|set| pods.owned_by(&set.metadata.uid)).collect()
        }
        None => Vec::new(),
    };
    Some(observed(&pods, owner, related))
}

pub(crate) fn observed<Owner: Kind>(
    pods: &Cache<Pod>,
    owner: Arc<Object<Owner>>,
    related: Vec<Arc<Object<Pod>>>,
) -> Observed<Owner> {
    let candidates = candidates(pods, &owner.meta().namespace, &owner.meta().uid);
    Observed { owner, candidates, related }
}

pub(crate) fn plan<Owner: Replicated>(observed: &Observed<Owner>, request: &Request) -> Plan {
    let Observed { owner, candidates, related } = observed;
    let mut plan = Plan::default();
    let claimed = claim(&mut plan, owner, candidates, |pod| owner.selects(&pod.metadata.labels));
    let active: Vec<_> = claimed.iter().filter(|pod| pod.is_active()).cloned().collect();
    let terminating = claimed.iter().filter(|pod| pod.metadata.is_being_deleted() && !pod.is_finished()).count();
    let wanted = usize::try_from(owner.replicas()).unwrap_or(0);
    if !owner.meta().is_being_deleted() {
        let missing = wanted.saturating_sub(active.len()).min(BURST);
        if missing > 0 {
            let pod = pod_from_template(owner, owner.template());
            (0..missing).for_each(|_| create_pod(&mut plan, owner, pod.clone()));
        }
        let excess = active.len().saturating_sub(wanted).min(BURST);
        for pod in ranking::first_to_go(&active, related, excess, request.now) {
            delete_pod(&mut plan, owner, pod);
        }
    }
    let diff = i64::try_from(active.len()).unwrap_or(i64::MAX) - i64::from(owner.replicas());
    plan.status(owner, status(&***owner, &active, terminating, diff, request));
    if let Some(delay) = until_next_available(&active, owner.min_ready_seconds(), request.now) {
        plan.requeue_after(delay);
    }
    plan
}

fn status<Owner: Replicated>(
    owner: &Owner,
    active: &[Arc<Object<Pod>>],
    terminating: usize,
    diff: i64,
    request: &Request,
) -> Value {
    let count = |test: &dyn Fn(&Pod) -> bool| active.iter().filter(|pod| test(pod)).count();
    let template = &owner.template().labels;
    let labeled = count(&|pod| template.iter().all(|(key, value)| pod.metadata.labels.get(key) == Some(value)));
    let available = count(&|pod| pod.is_available(owner.min_ready_seconds(), request.now));
    let some = |number: usize| (number > 0).then_some(number);
    let conditions = conditions(&owner.status().conditions, diff, request);
    json!({
        "replicas": active.len(),
        "fullyLabeledReplicas": some(labeled),
        "readyReplicas": some(count(&Pod::is_ready)),
        "availableReplicas": some(available),
        "terminatingReplicas": Some(terminating).filter(|_| Owner::COUNTS_TERMINATING),
        "observedGeneration": Some(owner.meta().generation).filter(|generation| *generation > 0),
        "conditions": Some(conditions).filter(|conditions| !conditions.is_empty()),
    })
}

/// `ReplicaFailure` says what the API said first, for as long as the number of pods is wrong and it keeps refusing. What
/// it says names a pod, another one each time: to report that would wake this loop again, and never let it back off.
fn conditions(old: &[Condition], diff: i64, request: &Request) -> Vec<Value> {
    let Some(failure) = request.failure.as_deref().filter(|_| diff != 0) else { return Vec::new() };
    let reason = if diff < 0 { "FailedCreate" } else { "FailedDelete" };
    let known = kinds::condition(old, "ReplicaFailure").filter(|known| known.reason == reason);
    let message = known.map_or(failure, |known| known.message.as_str());
    vec![condition(old, "ReplicaFailure", "True", reason, message, request.now)]
}

/// How long until a pod that is ready counts as available.
pub(crate) fn until_next_available(pods: &[Arc<Object<Pod>>], min_ready_seconds: i64, now: Time) -> Option<Duration> {
    let waiting = pods.iter().filter(|pod| pod.is_ready() && !pod.is_available(min_ready_seconds, now));
    let since = waiting.filter_map(|pod| pod.condition("Ready")?.last_transition_time);
    since.map(|since| Time::from_seconds(since.seconds() + min_ready_seconds).since(now)).min()
}

#[cfg(test)]
mod tests {
    use super::*;
    use object::View;

    const NOW: Time = Time::from_seconds(1_767_225_600);

    fn request() -> Request {
        Request { key: kinds::Key::new("default", "web"), now: NOW, failure: None }
    }

    fn set(replicas: i32) -> Value {
        json!({
            "metadata": { "name": "web", "namespace": "default", "uid": "set", "resourceVersion": "1", "generation": 1 },
            "spec": {
                "replicas": replicas,
                "selector": { "matchLabels": { "app": "web" } },
                "template": { "metadata": { "labels": { "app": "web" } }, "spec": { "containers": [] } },
            },
            "status": { "replicas": 0 },
        })
    }

    fn pod(name: &str, app: &str, owner: &str, phase: &str) -> Arc<Object<Pod>> {
        let owners = match owner {
            "" => json!([]),
            uid => {
                json!([{ "apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": uid, "controller": true }])
            }
        };
        Arc::new(Object::of(&json!({
            "metadata": {
                "name": name, "namespace": "default", "uid": name, "resourceVersion": "5",
                "labels": { "app": app }, "ownerReferences": owners,
            },
            "status": { "phase": phase },
        })))
    }

    fn planned(set: &Value, pods: &[Arc<Object<Pod>>]) -> Plan {
        let observed =
            Observed { owner: Arc::new(Object::<ReplicaSet>::of(set)), candidates: pods.to_vec(), related: Vec::new() };
        plan(&observed, &request())
    }

    #[test]
    fn a_refusal_that_names_another_pod_each_time_is_reported_once() {
        let refused = |pod: &str| Request { failure: Some(format!("pods {pod:?} is forbidden")), ..request() };
        let first = conditions(&[], -1, &refused("web-a"));
        let known: Vec<Condition> = vec![object::from_value(&first[0]).unwrap()];
        assert_eq!(conditions(&known, -1, &refused("web-b")), first);
    }

    #[test]
    fn the_number_of_pods_comes_to_match() {
        let mine = |name: &str| pod(name, "web", "set", "Running");
        for (what, replicas, pods, expected) in [
            ("none yet", 2, vec![], vec!["create pods web-", "create pods web-"]),
            ("one too few", 2, vec![mine("a")], vec!["create pods web-", "update replicasets/status web"]),
            ("one too many", 0, vec![mine("a")], vec!["delete pods a", "update replicasets/status web"]),
            ("finished ones do not count", 1, vec![pod("a", "web", "set", "Failed")], vec!["create pods web-"]),
            (
                "an orphan is adopted",
                1,
                vec![pod("a", "web", "", "Running")],
                vec!["patch pods a", "update replicasets/status web"],
            ),
            ("others' are left alone", 0, vec![pod("a", "web", "other", "Running")], vec![]),
            (
                "one that no longer matches is let go and replaced",
                1,
                vec![pod("a", "db", "set", "Running")],
                vec!["patch pods a", "create pods web-"],
            ),
        ] {
            let mut summary = planned(&set(replicas), &pods).summary();
            summary.retain(|line| line != "update replicasets/status web" || expected.contains(&line.as_str()));
            assert_eq!(summary, expected, "{what}");
        }
    }

    #[test]
    fn a_set_that_is_being_deleted_creates_and_adopts_nothing() {
        let mut set = set(3);
        set["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
        let summary = planned(&set, &[pod("a", "web", "", "Running")]).summary();
        assert_eq!(summary, ["update replicasets/status web"]);
    }

    #[test]
    fn what_the_api_refused_is_reported_until_the_number_is_right() {
        let refused = Request { failure: Some("exceeded quota".to_owned()), ..request() };
        let failing = |replicas| Observed {
            owner: Arc::new(Object::<ReplicaSet>::of(&set(replicas))),
            candidates: Vec::new(),
            related: Vec::new(),
        };
        let reported = |plan: &Plan| match plan.writes.last() {
            Some(runtime::Write::Update { object, .. }) => object.path(&["status", "conditions"]).clone(),
            _ => Value::Null,
        };
        let conditions = reported(&plan(&failing(1), &refused));
        assert_eq!(conditions[0]["reason"], "FailedCreate");
        assert_eq!(conditions[0]["message"], "exceeded quota");
        assert_eq!(reported(&plan(&failing(0), &refused)), Value::Null);
    }

    #[test]
    fn a_pod_is_available_some_time_after_it_is_ready() {
        let mut set = set(1);
        set["spec"]["minReadySeconds"] = json!(10);
        let ready = json!({
            "metadata": {
                "name": "a", "namespace": "default", "uid": "a", "labels": { "app": "web" },
                "ownerReferences": [{ "kind": "ReplicaSet", "apiVersion": "apps/v1", "uid": "set", "controller": true }],
            },
            "status": {
                "phase": "Running",
                "conditions": [{ "type": "Ready", "status": "True", "lastTransitionTime": "2025-12-31T23:59:54Z" }],
            },
        });
        let plan = planned(&set, &[Arc::new(Object::of(&ready))]);
        assert_eq!(plan.requeue_after, Some(Duration::from_secs(4)));
        let Some(runtime::Write::Update { object, .. }) = plan.writes.last() else { panic!("{plan:?}") };
        assert_eq!(object.at("status").int("readyReplicas"), Some(1));
        assert!(!object.at("status").has("availableReplicas"));
    }
}
