//! Where the logs of containers come from: whoever speaks for the node that a pod is on.

use async_trait::async_trait;
use bytes::Bytes;
use object::{ApiError, LogExcerpt};
use std::fmt::Debug;

/// Speaks for nodes.
#[async_trait]
pub trait LogSource: Debug + Send + Sync {
    /// The log of a container; none if the node is not one of those it speaks for.
    async fn open(&self, wanted: &LogRequest) -> Option<Result<Box<dyn LogStream>, ApiError>>;
}

/// What is written, piece by piece.
#[async_trait]
pub trait LogStream: Send {
    /// The next piece; none at the end.
    async fn next(&mut self) -> Option<Bytes>;
}

/// Whose log somebody wants to see, and what of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LogRequest {
    pub node: String,
    pub namespace: String,
    pub pod: String,
    pub container: String,
    pub excerpt: LogExcerpt,
}
