//! The way of a request: who is it, may it come in, may it do this, what is it, do it, say so.

use crate::api::Api;
use crate::audit::{Audit, Entry, Level};
use crate::body::Body;
use crate::context::Context;
use crate::decode::MAX_BODY_BYTES;
use crate::flow::Lane;
use crate::media::{self, Accept, Format};
use crate::render::{self, Viewer};
use crate::request::{Info, Query, Target};
use crate::{compress, deadline, other, special, table, verbs};
use authz::User;
use bytes::{Bytes, BytesMut};
use futures::FutureExt;
use http::{HeaderMap, HeaderValue, Request, Response, header};
use http_body_util::BodyExt;
use object::{ApiError, Reason};
use registry::{Resource, Subresource, Verb};
use std::net::IpAddr;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

/// A client that has not sent its body after this long is not waited for.
const BODY_TIMEOUT: Duration = Duration::from_secs(60);

/// Who is at the other end of a connection.
#[derive(Clone, Debug, Default)]
pub struct Peer {
    /// Proved by a client certificate, or by being in this process.
    pub user: Option<Arc<User>>,
    /// None: in this process.
    pub address: Option<IpAddr>,
}

/// What becomes known of a request on its way; for the audit log and the headers of the answer.
#[derive(Debug, Default)]
struct Trail {
    user: Option<Arc<User>>,
    impersonated: Option<Arc<User>>,
    body: Option<(Format, Bytes)>,
    lane: Option<Arc<Lane>>,
}

impl Api {
    /// Answers a request. A panic is a 500 and a line in the log, never the end of the process.
    pub async fn handle<B>(&self, peer: &Peer, request: Request<B>) -> Response<Body>
    where
        B: http_body::Body<Data = Bytes> + Unpin + Send,
        B::Error: std::fmt::Display,
    {
        let (parts, body) = request.into_parts();
        let query = Query::parse(parts.uri.query());
        let info = Info::new(&parts.method, parts.uri.path(), &query);
        let started = self.ambient.clock.monotonic();
        let is_head = parts.method == http::Method::HEAD;
        let accepts_gzip = compress::accepts_gzip(&parts.headers);
        let format =
            media::accept(text(&parts.headers, header::ACCEPT), true).map_or(Format::Json, |accept| accept.format);
        let dry_run = query.get("dryRun").is_some();
        let received = self.ambient.clock.wall();
        let (uri, headers) = (parts.uri, parts.headers);
        let agent = self.audit.as_ref().map(|_| text(&headers, header::USER_AGENT).unwrap_or_default().to_owned());
        let mut trail = Trail::default();
        let limit = deadline::limit(&info, &query);
        let routed = deadline::within(limit, self.route(peer, &info, query, headers, body, &mut trail));
        let handled = AssertUnwindSafe(routed).catch_unwind().await;
        let mut response = match handled {
            Ok(Ok(response)) => response,
            Ok(Err(error)) => render::error(format, &error),
            Err(_) => {
                tracing::error!(request = %info, "a request panicked");
                self.metrics.panicked();
                let error = ApiError::internal("the request could not be completed because of a mistake in the server");
                render::error(Format::Json, &error)
            }
        };
        if let Some(lane) = trail.lane.take() {
            lane.show(response.headers_mut());
        }
        let took = self.ambient.clock.monotonic().duration_since(started);
        self.metrics.answered(&info, response.status().as_u16(), dry_run, took);
        if let (Some(audit), Some(agent)) = (&self.audit, agent) {
            self.record(audit, peer, &info, &uri, &agent, trail, received.0, &mut response).await;
        }
        if accepts_gzip && info.verb != "watch" {
            response = compress::gzip(response);
        }
        if is_head {
            *response.body_mut() = Body::empty();
        }
        response
    }

