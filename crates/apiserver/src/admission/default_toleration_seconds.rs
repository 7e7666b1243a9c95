//! DefaultTolerationSeconds: a pod stays five minutes on a node that is not ready or cannot be reached, unless it says
//! something else.

use super::{Operation, Review};
use object::{ApiError, Edit, Value, View, json};

const TAINTS: [&str; 2] = ["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"];
const SECONDS: i64 = 300;

pub(super) fn mutate(review: &mut Review<'_>) -> Result<(), ApiError> {
    if review.is("pods", Operation::Create) || review.is("pods", Operation::Update) {
        let spec = review.object.object_or_new("spec");
        let missing = missing(spec.items("tolerations"));
        if !missing.is_empty() {
            let tolerations = spec.items("tolerations").iter().cloned().chain(missing).collect::<Vec<_>>();
            spec.set("tolerations", tolerations);
        }
    }
    Ok(())
}

fn missing(tolerations: &[Value]) -> Vec<Value> {
    let tolerates = |toleration: &Value, taint: &str| {
        let (key, effect) = (toleration.text("key"), toleration.text("effect"));
        (key.is_empty() || key == taint) && (effect.is_empty() || effect == "NoExecute")
    };
    let absent = TAINTS.iter().filter(|taint| !tolerations.iter().any(|toleration| tolerates(toleration, taint)));
    let toleration = |taint: &&str| json!({ "key": taint, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": SECONDS });
    absent.map(toleration).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_pod_says_itself_stays() {
        for (tolerations, added) in [
            (json!([]), &TAINTS[..]),
            (json!([{ "operator": "Exists" }]), &[]),
            (json!([{ "operator": "Exists", "effect": "NoSchedule" }]), &TAINTS),
            (json!([{ "key": TAINTS[0], "operator": "Exists", "effect": "NoExecute" }]), &TAINTS[1..]),
            (json!([{ "key": TAINTS[1], "operator": "Exists" }]), &TAINTS[..1]),
        ] {
            let missing = missing(tolerations.as_array().unwrap());
            let keys: Vec<_> = missing.iter().map(|toleration| toleration.text("key")).collect();
            assert_eq!(keys, added, "{tolerations}");
        }
    }
}
