//! The events of a watch, out of the bytes of an answer: a JSON object on each line.
//!
//! Only the frame of an event is looked at; the object in it stays the bytes that were sent, for whoever knows its kind.

use crate::transport::{Event, Events};
use async_trait::async_trait;
use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use kinds::{Partial, Raw};
use object::{ApiError, Reason};
use serde::Deserialize;
use serde_json::value::RawValue;
use std::any::Any;
use std::borrow::Cow;
use std::time::Duration;

/// An event that is longer is refused: what is stored is a tenth of it at most.
const MAX_LINE_BYTES: usize = 16 << 20;
/// Bookmarks come about every minute. A watch on which nothing comes for so long is stuck.
const IDLE_TIMEOUT: Duration = Duration::from_secs(300);
const INITIAL_END: &str = "k8s.io/initial-events-end";

pub(super) struct Stream {
    body: Incoming,
    lines: Lines,
    /// What comes after the events that have been handed out.
    failure: Option<ApiError>,
    ended: bool,
    /// Counts the stream among those of its connection.
    _place: Box<dyn Any + Send>,
}

impl Stream {
    pub(super) fn new(body: Incoming, place: impl Any + Send) -> Self {
        Stream { body, lines: Lines::default(), failure: None, ended: false, _place: Box::new(place) }
    }

    /// The next bytes; none at the end.
    async fn chunk(&mut self) -> Result<Option<Bytes>, ApiError> {
        let unavailable = |why: String| ApiError::new(Reason::ServiceUnavailable, why);
        loop {
            let frame = match tokio::time::timeout(IDLE_TIMEOUT, self.body.frame()).await {
                Ok(Some(Ok(frame))) => frame,
                Ok(Some(Err(error))) => return Err(unavailable(format!("the watch broke off: {error}"))),
                Ok(None) if self.lines.partial.is_empty() => return Ok(None),
                Ok(None) => return Err(unavailable("the watch broke off within an event".into())),
                Err(_) => return Err(ApiError::new(Reason::Timeout, "nothing has come on the watch for too long")),
            };
            // What is no data is the end of the answer, which comes next.
            if let Ok(data) = frame.into_data() {
                return Ok(Some(data));
            }
        }
    }
}

#[async_trait]
impl Events for Stream {
    async fn next(&mut self) -> Option<Result<Vec<Event>, ApiError>> {
        while self.failure.is_none() && !self.ended {
            match self.chunk().await {
                Ok(Some(chunk)) => {
                    let (events, failure) = self.lines.take(&chunk);
                    self.failure = failure;
                    if !events.is_empty() {
                        return Some(Ok(events));
                    }
                }
                Ok(None) => self.ended = true,
                Err(error) => self.failure = Some(error),
            }
        }
        self.ended = true;
        self.failure.take().map(Err)
    }
}

/// Splits bytes into events.
#[derive(Default)]
struct Lines {
    /// The beginning of a line; there is no end of one in it.
    partial: BytesMut,
}

#[derive(Deserialize)]
struct Line<'a> {
    #[serde(rename = "type", borrow)]
    kind: Cow<'a, str>,
    #[serde(borrow)]
    object: &'a RawValue,
}

impl Lines {
    /// The events that a chunk completes, up to the first that is a failure, and that failure.
    fn take(&mut self, chunk: &[u8]) -> (Vec<Event>, Option<ApiError>) {
        let Some(end) = chunk.iter().rposition(|byte| *byte == b'\n') else {
            return (Vec::new(), self.keep(chunk).err());
        };
        if let Err(error) = self.keep(&chunk[..end]) {
            return (Vec::new(), Some(error));
        }
        let complete = self.partial.split().freeze();
        let mut events = Vec::new();
        for line in complete.split(|byte| *byte == b'\n').filter(|line| !line.trim_ascii().is_empty()) {
            match event(line) {
                Ok(event) => events.push(event),
                Err(error) => return (events, Some(error)),
            }
        }
        (events, self.keep(&chunk[end + 1..]).err())
    }