    async fn route<B>(
        &self,
        peer: &Peer,
        info: &Info,
        query: Query,
        headers: HeaderMap,
        body: B,
        trail: &mut Trail,
    ) -> Result<Response<Body>, ApiError>
    where
        B: http_body::Body<Data = Bytes> + Unpin + Send,
        B::Error: std::fmt::Display,
    {
        let user = self.authentication.authenticate(self, peer, &headers)?;
        trail.user = Some(user.clone());
        let user = self.authorization.impersonate(self, user, &headers).await?;
        trail.impersonated = trail.user.as_ref().filter(|sender| !Arc::ptr_eq(sender, &user)).map(|_| user.clone());
        trail.lane = self.flow.lane(&user, info);
        let admitted = match &trail.lane {
            Some(lane) => Some(self.flow.admit(self, lane, &user, info, &query).await?),
            None => None,
        };
        self.authorization.check(self, &user, info).await?;
        if let Some(creation) = info.as_creation_of_a_stream(headers.contains_key(header::UPGRADE)) {
            self.authorization.check(self, &user, &creation).await?;
        }
        let Some(target) = &info.target else {
            return other::serve(self, info, &query, &headers, &user).await;
        };
        let resources = self.registry.resources();
        let resource = resources.get(&target.group, &target.version, &target.resource).cloned();
        let resource = resource.ok_or_else(not_served)?;
        let tables = special::has_table(&resource, &target.subresource);
        let accept = media::accept(text(&headers, header::ACCEPT), tables)?;
        let viewer = self.viewer(accept, &resource, &query, &headers)?;
        check_path(info, target, &resource)?;
        let ctx = Context::new(self.clone(), info.clone(), query, headers, user, resource, viewer);
        if let Some(why) = ctx.resource.deprecated {
            ctx.warn(why);
        }
        let body = match info.is_mutating() {
            true => read_body(body).await?,
            false => Bytes::new(),
        };
        if self.audit.is_some() && !body.is_empty() {
            trail.body = ctx.body_format().ok().map(|format| (format, body.clone()));
        }
        let answer = dispatch(&ctx, body).await;
        let mut response = match answer {
            Ok(response) => response,
            Err(error) => render::error(ctx.viewer.accept.format, &error),
        };
        for warning in ctx.take_warnings() {
            add_warning(&mut response, &warning);
        }
        Ok(match admitted {
            Some(admitted) if info.verb == "list" => admitted.until_sent(self, response),
            _ => response,
        })
    }

    #[allow(clippy::too_many_arguments, reason = "all that is known of a request comes together here")]
    async fn record(
        &self,
        audit: &Audit,
        peer: &Peer,
        info: &Info,
        uri: &http::Uri,
        agent: &str,
        trail: Trail,
        received: u64,
        response: &mut Response<Body>,
    ) {
        let user = trail.user.unwrap_or_else(|| Arc::new(crate::identity::anonymous()));
        let level = audit.level(trail.impersonated.as_ref().unwrap_or(&user), info);
        let id = crate::naming::uid(&self.ambient.random);
        if let Ok(value) = HeaderValue::from_str(&id) {
            response.headers_mut().insert("audit-id", value);
        }
        if level == Level::None {
            return;
        }
        let answer = match response.body() {
            Body::Whole(Some(bytes)) if level == Level::RequestResponse => Some(bytes.clone()),
            _ => None,
        };
        let uri = uri.to_string();
        let entry = Entry {
            id: &id,
            level,
            info,
            uri: &uri,
            user: &user,
            impersonated: trail.impersonated.as_deref(),
            source: peer.address.unwrap_or(IpAddr::from([127, 0, 0, 1])).to_string(),
            agent,
            code: response.status().as_u16(),
            request: trail.body,
            response: answer,
            received,
            completed: self.ambient.clock.wall().0,
        };
        audit.write(&entry).await;
    }

    fn viewer(
        &self,
        accept: Accept,
        resource: &Arc<registry::Resource>,
        query: &Query,
        headers: &HeaderMap,
    ) -> Result<Viewer, ApiError> {
        let include = table::Include::parse(query.get("includeObject"))
            .ok_or_else(|| ApiError::bad_request("includeObject must be one of None, Metadata, Object"))?;
        let agent = text(headers, header::USER_AGENT).unwrap_or_default();
        // People look at what these print.
        let person = ["curl", "Wget", "Mozilla/5.0"].iter().any(|program| agent.starts_with(program));
        let pretty = if query.has("pretty") { query.flag("pretty") } else { person };
        let now = i64::try_from(self.ambient.clock.wall().0 / 1000).unwrap_or(i64::MAX);
        Ok(Viewer { accept, resource: resource.clone(), include, now, pretty })
    }
}

/// Whether there is such a URL, and whether it takes this method.
fn check_path(info: &Info, target: &Target, resource: &Resource) -> Result<(), ApiError> {
    let of_collection = matches!(info.verb, "list" | "watch" | "deletecollection");
    let named = !target.name.is_empty() && !of_collection;
    if resource.is_namespaced() && target.namespace.is_empty() {
        // All namespaces at once can be read, and nothing else.
        return match (named, info.verb) {
            (_, "list" | "watch") => Ok(()),
            (true, _) => Err(not_served()),
            (false, _) if resource.verbs.contains(Verb::List) => Err(method_not_allowed()),
            (false, _) => Err(not_served()),
        };
    }
    match (named, info.verb) {
        (true, "create") if target.subresource.is_empty() => Err(method_not_allowed()),
        (false, "update" | "patch") => Err(method_not_allowed()),
        _ => Ok(()),
    }
}

