//! `scale`: how many replicas a workload has, without having to know the workload.

use super::{Answer, read};
use crate::context::Context;
use crate::decode::Decoded;
use crate::known::Known;
use crate::options::Options;
use crate::pipeline::method_not_allowed;
use crate::write::{self, Edited, Stored};
use crate::{decode, media, verbs};
use bytes::Bytes;
use http::StatusCode;
use object::field::{Error, Path};
use object::selector::LabelSelector;
use object::{ApiError, Edit, Value, View, json};

const API_VERSION: &str = "autoscaling/v1";

pub(super) async fn serve(ctx: &Context, body: &Bytes) -> Answer {
    let stored = match ctx.info.verb {
        "get" => {
            let key = ctx.hub.key(&ctx.target.namespace, &ctx.target.name);
            let object = ctx.api.registry.get(&key).await?.ok_or_else(|| ctx.not_found())?;
            Stored::Object(object)
        }
        "update" => {
            let options = Options::parse(&ctx.query, "UpdateOptions")?;
            let mut scale = read(ctx, API_VERSION, "Scale", body)?;
            ctx.check_place(&mut scale)?;
            write::update(ctx, &options, &mut |old| scaled(ctx, &old.value, &scale)).await?
        }
        "patch" => {
            let options = Options::parse(&ctx.query, "PatchOptions")?;
            let Decoded { value: patch, .. } = decode::parse(media::Format::Json, body)?;
            let mut edit = |old: &Known| {
                let mut scale = of(&old.value);
                verbs::patch_value(ctx, "autoscaling.v1.Scale", &mut scale, &patch)?;
                scaled(ctx, &old.value, &scale)
            };
            write::update(ctx, &options, &mut edit).await?
        }
        _ => return Err(method_not_allowed()),
    };
    let value = match stored {
        Stored::Object(object) => object.decode(),
        Stored::Dry(value) => value,
    };
    Ok(ctx.viewer.value_printed_by(&registry::print::SCALE, StatusCode::OK, of(&value)))
}

/// The scale of a workload.
fn of(workload: &Value) -> Value {
    let (metadata, spec, status) = (workload.at("metadata"), workload.at("spec"), workload.at("status"));
    let mut scale = json!({
        "kind": "Scale", "apiVersion": API_VERSION, "metadata": {},
        "spec": { "replicas": spec.int("replicas").unwrap_or(0) },
        "status": { "replicas": status.int("replicas").unwrap_or(0) },
    });
    for field in ["name", "namespace", "uid", "resourceVersion", "creationTimestamp"] {
        if metadata.has(field) {
            scale["metadata"][field] = metadata.at(field).clone();
        }
    }
    // A replication controller selects by a plain map, everything newer by a selector.
    let selector = spec.at("selector");
    let plain = workload.text("kind") == "ReplicationController";
    let selector = if plain { json!({ "matchLabels": selector }) } else { selector.clone() };
    if let Ok(selector) = LabelSelector::from_object(&selector)
        && !selector.is_everything()
    {
        scale["status"]["selector"] = json!(selector.to_string());
    }
    scale
}

fn scaled(ctx: &Context, old: &Value, scale: &Value) -> Result<Edited, ApiError> {
    let replicas = scale.at("spec").int("replicas").unwrap_or(0);
    if replicas < 0 {
        let path = Path::new("spec.replicas");
        let error = Error::invalid(&path, replicas, "must be greater than or equal to 0");
        return Err(ApiError::invalid("autoscaling", "Scale", &ctx.target.name, &[error]));
    }
    let mut value = old.clone();
    value.object_or_new("spec").set("replicas", replicas);
    let metadata = value.object_or_new("metadata");
    for field in ["resourceVersion", "uid"] {
        let asked = scale.at("metadata").text(field);
        if !asked.is_empty() {
            metadata.set(field, asked);
        }
    }
    Ok(Edited { value, managers: None })
}
