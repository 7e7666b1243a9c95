//! The one way objects are written: create and update, whatever verb or subresource asks for it.
//!
//! The order is the same for every kind: defaults, managed fields, mutating admission, prepare, validate, validating
//! admission, commit. A commit carries what it was decided on; where that has changed meanwhile, everything is decided
//! again on what is there now.

use crate::admission::{self, Operation, Review};
use crate::context::Context;
use crate::known::Known;
use crate::options::Options;
use crate::{naming, ownership};
use bytes::Bytes;
use object::field::{Error, Errors, Path};
use object::{ApiError, Edit, FieldName, Value, View};
use registry::strategy::metadata;
use registry::{Committed, Object, Write};
use schema::apply::Managers;
use std::sync::Arc;
use std::time::Duration;
use store::Revision;

/// So often a generated name is tried that is taken already.
const MAX_NAME_ATTEMPTS: usize = 8;
/// So often a write is decided again because somebody else was faster.
const MAX_ATTEMPTS: usize = 64;

/// So often, and so long each time, a pod waits for the account that every namespace gets.
const MAX_ACCOUNT_WAITS: usize = 20;
const ACCOUNT_WAIT: Duration = Duration::from_millis(50);

/// What a write led to.
#[derive(Debug)]
pub(crate) enum Stored {
    Object(Arc<Object>),
    /// What would be stored, were it not a dry run.
    Dry(Value),
}

/// An object to be stored in place of another, in the version that is stored.
#[derive(Debug)]
pub(crate) struct Edited {
    pub(crate) value: Value,
    /// The owners of its fields where apply has decided them.
    pub(crate) managers: Option<Managers>,
}

/// How a create says what it wants. Asked again if the first try fails, which is rare: making it anew then is cheaper
/// than keeping a copy each time.
pub(crate) type Maker<'a> = dyn FnMut() -> Result<Edited, ApiError> + Send + 'a;

/// Stores a new object, which has its defaults and is in the stored version.
pub(crate) async fn create(ctx: &Context, options: &Options, make: &mut Maker<'_>) -> Result<Stored, ApiError> {
    let (mut names_tried, mut account_waits) = (0, 0);
    ctx.catch_up().await?;
    for _ in 0..MAX_ATTEMPTS {
        let Edited { value: mut new, managers } = make()?;
        if account_waits < MAX_ACCOUNT_WAITS && admission::awaits_account(ctx, &new) {
            account_waits += 1;
            tokio::time::sleep(ACCOUNT_WAIT).await;
            ctx.catch_up().await?;
            continue;
        }
        let generated = new.at("metadata").text("name").is_empty();
        stamp(ctx, &mut new);
        let managers = managers.or_else(|| ownership::after_create(ctx, options, &new));
        ownership::set_aside(&mut new);
        let mut writes = Vec::new();
        admission::mutate(&mut Review::new(ctx, Operation::Create, &mut new, None, options.dry_run))?;
        ctx.check_place(&mut new)?;
        prepare(ctx, &mut new, None);
        validate(ctx, &new, None)?;
        let review = Review::new(ctx, Operation::Create, &mut new, None, options.dry_run);
        let mut review = review.with_writes(&mut writes);
        admission::validate(&mut review)?;
        admission::allocate(&mut review)?;
        if options.dry_run {
            ownership::record(&mut new, managers.as_ref());
            return Ok(Stored::Dry(new));
        }
        let name = new.at("metadata").text("name").to_owned();
        let key = ctx.hub.key(new.at("metadata").text("namespace"), &name);
        let new = Known::new(&ctx.hub, new, managers.unwrap_or_default());
        let body = new.encode(&ctx.hub);
        writes.insert(0, Write { key: key.clone(), expected: None, body: Some(body.clone()), ttl: ctx.hub.ttl });
        match ctx.api.registry.commit(&writes).await? {
            Committed::At(revision) => {
                let object = object_at(key, revision, body)?;
                ctx.api.recent.keep(&ctx.hub, &object, new);
                return Ok(Stored::Object(object));
            }
            Committed::Conflict(current) if current.first().is_some_and(Option::is_some) => {
                names_tried += 1;
                if !generated || names_tried == MAX_NAME_ATTEMPTS {
                    return Err(already_exists(ctx, &name, generated));
                }
            }
            Committed::Conflict(_) => ctx.catch_up().await?,
        }
    }
    Err(too_contended(ctx))
}

