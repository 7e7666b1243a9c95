//! What was found for a claim, as its status says it.

use super::ledger::{Holding, Promise};
use super::request::{Alternative, Wanted};
use super::search::Pick;
use crate::cluster::salt;
use kinds::{DeviceConfig, Key, Node, Toleration};
use object::{Edit, Value, View, json};

/// Devices for a claim.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Grant {
    pub key: Key,
    pub allocation: Value,
    pub holdings: Vec<Holding>,
    /// How far down the lists of alternatives devices were found: more is better.
    pub score: i64,
}

/// The most alternatives that a request can have.
const MAX_ALTERNATIVES: usize = 8;

impl Grant {
    pub(super) fn of<'a>(claim: usize, wanted: &'a Wanted, picks: &[Pick<'a>], node: &Node) -> Self {
        let own: Vec<&Pick<'a>> = picks.iter().filter(|pick| pick.claim == claim).collect();
        let results = own.iter().enumerate().map(|(at, pick)| result(pick, &format!("{}/{at}", wanted.uid)));
        let mut devices = json!({ "results": results.collect::<Vec<Value>>() });
        let config = config(wanted, &own);
        if !config.is_empty() {
            devices.set("config", config);
        }
        let mut allocation = json!({ "devices": devices });
        if let Some(selector) = node_selector(&own, node) {
            allocation.set("nodeSelector", selector);
        }
        let taken = own.iter().filter(|pick| !pick.alternative.asked.admin_access);
        let holding = |pick: &&Pick<'_>| Holding {
            pool: pick.candidate.pool.id.clone(),
            device: pick.candidate.device.name.clone(),
            share: pick.share.clone(),
        };
        let chosen = chosen(wanted, &own);
        let listed = chosen.iter().filter(|alternative| alternative.name != alternative.request);
        Grant {
            key: wanted.key.clone(),
            allocation,
            holdings: taken.map(holding).collect(),
            score: listed.map(|alternative| (MAX_ALTERNATIVES - alternative.rank.min(MAX_ALTERNATIVES)) as i64).sum(),
        }
    }

    pub(crate) fn promise(&self, claim: Option<Key>) -> Promise {
        Promise { claim, holdings: self.holdings.clone() }
    }
}

/// For each request, the alternative that was taken.
fn chosen<'a>(wanted: &'a Wanted, picks: &[&Pick<'a>]) -> Vec<&'a Alternative> {
    let of = |alternatives: &'a Vec<Alternative>| {
        alternatives.iter().find(|one| picks.iter().any(|pick| pick.alternative.name == one.name))
    };
    wanted.requests.iter().filter_map(of).collect()
}

fn result(pick: &Pick<'_>, seed: &str) -> Value {
    let (device, asked, pool) = (pick.candidate.device, &pick.alternative.asked, &pick.candidate.pool.id);
    let mut result = json!({
        "request": pick.alternative.name, "driver": pool.driver, "pool": pool.pool, "device": device.name,
    });
    if asked.admin_access {
        result.set("adminAccess", true);
    }
    if !asked.tolerations.is_empty() {
        result.set("tolerations", asked.tolerations.iter().map(toleration).collect::<Vec<Value>>());
    }
    for (field, conditions) in [
        ("bindingConditions", &device.binding_conditions),
        ("bindingFailureConditions", &device.binding_failure_conditions),
    ] {
        if !conditions.is_empty() {
            result.set(field, json!(conditions));
        }
    }
    if let Some(share) = &pick.share {
        result.set("shareID", share_id(seed));
        if !share.is_empty() {
            let amounts = share.iter().map(|(name, amount)| (name.as_str(), Value::from(amount.to_string())));
            result.set("consumedCapacity", amounts.collect::<Value>());
        }
    }
    result
}

fn toleration(toleration: &Toleration) -> Value {
    let Toleration { key, operator, value, effect, toleration_seconds } = toleration;
    let mut json = json!({});
    for (field, text) in [("key", key), ("operator", operator), ("value", value), ("effect", effect)] {
        if !text.is_empty() {
            json.set(field, text.as_str());
        }
    }
    if let Some(seconds) = toleration_seconds {
        json.set("tolerationSeconds", *seconds);
    }
    json
}

/// Tells shares of a device apart: no two claims have the same identity.
fn share_id(seed: &str) -> String {
    let (high, low) = (salt(seed), salt(&format!("share {seed}")));
    format!(
        "{:08x}-{:04x}-4{:03x}-8{:03x}-{:012x}",
        high >> 32,
        (high >> 16) & 0xffff,
        high & 0xfff,
        low >> 52,
        low & 0xffff_ffff_ffff
    )
}

/// First what classes say, each once, then what the claim does.
fn config(wanted: &Wanted, picks: &[&Pick<'_>]) -> Vec<Value> {
    let chosen = chosen(wanted, picks);
    let mut configs = Vec::new();
    let entry = |source: &str, requests: &[&str], config: &DeviceConfig| {
        let mut entry = json!({ "source": source, "opaque": config.opaque });
        if !requests.is_empty() {
            entry.set("requests", json!(requests));
        }
        entry
    };
    for (at, alternative) in chosen.iter().enumerate() {
        let class = &alternative.class;
        let is_same = |other: &&&Alternative| other.class.metadata.name == class.metadata.name;
        if chosen[..at].iter().any(|other| is_same(&other)) {
            continue;
        }
        let names: Vec<&str> = chosen.iter().filter(is_same).map(|other| other.name.as_str()).collect();
        configs.extend(class.spec.config.iter().map(|config| entry("FromClass", &names, config)));
    }
    for config in &wanted.spec.config {
        let names: Vec<&str> = config.requests.iter().map(String::as_str).collect();
        if names.is_empty() || chosen.iter().any(|alternative| alternative.is_meant_by(&config.requests)) {
            configs.push(entry("FromClaim", &names, config));
        }
    }
    configs
}

/// Where all the devices can be used; none if that is everywhere.
fn node_selector(picks: &[&Pick<'_>], node: &Node) -> Option<Value> {
    let mut term = json!({});
    for pick in picks {
        let (device, spec) = (pick.candidate.device, &pick.candidate.offer.slice.spec);
        let reach = if spec.per_device_node_selection { &device.reach } else { &spec.reach };
        if !reach.node_name.is_empty() || device.binds_to_node {
            let name = json!([{ "key": "metadata.name", "operator": "In", "values": [node.metadata.name] }]);
            return Some(json!({ "nodeSelectorTerms": [{ "matchFields": name }] }));
        }
        let selector = reach.node_selector.as_ref().filter(|_| !reach.all_nodes);
        let terms = selector.into_iter().flat_map(|selector| selector.json.items("nodeSelectorTerms"));
        for of_device in terms {
            for field in ["matchFields", "matchExpressions"] {
                for requirement in of_device.items(field) {
                    if !term.items(field).contains(requirement) {
                        term.push(field, requirement.clone());
                    }
                }
            }
        }
    }
    let is_empty = term.as_object().is_none_or(|term| term.is_empty());
    (!is_empty).then(|| json!({ "nodeSelectorTerms": [term] }))
}
