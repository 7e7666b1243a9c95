//! NodeDeclaredFeatureValidator: a pod is not changed in a way that its node does not say it can follow.

use super::{Operation, Review};
use object::{ApiError, Value, View};

pub(super) fn validate(review: &mut Review<'_>) -> Result<(), ApiError> {
    let meant = review.table() == "pods" && matches!(review.subresource(), "" | "resize");
    let Some(old) = review.old.filter(|_| meant && review.operation == Operation::Update) else { return Ok(()) };
    let name = review.object.at("spec").text("nodeName");
    let required = required(old.at("spec"), review.object.at("spec"));
    if name.is_empty() || required.is_empty() {
        return Ok(());
    }
    let Some(node) = review.find(&format!("nodes/{name}")) else {
        return Err(review.forbid(&format!("node {name:?} not found")));
    };
    let node = node.decode();
    let declared = node.at("status").items("declaredFeatures");
    let missing: Vec<&str> =
        required.into_iter().filter(|feature| !declared.iter().any(|one| one == *feature)).collect();
    if missing.is_empty() {
        return Ok(());
    }
    let missing = missing.join(", ");
    Err(review.forbid(&format!("pod update requires features {missing} which are not available on node {name:?}")))
}

/// What a node has to be able to do to follow a change.
fn required(old: &Value, new: &Value) -> Vec<&'static str> {
    let mut required = Vec::new();
    if old.at("resources") != new.at("resources") {
        required.push("InPlacePodLevelResourcesVerticalScaling");
    }
    let mut pairs = old.items("initContainers").iter().zip(new.items("initContainers"));
    let is_resized =
        |old: &Value, new: &Value| old.text("restartPolicy") != "Always" && old.at("resources") != new.at("resources");
    if pairs.any(|(old, new)| is_resized(old, new)) {
        required.push("InPlacePodVerticalScalingInitContainers");
    }
    required
}

#[cfg(test)]
mod tests {
    use super::*;
    use object::json;

    #[test]
    fn resizing_a_whole_pod_or_an_init_container_takes_a_node_that_can() {
        let spec = |whole: &str, init: &str, policy: Option<&str>| {
            let resources = |cpu: &str| json!({ "requests": { "cpu": cpu } });
            json!({
                "resources": resources(whole),
                "initContainers": [{ "resources": resources(init), "restartPolicy": policy }],
            })
        };
        let sidecar = Some("Always");
        for (old, new, expected) in [
            (spec("1", "1", None), spec("1", "1", None), vec![]),
            (spec("1", "1", None), spec("2", "1", None), vec!["InPlacePodLevelResourcesVerticalScaling"]),
            (spec("1", "1", None), spec("1", "2", None), vec!["InPlacePodVerticalScalingInitContainers"]),
            (spec("1", "1", sidecar), spec("1", "2", sidecar), vec![]),
        ] {
            assert_eq!(required(&old, &new), expected);
        }
    }
}
