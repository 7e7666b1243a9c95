//! `update`: an object is replaced by the one that is sent.

use crate::body::Body;
use crate::context::Context;
use crate::options::Options;
use crate::write::{self, Edited};
use bytes::Bytes;
use http::{Response, StatusCode};
use object::{ApiError, Reason, View};

pub(crate) async fn update(ctx: &Context, body: Bytes) -> Result<Response<Body>, ApiError> {
    let options = Options::parse(&ctx.query, "UpdateOptions")?;
    let mut value = ctx.decode(&body, options.validation)?;
    ctx.check_place(&mut value)?;
    ctx.to_hub(&mut value);
    let mut edit = |_: &_| Ok(Edited { value: value.clone(), managers: None });
    match write::update(ctx, &options, &mut edit).await {
        Err(error) if error.reason() == Reason::NotFound && may_create(ctx) => {
            if !value.at("metadata").text("uid").is_empty() {
                return Err(error);
            }
            let mut make = || Ok(Edited { value: value.clone(), managers: None });
            let stored = write::create(ctx, &options, &mut make).await?;
            Ok(super::stored(ctx, StatusCode::CREATED, stored))
        }
        stored => Ok(super::stored(ctx, StatusCode::OK, stored?)),
    }
}

fn may_create(ctx: &Context) -> bool {
    ctx.hub.strategy.create_on_update && ctx.target.subresource.is_empty()
}
