//! ReplicationController: a ReplicaSet whose selector is a plain map of labels.

use crate::replica_set::{Replicated, observed, plan};
use crate::workload::owners_of;
use kinds::{LabelSelector, Labels, Pod, PodTemplate, ReplicaSetStatus, ReplicationController};
use runtime::Controller;

pub(crate) fn controller() -> Controller {
    Controller::new("replication-controller")
        .primary::<ReplicationController>()
        .watches::<Pod>(|pod, caches| {
            owners_of(pod, &caches.of::<ReplicationController>(), |owner, labels| owner.selects(labels))
        })
        .plans(|caches, request| {
            let owner = caches.of::<ReplicationController>().get(&request.key);
            owner.map(|owner| plan(&observed(&caches.of::<Pod>(), owner, Vec::new()), request)).unwrap_or_default()
        })
}

impl Replicated for ReplicationController {
    const COUNTS_TERMINATING: bool = false;

    fn replicas(&self) -> i32 {
        self.spec.replicas
    }
    fn min_ready_seconds(&self) -> i64 {
        self.spec.min_ready_seconds
    }
    fn selects(&self, labels: &Labels) -> bool {
        LabelSelector::from_labels(&self.spec.selector).matches(labels)
    }
    fn template(&self) -> &PodTemplate {
        &self.spec.template
    }
    fn status(&self) -> &ReplicaSetStatus {
        &self.status
    }
}
