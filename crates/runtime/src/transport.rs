//! How requests reach the API: one trait, so that a loop cannot tell whether it runs in the server's process or on
//! another machine. Whatever implements it carries an identity, and all its requests go the same way as anybody's.

use async_trait::async_trait;
use bytes::Bytes;
use kinds::Raw;
use object::ApiError;
use std::fmt::Debug;

#[async_trait]
pub trait Transport: Debug + Send + Sync {
    /// Sends a request and reads the whole answer. An error means that there was none, so that nobody knows whether
    /// the request was carried out; what the server refuses is an answer.
    async fn send(&self, request: http::Request<Bytes>) -> Result<http::Response<Bytes>, ApiError>;

    /// Opens a watch.
    async fn watch(&self, request: http::Request<Bytes>) -> Result<Box<dyn Events>, ApiError>;
}

/// An open watch.
#[async_trait]
pub trait Events: Send {
    /// The next events, at least one; none at the end. After an error there is nothing more.
    async fn next(&mut self) -> Option<Result<Vec<Event>, ApiError>>;
}

#[derive(Clone, Debug)]
pub enum Event {
    Added(Raw),
    Modified(Raw),
    Deleted(Raw),
    /// Everything up to this version has been sent; `initial_end` closes the list that a streaming watch starts with.
    Bookmark {
        version: String,
        initial_end: bool,
    },
}
