//! `token`: a service account gets a token, for an audience, a time, and maybe an object it is bound to.

use super::{Answer, answer, read};
use crate::admission::{self, Operation, Review};
use crate::authn::{AUDIENCE, Claims};
use crate::context::Context;
use crate::naming;
use http::StatusCode;
use object::field::{Error, Path};
use object::{ApiError, Edit, Value, View, json, time};

const MIN_SECONDS: i64 = 600;
const DEFAULT_SECONDS: i64 = 3600;
const MAX_SECONDS: i64 = 1 << 32;
/// Tokens that pods ask for live longer than asked, so that programs which read them once have a year to notice.
const EXTENDED_SECONDS: i64 = 365 * 24 * 3600;
const WARN_AFTER_SECONDS: i64 = 3607;

pub(super) async fn create(ctx: &Context, body: &[u8]) -> Answer {
    let mut request = read(ctx, "authentication.k8s.io/v1", "TokenRequest", body)?;
    let key = ctx.hub.key(&ctx.target.namespace, &ctx.target.name);
    let account = ctx.api.registry.get(&key).await?.ok_or_else(|| ctx.not_found())?.decode();
    admission::mutate(&mut Review::new(ctx, Operation::Create, &mut request, None, false))?;
    let spec = request.object_or_new("spec");
    if spec.items("audiences").is_empty() {
        spec.set("audiences", vec![AUDIENCE]);
    }
    spec.set_default("expirationSeconds", DEFAULT_SECONDS);
    let spec = request.at("spec").clone();
    let seconds = spec.int("expirationSeconds").unwrap_or(DEFAULT_SECONDS);
    check(ctx, seconds)?;
    let bound = bound(ctx, spec.at("boundObjectRef")).await?;
    let now = ctx.now_seconds();
    let audiences: Vec<String> = spec.items("audiences").iter().filter_map(Value::as_str).map(str::to_owned).collect();
    let own_audience = audiences.iter().any(|audience| audience == AUDIENCE);
    let of_pod = bound.iter().any(|(kind, ..)| *kind == "pod");
    let lives = if of_pod && own_audience && seconds == WARN_AFTER_SECONDS { EXTENDED_SECONDS } else { seconds };
    let claims = Claims {
        namespace: &ctx.target.namespace,
        name: &ctx.target.name,
        uid: account.at("metadata").text("uid"),
        audiences,
        id: naming::uid(&ctx.api.ambient.random),
        now,
        seconds: lives,
        bound,
    };
    let token = ctx.api.authentication.key.sign(&claims.to_value());
    let token = token.ok_or_else(|| ApiError::internal("the token cannot be signed"))?;
    let expires = time::format(now + seconds).unwrap_or_default();
    request.set("status", json!({ "token": token, "expirationTimestamp": expires }));
    let metadata = request.object_or_new("metadata");
    metadata.set("name", ctx.target.name.as_str());
    metadata.set("namespace", ctx.target.namespace.as_str());
    metadata.set("creationTimestamp", ctx.now());
    Ok(answer(ctx, StatusCode::CREATED, &request))
}

fn check(ctx: &Context, seconds: i64) -> Result<(), ApiError> {
    let detail = match seconds {
        seconds if seconds < MIN_SECONDS => "may not specify a duration less than 10 minutes",
        seconds if seconds > MAX_SECONDS => "may not specify a duration larger than 2^32 seconds",
        _ => return Ok(()),
    };
    let error = Error::invalid(&Path::new("spec.expirationSeconds"), seconds, detail);
    Err(ApiError::invalid("authentication.k8s.io", "TokenRequest", &ctx.target.name, &[error]))
}

/// What the token is bound to besides its service account: an object that must be there now, too.
async fn bound(ctx: &Context, reference: &Value) -> Result<Vec<(&'static str, String, String)>, ApiError> {
    if reference.is_null() {
        return Ok(Vec::new());
    }
    let (kind, plural, namespace) = match (reference.text("apiVersion"), reference.text("kind")) {
        ("v1", "Pod") => ("pod", "pods", ctx.target.namespace.as_str()),
        ("v1", "Secret") => ("secret", "secrets", ctx.target.namespace.as_str()),
        ("v1", "Node") => ("node", "nodes", ""),
        (version, kind) => {
            return Err(ApiError::bad_request(format!("cannot bind token to object of type {version}, Kind={kind}")));
        }
    };
    let name = reference.text("name");
    let key = if namespace.is_empty() { format!("{plural}/{name}") } else { format!("{plural}/{namespace}/{name}") };
    let object = ctx.api.registry.get(key.as_bytes()).await?;
    let object = object.ok_or_else(|| ApiError::not_found("", plural, name))?.decode();
    let uid = object.at("metadata").text("uid").to_owned();
    let asked = reference.text("uid");
    if !asked.is_empty() && asked != uid {
        let cause = format!(
            "the UID in the bound object reference ({asked}) does not match the UID in record. The object might have been deleted and then recreated"
        );
        return Err(ApiError::conflict("", plural, name, &cause));
    }
    if kind == "pod" && object.at("spec").text("serviceAccountName") != ctx.target.name {
        let message = format!(
            "cannot bind token for serviceaccount {:?} to pod running with different serviceaccount name.",
            ctx.target.name
        );
        return Err(ApiError::bad_request(message));
    }
    let mut bound = vec![(kind, name.to_owned(), uid)];
    let node = object.at("spec").text("nodeName");
    if kind == "pod" && !node.is_empty() {
        let object = ctx.api.registry.get(format!("nodes/{node}").as_bytes()).await?;
        bound.extend(
            object.map(|object| ("node", node.to_owned(), object.decode().at("metadata").text("uid").to_owned())),
        );
    }
    Ok(bound)
}
