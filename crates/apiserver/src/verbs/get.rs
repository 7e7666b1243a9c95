//! `get`: one object.

use crate::body::Body;
use crate::context::Context;
use http::{Response, StatusCode};
use object::ApiError;

pub(crate) async fn get(ctx: &Context) -> Result<Response<Body>, ApiError> {
    let key = ctx.hub.key(&ctx.target.namespace, &ctx.target.name);
    let cache = &ctx.api.registry.cache;
    let object = match ctx.query.get("resourceVersion") {
        None => ctx.api.registry.get(&key).await?,
        Some(version) => {
            super::list::wait_for(ctx, super::list::parse_version(version)?).await?;
            cache.get(&key)
        }
    };
    let object = object.ok_or_else(|| ctx.not_found())?;
    Ok(ctx.viewer.object(StatusCode::OK, &object))
}
