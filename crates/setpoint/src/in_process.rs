//! Clients in the server's own process: no connection, no certificate, no copy of what is watched; and otherwise the
//! same way as everybody's.

use crate::control_plane::Clients;
use apiserver::{Api, Body, Live, Peer, Stream, User};
use async_trait::async_trait;
use bytes::Bytes;
use http_body_util::{BodyExt, Collected, Full};
use kinds::Raw;
use object::ApiError;
use runtime::{Client, Event, Events, Transport};
use std::sync::Arc;

/// Requests of one user.
#[derive(Debug)]
struct InProcess {
    api: Api,
    peer: Peer,
}

/// A client as a user; `agent` is what it goes by in managed fields and logs.
pub fn client(api: &Api, user: User, agent: &str) -> Client {
    Client::new(transport(api, user), agent)
}

pub fn transport(api: &Api, user: User) -> Arc<dyn Transport> {
    let peer = Peer { user: Some(Arc::new(user)), address: None };
    Arc::new(InProcess { api: api.clone(), peer })
}

/// Clients of an API in this process, for whoever.
pub fn clients(api: &Api) -> Clients {
    let api = api.clone();
    Arc::new(move |user, agent| client(&api, user, agent))
}

#[async_trait]
impl Transport for InProcess {
    async fn send(&self, request: http::Request<Bytes>) -> Result<http::Response<Bytes>, ApiError> {
        let response = self.api.handle(&self.peer, request.map(Full::new)).await;
        let (parts, body) = response.into_parts();
        Ok(http::Response::from_parts(parts, whole(body).await))
    }

    async fn watch(&self, request: http::Request<Bytes>) -> Result<Box<dyn Events>, ApiError> {
        let response = self.api.handle(&self.peer, request.map(Full::new)).await;
        let (parts, body) = response.into_parts();
        match body {
            Body::Watch(mut stream) => {
                stream.comes_last();
                Ok(Box::new(Watching(stream)))
            }
            refusal => Err(runtime::refusal(parts.status.as_u16(), &parts.headers, &whole(refusal).await)),
        }
    }
}

async fn whole(body: Body) -> Bytes {
    let Ok(bytes) = body.collect().await.map(Collected::to_bytes);
    bytes
}

struct Watching(Box<Stream>);

#[async_trait]
impl Events for Watching {
    async fn next(&mut self) -> Option<Result<Vec<Event>, ApiError>> {
        let events = self.0.events().await?;
        Some(events.into_iter().map(event).collect())
    }
}

fn event(live: Live) -> Result<Event, ApiError> {
    match live {
        Live::Object { kind, body, revision } => {
            let raw = Raw { json: body, version: Some(revision.0) };
            Ok(match kind {
                "ADDED" => Event::Added(raw),
                "MODIFIED" => Event::Modified(raw),
                _ => Event::Deleted(raw),
            })
        }
        Live::Bookmark { revision, initial_end } => Ok(Event::Bookmark { version: revision.to_string(), initial_end }),
        Live::Error(error) => Err(error),
    }
}
