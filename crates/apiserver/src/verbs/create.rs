//! `create`: a new object, under its own name or one that is made up.

use crate::body::Body;
use crate::context::Context;
use crate::options::Options;
use crate::write::{self, Edited};
use bytes::Bytes;
use http::{Response, StatusCode};
use object::{ApiError, View};

pub(crate) async fn create(ctx: &Context, body: Bytes) -> Result<Response<Body>, ApiError> {
    let options = Options::parse(&ctx.query, "CreateOptions")?;
    let mut make = || {
        let mut value = ctx.decode(&body, options.validation)?;
        if !value.at("metadata").text("resourceVersion").is_empty() {
            return Err(ApiError::bad_request("resourceVersion should not be set on objects to be created"));
        }
        ctx.check_place(&mut value)?;
        ctx.to_hub(&mut value);
        Ok(Edited { value, managers: None })
    };
    let stored = write::create(ctx, &options, &mut make).await?;
    Ok(super::stored(ctx, StatusCode::CREATED, stored))
}
