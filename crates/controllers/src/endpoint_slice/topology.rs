//! Hints by topology: each zone is given as many endpoints as it has processors, so that traffic can stay in its zone
//! and none of them gets much more of it than others.
//!
//! What follows from the nodes and endpoints of the moment is all there is to it: nothing is remembered. Where it
//! cannot be done without overloading somebody, nobody gets a hint, and an event says why.

use super::ZONE;
use kinds::{Endpoint, EndpointSlice, Node, Object, Service};
use object::json;
use runtime::{Note, Plan};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The older one counts where both are there.
const ANNOTATIONS: [&str; 2] = ["service.kubernetes.io/topology-aware-hints", "service.kubernetes.io/topology-mode"];
/// Nodes with one of these labels are not there for the traffic of services.
const EXCLUDED: [&str; 2] = ["node-role.kubernetes.io/control-plane", "node-role.kubernetes.io/master"];
/// How much more than its share an endpoint may get: a fifth.
const OVERLOAD: f64 = 0.2;

const NODES: &str = "Insufficient Node information: allocatable CPU or zone not specified on one or more nodes";
const NO_ZONE: &str = "One or more endpoints do not have a zone specified";
const TOO_FEW: &str = "Insufficient number of endpoints";
const OVERLOADED: &str =
    "Unable to allocate minimum required endpoints to each zone without exceeding overload threshold";

/// What part of the processors of all nodes each zone has.
pub(super) type Shares = BTreeMap<String, f64>;

pub(super) fn is_wanted(service: &Service) -> bool {
    let said = ANNOTATIONS.iter().find_map(|name| service.metadata.annotations.get(name));
    said.is_some_and(|mode| mode == "Auto" || mode == "auto")
}

/// What a node adds to its zone: thousandths of a processor, if it counts.
pub(super) fn counted(node: &Node) -> Option<(String, i64)> {
    let is_excluded = EXCLUDED.iter().any(|label| node.metadata.labels.contains_key(label));
    let processors = || node.status.allocatable.get("cpu").map_or(0, |cpu| cpu.millis());
    (node.is_ready() && !is_excluded).then(|| (node.metadata.label(ZONE).to_owned(), processors()))
}

/// None where some node does not say what is needed, or there are not several zones.
pub(super) fn shares(nodes: &[Arc<Object<Node>>]) -> Option<Shares> {
    let mut processors: BTreeMap<String, i64> = BTreeMap::new();
    for (zone, millis) in nodes.iter().filter_map(|node| counted(node)) {
        if zone.is_empty() || millis == 0 {
            return None;
        }
        *processors.entry(zone).or_default() += millis;
    }
    let total: i64 = processors.values().sum();
    let share = |(zone, millis): (String, i64)| (zone, millis as f64 / total as f64);
    (processors.len() > 1).then(|| processors.into_iter().map(share).collect())
}

/// Gives the endpoints of one type of address their hints, and tells what is new about that.
pub(super) fn hint(
    plan: &mut Plan,
    service: &Object<Service>,
    (address_type, shares): (&str, Option<&Shares>),
    endpoints: Vec<&mut Endpoint>,
    before: &[Arc<Object<EndpointSlice>>],
) {
    let mut ready: Vec<_> = endpoints.into_iter().filter(|endpoint| endpoint.conditions.ready == Some(true)).collect();
    let zones: Vec<&str> = ready.iter().map(|endpoint| endpoint.zone.as_deref().unwrap_or_default()).collect();
    let had_hints = before.iter().flat_map(|slice| &slice.endpoints).any(|endpoint| endpoint.hints.is_some());
    match assign(shares, &zones) {
        Ok(hints) => {
            for (endpoint, zone) in ready.iter_mut().zip(hints) {
                endpoint.hints = Some(json!({ "forZones": [{ "name": zone }] }));
            }
            if !had_hints {
                let message = format!("Topology Aware Hints has been enabled, addressType: {address_type}");
                plan.event(Note::normal(service, "TopologyAwareHintsEnabled", message));
            }
        }
        Err(why) => {
            let message = format!("{why}, addressType: {address_type}");
            plan.event(Note::warning(service, "TopologyAwareHintsDisabled", message));
        }
    }
}

