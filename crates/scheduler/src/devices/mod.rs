//! Devices that pods claim: whether a node can have them, and which.
//!
//! [`inventory`] knows what drivers offer and [`ledger`] what is taken; [`search`] finds devices of a node that do for
//! the claims of a pod. What was found becomes a [`grant`] for each claim, and [`binding`] writes it to the API before
//! the pod is bound. Pods that claim nothing pass all this by.

pub(crate) mod binding;
mod capacity;
mod extended;
mod grant;
mod inventory;
mod ledger;
mod request;
mod search;
mod selection;

use crate::cluster::{Cluster, Slot, Spot};
use crate::filters::{Asked, Verdict};
use crate::needs::Needs;
use crate::verdict::{Plugin, Refusal};
use binding::Made;
pub use binding::Reservation;
use extended::Extended;
use grant::Grant;
use kinds::{DeviceTaintRule, Key, Node, Object, Pod, ResourceClaim, ResourceSlice};
use request::Wanted;
use runtime::Caches;
use search::Failure;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

const NOT_HERE: &str = "resourceclaim not available on the node";
/// So many pods can use a claim.
const MAX_CONSUMERS: usize = 256;

/// What is known of devices.
#[derive(Debug, Default)]
pub(crate) struct Stock {
    inventory: inventory::Inventory,
    ledger: ledger::Ledger,
    selections: selection::Selections,
}

impl Stock {
    pub(crate) fn slice(&mut self, name: &str, slice: Option<Arc<Object<ResourceSlice>>>) {
        if let Some(replaced) = self.inventory.put(name, slice) {
            self.selections.forget(replaced);
        }
    }

    pub(crate) fn rule(&mut self, name: &str, rule: Option<Arc<Object<DeviceTaintRule>>>) {
        self.inventory.put_rule(name, rule);
    }

    /// Takes in a claim as the cache has it. Returns whether it has given something back.
    pub(crate) fn claim(&mut self, key: &Key, caches: &Caches) -> bool {
        let claim = caches.of::<ResourceClaim>().get(key);
        self.ledger.observe(key, claim.as_ref().map(|claim| &***claim))
    }

    pub(crate) fn has_promised(&self, pod: &str) -> bool {
        self.ledger.has_promised(pod)
    }

    /// A pod has got what was promised to it, or will not. Returns whether something is free now.
    pub(crate) fn settle(&mut self, pod: &str) -> bool {
        self.ledger.keep(pod)
    }
}

/// What a pod claims.
#[derive(Debug, Default)]
pub(crate) struct Devices {
    pod: String,
    claims: Vec<Arc<Object<ResourceClaim>>>,
    /// Those that have no devices yet.
    wanted: Vec<Wanted>,
    extended: Option<Extended>,
}

/// What would help a pod that fits nowhere.
#[derive(Clone, Debug)]
pub enum Release {
    /// A claim whose devices are where the pod cannot be, and that nobody else uses, gives them back.
    Devices(Arc<Object<ResourceClaim>>),
    /// A claim that was made for an attempt that failed goes.
    Claim(Arc<Object<ResourceClaim>>),
}

/// The claims of a pod, if all are there. An error says what it waits for.
pub(crate) fn claims_of(pod: &Pod, caches: &Caches) -> Result<Vec<Arc<Object<ResourceClaim>>>, String> {
    let (meta, mut claims) = (&pod.metadata, Vec::new());
    let whole = format!("{}/{}", meta.namespace, meta.name);
    for entry in &pod.spec.resource_claims {
        let name = match (&entry.resource_claim_name, &entry.resource_claim_template_name) {
            (Some(name), _) => Some(name),
            (None, Some(_)) => {
                let known = pod.status.resource_claim_statuses.iter().find(|status| status.name == entry.name);
                let known = known.ok_or_else(|| format!("pod \"{whole}\": ResourceClaim not created yet"))?;
                known.resource_claim_name.as_ref()
            }
            (None, None) => {
                let entry = &entry.name;
                return Err(format!(
                    "pod \"{whole}\", spec.resourceClaim \"{entry}\": none of the supported fields are set"
                ));
            }
        };
        // Somebody has decided that the pod needs none.
        let Some(name) = name else { continue };
        let claim = caches.of::<ResourceClaim>().named(&meta.namespace, name);
        let claim = claim.ok_or_else(|| format!("resourceclaim.resource.k8s.io \"{name}\" not found"))?;
        if claim.metadata.is_being_deleted() {
            return Err(format!("resourceclaim \"{name}\" is being deleted"));
        }
        let is_made_for_it = entry.resource_claim_name.is_some() || claim.metadata.is_controlled_by(&meta.uid);
        if !is_made_for_it {
            let claim = claim.key();
            return Err(format!("ResourceClaim {claim} was not created for Pod {whole} (Pod is not owner)"));
        }
        claims.push(claim);
    }
    Ok(claims)
}

