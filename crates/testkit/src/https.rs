//! A client that sends exactly what it is told to: for requests that no well-behaved client would make, and for
//! tests that count what the server acknowledged.
//!
//! One connection per [`Connection`] or [`Streams`], no pool, no retry.

use ambient::Tasks;
use bytes::Bytes;
use http::{HeaderMap, Method, Request, StatusCode, header};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper::client::conn::http2;
use hyper_util::rt::{TokioExecutor, TokioIo};
use object::{Value, View, base64, json};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use std::collections::VecDeque;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

/// An answer that takes longer is none.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(30);

pub type Failure = Box<dyn std::error::Error + Send + Sync>;

/// Where the server is and who asks; makes connections.
#[derive(Clone)]
pub struct Client {
    address: String,
    tls: TlsConnector,
}

impl std::fmt::Debug for Client {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Client").field("address", &self.address).finish_non_exhaustive()
    }
}

impl Client {
    /// As the user of a kubeconfig that Setpoint wrote.
    pub fn new(kubeconfig: &Path) -> Self {
        Self::read(kubeconfig, true)
    }

    /// The same server, as nobody; requests may carry a token.
    pub fn anonymous(kubeconfig: &Path) -> Self {
        Self::read(kubeconfig, false)
    }

    fn read(kubeconfig: &Path, with_certificate: bool) -> Self {
        let config = std::fs::read(kubeconfig).expect("the kubeconfig is there");
        let config = json::parse(&config).expect("Setpoint writes its kubeconfig as JSON");
        let cluster = config.items("clusters")[0].at("cluster");
        let user = config.items("users")[0].at("user");
        let pem = |of: &Value, field: &str| base64::decode(of.text(field)).expect("PEM is in base64");
        let mut roots = RootCertStore::empty();
        let authority = CertificateDer::from_pem_slice(&pem(cluster, "certificate-authority-data"));
        roots.add(authority.expect("the authority is a certificate")).expect("the authority can be trusted");
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let builder = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
        let builder = builder.expect("the provider has the usual protocols").with_root_certificates(roots);
        let tls = if with_certificate {
            let certificate = CertificateDer::from_pem_slice(&pem(user, "client-certificate-data"));
            let key = PrivateKeyDer::from_pem_slice(&pem(user, "client-key-data"));
            let (certificate, key) = (certificate.expect("a certificate"), key.expect("a private key"));
            builder.with_client_auth_cert(vec![certificate], key).expect("certificate and key belong together")
        } else {
            builder.with_no_client_auth()
        };
        let address = cluster.text("server").trim_start_matches("https://").to_owned();
        Client { address, tls: TlsConnector::from(Arc::new(tls)) }
    }

    /// A connection for one request at a time: HTTP/1.1.
    pub async fn connect(&self) -> Result<Connection, Failure> {
        let stream = self.encrypted(b"http/1.1").await?;
        let (requests, connection) = handshake(TokioIo::new(stream)).await?;
        let tasks = Tasks::new();
        // How it ends is seen by whoever waits for an answer.
        tasks.spawn_until_stopped("connection", async move { drop(connection.await) });
        Ok(Connection { requests, tasks })
    }

    /// A connection for many requests at once: HTTP/2.
    pub async fn connect_many(&self) -> Result<Streams, Failure> {
        let stream = self.encrypted(b"h2").await?;
        let (requests, connection) = http2::handshake(TokioExecutor::new(), TokioIo::new(stream)).await?;
        let tasks = Tasks::new();
        tasks.spawn_until_stopped("connection", async move { drop(connection.await) });
        Ok(Streams { requests, tasks })
    }

    async fn encrypted(&self, protocol: &[u8]) -> Result<TlsStream<TcpStream>, Failure> {
        let stream = TcpStream::connect(&self.address).await?;
        stream.set_nodelay(true)?;
        let mut config = ClientConfig::clone(self.tls.config());
        config.alpn_protocols = vec![protocol.to_vec()];
        Ok(TlsConnector::from(Arc::new(config)).connect(ServerName::try_from("localhost")?, stream).await?)
    }