fn already_exists(ctx: &Context, name: &str, generated: bool) -> ApiError {
    let error = ApiError::already_exists(&ctx.resource.group, &ctx.resource.plural, name);
    if generated { error.with_retry_after(1) } else { error }
}

/// How an update names what it wants.
pub(crate) type Editor<'a> = dyn FnMut(&Known) -> Result<Edited, ApiError> + Send + 'a;

/// Replaces an object by what `edit` makes of it. The edit is asked again if the object has changed meanwhile.
///
/// `edit` sees and returns the stored version, resource version included. If it returns another resource version than
/// it was given, the client insists on that one.
pub(crate) async fn update(ctx: &Context, options: &Options, edit: &mut Editor<'_>) -> Result<Stored, ApiError> {
    let key = ctx.hub.key(&ctx.target.namespace, &ctx.target.name);
    let mut current = ctx.api.registry.get(&key).await?;
    for _ in 0..MAX_ATTEMPTS {
        let Some(object) = current else { return Err(ctx.not_found()) };
        let old = ctx.api.recent.take(&object);
        let edited = edit(&old)?;
        match replace(ctx, options, &object, old, edited).await? {
            Replaced::Stored(stored) => return Ok(stored),
            Replaced::Changed(now) => {
                ctx.catch_up().await?;
                current = now;
            }
        }
    }
    Err(too_contended(ctx))
}

enum Replaced {
    Stored(Stored),
    /// Somebody else was faster: this is what is there now.
    Changed(Option<Arc<Object>>),
}

async fn replace(
    ctx: &Context,
    options: &Options,
    object: &Arc<Object>,
    old: Known,
    edited: Edited,
) -> Result<Replaced, ApiError> {
    let Edited { value: mut new, managers } = edited;
    let (old, owners) = (&old.value, old.managers);
    check_preconditions(ctx, &new, old)?;
    carry_over(ctx, &mut new, old);
    let managers = managers.unwrap_or_else(|| ownership::after_update(ctx, options, old, owners, &new));
    ownership::set_aside(&mut new);
    let mut writes = Vec::new();
    admission::mutate(&mut Review::new(ctx, Operation::Update, &mut new, Some(old), options.dry_run))?;
    prepare(ctx, &mut new, Some(old));
    validate(ctx, &new, Some(old))?;
    let review = Review::new(ctx, Operation::Update, &mut new, Some(old), options.dry_run);
    let mut review = review.with_writes(&mut writes);
    admission::validate(&mut review)?;
    admission::allocate(&mut review)?;
    if options.dry_run {
        ownership::record(&mut new, Some(&managers));
        return Ok(Replaced::Stored(Stored::Dry(new)));
    }
    let gone = is_finished(ctx, &new);
    let new = Known::new(&ctx.hub, new, managers);
    let body = new.encode(&ctx.hub);
    if body == object.body() && writes.is_empty() {
        return Ok(Replaced::Stored(Stored::Object(object.clone())));
    }
    let write = Write {
        key: object.key.clone(),
        expected: Some(object.revision),
        body: (!gone).then(|| body.clone()),
        ttl: ctx.hub.ttl,
    };
    if gone {
        let (mut last, new) = (new.value.clone(), &new.value);
        let mut review = Review::new(ctx, Operation::Delete, &mut last, Some(new), false).with_writes(&mut writes);
        admission::release(&mut review)?;
    }
    writes.insert(0, write);
    Ok(match ctx.api.registry.commit(&writes).await? {
        Committed::At(revision) => {
            let object = object_at(object.key.clone(), revision, body)?;
            if !gone {
                ctx.api.recent.keep(&ctx.hub, &object, new);
            }
            Replaced::Stored(Stored::Object(object))
        }
        Committed::Conflict(current) => Replaced::Changed(current.into_iter().next().flatten()),
    })
}

