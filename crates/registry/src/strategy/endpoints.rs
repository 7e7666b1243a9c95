//! Endpoints and EndpointSlices: where a service's traffic goes.

use crate::strategy::place::{Place, same, set_if_empty};
use crate::strategy::service::PROTOCOLS;
use crate::strategy::{PLAIN, Strategy, address};
use object::field::{Error, Errors};
use object::{Edit, Value, View, name};

pub const ENDPOINTS: Strategy = Strategy {
    default: Some(default_endpoints),
    validate: Some(validate_endpoints),
    warn: Some(warn_of_endpoints),
    create_on_update: true,
    ..PLAIN
};
pub const ENDPOINT_SLICE: Strategy = Strategy {
    default: Some(default_slice),
    prepare: Some(prepare_slice),
    validate: Some(validate_slice),
    warn: Some(warn_of_slice),
    generation: true,
    ..PLAIN
};

const MAX_ENDPOINTS: usize = 1000;
const MAX_ADDRESSES: usize = 100;
const MAX_PORTS: usize = 20000;
const MAX_HINTS: usize = 8;

fn default_endpoints(endpoints: &mut Value) {
    for subset in endpoints.each("subsets") {
        subset.each("ports").for_each(|port| set_if_empty(port, "protocol", "TCP"));
    }
}

fn validate_endpoints(new: &Value, old: Option<&Value>, errors: &mut Errors) {
    // What was accepted once is accepted again.
    if old.is_some_and(|old| same(old.at("subsets"), new.at("subsets"))) {
        return;
    }
    for subset in Place::root(new).list("subsets") {
        if subset.items("addresses").is_empty() && subset.items("notReadyAddresses").is_empty() {
            errors.push(Error::required(&subset.path, "must specify `addresses` or `notReadyAddresses`"));
        }
        for address in subset.list("addresses").chain(subset.list("notReadyAddresses")) {
            address.child("ip").follows(address::address, errors);
            address.child("hostname").optional_follows(name::dns_label, errors);
            let node = address.child("nodeName");
            if !node.is_null() {
                node.follows(name::dns_subdomain, errors);
            }
            address::reachable(&address.child("ip"), errors);
        }
        let several = subset.items("ports").len() > 1;
        for port in subset.list("ports") {
            let name = port.child("name");
            if several || !name.is_empty() {
                name.required_follows(name::dns_label, errors);
            }
            port.child("port").port(errors);
            port.child("protocol").required_one_of(&PROTOCOLS, errors);
            validate_application_protocol(&port, errors);
        }
    }
}

fn validate_application_protocol(port: &Place, errors: &mut Errors) {
    let protocol = port.child("appProtocol");
    if !protocol.is_null() {
        protocol.follows(name::qualified_name, errors);
    }
}

/// What the system's own controllers write needs no second look.
fn is_managed(object: &Value, label: &str, managers: &[&str]) -> bool {
    managers.contains(&object.path(&["metadata", "labels"]).text(label))
}

fn warn_of_endpoints(new: &Value, _old: Option<&Value>) -> Vec<String> {
    let mut warnings = Vec::new();
    if is_managed(new, "endpoints.kubernetes.io/managed-by", &["endpoint-controller"]) {
        return warnings;
    }
    let subsets = Place::root(new).list("subsets");
    let addresses = subsets.flat_map(|subset| subset.list("addresses").chain(subset.list("notReadyAddresses")));
    let addresses = addresses.map(|address| address.child("ip"));
    warnings.extend(addresses.filter_map(|ip| address::warning(&ip.path, ip.string())));
    warnings
}

fn default_slice(slice: &mut Value) {
    for port in slice.each("ports") {
        port.set_default("name", "");
        port.set_default("protocol", "TCP");
    }
}

/// The topology of old versions cannot be written any more.
fn prepare_slice(new: &mut Value, old: Option<&Value>) {
    if !old.is_some_and(|old| same(old.at("endpoints"), new.at("endpoints"))) {
        new.each("endpoints").for_each(|endpoint| drop(endpoint.remove("deprecatedTopology")));
    }
}

fn validate_slice(new: &Value, old: Option<&Value>, errors: &mut Errors) {
    let slice = Place::root(new);
    slice.child("addressType").required_one_of(&["FQDN", "IPv4", "IPv6"], errors);
    validate_slice_ports(&slice, errors);
    if !old.is_some_and(|old| same(old.at("endpoints"), new.at("endpoints"))) {
        slice.child("endpoints").at_most(MAX_ENDPOINTS, errors);
        slice.list("endpoints").for_each(|endpoint| validate_endpoint(&endpoint, new.text("addressType"), errors));
    }
    if let Some(old) = old {
        slice.child("addressType").unchanged(old.at("addressType"), errors);
    }
}

fn validate_slice_ports(slice: &Place, errors: &mut Errors) {
    slice.child("ports").at_most(MAX_PORTS, errors);
    let mut seen = Vec::new();
    for port in slice.list("ports") {
        let name = port.child("name");
        name.optional_follows(name::dns_label, errors);
        // Here, unlike elsewhere, two ports without a name have the same one.
        if seen.contains(&name.string()) {
            errors.push(Error::duplicate(&name.path, name.string()));
        }
        seen.push(name.string());
        port.child("protocol").required_one_of(&PROTOCOLS, errors);
        validate_application_protocol(&port, errors);
    }
}

