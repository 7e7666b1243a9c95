//! The rules of a pod's status, which its node and the scheduler write.

use super::annotations;
use super::container_state;
use crate::strategy::place::Place;
use object::field::Errors;
use object::{Value, View, name};
use std::net::IpAddr;

/// Conditions whose names need no domain.
const SYSTEM_CONDITIONS: [&str; 3] = ["PodScheduled", "Ready", "Initialized"];

pub(super) fn validate(new: &Value, old: &Value, errors: &mut Errors) {
    annotations::validate_update(new, old, errors);
    let object = Place::object(new);
    let (status, before) = (object.field("status"), old.at("status"));
    for condition in status.field("conditions").items() {
        if condition.field("observedGeneration").int() < 0 {
            condition.field("observedGeneration").invalid(errors, "must be a non-negative integer");
        }
        let kind = condition.field("type").text();
        if !SYSTEM_CONDITIONS.contains(&kind) {
            for message in name::qualified_name(kind) {
                condition.field("Type").invalid_value(errors, kind, message);
            }
        }
    }
    if new.at("spec").text("nodeName") != old.at("spec").text("nodeName") {
        status.field("nodeName").forbidden(errors, "may not be changed directly");
    }
    let nominated = status.field("nominatedNodeName");
    if nominated.text() != before.text("nominatedNodeName") && !nominated.is_empty() {
        nominated.follows(errors, name::dns_subdomain);
        if !old.at("spec").text("nodeName").is_empty() {
            nominated.forbidden(errors, "may not be set on pods that are already bound to a node");
        }
    }
    if status.field("observedGeneration").int() < 0 {
        status.field("observedGeneration").invalid(errors, "must be a non-negative integer");
    }
    status.field("qosClass").unchanged(errors, before.at("qosClass"));
    container_state::validate(&status, before, old.at("spec"), errors);
    addresses(&status.field("podIPs"), before.items("podIPs"), errors);
    let hosts = status.field("hostIPs");
    if let Some(first) = hosts.items().next()
        && first.field("ip").text() != status.field("hostIP").text()
    {
        first.field("ip").invalid(errors, "must be equal to `hostIP`");
    }
    addresses(&hosts, before.items("hostIPs"), errors);
}

/// At most one address of each family.
fn addresses(list: &Place, before: &[Value], errors: &mut Errors) {
    let (mut four, mut six) = (0, 0);
    for item in list.items() {
        let text = item.field("ip").text();
        let kept = before.iter().any(|old| old.text("ip") == text);
        match text.parse::<IpAddr>() {
            Ok(IpAddr::V4(_)) => four += 1,
            Ok(IpAddr::V6(_)) => six += 1,
            Err(_) if kept => {}
            Err(_) => {
                let detail = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)";
                item.invalid_value(errors, text, detail);
            }
        }
    }
    if four > 1 || six > 1 {
        list.invalid(errors, "may specify no more than one IP for each IP family");
    }
}
