//! Requests from within the process: no connection and no certificate, and otherwise the same way as all others.

use crate::api::Api;
use crate::pipeline::Peer;
use authz::User;
use bytes::Bytes;
use http::{Method, Request, header};
use http_body_util::{BodyExt, Full};
use object::{ApiError, Reason, Value, View};
use std::sync::Arc;

/// A client in this process, as a user of its own.
#[derive(Clone, Debug)]
pub struct Local {
    api: Api,
    peer: Arc<Peer>,
    agent: &'static str,
}

impl Local {
    /// `agent` is what it goes by in managed fields.
    pub fn new(api: Api, user: User, agent: &'static str) -> Self {
        Local { api, peer: Arc::new(Peer { user: Some(Arc::new(user)), address: None }), agent }
    }

    pub async fn get(&self, path: &str) -> Result<Value, ApiError> {
        self.send(Method::GET, path, "application/json", None).await
    }

    pub async fn create(&self, path: &str, object: &Value) -> Result<Value, ApiError> {
        self.send(Method::POST, path, "application/json", Some(object)).await
    }

    pub async fn update(&self, path: &str, object: &Value) -> Result<Value, ApiError> {
        self.send(Method::PUT, path, "application/json", Some(object)).await
    }

    /// Merges `patch` into an object.
    pub async fn patch(&self, path: &str, patch: &Value) -> Result<Value, ApiError> {
        self.send(Method::PATCH, path, "application/merge-patch+json", Some(patch)).await
    }

    pub async fn delete(&self, path: &str) -> Result<Value, ApiError> {
        self.send(Method::DELETE, path, "application/json", None).await
    }

    async fn send(&self, method: Method, path: &str, media: &str, body: Option<&Value>) -> Result<Value, ApiError> {
        let body = body.map(|value| Bytes::from(value.to_string())).unwrap_or_default();
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header(header::USER_AGENT, self.agent)
            .header(header::CONTENT_TYPE, media)
            .body(Full::new(body))
            .map_err(ApiError::internal)?;
        let response = self.api.handle(&self.peer, request).await;
        let failed = !response.status().is_success();
        let Ok(bytes) = response.into_body().collect().await.map(http_body_util::Collected::to_bytes);
        let value = object::json::parse(&bytes).map_err(ApiError::internal)?;
        if failed {
            return Err(ApiError::new(reason(value.text("reason")), value.text("message")));
        }
        Ok(value)
    }
}

/// The reasons that callers in this process tell apart; the rest is one to them.
fn reason(text: &str) -> Reason {
    let known = [Reason::AlreadyExists, Reason::Conflict, Reason::NotFound, Reason::Forbidden, Reason::Invalid];
    known.into_iter().find(|reason| reason.to_string() == text).unwrap_or(Reason::InternalError)
}
