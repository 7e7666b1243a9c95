//! `list`: the objects of a resource at one revision, all at once or page by page.

use crate::body::Body;
use crate::context::Context;
use crate::render::Page;
use ambient::Timestamp;
use bytes::Bytes;
use http::Response;
use object::field::{Error, Path};
use object::selector::{FieldSelector, LabelSelector};
use object::{ApiError, Reason, View, base64, json};
use registry::cache::StartError;
use registry::{Object, Selection};
use std::sync::Arc;
use std::time::Duration;
use store::Revision;

/// How long a list waits for a revision that is not there yet.
const FUTURE_WAIT: Duration = Duration::from_secs(3);

pub(crate) async fn list(ctx: &Context) -> Result<Response<Body>, ApiError> {
    let selection = selection(ctx)?;
    let page = page(ctx, &selection).await?;
    let is_custom = matches!(ctx.resource.schema, registry::SchemaRef::Custom(_));
    Ok(ctx.viewer.list(page, is_custom))
}

/// What the selectors of a request select.
pub(crate) fn selection(ctx: &Context) -> Result<Selection, ApiError> {
    let labels = LabelSelector::parse(ctx.query.get("labelSelector").unwrap_or_default());
    let labels = labels.map_err(|error| {
        ApiError::bad_request(format!("unable to parse requirement: {error}").replacen(
            "unable to parse requirement: unable to parse requirement",
            "unable to parse requirement",
            1,
        ))
    })?;
    let fields = FieldSelector::parse(ctx.query.get("fieldSelector").unwrap_or_default());
    let fields = fields.map_err(|error| ApiError::bad_request(error.to_string()))?;
    Selection::new(&ctx.resource, ctx.hub.clone(), &ctx.target.namespace, labels, fields)
}

/// Which state of the cluster a list shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum At {
    /// With every write that was acknowledged before the request.
    Now,
    /// Whatever is at hand, but not older than this.
    NotOlderThan(Revision),
    Exactly(Revision),
}

fn at(ctx: &Context, continued: bool) -> Result<At, ApiError> {
    let version = ctx.query.get("resourceVersion");
    let matching = ctx.query.get("resourceVersionMatch");
    let invalid = |error: Error| ApiError::invalid("meta.k8s.io", "ListOptions", "", &[error]);
    let path = Path::new("resourceVersionMatch");
    if ctx.query.flag("sendInitialEvents") {
        let path = Path::new("sendInitialEvents");
        return Err(invalid(Error::forbidden(&path, "sendInitialEvents is forbidden for list")));
    }
    match (version, matching) {
        (_, Some(_)) if continued => {
            Err(invalid(Error::forbidden(&path, "resourceVersionMatch is forbidden when continue is provided")))
        }
        (Some(version), _) if continued && version != "0" => {
            Err(ApiError::bad_request("specifying resource version is not allowed when using continue"))
        }
        (None, None) => Ok(At::Now),
        (None, Some(_)) => {
            let detail = "resourceVersionMatch is forbidden unless resourceVersion is provided";
            Err(invalid(Error::forbidden(&path, detail)))
        }
        (Some(version), None) => {
            let revision = parse_version(version)?;
            // A page of an exact revision is what older clients mean by a version together with a limit.
            match ctx.query.has("limit") && limit(ctx)? > 0 && revision > Revision::ZERO {
                true => Ok(At::Exactly(revision)),
                false => Ok(At::NotOlderThan(revision)),
            }
        }
        (Some(version), Some("NotOlderThan")) => Ok(At::NotOlderThan(parse_version(version)?)),
        (Some("0"), Some("Exact")) => {
            let detail = "resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\"";
            Err(invalid(Error::forbidden(&path, detail)))
        }
        (Some(version), Some("Exact")) => Ok(At::Exactly(parse_version(version)?)),
        (Some(_), Some(other)) => Err(invalid(Error::not_supported(&path, other, &["Exact", "NotOlderThan", ""]))),
    }
}

pub(crate) fn parse_version(text: &str) -> Result<Revision, ApiError> {
    text.parse().map(Revision).map_err(|_| {
        let error = Error::invalid(
            &Path::new("resourceVersion"),
            text,
            format!("strconv.ParseUint: parsing {text:?}: invalid syntax"),
        );
        ApiError::bad_request(error.to_string())
    })
}

