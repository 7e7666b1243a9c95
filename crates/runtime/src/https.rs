//! The API over HTTPS: for loops that do not run in the server's process.
//!
//! HTTP/2, which every API server speaks: requests and watches share a few connections, each up to a number of
//! streams, and a connection is pinged, so that a peer that is gone is noticed within a minute however quiet a watch
//! is. A request is sent again only if it is certain that it was never sent.
//!
//! Left out: HTTP/1.1, proxies, and client certificates that are replaced while the program runs.

mod access;
mod stream;

pub use access::{Access, AccessError};

use crate::client::refusal;
use crate::transport::{Events, Transport};
use access::Token;
use ambient::{Ambient, Clock, Tasks};
use async_trait::async_trait;
use bytes::Bytes;
use http::uri::PathAndQuery;
use http::{HeaderValue, Request, Response, Uri, header};
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Incoming;
use hyper::client::conn::http2::{Builder, SendRequest};
use hyper_util::rt::{TokioIo, TokioTimer};
use object::{ApiError, Reason};
use parking_lot::Mutex;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use std::fmt;
use std::future::Future;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use stream::Stream;
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout};
use tokio_rustls::TlsConnector;

/// From nothing to a connection that takes requests.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// The server gives up after a minute.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(65);
/// How often a connection is pinged, and how long it may take to answer.
const PING_INTERVAL: Duration = Duration::from_secs(30);
const PING_TIMEOUT: Duration = Duration::from_secs(15);
/// Requests and watches on one connection at a time; servers allow a hundred.
const MAX_STREAMS: usize = 80;
/// With all of them full, requests wait for each other.
const MAX_CONNECTIONS: usize = 32;
/// What the server may send ahead on a stream, and on all of a connection: readers that stand still never stop others.
const STREAM_WINDOW_BYTES: u32 = 512 << 10;
const CONNECTION_WINDOW_BYTES: u32 = 40 << 20;
/// A list of everything there is fits in.
const MAX_ANSWER_BYTES: usize = 1 << 30;
/// How long a token from a file is used before the file is read again.
const TOKEN_AGE: Duration = Duration::from_secs(60);

/// A server, and who we are to it.
pub struct Https {
    access: Access,
    tls: TlsConnector,
    server_name: ServerName<'static>,
    /// Open connections, in the order in which they were opened.
    connections: Mutex<Vec<Connection>>,
    /// Held while one is opened, so that many requests at once open one.
    opening: tokio::sync::Mutex<()>,
    /// The header that says who we are, and when its file was read.
    token: Mutex<Option<(HeaderValue, Instant)>>,
    clock: Clock,
    tasks: Tasks,
}

#[derive(Clone)]
struct Connection {
    requests: SendRequest<Full<Bytes>>,
    /// Each stream has a clone.
    streams: Arc<()>,
}

impl fmt::Debug for Https {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Https").field("access", &self.access).finish_non_exhaustive()
    }
}

impl Https {
    /// Connects when there is something to send. Connections end with the tasks of `ambient`.
    pub fn new(access: Access, ambient: &Ambient) -> Result<Self, AccessError> {
        let host = access.server_name.as_deref().unwrap_or(access.authority.host());
        let server_name = ServerName::try_from(host.trim_matches(['[', ']']).to_owned())
            .map_err(|error| AccessError::Refused(format!("{host:?} cannot be the name of a server: {error}")))?;
        let tls = TlsConnector::from(Arc::new(tls_config(&access)?));
        Ok(Https {
            access,
            tls,
            server_name,
            connections: Mutex::new(Vec::new()),
            opening: tokio::sync::Mutex::new(()),
            token: Mutex::new(None),
            clock: ambient.clock.clone(),
            tasks: ambient.tasks.clone(),
        })
    }

    pub fn from_kubeconfig(path: &Path, ambient: &Ambient) -> Result<Self, AccessError> {
        Https::new(Access::from_kubeconfig(path)?, ambient)
    }

    pub fn from_service_account(ambient: &Ambient) -> Result<Self, AccessError> {
        Https::new(Access::from_service_account()?, ambient)
    }

    pub fn namespace(&self) -> &str {
        self.access.namespace()
    }

    /// Sends a request and waits for the beginning of its answer; with what keeps its place on the connection.
    async fn begin(&self, request: Request<Bytes>) -> Result<(Response<Incoming>, Arc<()>), ApiError> {
        let mut request = self.addressed(request).await?.map(Full::new);
        // A connection that the server has just closed is found out by using it.
        for _ in 0..=MAX_CONNECTIONS {
            let mut connection = self.connection().await?;
            if connection.requests.ready().await.is_err() {
                continue;
            }
            match connection.requests.try_send_request(request).await {
                Ok(response) => return Ok((response, connection.streams)),
                Err(mut error) => match error.take_message() {
                    Some(unsent) => request = unsent,
                    None => return Err(unavailable(error.error())),
                },
            }
        }
        Err(ApiError::new(Reason::ServiceUnavailable, "the server closes every connection"))
    }

