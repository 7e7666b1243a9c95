//! `patch`: an object is changed by a patch of one of four kinds. The patch is worked out on what is there now, and
//! again if that has changed before the result could be stored.

use crate::body::Body;
use crate::context::Context;
use crate::decode::{self, Decoded};
use crate::known::Known;
use crate::options::{FieldValidation, Options};
use crate::ownership;
use crate::write::{self, Edited};
use bytes::Bytes;
use http::{Response, StatusCode, header};
use object::field::{Error, Path};
use object::{ApiError, Edit, FieldName, Reason, Value, View};
use schema::apply::ApplyError;
use schema::patch::{PatchError, json_patch, merge_patch, strategic_merge_patch};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Json,
    Merge,
    Strategic,
    Apply,
}

impl Kind {
    fn of(content_type: &str) -> Option<Self> {
        match content_type {
            "application/json-patch+json" => Some(Kind::Json),
            "application/merge-patch+json" => Some(Kind::Merge),
            "application/strategic-merge-patch+json" => Some(Kind::Strategic),
            "application/apply-patch+yaml" => Some(Kind::Apply),
            _ => None,
        }
    }
}

const OWNERS: &[u8] = b"managedFields";
const SUPPORTED: &str = "application/json-patch+json, application/merge-patch+json, application/strategic-merge-patch+json, application/apply-patch+yaml";

pub(crate) async fn patch(ctx: &Context, body: Bytes) -> Result<Response<Body>, ApiError> {
    let kind = kind_of(ctx)?;
    let options = Options::parse(&ctx.query, "PatchOptions")?;
    check_options(kind, &options)?;
    if kind == Kind::Apply {
        return apply(ctx, &options, &body).await;
    }
    let Decoded { value: patch, mut mistakes, .. } = decode::parse(crate::media::Format::Json, &body)?;
    if kind == Kind::Json {
        // Its fields are those of operations, not of the object.
        mistakes.iter_mut().for_each(|mistake| mistake.insert_str(0, "json patch "));
    }
    // Few patches are about owners, and to write them out for the others would be a waste.
    let of_owners = body.windows(OWNERS.len()).any(|window| window == OWNERS);
    let mut edit = |old: &Known| {
        let mut value = if of_owners { old.whole() } else { old.value.clone() };
        ctx.viewer.serve(&mut value);
        patched(ctx, kind, &mut value, &patch)?;
        finish(ctx, kind, &patch, options.validation, value, &old.value, &mistakes)
    };
    let stored = write::update(ctx, &options, &mut edit).await?;
    Ok(super::stored(ctx, StatusCode::OK, stored))
}

fn check_options(kind: Kind, options: &Options) -> Result<(), ApiError> {
    let error = match kind {
        Kind::Apply if options.manager.is_empty() => {
            Error::required(&Path::new("fieldManager"), "is required for apply patch")
        }
        Kind::Apply => return Ok(()),
        _ if options.force.is_some() => {
            Error::forbidden(&Path::new("force"), "may not be specified for non-apply patch")
        }
        _ => return Ok(()),
    };
    Err(ApiError::invalid("meta.k8s.io", "PatchOptions", "", &[error]))
}

/// Applies the patch of a request to a value of a built-in type that is not that of the resource.
pub(crate) fn patch_value(ctx: &Context, schema_type: &str, value: &mut Value, patch: &Value) -> Result<(), ApiError> {
    let refused = |error: PatchError| patch_error(&error);
    let node = schema::builtin().named(schema_type);
    let node = node.ok_or_else(|| ApiError::internal(format!("there is no type {schema_type}")))?;
    match kind_of(ctx)? {
        Kind::Json => json_patch(value, patch).map_err(refused)?,
        Kind::Merge | Kind::Apply => merge_patch(value, patch.clone()),
        Kind::Strategic => {
            strategic_merge_patch(schema::builtin(), node, value, patch.clone()).map_err(refused)?;
        }
    }
    schema::conform(schema::builtin(), node, value).map_err(ApiError::bad_request_from)?;
    Ok(())
}

fn kind_of(ctx: &Context) -> Result<Kind, ApiError> {
    let content_type = ctx.header(header::CONTENT_TYPE).unwrap_or_default();
    Kind::of(content_type.split(';').next().unwrap_or_default().trim()).ok_or_else(|| {
        let message =
            format!("the body of the request was in an unknown format - accepted media types include: {SUPPORTED}");
        ApiError::new(Reason::UnsupportedMediaType, message)
    })
}