    /// One request on a connection of its own.
    pub async fn send(&self, request: Request<Bytes>) -> Answer {
        let mut connection = self.connect().await.expect("the server accepts connections");
        connection.send(request).await.expect("the server answers")
    }

    pub async fn get(&self, path: &str) -> Answer {
        self.send(get(path)).await
    }

    pub async fn post(&self, path: &str, body: &Value) -> Answer {
        self.send(with_body(Method::POST, path, "application/json", body.to_string())).await
    }
}

/// A connection; closed when dropped.
#[derive(Debug)]
pub struct Connection {
    requests: SendRequest<Full<Bytes>>,
    tasks: Tasks,
}

impl Connection {
    pub async fn send(&mut self, request: Request<Bytes>) -> Result<Answer, Failure> {
        let answering = async {
            let response = self.requests.send_request(request.map(Full::new)).await?;
            let (parts, body) = response.into_parts();
            let body = body.collect().await?.to_bytes();
            Ok(Answer { status: parts.status, headers: parts.headers, body })
        };
        tokio::time::timeout(ANSWER_TIMEOUT, answering).await?
    }

    /// Begins a watch. The connection is the watch's from then on.
    pub async fn watch(mut self, path: &str) -> Result<Watch, Failure> {
        let response = self.requests.send_request(get(path).map(Full::new)).await?;
        let status = response.status();
        Ok(Watch { status, body: response.into_body(), partial: Vec::new(), lines: VecDeque::new(), _connection: self })
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.tasks.cancel();
    }
}

/// A connection that carries many requests at once; closed when dropped.
#[derive(Debug)]
pub struct Streams {
    requests: http2::SendRequest<Full<Bytes>>,
    tasks: Tasks,
}

impl Streams {
    pub async fn send(&self, mut request: Request<Bytes>) -> Result<Answer, Failure> {
        // The host is part of the URL here.
        request.headers_mut().remove(header::HOST);
        *request.uri_mut() = format!("https://localhost{}", request.uri()).parse()?;
        let response = self.requests.clone().send_request(request.map(Full::new)).await?;
        let (parts, body) = response.into_parts();
        let body = body.collect().await?.to_bytes();
        Ok(Answer { status: parts.status, headers: parts.headers, body })
    }
}

impl Drop for Streams {
    fn drop(&mut self) {
        self.tasks.cancel();
    }
}

pub fn get(path: &str) -> Request<Bytes> {
    with_body(Method::GET, path, "", "")
}

/// A request with a body of some media type; an empty one is left unsaid.
pub fn with_body(method: Method, path: &str, media: &str, body: impl Into<Bytes>) -> Request<Bytes> {
    let mut request = Request::builder().method(method).uri(path).header(header::HOST, "localhost");
    if !media.is_empty() {
        request = request.header(header::CONTENT_TYPE, media);
    }
    request.body(body.into()).expect("the request is well formed")
}

#[derive(Clone, Debug)]
pub struct Answer {
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub body: Bytes,
}

impl Answer {
    /// The body as JSON, or null.
    pub fn json(&self) -> Value {
        json::parse(&self.body).unwrap_or_default()
    }

    /// The texts of its `Warning` headers.
    pub fn warnings(&self) -> Vec<String> {
        let values = self.headers.get_all(header::WARNING).iter();
        values.map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned()).collect()
    }
}

/// The events of a watch, one JSON object per line.
#[derive(Debug)]
pub struct Watch {
    pub status: StatusCode,
    body: Incoming,
    partial: Vec<u8>,
    lines: VecDeque<Value>,
    _connection: Connection,
}

impl Watch {
    /// The next event; none when the stream has ended, in whatever way.
    pub async fn next(&mut self) -> Option<Value> {
        while self.lines.is_empty() {
            let frame = self.body.frame().await?.ok()?;
            self.partial.extend_from_slice(frame.data_ref()?);
            while let Some(end) = self.partial.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.partial.drain(..=end).collect();
                self.lines.push_back(json::parse(&line).expect("an event is JSON"));
            }
        }
        self.lines.pop_front()
    }
}