/// Whether an object that is being deleted waits for nothing more.
pub(crate) fn is_finished(ctx: &Context, object: &Value) -> bool {
    let metadata = object.at("metadata");
    metadata.has("deletionTimestamp")
        && metadata.items("finalizers").is_empty()
        && metadata.int("deletionGracePeriodSeconds").unwrap_or(0) == 0
        && !ctx.hub.strategy.holds.is_some_and(|holds| holds(object))
}

pub(crate) fn object_at(key: Bytes, revision: Revision, body: Bytes) -> Result<Arc<Object>, ApiError> {
    Ok(Arc::new(Object::new(key, revision, body).map_err(ApiError::internal)?))
}

pub(crate) fn too_contended(ctx: &Context) -> ApiError {
    ctx.conflict(
        &ctx.target.name,
        "the object has been modified; please apply your changes to the latest version and try again",
    )
}

/// The system's part of the metadata of a new object.
fn stamp(ctx: &Context, new: &mut Value) {
    let metadata = new.object_or_new("metadata");
    for field in ["deletionTimestamp", "deletionGracePeriodSeconds", "selfLink", "resourceVersion", "generation"] {
        metadata.remove(field);
    }
    metadata.set("creationTimestamp", ctx.now());
    metadata.set("uid", naming::uid(&ctx.api.ambient.random));
    if metadata.text("name").is_empty() && !metadata.text("generateName").is_empty() {
        let name = naming::generate(metadata.text("generateName"), &ctx.api.ambient.random);
        metadata.set("name", name);
    }
    if ctx.hub.strategy.generation {
        metadata.set("generation", 1);
    }
    if ctx.hub.subresource("status").is_some() && new.has("status") && !ctx.hub.strategy.created_with_status {
        match schema::default_of(ctx.hub.schema(), ctx.hub.node, "status") {
            Some(status) => new.set("status", status),
            None => drop(new.remove("status")),
        }
    }
}

fn check_preconditions(ctx: &Context, new: &Value, old: &Value) -> Result<(), ApiError> {
    let (new, old) = (new.at("metadata"), old.at("metadata"));
    let name = old.text("name");
    match (new.text("uid"), old.text("uid")) {
        ("", _) => {}
        (asked, found) if asked == found => {}
        (asked, found) => {
            let cause = format!("Precondition failed: UID in precondition: {asked}, UID in object meta: {found}");
            return Err(ctx.conflict(name, &cause));
        }
    }
    match new.text("resourceVersion") {
        "" if ctx.hub.strategy.unconditional_update || ctx.info.verb != "update" => Ok(()),
        "" => {
            let path = Path::new("metadata").child("resourceVersion");
            let error = Error::invalid(&path, "", "must be specified for an update");
            Err(ApiError::invalid(&ctx.resource.group, &ctx.resource.kind, name, &[error]))
        }
        asked if asked == old.text("resourceVersion") => Ok(()),
        asked if asked.parse::<u64>().is_err() => {
            let path = Path::new("metadata").child("resourceVersion");
            let error = Error::invalid(&path, asked, "must be an unsigned integer");
            Err(ApiError::invalid(&ctx.resource.group, &ctx.resource.kind, name, &[error]))
        }
        _ => Err(too_contended(ctx)),
    }
}

