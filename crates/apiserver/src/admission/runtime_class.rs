//! RuntimeClass: a pod is charged for what its runtime needs beside it, and goes where the runtime is.

use super::{Operation, Review};
use object::{ApiError, Edit, Value, View};
use quota::Amounts;

pub(super) fn mutate(review: &mut Review<'_>) -> Result<(), ApiError> {
    if !review.is("pods", Operation::Create) {
        return Ok(());
    }
    let Some(class) = class_of(review)? else { return Ok(()) };
    let overhead = class.at("overhead").at("podFixed");
    if class.has("overhead") {
        let given = Amounts::read(review.object.at("spec").at("overhead"))?;
        if !given.is_empty() && given != Amounts::read(overhead)? {
            return Err(review.forbid(MISMATCH));
        }
        if !overhead.is_null() {
            review.object.object_or_new("spec").set("overhead", overhead.clone());
        }
    }
    if class.has("scheduling") {
        let spec = review.object.object_or_new("spec");
        let placed = place(spec, class.at("scheduling"));
        placed.map_err(|conflict| review.forbid(&conflict))?;
    }
    Ok(())
}

const MISMATCH: &str = "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead";

pub(super) fn validate(review: &mut Review<'_>) -> Result<(), ApiError> {
    if !review.is("pods", Operation::Create) {
        return Ok(());
    }
    let given = review.object.at("spec").at("overhead");
    match class_of(review)?.filter(|class| class.has("overhead")) {
        Some(class) if Amounts::read(given)? != Amounts::read(class.at("overhead").at("podFixed"))? => {
            Err(review.forbid(MISMATCH))
        }
        None if !given.is_null() => {
            Err(review.forbid("pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead"))
        }
        _ => Ok(()),
    }
}

fn class_of(review: &Review<'_>) -> Result<Option<Value>, ApiError> {
    let Some(name) = review.object.at("spec").at("runtimeClassName").as_str() else { return Ok(None) };
    match review.find(&format!("runtimeclasses.node.k8s.io/{name}")) {
        Some(class) => Ok(Some(class.decode())),
        None => Err(review.forbid(&format!("pod rejected: RuntimeClass {name:?} not found"))),
    }
}

/// Adds the selector and the tolerations of the class to those of the pod.
fn place(spec: &mut Value, scheduling: &Value) -> Result<(), String> {
    for (key, wanted) in scheduling.entries("nodeSelector") {
        let selector = spec.object_or_new("nodeSelector");
        match selector.at(key) {
            Value::Null => selector.set(key, wanted.clone()),
            given if given == wanted => {}
            given => {
                let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
                return Err(format!(
                    "conflict: runtimeClass.scheduling.nodeSelector[{key}] = {}; pod.spec.nodeSelector[{key}] = {}",
                    text(wanted),
                    text(given)
                ));
            }
        }
    }
    let tolerations = merge(spec.items("tolerations"), scheduling.items("tolerations"));
    if !tolerations.is_empty() {
        spec.set("tolerations", tolerations);
    }
    Ok(())
}

/// Both lists, without what others in them cover.
fn merge(first: &[Value], second: &[Value]) -> Vec<Value> {
    let all: Vec<&Value> = first.iter().chain(second).collect();
    let mut merged: Vec<Value> = Vec::new();
    for (at, toleration) in all.iter().enumerate() {
        let before = merged.iter().any(|other| covers(other, toleration));
        let after = all[at + 1..].iter().any(|other| other != toleration && covers(other, toleration));
        if !before && !after {
            merged.push((*toleration).clone());
        }
    }
    merged
}

/// Whether a toleration tolerates all that another does.
fn covers(wide: &Value, narrow: &Value) -> bool {
    if wide == narrow {
        return true;
    }
    let exists = wide.text("operator") == "Exists";
    let key = wide.text("key") == narrow.text("key") || wide.text("key").is_empty() && exists;
    let effect = wide.text("effect").is_empty() || wide.text("effect") == narrow.text("effect");
    let lasts = match (wide.int("tolerationSeconds"), narrow.int("tolerationSeconds")) {
        (Some(wide), Some(narrow)) => narrow <= wide,
        (Some(_), None) => false,
        (None, _) => true,
    };
    let lasts = lasts || wide.text("effect") != "NoExecute";
    let value = match wide.text("operator") {
        "Exists" => true,
        "" | "Equal" => narrow.text("operator") == "Equal" && narrow.text("value") == wide.text("value"),
        _ => false,
    };
    key && effect && lasts && value
}

#[cfg(test)]
mod tests {
    use super::*;
    use object::json;

    #[test]
    fn a_pod_goes_where_its_runtime_is() {
        let scheduling =
            json!({ "nodeSelector": { "vm": "yes" }, "tolerations": [{ "key": "vm", "operator": "Exists" }] });
        let mut spec = json!({ "nodeSelector": { "disk": "ssd" } });
        place(&mut spec, &scheduling).unwrap();
        assert_eq!(spec["nodeSelector"], json!({ "disk": "ssd", "vm": "yes" }));
        assert_eq!(spec["tolerations"], scheduling["tolerations"]);
        let conflict = "conflict: runtimeClass.scheduling.nodeSelector[vm] = yes; pod.spec.nodeSelector[vm] = no";
        assert_eq!(place(&mut json!({ "nodeSelector": { "vm": "no" } }), &scheduling), Err(conflict.to_owned()));
    }

    #[test]
    fn tolerations_that_others_cover_are_left_out() {
        let equal = json!({ "key": "a", "operator": "Equal", "value": "1", "effect": "NoSchedule" });
        let exists = json!({ "key": "a", "operator": "Exists" });
        let short = json!({ "key": "b", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 5 });
        let long = json!({ "key": "b", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 9 });
        let both = |first: &Value, second: &Value| merge(std::slice::from_ref(first), std::slice::from_ref(second));
        for (first, second, merged) in [
            (&equal, &exists, vec![&exists]),
            (&exists, &equal, vec![&exists]),
            (&short, &long, vec![&long]),
            (&equal, &short, vec![&equal, &short]),
            (&equal, &equal, vec![&equal]),
        ] {
            assert_eq!(both(first, second).iter().collect::<Vec<_>>(), merged);
        }
    }
}
