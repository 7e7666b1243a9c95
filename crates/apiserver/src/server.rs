//! Connections: TLS, HTTP/1.1 and HTTP/2 on one port.

use crate::api::Api;
use crate::authn::user_of_certificate;
use crate::pipeline::Peer;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use rustls::server::{ClientHello, ResolvesServerCert, WebPkiClientVerifier};
use rustls::sign::CertifiedKey;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;

/// A client that has not finished the handshake or sent its headers after this long is not waited for.
const PATIENCE: Duration = Duration::from_secs(10);
/// A connection without a request for this long is closed.
const IDLE: Duration = Duration::from_secs(90);
/// HTTP/2 streams on one connection; client-go opens one per watch.
const MAX_STREAMS: u32 = 1000;

/// What the server proves itself with, and whom it believes.
pub struct Tls {
    acceptor: TlsAcceptor,
    current: Arc<Current>,
}

impl std::fmt::Debug for Tls {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tls").field("current", &self.current).finish_non_exhaustive()
    }
}

/// The serving certificate, which is replaced while the server runs.
#[derive(Debug)]
struct Current(parking_lot::RwLock<Arc<CertifiedKey>>);

impl ResolvesServerCert for Current {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(self.0.read().clone())
    }
}

impl Tls {
    /// `roots` sign the certificates of clients; those who have none are anonymous.
    pub fn new(serving: CertifiedKey, roots: rustls::RootCertStore) -> Result<Self, String> {
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider.clone())
            .allow_unauthenticated()
            .build()
            .map_err(|error| error.to_string())?;
        let current = Arc::new(Current(parking_lot::RwLock::new(Arc::new(serving))));
        let mut config = rustls::ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| error.to_string())?
            .with_client_cert_verifier(verifier)
            .with_cert_resolver(current.clone());
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Ok(Tls { acceptor: TlsAcceptor::from(Arc::new(config)), current })
    }

    /// Serves another certificate from the next connection on.
    pub fn replace(&self, serving: CertifiedKey) {
        *self.current.0.write() = Arc::new(serving);
    }
}

/// Serves until the tasks of the API are stopped; connections end after their current requests.
pub async fn serve(api: Api, listener: TcpListener, tls: Arc<Tls>) {
    let tasks = api.ambient.tasks.clone();
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            _ = tasks.stopping() => return,
        };
        match accepted {
            Ok((stream, _)) => {
                let (api, tls) = (api.clone(), tls.clone());
                tasks.spawn("connection", async move {
                    if let Err(error) = connection(api, stream, &tls).await {
                        tracing::debug!(%error, "a connection ended");
                    }
                });
            }
            Err(error) => {
                // Out of file descriptors, most likely: what is open goes on, and may free some.
                tracing::warn!(%error, "no connection can be accepted");
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        }
    }
}

type Failure = Box<dyn std::error::Error + Send + Sync>;

async fn connection(api: Api, stream: TcpStream, tls: &Tls) -> Result<(), Failure> {
    stream.set_nodelay(true)?;
    let address = stream.peer_addr().ok().map(|address| address.ip());
    let tasks = api.ambient.tasks.clone();
    let stream = tokio::time::timeout(PATIENCE, tls.acceptor.accept(stream)).await??;
    let (_, session) = stream.get_ref();
    let certificate = session.peer_certificates().and_then(|chain| chain.first());
    let user = certificate.and_then(|der| user_of_certificate(der)).map(Arc::new);
    let http2 = session.alpn_protocol() == Some(b"h2");
    let peer = Arc::new(Peer { user, address });
    let service = service_fn(move |request| {
        let (api, peer) = (api.clone(), peer.clone());
        async move { Ok::<_, Infallible>(api.handle(&peer, request).await) }
    });
    let io = TokioIo::new(stream);
    if http2 {
        let mut builder = hyper::server::conn::http2::Builder::new(TokioExecutor::new());
        builder
            .timer(TokioTimer::new())
            .max_concurrent_streams(MAX_STREAMS)
            .keep_alive_interval(Duration::from_secs(30));
        builder.initial_stream_window_size(1 << 20).initial_connection_window_size(4 << 20);
        let connection = builder.serve_connection(io, service);
        tokio::pin!(connection);
        tokio::select! {
            ended = connection.as_mut() => return Ok(ended?),
            _ = tasks.stopping() => connection.as_mut().graceful_shutdown(),
        }
        Ok(connection.await?)
    } else {
        let mut builder = hyper::server::conn::http1::Builder::new();
        builder.timer(TokioTimer::new()).header_read_timeout(IDLE);
        let connection = builder.serve_connection(io, service).with_upgrades();
        tokio::pin!(connection);
        tokio::select! {
            ended = connection.as_mut() => return Ok(ended?),
            _ = tasks.stopping() => connection.as_mut().graceful_shutdown(),
        }
        Ok(connection.await?)
    }
}
