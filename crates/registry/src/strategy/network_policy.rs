//! NetworkPolicies.

use crate::strategy::place::Place;
use crate::strategy::{PLAIN, Strategy, address, label_selector};
use object::field::Errors;
use object::{Edit, Value, View, json};

pub const STRATEGY: Strategy =
    Strategy { default: Some(default), validate: Some(validate), warn: Some(warn), generation: true, ..PLAIN };

/// The two directions, and where each names the other side.
const DIRECTIONS: [(&str, &str); 2] = [("ingress", "from"), ("egress", "to")];

fn default(policy: &mut Value) {
    let spec = policy.object_or_new("spec");
    for (direction, _) in DIRECTIONS {
        let ports = spec.each(direction).flat_map(|rule| rule.each("ports"));
        ports.for_each(|port| port.set_default("protocol", "TCP"));
    }
    if spec.items("policyTypes").is_empty() {
        let types = if spec.items("egress").is_empty() { json!(["Ingress"]) } else { json!(["Ingress", "Egress"]) };
        spec.set("policyTypes", types);
    }
}

/// The subnets on the other side, wherever they stand: of each block the whole, then what is left out of it.
fn each_subnet<'v>(spec: &Place<'v, '_>, mut visit: impl FnMut(&Place<'v, '_>)) {
    for (direction, peers) in DIRECTIONS {
        for rule in spec.field(direction).items() {
            for peer in rule.field(peers).items().filter(|peer| peer.field("ipBlock").is_set()) {
                let block = peer.field("ipBlock");
                visit(&block.field("cidr"));
                block.field("except").items().for_each(|part| visit(&part));
            }
        }
    }
}

fn validate(new: &Value, old: Option<&Value>, errors: &mut Errors) {
    let spec = Place::field_of(new, "spec");
    label_selector::validate(&spec.field("podSelector"), errors);
    // What was accepted once is accepted again.
    let mut kept = Vec::new();
    if let Some(old) = old {
        each_subnet(&Place::field_of(old, "spec"), |subnet| kept.push(subnet.text()));
    }
    for (direction, peers) in DIRECTIONS {
        for rule in spec.field(direction).items() {
            rule.field("ports").items().for_each(|port| validate_port(&port, errors));
            rule.field(peers).items().for_each(|peer| validate_peer(&peer, &kept, errors));
        }
    }
    if spec.field("policyTypes").values().len() > 2 {
        spec.field("policyTypes").invalid(errors, "may not specify more than two policyTypes");
    } else {
        spec.field("policyTypes").items().for_each(|kind| kind.one_of(errors, &["Ingress", "Egress"]));
    }
}

fn validate_port(place: &Place, errors: &mut Errors) {
    place.field("protocol").one_of_if_set(errors, &["TCP", "UDP", "SCTP"]);
    let (port, end) = (place.field("port"), place.field("endPort"));
    if port.is_set() {
        port.port_or_name(errors);
    }
    if !end.is_set() {
        return;
    }
    match port.number() {
        None if !port.is_set() => end.invalid(errors, "may not be specified when `port` is not specified"),
        None => end.invalid(errors, "may not be specified when `port` is non-numeric"),
        Some(number) => {
            if end.number() < Some(number) {
                end.invalid_value(errors, number, "must be greater than or equal to `port`");
            }
            end.port(errors);
        }
    }
}

fn validate_peer(peer: &Place, kept: &[&str], errors: &mut Errors) {
    let selectors = ["podSelector", "namespaceSelector"].map(|field| peer.field(field));
    selectors.iter().for_each(|selector| label_selector::validate(selector, errors));
    let selects = selectors.iter().any(|selector| selector.is_set());
    let block = peer.field("ipBlock");
    match (selects, block.is_set()) {
        (false, false) => peer.required(errors, "must specify a peer"),
        (_, false) => {}
        (selects, true) => {
            validate_block(&block, kept, errors);
            if selects {
                peer.forbidden(errors, "may not specify both ipBlock and another peer");
            }
        }
    }
}

fn validate_block(block: &Place, kept: &[&str], errors: &mut Errors) {
    let whole = block.field("cidr");
    if !whole.require(errors) {
        return;
    }
    let mut check = |subnet: &Place| {
        if !kept.contains(&subnet.text()) {
            subnet.follows(errors, address::subnet);
        }
    };
    check(&whole);
    block.field("except").items().for_each(|part| check(&part));
    let Some((address, length)) = address::parse_subnet(whole.text()) else { return };
    for part in block.field("except").items() {
        if let Some((part_address, part_length)) = address::parse_subnet(part.text()) {
            let same_family = address.is_ipv4() == part_address.is_ipv4();
            let inside = address::network(part_address, length) == address::network(address, length);
            if !(same_family && inside && part_length > length) {
                part.invalid(errors, "must be a strict subset of `cidr`");
            }
        }
    }
}

fn warn(new: &Value, _old: Option<&Value>) -> Vec<String> {
    let mut warnings = Vec::new();
    each_subnet(&Place::field_of(new, "spec"), |subnet| warnings.extend(address::subnet_warnings(subnet)));
    warnings
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::strategy::check::{each_mistake_has_its_message, filled};

    fn policy() -> Value {
        json!({ "spec": { "podSelector": {}, "ingress": [{
            "from": [{ "ipBlock": { "cidr": "10.0.0.0/8", "except": ["10.1.0.0/16"] } }], "ports": [{ "port": 80 }],
        }] } })
    }

    #[test]
    fn directions_and_protocols_have_defaults() {
        let filled = filled("networking.v1.NetworkPolicy", &policy());
        assert_eq!(filled["spec"]["policyTypes"], json!(["Ingress"]));
        assert_eq!(filled["spec"]["ingress"][0]["ports"][0]["protocol"], "TCP");
    }

    #[test]
    fn each_mistake_is_reported() {
        each_mistake_has_its_message(
            "networking.v1.NetworkPolicy",
            &policy(),
            &[
                (
                    "spec.ingress.0.from.0.ipBlock.except.0",
                    json!("11.0.0.0/16"),
                    &[
                        "spec.ingress[0].from[0].ipBlock.except[0]: Invalid value: \"11.0.0.0/16\": must be a strict subset of `cidr`",
                    ],
                ),
                ("spec.ingress.0.from.0", json!({}), &["spec.ingress[0].from[0]: Required value: must specify a peer"]),
                (
                    "spec.ingress.0.from.0.podSelector",
                    json!({}),
                    &["spec.ingress[0].from[0]: Forbidden: may not specify both ipBlock and another peer"],
                ),
                (
                    "spec.ingress.0.ports.0.endPort",
                    json!(79),
                    &["spec.ingress[0].ports[0].endPort: Invalid value: 80: must be greater than or equal to `port`"],
                ),
                (
                    "spec.policyTypes",
                    json!(["Both"]),
                    &["spec.policyTypes[0]: Unsupported value: \"Both\": supported values: \"Ingress\", \"Egress\""],
                ),
            ],
        );
    }
}