/// The zone that each endpoint is to be used from, given the zones that they are in; or why that is not possible.
fn assign(shares: Option<&Shares>, zones: &[&str]) -> Result<Vec<String>, String> {
    let shares = shares.ok_or(NODES)?;
    let count = zones.len();
    let failed = |why: &str| Err(format!("{why} ({count} endpoints, {} zones)", shares.len()));
    if shares.len() > count {
        return failed(TOO_FEW);
    }
    let least = |share: &f64| (share * count as f64 / (1.0 + OVERLOAD)).ceil();
    if shares.values().map(least).sum::<f64>() > count as f64 {
        return failed(OVERLOADED);
    }
    if zones.contains(&"") {
        return Err(NO_ZONE.to_owned());
    }
    let present = |zone: &str| zones.iter().filter(|other| **other == zone).count() as f64;
    let desired = |share: &f64| (share * count as f64).max(least(share));
    let mut excess: BTreeMap<&String, f64> =
        shares.iter().map(|(zone, share)| (zone, present(zone) - desired(share))).collect();
    let mut hints: Vec<String> = zones.iter().map(|zone| (*zone).to_owned()).collect();
    // Those that are used from their own zone, and may be given to another.
    let mut own: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    zones.iter().enumerate().rev().for_each(|(at, zone)| own.entry(zone).or_default().push(at));
    loop {
        // Of equals the first, so that the outcome depends on nothing else.
        let by_excess = |a: &(&String, f64), b: &(&String, f64)| a.1.total_cmp(&b.1).then(b.0.cmp(a.0));
        let pairs = || excess.iter().map(|(zone, excess)| (*zone, *excess));
        let (giver, taker) =
            (pairs().max_by(by_excess), pairs().map(|(zone, excess)| (zone, -excess)).max_by(by_excess));
        let (Some((giver, given)), Some((taker, wanted))) = (giver, taker) else { break };
        if given < 0.5 || wanted < 0.5 || given < 1.0 && wanted < 1.0 {
            break;
        }
        let Some(at) = own.get_mut(giver.as_str()).and_then(Vec::pop) else { break };
        hints[at].clone_from(taker);
        excess.entry(giver).and_modify(|excess| *excess -= 1.0);
        excess.entry(taker).and_modify(|excess| *excess += 1.0);
    }
    Ok(hints)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(zone: &str, cpu: &str, ready: &str, labels: &[&str]) -> Arc<Object<Node>> {
        let mut all = json!({ ZONE: zone });
        labels.iter().for_each(|label| all[*label] = json!(""));
        Arc::new(Object::of(&json!({
            "metadata": { "labels": all },
            "status": { "allocatable": { "cpu": cpu }, "conditions": [{ "type": "Ready", "status": ready }] },
        })))
    }

    #[test]
    fn zones_have_shares_by_their_processors() {
        let usual =
            || vec![node("a", "3", "True", &[]), node("b", "500m", "True", &[]), node("b", "500m", "True", &[])];
        let with = |more: Arc<Object<Node>>| shares(&[usual(), vec![more]].concat());
        let expected = Some(BTreeMap::from([("a".to_owned(), 0.75), ("b".to_owned(), 0.25)]));
        assert_eq!(shares(&usual()), expected);
        assert_eq!(with(node("c", "9", "False", &[])), expected, "nodes that are not ready do not count");
        assert_eq!(with(node("", "9", "True", &[EXCLUDED[0]])), expected);
        assert_eq!(with(node("", "9", "True", &[])), None, "one without a zone");
        assert_eq!(with(node("a", "0", "True", &[])), None, "one without processors");
        assert_eq!(shares(&usual()[..1]), None, "one zone only");
    }

    #[test]
    fn endpoints_are_shared_out_by_zone() {
        let shares = |shares: &[(&str, f64)]| shares.iter().map(|(zone, share)| ((*zone).to_owned(), *share)).collect();
        let even: Shares = shares(&[("a", 0.5), ("b", 0.5)]);
        let three: Shares = shares(&[("a", 0.34), ("b", 0.33), ("c", 0.33)]);
        let uneven: Shares = shares(&[("a", 0.75), ("b", 0.25)]);
        for (shares, zones, expected) in [
            (Some(&even), "ab", Ok("ab")),
            (Some(&even), "aabb", Ok("aabb")),
            (Some(&even), "aaaa", Ok("bbaa")),
            (Some(&even), "aaaaab", Ok("bbaaab")),
            (Some(&uneven), "aabb", Ok("aaab")),
            (Some(&three), "aaaaaa", Ok("bcbcaa")),
            (Some(&even), "a", Err(format!("{TOO_FEW} (1 endpoints, 2 zones)"))),
            (Some(&even), "aaaab", Err(format!("{OVERLOADED} (5 endpoints, 2 zones)"))),
            (Some(&even), "abb ", Err(NO_ZONE.to_owned())),
            (None, "ab", Err(NODES.to_owned())),
        ] {
            let names: Vec<String> = zones.chars().map(|zone| zone.to_string().trim().to_owned()).collect();
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            let found = assign(shares, &names).map(|hints| hints.concat());
            assert_eq!(found, expected.map(str::to_owned), "{zones}");
        }
    }
}
