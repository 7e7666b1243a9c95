//! Loops that are broken on purpose, to see whether anybody notices.

use async_trait::async_trait;
use bytes::Bytes;
use http::{Request, Response};
use object::{ApiError, Value};
use runtime::{Event, Events, Transport};
use std::sync::Arc;
use std::time::Duration;

/// What one loop does wrong.
#[derive(Clone, Copy, Debug)]
pub struct Sabotage {
    /// The account that the loop acts as.
    pub account: &'static str,
    /// What becomes of its requests by this method to places that contain this.
    pub method: &'static str,
    pub place: &'static str,
    pub how: How,
}

#[derive(Clone, Copy, Debug)]
pub enum How {
    /// They are answered and not done, as if the loop had forgotten them.
    Forgets,
    /// Something else is written.
    Writes(fn(&mut Value)),
    /// It is told something else.
    Reads(fn(&mut Value)),
    /// What is watched is seen so much later.
    Late(Duration),
}

impl Sabotage {
    /// The way of a loop to the API, on which this may happen.
    pub(super) fn between(self, account: &str, inner: Arc<dyn Transport>) -> Arc<dyn Transport> {
        match account.rsplit(':').next() == Some(self.account) {
            true => Arc::new(Sabotaged { inner, sabotage: self }),
            false => inner,
        }
    }
}

#[derive(Debug)]
struct Sabotaged {
    inner: Arc<dyn Transport>,
    sabotage: Sabotage,
}

#[async_trait]
impl Transport for Sabotaged {
    async fn send(&self, request: Request<Bytes>) -> Result<Response<Bytes>, ApiError> {
        let Sabotage { method, place, how, .. } = self.sabotage;
        if request.method() != method || !request.uri().path().contains(place) {
            return self.inner.send(request).await;
        }
        let (head, body) = request.into_parts();
        match how {
            How::Forgets => Ok(Response::new(body)),
            How::Reads(change) => {
                let (head, body) = self.inner.send(Request::from_parts(head, body)).await?.into_parts();
                let mut object = object::json::parse(&body).map_err(ApiError::internal)?;
                change(&mut object);
                Ok(Response::from_parts(head, object.to_string().into()))
            }
            How::Late(_) => self.inner.send(Request::from_parts(head, body)).await,
            How::Writes(change) => {
                let mut object = object::json::parse(&body).map_err(ApiError::internal)?;
                change(&mut object);
                self.inner.send(Request::from_parts(head, object.to_string().into())).await
            }
        }
    }

    async fn watch(&self, request: Request<Bytes>) -> Result<Box<dyn Events>, ApiError> {
        let is_meant = request.uri().path().ends_with(self.sabotage.place);
        let inner = self.inner.watch(request).await?;
        match self.sabotage.how {
            How::Late(delay) if is_meant => Ok(Box::new(LateEvents { inner, delay })),
            _ => Ok(inner),
        }
    }
}

struct LateEvents {
    inner: Box<dyn Events>,
    delay: Duration,
}

#[async_trait]
impl Events for LateEvents {
    async fn next(&mut self) -> Option<Result<Vec<Event>, ApiError>> {
        let events = self.inner.next().await?;
        // Bookmarks come once a minute, before anything else: nothing else would ever be seen.
        let is_bookmark = |event: &Event| matches!(event, Event::Bookmark { .. });
        if !events.as_ref().is_ok_and(|events| events.iter().all(is_bookmark)) {
            tokio::time::sleep(self.delay).await;
        }
        Some(events)
    }
}
