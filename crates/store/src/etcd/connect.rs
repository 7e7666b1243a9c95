//! The members of the cluster: a connection to each, and which of them is asked.
//!
//! All requests go to one member until it fails one; then the next one is asked. Requests and watches have
//! connections of their own, so that a watch with much to tell never holds up a write. Dead connections show by HTTP/2
//! pings, and every request has a deadline, so nothing waits for ever.

use super::failure::{Failure, causes};
use crate::{Error, Result};
use ambient::{Clock, Tasks};
use bytes::Bytes;
use etcd_client::{Channel, Client, ConnectOptions};
use hyper_util::client::legacy::connect::HttpConnector;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::sync::Semaphore;
use tokio::time::Instant;
use tonic::transport::{Certificate, ClientTlsConfig, Endpoint, Identity};

/// For TCP and TLS together.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);
/// A request has its answer or its error by then, waiting and trying other members included.
pub(super) const REQUEST_TIMEOUT: Duration = Duration::from_secs(5);
/// The same for a list without a limit, whose answer may be large. A dead member shows by its missing pings earlier.
pub(super) const LIST_TIMEOUT: Duration = Duration::from_secs(60);
/// etcd hangs up on clients that ping more often than every five seconds.
const PING_EVERY: Duration = Duration::from_secs(6);
const PING_TIMEOUT: Duration = Duration::from_secs(3);
/// The largest message etcd can send.
const MAX_MESSAGE_BYTES: usize = i32::MAX as usize;
/// Requests under way at once; more wait.
const MAX_IN_FLIGHT: usize = 1024;

/// How to prove to etcd who we are, and how to know that it is etcd. All in PEM.
#[derive(Clone)]
pub struct EtcdTls {
    /// The authority that signed the members' certificates.
    pub ca: Bytes,
    /// Our own certificate, where etcd asks for one.
    pub client: Option<EtcdClientCertificate>,
}

#[derive(Clone)]
pub struct EtcdClientCertificate {
    pub certificate: Bytes,
    pub key: Bytes,
}

impl fmt::Debug for EtcdTls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EtcdTls").field("client", &self.client).finish_non_exhaustive()
    }
}

impl fmt::Debug for EtcdClientCertificate {
    /// Keys stay out of logs.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("EtcdClientCertificate")
    }
}

/// One member; cheap to clone.
#[derive(Clone)]
pub(super) struct Member {
    index: usize,
    requests: Client,
    watches: Client,
}

impl Member {
    pub(super) fn kv(&self) -> etcd_client::KvClient {
        self.requests.kv_client().max_decoding_message_size(MAX_MESSAGE_BYTES)
    }

    pub(super) fn lease(&self) -> etcd_client::LeaseClient {
        self.requests.lease_client()
    }

    pub(super) fn maintenance(&self) -> etcd_client::MaintenanceClient {
        self.requests.maintenance_client()
    }

    pub(super) fn watch(&self) -> etcd_client::WatchClient {
        self.watches.watch_client().max_decoding_message_size(MAX_MESSAGE_BYTES)
    }
}

/// Between two rounds of asking members that have no leader.
const ELECTION_PAUSE: Duration = Duration::from_millis(50);

/// Whether a request may be made twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Repeat {
    /// It changes no key, so asking another member after a lost answer does no harm.
    Harmless,
    /// Only if it certainly was not made the first time.
    Never,
}

pub(super) struct Members {
    members: Vec<Member>,
    /// The index of the member that is asked.
    current: AtomicUsize,
    permits: Semaphore,
    /// How errors name the cluster.
    endpoints: String,
    clock: Clock,
}

impl fmt::Debug for Members {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Members").field("endpoints", &self.endpoints).field("current", &self.current).finish()
    }
}

impl Members {
    /// Connections are made when they are first needed; this only fails for arguments that can never work.
    pub(super) async fn new(endpoints: &[String], tls: Option<&EtcdTls>, clock: &Clock, tasks: &Tasks) -> Result<Self> {
        if endpoints.is_empty() {
            return Err(Error::Invalid("no etcd endpoint is given".to_owned()));
        }
        let mut members = Vec::with_capacity(endpoints.len());
        for (index, url) in endpoints.iter().enumerate() {
            let endpoint = endpoint(url, tls, tasks)?;
            let requests = client(&endpoint, ConnectOptions::new()).await?;
            // A member that has lost its leader would keep a watch open and never tell it anything.
            let watches = client(&endpoint, ConnectOptions::new().with_require_leader(true)).await?;
            members.push(Member { index, requests, watches });
        }
        // An etcd that asks for a certificate just hangs up on those who have none, so the error has to hint at it.
        let anonymous = tls.is_some_and(|tls| tls.client.is_none());
        let hint = if anonymous { " (without a client certificate)" } else { "" };
        Ok(Members {
            members,
            current: AtomicUsize::new(0),
            permits: Semaphore::new(MAX_IN_FLIGHT),
            endpoints: endpoints.join(",") + hint,
            clock: clock.clone(),
        })
    }

    pub(super) fn endpoints(&self) -> &str {
        &self.endpoints
    }

    pub(super) fn clock(&self) -> &Clock {
        &self.clock
    }

    pub(super) fn deadline(&self, timeout: Duration) -> Instant {
        self.clock.monotonic() + timeout
    }

