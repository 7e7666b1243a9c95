//! The client: the verbs of the API, on objects as JSON and as views.

use crate::discovery::Known;
use crate::transport::{Events, Transport};
use bytes::Bytes;
use http::{Method, Request, header};
use kinds::{Id, Key, Kind, Meta, Object, Raw};
use object::{ApiError, Reason, Value, View, json};
use parking_lot::Mutex;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tokio::sync::Semaphore;

/// Watches aside, no more than this of a client's requests are under way; the others wait here for their turn. The queues
/// of the API would not take as many as a busy loop can make: those of one flow are the 6 of its hand, of 50 places each.
const MAX_UNDER_WAY: usize = 128;

/// A client with an identity of its own; clones share it.
#[derive(Clone, Debug)]
pub struct Client {
    transport: Arc<dyn Transport>,
    /// What it goes by in managed fields and logs.
    agent: Arc<str>,
    /// Requests that may be under way.
    turns: Arc<Semaphore>,
    /// How often something was read.
    reads: Arc<AtomicU64>,
    /// The resources of the API, as they were last discovered.
    pub(crate) known: Arc<Mutex<Option<Arc<Known>>>>,
}

/// Which object, and in which state: what writes are conditional on.
#[derive(Clone, Debug, PartialEq)]
pub struct Target {
    pub id: Id,
    pub key: Key,
    /// Empty: whichever object has the name.
    pub uid: String,
    /// Empty: in whatever version.
    pub version: String,
}

impl Target {
    /// The object as it was observed: a write to it fails if it has been replaced by another of the same name.
    pub fn of<K: Kind>(object: &Object<K>) -> Self {
        Target::new(K::ID, object.meta())
    }

    pub fn new(id: Id, meta: &Meta) -> Self {
        let key = Key::new(meta.namespace.as_str(), meta.name.as_str());
        Target { id, key, uid: meta.uid.clone(), version: meta.resource_version.clone() }
    }

    /// Whichever object has the name, in whatever version.
    pub fn named(id: Id, key: Key) -> Self {
        Target { id, key, uid: String::new(), version: String::new() }
    }

    fn path(&self, subresource: &str) -> String {
        let path = self.id.path(&self.key.namespace, &self.key.name);
        if subresource.is_empty() { path } else { format!("{path}/{subresource}") }
    }
}

/// How a patch is to be understood.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PatchType {
    Json,
    Merge,
    Strategic,
}

