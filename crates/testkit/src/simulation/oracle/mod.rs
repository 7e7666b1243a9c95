//! Whether what is matches what is wanted, worked out from the objects alone and without any of the loops' code.
//!
//! A kind is a function that says how an object of it should be, given all the others, and a line in [`checks`].

mod batch;
mod scaling;
mod services;
mod storage;
mod workloads;

use super::World;
use kinds::{
    CronJob, DaemonSet, Deployment, Endpoints, HorizontalPodAutoscaler, Id, Job, Kind, Meta, Namespace, Node, Object,
    Partial, PersistentVolume, PersistentVolumeClaim, Pod, PodDisruptionBudget, ReplicaSet, ReplicationController,
    ResourceQuota, Service, StatefulSet, VolumeAttachment,
};
use runtime::ListOptions;
use std::any::{Any, TypeId};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;

macro_rules! checks {
    ($($kind:ty => $check:path;)*) => {
        async fn observe(world: &World) -> Observed {
            let mut observed = Observed::default();
            $(observed.put(world.all::<$kind>().await);)*
            observed
        }

        fn look(all: &Observed, found: &mut Vec<String>) {
            $(for object in all.of::<$kind>() {
                let mut gaps = Gaps { of: describe(&<$kind>::ID, object.meta()), found };
                $check(all, object, &mut gaps);
            })*
        }
    };
}

checks! {
    Node => workloads::node;
    Namespace => namespace;
    Pod => workloads::pod;
    ReplicaSet => workloads::replica_set;
    ReplicationController => workloads::replication_controller;
    Deployment => workloads::deployment;
    StatefulSet => workloads::stateful_set;
    DaemonSet => workloads::daemon_set;
    Job => batch::job;
    CronJob => batch::cron_job;
    Service => services::service;
    Endpoints => services::endpoints;
    PodDisruptionBudget => scaling::budget;
    HorizontalPodAutoscaler => scaling::autoscaler;
    ResourceQuota => scaling::quota;
    PersistentVolumeClaim => storage::claim;
    PersistentVolume => storage::volume;
    VolumeAttachment => storage::attachment;
    kinds::EndpointSlice => nothing;
    kinds::ConfigMap => nothing;
    kinds::ServiceAccount => nothing;
}

/// Everything that is not as it should be.
pub(super) async fn problems(world: &World) -> Vec<String> {
    let observed = observe(world).await;
    let mut found = Vec::new();
    look(&observed, &mut found);
    if found.is_empty() {
        belonging(&everything(world).await, &observed, &mut found);
    }
    found
}

/// Every object of every kind.
pub(super) async fn everything(world: &World) -> Vec<(Id, Meta)> {
    let mut all = Vec::new();
    for id in &world.resources {
        let list = world.admin.list_raw(id, "", &ListOptions::default()).await.expect("the administrator can list");
        let metas = list.items.iter().map(|raw| Partial::read(raw).expect("what is stored can be read").metadata);
        all.extend(metas.map(|meta| (id.clone(), meta)));
    }
    all
}

/// Nothing is on its way out for ever, and all that is owned by something, or in a namespace, has that.
fn belonging(everything: &[(Id, Meta)], all: &Observed, found: &mut Vec<String>) {
    let uids: BTreeSet<&str> = everything.iter().map(|(_, meta)| meta.uid.as_str()).collect();
    let namespaces: BTreeSet<&str> = all.of::<Namespace>().iter().map(|one| one.metadata.name.as_str()).collect();
    for (id, meta) in everything {
        let mut gaps = Gaps { of: describe(id, meta), found };
        let is_held = meta.is_being_deleted() && storage::is_held(all, id, meta);
        gaps.expect("is still being deleted", !meta.is_being_deleted() || is_held);
        for owner in meta.owner_references.iter().filter(|_| !is_held) {
            gaps.same(&format!("its owner {}", owner.name), true, uids.contains(owner.uid.as_str()));
        }
        gaps.expect("has lost its namespace", !id.namespaced || namespaces.contains(meta.namespace.as_str()));
    }
}

/// Everything there is, by kind.
#[derive(Default)]
struct Observed(BTreeMap<TypeId, Box<dyn Any>>);

impl Observed {
    fn put<K: Kind>(&mut self, objects: Vec<Object<K>>) {
        self.0.insert(TypeId::of::<K>(), Box::new(objects));
    }

    fn of<K: Kind>(&self) -> &[Object<K>] {
        let objects = self.0.get(&TypeId::of::<K>()).and_then(|objects| objects.downcast_ref::<Vec<Object<K>>>());
        objects.expect("every kind that is looked at is in the table")
    }

    fn named<K: Kind>(&self, namespace: &str, name: &str) -> Option<&Object<K>> {
        self.of::<K>().iter().find(|one| one.meta().namespace == namespace && one.meta().name == name)
    }

    fn owned<K: Kind>(&self, uid: &str) -> impl Iterator<Item = &Object<K>> {
        self.of::<K>().iter().filter(move |one| one.meta().is_controlled_by(uid))
    }

    /// The pods that something controls and that run or may yet run.
    fn active(&self, uid: &str) -> impl Iterator<Item = &Object<Pod>> {
        self.owned::<Pod>(uid).filter(|pod| pod.is_active())
    }
}

/// What is not as it should be about one object.
struct Gaps<'a> {
    of: String,
    found: &'a mut Vec<String>,
}

impl Gaps<'_> {
    #[allow(clippy::needless_pass_by_value, reason = "what is compared is mostly made for that")]
    fn same<T: PartialEq + Debug>(&mut self, what: &str, wanted: T, is: T) {
        if wanted != is {
            self.found.push(format!("{}: {what} should be {wanted:?} and is {is:?}", self.of));
        }
    }

    fn expect(&mut self, otherwise: &str, holds: bool) {
        if !holds {
            self.found.push(format!("{}: {otherwise}", self.of));
        }
    }
}

fn describe(id: &Id, meta: &Meta) -> String {
    format!("{} {}/{}", id.kind, meta.namespace, meta.name)
}

fn count<T>(items: impl Iterator<Item = T>) -> i32 {
    i32::try_from(items.count()).unwrap_or(i32::MAX)
}

/// Others say how objects of such a kind should be.
fn nothing<K>(_all: &Observed, _object: &Object<K>, _gaps: &mut Gaps) {}

/// A namespace is in use, and has what its pods need.
fn namespace(all: &Observed, namespace: &Object<Namespace>, gaps: &mut Gaps) {
    let name = &namespace.metadata.name;
    gaps.same("its phase", "Active", &namespace.status.phase);
    gaps.expect("has no account", all.named::<kinds::ServiceAccount>(name, "default").is_some());
    gaps.expect("has no certificate", all.named::<kinds::ConfigMap>(name, "kube-root-ca.crt").is_some());
}
