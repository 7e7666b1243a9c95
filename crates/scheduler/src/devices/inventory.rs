//! What drivers offer: slices, put together to pools, and which nodes reach them.
//!
//! Only the newest generation of a pool counts, and only when all of it is there: before that, devices that are being
//! listed anew could be taken for others.

use super::ledger::{Amounts, PoolId};
use kinds::{Device, DeviceTaintRule, Node, Object, ResourceSlice, Taint};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

#[derive(Debug, Default)]
pub(crate) struct Inventory {
    pools: BTreeMap<PoolId, Pool>,
    /// In which pool a slice is.
    homes: HashMap<String, PoolId>,
    /// Pools with devices for a single node, and the others.
    local: HashMap<String, BTreeSet<PoolId>>,
    shared: BTreeSet<PoolId>,
    /// Taints besides those that slices have.
    rules: BTreeMap<String, Arc<Object<DeviceTaintRule>>>,
    next: u64,
}

/// A version of a slice.
#[derive(Clone, Debug)]
pub(crate) struct Offer {
    pub number: u64,
    pub slice: Arc<Object<ResourceSlice>>,
}

#[derive(Debug, Default)]
pub(crate) struct Pool {
    pub id: PoolId,
    pub state: State,
    /// What counts, in the order of names: drivers say by them what is to be given first.
    pub offers: Vec<Offer>,
    /// The counters there are, by set.
    pub counters: BTreeMap<String, Amounts>,
    /// Whether some devices are to be prepared before a pod can have them. Others are better.
    binds_later: bool,
    all: BTreeMap<String, Offer>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum State {
    #[default]
    Complete,
    /// Being updated.
    Incomplete,
    /// It contradicts itself.
    Invalid,
}

impl Inventory {
    /// Takes in a slice as it is now. Returns the number of the offer that it replaces.
    pub(crate) fn put(&mut self, name: &str, slice: Option<Arc<Object<ResourceSlice>>>) -> Option<u64> {
        let old = self.homes.remove(name).and_then(|id| {
            let offer = self.pools.get_mut(&id)?.all.remove(name);
            self.rebuild(&id);
            offer
        });
        if let Some(slice) = slice {
            let spec = &slice.spec;
            let id = PoolId { driver: spec.driver.clone(), pool: spec.pool.name.clone() };
            self.next += 1;
            let pool = self.pools.entry(id.clone()).or_insert_with(|| Pool { id: id.clone(), ..Pool::default() });
            pool.all.insert(name.to_owned(), Offer { number: self.next, slice });
            self.homes.insert(name.to_owned(), id.clone());
            self.rebuild(&id);
        }
        old.map(|offer| offer.number)
    }

    /// Takes in a rule that taints devices, as it is now.
    pub(crate) fn put_rule(&mut self, name: &str, rule: Option<Arc<Object<DeviceTaintRule>>>) {
        match rule {
            Some(rule) => drop(self.rules.insert(name.to_owned(), rule)),
            None => drop(self.rules.remove(name)),
        }
    }

    /// All taints of a device of a pool.
    pub(crate) fn taints<'a>(&'a self, pool: &'a PoolId, device: &'a Device) -> impl Iterator<Item = &'a Taint> {
        let rules = self.rules.values().filter(|rule| rule.selects(&pool.driver, &pool.pool, &device.name));
        device.taints.iter().chain(rules.map(|rule| &rule.spec.taint))
    }

    fn rebuild(&mut self, id: &PoolId) {
        let Some(pool) = self.pools.get_mut(id) else { return };
        for node in pool.offers.iter().filter_map(Offer::node) {
            if let Some(pools) = self.local.get_mut(node) {
                pools.remove(id);
                if pools.is_empty() {
                    self.local.remove(node);
                }
            }
        }
        self.shared.remove(id);
        pool.read();
        for offer in &pool.offers {
            match offer.node() {
                Some(node) => self.local.entry(node.to_owned()).or_default().insert(id.clone()),
                None => self.shared.insert(id.clone()),
            };
        }
        if pool.all.is_empty() {
            self.pools.remove(id);
        }
    }

    /// The pools that have devices for a node, in the order in which they are to be used.
    pub(crate) fn reached_from<'a>(&'a self, node: &'a Node) -> Vec<&'a Pool> {
        let local = self.local.get(&node.metadata.name).into_iter().flatten();
        let ids: BTreeSet<&PoolId> = local.chain(&self.shared).collect();
        let pools = ids.into_iter().filter_map(|id| self.pools.get(id));
        let (later, at_once): (Vec<&Pool>, Vec<&Pool>) =
            pools.filter(|pool| pool.offers.iter().any(|offer| offer.reaches(node))).partition(|pool| pool.binds_later);
        at_once.into_iter().chain(later).collect()
    }
}

