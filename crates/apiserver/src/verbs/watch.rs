//! `watch`: the events of a resource after a revision, as they happen.
//!
//! A stream reads the cache at the pace at which its client takes events; several that are ready go out together.

use crate::body::Body;
use crate::context::Context;
use crate::media::{Format, Guise};
use crate::render::{self, Viewer};
use crate::table;
use bytes::{BufMut, Bytes, BytesMut};
use http::{Response, StatusCode};
use object::field::{Error, Path};
use object::{ApiError, Reason, Value, View, json};
use registry::cache::{Event, EventKind, Lost, Watch};
use registry::{Object, Selection};
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;
use store::Revision;
use tokio::time::Instant;

/// Watches without a timeout of their own end after this long, and up to twice as long: not all at once.
const MIN_TIMEOUT: Duration = Duration::from_secs(1800);
/// How often an idle watch says how far it has come.
const BOOKMARK_INTERVAL: Duration = Duration::from_secs(60);
/// Events that are ready go out together up to about this many bytes.
const FRAME_BYTES: usize = 64 << 10;

pub(crate) async fn watch(ctx: &Context) -> Result<Response<Body>, ApiError> {
    if ctx.viewer.accept.format == Format::Yaml {
        let message =
            "only the following media types are accepted: application/json, application/vnd.kubernetes.protobuf";
        return Err(ApiError::new(Reason::NotAcceptable, message));
    }
    let selection = super::list::selection(ctx)?;
    let start = start(ctx)?;
    let cache = &ctx.api.registry.cache;
    let mut pending = VecDeque::new();
    let after = match start {
        Start::After(revision) => {
            // From another cluster, or from one that lost its history: nothing would ever come.
            super::list::wait_for(ctx, revision).await?;
            revision
        }
        Start::Initial { at_least, marked } => {
            match at_least {
                Some(revision) => super::list::wait_for(ctx, revision).await?,
                None => {
                    ctx.catch_up().await?;
                }
            }
            let snapshot = cache.snapshot(&ctx.hub.table);
            let initial = snapshot.under(selection.prefix(), &[]).filter(|object| selection.contains(object));
            pending.extend(initial.map(|object| Ready::Object("ADDED", object.clone())));
            if marked {
                pending.push_back(Ready::Bookmark { revision: snapshot.revision, initial_end: true });
            }
            snapshot.revision
        }
    };
    let stream = Stream {
        watch: cache.watch(&ctx.hub.table, after),
        selection,
        viewer: ctx.viewer.clone(),
        pending,
        bookmarks: ctx.query.flag("allowWatchBookmarks"),
        ends: ctx.api.ambient.clock.monotonic() + timeout(ctx)?,
        next_bookmark: ctx.api.ambient.clock.monotonic() + BOOKMARK_INTERVAL,
        columns_sent: false,
        ended: false,
        watching: ctx.api.metrics.watching(&ctx.resource),
        clock: ctx.api.ambient.clock.clone(),
        stopping: ctx.api.ambient.tasks.clone(),
    };
    let content_type = match ctx.viewer.accept.format {
        Format::Protobuf => "application/vnd.kubernetes.protobuf;stream=watch",
        _ => "application/json",
    };
    Ok(render::response(StatusCode::OK, content_type, Body::watch(stream)))
}

/// Where a watch begins.
enum Start {
    /// With what changes after a revision.
    After(Revision),
    /// With everything there is, and, if that is `marked`, a bookmark behind it.
    Initial { at_least: Option<Revision>, marked: bool },
}

fn start(ctx: &Context) -> Result<Start, ApiError> {
    let version = ctx.query.get("resourceVersion").map(super::list::parse_version).transpose()?;
    let matching = ctx.query.get("resourceVersionMatch");
    let forbidden = |field: &str, detail: &str| {
        let error = Error::forbidden(&Path::new(field), detail);
        Err(ApiError::invalid("meta.k8s.io", "ListOptions", "", &[error]))
    };
    if ctx.query.has("sendInitialEvents") {
        if matching != Some("NotOlderThan") {
            return forbidden(
                "resourceVersionMatch",
                "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan",
            );
        }
        if ctx.query.flag("sendInitialEvents") {
            let at_least = version.filter(|version| *version > Revision::ZERO);
            return Ok(Start::Initial { at_least, marked: ctx.query.flag("allowWatchBookmarks") });
        }
    } else if matching.is_some() {
        return forbidden(
            "resourceVersionMatch",
            "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided",
        );
    }
    Ok(match version {
        None => Start::Initial { at_least: None, marked: false },
        Some(Revision::ZERO) => Start::Initial { at_least: Some(Revision::ZERO), marked: false },
        Some(version) => Start::After(version),
    })
}