fn limit(ctx: &Context) -> Result<usize, ApiError> {
    let Some(text) = ctx.query.get("limit") else { return Ok(0) };
    let limit: i64 = text
        .parse()
        .map_err(|_| ApiError::bad_request(format!("strconv.ParseInt: parsing {text:?}: invalid syntax")))?;
    Ok(usize::try_from(limit).unwrap_or(0))
}

/// Waits until the cache has seen a revision; one that is far in the future is the client's mistake.
pub(crate) async fn wait_for(ctx: &Context, revision: Revision) -> Result<(), ApiError> {
    let cache = &ctx.api.registry.cache;
    match tokio::time::timeout(FUTURE_WAIT, cache.reached(revision)).await {
        Ok(()) => Ok(()),
        Err(_) => Err(too_large(revision, cache.revision())),
    }
}

fn too_large(asked: Revision, current: Revision) -> ApiError {
    let message = format!("Too large resource version: {asked}, current: {current}");
    ApiError::new(Reason::Timeout, message)
        .with_cause("ResourceVersionTooLarge", "Too large resource version", "")
        .with_retry_after(1)
}

async fn page(ctx: &Context, selection: &Selection) -> Result<Page, ApiError> {
    let limit = limit(ctx)?;
    let continued = ctx.query.get("continue").map(Token::parse).transpose()?;
    let at = at(ctx, continued.is_some())?;
    let cache = &ctx.api.registry.cache;
    let now = ctx.api.ambient.clock.wall();
    let since = continued.as_ref().and_then(|token| token.since).unwrap_or(now);
    let (start, at) = match &continued {
        Some(token) => (token.key(selection), token.at()),
        None => (Bytes::new(), at),
    };
    let paging = Paging { selection, start, limit, since };
    if continued.is_some_and(|token| token.revision.is_some()) && now.since(since) > PAGED {
        return Err(paging.too_old());
    }
    match at {
        At::Now => {
            ctx.catch_up().await?;
        }
        At::NotOlderThan(revision) | At::Exactly(revision) => wait_for(ctx, revision).await?,
    }
    let snapshot = cache.snapshot(&ctx.hub.table);
    if let At::Exactly(revision) = at
        && revision != snapshot.revision
    {
        return paging.earlier(ctx, revision).await;
    }
    let all = snapshot.under(selection.prefix(), &paging.start);
    if selection.is_prefix() && limit == 0 {
        return Ok(Page { revision: snapshot.revision, items: all.cloned().collect(), token: None, remaining: None });
    }
    let mut selected = all.filter(|object| selection.contains(object));
    let items: Vec<_> = selected.by_ref().take(if limit == 0 { usize::MAX } else { limit }).cloned().collect();
    let more = selected.next().is_some();
    // Counting is cheap where nothing has to be looked at, and only then.
    let remaining = (more && !selection.has_selector()).then(|| 1 + selected.count() as u64);
    Ok(paging.page(snapshot.revision, items, more, remaining))
}

/// How long the pages of a list are all of one revision. Clients count on it that this ends within minutes, however long
/// the history is kept.
const PAGED: Duration = Duration::from_secs(300);

/// A part of a list.
struct Paging<'a> {
    selection: &'a Selection,
    start: Bytes,
    /// 0 if there is none.
    limit: usize,
    /// When the first part was asked for.
    since: Timestamp,
}

