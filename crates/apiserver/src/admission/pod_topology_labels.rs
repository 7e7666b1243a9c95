//! PodTopologyLabels: a pod that is assigned to a node carries the zone and the region of the node as labels.

use super::{Operation, Review};
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
    let node = node.decode();
    let labels = node.at("metadata").at("labels");
    for label in LABELS.into_iter().filter(|label| labels.has(label)) {
        review.object.object_or_new("metadata").object_or_new("labels").set(label, labels.at(label).clone());
    }
    Ok(())
}