    fn keep(&mut self, bytes: &[u8]) -> Result<(), ApiError> {
        let first = bytes.iter().position(|byte| *byte == b'\n').unwrap_or(bytes.len());
        if self.partial.len() + first > MAX_LINE_BYTES {
            return Err(ApiError::internal(format!("an event of a watch is longer than {MAX_LINE_BYTES} bytes")));
        }
        self.partial.extend_from_slice(bytes);
        Ok(())
    }
}

fn event(line: &[u8]) -> Result<Event, ApiError> {
    let Line { kind, object } = serde_json::from_slice(line).map_err(ApiError::internal)?;
    let bytes = object.get().as_bytes();
    // Copied, so that a small object that is kept does not keep everything alive that came with it.
    let raw = || Raw::from(Bytes::copy_from_slice(bytes));
    match kind.as_ref() {
        "ADDED" => Ok(Event::Added(raw())),
        "MODIFIED" => Ok(Event::Modified(raw())),
        "DELETED" => Ok(Event::Deleted(raw())),
        "BOOKMARK" => {
            let Partial { metadata, .. } = Partial::read(&raw()).map_err(ApiError::internal)?;
            let initial_end = metadata.annotation(INITIAL_END) == "true";
            Ok(Event::Bookmark { version: metadata.resource_version, initial_end })
        }
        "ERROR" => Err(ApiError::from_status(&object::json::parse(bytes).map_err(ApiError::internal)?)),
        other => Err(ApiError::internal(format!("{other:?} is no type of event"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(event: &Event) -> String {
        let text = |raw: &Raw| String::from_utf8(raw.json.to_vec()).unwrap();
        match event {
            Event::Added(raw) => format!("+{}", text(raw)),
            Event::Modified(raw) => format!("~{}", text(raw)),
            Event::Deleted(raw) => format!("-{}", text(raw)),
            Event::Bookmark { version, initial_end } => format!("{version} {initial_end}"),
        }
    }

    const LINES: &str = concat!(
        "{\"type\":\"ADDED\",\"object\":{\"a\": 1}}\n{\"type\":\"MODIFIED\",\"object\":{}}\n",
        "{\"type\":\"DELETED\",\"object\":{}}\n\n",
        "{\"type\":\"BOOKMARK\",\"object\":{\"metadata\":{\"resourceVersion\":\"7\"}}}\n",
        "{\"object\":{\"metadata\":{\"annotations\":{\"k8s.io/initial-events-end\":\"true\"}}},\"type\":\"BOOKMARK\"}\n",
    );

    #[test]
    fn events_are_the_same_wherever_the_bytes_are_cut_and_objects_stay_as_they_were_sent() {
        let expected = ["+{\"a\": 1}", "~{}", "-{}", "7 false", " true"];
        for cut in 0..LINES.len() {
            let mut lines = Lines::default();
            let (first, second) = LINES.as_bytes().split_at(cut);
            let (mut events, failure) = lines.take(first);
            assert!(failure.is_none());
            let (more, failure) = lines.take(second);
            events.extend(more);
            assert_eq!(events.iter().map(shown).collect::<Vec<_>>(), expected, "cut at {cut}");
            assert!(failure.is_none() && lines.partial.is_empty());
        }
    }

    #[test]
    fn what_comes_before_a_failure_is_handed_out_and_nothing_after_it() {
        let gone = ApiError::new(Reason::Expired, "too old").to_status();
        let text = format!("{LINES}{{\"type\":\"ERROR\",\"object\":{gone}}}\n{LINES}");
        let (events, failure) = Lines::default().take(text.as_bytes());
        assert_eq!((events.len(), failure.unwrap().code()), (5, 410));
        for bad in ["{}\n", "no\n", "{\"type\":\"X\",\"object\":{}}\n"] {
            assert!(Lines::default().take(bad.as_bytes()).1.is_some(), "{bad}");
        }
    }

    #[test]
    fn a_line_without_an_end_is_refused_before_it_fills_the_memory() {
        let (mut lines, chunk) = (Lines::default(), vec![b'x'; 1 << 20]);
        for _ in 0..16 {
            assert!(lines.take(&chunk).1.is_none());
        }
        assert!(lines.take(&chunk).1.is_some());
        assert!(lines.partial.len() <= MAX_LINE_BYTES);
    }
}