fn patched(ctx: &Context, kind: Kind, value: &mut Value, patch: &Value) -> Result<(), ApiError> {
    let resource = &ctx.resource;
    let refused = |error: PatchError| patch_error(&error);
    match kind {
        Kind::Json => json_patch(value, patch).map_err(refused),
        Kind::Merge if !patch.is_object() => {
            Err(ApiError::bad_request(format!("error decoding patch: {}", no_object(patch))))
        }
        Kind::Strategic if !patch.is_object() => Err(ApiError::bad_request(no_object(patch))),
        Kind::Merge => {
            merge_patch(value, patch.clone());
            Ok(())
        }
        Kind::Strategic if matches!(resource.schema, registry::SchemaRef::Custom(_)) => {
            let message = "the body of the request was in an unknown format - accepted media types include: application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml";
            Err(ApiError::new(Reason::UnsupportedMediaType, message))
        }
        Kind::Strategic => {
            strategic_merge_patch(resource.schema(), resource.node, value, patch.clone()).map_err(refused)
        }
        Kind::Apply => Ok(()),
    }
}

fn no_object(patch: &Value) -> String {
    format!("json: cannot unmarshal {} into Go value of type map[string]interface {{}}", decode::type_name(patch))
}

fn patch_error(error: &PatchError) -> ApiError {
    match error {
        PatchError::TooLarge(_) => ApiError::new(Reason::RequestEntityTooLarge, error.to_string()),
        PatchError::Malformed(_) => ApiError::bad_request(error.to_string()),
        // Which operation failed is not said, here as in Kubernetes: what is said, clients print.
        PatchError::Unprocessable(_) => {
            ApiError::new(Reason::Invalid, "the server rejected our request due to an error in our request")
        }
    }
}

/// `map[spec:map[replicas:3]]`.
fn as_go_prints(value: &Value) -> String {
    let joined = |parts: Vec<String>| parts.join(" ");
    match value {
        Value::Null => "<nil>".to_owned(),
        Value::String(text) => text.clone(),
        Value::Bool(_) | Value::Number(_) => value.to_string(),
        Value::Array(items) => format!("[{}]", joined(items.iter().map(as_go_prints).collect())),
        Value::Object(fields) => {
            let field = |(name, value): (&FieldName, &Value)| format!("{name}:{}", as_go_prints(value));
            format!("map[{}]", joined(fields.iter().map(field).collect()))
        }
    }
}

/// Makes the result of a patch an object again.
fn finish(
    ctx: &Context,
    kind: Kind,
    patch: &Value,
    validation: FieldValidation,
    value: Value,
    old: &Value,
    mistakes: &[String],
) -> Result<Edited, ApiError> {
    let resource = &ctx.resource;
    let mut decoded = Decoded { mistakes: mistakes.to_vec(), ..Decoded::new(value) };
    for (field, expected) in [("apiVersion", resource.api_version()), ("kind", resource.kind.to_string())] {
        if decoded.value.text(field) != expected {
            return Err(ApiError::bad_request(format!("a patch may not change the {field} of an object")));
        }
    }
    let blame = |patched: &Value, why: String| {
        let blamed = if kind == Kind::Strategic { as_go_prints(patch) } else { patched.to_string() };
        ApiError::invalid("", "", "", &[Error::invalid(&Path::new("patch"), blamed, why)])
    };
    // What the patch has not changed is right already, unless it was stored in another version or by another schema.
    let known = if ctx.viewer.is_converted() || !resource.is_builtin() { &Value::Null } else { old };
    decode::conform_patched(resource, &mut decoded, known).map_err(|why| blame(&decoded.value, why))?;
    if validation == FieldValidation::Strict && !decoded.mistakes.is_empty() {
        return Err(blame(&decoded.value, format!("strict decoding error: {}", decoded.mistakes.join(", "))));
    }
    let mut value = ctx.accept(decoded, validation)?;
    ctx.check_place(&mut value)?;
    ctx.to_hub_changed(&mut value, known);
    Ok(Edited { value, managers: None })
}

