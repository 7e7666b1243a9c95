//! What is not stored as it is sent: questions that are answered, and subresources that are verbs.

use crate::body::Body;
use crate::context::Context;
use bytes::Bytes;
use http::Response;
use object::ApiError;

/// Serves the request if it is one of these.
pub(crate) async fn serve(_ctx: &Context, _body: &Bytes) -> Option<Result<Response<Body>, ApiError>> {
    None
}