impl Offer {
    /// The only node that it is for.
    fn node(&self) -> Option<&str> {
        let name = self.slice.spec.reach.node_name.as_str();
        (!name.is_empty()).then_some(name)
    }

    /// Whether a node can have some of its devices.
    pub(crate) fn reaches(&self, node: &Node) -> bool {
        let spec = &self.slice.spec;
        match spec.per_device_node_selection {
            true => spec.devices.iter().any(|device| device.reach.includes(node)),
            false => spec.reach.includes(node) && spec.shared_counters.is_empty(),
        }
    }

    /// The devices that a node can have, with their places.
    pub(crate) fn devices_for<'a>(&'a self, node: &'a Node) -> impl Iterator<Item = (usize, &'a Device)> {
        let each = self.slice.spec.per_device_node_selection;
        let devices = self.slice.spec.devices.iter().enumerate().filter(|_| self.reaches(node));
        devices.filter(move |(_, device)| !each || device.reach.includes(node))
    }
}

impl Pool {
    fn read(&mut self) {
        let generation = |offer: &Offer| offer.slice.spec.pool.generation;
        let newest = self.all.values().map(generation).max().unwrap_or(0);
        self.offers = self.all.values().filter(|offer| generation(offer) == newest).cloned().collect();
        let expected = self.offers.first().map_or(0, |offer| offer.slice.spec.pool.resource_slice_count);
        self.counters.clear();
        let is_complete = self.offers.len() as i64 == expected;
        self.state = match is_complete {
            false => State::Incomplete,
            true if self.count() => State::Complete,
            true => State::Invalid,
        };
        let mut devices = self.offers.iter().flat_map(|offer| &offer.slice.spec.devices);
        self.binds_later = devices.any(|device| !device.binding_conditions.is_empty());
    }

