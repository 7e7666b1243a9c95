//! What a controller is: a name, what it watches, and a function that plans.

use crate::cache::Change;
use crate::client::Client;
use crate::executor::Tell;
use crate::informer::{Caches, WeakCaches};
use crate::plan::Plan;
use crate::queue::Queue;
use ambient::Ambient;
use futures::future::BoxFuture;
use kinds::{Id, Key, Kind, Object, Time};
use object::ApiError;
use std::fmt::{self, Debug};
use std::sync::Arc;

/// What a plan is wanted for.
#[derive(Clone, Debug)]
pub struct Request {
    pub key: Key,
    pub now: Time,
    /// What the API said when this loop last failed to create or delete something for the key.
    pub failure: Option<String>,
}

/// What a loop can reach when it observes more than caches hold.
#[derive(Clone)]
pub struct Context {
    pub caches: Caches,
    /// With the identity of the controller.
    pub client: Client,
    /// Tells people what happened.
    pub tell: Tell,
}

impl Debug for Context {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Context({})", self.client.agent())
    }
}

/// Declares a watch: adds the keys to wake for to the queue.
type Declare = Box<dyn FnOnce(&mut Caches, &Queue<Key>, &CachesCell) + Send + Sync>;
/// Wakes keys for reasons of its own, for as long as the controller works.
type Source = Arc<dyn Fn(Context, Queue<Key>, Ambient) -> BoxFuture<'static, ()> + Send + Sync>;
type Reconcile = Arc<dyn Fn(Context, Request) -> BoxFuture<'static, Result<Plan, ApiError>> + Send + Sync>;

/// The caches, once all kinds are declared: key mappings may look into them. They are not kept alive by that, since the
/// mappings are kept by the caches.
pub(crate) type CachesCell = Arc<std::sync::OnceLock<WeakCaches>>;

pub struct Controller {
    pub name: &'static str,
    /// Whose rights it has: the service account of its own name, unless it shares another's.
    pub account: &'static str,
    /// Whom its events come from: itself, unless people know it by another name.
    pub component: &'static str,
    pub(crate) workers: usize,
    pub(crate) watches: Vec<Declare>,
    /// The keys there are, for a look at all of them.
    pub(crate) primaries: Vec<fn(&Caches) -> Vec<Key>>,
    pub(crate) initial: Vec<Key>,
    pub(crate) sources: Vec<Source>,
    /// Kinds that have to be known as they are when it begins.
    pub(crate) fresh: Vec<Id>,
    pub(crate) reconcile: Reconcile,
}

impl Debug for Controller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Controller({})", self.name)
    }
}

/// As many keys of one controller are worked on at once unless it says otherwise.
const WORKERS: usize = 4;

impl Controller {
    /// `name` is that of its service account and of the source of its events: `replicaset-controller`.
    pub fn new(name: &'static str) -> Self {
        let nothing: Reconcile = Arc::new(|_, _| Box::pin(async { Ok(Plan::default()) }));
        Controller {
            name,
            account: name,
            component: name,
            workers: WORKERS,
            watches: Vec::new(),
            primaries: Vec::new(),
            initial: Vec::new(),
            sources: Vec::new(),
            fresh: Vec::new(),
            reconcile: nothing,
        }
    }

    /// Works with the rights of a service account that is not named after it.
    pub fn account(mut self, account: &'static str) -> Self {
        self.account = account;
        self
    }

    /// Tells people what it did under another name than its own.
    pub fn reports_as(mut self, component: &'static str) -> Self {
        self.component = component;
        self
    }

    /// The kind that the loop is about: every object of it is a key.
    pub fn primary<K: Kind>(mut self) -> Self {
        self.primaries.push(|caches| caches.of::<K>().all().iter().map(|object| object.key()).collect());
        self.watches::<K>(|object, _| vec![object.key()])
    }

    /// A kind that objects of the primary one control.
    pub fn owns<Owned: Kind, Owner: Kind>(self) -> Self {
        self.watches::<Owned>(|object, _| controller_key::<Owner>(object.meta()).into_iter().collect())
    }

    /// A kind whose changes wake the keys that `keys` gives for the object before and after.
    pub fn watches<K: Kind>(mut self, keys: fn(&Object<K>, &Caches) -> Vec<Key>) -> Self {
        self.watches.push(Box::new(move |caches, queue, shared| {
            let (queue, shared) = (queue.clone(), shared.clone());
            caches.declare::<K>().handle(move |change: &Change<K>| {
                let Some(caches) = shared.get().and_then(WeakCaches::upgrade) else { return };
                for object in change.sides() {
                    for key in keys(object, &caches) {
                        queue.add(key);
                    }
                }
            });
        }));
        self
    }

    /// A kind whose changes wake the keys that `keys` gives for what became different: to leave out what does not matter.
    pub fn watches_changes<K: Kind>(
        mut self,
        keys: impl Fn(&Change<K>, &Caches) -> Vec<Key> + Send + Sync + 'static,
    ) -> Self {
        self.watches.push(Box::new(move |caches, queue, shared| {
            let (queue, shared) = (queue.clone(), shared.clone());
            caches.declare::<K>().handle(move |change: &Change<K>| {
                let Some(caches) = shared.get().and_then(WeakCaches::upgrade) else { return };
                for key in keys(change, &caches) {
                    queue.add(key);
                }
            });
        }));
        self
    }

    /// A kind that is read but wakes nobody.
    pub fn reads<K: Kind>(mut self) -> Self {
        self.watches.push(Box::new(|caches, _, _| {
            caches.declare::<K>();
        }));
        self
    }

    /// A key that is there from the start: for loops that look at everything at once, and again after a while.
    pub fn begins_with(mut self, key: Key) -> Self {
        self.initial.push(key);
        self
    }

    /// Begins a term only when its cache of a kind has seen everything that whoever led before may have written: for
    /// loops that would otherwise do what cannot be mended.
    pub fn begins_up_to_date_on<K: Kind>(mut self) -> Self {
        self.fresh.push(K::ID);
        self
    }

    /// Something that wakes keys besides what is watched. It runs while the controller works.
    pub fn source<F>(mut self, source: impl Fn(Context, Queue<Key>, Ambient) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = ()> + Send + 'static,
    {
        self.sources.push(Arc::new(move |context, queue, ambient| Box::pin(source(context, queue, ambient))));
        self
    }

    pub fn workers(mut self, workers: usize) -> Self {
        self.workers = workers;
        self
    }

    /// How it plans, from caches alone.
    pub fn plans(mut self, plan: impl Fn(&Caches, &Request) -> Plan + Send + Sync + 'static) -> Self {
        self.reconcile = Arc::new(move |context, request| {
            let planned = plan(&context.caches, &request);
            Box::pin(async move { Ok(planned) })
        });
        self
    }

    /// How it plans, if it has to ask the API for something that no cache holds.
    pub fn plans_with<F>(mut self, plan: impl Fn(Context, Request) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = Result<Plan, ApiError>> + Send + 'static,
    {
        self.reconcile = Arc::new(move |context, request| Box::pin(plan(context, request)));
        self
    }
}

/// The key of the controller of an object, if it is of this kind.
pub fn controller_key<Owner: Kind>(meta: &kinds::Meta) -> Option<Key> {
    let owner = meta.controller().filter(|owner| owner.is(&Owner::ID))?;
    let namespace = if Owner::ID.namespaced { meta.namespace.as_str() } else { "" };
    Some(Key::new(namespace, owner.name.as_str()))
}
