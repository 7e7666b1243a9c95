//! Carries plans out: writes in order, creations in growing batches, and what there is to tell about them.
//!
//! It also knows when a plan has been carried out as far as its author can see: once the caches have seen every write.

use crate::client::{Client, DeleteOptions, ListOptions, PatchType, Target};
use crate::informer::Caches;
use crate::plan::{Note, Plan, Write};
use futures::StreamExt;
use futures::stream::FuturesUnordered;
use kinds::{Id, Key, Partial, Raw};
use object::{ApiError, Reason, View};
use std::sync::Arc;
use std::time::Duration;

/// The first batch of creations; each one that succeeds allows twice as many, so that a mistake in a template costs
/// one failed request and not hundreds.
const FIRST_BATCH: usize = 1;
/// So many requests of one plan are open at once at most: enough to keep the store busy, few enough for others to come
/// in between.
const MAX_AT_ONCE: usize = 128;
/// A cache that nothing happens to says how far it has come at least this often.
const BOOKMARKS: Duration = Duration::from_secs(90);
/// Between questions that were not answered; twice as long each time.
const FIRST_PAUSE: Duration = Duration::from_millis(10);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);
/// For how long an answer is asked for.
const PATIENCE: Duration = Duration::from_secs(60);

/// Whoever tells people what happened.
pub type Tell = Arc<dyn Fn(Note) + Send + Sync>;

pub(crate) struct Executor {
    pub(crate) client: Client,
    pub(crate) tell: Tell,
}

/// What became of a plan.
#[derive(Debug, Default)]
pub(crate) struct Outcome {
    /// What the caches have to have seen before the next plan for the same key.
    seen: Vec<Mark>,
    /// The first thing that went wrong.
    pub(crate) error: Option<ApiError>,
    /// Whether it was a creation or a deletion that went wrong.
    pub(crate) is_about_dependents: bool,
}

#[derive(Debug)]
enum Mark {
    /// A cache has come as far as this.
    Version(Id, u64),
    /// An object is gone from its cache, or on its way out.
    Gone(Target),
    /// An object is not what the plan took it for: its cache has to see what it is now.
    Fresh(Id, Key),
    /// Nobody knows whether an object was made under a name that the server chose: the cache has to come as far as the
    /// API is now.
    Unknown(Id),
}

impl Executor {
    pub(crate) async fn execute(&self, plan: Plan) -> Outcome {
        let mut outcome = Outcome::default();
        // What is going to be done is told before what came of it.
        plan.events.into_iter().for_each(|note| (self.tell)(note));
        let mut writes = plan.writes.into_iter().peekable();
        while let Some(write) = writes.next() {
            let mut run = vec![write];
            while let Some(next) = writes.next_if(|next| run[0].joins(next)) {
                run.push(next);
            }
            if outcome.error.is_some() && !run[0].is_report() {
                continue;
            }
            let creates = matches!(run[0], Write::Create { .. });
            let mut rest = run.as_slice();
            let mut batch = FIRST_BATCH;
            while creates && batch < MAX_AT_ONCE && !rest.is_empty() && outcome.error.is_none() {
                let (now, later) = rest.split_at(batch.min(rest.len()));
                self.write_all(now, &mut outcome).await;
                rest = later;
                batch *= 2;
            }
            if outcome.error.is_none() || rest.first().is_some_and(Write::is_report) {
                self.write_all(rest, &mut outcome).await;
            }
        }
        outcome
    }

    /// Sends writes, the next as soon as one is answered. After the first failure only what is on its way goes on.
    async fn write_all(&self, writes: &[Write], outcome: &mut Outcome) {
        let mut rest = writes.iter();
        let mut open = FuturesUnordered::new();
        loop {
            while open.len() < MAX_AT_ONCE
                && let Some(write) = rest.next().filter(|write| outcome.error.is_none() || write.is_report())
            {
                open.push(self.answer(write));
            }
            let Some((write, result)) = open.next().await else { return };
            self.take(write, result, outcome);
        }
    }

