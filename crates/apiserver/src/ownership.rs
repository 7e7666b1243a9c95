//! Who owns which field after a write: managed fields, for every writer and subresource.

use crate::context::Context;
use crate::options::Options;
use object::{Edit, Value, View};
use schema::apply::{Author, FieldSet, Kind, Managers};
use std::sync::LazyLock;

/// At the resource itself nobody comes to own the status, and at the status nobody comes to own the rest.
static STATUS: LazyLock<FieldSet> = LazyLock::new(|| FieldSet::of_fields(["status"]));
static SPEC: LazyLock<FieldSet> = LazyLock::new(|| FieldSet::of_fields(["spec"]));
static NOTHING: LazyLock<FieldSet> = LazyLock::new(FieldSet::default);

pub(crate) fn reset(ctx: &Context) -> &'static FieldSet {
    match ctx.target.subresource.as_str() {
        "" if ctx.hub.subresource("status").is_some() => &STATUS,
        "status" => &SPEC,
        _ => &NOTHING,
    }
}

/// Runs `decide` with the kind and the author of a write.
pub(crate) fn deciding<T>(ctx: &Context, options: &Options, decide: impl FnOnce(&Kind<'_>, &Author<'_>) -> T) -> T {
    let (manager, time) = (ctx.manager(options), ctx.now());
    let api_version = ctx.resource.api_version();
    let kind =
        Kind { schema: ctx.hub.schema(), node: ctx.hub.node, api_version: &api_version, alike: &[], reset: reset(ctx) };
    decide(&kind, &Author { manager: &manager, subresource: &ctx.target.subresource, time: &time })
}

/// The owners of a new object; none where they cannot be told.
pub(crate) fn after_create(ctx: &Context, options: &Options, new: &Value) -> Option<Managers> {
    let sent = Managers::for_update(None, new.at("metadata").get("managedFields"), "");
    let owners = deciding(ctx, options, |kind, author| schema::apply::update(kind, author, None, new, sent));
    owners.inspect_err(|error| tracing::warn!(%error, "managed fields cannot be told")).ok()
}

/// The owners after an update. Where they cannot be told, those that were there.
pub(crate) fn after_update(ctx: &Context, options: &Options, old: &Value, new: &Value) -> Option<Managers> {
    let stored = old.at("metadata").get("managedFields");
    let sent = new.at("metadata").get("managedFields");
    let managers = Managers::for_update(stored, sent, &ctx.target.subresource);
    let owners = deciding(ctx, options, |kind, author| schema::apply::update(kind, author, Some(old), new, managers));
    match owners {
        Ok(owners) => Some(owners),
        Err(error) => {
            tracing::warn!(%error, "managed fields cannot be told");
            Managers::decode(stored).ok()
        }
    }
}

/// Takes the owners out of an object. They are kept beside it until it is stored, for speed.
pub(crate) fn set_aside(object: &mut Value) {
    object.object_or_new("metadata").remove("managedFields");
}

/// Writes owners into an object.
pub(crate) fn record(object: &mut Value, managers: Option<&Managers>) {
    let metadata = object.object_or_new("metadata");
    match managers.and_then(Managers::encode) {
        Some(fields) => metadata.set("managedFields", fields),
        None => drop(metadata.remove("managedFields")),
    }
}
