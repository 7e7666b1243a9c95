//! `delete` and `deletecollection`.
//!
//! An object goes at once if nothing holds it. Otherwise it is marked, and goes when its grace period is over and the
//! last finalizer is gone.

use crate::admission::{self, Operation, Review};
use crate::body::Body;
use crate::context::Context;
use crate::decode;
use crate::known::Known;
use crate::media::{self, Format};
use crate::options::dry_run;
use crate::render::{self, Page};
use crate::write::{self, Stored};
use bytes::Bytes;
use http::{Response, StatusCode, header};
use object::field::{Error, Path};
use object::{ApiError, Edit, Reason, Value, View, json, time};
use registry::{Committed, Object, Resource, Write};
use std::sync::Arc;

const MAX_ATTEMPTS: usize = 64;
const ORPHAN: &str = "orphan";
const FOREGROUND: &str = "foregroundDeletion";

/// How something is to be deleted.
#[derive(Clone, Debug, Default)]
pub(crate) struct DeleteRequest {
    pub(crate) dry_run: bool,
    pub(crate) grace_seconds: Option<i64>,
    pub(crate) uid: Option<String>,
    pub(crate) resource_version: Option<String>,
    propagation: Option<Propagation>,
    /// The deprecated way of saying how.
    orphan_dependents: Option<bool>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Propagation {
    Orphan,
    Background,
    Foreground,
}

impl DeleteRequest {
    /// From the body, or from query parameters where there is none.
    fn read(ctx: &Context, body: &[u8]) -> Result<Self, ApiError> {
        let format = match body.is_empty() {
            true => Format::Json,
            false => media::content_type(ctx.header(header::CONTENT_TYPE))?,
        };
        let mut options = decode::delete_options(format, body)?;
        let number = |name: &str| ctx.query.get(name).map(|text| text.parse::<i64>()).transpose();
        let grace = number("gracePeriodSeconds")
            .map_err(|error| ApiError::bad_request(format!("gracePeriodSeconds: {error}")))?;
        if let Some(seconds) = grace {
            options.set_default("gracePeriodSeconds", seconds);
        }
        if let Some(policy) = ctx.query.get("propagationPolicy") {
            options.set_default("propagationPolicy", policy);
        }
        if ctx.query.has("orphanDependents") {
            options.set_default("orphanDependents", ctx.query.flag("orphanDependents"));
        }
        if ctx.query.get("dryRun").is_some() {
            options.set_default("dryRun", ctx.query.all("dryRun").collect::<Vec<_>>());
        }
        DeleteRequest::from_options(&options)
    }

    pub(crate) fn from_options(options: &Value) -> Result<Self, ApiError> {
        let mut errors = Vec::new();
        let path = Path::new("propagationPolicy");
        let propagation = match options.at("propagationPolicy").as_str() {
            None | Some("") => None,
            Some("Orphan") => Some(Propagation::Orphan),
            Some("Background") => Some(Propagation::Background),
            Some("Foreground") => Some(Propagation::Foreground),
            Some(other) => {
                let supported = ["Foreground", "Background", "Orphan", "nil"];
                errors.push(Error::not_supported(&path, other, &supported));
                None
            }
        };
        if propagation.is_some() && options.has("orphanDependents") {
            let detail = "orphanDependents and deletionPropagation cannot be both set";
            errors.push(Error::invalid(&path, options.at("propagationPolicy").clone(), detail));
        }
        let dry_run = dry_run(options.items("dryRun").iter().filter_map(Value::as_str), &mut errors);
        if !errors.is_empty() {
            return Err(ApiError::invalid("meta.k8s.io", "DeleteOptions", "", &errors));
        }
        let condition = |field: &str| options.at("preconditions").at(field).as_str().map(str::to_owned);
        Ok(DeleteRequest {
            dry_run,
            grace_seconds: options.int("gracePeriodSeconds"),
            uid: condition("uid"),
            resource_version: condition("resourceVersion"),
            propagation,
            orphan_dependents: options.at("orphanDependents").as_bool(),
        })
    }

