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
    let mut owners = Managers::default().for_update(new.at("metadata").get("managedFields"), "");
    let told = deciding(ctx, options, |kind, author| schema::apply::update(kind, author, None, new, &mut owners));
    told.inspect_err(|error| tracing::warn!(%error, "managed fields cannot be told")).ok().map(|()| owners)
}

/// The owners after an update. Where they cannot be told, those that were there.
pub(crate) fn after_update(ctx: &Context, options: &Options, old: &Value, owners: Managers, new: &Value) -> Managers {
    let sent = new.at("metadata").get("managedFields");
    let mut owners = owners.for_update(sent, &ctx.target.subresource);
    let told = deciding(ctx, options, |kind, author| schema::apply::update(kind, author, Some(old), new, &mut owners));
    if let Err(error) = told {
        tracing::warn!(%error, "managed fields cannot be told");
    }
    owners
}

/// Takes the owners out of an object. They are kept beside it until it is stored, for speed.
pub(crate) fn set_aside(object: &mut Value) -> Value {
    match object.at("metadata").has("managedFields") {
        true => object.object_or_new("metadata").remove("managedFields"),
        false => Value::Null,
    }
}

/// Writes owners into an object.
pub(crate) fn record(object: &mut Value, managers: Option<&Managers>) {
    let metadata = object.object_or_new("metadata");
    match managers.and_then(Managers::encode) {
        Some(fields) => metadata.set("managedFields", fields),
        None => drop(metadata.remove("managedFields")),
    }
}
