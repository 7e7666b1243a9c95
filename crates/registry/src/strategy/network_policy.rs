//! NetworkPolicies.

use crate::strategy::place::Place;
use crate::strategy::{PLAIN, Strategy, address, label_selector};
use object::field::{Error, Errors};
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

/// The blocks of addresses on the other side, wherever they stand.
fn blocks<'a>(spec: &Place<'a>) -> Vec<Place<'a>> {
    let rules = DIRECTIONS.iter().flat_map(|(direction, peers)| spec.list(direction).map(|rule| rule.list(peers)));
    rules.flatten().map(|peer| peer.child("ipBlock")).filter(|block| !block.is_null()).collect()
}

fn validate(new: &Value, old: Option<&Value>, errors: &mut Errors) {
    let spec = Place::root(new).child("spec");
    label_selector::validate(spec.at("podSelector"), &spec.child("podSelector").path, errors);
    // What was accepted once is accepted again.
    let kept: Vec<&str> = old.map_or(Vec::new(), |old| {
        let blocks = blocks(&Place::root(old).child("spec")).into_iter();
        let texts = blocks.flat_map(|block| block.list("except").chain([block.child("cidr")]).collect::<Vec<_>>());
        texts.map(|text| text.string()).collect()
    });
    for (direction, peers) in DIRECTIONS {
        for rule in spec.list(direction) {
            rule.list("ports").for_each(|port| validate_port(&port, errors));
            rule.list(peers).for_each(|peer| validate_peer(&peer, &kept, errors));
        }
    }
    if spec.items("policyTypes").len() > 2 {
        errors.push(spec.child("policyTypes").invalid("may not specify more than two policyTypes"));
    } else {
        spec.list("policyTypes").for_each(|kind| kind.one_of(&["Ingress", "Egress"], errors));
    }
}

fn validate_port(place: &Place, errors: &mut Errors) {
    place.child("protocol").optional_one_of(&["TCP", "UDP", "SCTP"], errors);
    let (port, end) = (place.child("port"), place.child("endPort"));
    if !port.is_null() {
        port.port_or_name(errors);
    }
    if end.is_null() {
        return;
    }
    match port.as_i64() {
        None if port.is_null() => errors.push(end.invalid("may not be specified when `port` is not specified")),
        None => errors.push(end.invalid("may not be specified when `port` is non-numeric")),
        Some(number) => {
            if end.as_i64() < Some(number) {
                errors.push(Error::invalid(&end.path, number, "must be greater than or equal to `port`"));
            }
            end.port(errors);
        }
    }
}

fn validate_peer(peer: &Place, kept: &[&str], errors: &mut Errors) {
    let selectors = ["podSelector", "namespaceSelector"].map(|field| peer.child(field));
    selectors.iter().for_each(|selector| label_selector::validate(selector.value, &selector.path, errors));
    let selects = selectors.iter().any(|selector| !selector.is_null());
    let block = peer.child("ipBlock");
    match (selects, !block.is_null()) {
        (false, false) => errors.push(Error::required(&peer.path, "must specify a peer")),
        (_, false) => {}
        (selects, true) => {
            validate_block(&block, kept, errors);
            if selects {
                errors.push(Error::forbidden(&peer.path, "may not specify both ipBlock and another peer"));
            }
        }
    }
}

fn validate_block(block: &Place, kept: &[&str], errors: &mut Errors) {
    let whole = block.child("cidr");
    if !whole.required("", errors) {
        return;
    }
    let mut check = |subnet: &Place| {
        if !kept.contains(&subnet.string()) {
            subnet.follows(address::subnet, errors);
        }
    };
    check(&whole);
    block.list("except").for_each(|part| check(&part));
    let Some((address, length)) = address::parse_subnet(whole.string()) else { return };
    for part in block.list("except") {
        if let Some((part_address, part_length)) = address::parse_subnet(part.string()) {
            let same_family = address.is_ipv4() == part_address.is_ipv4();
            let inside = address::network(part_address, length) == address::network(address, length);
            if !(same_family && inside && part_length > length) {
                errors.push(part.invalid("must be a strict subset of `cidr`"));
            }
        }
    }
}

fn warn(new: &Value, _old: Option<&Value>) -> Vec<String> {
    let blocks = blocks(&Place::root(new).child("spec")).into_iter();
    let subnets =
        blocks.flat_map(|block| [block.child("cidr")].into_iter().chain(block.list("except")).collect::<Vec<_>>());
    subnets.flat_map(|subnet| address::subnet_warnings(&subnet.path, subnet.string())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::strategy::place::testing::{each_mistake_has_its_message, filled};

    fn policy() -> Value {
        json!({ "spec": { "podSelector": {}, "ingress": [{
            "from": [{ "ipBlock": { "cidr": "10.0.0.0/8", "except": ["10.1.0.0/16"] } }], "ports": [{ "port": 80 }],
        }] } })
    }

    #[test]
    fn directions_and_protocols_have_defaults() {
        let filled = filled(&STRATEGY, "networking.v1.NetworkPolicy", &policy());
        assert_eq!(filled["spec"]["policyTypes"], json!(["Ingress"]));
        assert_eq!(filled["spec"]["ingress"][0]["ports"][0]["protocol"], "TCP");
    }

    #[test]
    fn each_mistake_is_reported() {
        each_mistake_has_its_message(
            &STRATEGY,
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