impl Paging<'_> {
    /// A page of a revision that the cache has left behind.
    async fn earlier(&self, ctx: &Context, revision: Revision) -> Result<Page, ApiError> {
        let (cache, selection, limit) = (&ctx.api.registry.cache, self.selection, self.limit);
        let wanted = if selection.has_selector() { 0 } else { limit };
        let read = cache.earlier(selection.prefix().clone(), self.start.clone(), wanted, revision).await;
        let (objects, left) = read.map_err(|error| self.expired(&error))?;
        if !selection.has_selector() {
            let remaining = (left > 0).then_some(left);
            return Ok(self.page(revision, objects, left > 0, remaining));
        }
        let mut selected = objects.into_iter().filter(|object| selection.contains(object));
        let items: Vec<_> = selected.by_ref().take(if limit == 0 { usize::MAX } else { limit }).collect();
        let more = selected.next().is_some();
        Ok(self.page(revision, items, more, None))
    }

    /// A revision that is gone.
    fn expired(&self, error: &StartError) -> ApiError {
        let StartError::Store(store::Error::Compacted { requested, compacted }) = error else {
            return ApiError::internal(error.to_string());
        };
        if !self.start.is_empty() {
            return self.too_old();
        }
        ApiError::new(
            Reason::Expired,
            format!("The resourceVersion for the provided list is too old: {requested} ({compacted})"),
        )
    }

    /// A client that was paging may go on from where it was, with whatever is there now.
    fn too_old(&self) -> ApiError {
        let token = Token { revision: None, start: relative(self.selection, &self.start), since: None };
        let message = "The provided continue parameter is too old to display a consistent list result. You can start a new list without the continue parameter, or use the continue token in this response to retrieve the remainder of the results. Continuing with the provided token results in an inconsistent list - objects that were created, modified, or deleted between the time the first chunk was returned and now may show up in the list.";
        ApiError::new(Reason::Expired, message).with_continue(&token.encode())
    }

    fn page(&self, revision: Revision, items: Vec<Arc<Object>>, more: bool, remaining: Option<u64>) -> Page {
        let last = items.last().filter(|_| more);
        let token = last.map(|last| {
            // The first key that is greater than the last one.
            let start = format!("{}\0", relative(self.selection, &last.key));
            Token { revision: Some(revision), start, since: Some(self.since) }.encode()
        });
        Page { revision, items, token, remaining }
    }
}

/// A key without what all keys of the resource start with.
fn relative(selection: &Selection, key: &[u8]) -> String {
    let table = selection.resource.table.len() + 1;
    String::from_utf8_lossy(key.get(table..).unwrap_or_default()).into_owned()
}

/// Where a list goes on. Opaque to clients.
#[derive(Debug, PartialEq, Eq)]
struct Token {
    /// None: whatever is there now.
    revision: Option<Revision>,
    start: String,
    /// When the list was begun.
    since: Option<Timestamp>,
}

impl Token {
    fn encode(&self) -> String {
        let revision = self.revision.map_or(-1, |revision| i64::try_from(revision.0).unwrap_or(i64::MAX));
        let mut token = json!({ "v": "meta.k8s.io/v1", "rv": revision, "start": self.start });
        if let Some(since) = self.since {
            token["since"] = json!(since.0);
        }
        base64::encode(token.to_string().as_bytes())
            .replace('+', "-")
            .replace('/', "_")
            .trim_end_matches('=')
            .to_owned()
    }

    fn parse(text: &str) -> Result<Self, ApiError> {
        let invalid = |why: &str| ApiError::bad_request(format!("continue key is not valid: {why}"));
        let mut padded = text.replace('-', "+").replace('_', "/");
        padded.push_str(&"=".repeat((4 - padded.len() % 4) % 4));
        let bytes = base64::decode(&padded).ok_or_else(|| invalid("illegal base64 data"))?;
        let token = object::json::parse(&bytes).map_err(|error| invalid(&error.to_string()))?;
        if token.text("v") != "meta.k8s.io/v1" {
            return Err(invalid("server does not recognize this encoded version"));
        }
        let revision = match token.int("rv") {
            Some(-1) => None,
            Some(revision) if revision > 0 => Some(Revision(revision.unsigned_abs())),
            _ => return Err(invalid("incorrect encoded start resourceVersion (version meta.k8s.io/v1)")),
        };
        let since = token.int("since").and_then(|since| u64::try_from(since).ok()).map(Timestamp);
        match token.text("start") {
            "" => Err(invalid("encoded start key is empty")),
            start if start.starts_with('/') || start.contains("..") => Err(invalid(start)),
            start => Ok(Token { revision, start: start.to_owned(), since }),
        }
    }

    fn key(&self, selection: &Selection) -> Bytes {
        format!("{}/{}", selection.resource.table, self.start).into()
    }

    fn at(&self) -> At {
        self.revision.map_or(At::Now, At::Exactly)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_comes_back_as_it_was_and_a_broken_one_is_refused() {
        for revision in [None, Some(Revision(7))] {
            let token = Token { revision, start: "default/web\0".to_owned(), since: revision.map(|_| Timestamp(9)) };
            assert_eq!(Token::parse(&token.encode()).unwrap(), token);
        }
        for bad in ["!", "e30", "bm9uc2Vuc2U"] {
            assert_eq!(Token::parse(bad).unwrap_err().code(), 400, "{bad}");
        }
    }
}