    /// Gathers counters. Returns whether names are used once, and nothing consumes what is not there.
    fn count(&mut self) -> bool {
        let specs = || self.offers.iter().map(|offer| &offer.slice.spec);
        let mut is_valid = true;
        for set in specs().flat_map(|spec| &spec.shared_counters) {
            let counters = set.counters.iter().map(|(name, counter)| (name.clone(), counter.value)).collect();
            is_valid &= self.counters.insert(set.name.clone(), counters).is_none();
        }
        let mut names = BTreeSet::new();
        for device in specs().flat_map(|spec| &spec.devices) {
            is_valid &= names.insert(device.name.as_str());
            is_valid &= device.consumes_counters.iter().all(|set| {
                let known = self.counters.get(&set.name);
                known.is_some_and(|known| set.counters.keys().all(|counter| known.contains_key(counter)))
            });
        }
        is_valid
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use object::{Value, json};

    fn slice(name: &str, spec: &Value) -> Arc<Object<ResourceSlice>> {
        let mut spec = spec.clone();
        spec["driver"] = json!("d");
        Arc::new(Object::of(&json!({ "metadata": { "name": name }, "spec": spec })))
    }

    fn pool(generation: i64, count: i64) -> Value {
        json!({ "name": "p", "generation": generation, "resourceSliceCount": count })
    }

    fn node(name: &str) -> Object<Node> {
        Object::of(&json!({ "metadata": { "name": name, "labels": { "zone": name } } }))
    }

    fn seen(inventory: &Inventory, from: &str) -> Vec<(State, Vec<String>)> {
        let node = node(from);
        let pools = inventory.reached_from(&node);
        let names = |pool: &&Pool| {
            let devices = pool.offers.iter().flat_map(|offer| offer.devices_for(&node));
            devices.map(|(_, device)| device.name.clone()).collect()
        };
        pools.iter().map(|pool| (pool.state, names(pool))).collect()
    }

    fn devices(names: &[&str]) -> Value {
        names.iter().map(|name| json!({ "name": name })).collect::<Vec<Value>>().into()
    }

    #[test]
    fn only_the_newest_generation_counts_and_only_all_of_it() {
        let mut inventory = Inventory::default();
        let put = |inventory: &mut Inventory, name: &str, generation, count, device: &str| {
            let spec = json!({ "pool": pool(generation, count), "nodeName": "n", "devices": devices(&[device]) });
            inventory.put(name, Some(slice(name, &spec)));
        };
        put(&mut inventory, "a", 1, 1, "old");
        assert_eq!(seen(&inventory, "n"), [(State::Complete, vec!["old".to_owned()])]);
        assert!(seen(&inventory, "m").is_empty());
        put(&mut inventory, "b", 2, 2, "new-1");
        assert_eq!(seen(&inventory, "n"), [(State::Incomplete, vec!["new-1".to_owned()])]);
        put(&mut inventory, "c", 2, 2, "new-2");
        assert_eq!(seen(&inventory, "n"), [(State::Complete, vec!["new-1".to_owned(), "new-2".to_owned()])]);
        put(&mut inventory, "c", 2, 2, "new-1");
        assert_eq!(seen(&inventory, "n")[0].0, State::Invalid, "a name is used twice");
        for name in ["a", "b", "c"] {
            inventory.put(name, None);
        }
        assert!(seen(&inventory, "n").is_empty() && inventory.pools.is_empty() && inventory.local.is_empty());
    }

    #[test]
    fn devices_are_reached_by_name_by_label_from_everywhere_or_each_for_itself() {
        let selector = json!({ "nodeSelectorTerms": [{ "matchExpressions": [{ "key": "zone", "operator": "In", "values": ["n"] }] }] });
        let each = json!([
            { "name": "a", "nodeName": "n" }, { "name": "b", "allNodes": true },
            { "name": "c", "nodeSelector": selector },
        ]);
        for (spec, from_n, from_m) in [
            (json!({ "nodeName": "n", "devices": devices(&["x"]) }), "x", ""),
            (json!({ "allNodes": true, "devices": devices(&["x"]) }), "x", "x"),
            (json!({ "nodeSelector": selector, "devices": devices(&["x"]) }), "x", ""),
            (json!({ "perDeviceNodeSelection": true, "devices": each }), "abc", "b"),
        ] {
            let mut inventory = Inventory::default();
            let mut spec = spec.clone();
            spec["pool"] = pool(1, 1);
            inventory.put("s", Some(slice("s", &spec)));
            let names =
                |from: &str| seen(&inventory, from).into_iter().flat_map(|(_, names)| names).collect::<String>();
            assert_eq!((names("n").as_str(), names("m").as_str()), (from_n, from_m), "{spec}");
        }
    }

    #[test]
    fn a_pool_whose_devices_consume_what_is_not_there_is_invalid() {
        let counters = json!([{ "name": "set", "counters": { "memory": { "value": "8Gi" } } }]);
        for (counter, state) in [("memory", State::Complete), ("cores", State::Invalid)] {
            let mut inventory = Inventory::default();
            let consumes = json!([{ "counterSet": "set", "counters": { counter: { "value": "1" } } }]);
            let of_devices = json!([{ "name": "x", "consumesCounters": consumes }]);
            let put = |inventory: &mut Inventory, name: &str, field: &str, value: &Value| {
                inventory.put(name, Some(slice(name, &json!({ "pool": pool(1, 2), "nodeName": "n", field: value }))));
            };
            put(&mut inventory, "counters", "sharedCounters", &counters);
            put(&mut inventory, "devices", "devices", &of_devices);
            assert_eq!(seen(&inventory, "n")[0].0, state, "{counter}");
        }
    }
}
