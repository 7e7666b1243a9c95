//! `create`: a new object, under its own name or one that is made up.

use crate::body::Body;
use crate::context::Context;
use crate::decode;
use crate::media::Format;
use crate::options::Options;
use crate::write::{self, Edited};
use bytes::Bytes;
use http::{Response, StatusCode};
use object::{ApiError, Value, View};

pub(crate) async fn create(ctx: &Context, body: Bytes) -> Result<Response<Body>, ApiError> {
    let options = Options::parse(&ctx.query, "CreateOptions")?;
    let mut make = || {
        let mut value = ctx.api.drafts.object(&ctx.resource, &body, || read(ctx, &body, &options))?;
        if !value.at("metadata").text("resourceVersion").is_empty() {
            return Err(ApiError::bad_request("resourceVersion should not be set on objects to be created"));
        }
        ctx.check_place(&mut value)?;
        Ok(Edited { value, managers: None })
    };
    let stored = write::create(ctx, &options, &mut make).await?;
    Ok(super::stored(ctx, StatusCode::CREATED, stored))
}

/// The object that is sent, complete and in the stored version, and whether it is free of mistakes.
fn read(ctx: &Context, body: &[u8], options: &Options) -> Result<(Value, bool), ApiError> {
    let format = ctx.body_format()?;
    let decoded = decode::object(&ctx.resource, format, body)?;
    let is_clean = format == Format::Json && decoded.has_no_mistakes();
    let mut value = ctx.accept(decoded, options.validation)?;
    ctx.to_hub(&mut value);
    Ok((value, is_clean))
}