impl Devices {
    /// Looks up what a pod claims. An error is what stands in the way on every node.
    pub(crate) fn of(pod: &Pod, needs: &Needs, cluster: &Cluster) -> Result<Self, String> {
        let (caches, stock, uid) = (&cluster.caches, &cluster.devices, &pod.metadata.uid);
        if needs.device_claims.is_empty() && needs.requests.others.is_empty() {
            return Ok(Devices::default());
        }
        let extended = Extended::of(pod, needs, caches);
        let claims = claims_of(pod, caches)?;
        let mut wanted: Vec<Wanted> = Vec::new();
        for claim in &claims {
            let key = claim.key();
            if claim.status.allocation.is_some() {
                if claim.status.reserved_for.len() >= MAX_CONSUMERS && !claim.is_reserved_for(uid) {
                    return Err("resourceclaim in use".to_owned());
                }
                continue;
            }
            if stock.ledger.is_promised(&key) {
                return Err(format!("resource claim {key} is in the process of being allocated"));
            }
            // A pod may name a claim twice, and gets it once.
            if !wanted.iter().any(|other| other.key == key) {
                let spec = &claim.spec.devices;
                wanted.push(Wanted::read(key, &claim.metadata.uid, spec, caches, &stock.selections)?);
            }
        }
        Ok(Devices { pod: uid.clone(), claims, wanted, extended })
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.claims.is_empty() && self.extended.is_none()
    }

    /// Whether a resource that a node has not can be had as devices.
    pub(crate) fn answer_to(&self, resource: &str) -> bool {
        self.extended.as_ref().is_some_and(|extended| extended.answers_to(resource))
    }

    /// Devices of a node for all claims that have none; for that which is yet to be made, too.
    fn grants(&self, cluster: &Cluster, spot: &Spot, node: &Node) -> Result<(Vec<Grant>, Option<Made>), Refusal> {
        let refuse = |reason: &'static str| Refusal::firm(Plugin::DynamicResources, reason);
        let fail = |message: String| Refusal::error(Plugin::DynamicResources, message);
        if self.extended.as_ref().is_some_and(|extended| extended.stale.is_some()) {
            return Err(refuse("cannot schedule extended resource claim"));
        }
        if !self.claims.iter().all(|claim| is_available(claim, node)) {
            return Err(refuse(NOT_HERE));
        }
        let stock = &cluster.devices;
        let for_node = self.extended.as_ref().and_then(|extended| extended.on(spot));
        let to_be_made = for_node.as_ref().map(|for_node| {
            Wanted::read(extended::placeholder(), &self.pod, &for_node.spec, &cluster.caches, &stock.selections)
        });
        let to_be_made = to_be_made.transpose().map_err(fail)?;
        let wanted: Vec<&Wanted> = self.wanted.iter().chain(&to_be_made).collect();
        if wanted.is_empty() {
            return Ok((Vec::new(), None));
        }
        let picks = search::search(&stock.inventory, &stock.ledger, node, &wanted);
        let picks = picks.map_err(|failure| match failure {
            Failure::Unavailable => refuse("cannot allocate all claims"),
            Failure::InvalidPools => refuse("invalid resource pools were encountered"),
            Failure::Error(message) => fail(message),
        })?;
        let mut grants: Vec<Grant> =
            wanted.iter().enumerate().map(|(at, wanted)| Grant::of(at, wanted, &picks, node)).collect();
        let made = for_node.zip(to_be_made.and_then(|_| grants.pop()));
        Ok((
            grants,
            made.map(|(for_node, grant)| Made { requests: for_node.requests(), mappings: for_node.mappings, grant }),
        ))
    }

