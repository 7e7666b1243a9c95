//! The cluster that is simulated: a real API on a store in memory, and real loops, which may crash.

use super::deletions::{Deletions, Witnessed};
use super::driver;
use super::faults::{Faults, Faulty};
use super::sabotage::Sabotage;
use ambient::{Ambient, Clock, Random, Tasks};
use apiserver::{Api, Authentication, Authorization, SigningKey, StaticTokens, User};
use kinds::{ConfigMap, Id, Kind, Node, Object, Pod, StorageClass};
use object::{Edit, Value};
use registry::{Plain, Registry};
use runtime::{Client, Controller, Identity, ListOptions, Manager, PatchType, Target, Transport};
use setpoint::{Clients, ControlPlane, Fleet, Loops, Settings, SimulatedUsage, in_process};
use std::sync::{Arc, LazyLock};
use std::time::Duration;
use store::{Memory, Retention};

/// How many simulated nodes there are.
pub(super) const NODES: usize = 3;
/// How likely a server is cut off before the next edit, and for how long at most: leases take 15 seconds to run out.
const CUTS: f64 = 0.04;
const LONGEST_CUT_SECONDS: u64 = 40;

pub struct World {
    api: Api,
    ambient: Ambient,
    pub faults: Arc<Faults>,
    pub(super) deletions: Arc<Deletions>,
    /// For users and for when things happen.
    pub random: Random,
    /// As the administrator, whom no fault affects.
    pub admin: Client,
    /// Every resource that has objects.
    pub(super) resources: Vec<Id>,
    nodes: Fleet,
    servers: Vec<Server>,
}

/// One of the servers that share the store: its loops work while it leads.
struct Server {
    clients: Clients,
    /// The tasks of the loops that run now.
    running: Tasks,
    /// Those loops.
    loops: Option<ControlPlane>,
}

impl std::fmt::Debug for World {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("World")
    }
}

/// Making keys takes time and chance; no decision depends on them.
static KEY: LazyLock<Vec<u8>> = LazyLock::new(SigningKey::ephemeral_pkcs8);

/// What pods use is measured by somebody whom no fault affects.
fn measure(api: &Api, admin: &Client, nodes: &Fleet, ambient: &Ambient) {
    let meter = Controller::new("meter").reads::<ConfigMap>().reads::<Pod>().reads::<Node>();
    let identity = |_: &Controller| Identity { client: admin.clone(), tell: Arc::new(|_| {}) };
    let manager = Manager::start(vec![meter], admin, identity, ambient, &prometheus::Registry::new());
    api.measure(Arc::new(SimulatedUsage::new(&manager.caches, nodes, &ambient.clock)));
}

/// Lets loops work as the administrator, whom no fault affects; they tell nothing.
fn run_as_admin(loops: Vec<Controller>, admin: &Client, ambient: &Ambient) {
    let identity = |_: &Controller| Identity { client: admin.clone(), tell: Arc::new(|_| {}) };
    let manager = Manager::start(loops, admin, identity, ambient, &prometheus::Registry::new());
    let tasks = ambient.tasks.child();
    tasks.clone().spawn_until_stopped("loops of the administrator", async move { manager.work(&tasks).await });
}

impl World {
    /// A cluster of so many servers and nodes with their loops at work, and no faults yet.
    pub async fn start(seed: u64, servers: usize, nodes: usize) -> Self {
        Self::start_broken(seed, servers, nodes, None).await
    }

    /// The same, perhaps with a loop that is broken.
    pub(super) async fn start_broken(seed: u64, servers: usize, nodes: usize, broken: Option<Sabotage>) -> Self {
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
        let admin = in_process::client(&api, apiserver::user("admin", &["system:masters"]), "user");
        let deletions = Arc::new(Deletions::default());
        let servers = (0..servers).map(|number| {
            let (api, faults, deletions) = (api.clone(), faults.clone(), deletions.clone());
            let clients: Clients = Arc::new(move |user: User, agent: &str| {
                let account = user.name.clone();
                let transport = in_process::transport(&api, user);
                let transport: Arc<dyn Transport> = Arc::new(Witnessed::new(transport, deletions.clone(), &account));
                let transport = broken.map_or(transport.clone(), |broken| broken.between(&account, transport));
                Client::new(Arc::new(Faulty::new(transport, faults.clone(), &account, number)), agent)
            });
            Server { clients, running: ambient.tasks.child(), loops: None }
        });
        let servers: Vec<_> = servers.collect();
        let has_nodes = nodes > 0;
        let nodes = Fleet::of(nodes);
        measure(&api, &admin, &nodes, &ambient);
        let resources = admin.discover().await.expect("the administrator can look around");
        let resources = resources.into_iter().filter(|resource| resource.can("list") && resource.can("create"));
        let resources = resources.map(|resource| resource.id).collect();
        let mut world = World { api, ambient, faults, deletions, random, admin, resources, nodes, servers };
        if has_nodes {
            world.create::<StorageClass>(driver::class()).await;
            run_as_admin(driver::controllers(), &world.admin, &world.ambient);
        }
        world.revive_all().await;
        world
    }