async fn dispatch(ctx: &Context, body: Bytes) -> Result<Response<Body>, ApiError> {
    if let Some(answer) = special::serve(ctx, &body).await {
        return answer;
    }
    let subresource = match ctx.target.subresource.as_str() {
        "" => None,
        name => Some(ctx.resource.subresource(name).ok_or_else(not_served)?),
    };
    let allowed = |verb: Verb| match subresource {
        None => ctx.resource.verbs.contains(verb),
        Some(Subresource::Finalize) => verb == Verb::Update,
        Some(Subresource::Status | Subresource::Approval | Subresource::EphemeralContainers | Subresource::Resize) => {
            matches!(verb, Verb::Get | Verb::Update | Verb::Patch)
        }
        Some(_) => false,
    };
    match ctx.info.verb {
        "get" if allowed(Verb::Get) => verbs::get(ctx).await,
        "list" if allowed(Verb::List) => verbs::list(ctx).await,
        "watch" if allowed(Verb::Watch) => verbs::watch(ctx).await,
        "create" if allowed(Verb::Create) => verbs::create(ctx, body).await,
        "update" if allowed(Verb::Update) => verbs::update(ctx, body).await,
        "patch" if allowed(Verb::Patch) => verbs::patch(ctx, body).await,
        "delete" if allowed(Verb::Delete) => verbs::delete(ctx, body).await,
        "deletecollection" if allowed(Verb::DeleteCollection) => verbs::delete_collection(ctx, body).await,
        _ => Err(method_not_allowed()),
    }
}

pub(crate) fn not_served() -> ApiError {
    ApiError::new(Reason::NotFound, "the server could not find the requested resource")
}

pub(crate) fn method_not_allowed() -> ApiError {
    ApiError::new(Reason::MethodNotAllowed, "the server does not allow this method on the requested resource")
}

/// Reads a body within the limits of size and time.
async fn read_body<B>(mut body: B) -> Result<Bytes, ApiError>
where
    B: http_body::Body<Data = Bytes> + Unpin + Send,
    B::Error: std::fmt::Display,
{
    let too_large = || {
        let message = format!("limit is {MAX_BODY_BYTES}");
        ApiError::new(Reason::RequestEntityTooLarge, format!("Request entity too large: {message}"))
    };
    // What is a little too large is read to its end and thrown away: a client that is still sending when it is
    // answered may never see the answer.
    if body.size_hint().lower() > 2 * MAX_BODY_BYTES as u64 {
        return Err(too_large());
    }
    let reading = async {
        let mut whole = BytesMut::new();
        let mut thrown_away = 0;
        let mut first: Option<Bytes> = None;
        while let Some(frame) = body.frame().await {
            let frame = frame.map_err(|error| ApiError::bad_request(format!("the body cannot be read: {error}")))?;
            let Ok(data) = frame.into_data() else { continue };
            if thrown_away > 0 || whole.len() + first.as_ref().map_or(0, Bytes::len) + data.len() > MAX_BODY_BYTES {
                thrown_away += data.len();
                (first, whole) = (None, BytesMut::new());
                if thrown_away > MAX_BODY_BYTES {
                    return Err(too_large());
                }
                continue;
            }
            // Most bodies come in one piece, which need not be copied.
            match (&first, whole.is_empty()) {
                (None, true) => first = Some(data),
                _ => {
                    if let Some(first) = first.take() {
                        whole.extend_from_slice(&first);
                    }
                    whole.extend_from_slice(&data);
                }
            }
        }
        if thrown_away > 0 {
            return Err(too_large());
        }
        Ok(first.unwrap_or_else(|| whole.freeze()))
    };
    match tokio::time::timeout(BODY_TIMEOUT, reading).await {
        Ok(body) => body,
        Err(_) => Err(ApiError::new(Reason::Timeout, "the body of the request did not arrive in time")),
    }
}

pub(crate) fn text(headers: &HeaderMap, name: header::HeaderName) -> Option<&str> {
    headers.get(name)?.to_str().ok()
}

/// `Warning: 299 - "text"`.
fn add_warning(response: &mut Response<Body>, warning: &str) {
    let escaped: String = warning
        .chars()
        .filter(|c| !c.is_control())
        .flat_map(|c| if matches!(c, '"' | '\\') { vec!['\\', c] } else { vec![c] })
        .collect();
    if let Ok(value) = HeaderValue::from_str(&format!("299 - \"{escaped}\"")) {
        response.headers_mut().append(header::WARNING, value);
    }
}