    async fn answer<'w>(&self, write: &'w Write) -> (&'w Write, Result<Option<Raw>, ApiError>) {
        (write, self.write(write).await)
    }

    fn take(&self, write: &Write, result: Result<Option<Raw>, ApiError>, outcome: &mut Outcome) {
        match result {
            Ok(raw) => {
                let answer = raw.as_ref().map(Answer::read).unwrap_or_default();
                let name = if answer.name.is_empty() { write.name() } else { answer.name.as_str() };
                if let Some(note) = write.announce().and_then(|announce| announce.success.as_ref()) {
                    (self.tell)(Note { message: note.message.replace("{name}", name), ..note.clone() });
                }
                outcome.seen.extend(write.mark(answer.version));
            }
            Err(error) => {
                outcome.seen.extend(write.mark_of_failure(&error));
                if let Some(note) = write.announce().and_then(|announce| announce.failure.as_ref()) {
                    let message = note.message.replace("{name}", write.name()).replace("{error}", error.message());
                    (self.tell)(Note { message, ..note.clone() });
                }
                if outcome.error.is_none() {
                    outcome.is_about_dependents = matches!(write, Write::Create { .. } | Write::Delete { .. });
                    outcome.error = Some(error);
                }
            }
        }
    }

    /// Sends one write. None: there was nothing to do any more.
    async fn write(&self, write: &Write) -> Result<Option<Raw>, ApiError> {
        let client = &self.client;
        match write {
            Write::Create { id, object, .. } => client.create(id, object).await.map(Some),
            Write::Update { id, subresource, object, .. } => client.update(id, subresource, object).await.map(Some),
            Write::Patch { target, subresource, patch, owner, .. } => {
                if let Some(owner) = owner {
                    self.check_alive(owner).await?;
                }
                gone_is_done(client.patch(target, subresource, PatchType::Merge, patch).await)
            }
            Write::Delete { target, options, .. } => gone_is_done(self.delete(target, options).await),
            Write::Post { target, subresource, object, .. } => {
                gone_is_done(client.post(target, subresource, object).await)
            }
        }
    }

    async fn delete(&self, target: &Target, options: &DeleteOptions) -> Result<Raw, ApiError> {
        match self.client.delete(target, options).await {
            // Another object has the name by now; this one is gone.
            Err(error) if error.reason() == Reason::Conflict && !options.unchanged => {
                Err(ApiError::not_found(target.id.group(), &target.id.plural, &target.key.name))
            }
            answer => answer,
        }
    }

    /// An owner that is gone or going must not adopt anything; caches may not know yet.
    async fn check_alive(&self, owner: &Target) -> Result<(), ApiError> {
        if self.is_there(owner).await? {
            return Ok(());
        }
        let message = format!("{} {} has just been deleted, and adopts nothing", owner.id.kind, owner.key);
        Err(ApiError::new(Reason::Conflict, message))
    }

    /// Whether an object is there and not on its way out, by what the API says.
    async fn is_there(&self, target: &Target) -> Result<bool, ApiError> {
        let now = self.client.get_raw(&target.id, &target.key).await?;
        Ok(now.as_ref().map(Answer::read).is_some_and(|answer| answer.uid == target.uid && !answer.deleted))
    }

    /// What a plan makes something for, if that is gone or going without its cache's knowledge. Whoever has no right to ask
    /// takes it for there.
    pub(crate) async fn owner_gone(&self, caches: &Caches, plan: &Plan) -> Result<Option<Outcome>, ApiError> {
        let Some(owner) = plan.writes.iter().find_map(|write| write.owner(caches)) else { return Ok(None) };
        let is_there = match answered(|| self.is_there(&owner)).await {
            Err(error) if error.reason() == Reason::Forbidden => true,
            answer => answer?,
        };
        Ok((!is_there).then(|| Outcome { seen: vec![Mark::Gone(owner)], ..Outcome::default() }))
    }

    /// Waits until the caches have seen what was written, so that the next plan is made from it.
    pub(crate) async fn seen(&self, caches: &Caches, outcome: &Outcome) {
        for mark in &outcome.seen {
            match mark {
                Mark::Version(id, version) => caches.reached(id, *version).await,
                Mark::Gone(target) => {
                    // What the API does not know may be something else than the object.
                    let _ = tokio::time::timeout(BOOKMARKS, caches.gone(target)).await;
                }
                Mark::Fresh(id, key) => match self.version_of(id, key).await {
                    Ok(version) => caches.reached(id, version.unwrap_or(0)).await,
                    Err(_) => self.up_to_date(caches, id).await,
                },
                Mark::Unknown(id) => self.up_to_date(caches, id).await,
            }
        }
    }

    /// The version that an object has now; none if it is gone. Whoever may change an object need not be allowed to get
    /// it, but who has a cache of its kind may list it.
    async fn version_of(&self, id: &Id, key: &Key) -> Result<Option<u64>, ApiError> {
        let raw = match answered(|| self.client.get_raw(id, key)).await {
            Err(error) if error.reason() == Reason::Forbidden => {
                let field_selector = format!("metadata.name={}", key.name);
                let named = ListOptions { field_selector, ..ListOptions::default() };
                answered(|| self.client.list_raw(id, &key.namespace, &named)).await?.items.into_iter().next()
            }
            answer => answer?,
        };
        Ok(raw.and_then(|raw| Answer::read(&raw).version))
    }

    /// Waits until a cache has come as far as the API is now.
    async fn up_to_date(&self, caches: &Caches, id: &Id) {
        let one = ListOptions { limit: 1, ..ListOptions::default() };
        if let Ok(list) = answered(|| self.client.page(id, "", &one, "")).await {
            let version = list.version.parse().unwrap_or(0);
            // Without the time limit a cache that nothing happens to would be waited for until it says so.
            let _ = tokio::time::timeout(BOOKMARKS, caches.reached(id, version)).await;
        }
    }

    /// Waits until a cache holds every object that is there now, as it is now.
    pub(crate) async fn catch_up(&self, caches: &Caches, id: &Id) {
        let everything = ListOptions::default();
        if let Ok(list) = answered(|| self.client.list_raw(id, "", &everything)).await {
            let newest = list.items.iter().filter_map(|raw| Answer::read(raw).version).max();
            caches.reached(id, newest.unwrap_or(0)).await;
        }
    }
}