    /// A cluster without nodes in which only a few loops work, so that nothing else takes time. They are in no server, do
    /// not crash, and tell nothing.
    pub(super) async fn start_few(names: &[&str]) -> Self {
        let world = World::start(0, 0, 0).await;
        let mut few = controllers::all(&Settings::default());
        few.retain(|controller| names.contains(&controller.name));
        assert_eq!(few.len(), names.len(), "all of these are there: {names:?}");
        run_as_admin(few, &world.admin, &world.ambient);
        world
    }

    pub fn clock(&self) -> &Clock {
        &self.ambient.clock
    }

    pub fn revision(&self) -> u64 {
        self.api.registry.cache.revision().0
    }

    /// How often the loops that run now have read from their caches, and how often from the API.
    pub fn reads(&self) -> (u64, u64) {
        let managers = self.servers.iter().filter_map(|server| server.loops.as_ref()).map(|loops| &loops.manager);
        managers.fold((0, 0), |(cache, api), manager| (cache + manager.cache_reads(), api + manager.api_reads()))
    }

    /// What the loops have written so far, heartbeats aside.
    pub fn trace(&self) -> Vec<String> {
        self.faults.trace()
    }

    /// Now and then cuts a server off.
    pub(super) fn perhaps_cut_off(&self) {
        if self.random.chance(CUTS) {
            let server = self.random.below(self.servers.len() as u64) as usize;
            self.faults.cut_off(server, Duration::from_secs(self.random.below(LONGEST_CUT_SECONDS)));
        }
    }

    /// Lets time pass. Servers that crash meanwhile are started again, perhaps after a while; tells how many did.
    pub async fn pause(&mut self, time: Duration) -> usize {
        let end = self.clock().monotonic() + time;
        let mut crashes = 0;
        while let Ok(server) = tokio::time::timeout_at(end, self.faults.crashed()).await {
            crashes += 1;
            if self.random.chance(0.5) {
                tokio::time::sleep(Duration::from_secs(self.random.below(30))).await;
            }
            self.revive(server).await;
        }
        crashes
    }

    /// Lets time pass until something holds, and tells how long that took.
    ///
    /// # Panics
    ///
    /// If it takes longer than `limit`.
    pub async fn until(&self, limit: Duration, holds: impl AsyncFn() -> bool) -> Duration {
        let start = self.clock().monotonic();
        while !holds().await {
            let passed = self.clock().monotonic() - start;
            assert!(passed < limit, "it does not hold after {passed:?}; written so far: {:#?}", self.trace());
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
        self.clock().monotonic() - start
    }

    /// Lets time jump, as it does for a machine that was suspended: timers that were due meanwhile all fire at once. Only
    /// the last moments pass as usual, so that what is due then happens in time.
    pub async fn leap(&self, time: Duration) {
        const AWAKE: Duration = Duration::from_secs(2);
        tokio::time::advance(time.saturating_sub(AWAKE)).await;
        tokio::time::sleep(time.min(AWAKE)).await;
    }

    /// The objects of a kind in all namespaces.
    pub async fn all<K: Kind>(&self) -> Vec<Object<K>> {
        self.select::<K>("").await
    }

    /// Those whose fields are such.
    pub async fn select<K: Kind>(&self, fields: &str) -> Vec<Object<K>> {
        let options = ListOptions { field_selector: fields.to_owned(), ..ListOptions::default() };
        self.admin.list::<K>("", &options).await.expect("the administrator can list").items
    }

    /// Creates an object.
    pub async fn create<K: Kind>(&self, mut object: Value) -> Object<K> {
        object.set("kind", K::ID.kind.as_ref());
        object.set("apiVersion", K::ID.api_version.as_ref());
        let raw = self.admin.create(&K::ID, &object).await.expect("the object is valid");
        Object::read(raw).expect("the answer is the object")
    }

    /// Merges a patch into an object; `subresource` is empty for the object itself.
    pub async fn patch<K: Kind>(&self, object: &Object<K>, subresource: &str, patch: &Value) {
        let patched = self.admin.patch(&Target::of(object), subresource, PatchType::Merge, patch).await;
        patched.expect("the patch is valid");
    }

    pub async fn revive_all(&mut self) {
        for server in 0..self.servers.len() {
            self.revive(server).await;
        }
    }

    /// Ends the loops of a server, whatever they are doing, and starts new ones with nothing in their caches.
    async fn revive(&mut self, number: usize) {
        let server = &mut self.servers[number];
        let tasks = self.ambient.tasks.child();
        std::mem::replace(&mut server.running, tasks.clone()).stop().await;
        self.faults.forget_crash(number);
        let ambient = Ambient { tasks: tasks.clone(), ..self.ambient.clone() };
        let settings = Settings { authority: "a certificate".into(), ..Settings::default() };
        let wanted = Loops { settings, fleet: self.nodes.clone(), ..Loops::default() };
        let loops = ControlPlane::start(&server.clients, &wanted, &ambient, &prometheus::Registry::new());
        server.loops = Some(loops.clone());
        loops.campaign(format!("server-{number}"));
    }

    pub async fn stop(self) {
        self.ambient.tasks.stop().await;
    }
}
