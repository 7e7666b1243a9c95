//! The program.

use ambient::Ambient;
use anyhow::Context;
use clap::{Args, Parser, Subcommand};
use setpoint::{Cluster, Configuration, Fleet, Group, Options, Served, Settings, StoreChoice};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use tokio::runtime::Handle;
use tokio::signal::unix::{SignalKind, signal};

#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

#[derive(Debug, Parser)]
#[command(name = "setpoint", version, about = "Kubernetes' reconciliation system in one program")]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run a cluster in the foreground.
    Up {
        #[command(flatten)]
        serve: Serve,
        /// The machines of the cluster: none, or simulated=N, which look like machines and run nothing. What they are
        /// like may follow, as in simulated=100,name=big,cpu=64,zones=3,label.disk=ssd,taint.gpu=yes:NoSchedule, or be
        /// read from a file, as in simulated=@FILE. May be given several times.
        #[arg(long, value_name = "NODES", default_value = "none", value_parser = parse_nodes)]
        nodes: Vec<Groups>,
    },
    /// Run the control plane alone; several may share one etcd, and one of them works at a time.
    Server {
        #[command(flatten)]
        serve: Serve,
    },
}

#[derive(Debug, Args)]
struct Serve {
    /// Where data and keys are kept; by default a directory of the user.
    #[arg(long, value_name = "DIR")]
    data_dir: Option<PathBuf>,
    /// The address to serve the API on; port 0 lets the system choose one.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:6443")]
    listen: SocketAddr,
    /// Where to write the administrator's kubeconfig; by default into the data directory.
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// Where objects are kept: sqlite, memory, or etcd=URL[,URL...].
    #[arg(long, value_name = "STORE", default_value = "sqlite", value_parser = parse_store)]
    store: StoreChoice,
    /// A file of tokens: on each line a token, a user, a uid and, in quotes, the groups.
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
    /// Where to append a line of JSON for every request.
    #[arg(long, value_name = "FILE")]
    audit_log: Option<PathBuf>,
    /// An audit.k8s.io/v1 policy that says how much is written of which request; by default who did what, of all.
    #[arg(long, value_name = "FILE", requires = "audit_log")]
    audit_policy: Option<PathBuf>,
    /// A kubescheduler.config.k8s.io/v1 KubeSchedulerConfiguration: the scheduler's profiles, by schedulerName.
    #[arg(long, value_name = "FILE")]
    scheduler_config: Option<PathBuf>,
    /// From how many nodes a second pods are driven off when nodes are lost, in each zone.
    #[arg(long, value_name = "RATE", default_value_t = Settings::NODE_EVICTION_RATE, value_parser = parse_rate)]
    node_eviction_rate: f64,
    /// Which versions of the API are served besides those that always are, as in scheduling.k8s.io/v1alpha2=true, or
    /// api/alpha=true for all that are still being tried out.
    #[arg(long, value_name = "VERSIONS", default_value = "")]
    runtime_config: Served,
}

fn parse_rate(text: &str) -> Result<f64, String> {
    text.parse().ok().filter(|rate: &f64| *rate > 0.0 && rate.is_finite()).ok_or("expected a number above 0".to_owned())
}

fn parse_store(text: &str) -> Result<StoreChoice, String> {
    match text.split_once('=') {
        None if text == "sqlite" => Ok(StoreChoice::Sqlite),
        None if text == "memory" => Ok(StoreChoice::Memory),
        Some(("etcd", urls)) if !urls.is_empty() => Ok(StoreChoice::Etcd(urls.split(',').map(str::to_owned).collect())),
        _ => Err("expected sqlite, memory, or etcd=URL[,URL...]".to_owned()),
    }
}

/// Nodes that one argument asks for.
#[derive(Clone, Debug)]
struct Groups(Vec<Group>);

fn parse_nodes(text: &str) -> Result<Groups, String> {
    match text.split_once('=') {
        None if text == "none" => Ok(Groups(Vec::new())),
        Some(("simulated", what)) => match what.strip_prefix('@') {
            Some(path) => read_nodes(path),
            None => Ok(Groups(vec![Group::parse(what)?])),
        },
        _ => Err("expected none, simulated=N, or simulated=@FILE".to_owned()),
    }
}