    /// The request with the whole URL and our identity.
    async fn addressed(&self, request: Request<Bytes>) -> Result<Request<Bytes>, ApiError> {
        let (mut parts, body) = request.into_parts();
        let path = parts.uri.path_and_query().map_or("/", PathAndQuery::as_str);
        parts.uri = Uri::builder()
            .scheme(self.access.scheme.clone())
            .authority(self.access.authority.clone())
            .path_and_query(format!("{}{path}", self.access.prefix))
            .build()
            .map_err(ApiError::internal)?;
        parts.headers.remove(header::HOST);
        if let Some(token) = self.authorization().await? {
            parts.headers.insert(header::AUTHORIZATION, token);
        }
        Ok(Request::from_parts(parts, body))
    }

    async fn authorization(&self) -> Result<Option<HeaderValue>, ApiError> {
        let now = self.clock.monotonic();
        let header = |token: &str| {
            let mut value = HeaderValue::try_from(format!("Bearer {}", token.trim())).map_err(ApiError::internal)?;
            value.set_sensitive(true);
            Ok::<_, ApiError>(value)
        };
        let path = match &self.access.token {
            None => return Ok(None),
            Some(Token::Fixed(token)) => return header(token).map(Some),
            Some(Token::File(path)) => path.clone(),
        };
        let known = self.token.lock().clone();
        if let Some((value, _)) = known.as_ref().filter(|(_, read)| now - *read < TOKEN_AGE) {
            return Ok(Some(value.clone()));
        }
        let read = self.tasks.blocking(move || access::read(&path)).await;
        match (read, known) {
            (Ok(bytes), _) => {
                let value = header(&String::from_utf8_lossy(&bytes))?;
                *self.token.lock() = Some((value.clone(), now));
                Ok(Some(value))
            }
            // Between two tokens; the server says when the old one is no longer good.
            (Err(error), Some((value, _))) => {
                tracing::warn!(%error, "the token is not read again");
                Ok(Some(value))
            }
            (Err(error), None) => Err(ApiError::internal(error)),
        }
    }

    /// A connection with room for a stream, if need be a new one.
    async fn connection(&self) -> Result<Connection, ApiError> {
        if let Some(connection) = self.open_connection() {
            return Ok(connection);
        }
        let _opening = self.opening.lock().await;
        if let Some(connection) = self.open_connection() {
            return Ok(connection);
        }
        let opened = timeout(CONNECT_TIMEOUT, self.connect()).await;
        let took_too_long = |_| ApiError::new(Reason::ServiceUnavailable, "the server does not accept the connection");
        let connection = Connection { requests: opened.map_err(took_too_long)??, streams: Arc::new(()) };
        self.connections.lock().push(connection.clone());
        Ok(connection)
    }

    fn open_connection(&self) -> Option<Connection> {
        let mut connections = self.connections.lock();
        connections.retain(|connection| !connection.requests.is_closed());
        let load = |connection: &&Connection| Arc::strong_count(&connection.streams) - 1;
        let full = connections.len() >= MAX_CONNECTIONS;
        // The first with room rather than the emptiest: so the later ones fall idle.
        let with_room = connections.iter().find(|connection| load(connection) < MAX_STREAMS);
        with_room.or_else(|| connections.iter().min_by_key(load).filter(|_| full)).cloned()
    }

    async fn connect(&self) -> Result<SendRequest<Full<Bytes>>, ApiError> {
        let authority = &self.access.authority;
        let host = authority.host().trim_matches(['[', ']']);
        let stream = TcpStream::connect((host, authority.port_u16().unwrap_or(443))).await.map_err(unavailable)?;
        stream.set_nodelay(true).map_err(unavailable)?;
        let stream = self.tls.connect(self.server_name.clone(), stream).await.map_err(unavailable)?;
        let mut builder = Builder::new(Spawner(self.tasks.clone()));
        builder.timer(TokioTimer::new()).keep_alive_interval(PING_INTERVAL).keep_alive_timeout(PING_TIMEOUT);
        builder.keep_alive_while_idle(true);
        builder.initial_stream_window_size(STREAM_WINDOW_BYTES);
        builder.initial_connection_window_size(CONNECTION_WINDOW_BYTES);
        let (requests, connection) = builder.handshake(TokioIo::new(stream)).await.map_err(unavailable)?;
        self.tasks.spawn_until_stopped("connection", async move {
            // Whoever waits for an answer hears of it too.
            if let Err(error) = connection.await {
                tracing::debug!(%error, "a connection to the server ended");
            }
        });
        Ok(requests)
    }
}

#[async_trait]
impl Transport for Https {
    async fn send(&self, request: Request<Bytes>) -> Result<Response<Bytes>, ApiError> {
        let answering = async {
            let (response, _place) = self.begin(request).await?;
            let (parts, body) = response.into_parts();
            let body = Limited::new(body, MAX_ANSWER_BYTES).collect().await.map_err(unavailable)?;
            Ok(Response::from_parts(parts, body.to_bytes()))
        };
        let answered = timeout(REQUEST_TIMEOUT, answering).await;
        answered.unwrap_or_else(|_| Err(ApiError::new(Reason::Timeout, "the server does not answer")))
    }