fn timeout(ctx: &Context) -> Result<Duration, ApiError> {
    let Some(text) = ctx.query.get("timeoutSeconds") else {
        return Ok(MIN_TIMEOUT + Duration::from_secs(ctx.api.ambient.random.below(MIN_TIMEOUT.as_secs())));
    };
    let seconds = text
        .parse()
        .map_err(|_| ApiError::bad_request(format!("strconv.ParseInt: parsing {text:?}: invalid syntax")))?;
    Ok(Duration::from_secs(seconds))
}

/// An event as it is handed to a client in this process: nothing is encoded.
#[derive(Clone, Debug)]
pub enum Live {
    /// `ADDED`, `MODIFIED` or `DELETED`, and the JSON of the object as it is stored: without its resource version and owners.
    Object {
        kind: &'static str,
        body: Bytes,
        revision: Revision,
    },
    Bookmark {
        revision: Revision,
        initial_end: bool,
    },
    Error(ApiError),
}

/// Something that can go out.
enum Ready {
    Object(&'static str, Arc<Object>),
    Bookmark { revision: Revision, initial_end: bool },
    Error(ApiError),
}

/// An open watch, in whatever form its client takes it.
pub struct Stream {
    watch: Watch,
    selection: Selection,
    viewer: Viewer,
    pending: VecDeque<Ready>,
    bookmarks: bool,
    ends: Instant,
    next_bookmark: Instant,
    /// In tables, only the first event carries the columns.
    columns_sent: bool,
    ended: bool,
    watching: crate::metrics::Watching,
    clock: ambient::Clock,
    stopping: ambient::Tasks,
}

impl std::fmt::Debug for Stream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Stream of {}", self.viewer.resource.plural)
    }
}

impl Stream {
    /// Told of events after those at the other end of a connection: for whoever has work to do about them.
    pub fn comes_last(&mut self) {
        self.watch.comes_last();
    }

    /// All that is ready, at least one event; none at the end.
    pub async fn events(&mut self) -> Option<Vec<Live>> {
        self.ready().await?;
        let pending = std::mem::take(&mut self.pending);
        self.watching.sent(pending.len() as u64);
        Some(pending.into_iter().map(|ready| self.live(ready)).collect())
    }

    fn live(&self, ready: Ready) -> Live {
        match ready {
            Ready::Object(kind, object) => {
                let body = match self.viewer.is_converted() {
                    true => Bytes::from(self.viewer.decode(&object).to_string()),
                    false => object.json(),
                };
                Live::Object { kind, body, revision: object.revision }
            }
            Ready::Bookmark { revision, initial_end } => Live::Bookmark { revision, initial_end },
            Ready::Error(error) => Live::Error(error),
        }
    }

    /// Waits until something can go out; none at the end.
    async fn ready(&mut self) -> Option<()> {
        while self.pending.is_empty() {
            if self.ended || !self.wait().await {
                return None;
            }
        }
        Some(())
    }

    /// The next bytes to send; none at the end.
    pub(crate) async fn frame(&mut self) -> Option<Bytes> {
        self.ready().await?;
        let mut out = BytesMut::with_capacity(self.next_bytes());
        let mut events = 0;
        while out.len() < FRAME_BYTES {
            let Some(ready) = self.pending.pop_front() else { break };
            events += u64::from(matches!(ready, Ready::Object(..)));
            self.write(ready, &mut out);
        }
        self.watching.sent(events);
        Some(out.freeze())
    }

    /// About how long the next frame will be, so that it need not grow.
    fn next_bytes(&self) -> usize {
        const AROUND: usize = 128;
        let mut bytes = AROUND;
        for ready in &self.pending {
            bytes += AROUND + if let Ready::Object(_, object) = ready { object.sent_len() } else { 0 };
            if bytes > FRAME_BYTES {
                break;
            }
        }
        bytes
    }

