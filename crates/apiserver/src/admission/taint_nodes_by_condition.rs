//! TaintNodesByCondition: nothing is scheduled to a node that is new, until it has said that it is ready.

use super::{Operation, Review};
use object::{ApiError, Edit, View, json};

const NOT_READY: &str = "node.kubernetes.io/not-ready";

pub(super) fn mutate(review: &mut Review<'_>) -> Result<(), ApiError> {
    if !review.is("nodes", Operation::Create) {
        return Ok(());
    }
    let spec = review.object.object_or_new("spec");
    let mut taints = spec.items("taints").to_vec();
    if !taints.iter().any(|taint| taint.text("key") == NOT_READY && taint.text("effect") == "NoSchedule") {
        taints.push(json!({ "key": NOT_READY, "effect": "NoSchedule" }));
        spec.set("taints", taints);
    }
    Ok(())
}
