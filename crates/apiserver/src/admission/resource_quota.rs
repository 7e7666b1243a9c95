//! ResourceQuota: a namespace uses no more than it is granted.
//!
//! What is used stands in the status of the quota, and is written in the same transaction as the object that uses it.
//! Whoever is second finds the quota changed and is decided again, so a quota is never exceeded by two at once. What
//! is given back is counted by the controller of quotas.

use super::{Operation, Review};
use object::{ApiError, Edit, Value, View};
use quota::{Amounts, Counted, applies};
use registry::{Object, Write};
use std::sync::Arc;

const QUOTAS: &str = "resourcequotas";

pub(super) fn validate(review: &mut Review<'_>) -> Result<(), ApiError> {
    if !review.ctx.hub.is_namespaced() || review.operation == Operation::Delete {
        return Ok(());
    }
    let quotas = review.beside(QUOTAS);
    if quotas.is_empty() {
        return Ok(());
    }
    // The table is borrowed from the request, so that the review can be added to.
    let ctx = review.ctx;
    let Some(counted) = Counted::of(&ctx.hub.table) else { return Ok(()) };
    if !changes_usage(review, counted) {
        return Ok(());
    }
    for quota in quotas {
        if let Some(body) = charge(review, counted, &quota)?
            && !review.dry_run
        {
            review.also(Write { key: quota.key.clone(), expected: Some(quota.revision), body: Some(body), ttl: None });
        }
    }
    Ok(())
}

/// Whether a write can use more than before.
fn changes_usage(review: &Review<'_>, counted: Counted<'_>) -> bool {
    let deadline = |pod: &Value| pod.at("spec").int("activeDeadlineSeconds").is_some_and(|seconds| seconds >= 0);
    match (review.subresource(), review.operation, review.old) {
        ("", Operation::Create, _) => true,
        ("", Operation::Update, Some(old)) => match counted {
            Counted::Pods => deadline(review.object) != deadline(old),
            Counted::Services | Counted::Claims | Counted::DeviceClaims => true,
            Counted::Others(_) => false,
        },
        ("resize", Operation::Update, _) => counted == Counted::Pods,
        ("status", Operation::Update, Some(old)) => counted.status_matters(review.object, old),
        _ => false,
    }
}

/// What becomes of a quota if the object is written; none if it stays as it is.
fn charge(review: &Review<'_>, counted: Counted<'_>, quota: &Arc<Object>) -> Result<Option<bytes::Bytes>, ApiError> {
    let mut value = quota.decode();
    let now = review.ctx.now_seconds();
    let hard = granted(&value)?;
    let limited = hard.only(|name| counted.counts(name));
    if limited.is_empty() || !applies(&value, counted, review.object) {
        return Ok(None);
    }
    if let Some(unsaid) = counted.unsaid(review.object, limited.names()) {
        return Err(review.forbid(&format!("failed quota: {}: {unsaid}", quota.name())));
    }
    let usage = counted.usage(review.object, now)?;
    let negative: Vec<_> = usage.iter().filter(|(_, quantity)| quantity.is_negative()).map(|(name, _)| name).collect();
    if !negative.is_empty() {
        return Err(review.forbid(&format!("quota usage is negative for resource(s): {}", negative.join(","))));
    }
    let before = match review.old {
        Some(old) if applies(&value, counted, old) => counted.usage(old, now)?,
        _ => Amounts::default(),
    };
    let requested = usage.beyond(&before).only(|name| hard.has(name));
    if requested.is_empty() {
        return Ok(None);
    }
    let mut used = Amounts::read(value.at("status").at("used"))?;
    if limited.names().any(|name| !used.has(name)) {
        let counted_now = count(review, counted, &value, now)?;
        for name in limited.names().filter(|name| !used.has(name)).map(str::to_owned).collect::<Vec<_>>() {
            used.set(name.as_str(), counted_now.get(&name).unwrap_or_default());
        }
    }
    let mut total = used.clone();
    total.add(&requested);
    if review.subresource() != "status" {
        check(review, quota.name(), &hard, &used, &requested, &total)?;
    }
    value.object_or_new("status").set("used", total.to_value());
    let fields = value.as_object().ok_or_else(|| ApiError::internal("a quota is no object"))?;
    Ok(Some(registry::encode("v1", "ResourceQuota", fields)))
}

/// What a quota grants: as its controller has acknowledged it, or as it says where nobody has yet.
fn granted(quota: &Value) -> Result<Amounts, ApiError> {
    match quota.at("status").has("hard") {
        true => Amounts::read(quota.at("status").at("hard")),
        false => Amounts::read(quota.at("spec").at("hard")),
    }
}

/// What the objects that are there use, for a quota that nobody has counted yet.
fn count(review: &Review<'_>, counted: Counted<'_>, quota: &Value, now: i64) -> Result<Amounts, ApiError> {
    let objects: Vec<Value> = review.beside(review.table()).iter().map(|object| object.decode()).collect();
    quota::used(quota, counted, &objects, now)
}

fn check(
    review: &Review<'_>,
    quota: &str,
    hard: &Amounts,
    used: &Amounts,
    requested: &Amounts,
    total: &Amounts,
) -> Result<(), ApiError> {
    let exceeds = |name: &str| {
        requested.has(name) && total.get(name).zip(hard.get(name)).is_some_and(|(total, hard)| total > hard)
    };
    let excess = requested.only(exceeds);
    if excess.is_empty() {
        return Ok(());
    }
    let (used, hard) = (used.only(exceeds), hard.only(exceeds));
    Err(review.forbid(&format!("exceeded quota: {quota}, requested: {excess}, used: {used}, limited: {hard}")))
}
