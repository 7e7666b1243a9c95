//! The cluster that is simulated: a real API on a store in memory, and real loops, which may crash.

use super::faults::{Faults, Faulty};
use ambient::{Ambient, Clock, Random, Tasks};
use apiserver::{Api, Authentication, Authorization, SigningKey, StaticTokens, User};
use parking_lot::Mutex;
use registry::{Plain, Registry};
use runtime::Client;
use setpoint::{Clients, ControlPlane, Settings, in_process};
use std::sync::{Arc, LazyLock};
use std::time::Duration;
use store::{Memory, Retention};

/// How many simulated nodes there are.
const NODES: usize = 3;

pub struct World {
    api: Api,
    ambient: Ambient,
    pub faults: Arc<Faults>,
    /// For users and for when things happen.
    pub random: Random,
    /// As the administrator, whom no fault affects.
    pub admin: Client,
    clients: Clients,
    /// The tasks of the loops that run now.
    running: Mutex<Tasks>,
}

impl std::fmt::Debug for World {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("World")
    }
}

/// Making keys takes time and chance; no decision depends on them.
static KEY: LazyLock<Vec<u8>> = LazyLock::new(SigningKey::ephemeral_pkcs8);

impl World {
    /// A cluster with its loops at work, and no faults yet.
    pub async fn start(seed: u64) -> Self {
        let ambient = Ambient::seeded(seed);
        let store = Arc::new(Memory::new(&ambient, Retention::default()));
        let registry = Registry::start(store, Arc::new(Plain), &ambient).await.expect("a store in memory can be read");
        let key = SigningKey::from_pkcs8(&KEY).expect("the key was just made");
        let authentication = Authentication::new(key, StaticTokens::default());
        let address = "192.0.2.1:6443".to_owned();
        let api = Api::new(registry, ambient.clone(), authentication, Authorization::default(), None, address);
        apiserver::bootstrap(&api).await.expect("an empty cluster can be set up");
        let random = ambient.random.fork();
        let faults = Arc::new(Faults::new(ambient.random.fork(), ambient.clock.clone()));
        let clients = {
            let (api, faults) = (api.clone(), faults.clone());
            Arc::new(move |user: User, agent: &str| {
                let transport = in_process::transport(&api, user);
                Client::new(Arc::new(Faulty::new(transport, faults.clone())), agent)
            })
        };
        let admin = in_process::client(&api, apiserver::user("admin", &["system:masters"]), "user");
        let running = Mutex::new(ambient.tasks.child());
        let mut world = World { api, ambient, faults, random, admin, clients, running };
        world.revive().await;
        world
    }

    pub fn clock(&self) -> &Clock {
        &self.ambient.clock
    }

    pub fn revision(&self) -> u64 {
        self.api.registry.cache.revision().0
    }

    /// What the loops have written so far, heartbeats aside.
    pub fn trace(&self) -> Vec<String> {
        self.faults.trace()
    }

    /// Lets time pass. Loops that crash meanwhile are started again; tells whether any did.
    pub async fn pause(&mut self, time: Duration) -> bool {
        let end = self.clock().monotonic() + time;
        let mut crashed = false;
        while tokio::time::timeout_at(end, self.faults.crashed()).await.is_ok() {
            crashed = true;
            self.revive().await;
        }
        crashed
    }

    /// Ends the loops, whatever they are doing, and starts new ones with nothing in their caches.
    pub async fn revive(&mut self) {
        let tasks = self.ambient.tasks.child();
        let before = std::mem::replace(&mut *self.running.lock(), tasks.clone());
        before.stop().await;
        self.faults.forget_crash();
        let ambient = Ambient { tasks: tasks.clone(), ..self.ambient.clone() };
        let loops =
            ControlPlane::start(&self.clients, &Settings::default(), NODES, &ambient, &prometheus::Registry::new());
        tasks.clone().spawn_until_stopped("loops", async move { loops.work(&tasks).await });
    }

    pub async fn stop(self) {
        self.ambient.tasks.stop().await;
    }
}
