//! Whether what is matches what is wanted, worked out from the objects alone and without any of the loops' code.

use super::World;
use kinds::{
    CronJob, DaemonSet, Deployment, Job, Kind, Meta, Node, Object, Pod, ReplicaSet, ReplicaSetStatus,
    ReplicationController, StatefulSet,
};
use runtime::ListOptions;
use std::collections::BTreeSet;

/// Everything there is, of the kinds that users edit.
struct Observed {
    pods: Vec<Object<Pod>>,
    nodes: Vec<Object<Node>>,
    sets: Vec<Object<ReplicaSet>>,
    controllers: Vec<Object<ReplicationController>>,
    deployments: Vec<Object<Deployment>>,
    stateful_sets: Vec<Object<StatefulSet>>,
    daemon_sets: Vec<Object<DaemonSet>>,
    jobs: Vec<Object<Job>>,
    cron_jobs: Vec<Object<CronJob>>,
}

/// Everything that is not as it should be.
pub(super) async fn problems(world: &World) -> Vec<String> {
    let observed = Observed {
        pods: list(world).await,
        nodes: list(world).await,
        sets: list(world).await,
        controllers: list(world).await,
        deployments: list(world).await,
        stateful_sets: list(world).await,
        daemon_sets: list(world).await,
        jobs: list(world).await,
        cron_jobs: list(world).await,
    };
    let mut found = Vec::new();
    observed.belonging(&mut found);
    observed.running(&mut found);
    for set in &observed.sets {
        observed.replicated(&mut found, "replica set", &set.metadata, set.spec.replicas, &set.status);
    }
    for controller in &observed.controllers {
        let (meta, wanted) = (&controller.metadata, controller.spec.replicas);
        observed.replicated(&mut found, "replication controller", meta, wanted, &controller.status);
    }
    for deployment in &observed.deployments {
        observed.deployed(&mut found, deployment);
    }
    for set in &observed.stateful_sets {
        observed.stateful(&mut found, set);
    }
    for set in &observed.daemon_sets {
        observed.on_every_node(&mut found, set);
    }
    for job in &observed.jobs {
        observed.worked_off(&mut found, job);
    }
    found
}

async fn list<K: Kind>(world: &World) -> Vec<Object<K>> {
    world.admin.list::<K>("", &ListOptions::default()).await.expect("the administrator can list").items
}

impl Observed {
    /// Nothing is on its way out for ever, and whatever has a controller has one that is there.
    fn belonging(&self, found: &mut Vec<String>) {
        fn metas<K: Kind>(objects: &[Object<K>]) -> impl Iterator<Item = (&'static str, &Meta)> {
            let kind = std::any::type_name::<K>().rsplit("::").next().unwrap_or_default();
            objects.iter().map(move |object| (kind, object.meta()))
        }
        let all: Vec<(&str, &Meta)> = metas(&self.pods)
            .chain(metas(&self.sets))
            .chain(metas(&self.controllers))
            .chain(metas(&self.deployments))
            .chain(metas(&self.stateful_sets))
            .chain(metas(&self.daemon_sets))
            .chain(metas(&self.jobs))
            .chain(metas(&self.cron_jobs))
            .collect();
        let uids: BTreeSet<&str> = all.iter().map(|(_, meta)| meta.uid.as_str()).collect();
        for (kind, meta) in &all {
            if meta.is_being_deleted() {
                found.push(format!("{kind} {} is still being deleted", meta.name));
            }
            if let Some(owner) = meta.controller().filter(|owner| !uids.contains(owner.uid.as_str())) {
                found.push(format!("{kind} {} has lost its {}", meta.name, owner.kind));
            }
        }
    }

    fn running(&self, found: &mut Vec<String>) {
        let nodes: BTreeSet<&str> = self.nodes.iter().map(|node| node.metadata.name.as_str()).collect();
        for pod in self.pods.iter().filter(|pod| !pod.is_finished()) {
            if !pod.is_ready() || !nodes.contains(pod.spec.node_name.as_str()) {
                found.push(format!("pod {} does not run: {:?}", pod.metadata.name, pod.status.phase));
            }
        }
    }

    fn active(&self, uid: &str) -> impl Iterator<Item = &Object<Pod>> {
        self.pods.iter().filter(move |pod| pod.metadata.is_controlled_by(uid) && pod.is_active())
    }

    fn replicated(&self, found: &mut Vec<String>, kind: &str, meta: &Meta, wanted: i32, status: &ReplicaSetStatus) {
        let have = count(self.active(&meta.uid));
        let reported = (status.replicas, status.ready_replicas, status.observed_generation);
        if have != wanted || reported != (wanted, wanted, meta.generation) {
            found.push(format!("{kind} {} wants {wanted}, has {have}, and reports {status:?}", meta.name));
        }
    }

