//! Wiring: store, registry, API, listener.

use crate::certifier::Certifier;
use crate::control_plane::{ControlPlane, Loops};
use crate::logs::SimulatedLogs;
use crate::usage::SimulatedUsage;
use crate::{in_process, kubeconfig};
use ambient::Ambient;
use anyhow::Context;
use apiserver::pki::Authority;
use apiserver::{Api, Audit, AuditPolicy, Authentication, Authorization, Sealing, SigningKey, StaticTokens, Tls};
use bytes::Bytes;
use controllers::{Cidr, Settings};
use node::simulated::{Fleet, Logs};
use registry::{Registry, Served};
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use store::{Etcd, EtcdOptions, Memory, Retention, Sqlite, SqliteOptions, Store};
use tokio::net::TcpListener;
use tokio::runtime::Handle;

/// Where objects are kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StoreChoice {
    Sqlite,
    Memory,
    Etcd(Vec<String>),
}

#[derive(Clone, Debug)]
pub struct Options {
    pub data_dir: PathBuf,
    pub listen: SocketAddr,
    /// Where the administrator's credentials are written.
    pub kubeconfig: PathBuf,
    pub store: StoreChoice,
    /// Machines that run nothing.
    pub nodes: Fleet,
    /// Tokens of users, one `token,user,uid,"groups"` per line.
    pub token_file: Option<PathBuf>,
    /// Where to append a line for every request, as far as the policy wants.
    pub audit_log: Option<PathBuf>,
    pub audit_policy: Option<PathBuf>,
    /// How pods are placed.
    pub scheduler: scheduler::Configuration,
    /// From how many nodes a second that are lost pods are driven off, in each zone.
    pub node_eviction_rate: f64,
    /// Which versions of the API are served.
    pub served: Served,
    /// Where the loops run; without, where requests are answered too.
    pub loops: Option<Handle>,
}

impl Options {
    /// A cluster of one's own with all its files in a directory, on a port that the system chooses.
    pub fn new(data_dir: PathBuf, store: StoreChoice) -> Self {
        Options {
            kubeconfig: data_dir.join("kubeconfig"),
            data_dir,
            listen: SocketAddr::from(([127, 0, 0, 1], 0)),
            store,
            nodes: Fleet::default(),
            token_file: None,
            audit_log: None,
            audit_policy: None,
            scheduler: scheduler::Configuration::default(),
            node_eviction_rate: Settings::NODE_EVICTION_RATE,
            served: Served::default(),
            loops: None,
        }
    }
}

/// A cluster that runs.
#[derive(Debug)]
pub struct Cluster {
    pub api: Api,
    pub control_plane: ControlPlane,
    /// What is listened on; the port is the real one where the system chose it.
    pub address: SocketAddr,
    pub kubeconfig: PathBuf,
    /// The authority of the cluster, as PEM.
    pub authority: Arc<Authority>,
    ambient: Ambient,
    /// The store is closed after everything that uses it.
    store_ambient: Ambient,
    store: Arc<dyn Store>,
}

/// The range services get their addresses from, and the first of them: the API itself.
const API_SERVICE_ADDRESS: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(10, 96, 0, 1));

/// So many nodes do not fit into the usual range of addresses for pods.
const MANY_NODES: usize = 250;

