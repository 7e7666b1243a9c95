//! What is not stored as it is sent: questions that are answered, and subresources that do something.

mod binding;
mod component_status;
mod eviction;
mod log;
mod node;
mod reviews;
mod scale;
mod token;
mod usage;

use crate::body::Body;
use crate::context::Context;
use crate::decode::{self, Decoded};
use crate::media::Guise;
use crate::pipeline::method_not_allowed;
use crate::{render, table};
use bytes::Bytes;
use http::{Response, StatusCode};
use object::{ApiError, Value, json};
use registry::Resource;

type Answer = Result<Response<Body>, ApiError>;

/// Serves the request if it is one of these.
pub(crate) async fn serve(ctx: &Context, body: &Bytes) -> Option<Answer> {
    let (table, subresource) = (ctx.resource.table.as_ref(), ctx.target.subresource.as_str());
    let creates = |answer| Some(if ctx.info.verb == "create" { answer } else { Err(method_not_allowed()) });
    match (table, subresource) {
        (_, "scale") if ctx.resource.subresource("scale").is_some() => Some(scale::serve(ctx, body).await),
        ("pods", "binding") | ("bindings", "") => creates(binding::create(ctx, body).await),
        ("serviceaccounts", "token") => creates(token::create(ctx, body).await),
        ("pods", "eviction") => creates(eviction::create(ctx, body).await),
        ("pods", "log") => Some(log::serve(ctx).await),
        ("pods", "exec" | "attach" | "portforward" | "proxy") | ("nodes" | "services", "proxy") => {
            Some(node::serve(ctx).await)
        }
        ("componentstatuses", "") => Some(component_status::serve(ctx).await),
        ("nodes.metrics.k8s.io", "") => Some(usage::serve(ctx, usage::Measured::Node).await),
        ("pods.metrics.k8s.io", "") => Some(usage::serve(ctx, usage::Measured::Pod).await),
        (table, "") if reviews::is_review(table) => creates(reviews::create(ctx, body).await),
        _ => None,
    }
}

/// Whether what a request is about can be shown as a table: what is only answered or done cannot.
pub(crate) fn has_table(resource: &Resource, subresource: &str) -> bool {
    match subresource {
        "" => resource.table != "bindings" && !reviews::is_review(&resource.table),
        subresource => !matches!(subresource, "binding" | "eviction" | "token"),
    }
}

/// Reads a body of a built-in kind that is not that of the resource.
fn read(ctx: &Context, api_version: &str, kind: &str, body: &[u8]) -> Result<Value, ApiError> {
    let node = render::schema_type(api_version, kind)
        .ok_or_else(|| ApiError::internal(format!("there is no type {kind} in {api_version}")))?;
    let schema = schema::builtin();
    let Decoded { mut value, .. } = decode::typed(schema, node, api_version, kind, ctx.body_format()?, body)?;
    schema::fill(schema, node, &mut value);
    Ok(value)
}

/// Answers with a value of a built-in kind.
fn answer(ctx: &Context, code: StatusCode, value: &Value) -> Response<Body> {
    render::respond(ctx.viewer.accept.format, code, value, ctx.viewer.pretty)
}

/// Answers with a list of objects that are stored nowhere.
fn answer_list(ctx: &Context, items: Vec<Value>) -> Response<Body> {
    let viewer = &ctx.viewer;
    let value = match viewer.accept.guise {
        Guise::Table => {
            let printer = viewer.resource.printer;
            table::table(viewer.accept.meta, printer, &json!({}), items, viewer.include, viewer.now, true)
        }
        _ => json!({
            "kind": format!("{}List", ctx.resource.kind), "apiVersion": ctx.resource.api_version(), "metadata": {},
            "items": items,
        }),
    };
    answer(ctx, StatusCode::OK, &value)
}

fn success() -> Value {
    json!({ "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201 })
}
