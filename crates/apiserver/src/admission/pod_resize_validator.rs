//! PodResizeValidator: a pod is not resized beyond what its node could ever give.

use super::{Operation, Review};
use object::{ApiError, Value, View};
use quota::{Amounts, pod_resources};

pub(super) fn validate(review: &mut Review<'_>) -> Result<(), ApiError> {
    let resized = review.table() == "pods" && review.subresource() == "resize";
    let Some(old) = review.old.filter(|_| resized && review.operation == Operation::Update) else { return Ok(()) };
    let name = review.object.at("spec").text("nodeName");
    if name.is_empty() || review.object.at("spec") == old.at("spec") {
        return Ok(());
    }
    let Some(node) = review.find(&format!("nodes/{name}")) else {
        return Err(review.forbid(&format!("node {name:?} not found")));
    };
    let node = node.decode();
    match node.at("metadata").at("labels").text("kubernetes.io/os") {
        "" | "linux" => {}
        system => {
            let cause = format!("pod resize is only supported on linux nodes, node {name:?} is {system:?}");
            return Err(review.forbid(&cause).with_cause("UnsupportedPlatform", "", ""));
        }
    }
    match excess(review.object, node.at("status").at("allocatable"))? {
        Some(cause) => Err(review.forbid(&cause).with_cause("NodeCapacity", "", "")),
        None => Ok(()),
    }
}

fn excess(pod: &Value, allocatable: &Value) -> Result<Option<String>, ApiError> {
    let (asked, given) = (pod_resources::requested(pod)?, Amounts::read(allocatable)?);
    let mut texts = Vec::new();
    for name in ["cpu", "memory"] {
        let (asked, given) = (asked.get(name).unwrap_or_default(), given.get(name).unwrap_or_default());
        if asked > given {
            let counted = |quantity: object::Quantity| if name == "cpu" { quantity.millis() } else { quantity.units() };
            texts.push(format!("{name}, requested: {}, allocatable: {}", counted(asked), counted(given)));
        }
    }
    let text = || format!("node didn't have enough allocatable resources: {}", texts.join("; "));
    Ok((!texts.is_empty()).then(text))
}

#[cfg(test)]
mod tests {
    use super::*;
    use object::json;

    #[test]
    fn what_a_node_could_never_give_is_refused() {
        let pod = |cpu: &str| json!({ "spec": { "containers": [{ "resources": { "requests": { "cpu": cpu, "memory": "1Gi" } } }] } });
        let node = json!({ "cpu": "2", "memory": "4Gi" });
        assert_eq!(excess(&pod("2"), &node).unwrap(), None);
        let message = "node didn't have enough allocatable resources: cpu, requested: 2500, allocatable: 2000";
        assert_eq!(excess(&pod("2500m"), &node).unwrap().as_deref(), Some(message));
    }
}
