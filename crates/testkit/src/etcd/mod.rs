//! Real etcd servers for tests: single ones and clusters, on loopback, in temporary directories.
//!
//! Each server has a loopback address of its own, so its ports stay its own across restarts. It is killed when it is
//! dropped, and by the kernel when the test process dies in any other way.

mod certificates;

pub use certificates::Certificates;

use crate::process::Process;
use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use tempfile::TempDir;

/// What every version writes to its log once clients are served.
const READY: &str = "serving client traffic";

/// Which etcd: the oldest and the newest that are tested against.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Version {
    /// The one that Debian packages: 3.4.
    Debian,
    V3_5,
}

impl Version {
    const ALL: [Version; 2] = [Version::Debian, Version::V3_5];

    fn binary(self) -> PathBuf {
        match self {
            Version::Debian => PathBuf::from("/usr/bin/etcd"),
            Version::V3_5 => Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.tools/etcd-3.5/etcd"),
        }
    }
}

/// The versions whose binaries are there. What is missing is said on standard error; nothing at all is an error.
pub fn available_versions() -> Vec<Version> {
    let is_there = |version: &Version| {
        let there = version.binary().is_file();
        if !there {
            eprintln!("etcd {version:?} is not tested: there is no {}", version.binary().display());
        }
        there
    };
    let available: Vec<Version> = Version::ALL.into_iter().filter(is_there).collect();
    assert!(!available.is_empty(), "no etcd is installed");
    available
}

/// One etcd server: a cluster of its own, or a member of a [`Cluster`].
#[derive(Debug)]
pub struct Etcd {
    version: Version,
    arguments: Vec<String>,
    endpoint: String,
    certificates: Option<Certificates>,
    /// None while it is killed.
    process: Option<Process>,
    _data: TempDir,
}

impl Etcd {
    /// A single server that is ready.
    pub async fn start(version: Version) -> Self {
        Etcd::single(version, false).await
    }

    /// A single server that speaks TLS only, and only with clients that have a certificate.
    pub async fn start_with_tls(version: Version) -> Self {
        Etcd::single(version, true).await
    }

    async fn single(version: Version, tls: bool) -> Self {
        let address = Address::next();
        let mut etcd = Etcd::new(version, "single", &address, &format!("single={}", address.peer_url()), tls);
        etcd.restart().await;
        etcd
    }

    /// A server that has not been started.
    fn new(version: Version, name: &str, address: &Address, members: &str, tls: bool) -> Self {
        let data = tempfile::Builder::new().prefix("etcd-").tempdir().expect("a temporary directory can be made");
        let certificates = tls.then(|| Certificates::new(address.ip, data.path()));
        let endpoint = format!("{}://{}", if tls { "https" } else { "http" }, address.client);
        let peer = address.peer_url();
        let mut arguments: Vec<String> = [
            ("name", name),
            ("data-dir", &data.path().join("data").display().to_string()),
            ("listen-client-urls", &endpoint),
            ("advertise-client-urls", &endpoint),
            ("listen-peer-urls", &peer),
            ("initial-advertise-peer-urls", &peer),
            ("initial-cluster", members),
            // Elections in tests should not take as long as they do across continents.
            ("heartbeat-interval", "50"),
            ("election-timeout", "500"),
            ("logger", "zap"),
            ("log-outputs", "stderr"),
        ]
        .map(|(flag, value)| format!("--{flag}={value}"))
        .into();
        arguments.extend(certificates.iter().flat_map(Certificates::arguments));
        Etcd { version, arguments, endpoint, certificates, process: None, _data: data }
    }

    pub fn endpoint(&self) -> &str {
        &self.endpoint
    }

    pub fn endpoints(&self) -> Vec<String> {
        vec![self.endpoint.clone()]
    }

    /// The certificates of a server with TLS.
    pub fn certificates(&self) -> &Certificates {
        self.certificates.as_ref().expect("the server was started with TLS")
    }

    /// A client of its own, to look at or change what the code under test should not see happen.
    pub async fn client(&self) -> etcd_client::Client {
        etcd_client::Client::connect([&self.endpoint], None).await.expect("a connection is made when first used")
    }

    /// Ends the process at once, as a power failure would.
    pub fn kill(&mut self) {
        self.process = None;
    }

    /// Starts it again on its data, after a kill or instead of what runs, and waits until it is ready.
    pub async fn restart(&mut self) {
        self.spawn();
        self.ready().await;
    }

    /// Halts the process without ending it: connections stay open and nothing answers.
    pub fn stop(&self) {
        self.running().halt();
    }

    /// Lets a halted process go on.
    pub fn resume(&self) {
        self.running().resume();
    }

    fn running(&self) -> &Process {
        self.process.as_ref().expect("the server was not killed")
    }

    fn spawn(&mut self) {
        self.process = None;
        // Some versions want to be told that they may run on what they were not tested on.
        let environment = [("ETCD_UNSUPPORTED_ARCH", go_architecture())];
        let process = Process::spawn(&self.version.binary(), &self.arguments, &environment, READY);
        self.process = Some(process.expect("etcd can be started"));
    }

    async fn ready(&mut self) {
        self.process.as_mut().expect("the server was spawned").ready().await;
    }
}

/// Several servers that agree.
#[derive(Debug)]
pub struct Cluster {
    pub members: Vec<Etcd>,
}

impl Cluster {
    /// A cluster whose members are all ready.
    pub async fn start(version: Version, members: usize) -> Self {
        let addresses: Vec<Address> = (0..members).map(|_| Address::next()).collect();
        let names = addresses.iter().enumerate().map(|(n, address)| format!("member-{n}={}", address.peer_url()));
        let names = names.collect::<Vec<_>>().join(",");
        let member = |(n, address)| Etcd::new(version, &format!("member-{n}"), address, &names, false);
        let mut cluster = Cluster { members: addresses.iter().enumerate().map(member).collect() };
        // None of them is ready before most of them run.
        cluster.members.iter_mut().for_each(Etcd::spawn);
        for member in &mut cluster.members {
            member.ready().await;
        }
        cluster
    }

    pub fn endpoints(&self) -> Vec<String> {
        self.members.iter().map(|member| member.endpoint.clone()).collect()
    }
}

/// Where a server listens.
#[derive(Debug)]
struct Address {
    ip: Ipv4Addr,
    client: SocketAddr,
    peer: SocketAddr,
}

impl Address {
    /// An address that no other server of this machine's tests has. Everything in 127.0.0.0/8 is loopback, and
    /// outgoing connections only use 127.0.0.1, so ports that are free now stay free.
    fn next() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let (process, count) = (std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let part = |number: u32| u8::try_from(1 + number % 254).expect("a number up to 254 fits in a byte");
        let ip = Ipv4Addr::new(127, part(process / 254), part(process), part(count));
        let (client, peer) = two_ports(ip).expect("a loopback address has free ports");
        Address { ip, client, peer }
    }

    fn peer_url(&self) -> String {
        format!("http://{}", self.peer)
    }
}

/// Two different ports that the system says are free.
fn two_ports(ip: Ipv4Addr) -> io::Result<(SocketAddr, SocketAddr)> {
    let (one, other) = (TcpListener::bind((ip, 0))?, TcpListener::bind((ip, 0))?);
    Ok((one.local_addr()?, other.local_addr()?))
}

fn go_architecture() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    }
}
