//! PodGroupWorkloadExists: a group of pods that says which template it was made from says so of one that is there.

use super::{Operation, Review};
use object::{ApiError, View};

pub(super) fn validate(review: &mut Review<'_>) -> Result<(), ApiError> {
    let reference = review.object.path(&["spec", "podGroupTemplateRef", "workload"]);
    if !review.is("podgroups.scheduling.k8s.io", Operation::Create) || reference.is_null() {
        return Ok(());
    }
    let (name, template) = (reference.text("workloadName"), reference.text("podGroupTemplateName"));
    let refuse = |why: String| Err(review.forbid(&format!("PodGroup rejected: {why}")));
    let Some(workload) = review.find(&format!("workloads.scheduling.k8s.io/{}/{name}", review.namespace())) else {
        return refuse(format!("Workload {name:?} not found"));
    };
    let workload = workload.decode();
    if workload.at("metadata").has("deletionTimestamp") {
        return refuse(format!("Workload {name:?} is being deleted"));
    }
    match workload.at("spec").items("podGroupTemplates").iter().any(|known| known.text("name") == template) {
        true => Ok(()),
        false => refuse(format!("PodGroupTemplate {template:?} not found in Workload {name:?}")),
    }
}
