//! What only the node can answer: shells, forwarded ports, logs that nobody here has. Finds the node that a request has to go to.

use super::Answer;
use crate::context::Context;
use object::{ApiError, Reason, Value, View};

pub(super) async fn serve(ctx: &Context) -> Answer {
    let node = match ctx.resource.table.as_ref() {
        "nodes" => ctx.target.name.clone(),
        "services" => {
            let key = ctx.hub.key(&ctx.target.namespace, service_name(&ctx.target.name));
            ctx.api.registry.get(&key).await?.ok_or_else(|| ctx.not_found())?;
            let message = format!("no endpoints available for service {:?}", ctx.target.name);
            return Err(ApiError::new(Reason::ServiceUnavailable, message));
        }
        _ => node_of_pod(ctx).await?,
    };
    let object = ctx.api.registry.get(format!("nodes/{node}").as_bytes()).await?;
    let object = object.ok_or_else(|| ApiError::not_found("", "nodes", &node))?.decode();
    let addresses = object.at("status").items("addresses");
    let known: Vec<String> =
        addresses.iter().map(|address| format!("{} {}", address.text("type"), address.text("address"))).collect();
    let port = object.path(&["status", "daemonEndpoints", "kubeletEndpoint", "Port"]).as_i64();
    match (addresses.is_empty(), port) {
        (true, _) => Err(ApiError::internal("no preferred addresses found; known addresses: []")),
        (false, _) => {
            let message = format!("the node {node:?} cannot be reached at [{}]", known.join(", "));
            Err(ApiError::new(Reason::ServiceUnavailable, message))
        }
    }
}

/// `https:web:443` and `web:443` name the service `web`.
fn service_name(name: &str) -> &str {
    match name.split(':').collect::<Vec<_>>().as_slice() {
        [_, name, _] | [name, _] | [name] => name,
        _ => name,
    }
}

async fn node_of_pod(ctx: &Context) -> Result<String, ApiError> {
    let key = ctx.hub.key(&ctx.target.namespace, &ctx.target.name);
    let pod: Value = ctx.api.registry.get(&key).await?.ok_or_else(|| ctx.not_found())?.decode();
    match pod.at("spec").text("nodeName") {
        "" => Err(ApiError::bad_request(format!("pod {} does not have a host assigned", ctx.target.name))),
        node => Ok(node.to_owned()),
    }
}
