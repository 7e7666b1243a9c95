//! `ComponentStatus`: the old way of asking whether the parts of the control plane are well.

use super::{Answer, answer_list};
use crate::context::Context;
use http::StatusCode;
use object::{Value, View, json};

pub(super) async fn serve(ctx: &Context) -> Answer {
    let store = ctx.api.registry.store.status().await;
    let store = store.map_or_else(|error| Err(error.to_string()), |_| Ok(()));
    let components =
        [component("controller-manager", &Ok(())), component("scheduler", &Ok(())), component("etcd-0", &store)];
    match ctx.info.verb {
        "get" => {
            let found =
                components.into_iter().find(|component| component.at("metadata").text("name") == ctx.target.name);
            Ok(ctx.viewer.value(StatusCode::OK, found.ok_or_else(|| ctx.not_found())?))
        }
        "list" => Ok(answer_list(ctx, components.into())),
        _ => Err(crate::pipeline::method_not_allowed()),
    }
}

fn component(name: &str, health: &Result<(), String>) -> Value {
    let condition = match health {
        Ok(()) => json!({ "type": "Healthy", "status": "True", "message": "ok" }),
        Err(error) => json!({ "type": "Healthy", "status": "False", "message": "", "error": error }),
    };
    json!({ "kind": "ComponentStatus", "apiVersion": "v1", "metadata": { "name": name }, "conditions": [condition] })
}