    fn check(&self, ctx: &Context, object: &Object, value: &Value) -> Result<(), ApiError> {
        let metadata = value.at("metadata");
        let failed = |what: &str, asked: &str, found: &str, perhaps: &str| {
            let cause = format!(
                "the {what} in the precondition ({asked}) does not match the {what} in record ({found}). The object might have been {perhaps}"
            );
            Err(ApiError::conflict(&ctx.resource.group, &ctx.resource.kind, object.name(), &cause))
        };
        match (&self.uid, &self.resource_version) {
            (Some(uid), _) if uid != metadata.text("uid") => {
                failed("UID", uid, metadata.text("uid"), "deleted and then recreated")
            }
            (_, Some(version)) if version != metadata.text("resourceVersion") => {
                failed("ResourceVersion", version, metadata.text("resourceVersion"), "modified")
            }
            _ => Ok(()),
        }
    }

    /// The finalizers that decide what becomes of the objects it owns.
    fn finalizers(&self, resource: &Resource, current: &[Value]) -> Vec<Value> {
        let own = |value: &&Value| **value == ORPHAN || **value == FOREGROUND;
        let policy = match (self.propagation, self.orphan_dependents) {
            (Some(policy), _) => policy,
            (None, Some(true)) => Propagation::Orphan,
            (None, Some(false)) => Propagation::Background,
            (None, None) if !current.iter().any(|value| own(&value)) && orphans_by_default(resource) => {
                Propagation::Orphan
            }
            (None, None) => return current.to_vec(),
        };
        let mut finalizers: Vec<Value> = current.iter().filter(|value| !own(value)).cloned().collect();
        match policy {
            Propagation::Orphan => finalizers.push(json!(ORPHAN)),
            Propagation::Foreground => finalizers.push(json!(FOREGROUND)),
            Propagation::Background => {}
        }
        finalizers
    }
}

/// Kinds that leave their pods behind unless told otherwise, as they did before there was garbage collection.
fn orphans_by_default(resource: &Resource) -> bool {
    matches!((resource.group.as_ref(), resource.plural.as_ref()), ("", "replicationcontrollers") | ("batch", "jobs"))
}

/// Kinds that answer a deletion with the object, as they always have.
const ANSWERED_WITH_THE_OBJECT: [&str; 17] = [
    "pods",
    "services",
    "persistentvolumes",
    "persistentvolumeclaims",
    "podtemplates",
    "resourcequotas",
    "serviceaccounts",
    "deviceclasses",
    "devicetaintrules",
    "resourceclaims",
    "resourceclaimtemplates",
    "resourceslices",
    "csidrivers",
    "csinodes",
    "storageclasses",
    "volumeattachments",
    "volumeattributesclasses",
];

/// Whether the answer to a deletion is the object, and not that it succeeded.
pub(crate) fn answers_with_the_object(resource: &Resource) -> bool {
    resource.is_builtin() && ANSWERED_WITH_THE_OBJECT.contains(&resource.plural.as_ref())
}

pub(crate) async fn delete(ctx: &Context, body: Bytes) -> Result<Response<Body>, ApiError> {
    let request = DeleteRequest::read(ctx, &body)?;
    let key = ctx.hub.key(&ctx.target.namespace, &ctx.target.name);
    let (stored, gone) = delete_object(ctx, &key, &request).await?;
    if gone && !answers_with_the_object(&ctx.resource) {
        let uid = match &stored {
            Stored::Object(object) => object.decode().at("metadata").text("uid").to_owned(),
            Stored::Dry(value) => value.at("metadata").text("uid").to_owned(),
        };
        let status = render::success(&ctx.resource, &ctx.target.name, &uid);
        return Ok(render::respond(ctx.viewer.accept.format, StatusCode::OK, &status, ctx.viewer.pretty));
    }
    let code = match gone || request.orphan_dependents != Some(false) {
        true => StatusCode::OK,
        false => StatusCode::ACCEPTED,
    };
    Ok(super::stored(ctx, code, stored))
}

/// Deletes one object, or marks it. The second value tells whether it is gone.
pub(crate) async fn delete_object(
    ctx: &Context,
    key: &Bytes,
    request: &DeleteRequest,
) -> Result<(Stored, bool), ApiError> {
    let mut current = ctx.api.registry.get(key).await?;
    for _ in 0..MAX_ATTEMPTS {
        let Some(object) = current else { return Err(ctx.not_found()) };
        let Known { value: old, managers } = ctx.api.recent.take(&object);
        request.check(ctx, &object, &old)?;
        let mut writes = Vec::new();
        let mut gone = old.clone();
        let mut review = Review::new(ctx, Operation::Delete, &mut gone, Some(&old), request.dry_run);
        admission::mutate(&mut review)?;
        admission::validate(&mut review)?;
        let Some(marked) = mark(ctx, &old, request) else {
            // It is being deleted already, and this request changes nothing about that.
            return Ok((Stored::Object(object), false));
        };
        let finished = write::is_finished(ctx, &marked);
        let marked = Known::new(&ctx.hub, marked, managers);
        if request.dry_run {
            return Ok((Stored::Dry(marked.whole()), finished));
        }
        let body = (!finished).then(|| marked.encode(&ctx.hub));
        if finished {
            let mut review = Review::new(ctx, Operation::Delete, &mut gone, Some(&old), false).with_writes(&mut writes);
            admission::release(&mut review)?;
        }
        let write = Write { key: key.clone(), expected: Some(object.revision), body: body.clone(), ttl: ctx.hub.ttl };
        writes.insert(0, write);
        match ctx.api.registry.commit(&writes).await? {
            Committed::At(revision) => {
                let object = match body {
                    Some(body) => {
                        let object = write::object_at(key.clone(), revision, body)?;
                        ctx.api.recent.keep(&ctx.hub, &object, marked);
                        object
                    }
                    None => Arc::new(object.at(revision)),
                };
                return Ok((Stored::Object(object), finished));
            }
            Committed::Conflict(now) => current = now.into_iter().next().flatten(),
        }
    }
    Err(write::too_contended(ctx))
}

/// The object as it is once it is being deleted; none if it is so already.
fn mark(ctx: &Context, old: &Value, request: &DeleteRequest) -> Option<Value> {
    let before = old.at("metadata");
    let grace = ctx.hub.strategy.grace.map_or(0, |grace| grace(old, request.grace_seconds));
    let finalizers = request.finalizers(&ctx.resource, before.items("finalizers"));
    let mut new = old.clone();
    let metadata = new.object_or_new("metadata");
    let now = ctx.now_seconds();
    let ends = |seconds: i64| time::format(now.saturating_add(seconds)).unwrap_or_default();
    if before.has("deletionTimestamp") {
        // Grace can be shortened, never extended.
        let left = before.int("deletionGracePeriodSeconds").unwrap_or(0);
        let unchanged = grace >= left && finalizers.as_slice() == before.items("finalizers");
        if unchanged && !write::is_finished(ctx, old) {
            return None;
        }
        if grace < left {
            metadata.set("deletionTimestamp", ends(grace));
            metadata.set("deletionGracePeriodSeconds", grace);
        }
    } else {
        metadata.set("deletionTimestamp", ends(grace));
        metadata.set("deletionGracePeriodSeconds", grace);
        if let Some(generation) = before.int("generation").filter(|generation| *generation > 0) {
            metadata.set("generation", generation + 1);
        }
    }
    match finalizers.is_empty() {
        true => drop(metadata.remove("finalizers")),
        false => metadata.set("finalizers", finalizers),
    }
    if let Some(mark) = ctx.hub.strategy.mark_deleted {
        mark(&mut new);
    }
    Some(new)
}

/// Deletes what a list with the same parameters shows, and answers with that list.
pub(crate) async fn delete_collection(ctx: &Context, body: Bytes) -> Result<Response<Body>, ApiError> {
    let request = DeleteRequest::read(ctx, &body)?;
    let selection = super::list::selection(ctx)?;
    let cache = &ctx.api.registry.cache;
    ctx.catch_up().await?;
    let snapshot = cache.snapshot(&ctx.hub.table);
    let selected: Vec<_> =
        snapshot.under(selection.prefix(), &[]).filter(|object| selection.contains(object)).cloned().collect();
    let mut items = Vec::with_capacity(selected.len());
    // One group of commits rather than one after the other; the store bounds how many are open.
    const AT_ONCE: usize = 32;
    for group in selected.chunks(AT_ONCE) {
        let deletions = group.iter().map(|object| delete_object(ctx, &object.key, &request));
        for (object, deleted) in group.iter().zip(futures::future::join_all(deletions).await) {
            match deleted {
                Ok((Stored::Object(object), _)) => items.push(object),
                Ok((Stored::Dry(_), _)) => items.push(object.clone()),
                // Somebody else was faster.
                Err(error) if error.reason() == Reason::NotFound => {}
                Err(error) => return Err(error),
            }
        }
    }
    let page = Page { revision: cache.revision(), items, token: None, remaining: None };
    let is_custom = matches!(ctx.resource.schema, registry::SchemaRef::Custom(_));
    Ok(ctx.viewer.list(page, is_custom))
}
