//! `metrics.k8s.io`: what nodes and pods use. The objects are those of the cluster, and the figures their source's; what
//! has no figures is not there.

use super::{Answer, answer_list};
use crate::context::Context;
use crate::pipeline::method_not_allowed;
use crate::usage::{Sample, Usage};
use crate::verbs;
use http::StatusCode;
use object::{Quantity, Value, View, json, time};

/// What is measured.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Measured {
    Node,
    Pod,
}

pub(super) async fn serve(ctx: &Context, measured: Measured) -> Answer {
    let plural = if measured == Measured::Node { "nodes" } else { "pods" };
    let objects = ctx.redirected("", "v1", plural, &ctx.target.name, "")?;
    match ctx.info.verb {
        "get" => {
            let key = objects.hub.key(&objects.target.namespace, &objects.target.name);
            let object = ctx.api.registry.get(&key).await?;
            let metrics = object.and_then(|object| metrics(ctx, measured, object.decode().at("metadata")));
            Ok(ctx.viewer.value(StatusCode::OK, metrics.ok_or_else(|| ctx.not_found())?))
        }
        "list" => {
            let selection = verbs::selection(&objects)?;
            ctx.catch_up().await?;
            let snapshot = ctx.api.registry.cache.snapshot(&objects.hub.table);
            let selected = snapshot.under(selection.prefix(), &[]).filter(|object| selection.contains(object));
            let items = selected.filter_map(|object| metrics(ctx, measured, object.decode().at("metadata")));
            Ok(answer_list(ctx, items.collect()))
        }
        _ => Err(method_not_allowed()),
    }
}

/// What is known of one node or pod; `metadata` are its own.
fn metrics(ctx: &Context, measured: Measured, metadata: &Value) -> Option<Value> {
    let (source, name) = (ctx.api.usage.get()?, metadata.text("name"));
    match measured {
        Measured::Node => {
            let sample = source.node(name)?;
            let mut object = described(ctx, metadata, &sample);
            object["usage"] = amounts(sample.usage);
            Some(object)
        }
        Measured::Pod => {
            let sample = source.pod(metadata.text("namespace"), name)?;
            let mut object = described(ctx, metadata, &sample);
            let containers = sample.usage.iter().map(|(name, usage)| json!({ "name": name, "usage": amounts(*usage) }));
            object["containers"] = containers.collect();
            Some(object)
        }
    }
}

fn described<T>(ctx: &Context, metadata: &Value, sample: &Sample<T>) -> Value {
    let mut own = json!({ "creationTimestamp": ctx.now() });
    for field in ["name", "namespace", "labels"] {
        if metadata.has(field) {
            own[field] = metadata.at(field).clone();
        }
    }
    json!({
        "kind": ctx.resource.kind, "apiVersion": ctx.resource.api_version(), "metadata": own,
        "timestamp": time::format(sample.at).unwrap_or_default(), "window": time::format_duration(sample.window),
    })
}

fn amounts(usage: Usage) -> Value {
    json!({
        "cpu": Quantity::from_millis(usage.cpu_millis).to_string(),
        "memory": Quantity::from_bytes(usage.memory_bytes).to_string(),
    })
}