    pub(super) fn current(&self) -> Member {
        self.members[self.current.load(Ordering::Relaxed) % self.members.len()].clone()
    }

    /// Asks the next member from now on, unless somebody has turned away from this one already.
    pub(super) fn turn_from(&self, member: &Member) {
        let next = (member.index + 1) % self.members.len();
        let _ = self.current.compare_exchange(member.index, next, Ordering::Relaxed, Ordering::Relaxed);
    }

    /// Makes a request of one member after the other, as far as that is allowed and the deadline permits. While members
    /// elect a leader, which takes them a second or so when they have lost one, it goes on asking; where none of them can
    /// be reached it does not.
    pub(super) async fn call<T, F>(
        &self,
        repeat: Repeat,
        deadline: Instant,
        request: impl Fn(Member) -> F,
    ) -> Result<T, Failure>
    where
        F: Future<Output = Result<T, etcd_client::Error>>,
    {
        let permit = tokio::time::timeout_at(deadline, self.permits.acquire()).await;
        let _permit = match permit {
            Ok(Ok(permit)) => permit,
            Ok(Err(_)) => return Err(Failure::Closed),
            Err(_) => return Err(Failure::NotSent(format!("{MAX_IN_FLIGHT} requests are under way already"))),
        };
        // Once more than there are members, because a connection may have died unnoticed while idle.
        let round = self.members.len();
        let mut attempts = round;
        let mut is_anybody_there = false;
        loop {
            let member = self.current();
            let answer = tokio::time::timeout_at(deadline, request(member.clone())).await;
            let failure = match answer {
                Ok(Ok(answer)) => return Ok(answer),
                Ok(Err(error)) => Failure::new(error),
                Err(_) => {
                    self.turn_from(&member);
                    return Err(Failure::Lost("no answer in time".to_owned()));
                }
            };
            if !failure.is_of_member() {
                return Err(failure);
            }
            self.turn_from(&member);
            is_anybody_there |= !matches!(failure, Failure::NotSent(_));
            let allowed = repeat == Repeat::Harmless || failure.is_without_trace();
            if !allowed || attempts == 0 && !is_anybody_there {
                return Err(failure);
            }
            if attempts == 0 {
                if tokio::time::timeout_at(deadline, tokio::time::sleep(ELECTION_PAUSE)).await.is_err() {
                    return Err(failure);
                }
                (attempts, is_anybody_there) = (round, false);
            }
            attempts -= 1;
        }
    }

    pub(super) fn is_closed(&self) -> bool {
        self.permits.is_closed()
    }

    /// Refuses new requests and waits until those under way have ended, for as long as a request may take.
    pub(super) async fn close(&self) {
        let all = u32::try_from(MAX_IN_FLIGHT).expect("the number of permits fits in 32 bits");
        // Whether all have ended, some take too long, or this was done before: from here on nothing is accepted.
        let _ended = tokio::time::timeout(REQUEST_TIMEOUT, self.permits.acquire_many(all)).await;
        self.permits.close();
    }
}

async fn client(endpoint: &Endpoint, options: ConnectOptions) -> Result<Client> {
    let mut http = HttpConnector::new();
    http.enforce_http(false);
    http.set_nodelay(true);
    http.set_connect_timeout(Some(CONNECT_TIMEOUT));
    let channel = Channel::Tonic(endpoint.connect_with_connector_lazy(http));
    let client = Client::from_channel(channel, Some(options)).await;
    client.map_err(|error| Error::Invalid(format!("etcd at {}: {error}", endpoint.uri())))
}

fn endpoint(url: &str, tls: Option<&EtcdTls>, tasks: &Tasks) -> Result<Endpoint> {
    let invalid = |cause: &str| Error::Invalid(format!("etcd endpoint {url}: {cause}"));
    let endpoint = Endpoint::from_shared(url.to_owned()).map_err(|error| invalid(&causes(&error)))?;
    let endpoint = match (endpoint.uri().scheme_str(), tls) {
        (Some("http"), None) => endpoint,
        (Some("https"), Some(tls)) => endpoint.tls_config(tls_config(tls)).map_err(|error| invalid(&causes(&error)))?,
        (Some("http"), Some(_)) => return Err(invalid("certificates are given, so the address must begin with https")),
        (Some("https"), None) => return Err(invalid("https needs the certificate of the authority behind it")),
        _ => return Err(invalid("the address must begin with http:// or https://")),
    };
    Ok(endpoint
        .connect_timeout(CONNECT_TIMEOUT)
        .http2_keep_alive_interval(PING_EVERY)
        .keep_alive_timeout(PING_TIMEOUT)
        .executor(InGroup(tasks.clone())))
}

fn tls_config(tls: &EtcdTls) -> ClientTlsConfig {
    let config = ClientTlsConfig::new().ca_certificate(Certificate::from_pem(&tls.ca));
    match &tls.client {
        Some(client) => config.identity(Identity::from_pem(&client.certificate, &client.key)),
        None => config,
    }
}

/// Connections are tasks of the store's group and end with it.
struct InGroup(Tasks);

impl hyper::rt::Executor<Pin<Box<dyn Future<Output = ()> + Send>>> for InGroup {
    fn execute(&self, connection: Pin<Box<dyn Future<Output = ()> + Send>>) {
        self.0.spawn_until_stopped("etcd-connection", connection);
    }
}