fn validate_endpoint(endpoint: &Place, address_type: &str, errors: &mut Errors) {
    let addresses = endpoint.child("addresses");
    addresses.required("must contain at least 1 address", errors);
    addresses.at_most(MAX_ADDRESSES, errors);
    for item in endpoint.list("addresses") {
        let before = errors.len();
        match address_type {
            "IPv4" => item.follows(address::address, errors),
            "IPv6" => item.follows(address::canonical_address, errors),
            _ => {
                if address_type == "FQDN" {
                    validate_domain(&item, errors);
                }
                continue;
            }
        }
        if errors.len() == before {
            if item.string().contains(':') != (address_type == "IPv6") {
                let detail = format!("must be an {address_type} address");
                errors.push(Error::invalid(&addresses.path, item.string(), detail));
            }
            address::reachable(&item, errors);
        }
    }
    let node = endpoint.child("nodeName");
    if !node.is_null() {
        node.follows(name::dns_subdomain, errors);
    }
    let host = endpoint.child("hostname");
    if !host.is_null() {
        host.follows(name::dns_label, errors);
    }
    let hints = endpoint.child("hints");
    for (field, rule) in [("forZones", name::label_value as fn(&str) -> _), ("forNodes", name::dns_subdomain)] {
        hints.child(field).at_most(MAX_HINTS, errors);
        hints.unique_by(field, "name", errors);
        hints.list(field).for_each(|hint| hint.child("name").follows(rule, errors));
    }
}

fn validate_domain(domain: &Place, errors: &mut Errors) {
    if !domain.required("", errors) {
        return;
    }
    let text = domain.string().strip_suffix('.').unwrap_or(domain.string());
    let wrong = name::dns_subdomain(text);
    if !wrong.is_empty() {
        errors.push(Error::invalid(&domain.path, text, wrong.join(",")));
    } else if !text.contains('.') {
        let detail = "should be a domain with at least two segments separated by dots";
        errors.push(Error::invalid(&domain.path, text, detail));
    }
}

fn warn_of_slice(new: &Value, old: Option<&Value>) -> Vec<String> {
    let mut warnings = Vec::new();
    if old.is_none() && new.text("addressType") == "FQDN" {
        warnings.push("spec.addressType: FQDN endpoints are deprecated".to_owned());
    }
    let managers = ["endpointslice-controller.k8s.io", "endpointslicemirroring-controller.k8s.io"];
    if !is_managed(new, "endpointslice.kubernetes.io/managed-by", &managers) {
        let endpoints = Place::root(new).list("endpoints");
        warnings.extend(endpoints.flat_map(|endpoint| address::warnings_in(&endpoint, "addresses")));
    }
    warnings
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::strategy::place::testing::{each_change_has_its_message, each_mistake_has_its_message};
    use object::json;

    #[test]
    fn endpoints_have_addresses_that_can_be_reached() {
        let good = json!({ "subsets": [{ "addresses": [{ "ip": "10.0.0.1" }], "ports": [{ "port": 80 }] }] });
        each_mistake_has_its_message(
            &ENDPOINTS,
            "core.v1.Endpoints",
            &good,
            &[
                (
                    "subsets.0.addresses",
                    json!([]),
                    &["subsets[0]: Required value: must specify `addresses` or `notReadyAddresses`"],
                ),
                (
                    "subsets.0.addresses.0.ip",
                    json!("127.0.0.1"),
                    &[
                        "subsets[0].addresses[0].ip: Invalid value: \"127.0.0.1\": may not be in the loopback range (127.0.0.0/8, \
                   ::1/128)",
                    ],
                ),
                (
                    "subsets.0.ports.1",
                    json!({ "port": 81, "name": "b" }),
                    &["subsets[0].ports[0].name: Required value"],
                ),
            ],
        );
    }

    #[test]
    fn slices_hold_one_kind_of_address() {
        let good = json!({
            "addressType": "IPv4", "endpoints": [{ "addresses": ["10.0.0.1"] }], "ports": [{ "name": "http", "port": 80 }],
        });
        each_mistake_has_its_message(
            &ENDPOINT_SLICE,
            "discovery.v1.EndpointSlice",
            &good,
            &[
                (
                    "addressType",
                    json!("IPv5"),
                    &["addressType: Unsupported value: \"IPv5\": supported values: \"FQDN\", \"IPv4\", \"IPv6\""],
                ),
                (
                    "endpoints.0.addresses",
                    json!([]),
                    &["endpoints[0].addresses: Required value: must contain at least 1 address"],
                ),
                (
                    "endpoints.0.addresses.0",
                    json!("2001:db8::1"),
                    &["endpoints[0].addresses: Invalid value: \"2001:db8::1\": must be an IPv4 address"],
                ),
                ("ports.1", json!({ "name": "http", "port": 81 }), &["ports[1].name: Duplicate value: \"http\""]),
            ],
        );
        each_change_has_its_message(
            &ENDPOINT_SLICE,
            "discovery.v1.EndpointSlice",
            &good,
            &[("addressType", json!("IPv6"), &["addressType: Invalid value: \"IPv6\": field is immutable"])],
        );
    }
}