/// What an update cannot change stays: the system's metadata, and whatever the subresource is not about.
fn carry_over(ctx: &Context, new: &mut Value, old: &Value) {
    const SYSTEM: [&str; 7] = [
        "uid",
        "creationTimestamp",
        "generation",
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
        "selfLink",
        "resourceVersion",
    ];
    if !new.at("metadata").is_shared_with(old.at("metadata")) {
        let metadata = new.object_or_new("metadata");
        SYSTEM.iter().for_each(|field| keep(metadata, old.at("metadata"), field));
    }
    match ctx.target.subresource.as_str() {
        "status" => {
            // Other metadata may be written along: there are loops that may report and nothing else, and hold an object
            // back until they have cleaned up after it.
            if new.at("metadata").at("ownerReferences") != old.at("metadata").at("ownerReferences") {
                keep(new.object_or_new("metadata"), old.at("metadata"), "ownerReferences");
            }
            let others: Vec<FieldName> = new.as_object().into_iter().flatten().map(|(name, _)| name.clone()).collect();
            let before = old.as_object().into_iter().flatten().map(|(name, _)| name.clone());
            for field in others.into_iter().chain(before) {
                if !matches!(field.as_str(), "status" | "metadata" | "kind" | "apiVersion") {
                    keep(new, old, &field);
                }
            }
            if let Some(prepare) = ctx.hub.strategy.prepare_status {
                prepare(new, old);
            }
        }
        "" if ctx.hub.subresource("status").is_some() => keep(new, old, "status"),
        subresource => {
            if let Some(part) = ctx.hub.strategy.part(subresource) {
                (part.prepare)(new, old);
            }
        }
    }
}

fn keep(new: &mut Value, old: &Value, field: &str) {
    match old.at(field) {
        Value::Null => drop(new.remove(field)),
        value if new.at(field) == value => {}
        value => new.set(field, value.clone()),
    }
}

fn prepare(ctx: &Context, new: &mut Value, old: Option<&Value>) {
    if ctx.target.subresource.is_empty()
        && let Some(prepare) = ctx.hub.strategy.prepare
    {
        prepare(new, old);
    }
    ctx.hub.withhold(new, old);
    if let Some(old) = old
        && ctx.hub.strategy.generation
        && (differs_in_substance(new, old)
            || ctx.hub.strategy.generation_of_annotations
                && ctx.target.subresource.is_empty()
                && annotations_differ(new, old))
    {
        let generation = old.at("metadata").int("generation").unwrap_or(0) + 1;
        new.object_or_new("metadata").set("generation", generation);
    }
}

fn annotations_differ(new: &Value, old: &Value) -> bool {
    let annotations = |value: &Value| value.path(&["metadata", "annotations"]).as_object().cloned().unwrap_or_default();
    annotations(new) != annotations(old)
}

/// Whether anything has changed that is neither metadata nor status.
fn differs_in_substance(new: &Value, old: &Value) -> bool {
    let (Some(new_fields), Some(old_fields)) = (new.as_object(), old.as_object()) else { return false };
    new_fields.keys().chain(old_fields.keys()).any(|name| match name.as_str() {
        "metadata" | "status" | "kind" | "apiVersion" => false,
        name => new.at(name) != old.at(name),
    })
}

fn validate(ctx: &Context, new: &Value, old: Option<&Value>) -> Result<(), ApiError> {
    let mut errors = Errors::new();
    let strategy = ctx.hub.strategy;
    metadata::validate(
        new.at("metadata"),
        ctx.hub.is_namespaced(),
        strategy.name,
        old.map(|old| old.at("metadata")),
        &mut errors,
    );
    match (ctx.target.subresource.as_str(), old) {
        ("status", Some(old)) => {
            if let Some(validate) = strategy.validate_status {
                validate(new, old, &mut errors);
            }
        }
        ("" | "scale", old) => {
            if let Some(validate) = strategy.validate {
                validate(new, old, &mut errors);
            }
            if let Some(warn) = strategy.warn.filter(|_| errors.is_empty()) {
                warn(new, old).into_iter().for_each(|warning| ctx.warn(warning));
            }
        }
        (subresource, Some(old)) => {
            if let Some(part) = strategy.part(subresource) {
                (part.validate)(new, old, &mut errors);
            }
        }
        (_, None) => {}
    }
    if errors.is_empty() {
        return Ok(());
    }
    let name = match new.at("metadata").text("name") {
        "" => new.at("metadata").text("generateName"),
        name => name,
    };
    Err(ApiError::invalid(&ctx.hub.group, &ctx.hub.kind, name, &errors))
}