    /// Waits until something can go out; false when the watch is over.
    async fn wait(&mut self) -> bool {
        // A watch that never runs dry must end in time all the same.
        if self.clock.monotonic() >= self.ends {
            return false;
        }
        let timer = if self.bookmarks { self.next_bookmark.min(self.ends) } else { self.ends };
        tokio::select! {
            // Events come before bookmarks: a client that reads seldom would get nothing else.
            biased;
            _ = self.stopping.stopping() => return false,
            events = self.watch.next() => match events {
                Ok(events) => {
                    let seen = events.iter().filter_map(|event| seen(&self.selection, event));
                    self.pending.extend(seen);
                }
                Err(lost) => {
                    self.pending.push_back(Ready::Error(gone(&lost)));
                    self.ended = true;
                }
            },
            () = tokio::time::sleep_until(timer) => {}
        }
        if self.bookmarks && self.pending.is_empty() && self.clock.monotonic() >= self.next_bookmark {
            self.next_bookmark = self.clock.monotonic() + BOOKMARK_INTERVAL;
            self.pending.push_back(Ready::Bookmark { revision: self.watch.progress(), initial_end: false });
        }
        true
    }

    fn write(&mut self, ready: Ready, out: &mut BytesMut) {
        let native = self.viewer.accept == crate::media::Accept::JSON && !self.viewer.is_converted();
        if let (Ready::Object(kind, object), true) = (&ready, native) {
            out.put_slice(b"{\"type\":\"");
            out.put_slice(kind.as_bytes());
            out.put_slice(b"\",\"object\":");
            object.write(out);
            out.put_slice(b"}\n");
            return;
        }
        let (kind, object) = match ready {
            Ready::Object(kind, object) => (kind, self.show(self.viewer.decode(&object))),
            Ready::Bookmark { revision, initial_end } => ("BOOKMARK", self.bookmark(revision, initial_end)),
            Ready::Error(error) => ("ERROR", error.to_status()),
        };
        match self.viewer.accept.format {
            Format::Protobuf => {
                // Everything that reaches a watch has a binary form, or the request would have been refused.
                let object = render::encode(Format::Protobuf, &object, false).unwrap_or_default();
                let event = schema::protobuf::watch_event(kind, &object);
                out.put_u32(u32::try_from(event.len()).unwrap_or(u32::MAX));
                out.put_slice(&event);
            }
            _ => {
                out.put_slice(json!({ "type": kind, "object": object }).to_string().as_bytes());
                out.put_u8(b'\n');
            }
        }
    }

    fn bookmark(&mut self, revision: Revision, initial_end: bool) -> Value {
        let resource = self.viewer.resource.clone();
        let mut metadata = json!({ "resourceVersion": revision.to_string(), "creationTimestamp": null });
        if initial_end {
            metadata["annotations"] = json!({ "k8s.io/initial-events-end": "true" });
        }
        self.show(json!({ "kind": resource.kind, "apiVersion": resource.api_version(), "metadata": metadata }))
    }

    /// An object in the guise that was asked for.
    fn show(&mut self, object: Value) -> Value {
        match self.viewer.accept.guise {
            Guise::Itself => object,
            Guise::Metadata => render::partial(self.viewer.accept.meta, &object),
            Guise::Table => {
                let metadata = json!({ "resourceVersion": object.at("metadata").text("resourceVersion") });
                let with_columns = !std::mem::replace(&mut self.columns_sent, true);
                let now = i64::try_from(self.clock.wall().0 / 1000).unwrap_or(i64::MAX);
                let Viewer { accept, resource, include, .. } = &self.viewer;
                table::table(accept.meta, resource.printer, &metadata, [object], *include, now, with_columns)
            }
        }
    }
}

/// What an event is to somebody who sees only the selection: entering is an addition, leaving a deletion.
fn seen(selection: &Selection, event: &Event) -> Option<Ready> {
    let now = event.kind != EventKind::Deleted && selection.contains(&event.object);
    let before = event.previous.as_ref().is_some_and(|previous| selection.contains(previous));
    match (before, now) {
        (false, false) => None,
        (false, true) => Some(Ready::Object("ADDED", event.object.clone())),
        (true, true) => Some(Ready::Object("MODIFIED", event.object.clone())),
        (true, false) if event.kind == EventKind::Deleted => Some(Ready::Object("DELETED", event.object.clone())),
        (true, false) => {
            let previous = event.previous.as_ref()?;
            Some(Ready::Object("DELETED", Arc::new(previous.at(event.revision()))))
        }
    }
}

fn gone(lost: &Lost) -> ApiError {
    match lost {
        Lost::TooOld { .. } => ApiError::new(Reason::Expired, lost.to_string()),
        Lost::Failed(_) => ApiError::new(Reason::InternalError, lost.to_string()),
    }
}