/// Asks until the server answers: nobody should plan without what it says. One that cannot answer for as long as this has
/// something else that keeps it from it, and the caches have come as far as they can by then.
async fn answered<T, F>(ask: impl Fn() -> F) -> Result<T, ApiError>
where
    F: Future<Output = Result<T, ApiError>>,
{
    let (mut pause, mut waited) = (FIRST_PAUSE, Duration::ZERO);
    loop {
        let answer = ask().await;
        let is_worth_waiting = |error: &ApiError| is_no_answer(error) || error.reason() == Reason::TooManyRequests;
        if waited > PATIENCE || !answer.as_ref().is_err_and(is_worth_waiting) {
            return answer;
        }
        tokio::time::sleep(pause).await;
        (pause, waited) = ((2 * pause).min(LONGEST_PAUSE), waited + pause);
    }
}

/// Whether what was asked for may have happened all the same.
fn is_no_answer(error: &ApiError) -> bool {
    matches!(
        error.reason(),
        Reason::Timeout | Reason::ServerTimeout | Reason::InternalError | Reason::ServiceUnavailable | Reason::Unknown
    )
}

impl Write {
    /// Whether it may go out together with one like it.
    fn joins(&self, next: &Write) -> bool {
        matches!(
            (self, next),
            (Write::Create { .. }, Write::Create { .. })
                | (Write::Delete { .. }, Write::Delete { .. })
                | (Write::Patch { owner: None, .. }, Write::Patch { owner: None, .. })
        )
    }

    fn id(&self) -> &Id {
        match self {
            Write::Create { id, .. } | Write::Update { id, .. } => id,
            Write::Patch { target, .. } | Write::Delete { target, .. } | Write::Post { target, .. } => &target.id,
        }
    }