fn read_nodes(path: &str) -> Result<Groups, String> {
    let text = std::fs::read_to_string(path).map_err(|error| format!("{path}: {error}"))?;
    serde_saphyr::from_str(&text).map(Groups).map_err(|error| format!("{path}: {error}"))
}

fn read_scheduler(path: &Path) -> anyhow::Result<Configuration> {
    let read = || {
        let text = std::fs::read_to_string(path)?;
        let file = serde_saphyr::from_str(&text)?;
        Configuration::read(&file).map_err(|errors| {
            let errors: Vec<String> = errors.iter().map(ToString::to_string).collect();
            anyhow::Error::msg(errors.join("; "))
        })
    };
    read().with_context(|| format!("the scheduler's configuration {}", path.display()))
}

fn main() -> ExitCode {
    let (serve, nodes) = match Cli::parse().command {
        Command::Up { serve, nodes } => (serve, nodes.into_iter().flat_map(|Groups(groups)| groups).collect()),
        Command::Server { serve } => (serve, Vec::new()),
    };
    match start(serve, nodes) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // One line with its causes: whoever reads it wants to know what to do, not where in the program it was.
            eprintln!("setpoint: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn start(serve: Serve, nodes: Vec<Group>) -> anyhow::Result<()> {
    let filter = tracing_subscriber::EnvFilter::try_from_env("SETPOINT_LOG")
        .unwrap_or_else(|_| tracing_subscriber::EnvFilter::new("warn"));
    tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).init();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().context("starting the runtime")?;
    let loops = tokio::runtime::Builder::new_multi_thread().enable_all().on_thread_start(step_back).build();
    let loops = loops.context("starting the runtime of the loops")?;
    runtime.block_on(run(serve, nodes, loops.handle().clone()))
}

/// Loops have time: whoever waits for an answer comes first, however much there is to reconcile.
fn step_back() {
    const LESS_URGENT: i32 = 5;
    // Where this is not allowed, they are as urgent as everything else.
    let _ = rustix::process::nice(LESS_URGENT);
}

async fn run(serve: Serve, nodes: Vec<Group>, loops: Handle) -> anyhow::Result<()> {
    let ambient = Ambient::real();
    let started = ambient.clock.monotonic();
    let clock = ambient.clock.clone();
    let data_dir = serve.data_dir.map_or_else(default_data_dir, Ok)?;
    let kubeconfig = serve.kubeconfig.unwrap_or_else(|| data_dir.join("kubeconfig"));
    let options = Options {
        data_dir,
        listen: serve.listen,
        kubeconfig,
        store: serve.store,
        nodes: Fleet::new(nodes).map_err(anyhow::Error::msg)?,
        token_file: serve.token_file,
        audit_log: serve.audit_log,
        audit_policy: serve.audit_policy,
        scheduler: serve.scheduler_config.as_deref().map(read_scheduler).transpose()?.unwrap_or_default(),
        node_eviction_rate: serve.node_eviction_rate,
        served: serve.runtime_config,
        loops: Some(loops),
    };
    let cluster = Cluster::start(&options, ambient, |what| eprintln!("setpoint: {what}")).await?;
    let took = clock.monotonic().duration_since(started).as_millis();
    say_ready(took, &cluster);

    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let failure = tokio::select! {
        _ = terminate.recv() => None,
        _ = interrupt.recv() => None,
        failure = cluster.failed() => Some(failure),
    };
    eprintln!("setpoint: stopping");
    cluster.stop().await;
    match failure {
        Some(failure) => {
            Err(anyhow::Error::new(failure).context("the store failed; what was acknowledged is safe, start again"))
        }
        None => Ok(()),
    }
}

#[allow(clippy::print_stdout, reason = "this line is the program's answer")]
fn say_ready(took_millis: u128, cluster: &Cluster) {
    println!("ready in {took_millis} ms  KUBECONFIG={}", cluster.kubeconfig.display());
}

fn default_data_dir() -> anyhow::Result<PathBuf> {
    let from = |variable: &str| std::env::var_os(variable).filter(|value| !value.is_empty()).map(PathBuf::from);
    let base = from("XDG_DATA_HOME").or_else(|| Some(from("HOME")?.join(".local/share")));
    Ok(base.context("neither HOME nor XDG_DATA_HOME is set; say where to keep data with --data-dir")?.join("setpoint"))
}
