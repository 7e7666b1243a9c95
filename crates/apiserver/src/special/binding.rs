//! `binding`: a pod is assigned to a node, once and for good.

use super::{Answer, answer, read, success};
use crate::context::Context;
use crate::options::Options;
use crate::write::{self, Edited};
use http::StatusCode;
use object::field::{Error, Path};
use object::{ApiError, Edit, Value, View, json};

pub(super) async fn create(ctx: &Context, body: &[u8]) -> Answer {
    let options = Options::parse(&ctx.query, "CreateOptions")?;
    let binding = read(ctx, "v1", "Binding", body)?;
    let target = binding.at("target");
    let mut errors = Vec::new();
    let path = Path::new("target");
    if !matches!(target.text("kind"), "" | "Node" | "Minion") {
        errors.push(Error::not_supported(&path.child("kind"), target.text("kind"), &["Node", "<empty>"]));
    }
    if target.text("name").is_empty() {
        errors.push(Error::required(&path.child("name"), ""));
    }
    if !errors.is_empty() {
        return Err(ApiError::invalid("", "Binding", binding.at("metadata").text("name"), &errors));
    }
    let pod = of_pod(ctx, binding.at("metadata").text("name"))?;
    let time = ctx.now();
    write::update(&pod, &options, &mut |old| bound(&old.value, &binding, &time)).await?;
    Ok(answer(ctx, StatusCode::CREATED, &success()))
}

/// The same request, about the pod: a binding may be sent to the pod or to the collection of bindings.
fn of_pod(ctx: &Context, name: &str) -> Result<Context, ApiError> {
    let named = if ctx.target.name.is_empty() { name } else { &ctx.target.name };
    if !name.is_empty() && name != named {
        return Err(ApiError::bad_request("name in URL does not match name in Binding object"));
    }
    ctx.redirected("", "v1", "pods", named, "binding")
}

fn bound(old: &Value, binding: &Value, time: &str) -> Result<Edited, ApiError> {
    let name = old.at("metadata").text("name");
    let conflict = |cause: String| Err(ApiError::conflict("", "pods/binding", name, &cause));
    if old.at("metadata").has("deletionTimestamp") {
        return conflict(format!("pod {name} is being deleted, cannot be assigned to a host"));
    }
    match old.at("spec").text("nodeName") {
        "" => {}
        node => return conflict(format!("pod {name} is already assigned to node {node:?}")),
    }
    if !old.at("spec").items("schedulingGates").is_empty() {
        return conflict(format!("pod {name} has non-empty .spec.schedulingGates"));
    }
    let uid = binding.at("metadata").text("uid");
    if !uid.is_empty() && uid != old.at("metadata").text("uid") {
        return conflict(format!(
            "Precondition failed: UID in precondition: {uid}, UID in object meta: {}",
            old.at("metadata").text("uid")
        ));
    }
    let mut pod = old.clone();
    pod.object_or_new("spec").set("nodeName", binding.at("target").text("name"));
    // What was expected has come, or will not.
    pod.object_or_new("status").remove("nominatedNodeName");
    for field in ["annotations", "labels"] {
        for (key, value) in binding.at("metadata").entries(field) {
            pod.object_or_new("metadata").object_or_new(field).set(key, value.clone());
        }
    }
    set_condition(
        &mut pod,
        json!({ "type": "PodScheduled", "status": "True", "lastProbeTime": null, "lastTransitionTime": time }),
    );
    Ok(Edited { value: pod, managers: None })
}

/// Sets a condition of an object; one that keeps its status keeps the time it has had it from.
pub(super) fn set_condition(object: &mut Value, mut condition: Value) {
    let status = object.object_or_new("status");
    if !status.at("conditions").is_array() {
        status.set("conditions", json!([]));
    }
    let Some(Value::Array(conditions)) = status.get_mut("conditions") else { return };
    match conditions.iter_mut().find(|known| known.text("type") == condition.text("type")) {
        Some(known) => {
            if known.text("status") == condition.text("status") {
                condition.set("lastTransitionTime", known.at("lastTransitionTime").clone());
            }
            *known = condition;
        }
        None => conditions.push(condition),
    }
}