    /// Who controls what is to be made, if a cache has it.
    fn owner(&self, caches: &Caches) -> Option<Target> {
        let Write::Create { object, .. } = self else { return None };
        let metadata = object.at("metadata");
        let owner = metadata.items("ownerReferences").iter().find(|owner| owner.flag("controller"))?;
        let (api_version, kind) = (owner.text("apiVersion"), owner.text("kind"));
        let is_it = |id: &Id| *id.api_version == *api_version && *id.kind == *kind;
        let informer = caches.all().find(|informer| is_it(&informer.id()))?;
        let id = informer.id();
        let namespace = if id.namespaced { metadata.text("namespace") } else { "" };
        let (key, uid) = (Key::new(namespace, owner.text("name")), owner.text("uid").to_owned());
        informer.has(&key, &uid).then(|| Target { id, key, uid, version: String::new() })
    }

    fn name(&self) -> &str {
        match self {
            Write::Create { object, .. } | Write::Update { object, .. } => object.at("metadata").text("name"),
            Write::Patch { target, .. } | Write::Delete { target, .. } | Write::Post { target, .. } => &target.key.name,
        }
    }

    fn mark(&self, version: Option<u64>) -> Option<Mark> {
        match (self, version) {
            (Write::Delete { target, .. } | Write::Patch { target, .. }, None) => Some(Mark::Gone(target.clone())),
            // What is posted answers with something else than the object.
            (Write::Post { .. }, _) => None,
            (write, Some(version)) => Some(Mark::Version(write.id().clone(), version)),
            (_, None) => None,
        }
    }
}

impl Write {
    /// What has to be seen after a failure, so that the next plan does not repeat it.
    fn mark_of_failure(&self, error: &ApiError) -> Option<Mark> {
        match error.reason() {
            Reason::NotFound => self.is_gone(),
            Reason::AlreadyExists | Reason::Conflict => Some(Mark::Fresh(self.id().clone(), self.key())),
            _ if !is_no_answer(error) => None,
            _ if self.name().is_empty() => Some(Mark::Unknown(self.id().clone())),
            _ => Some(Mark::Fresh(self.id().clone(), self.key())),
        }
    }

    /// What was to be replaced is not there: whoever plans for it again before that is seen would make again what belongs
    /// to it, and the garbage collector would take that away, without end.
    fn is_gone(&self) -> Option<Mark> {
        let Write::Update { id, object, .. } = self else { return None };
        let uid = object.at("metadata").text("uid").to_owned();
        Some(Mark::Gone(Target { id: id.clone(), key: self.key(), uid, version: String::new() }))
    }

    fn key(&self) -> Key {
        match self {
            Write::Create { object, .. } | Write::Update { object, .. } => {
                Key::new(object.at("metadata").text("namespace"), self.name())
            }
            Write::Patch { target, .. } | Write::Delete { target, .. } | Write::Post { target, .. } => {
                target.key.clone()
            }
        }
    }
}

/// What an answer says of the object that was written.
#[derive(Debug, Default)]
pub(crate) struct Answer {
    name: String,
    uid: String,
    pub(crate) version: Option<u64>,
    deleted: bool,
}

impl Answer {
    pub(crate) fn read(raw: &Raw) -> Self {
        let metadata = Partial::read(raw).map(|partial| partial.metadata).unwrap_or_default();
        Answer {
            deleted: metadata.is_being_deleted(),
            name: metadata.name,
            uid: metadata.uid,
            version: metadata.resource_version.parse().ok(),
        }
    }
}