impl PatchType {
    fn media(self) -> &'static str {
        match self {
            PatchType::Json => "application/json-patch+json",
            PatchType::Merge => "application/merge-patch+json",
            PatchType::Strategic => "application/strategic-merge-patch+json",
        }
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Propagation {
    /// As the kind has it.
    #[default]
    Default,
    Background,
    Foreground,
    Orphan,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct DeleteOptions {
    pub grace_seconds: Option<i64>,
    pub propagation: Propagation,
    /// Only if the object is still in the version of the target.
    pub unchanged: bool,
}

/// What to list or watch.
#[derive(Clone, Debug, Default)]
pub struct ListOptions {
    pub label_selector: String,
    pub field_selector: String,
    /// Pages of at most so many; 0 is everything at once.
    pub limit: usize,
}

/// Objects at a version.
#[derive(Debug)]
pub struct List<T> {
    pub items: Vec<T>,
    pub version: String,
    /// With which the next page is asked for; empty after the last.
    pub token: String,
}

/// Characters that stand for themselves in a query.
const PLAIN: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~').remove(b'/');

impl Client {
    pub fn new(transport: Arc<dyn Transport>, agent: &str) -> Self {
        let turns = Arc::new(Semaphore::new(MAX_UNDER_WAY));
        Client { transport, agent: agent.into(), turns, reads: Arc::default(), known: Arc::default() }
    }

    pub fn agent(&self) -> &str {
        &self.agent
    }

    /// How often this client and its clones have read from the API; watches do not count.
    pub fn reads(&self) -> u64 {
        self.reads.load(Ordering::Relaxed)
    }

    /// The object; none if there is none of that name.
    pub async fn get<K: Kind>(&self, key: &Key) -> Result<Option<Object<K>>, ApiError> {
        self.get_raw(&K::ID, key).await?.map(read).transpose()
    }

    pub async fn get_raw(&self, id: &Id, key: &Key) -> Result<Option<Raw>, ApiError> {
        match self.call(Method::GET, &id.path(&key.namespace, &key.name), JSON, None).await {
            Ok(raw) => Ok(Some(raw)),
            Err(error) if error.reason() == Reason::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Everything that is selected; an empty namespace means all of them.
    pub async fn list<K: Kind>(&self, namespace: &str, options: &ListOptions) -> Result<List<Object<K>>, ApiError> {
        let list = self.list_raw(&K::ID, namespace, options).await?;
        let items = list.items.into_iter().map(read).collect::<Result<_, _>>()?;
        Ok(List { items, version: list.version, token: list.token })
    }

    pub async fn list_raw(&self, id: &Id, namespace: &str, options: &ListOptions) -> Result<List<Raw>, ApiError> {
        let mut list = List { items: Vec::new(), version: String::new(), token: String::new() };
        loop {
            let page = self.page(id, namespace, options, &list.token).await?;
            list.items.extend(page.items);
            (list.version, list.token) = (page.version, page.token);
            if list.token.is_empty() {
                return Ok(list);
            }
        }
    }

    /// One page of a list: the first, or the one after which a token was given.
    pub async fn page(
        &self,
        id: &Id,
        namespace: &str,
        options: &ListOptions,
        token: &str,
    ) -> Result<List<Raw>, ApiError> {
        let mut query = options.query();
        if options.limit > 0 {
            query.push(("limit", options.limit.to_string()));
        }
        if !token.is_empty() {
            query.push(("continue", token.to_owned()));
        }
        let page = self.call(Method::GET, &with_query(&id.path(namespace, ""), &query), JSON, None).await?;
        let page: Page = serde_json::from_slice(&page.json).map_err(ApiError::internal)?;
        let items = page.items.iter().map(|item| Raw::from(Bytes::copy_from_slice(item.get().as_bytes())));
        let PageMeta { resource_version, continue_ } = page.metadata;
        Ok(List { items: items.collect(), version: resource_version, token: continue_ })
    }

    /// What changes after a version; without one, first everything there is, closed by a bookmark.
    pub async fn watch(
        &self,
        id: &Id,
        namespace: &str,
        options: &ListOptions,
        after: Option<&str>,
    ) -> Result<Box<dyn Events>, ApiError> {
        let mut query = options.query();
        query.push(("watch", "true".to_owned()));
        query.push(("allowWatchBookmarks", "true".to_owned()));
        match after {
            Some(version) => query.push(("resourceVersion", version.to_owned())),
            None => {
                query.push(("sendInitialEvents", "true".to_owned()));
                query.push(("resourceVersionMatch", "NotOlderThan".to_owned()));
            }
        }
        let request = self.request(Method::GET, &with_query(&id.path(namespace, ""), &query), JSON, None)?;
        self.transport.watch(request).await
    }

    /// Creates an object where its metadata say.
    pub async fn create(&self, id: &Id, object: &Value) -> Result<Raw, ApiError> {
        let path = id.path(object.at("metadata").text("namespace"), "");
        self.call(Method::POST, &path, JSON, Some(object)).await
    }

    /// Posts to a subresource, such as `binding` or `eviction`.
    pub async fn post(&self, target: &Target, subresource: &str, object: &Value) -> Result<Raw, ApiError> {
        self.call(Method::POST, &target.path(subresource), JSON, Some(object)).await
    }

    /// Replaces an object, or its subresource if one is named, on condition that it is in the version that `object`
    /// carries.
    pub async fn update(&self, id: &Id, subresource: &str, object: &Value) -> Result<Raw, ApiError> {
        let metadata = object.at("metadata");
        let mut path = id.path(metadata.text("namespace"), metadata.text("name"));
        if !subresource.is_empty() {
            path = format!("{path}/{subresource}");
        }
        self.call(Method::PUT, &path, JSON, Some(object)).await
    }

    pub async fn patch(
        &self,
        target: &Target,
        subresource: &str,
        kind: PatchType,
        patch: &Value,
    ) -> Result<Raw, ApiError> {
        self.call(Method::PATCH, &target.path(subresource), kind.media(), Some(patch)).await
    }

    /// Applies what `manager` wants to own; `force` takes it from others.
    pub async fn apply(
        &self,
        target: &Target,
        subresource: &str,
        manager: &str,
        force: bool,
        object: &Value,
    ) -> Result<Raw, ApiError> {
        let query = [("fieldManager", manager.to_owned()), ("force", force.to_string())];
        let path = with_query(&target.path(subresource), &query);
        self.call(Method::PATCH, &path, "application/apply-patch+yaml", Some(object)).await
    }

    /// Deletes that very object. It is gone at once, or when its grace has passed and its finalizers are.
    pub async fn delete(&self, target: &Target, options: &DeleteOptions) -> Result<Raw, ApiError> {
        let mut body = json!({ "kind": "DeleteOptions", "apiVersion": "v1" });
        let mut preconditions = json!({});
        if !target.uid.is_empty() {
            preconditions["uid"] = json!(target.uid);
        }
        if options.unchanged && !target.version.is_empty() {
            preconditions["resourceVersion"] = json!(target.version);
        }
        body["preconditions"] = preconditions;
        if let Some(grace_seconds) = options.grace_seconds {
            body["gracePeriodSeconds"] = json!(grace_seconds);
        }
        if options.propagation != Propagation::Default {
            body["propagationPolicy"] = json!(format!("{:?}", options.propagation));
        }
        self.call(Method::DELETE, &target.path(""), JSON, Some(&body)).await
    }

    /// Deletes everything that is selected in a namespace.
    pub async fn delete_collection(&self, id: &Id, namespace: &str, options: &ListOptions) -> Result<(), ApiError> {
        let path = with_query(&id.path(namespace, ""), &options.query());
        self.call(Method::DELETE, &path, JSON, None).await.map(|_| ())
    }

    /// Any request, answered by JSON.
    pub async fn call(&self, method: Method, path: &str, media: &str, body: Option<&Value>) -> Result<Raw, ApiError> {
        self.send(self.request(method, path, media, body)?).await
    }

    /// A request without a body, answered in a form of one's own choice.
    pub(crate) async fn call_accepting(
        &self,
        method: Method,
        path: &str,
        accept: &'static str,
    ) -> Result<Raw, ApiError> {
        let mut request = self.request(method, path, JSON, None)?;
        request.headers_mut().insert(header::ACCEPT, http::HeaderValue::from_static(accept));
        self.send(request).await
    }

    async fn send(&self, request: Request<Bytes>) -> Result<Raw, ApiError> {
        self.reads.fetch_add(u64::from(request.method() == Method::GET), Ordering::Relaxed);
        let turn = self.turns.acquire().await.map_err(ApiError::internal)?;
        let response = self.transport.send(request).await?;
        drop(turn);
        let (parts, body) = response.into_parts();
        if parts.status.is_success() {
            return Ok(Raw::from(body));
        }
        Err(refusal(parts.status.as_u16(), &parts.headers, &body))
    }

    fn request(
        &self,
        method: Method,
        path: &str,
        media: &str,
        body: Option<&Value>,
    ) -> Result<Request<Bytes>, ApiError> {
        let body = body.map(|value| Bytes::from(value.to_string())).unwrap_or_default();
        Request::builder()
            .method(method)
            .uri(path)
            .header(header::USER_AGENT, &*self.agent)
            .header(header::ACCEPT, JSON)
            .header(header::CONTENT_TYPE, media)
            .body(body)
            .map_err(ApiError::internal)
    }
}

const JSON: &str = "application/json";

#[derive(serde::Deserialize)]
struct Page<'a> {
    #[serde(default)]
    metadata: PageMeta,
    #[serde(borrow, default)]
    items: Vec<&'a serde_json::value::RawValue>,
}

#[derive(Default, serde::Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct PageMeta {
    resource_version: String,
    #[serde(rename = "continue")]
    continue_: String,
}

impl ListOptions {
    fn query(&self) -> Vec<(&'static str, String)> {
        let selectors = [("labelSelector", &self.label_selector), ("fieldSelector", &self.field_selector)];
        selectors.into_iter().filter(|(_, text)| !text.is_empty()).map(|(name, text)| (name, text.clone())).collect()
    }
}

/// A path with a query, whatever is in it.
pub fn with_query(path: &str, query: &[(&str, String)]) -> String {
    let pairs: Vec<String> =
        query.iter().map(|(name, value)| format!("{name}={}", utf8_percent_encode(value, PLAIN))).collect();
    if pairs.is_empty() { path.to_owned() } else { format!("{path}?{}", pairs.join("&")) }
}

fn read<K: Kind>(raw: Raw) -> Result<Object<K>, ApiError> {
    Object::read(raw).map_err(ApiError::internal)
}

/// What an answer other than success says.
pub fn refusal(code: u16, headers: &http::HeaderMap, body: &[u8]) -> ApiError {
    let retry_after = headers.get(header::RETRY_AFTER).and_then(|value| value.to_str().ok()?.parse().ok());
    let error = match object::json::parse(body) {
        Ok(status) if status.text("kind") == "Status" => ApiError::from_status(&status),
        _ => ApiError::from_code(code, String::from_utf8_lossy(body)),
    };
    match (error.retry_after_seconds(), retry_after) {
        (None, Some(seconds)) => error.with_retry_after(seconds),
        _ => error,
    }
}