    /// How much a node is to be preferred; the same for all if nothing makes a difference.
    pub(crate) fn score(&self, cluster: &Cluster, spot: &Spot, node: &Node) -> i64 {
        if !self.wanted.iter().any(Wanted::has_preferences) {
            return 0;
        }
        self.grants(cluster, spot, node).map_or(0, |(grants, _)| grants.iter().map(|grant| grant.score).sum())
    }

    /// Promises devices of a node to a pod, and says what is to be written before it is bound.
    pub(crate) fn reserve(&self, cluster: &mut Cluster, slot: Slot, timeout: Duration) -> Result<Reservation, Refusal> {
        let spot = cluster.spot(slot);
        let Some(node) = spot.node.as_ref().filter(|_| !self.is_empty()) else { return Ok(Reservation::default()) };
        let (grants, made) = self.grants(cluster, spot, node)?;
        let promises = grants.iter().map(|grant| grant.promise(Some(grant.key.clone())));
        let promises = promises.chain(made.iter().map(|made| made.grant.promise(None))).collect();
        cluster.devices.ledger.promise(&self.pod, promises);
        let allocation = |claim: &Object<ResourceClaim>| {
            let key = claim.key();
            grants.iter().find(|grant| grant.key == key).map(|grant| grant.allocation.clone())
        };
        // A pod may name a claim twice.
        let claims: BTreeMap<Key, &Arc<Object<ResourceClaim>>> =
            self.claims.iter().map(|claim| (claim.key(), claim)).collect();
        let open = claims.values().filter(|claim| !claim.is_reserved_for(&self.pod));
        let open = open.map(|claim| ((*claim).clone(), allocation(claim))).collect();
        Ok(Reservation { claims: open, all: claims.into_keys().collect(), made, timeout })
    }

    /// What is said of claims when the pod fits nowhere.
    pub(crate) fn outlook(&self, release: Option<&Release>) -> &'static str {
        match release {
            None if self.is_empty() => "no new claims to deallocate",
            None => "still not schedulable",
            Some(Release::Devices(_)) => "deallocation of ResourceClaim completed",
            Some(Release::Claim(_)) => "deletion of ResourceClaim completed",
        }
    }

    /// What would help if the pod fits nowhere, for these reasons.
    pub(crate) fn release(&self, reasons: &BTreeMap<String, usize>) -> Option<Release> {
        if let Some(stale) = self.extended.as_ref().and_then(|extended| extended.stale.clone()) {
            return Some(Release::Claim(stale));
        }
        if !reasons.contains_key(NOT_HERE) {
            return None;
        }
        let is_its_own = |claim: &&Arc<Object<ResourceClaim>>| {
            let status = &claim.status;
            let bound = status.allocation.as_ref().is_some_and(|allocation| allocation.node_selector.is_some());
            let is_stuck = bound || binding::is_ready(claim).is_err();
            is_stuck && status.reserved_for.iter().all(|consumer| consumer.uid == self.pod)
        };
        self.claims.iter().find(is_its_own).cloned().map(Release::Devices)
    }
}

/// Whether the devices of a claim, if it has any, can be used on a node.
fn is_available(claim: &ResourceClaim, node: &Node) -> bool {
    let Some(allocation) = &claim.status.allocation else { return true };
    let is_reached = allocation.node_selector.as_ref().is_none_or(|written| written.selector.matches(node));
    is_reached && binding::is_ready(claim).is_ok()
}

pub(crate) fn filter(asked: Asked<'_>, spot: &Spot, node: &Node) -> Verdict {
    if asked.devices.is_empty() {
        return Ok(());
    }
    asked.devices.grants(asked.cluster, spot, node).map(drop)
}