/// What is gone needs no change and no deletion.
fn gone_is_done(result: Result<Raw, ApiError>) -> Result<Option<Raw>, ApiError> {
    match result {
        Ok(raw) => Ok(Some(raw)),
        Err(error) if error.reason() == Reason::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

impl Caches {
    /// Waits until an object is gone from its cache, or known to be on its way out.
    async fn gone(&self, target: &Target) {
        let Some(informer) = self.all().find(|informer| informer.id() == target.id) else { return };
        let mut progress = informer.progress();
        while informer.has(&target.key, &target.uid) {
            if progress.changed().await.is_err() {
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transport::{Events, Transport};
    use async_trait::async_trait;
    use bytes::Bytes;
    use futures::FutureExt;
    use kinds::{Kind, Node, Object, Pod};
    use object::json;
    use parking_lot::Mutex;

    /// A server that carries out everything, and whose answers are lost as long as there are any to lose.
    #[derive(Debug)]
    struct Lossy {
        losses: Mutex<usize>,
    }

    #[async_trait]
    impl Transport for Lossy {
        async fn send(&self, _: http::Request<Bytes>) -> Result<http::Response<Bytes>, ApiError> {
            let mut losses = self.losses.lock();
            if *losses > 0 {
                *losses -= 1;
                return Err(ApiError::new(Reason::Timeout, "the answer was lost"));
            }
            let node = json!({ "metadata": { "name": "n", "uid": "u", "resourceVersion": "7" } });
            Ok(http::Response::new(Bytes::from(node.to_string())))
        }

        async fn watch(&self, _: http::Request<Bytes>) -> Result<Box<dyn Events>, ApiError> {
            std::future::pending().await
        }
    }

    #[tokio::test(start_paused = true)]
    async fn after_a_lost_answer_nobody_plans_before_what_may_have_been_written_is_seen() {
        let transport = Arc::new(Lossy { losses: Mutex::new(3) });
        let executor = Executor { client: Client::new(transport, "test"), tell: Arc::new(|_| {}) };
        let caches = Caches::default().with::<Node>();
        caches.of::<Node>().advance(5, true);
        let node = Object::<Node>::of(&json!({ "metadata": { "name": "n", "uid": "u", "resourceVersion": "5" } }));
        let mut plan = Plan::default();
        plan.patch(&node, json!({ "spec": { "podCIDR": "10.0.0.0/24" } }));
        let outcome = executor.execute(plan).await;
        assert_eq!(outcome.error.as_ref().map(ApiError::reason), Some(Reason::Timeout));
        let mut seen = Box::pin(executor.seen(&caches, &outcome));
        assert!((&mut seen).now_or_never().is_none(), "the server does not answer");
        tokio::time::advance(Duration::from_secs(1)).await;
        assert!((&mut seen).now_or_never().is_none(), "the server does not answer again");
        tokio::time::advance(Duration::from_secs(1)).await;
        assert!((&mut seen).now_or_never().is_none(), "the cache has not seen what is there");
        caches.of::<Node>().advance(7, true);
        seen.await;
    }

    /// A server that shows nodes only in lists.
    #[derive(Debug)]
    struct Discreet;

    #[async_trait]
    impl Transport for Discreet {
        async fn send(&self, request: http::Request<Bytes>) -> Result<http::Response<Bytes>, ApiError> {
            match request.uri().query() {
                Some(query) if query.contains("fieldSelector=metadata.name%3Dn") => {
                    let items = json!([{ "metadata": { "name": "n", "uid": "u", "resourceVersion": "7" } }]);
                    let list = json!({ "metadata": { "resourceVersion": "99" }, "items": items });
                    Ok(http::Response::new(Bytes::from(list.to_string())))
                }
                _ => Err(ApiError::new(Reason::Forbidden, "nodes may only be listed")),
            }
        }

        async fn watch(&self, _: http::Request<Bytes>) -> Result<Box<dyn Events>, ApiError> {
            std::future::pending().await
        }
    }

    /// A server that knows no object.
    #[derive(Debug)]
    struct Empty;

    #[async_trait]
    impl Transport for Empty {
        async fn send(&self, _: http::Request<Bytes>) -> Result<http::Response<Bytes>, ApiError> {
            let status = json!({ "kind": "Status", "code": 404, "reason": "NotFound", "message": "not found" });
            let mut response = http::Response::new(Bytes::from(status.to_string()));
            *response.status_mut() = http::StatusCode::NOT_FOUND;
            Ok(response)
        }

        async fn watch(&self, _: http::Request<Bytes>) -> Result<Box<dyn Events>, ApiError> {
            std::future::pending().await
        }
    }

    #[tokio::test(start_paused = true)]
    async fn nobody_plans_again_for_what_is_gone_before_that_is_seen() {
        let executor = Executor { client: Client::new(Arc::new(Empty), "test"), tell: Arc::new(|_| {}) };
        let node = Object::<Node>::of(&json!({ "metadata": { "name": "n", "uid": "u", "resourceVersion": "5" } }));
        let (mut replaced, mut patched) = (Plan::default(), Plan::default());
        let object = json!({ "metadata": { "name": "n", "uid": "u", "resourceVersion": "5" } });
        replaced.writes.push(Write::Update { id: Node::ID, subresource: "status", object, announce: None });
        patched.patch(&node, json!({ "spec": { "podCIDR": "10.0.0.0/24" } }));
        for plan in [replaced, patched] {
            let mut caches = Caches::default();
            caches.put(Object::<Node>::of(&json!({ "metadata": { "name": "n", "uid": "u" } })));
            let outcome = executor.execute(plan).await;
            let mut seen = Box::pin(executor.seen(&caches, &outcome));
            assert!((&mut seen).now_or_never().is_none(), "the cache still has it");
            caches.of::<Node>().remove(&Key::cluster("n"));
            caches.of::<Node>().advance(7, true);
            assert!(seen.now_or_never().is_some(), "it has been seen to be gone");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn who_makes_things_again_and_again_is_told_that_their_owner_is_gone() {
        let mut caches = Caches::default();
        caches.put(Object::<Node>::of(&json!({ "metadata": { "name": "n", "uid": "u" } })));
        let owner = json!({ "apiVersion": "v1", "kind": "Node", "name": "n", "uid": "u", "controller": true });
        let pod = json!({ "metadata": { "namespace": "a", "generateName": "p-", "ownerReferences": [owner] } });
        let mut plan = Plan::default();
        plan.writes.push(Write::Create { id: Pod::ID, object: pod, announce: None });
        let asks =
            |transport: Arc<dyn Transport>| Executor { client: Client::new(transport, "test"), tell: Arc::new(|_| {}) };
        let there = asks(Arc::new(Lossy { losses: Mutex::new(2) }));
        assert!(there.owner_gone(&caches, &plan).await.unwrap().is_none());
        let forbidden = asks(Arc::new(Discreet));
        assert!(forbidden.owner_gone(&caches, &plan).await.unwrap().is_none());
        let gone = asks(Arc::new(Empty));
        let outcome = gone.owner_gone(&caches, &plan).await.unwrap().expect("it is gone");
        let mut seen = Box::pin(gone.seen(&caches, &outcome));
        assert!((&mut seen).now_or_never().is_none(), "the cache still has it");
        caches.of::<Node>().remove(&Key::cluster("n"));
        caches.of::<Node>().advance(7, true);
        assert!(seen.now_or_never().is_some(), "it has been seen to be gone");
    }

    #[tokio::test(start_paused = true)]
    async fn who_may_not_get_an_object_waits_for_it_and_not_for_whatever_else_happens() {
        let executor = Executor { client: Client::new(Arc::new(Discreet), "test"), tell: Arc::new(|_| {}) };
        let caches = Caches::default().with::<Node>();
        caches.of::<Node>().advance(5, true);
        let outcome = Outcome { seen: vec![Mark::Fresh(Node::ID, Key::cluster("n"))], ..Outcome::default() };
        let mut seen = Box::pin(executor.seen(&caches, &outcome));
        assert!((&mut seen).now_or_never().is_none(), "the cache has not seen what is there");
        caches.of::<Node>().advance(7, true);
        assert!(seen.now_or_never().is_some(), "the object has been seen");
    }

    #[tokio::test(start_paused = true)]
    async fn a_server_that_never_answers_is_not_asked_for_ever() {
        let transport = Arc::new(Lossy { losses: Mutex::new(usize::MAX) });
        let executor = Executor { client: Client::new(transport, "test"), tell: Arc::new(|_| {}) };
        let caches = Caches::default().with::<Node>();
        let seen = Outcome { seen: vec![Mark::Fresh(Node::ID, Key::cluster("n"))], ..Outcome::default() };
        let limit = 3 * PATIENCE;
        tokio::time::timeout(limit, executor.seen(&caches, &seen)).await.expect("the loop goes on");
    }
}
