//! PodTopologyLabels: a pod that is assigned to a node carries the zone and the region of the node as labels.

use super::{NODES, Operation, Review};
use object::{ApiError, Edit, View};

const LABELS: [&str; 2] = ["topology.kubernetes.io/zone", "topology.kubernetes.io/region"];

pub(super) fn mutate(review: &mut Review<'_>) -> Result<(), ApiError> {
    let bound = review.table() == "pods" && review.subresource() == "binding";
    if !bound && !review.is("pods", Operation::Create) {
        return Ok(());
    }
    let Some(node) = Some(review.object.at("spec").text("nodeName")).filter(|name| !name.is_empty()) else {
        return Ok(());
    };
    // A node that is not there has no labels; whether a pod may name it is for others to say.
    let Some(node) = review.find(&format!("nodes/{node}")) else { return Ok(()) };
    for label in LABELS {
        if let Some(value) = node.label(&NODES, label) {
            review.object.object_or_new("metadata").object_or_new("labels").set(label, value);
        }
    }
    Ok(())
}
