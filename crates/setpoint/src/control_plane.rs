//! The loops of a cluster: which run, and as whom.

use crate::explain::SchedulingDesk;
use ambient::{Ambient, Tasks};
use apiserver::User;
use controllers::Settings;
use kinds::{DeviceTaintRule, Key, Kind, PodGroup};
use node::simulated::Fleet;
use prometheus::Registry;
use runtime::{Client, Controller, Election, Identity, Manager, Recorder, Timing};
use scheduler::{Configuration, Desk};
use std::sync::Arc;

/// Gives a user a client; the second argument is what it goes by in managed fields and logs.
pub type Clients = Arc<dyn Fn(User, &str) -> Client + Send + Sync>;

/// Which loops there are to be.
#[derive(Clone, Debug, Default)]
pub struct Loops {
    pub settings: Settings,
    pub scheduler: Configuration,
    /// The simulated nodes there are.
    pub fleet: Fleet,
}

/// All loops of a cluster, their caches being filled.
#[derive(Clone, Debug)]
pub struct ControlPlane {
    pub manager: Arc<Manager>,
    desk: Desk,
    /// As whom it stands for election.
    candidate: Client,
    /// Tells who leads.
    recorder: Recorder,
    ambient: Ambient,
}

/// What the loops go by in managed fields, as with upstream, where they are one program.
const MANAGER: &str = "kube-controller-manager";
/// Where the lease of the leader is, and what it is called.
const LEASE: (&str, &str) = ("kube-system", MANAGER);

impl ControlPlane {
    /// Starts to watch.
    pub fn start(clients: &Clients, wanted: &Loops, ambient: &Ambient, registry: &Registry) -> Self {
        let Loops { settings, scheduler, fleet } = wanted;
        let reader = as_user(clients, "system:kube-controller-manager", MANAGER);
        let mut loops = controllers::all(settings);
        let mut scheduler = scheduler.clone();
        scheduler.device_taint_rules = settings.previews.contains(&*DeviceTaintRule::ID.api_version);
        scheduler.pod_groups = settings.previews.contains(&*PodGroup::ID.api_version);
        let (scheduler, desk) = scheduler::controller(scheduler, registry);
        loops.push(scheduler);
        if !fleet.is_empty() {
            let clients = clients.clone();
            let as_node = move |name: &str| {
                let user = apiserver::user(&format!("system:node:{name}"), &["system:nodes", "system:authenticated"]);
                clients(user, "kubelet")
            };
            loops.extend(node::simulated::controllers(fleet.clone(), Arc::new(as_node)));
        }
        let identity = |controller: &Controller| {
            let client = match controller.account {
                "default-scheduler" => as_user(clients, "system:kube-scheduler", "kube-scheduler"),
                MANAGER => as_user(clients, "system:kube-controller-manager", &agent(controller.name)),
                account => as_controller(clients, account),
            };
            let recorder = Recorder::new(client.clone(), controller.component, "", ambient, registry);
            Identity { client, tell: Arc::new(move |note| recorder.record(note)) }
        };
        let manager = Arc::new(Manager::start(loops, &reader, identity, ambient, registry));
        let recorder = Recorder::new(reader.clone(), MANAGER, "", ambient, registry);
        ControlPlane { manager, desk, candidate: reader, recorder, ambient: ambient.clone() }
    }

    /// Where it can be asked why pods wait.
    pub fn scheduling(&self) -> SchedulingDesk {
        let lease = Key::new(LEASE.0, LEASE.1);
        SchedulingDesk { desk: self.desk.clone(), caches: self.manager.caches.clone(), lease }
    }

    /// Lets the loops work, once their caches are filled, until the tasks are stopped.
    pub async fn work(&self, tasks: &Tasks) {
        self.manager.work(tasks).await;
    }

    /// Lets the loops work while no other server's do. `identity` tells this server from the others.
    pub fn campaign(&self, identity: String) {
        let recorder = self.recorder.clone();
        let election = Election {
            client: self.candidate.clone(),
            tell: Arc::new(move |note| recorder.record(note)),
            namespace: LEASE.0.to_owned(),
            name: LEASE.1.to_owned(),
            identity,
            timing: Timing::default(),
            clock: self.ambient.clock.clone(),
            random: self.ambient.random.fork(),
        };
        let (this, tasks) = (self.clone(), self.ambient.tasks.clone());
        self.ambient.tasks.spawn("election", async move {
            election
                .run(tasks, |term| {
                    let this = this.clone();
                    async move { this.work(&term).await }
                })
                .await;
        });
    }
}

fn as_user(clients: &Clients, name: &str, agent: &str) -> Client {
    clients(apiserver::user(name, &["system:authenticated"]), agent)
}

/// As a service account of `kube-system`, with the rights of its role and no others.
fn as_controller(clients: &Clients, name: &str) -> Client {
    let groups = ["system:serviceaccounts", "system:serviceaccounts:kube-system", "system:authenticated"];
    clients(apiserver::user(&format!("system:serviceaccount:kube-system:{name}"), &groups), &agent(name))
}

/// What a loop goes by: its program, and behind that, for logs, its own name.
fn agent(name: &str) -> String {
    format!("{MANAGER}/{name}")
}