    fn deployed(&self, found: &mut Vec<String>, deployment: &Deployment) {
        let (meta, spec, status) = (&deployment.metadata, &deployment.spec, &deployment.status);
        let wanted = spec.replicas;
        let own = || self.sets.iter().filter(|set| set.metadata.is_controlled_by(&meta.uid));
        let total: i32 = own().map(|set| set.spec.replicas).sum();
        let current = own().filter(|set| set.spec.replicas > 0 || wanted == 0).any(|set| {
            let mut labels = set.spec.template.labels.clone();
            labels.remove("pod-template-hash");
            labels == spec.template.labels && set.spec.template.annotations == spec.template.annotations
        });
        let reported =
            (status.replicas, status.updated_replicas, status.available_replicas, status.observed_generation);
        if total != wanted || !current || reported != (wanted, wanted, wanted, meta.generation) {
            let name = &meta.name;
            found.push(format!("deployment {name} wants {wanted}, has {total} in its sets, and reports {status:?}"));
        }
        let limit = usize::try_from(spec.revision_history_limit.unwrap_or(10)).unwrap_or(0);
        if own().count() > limit + 1 {
            found.push(format!("deployment {} keeps {} sets", meta.name, own().count()));
        }
    }

    fn stateful(&self, found: &mut Vec<String>, set: &StatefulSet) {
        let (meta, wanted, status) = (&set.metadata, set.spec.replicas, &set.status);
        let have: BTreeSet<&str> = self.active(&meta.uid).map(|pod| pod.metadata.name.as_str()).collect();
        let names: BTreeSet<String> = (0..wanted).map(|ordinal| format!("{}-{ordinal}", meta.name)).collect();
        let current = self.active(&meta.uid).all(|pod| same_annotations(pod, &set.spec.template));
        let reported = (status.replicas, status.ready_replicas, status.updated_replicas, status.observed_generation);
        let is_wanted = have.iter().copied().eq(names.iter().map(String::as_str));
        if !is_wanted || !current || reported != (wanted, wanted, wanted, meta.generation) {
            found.push(format!("stateful set {} wants {wanted}, has {have:?}, and reports {status:?}", meta.name));
        }
        if status.current_revision != status.update_revision {
            found.push(format!("stateful set {} has not finished its update: {status:?}", meta.name));
        }
    }

    fn on_every_node(&self, found: &mut Vec<String>, set: &DaemonSet) {
        let (meta, status) = (&set.metadata, &set.status);
        let mut nodes: Vec<&str> = self.active(&meta.uid).map(|pod| pod.spec.node_name.as_str()).collect();
        nodes.sort_unstable();
        let wanted: BTreeSet<&str> = self.nodes.iter().map(|node| node.metadata.name.as_str()).collect();
        let current = self.active(&meta.uid).all(|pod| same_annotations(pod, &set.spec.template));
        let number = count(wanted.iter());
        let reported = (status.number_ready, status.updated_number_scheduled, status.observed_generation);
        if !nodes.iter().eq(wanted.iter()) || !current || reported != (number, number, meta.generation) {
            found.push(format!("daemon set {} is on {nodes:?} and reports {status:?}", meta.name));
        }
    }

    /// A job ends, and leaves nothing running; one that nothing may run for waits.
    fn worked_off(&self, found: &mut Vec<String>, job: &Job) {
        let (meta, status) = (&job.metadata, &job.status);
        let active = count(self.active(&meta.uid));
        let may_run = !job.spec.suspend && job.spec.parallelism != Some(0);
        if active > 0 || may_run && job.finished().is_none() || status.active > 0 {
            found.push(format!("job {} has {active} pods running and reports {status:?}", meta.name));
        }
        let held = |pod: &&Object<Pod>| pod.metadata.has_finalizer("batch.kubernetes.io/job-tracking");
        if job.finished().is_some()
            && self.pods.iter().filter(|pod| pod.metadata.is_controlled_by(&meta.uid)).any(|pod| held(&pod))
        {
            found.push(format!("job {} has ended and still holds pods", meta.name));
        }
        let complete =
            status.conditions.iter().any(|condition| condition.kind == "Complete" && condition.status == "True");
        if complete && job.spec.completions.is_some_and(|completions| status.succeeded < completions) {
            found.push(format!("job {} is complete with {} of its pods", meta.name, status.succeeded));
        }
    }
}

fn same_annotations(pod: &Pod, template: &kinds::PodTemplate) -> bool {
    template.annotations.iter().all(|(key, value)| pod.metadata.annotations.get(key) == Some(value))
}

fn count<T>(items: impl Iterator<Item = T>) -> i32 {
    i32::try_from(items.count()).unwrap_or(i32::MAX)
}
