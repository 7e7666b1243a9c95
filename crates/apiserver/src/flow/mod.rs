//! Flow control: who is worked on, who waits, and who is told to come back later, as FlowSchemas and
//! PriorityLevelConfigurations say.
//!
//! ```text
//! classify    which schema a request falls under
//! shares      how seats are shared out and lent, and how many a list takes
//! queues      who gets the next seat
//! level       a priority level at work
//! directory   what all objects together come to
//! defaults    the objects of a new cluster
//! upkeep      keeping them up to date
//! figures     metrics
//! dump        what the levels are doing, for people
//! ```
//!
//! A request that lasts as long as its client wants has no seat, but for a watch until it is answered.

mod classify;
mod defaults;
mod directory;
mod dump;
mod figures;
mod level;
mod queues;
mod shares;
pub(crate) mod upkeep;

use crate::api::Api;
use crate::body::Body;
use crate::deadline;
use crate::request::{Info, Query};
use ambient::watch;
use authz::User;
pub(crate) use directory::Lane;
use directory::{Directory, Known, Objects};
use figures::Figures;
use futures::StreamExt;
use http::header::HeaderName;
use http::{HeaderMap, Response};
use level::Entry;
use object::ApiError;
use parking_lot::{Mutex, RwLock};
use prometheus::IntGauge;
use queues::Place;
use registry::cache::Event;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::sync::{Notify, oneshot};

const SCHEMAS: &str = "flowschemas.flowcontrol.apiserver.k8s.io";
const LEVELS: &str = "prioritylevelconfigurations.flowcontrol.apiserver.k8s.io";
const SCHEMA_UID: HeaderName = HeaderName::from_static("x-kubernetes-pf-flowschema-uid");
const LEVEL_UID: HeaderName = HeaderName::from_static("x-kubernetes-pf-prioritylevel-uid");
/// How often it is looked who could lend seats to whom, while somebody is short or seats are lent.
const BALANCE_PERIOD: Duration = Duration::from_secs(1);
/// A request waits for a seat at most this part of the time that it has.
const PART_FOR_WAITING: u32 = 4;
const RETRY_AFTER_SECONDS: u32 = 1;

#[derive(Debug)]
pub(crate) struct Flow {
    shared: Arc<Shared>,
    /// Whether somebody keeps the objects up to date.
    is_kept: AtomicBool,
}

#[derive(Debug)]
struct Shared {
    known: Mutex<Known>,
    /// Read by every request.
    directory: RwLock<Arc<Directory>>,
    figures: Figures,
    /// Told of every object that changes.
    changed: watch::Sender<()>,
    /// Told when there is no seat for somebody.
    short: Notify,
}

impl Flow {
    pub(crate) fn new(registry: &prometheus::Registry) -> Self {
        let (figures, mut known) = (Figures::new(registry), Known::default());
        let directory = RwLock::new(Arc::new(known.directory(&figures)));
        let (known, changed) = (Mutex::new(known), watch::Sender::new(()));
        let shared = Shared { known, directory, figures, changed, short: Notify::new() };
        Flow { shared: Arc::new(shared), is_kept: AtomicBool::new(false) }
    }

    /// Follows the objects, and lends seats. Returns when the objects that are there are known.
    pub(crate) fn start(&self, api: &Api) {
        let (schemas, levels, lender) = (self.shared.clone(), self.shared.clone(), self.shared.clone());
        let tree = |event: &Event| event.current().map(|object| object.tree());
        api.registry.cache.observe(LEVELS, move |event| {
            levels.take_in(|known| known.put_level(event.object.name(), tree(event)));
        });
        api.registry.cache.observe(SCHEMAS, move |event| {
            schemas.take_in(|known| known.put_schema(event.object.name(), tree(event)));
        });
        api.ambient.tasks.spawn_until_stopped("seats", async move { lender.lend().await });
    }

    /// The objects as they are known.
    fn objects(&self) -> Objects {
        self.shared.known.lock().objects.clone()
    }

    /// What tells of changes, for whoever asks first: one is enough to keep the objects up to date.
    fn first_to_follow(&self) -> Option<watch::Receiver<()>> {
        (!self.is_kept.swap(true, Ordering::AcqRel)).then(|| self.shared.changed.subscribe())
    }

    /// The way of a request; none if it lasts as long as its client wants and is no watch.
    pub(crate) fn lane(&self, user: &User, info: &Info) -> Option<Arc<Lane>> {
        let counts = info.verb == "watch" || !info.is_long_running();
        counts.then(|| self.shared.directory.read().lane(user, info).clone())
    }

    /// Waits until the request may be worked on, or says that it has to come back later.
    pub(crate) async fn admit(
        &self,
        api: &Api,
        lane: &Arc<Lane>,
        user: &User,
        info: &Info,
        query: &Query,
    ) -> Result<Admitted, ApiError> {
        let seats = match info.verb {
            "list" => seats_of_list(api, lane, info, query),
            _ => 1,
        };
        match lane.level.enter(seats, || lane.flow(user, info)) {
            Entry::Seat if lane.is_exempt => {}
            Entry::Seat => lane.figures.waited.observe(0.0),
            Entry::Refused(reason) => {
                self.shared.short.notify_one();
                return Err(self.refuse(lane, reason));
            }
            Entry::Wait(place, turn) => {
                self.shared.short.notify_one();
                let allowed = deadline::limit(info, query)?.unwrap_or(deadline::MAX) / PART_FOR_WAITING;
                self.wait(api, Queued::new(self, lane, place, seats), turn, allowed).await?;
            }
        }
        let inflight = (!info.is_long_running()).then(|| api.metrics.inflight(info.is_mutating()).clone());
        Ok(Admitted::new(lane.clone(), seats, inflight))
    }