/// Server-side apply. What is not there yet is created.
async fn apply(ctx: &Context, options: &Options, body: &[u8]) -> Result<Response<Body>, ApiError> {
    let applied = read_applied(ctx, options, body)?;
    let mut edit = |old: &Known| applied_to(ctx, options, Some(old), &applied);
    match write::update(ctx, options, &mut edit).await {
        Err(error) if error.reason() == Reason::NotFound && ctx.target.subresource.is_empty() => {
            if !applied.at("metadata").text("uid").is_empty() {
                return Err(ctx.conflict(
                    &ctx.target.name,
                    "uid mismatch: the provided object specified uid, and no existing object was found",
                ));
            }
            let mut make = || applied_to(ctx, options, None, &applied);
            let stored = write::create(ctx, options, &mut make).await?;
            Ok(super::stored(ctx, StatusCode::CREATED, stored))
        }
        stored => Ok(super::stored(ctx, StatusCode::OK, stored?)),
    }
}

/// JSON is YAML, and faster to parse; keys that are set twice are named by their lines either way.
fn parse_applied(body: &[u8]) -> Result<Decoded, ApiError> {
    let (value, lines) = match object::json::parse_strictly(body) {
        Ok((value, twice)) if twice.is_empty() => (value, Vec::new()),
        Ok((value, _)) => (value, crate::yaml::twice(&String::from_utf8_lossy(body))?),
        Err(object::json::InvalidJson::TooDeep) => {
            return Err(ApiError::bad_request(object::json::InvalidJson::TooDeep.to_string()));
        }
        Err(_) => crate::yaml::parse(body)?,
    };
    Ok(Decoded { lines, ..Decoded::new(value) })
}

/// What is applied: partial, so it conforms to the schema but has no defaults.
fn read_applied(ctx: &Context, options: &Options, body: &[u8]) -> Result<Value, ApiError> {
    let resource = &ctx.resource;
    let mut decoded = parse_applied(body)?;
    if options.validation == FieldValidation::Strict && !decoded.lines.is_empty() {
        let why = crate::yaml::summary(&decoded.lines);
        return Err(ApiError::bad_request(format!(
            "error strict decoding patch: error converting YAML to JSON: {why}"
        )));
    }
    for (field, expected) in [("apiVersion", resource.api_version()), ("kind", resource.kind.to_string())] {
        let found = decoded.value.text(field);
        if found != expected {
            let message = match found {
                "" => format!("invalid object type: Object '{field}' is missing"),
                found => format!("the {field} in the data ({found}) does not match the expected one ({expected})"),
            };
            return Err(ApiError::bad_request(message));
        }
    }
    // What is unknown is refused here whatever the request says of it: nobody could own it.
    schema::apply::check_applied(resource.schema(), resource.node, &decoded.value).map_err(|e| apply_error(ctx, e))?;
    decode::conform(resource.schema(), resource.node, &resource.api_version(), &resource.kind, &mut decoded)?;
    let mut value = ctx.accept(decoded, options.validation)?;
    ctx.check_place(&mut value)?;
    if ctx.viewer.is_converted() {
        resource.to_stored(&mut value);
    }
    Ok(value)
}

fn applied_to(ctx: &Context, options: &Options, live: Option<&Known>, applied: &Value) -> Result<Edited, ApiError> {
    let managers = live.map(|live| live.managers.clone()).unwrap_or_default();
    let live = live.map(|live| &live.value);
    let force = options.force.unwrap_or(false);
    let result = ownership::deciding(ctx, options, |kind, author| {
        schema::apply::apply(kind, author, live, applied, managers, force)
    });
    let (mut value, managers) = result.map_err(|error| apply_error(ctx, error))?;
    let mut decoded = Decoded::new(value);
    decode::conform(ctx.hub.schema(), ctx.hub.node, &ctx.hub.api_version(), &ctx.hub.kind, &mut decoded)?;
    value = decoded.value;
    // The resource version is the client's to insist on, not a field to merge.
    let insisted = applied.at("metadata").text("resourceVersion");
    let current = live.map_or("", |live| live.at("metadata").text("resourceVersion"));
    value.object_or_new("metadata").set("resourceVersion", if insisted.is_empty() { current } else { insisted });
    crate::context::complete(&ctx.hub, &mut value);
    Ok(Edited { value, managers: Some(managers) })
}

fn apply_error(ctx: &Context, error: ApplyError) -> ApiError {
    match error {
        ApplyError::BadRequest(message) => ApiError::bad_request(message),
        ApplyError::Invalid(message) => ApiError::new(Reason::Unknown, message),
        ApplyError::Conflicts(conflicts) => {
            conflicts.to_api_error().with_object(&ctx.resource.group, &ctx.resource.plural, &ctx.target.name)
        }
    }
}
