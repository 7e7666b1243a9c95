//! `eviction`: a pod is deleted if the disruption budgets allow it.

use super::binding::set_condition;
use super::{Answer, answer, read, success};
use crate::context::Context;
use crate::known::Known;
use crate::verbs::{DeleteRequest, delete_object};
use crate::write::{self, Edited, Stored};
use http::StatusCode;
use object::selector::LabelSelector;
use object::{ApiError, Edit, Reason, Value, View, json};
use registry::{Committed, Object, Write};
use std::sync::Arc;

const BUDGETS: &str = "poddisruptionbudgets.policy";
/// So many pods of a budget may be on their way out without the controller having seen it.
const MAX_DISRUPTED_PODS: usize = 2000;
const MAX_ATTEMPTS: usize = 32;

pub(super) async fn create(ctx: &Context, body: &[u8]) -> Answer {
    let eviction = read(ctx, "policy/v1", "Eviction", body)?;
    let name = eviction.at("metadata").text("name");
    if !name.is_empty() && name != ctx.target.name {
        return Err(ApiError::bad_request("name in URL does not match name in Eviction object"));
    }
    let mut options = eviction.at("deleteOptions").clone();
    if ctx.query.get("dryRun").is_some() {
        options.set("dryRun", ctx.query.all("dryRun").collect::<Vec<_>>());
    }
    let request = DeleteRequest::from_options(if options.is_null() { &Value::Null } else { &options })?;
    let pod_ctx = ctx.redirected("", "v1", "pods", &ctx.target.name, "")?;
    let key = pod_ctx.hub.key(&ctx.target.namespace, &ctx.target.name);
    let pod = ctx.api.registry.get(&key).await?.ok_or_else(|| pod_ctx.not_found())?.decode();
    if !ignores_budgets(&pod) {
        claim(ctx, &pod, request.dry_run).await?;
        mark(&pod_ctx, request.dry_run).await?;
    }
    delete_object(&pod_ctx, &key, &request).await?;
    Ok(answer(ctx, StatusCode::CREATED, &success()))
}

/// Pods that do not run yet or no longer can be evicted at any time.
fn ignores_budgets(pod: &Value) -> bool {
    matches!(pod.at("status").text("phase"), "Succeeded" | "Failed" | "Pending")
        || pod.at("metadata").has("deletionTimestamp")
}

fn is_ready(pod: &Value) -> bool {
    pod.at("status").items("conditions").iter().any(|c| c.text("type") == "Ready" && c.text("status") == "True")
}

/// Takes one disruption from the budget that the pod is under, if there is one.
async fn claim(ctx: &Context, pod: &Value, dry_run: bool) -> Result<(), ApiError> {
    for _ in 0..MAX_ATTEMPTS {
        let budget = match budgets(ctx, pod).as_slice() {
            [] => return Ok(()),
            [budget] => budget.clone(),
            _ => {
                let message =
                    "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.";
                return Err(ApiError::internal(message));
            }
        };
        let Some(changed) = claimed(ctx, pod, budget.decode())? else { return Ok(()) };
        if dry_run {
            return Ok(());
        }
        let body =
            registry::encode("policy/v1", "PodDisruptionBudget", changed.as_object().unwrap_or(&Default::default()));
        let write = Write { key: budget.key.clone(), expected: Some(budget.revision), body: Some(body), ttl: None };
        match ctx.api.registry.commit(&[write]).await? {
            Committed::At(_) => return Ok(()),
            Committed::Conflict(_) => {
                ctx.catch_up().await?;
            }
        }
    }
    Err(refused(ApiError::too_many_requests(REFUSED, 10), "its disruption budget is changed too often"))
}

fn budgets(ctx: &Context, pod: &Value) -> Vec<Arc<Object>> {
    let labels = pod.at("metadata").at("labels");
    let snapshot = ctx.api.registry.cache.snapshot(BUDGETS);
    let prefix = format!("{BUDGETS}/{}/", ctx.target.namespace);
    let selects = |object: &&Arc<Object>| {
        let selector = object.decode().at("spec").at("selector").clone();
        LabelSelector::from_object(&selector)
            .is_ok_and(|selector| selector.matches(|key| labels.get(key).and_then(Value::as_str)))
    };
    snapshot.under(prefix.as_bytes(), b"").filter(selects).cloned().collect()
}

const REFUSED: &str = "Cannot evict pod as it would violate the pod's disruption budget.";

fn refused(error: ApiError, why: &str) -> ApiError {
    error.with_cause("DisruptionBudget", why, "")
}

/// The budget with this pod's disruption taken from it; none if the pod needs no leave.
fn claimed(ctx: &Context, pod: &Value, mut budget: Value) -> Result<Option<Value>, ApiError> {
    let name = budget.at("metadata").text("name").to_owned();
    let status = budget.at("status");
    let (healthy, desired) = (status.int("currentHealthy").unwrap_or(0), status.int("desiredHealthy").unwrap_or(0));
    if !is_ready(pod) {
        let policy = budget.at("spec").text("unhealthyPodEvictionPolicy");
        if policy == "AlwaysAllow" || healthy >= desired && desired > 0 {
            return Ok(None);
        }
    }
    if status.int("observedGeneration").unwrap_or(0) < budget.at("metadata").int("generation").unwrap_or(0) {
        let why = format!("The disruption budget {name} is still being processed by the server.");
        return Err(refused(ApiError::too_many_requests(REFUSED, 10), &why));
    }
    let allowed = status.int("disruptionsAllowed").unwrap_or(0);
    if allowed <= 0 {
        let why = format!("The disruption budget {name} needs {desired} healthy pods and has {healthy} currently");
        return Err(refused(ApiError::new(Reason::TooManyRequests, REFUSED), &why));
    }
    if status.at("disruptedPods").as_object().map_or(0, object::Map::len) > MAX_DISRUPTED_PODS {
        let why = format!("DisruptedPods map too big - too many evictions not confirmed by PDB controller: {name}");
        return Err(ApiError::forbidden("policy", "poddisruptionbudgets", &name, &why));
    }
    let time = ctx.now();
    let status = budget.object_or_new("status");
    status.set("disruptionsAllowed", allowed - 1);
    status.object_or_new("disruptedPods").set(pod.at("metadata").text("name"), time);
    Ok(Some(budget))
}

/// Says on the pod why it goes.
async fn mark(ctx: &Context, dry_run: bool) -> Result<(), ApiError> {
    let options = crate::options::Options {
        dry_run,
        manager: String::new(),
        validation: crate::options::FieldValidation::Ignore,
        force: None,
    };
    let time = ctx.now();
    let mut edit = |old: &Known| {
        let mut pod = old.value.clone();
        set_condition(
            &mut pod,
            json!({
                "type": "DisruptionTarget", "status": "True", "reason": "EvictionByEvictionAPI",
                "message": "Eviction API: evicting", "lastProbeTime": null, "lastTransitionTime": time,
            }),
        );
        Ok(Edited { value: pod, managers: None })
    };
    let status = ctx.redirected("", "v1", "pods", &ctx.target.name, "status")?;
    match write::update(&status, &options, &mut edit).await? {
        Stored::Object(_) | Stored::Dry(_) => Ok(()),
    }
}
