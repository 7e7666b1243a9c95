//! Bodies of responses: bytes that are there, or a stream of them.

use crate::verbs;
use bytes::Bytes;
use futures::stream::{BoxStream, Stream, StreamExt};
use http_body::{Frame, SizeHint};
use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

pub enum Body {
    Whole(Option<Bytes>),
    Stream(BoxStream<'static, Bytes>),
    /// A watch that nobody has read from yet: a client in this process takes the events as they are.
    Watch(Box<verbs::Stream>),
}

impl std::fmt::Debug for Body {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Body::Whole(bytes) => write!(f, "Whole({} bytes)", bytes.as_ref().map_or(0, Bytes::len)),
            Body::Stream(_) => f.write_str("Stream"),
            Body::Watch(stream) => stream.fmt(f),
        }
    }
}

impl Body {
    pub fn empty() -> Self {
        Body::Whole(None)
    }

    pub fn whole(bytes: impl Into<Bytes>) -> Self {
        Body::Whole(Some(bytes.into()).filter(|bytes| !bytes.is_empty()))
    }

    pub(crate) fn watch(stream: verbs::Stream) -> Self {
        Body::Watch(Box::new(stream))
    }

    pub fn stream(stream: impl Stream<Item = Bytes> + Send + 'static) -> Self {
        Body::Stream(stream.boxed())
    }
}

impl http_body::Body for Body {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        if let Body::Watch(_) = &*self
            && let Body::Watch(stream) = std::mem::replace(&mut *self, Body::empty())
        {
            let frames = |mut stream: Box<verbs::Stream>| async move { Some((stream.frame().await?, stream)) };
            *self = Body::stream(futures::stream::unfold(stream, frames));
        }
        match &mut *self {
            Body::Whole(bytes) => Poll::Ready(bytes.take().map(|bytes| Ok(Frame::data(bytes)))),
            Body::Stream(stream) => {
                stream.poll_next_unpin(context).map(|bytes| bytes.map(|bytes| Ok(Frame::data(bytes))))
            }
            Body::Watch(_) => unreachable!("a watch has just become a stream"),
        }
    }

    fn is_end_stream(&self) -> bool {
        matches!(self, Body::Whole(None))
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Body::Whole(bytes) => SizeHint::with_exact(bytes.as_ref().map_or(0, Bytes::len) as u64),
            Body::Stream(_) | Body::Watch(_) => SizeHint::default(),
        }
    }
}