    async fn watch(&self, request: Request<Bytes>) -> Result<Box<dyn Events>, ApiError> {
        let beginning = async {
            let (response, place) = self.begin(request).await?;
            let (parts, body) = response.into_parts();
            if parts.status.is_success() {
                return Ok(Box::new(Stream::new(body, place)) as Box<dyn Events>);
            }
            let body = Limited::new(body, MAX_ANSWER_BYTES).collect().await.map_err(unavailable)?;
            Err(refusal(parts.status.as_u16(), &parts.headers, &body.to_bytes()))
        };
        let begun = timeout(REQUEST_TIMEOUT, beginning).await;
        begun.unwrap_or_else(|_| Err(ApiError::new(Reason::Timeout, "the server does not answer")))
    }
}

/// Nobody knows what became of the request.
fn unavailable(cause: impl fmt::Display) -> ApiError {
    ApiError::new(Reason::ServiceUnavailable, format!("the server cannot be reached: {cause}"))
}

fn tls_config(access: &Access) -> Result<ClientConfig, AccessError> {
    let refused = |what: &str, why: &dyn fmt::Display| AccessError::Refused(format!("{what}: {why}"));
    let mut roots = RootCertStore::empty();
    for authority in CertificateDer::pem_slice_iter(&access.authorities) {
        let authority = authority.map_err(|error| refused("the certificate authority", &error))?;
        roots.add(authority).map_err(|error| refused("the certificate authority", &error))?;
    }
    if roots.is_empty() {
        return Err(refused("the certificate authority", &"there is no certificate in it"));
    }
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let builder = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let builder = builder.map_err(|error| refused("TLS", &error))?.with_root_certificates(roots);
    let mut config = match &access.certificate {
        None => builder.with_no_client_auth(),
        Some(certificate) => {
            let chain = CertificateDer::pem_slice_iter(&certificate.chain).collect::<Result<Vec<_>, _>>();
            let chain = chain.map_err(|error| refused("the client certificate", &error))?;
            let key = PrivateKeyDer::from_pem_slice(&certificate.key);
            let key = key.map_err(|error| refused("the client key", &error))?;
            builder.with_client_auth_cert(chain, key).map_err(|error| refused("the client certificate", &error))?
        }
    };
    config.alpn_protocols = vec![b"h2".to_vec()];
    Ok(config)
}

/// What a connection does beside its own task belongs to the same group.
#[derive(Clone)]
struct Spawner(Tasks);

impl<F> hyper::rt::Executor<F> for Spawner
where
    F: Future + Send + 'static,
    F::Output: Send,
{
    fn execute(&self, task: F) {
        self.0.spawn_until_stopped("connection", async move { drop(task.await) });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_token_that_is_replaced_is_used_within_a_minute_and_one_that_is_away_is_kept() {
        let dir = tempfile::tempdir().unwrap();
        let authority = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        for (file, text) in [("ca.crt", authority.cert.pem().as_str()), ("namespace", "shop"), ("token", "old\n")] {
            std::fs::write(dir.path().join(file), text).unwrap();
        }
        let access = Access::mounted(dir.path(), "localhost", "1").unwrap();
        let https = Https::new(access, &Ambient::seeded(1)).unwrap();
        let sent = async || {
            let request = Request::get("/api/v1/pods?limit=1").body(Bytes::new()).unwrap();
            let request = https.addressed(request).await.unwrap();
            assert_eq!(request.uri(), "https://localhost:1/api/v1/pods?limit=1");
            request.headers()[header::AUTHORIZATION].to_str().unwrap().to_owned()
        };
        assert_eq!(sent().await, "Bearer old");
        std::fs::write(dir.path().join("token"), "new").unwrap();
        assert_eq!(sent().await, "Bearer old");
        tokio::time::advance(TOKEN_AGE).await;
        assert_eq!(sent().await, "Bearer new");
        std::fs::remove_file(dir.path().join("token")).unwrap();
        tokio::time::advance(TOKEN_AGE).await;
        assert_eq!(sent().await, "Bearer new");
    }

    #[tokio::test]
    async fn a_server_that_is_not_there_is_unavailable() {
        let dir = tempfile::tempdir().unwrap();
        let authority = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        for (file, text) in [("ca.crt", authority.cert.pem().as_str()), ("namespace", "shop"), ("token", "t")] {
            std::fs::write(dir.path().join(file), text).unwrap();
        }
        let ambient = Ambient::seeded(1);
        // A port that was just free and that nobody has been given since.
        let port = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap().port();
        let access = Access::mounted(dir.path(), "127.0.0.1", &port.to_string()).unwrap();
        let https = Https::new(access, &ambient).unwrap();
        let request = Request::get("/version").body(Bytes::new()).unwrap();
        assert_eq!(https.send(request).await.unwrap_err().reason(), Reason::ServiceUnavailable);
    }
}
