//! Node IPAM: every node has a range of addresses of its own, from which its pods get theirs.
//!
//! What is taken is what nodes say, so nothing has to be remembered; but it has to be known, since nobody can take back
//! what two nodes were given. All nodes without a range are looked at together: one look settles any number of them, and
//! none can be given what another gets at the same time.

use crate::Settings;
use crate::settings::Cidr;
use kinds::{Key, Node, Object};
use object::json;
use parking_lot::Mutex;
use runtime::{Controller, Note, Plan};
use std::collections::BTreeSet;
use std::sync::Arc;

/// How large the range of a node is: 254 addresses for pods.
const BITS: u32 = 24;

pub(crate) fn controller(settings: &Settings) -> Controller {
    let range = settings.cluster_cidr;
    let told = Mutex::new(BTreeSet::new());
    let look = || Key::cluster("nodes");
    Controller::new("node-ipam-controller")
        .reports_as("cidrAllocator")
        .account("node-controller")
        .watches_changes::<Node>(move |change, _| match &change.new {
            Some(node) if !is_waiting(node) => vec![],
            _ => vec![Key::cluster("nodes")],
        })
        .begins_with(look())
        .begins_up_to_date_on::<Node>()
        .workers(1)
        .plans(move |caches, _| plan(&caches.of::<Node>().all(), range, &mut told.lock()))
}

fn is_waiting(node: &Node) -> bool {
    node.spec.pod_cidr.is_empty() && node.spec.pod_cidrs.is_empty() && !node.metadata.is_being_deleted()
}

/// Gives every node that waits for one a range; `told` are those that were told that there is none left.
fn plan(nodes: &[Arc<Object<Node>>], range: Cidr, told: &mut BTreeSet<String>) -> Plan {
    let mut plan = Plan::default();
    let waiting: Vec<_> = nodes.iter().filter(|node| is_waiting(node)).collect();
    let taken: BTreeSet<u32> = nodes
        .iter()
        .flat_map(|node| node.spec.pod_cidrs.iter().chain([&node.spec.pod_cidr]))
        .filter_map(|text| Cidr::parse(text))
        .flat_map(|other| range.touched(BITS, other))
        .collect();
    told.retain(|uid| waiting.iter().any(|node| node.metadata.uid == *uid));
    let mut free = (0..range.parts(BITS)).filter(|number| !taken.contains(number));
    for node in waiting {
        let status = |status: &str| format!("Node {} status is now: {status}", node.metadata.name);
        match free.next() {
            Some(number) => {
                let cidr = range.part(BITS, number).to_string();
                plan.patch(node, json!({ "spec": { "podCIDR": cidr, "podCIDRs": [cidr] } })).on_failure(Note::normal(
                    node,
                    "CIDRAssignmentFailed",
                    status("CIDRAssignmentFailed"),
                ));
            }
            None if told.insert(node.metadata.uid.clone()) => {
                plan.event(Note::normal(node, "CIDRNotAvailable", status("CIDRNotAvailable")));
            }
            None => {}
        }
    }
    plan
}

#[cfg(test)]
mod tests {
    use super::*;
    use runtime::Write;

    fn node(name: &str, cidr: &str) -> Arc<Object<Node>> {
        let spec = if cidr.is_empty() { json!({}) } else { json!({ "podCIDR": cidr, "podCIDRs": [cidr] }) };
        Arc::new(Object::of(&json!({ "metadata": { "name": name, "uid": name }, "spec": spec })))
    }

    fn given(plan: &Plan) -> Vec<String> {
        let cidr = |write: &Write| match write {
            Write::Patch { target, patch, .. } => format!("{} {}", target.key.name, patch["spec"]["podCIDR"]),
            other => panic!("{other:?}"),
        };
        plan.writes.iter().map(cidr).collect()
    }

    #[test]
    fn nodes_keep_what_they_have_and_others_get_what_is_free() {
        let nodes =
            [node("a", "10.244.1.0/24"), node("b", ""), node("c", "192.168.0.0/24"), node("d", ""), node("e", "")];
        let plan = plan(&nodes, Cidr::PODS, &mut BTreeSet::new());
        assert_eq!(given(&plan), [r#"b "10.244.0.0/24""#, r#"d "10.244.2.0/24""#, r#"e "10.244.3.0/24""#]);
    }

    #[test]
    fn when_nothing_is_left_that_is_said_once() {
        let small = Cidr::parse("10.1.0.0/23").unwrap();
        let mut told = BTreeSet::new();
        let mut nodes = vec![node("a", "10.1.0.0/24"), node("b", "10.1.1.0/24"), node("c", "")];
        let first = plan(&nodes, small, &mut told);
        assert_eq!(first.events[0].message, "Node c status is now: CIDRNotAvailable");
        assert!(plan(&nodes, small, &mut told).is_empty());
        nodes.remove(0);
        assert_eq!(given(&plan(&nodes, small, &mut told)), [r#"c "10.1.0.0/24""#]);
    }
}
