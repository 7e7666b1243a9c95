//! A deployment and its sets as a model: how they are, and how they are to be.

use kinds::{Deployment, Labels, Object, ReplicaSet, ReplicaSetStatus};
use object::{Edit, Value, json};
use runtime::{Note, Plan};
use std::sync::Arc;

pub(super) struct Rollout<'a> {
    pub(super) deployment: &'a Object<Deployment>,
    /// The set with the current template, if there is one or it is to be created.
    pub(super) new: Option<Set>,
    /// All others, the oldest first.
    pub(super) old: Vec<Set>,
}

/// What is to be of a set. It is written if it differs from what was observed.
pub(super) struct Set {
    /// None if it is to be created.
    pub(super) observed: Option<Arc<Object<ReplicaSet>>>,
    pub(super) name: String,
    pub(super) replicas: i32,
    pub(super) annotations: Labels,
    pub(super) min_ready_seconds: i64,
    /// As the set reports it.
    pub(super) status: ReplicaSetStatus,
}

impl<'a> Rollout<'a> {
    pub(super) fn new(deployment: &'a Object<Deployment>, sets: &[Arc<Object<ReplicaSet>>]) -> Self {
        let mut old: Vec<_> = sets.iter().map(Set::of).collect();
        old.sort_by(|a, b| a.age().cmp(&b.age()).then_with(|| a.name.cmp(&b.name)));
        // There may be several with the same template; the oldest is taken.
        let wanted = super::revision::comparable(&deployment.spec.template.json);
        let is_new = |set: &Set| set.template().is_some_and(|template| super::revision::comparable(template) == wanted);
        let new = old.iter().position(is_new).map(|index| old.remove(index));
        Rollout { deployment, new, old }
    }

    pub(super) fn sets(&self) -> impl Iterator<Item = &Set> {
        self.old.iter().chain(&self.new)
    }

    /// Those that have pods, or are to have some.
    pub(super) fn active_mut(&mut self) -> Vec<&mut Set> {
        self.old.iter_mut().chain(&mut self.new).filter(|set| set.replicas > 0).collect()
    }

    /// The number of pods that all sets together are to have.
    pub(super) fn total(&self) -> i32 {
        self.sets().map(|set| set.replicas).sum()
    }

    pub(super) fn available(&self) -> i32 {
        self.sets().map(|set| set.status.available_replicas).sum()
    }

    /// Writes every set that is to be different, the new one first.
    pub(super) fn write(&mut self, plan: &mut Plan) {
        let (wanted, most) = (self.deployment.spec.replicas, super::size::Limits::of(self.deployment).most);
        for set in self.old.iter_mut().chain(&mut self.new).filter(|set| set.changes_size()) {
            set.note_size(wanted, most);
        }
        for set in self.new.iter().chain(&self.old) {
            match &set.observed {
                Some(observed) => set.update(plan, observed, self.deployment),
                None => self.create(plan, set),
            }
        }
    }

    fn create(&self, plan: &mut Plan, set: &Set) {
        let failed = format!("Failed to create new replica set \"{}\": {{error}}", set.name);
        plan.create::<ReplicaSet>(super::revision::object(self.deployment, set)).on_failure(Note::warning(
            self.deployment,
            "ReplicaSetCreateError",
            failed,
        ));
        if set.replicas > 0 {
            plan.on_success(set.rescaled(self.deployment, 0));
        }
    }
}

impl Set {
    fn of(observed: &Arc<Object<ReplicaSet>>) -> Self {
        Set {
            name: observed.metadata.name.clone(),
            replicas: observed.spec.replicas,
            annotations: observed.metadata.annotations.clone(),
            min_ready_seconds: observed.spec.min_ready_seconds,
            status: observed.status.clone(),
            observed: Some(observed.clone()),
        }
    }

    pub(super) fn uid(&self) -> String {
        self.observed.as_ref().map(|observed| observed.metadata.uid.clone()).unwrap_or_default()
    }

    fn template(&self) -> Option<&Value> {
        self.observed.as_ref().map(|observed| &observed.spec.template.json)
    }

    /// When it came to be; what is not there yet is the youngest.
    pub(super) fn age(&self) -> (bool, Option<kinds::Time>) {
        let created = self.observed.as_ref().and_then(|observed| observed.metadata.creation_timestamp);
        (self.observed.is_none(), created)
    }

    pub(super) fn revision(&self) -> i64 {
        self.annotations.get(super::revision::REVISION).and_then(|text| text.parse().ok()).unwrap_or(0)
    }

    /// A number that an annotation carries.
    pub(super) fn number(&self, annotation: &str) -> Option<i32> {
        self.annotations.get(annotation)?.parse().ok().filter(|number| *number >= 0)
    }

    pub(super) fn is_being_deleted(&self) -> bool {
        self.observed.as_ref().is_some_and(|observed| observed.metadata.is_being_deleted())
    }

    /// Whether it neither has pods nor is to have any, and its loop has seen that.
    pub(super) fn is_abandoned(&self) -> bool {
        let is_meant = self.observed.as_ref().is_some_and(|observed| observed.spec.replicas == 0);
        self.replicas == 0 && self.status.replicas == 0 && is_meant && !self.is_to_report()
    }

    /// Notes how large the deployment is, by which later changes of its size are told from its progress.
    pub(super) fn note_size(&mut self, wanted: i32, most: i32) {
        self.annotations.insert(super::revision::DESIRED_REPLICAS.to_owned(), wanted.to_string());
        self.annotations.insert(super::revision::MAX_REPLICAS.to_owned(), most.to_string());
    }

    /// Whether it has yet to report since it was changed.
    pub(super) fn is_to_report(&self) -> bool {
        self.observed.as_ref().is_some_and(|observed| observed.metadata.generation > self.status.observed_generation)
    }

    /// So many are available and stay: a set that was just made smaller still reports those that it is about to lose.
    pub(super) fn lasting(&self) -> i32 {
        self.status.available_replicas.min(self.replicas)
    }

    fn changes_size(&self) -> bool {
        self.observed.as_ref().is_none_or(|observed| observed.spec.replicas != self.replicas)
    }

    fn update(&self, plan: &mut Plan, observed: &Object<ReplicaSet>, deployment: &Object<Deployment>) {
        let before = observed.spec.replicas;
        let same = self.annotations == observed.metadata.annotations
            && self.min_ready_seconds == observed.spec.min_ready_seconds;
        if same && self.replicas == before {
            return;
        }
        let mut object = observed.json();
        object.object_or_new("metadata").set("annotations", json!(self.annotations));
        let spec = object.object_or_new("spec");
        spec.set("replicas", self.replicas);
        if self.min_ready_seconds != observed.spec.min_ready_seconds {
            spec.set("minReadySeconds", self.min_ready_seconds);
        }
        plan.update(observed, object);
        if self.replicas != before {
            plan.on_success(self.rescaled(deployment, before));
        }
    }

    fn rescaled(&self, deployment: &Object<Deployment>, before: i32) -> Note {
        let way = if before < self.replicas { "up" } else { "down" };
        let message = format!("Scaled {way} replica set {} from {before} to {}", self.name, self.replicas);
        Note::normal(deployment, "ScalingReplicaSet", message)
    }
}
