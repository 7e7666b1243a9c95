//! Which devices are taken: by claims, as the cache knows them, and by decisions that are on their way.
//!
//! What is promised to a pod counts from the moment of the decision until its outcome is known, and by then the cache
//! has seen what was written. So there is no moment at which a device that was given is taken for free.

use kinds::{Key, ResourceClaim};
use object::Quantity;
use std::collections::{BTreeMap, HashMap};

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct PoolId {
    pub driver: String,
    pub pool: String,
}

impl std::fmt::Display for PoolId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.driver, self.pool)
    }
}

pub(crate) type Amounts = BTreeMap<String, Quantity>;

/// A device that somebody has, or a share of it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Holding {
    pub pool: PoolId,
    pub device: String,
    /// How much of it, where others can have the rest.
    pub share: Option<Amounts>,
}

/// What is on its way to a pod.
#[derive(Debug)]
pub(crate) struct Promise {
    /// None if the claim is yet to be made.
    pub claim: Option<Key>,
    pub holdings: Vec<Holding>,
}

/// How a device is used.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Use {
    /// By how many that have all of it: more than one only while what is promised is being written.
    pub whole: usize,
    pub shares: usize,
    pub consumed: Amounts,
}

#[derive(Debug, Default)]
pub(crate) struct Ledger {
    held: BTreeMap<Key, Vec<Holding>>,
    /// By the identity of the pod.
    promised: BTreeMap<String, Vec<Promise>>,
    /// The sum of both, by pool and device.
    uses: HashMap<PoolId, BTreeMap<String, Use>>,
}

impl Ledger {
    /// How the devices of a pool are used; those that are not there are free.
    pub(crate) fn uses(&self, pool: &PoolId) -> Option<&BTreeMap<String, Use>> {
        self.uses.get(pool)
    }

    /// Whether devices are on their way to a claim.
    pub(crate) fn is_promised(&self, claim: &Key) -> bool {
        self.promised.values().flatten().any(|promise| promise.claim.as_ref() == Some(claim))
    }

    /// Takes in a claim as it is now. Returns whether it has given something back.
    pub(crate) fn observe(&mut self, key: &Key, claim: Option<&ResourceClaim>) -> bool {
        let holdings = claim.map(holdings).unwrap_or_default();
        let before = self.held.remove(key).unwrap_or_default();
        if !holdings.is_empty() {
            // What was on its way has arrived.
            for promises in self.promised.values_mut() {
                for promise in promises.extract_if(.., |promise| promise.claim.as_ref() == Some(key)) {
                    count(&mut self.uses, &promise.holdings, false);
                }
            }
        }
        let is_freed = before.iter().any(|holding| !holdings.contains(holding));
        count(&mut self.uses, &before, false);
        count(&mut self.uses, &holdings, true);
        if !holdings.is_empty() {
            self.held.insert(key.clone(), holdings);
        }
        is_freed
    }

    pub(crate) fn has_promised(&self, pod: &str) -> bool {
        self.promised.contains_key(pod)
    }

    pub(crate) fn promise(&mut self, pod: &str, promises: Vec<Promise>) {
        self.keep(pod);
        promises.iter().for_each(|promise| count(&mut self.uses, &promise.holdings, true));
        self.promised.insert(pod.to_owned(), promises);
    }

    /// What became of a promise is known. Returns whether something was promised that nobody got.
    pub(crate) fn keep(&mut self, pod: &str) -> bool {
        let promises = self.promised.remove(pod).unwrap_or_default();
        promises.iter().for_each(|promise| count(&mut self.uses, &promise.holdings, false));
        promises.iter().any(|promise| !promise.holdings.is_empty())
    }
}

/// Who only looks on, with the rights of an administrator, takes nothing.
fn holdings(claim: &ResourceClaim) -> Vec<Holding> {
    let results = claim.status.allocation.iter().flat_map(|allocation| &allocation.devices.results);
    let taken = results.filter(|result| !result.admin_access);
    let holding = taken.map(|result| Holding {
        pool: PoolId { driver: result.driver.clone(), pool: result.pool.clone() },
        device: result.device.clone(),
        share: result.share_id.as_ref().map(|_| result.consumed_capacity.clone()),
    });
    holding.collect()
}

fn count(uses: &mut HashMap<PoolId, BTreeMap<String, Use>>, holdings: &[Holding], is_more: bool) {
    let change = |number: &mut usize| *number = if is_more { *number + 1 } else { number.saturating_sub(1) };
    for Holding { pool, device, share } in holdings {
        let devices = uses.entry(pool.clone()).or_default();
        let used = devices.entry(device.clone()).or_default();
        match share {
            None => change(&mut used.whole),
            Some(share) => {
                change(&mut used.shares);
                for (name, amount) in share {
                    let sum = used.consumed.entry(name.clone()).or_default();
                    *sum = if is_more { *sum + *amount } else { *sum - *amount };
                }
            }
        }
        if used.whole == 0 && used.shares == 0 {
            devices.remove(device);
        }
        if devices.is_empty() {
            uses.remove(pool);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kinds::Object;
    use object::{Value, json};

    fn pool() -> PoolId {
        PoolId { driver: "d".into(), pool: "p".into() }
    }

    fn claim(results: &Value) -> Object<ResourceClaim> {
        Object::of(&json!({ "status": { "allocation": { "devices": { "results": results } } } }))
    }

    #[test]
    fn a_device_is_taken_from_the_promise_until_the_claim_gives_it_back() {
        let key = Key::new("default", "gpu");
        let mut ledger = Ledger::default();
        let holding = Holding { pool: pool(), device: "a".into(), share: None };
        ledger.promise("pod", vec![Promise { claim: Some(key.clone()), holdings: vec![holding] }]);
        assert!(ledger.is_promised(&key));
        let whole = |ledger: &Ledger| ledger.uses(&pool()).and_then(|uses| uses.get("a")).map_or(0, |used| used.whole);
        assert_eq!(whole(&ledger), 1);
        let given = claim(&json!([{ "driver": "d", "pool": "p", "device": "a" }]));
        assert!(!ledger.observe(&key, Some(&given)));
        assert_eq!((whole(&ledger), ledger.is_promised(&key)), (1, false));
        assert!(!ledger.keep("pod"), "the claim has it");
        assert_eq!(whole(&ledger), 1);
        assert!(ledger.observe(&key, None));
        assert_eq!(ledger.uses(&pool()), None);
    }

    #[test]
    fn a_promise_that_nobody_got_frees_the_device() {
        let mut ledger = Ledger::default();
        let holding = Holding { pool: pool(), device: "a".into(), share: None };
        ledger.promise("pod", vec![Promise { claim: None, holdings: vec![holding] }]);
        assert!(ledger.keep("pod"));
        assert_eq!(ledger.uses(&pool()), None);
    }

    #[test]
    fn shares_add_up_and_administrators_take_nothing() {
        let mut ledger = Ledger::default();
        let share = |id: &str| json!({ "driver": "d", "pool": "p", "device": "a", "shareID": id, "consumedCapacity": { "memory": "2Gi" } });
        ledger.observe(&Key::new("default", "x"), Some(&claim(&json!([share("1"), share("2")]))));
        let used = ledger.uses(&pool()).unwrap()["a"].clone();
        assert_eq!((used.whole, used.shares, used.consumed["memory"]), (0, 2, "4Gi".parse().unwrap()));
        let looks = json!([{ "driver": "d", "pool": "p", "device": "b", "adminAccess": true }]);
        ledger.observe(&Key::new("default", "x"), Some(&claim(&looks)));
        assert_eq!(ledger.uses(&pool()), None);
    }
}