    async fn wait(
        &self,
        api: &Api,
        queued: Queued<'_>,
        turn: oneshot::Receiver<()>,
        allowed: Duration,
    ) -> Result<(), ApiError> {
        let (clock, lane) = (&api.ambient.clock, queued.lane);
        let since = clock.monotonic();
        let in_time = tokio::time::timeout(allowed, turn).await.is_ok();
        let waited = clock.monotonic().duration_since(since).as_secs_f64();
        if queued.settle(in_time) {
            lane.figures.waited.observe(waited);
            return Ok(());
        }
        self.shared.figures.waited_in_vain(&lane.level.name, &lane.schema, waited);
        Err(self.refuse(lane, "time-out"))
    }

    fn refuse(&self, lane: &Lane, reason: &str) -> ApiError {
        self.shared.figures.rejected(&lane.level.name, &lane.schema, reason);
        ApiError::too_many_requests("too many requests, please try again later", RETRY_AFTER_SECONDS)
    }
}

impl Shared {
    fn take_in(&self, put: impl FnOnce(&mut Known) -> bool) {
        let mut known = self.known.lock();
        if put(&mut known) {
            *self.directory.write() = Arc::new(known.directory(&self.figures));
        }
        drop(known);
        self.changed.send_replace(());
    }

    async fn lend(&self) {
        let mut is_lent = false;
        loop {
            if !is_lent {
                self.short.notified().await;
            }
            let directory = self.directory.read().clone();
            is_lent = directory.balance(&self.figures);
            tokio::time::sleep(BALANCE_PERIOD).await;
        }
    }
}

/// How many seats a list takes.
fn seats_of_list(api: &Api, lane: &Lane, info: &Info, query: &Query) -> u32 {
    let Some(target) = &info.target else { return 1 };
    let resources = api.registry.resources();
    let Some(resource) = resources.get(&target.group, &target.version, &target.resource) else { return 1 };
    // A list of one name is as good as a get.
    let stored = if target.name.is_empty() { api.registry.cache.count(&resource.table) } else { 1 };
    let limit = query.get("limit").and_then(|limit| limit.parse().ok()).unwrap_or(0);
    let selective = query.get("labelSelector").is_some() || query.get("fieldSelector").is_some();
    shares::seats_of_list(stored, limit, selective, lane.level.widest())
}

impl Lane {
    /// What an answer says of the way of its request.
    pub(crate) fn show(&self, headers: &mut HeaderMap) {
        headers.insert(SCHEMA_UID, self.schema_uid.clone());
        headers.insert(LEVEL_UID, self.level_uid.clone());
    }
}

/// A request that waits; one whose client goes away gives its place up.
struct Queued<'a> {
    flow: &'a Flow,
    lane: &'a Lane,
    place: Option<Place>,
    seats: u32,
}

impl<'a> Queued<'a> {
    fn new(flow: &'a Flow, lane: &'a Lane, place: Place, seats: u32) -> Self {
        lane.figures.inqueue.inc();
        Queued { flow, lane, place: Some(place), seats }
    }

    /// Ends the waiting; whether with seats. Even who has waited too long may just have been given some.
    fn settle(mut self, in_time: bool) -> bool {
        self.place.take().is_some_and(|place| in_time || !self.lane.level.give_up(place))
    }
}

impl Drop for Queued<'_> {
    fn drop(&mut self) {
        self.lane.figures.inqueue.dec();
        match self.place.take().map(|place| self.lane.level.give_up(place)) {
            None => {}
            Some(true) => self.flow.shared.figures.rejected(&self.lane.level.name, &self.lane.schema, "cancelled"),
            Some(false) => self.lane.level.leave(self.seats),
        }
    }
}

/// A request that may be worked on, as long as this lives.
#[derive(Debug)]
pub(crate) struct Admitted {
    lane: Arc<Lane>,
    seats: u32,
    inflight: Option<IntGauge>,
}

impl Admitted {
    fn new(lane: Arc<Lane>, seats: u32, inflight: Option<IntGauge>) -> Self {
        lane.figures.dispatched.inc();
        lane.figures.executing.inc();
        lane.figures.executing_seats.add(i64::from(seats));
        inflight.iter().for_each(IntGauge::inc);
        Admitted { lane, seats, inflight }
    }

    /// A list that is sent bit by bit is still being worked on. It keeps its seats until it is sent, but no longer than a
    /// request may take: a client that does not read keeps them from others.
    pub(crate) fn until_sent(self, api: &Api, response: Response<Body>) -> Response<Body> {
        let (parts, body) = response.into_parts();
        let Body::Stream(stream) = body else { return Response::from_parts(parts, body) };
        let (sending, sent) = oneshot::channel::<()>();
        api.ambient.tasks.spawn_until_stopped("list", async move {
            // Nothing is ever said; it ends when the stream does.
            let _ = tokio::time::timeout(deadline::MAX, sent).await;
            drop(self);
        });
        let stream = stream.map(move |bytes| {
            let _ = &sending;
            bytes
        });
        Response::from_parts(parts, Body::stream(stream))
    }
}

impl Drop for Admitted {
    fn drop(&mut self) {
        self.lane.level.leave(self.seats);
        self.lane.figures.executing.dec();
        self.lane.figures.executing_seats.sub(i64::from(self.seats));
        self.inflight.iter().for_each(IntGauge::dec);
    }
}

#[cfg(test)]
mod tests;