impl Cluster {
    /// Starts everything; `progress` is told what is going on.
    pub async fn start(options: &Options, ambient: Ambient, progress: impl Fn(&str)) -> anyhow::Result<Self> {
        make_private_dir(&options.data_dir)?;
        let pki = options.data_dir.join("pki");
        make_private_dir(&pki)?;
        let now = Duration::from_millis(ambient.clock.wall().0);
        let authority = Arc::new(Authority::open(&pki, now).context("the cluster's certificate authority")?);

        progress("opening the store");
        let store_ambient = Ambient { tasks: ambient::Tasks::new(), ..ambient.clone() };
        let store = open_store(options, &store_ambient).await?;
        let seal =
            Arc::new(Sealing::open(&pki.join("encryption.key")).context("the key that secrets are encrypted with")?);
        let registry = Registry::start(store.clone(), seal, &ambient).await.map(|all| all.serving(&options.served));
        let registry = registry.context("reading the store")?;
        let objects: usize = registry.cache.counts().iter().map(|(_, count)| count).sum();
        progress(&format!("{objects} objects at revision {}", registry.cache.revision()));

        let listener = TcpListener::bind(options.listen).await;
        let listener =
            listener.with_context(|| format!("listening on {}; choose another with --listen", options.listen))?;
        let address = listener.local_addr().context("the address that is listened on")?;
        let advertised = advertised(address);
        let serving = authority.serving(&names(), &addresses(advertised), now)?;
        let tls = Arc::new(Tls::new(serving, authority.roots()?).map_err(anyhow::Error::msg)?);
        let tokens = options.token_file.as_deref().map(StaticTokens::read).transpose().map_err(anyhow::Error::msg)?;
        let key = SigningKey::open(&pki.join("sa.key")).context("the key that signs the tokens of service accounts")?;
        let authentication = Authentication::new(key, tokens.unwrap_or_default());
        let policy = options.audit_policy.as_deref().map(AuditPolicy::read).transpose().map_err(anyhow::Error::msg)?;
        let audit = options.audit_log.as_deref().map(|path| {
            let started = Audit::start(path, policy.unwrap_or_default(), &ambient.tasks);
            started.with_context(|| format!("the audit log {}", path.display()))
        });
        let audit = audit.transpose()?;
        let authorization = Authorization::default();
        let api = Api::new(registry, ambient.clone(), authentication, authorization, audit, advertised.to_string());
        renew(&ambient, authority.clone(), tls.clone(), advertised);
        ambient.tasks.spawn("listener", apiserver::serve(api.clone(), listener, tls));

        progress("making what every cluster has");
        match api.registry.reseal().await.context("encrypting secrets anew")? {
            0 => {}
            count => progress(&format!("{count} secrets encrypted anew")),
        }
        apiserver::bootstrap(&api).await.context("setting the cluster up")?;
        progress("starting the controllers");
        let nodes = &options.nodes;
        let clients = in_process::clients(&api);
        let settings = Settings {
            authority: authority.certificate().into(),
            address: advertised.ip(),
            cluster_cidr: if nodes.len() < MANY_NODES { Cidr::PODS } else { Cidr::PODS_OF_MANY_NODES },
            signer: Some(Arc::new(Certifier(authority.clone()))),
            node_eviction_rate: options.node_eviction_rate,
            previews: options.served.all_previews().clone(),
        };
        let loops = Loops { settings, scheduler: options.scheduler.clone(), fleet: nodes.clone() };
        let tasks = options.loops.as_ref().map_or(ambient.tasks.clone(), |runtime| ambient.tasks.on(runtime));
        let apart = Ambient { tasks, ..ambient.clone() };
        let control_plane = ControlPlane::start(&clients, &loops, &apart, &api.metrics.registry);
        api.measure(Arc::new(SimulatedUsage::new(&control_plane.manager.caches, nodes, &ambient.clock)));
        let logs = Logs::new(control_plane.manager.caches.clone(), nodes.clone());
        api.show_logs(Arc::new(SimulatedLogs(logs)));
        api.debug("scheduling", Arc::new(control_plane.scheduling()));
        // Clients need not wait for the loops, which read everything first; in a large cluster that takes a while.
        control_plane.campaign(identity(&options.data_dir, &ambient)?);
        let admin = authority.client("kubernetes-admin", &["system:masters"], now)?;
        kubeconfig::write(&options.kubeconfig, &server_url(address), authority.certificate(), &admin)?;
        let kubeconfig = options.kubeconfig.clone();
        Ok(Cluster { api, control_plane, address, kubeconfig, authority, ambient, store_ambient, store })
    }

    /// Resolves with the cause when the cluster cannot go on.
    pub async fn failed(&self) -> store::Error {
        self.store.failed().await
    }

    /// Answers what is being asked, refuses the rest, and closes the store.
    pub async fn stop(self) {
        const PATIENCE: Duration = Duration::from_secs(10);
        if tokio::time::timeout(PATIENCE, self.ambient.tasks.stop()).await.is_err() {
            tracing::warn!("some requests did not end in time");
        }
        self.store.close().await;
        self.store_ambient.tasks.stop().await;
    }
}

/// Where others reach what is listened on. Of all addresses that is the one this machine calls out from.
fn advertised(listening: SocketAddr) -> SocketAddr {
    if !listening.ip().is_unspecified() {
        return listening;
    }
    // Nothing is sent: connecting a datagram socket only looks up the route.
    let outward = UdpSocket::bind("0.0.0.0:0").and_then(|socket| {
        socket.connect("192.0.2.1:9")?;
        socket.local_addr()
    });
    let ip = outward.map_or(IpAddr::from([127, 0, 0, 1]), |address| address.ip());
    SocketAddr::new(ip, listening.port())
}

fn server_url(address: SocketAddr) -> String {
    let host = match address.ip() {
        ip if ip.is_unspecified() => IpAddr::from([127, 0, 0, 1]),
        ip => ip,
    };
    format!("https://{}", SocketAddr::new(host, address.port()))
}

async fn open_store(options: &Options, ambient: &Ambient) -> anyhow::Result<Arc<dyn Store>> {
    Ok(match &options.store {
        StoreChoice::Memory => Arc::new(Memory::new(ambient, Retention::default())),
        StoreChoice::Sqlite => {
            Arc::new(Sqlite::open(ambient, SqliteOptions::new(options.data_dir.join("store"))).await?)
        }
        StoreChoice::Etcd(endpoints) => {
            let options =
                EtcdOptions { root: Bytes::from_static(b"/setpoint/"), ..EtcdOptions::new(endpoints.clone()) };
            Arc::new(Etcd::connect(ambient, options).await?)
        }
    })
}

/// What tells this server from others over the same store: made once and kept, so that after a restart it does not
/// have to wait for the end of its own lease.
fn identity(data_dir: &Path, ambient: &Ambient) -> anyhow::Result<String> {
    let path = data_dir.join("identity");
    let known = std::fs::read_to_string(&path).map(|text| text.trim().to_owned()).unwrap_or_default();
    if !known.is_empty() {
        return Ok(known);
    }
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let made = format!("{}_{:016x}", host.trim(), ambient.random.next());
    std::fs::write(&path, &made).with_context(|| format!("writing {}", path.display()))?;
    Ok(made)
}

/// The names clients know the API by.
fn names() -> Vec<String> {
    let mut names: Vec<String> = [
        "kubernetes",
        "kubernetes.default",
        "kubernetes.default.svc",
        "kubernetes.default.svc.cluster.local",
        "localhost",
    ]
    .map(str::to_owned)
    .into();
    if let Ok(host) = std::fs::read_to_string("/proc/sys/kernel/hostname") {
        names.push(host.trim().to_owned());
    }
    names.retain(|name| !name.is_empty());
    names
}

fn addresses(listening: SocketAddr) -> Vec<IpAddr> {
    let mut addresses =
        vec![IpAddr::from([127, 0, 0, 1]), IpAddr::from(std::net::Ipv6Addr::LOCALHOST), API_SERVICE_ADDRESS];
    if !addresses.contains(&listening.ip()) && !listening.ip().is_unspecified() {
        addresses.push(listening.ip());
    }
    addresses
}

/// Replaces the serving certificate long before it runs out.
fn renew(ambient: &Ambient, authority: Arc<Authority>, tls: Arc<Tls>, address: SocketAddr) {
    let clock = ambient.clock.clone();
    ambient.tasks.spawn_until_stopped("certificate renewal", async move {
        loop {
            tokio::time::sleep(apiserver::pki::RENEW_BEFORE).await;
            let now = Duration::from_millis(clock.wall().0);
            match authority.serving(&names(), &addresses(address), now) {
                Ok(serving) => tls.replace(serving),
                Err(error) => tracing::error!(%error, "the serving certificate cannot be renewed"),
            }
        }
    });
}

fn make_private_dir(dir: &Path) -> anyhow::Result<()> {
    use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
    let made = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(dir);
    made.with_context(|| format!("making the directory {}", dir.display()))?;
    let mode = std::fs::Permissions::from_mode(0o700);
    std::fs::set_permissions(dir, mode).with_context(|| format!("protecting the directory {}", dir.display()))
}
