//! Endpoints and EndpointSlices: where a service's traffic goes.

use crate::strategy::place::Place;
use crate::strategy::service::PROTOCOLS;
use crate::strategy::value::{same, set_if_empty};
use crate::strategy::{PLAIN, Strategy, address};
use object::field::Errors;
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
    for subset in Place::field_of(new, "subsets").items() {
        if subset.field("addresses").is_empty() && subset.field("notReadyAddresses").is_empty() {
            subset.required(errors, "must specify `addresses` or `notReadyAddresses`");
        }
        for address in subset.field("addresses").items().chain(subset.field("notReadyAddresses").items()) {
            address.field("ip").follows(errors, address::address);
            address.field("hostname").follows_if_set(errors, name::dns_label);
            let node = address.field("nodeName");
            if node.is_set() {
                node.follows(errors, name::dns_subdomain);
            }
            address::reachable(&address.field("ip"), errors);
        }
        let several = subset.field("ports").values().len() > 1;
        for port in subset.field("ports").items() {
            let name = port.field("name");
            if several || !name.is_empty() {
                name.require_follows(errors, name::dns_label);
            }
            port.field("port").port(errors);
            port.field("protocol").require_one_of(errors, &PROTOCOLS);
            validate_application_protocol(&port, errors);
        }
    }
}

fn validate_application_protocol(port: &Place, errors: &mut Errors) {
    let protocol = port.field("appProtocol");
    if protocol.is_set() {
        protocol.follows(errors, name::qualified_name);
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
    for subset in Place::field_of(new, "subsets").items() {
        for address in subset.field("addresses").items().chain(subset.field("notReadyAddresses").items()) {
            warnings.extend(address::warning(&address.field("ip")));
        }
    }
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
    let slice = Place::object(new);
    slice.field("addressType").require_one_of(errors, &["FQDN", "IPv4", "IPv6"]);
    validate_slice_ports(&slice, errors);
    if !old.is_some_and(|old| same(old.at("endpoints"), new.at("endpoints"))) {
        slice.field("endpoints").at_most(errors, MAX_ENDPOINTS);
        slice
            .field("endpoints")
            .items()
            .for_each(|endpoint| validate_endpoint(&endpoint, new.text("addressType"), errors));
    }
    if let Some(old) = old {
        slice.field("addressType").unchanged(errors, old.at("addressType"));
    }
}

fn validate_slice_ports(slice: &Place, errors: &mut Errors) {
    slice.field("ports").at_most(errors, MAX_PORTS);
    let mut seen = Vec::new();
    for port in slice.field("ports").items() {
        let name = port.field("name");
        name.follows_if_set(errors, name::dns_label);
        // Here, unlike elsewhere, two ports without a name have the same one.
        if seen.contains(&name.text()) {
            name.duplicate(errors, name.text());
        }
        seen.push(name.text());
        port.field("protocol").require_one_of(errors, &PROTOCOLS);
        validate_application_protocol(&port, errors);
    }
}

fn validate_endpoint(endpoint: &Place, address_type: &str, errors: &mut Errors) {
    let addresses = endpoint.field("addresses");
    addresses.require_because(errors, "must contain at least 1 address");
    addresses.at_most(errors, MAX_ADDRESSES);
    for item in endpoint.field("addresses").items() {
        let before = errors.len();
        match address_type {
            "IPv4" => item.follows(errors, address::address),
            "IPv6" => item.follows(errors, address::canonical_address),
            _ => {
                if address_type == "FQDN" {
                    validate_domain(&item, errors);
                }
                continue;
            }
        }
        if errors.len() == before {
            if item.text().contains(':') != (address_type == "IPv6") {
                let detail = format!("must be an {address_type} address");
                addresses.invalid_value(errors, item.text(), detail);
            }
            address::reachable(&item, errors);
        }
    }
    let node = endpoint.field("nodeName");
    if node.is_set() {
        node.follows(errors, name::dns_subdomain);
    }
    let host = endpoint.field("hostname");
    if host.is_set() {
        host.follows(errors, name::dns_label);
    }
    let hints = endpoint.field("hints");
    for (field, rule) in [("forZones", name::label_value as fn(&str) -> _), ("forNodes", name::dns_subdomain)] {
        hints.field(field).at_most(errors, MAX_HINTS);
        hints.field(field).unique_by(errors, "name");
        hints.field(field).items().for_each(|hint| hint.field("name").follows(errors, rule));
    }
}

fn validate_domain(domain: &Place, errors: &mut Errors) {
    if !domain.require(errors) {
        return;
    }
    let text = domain.text().strip_suffix('.').unwrap_or(domain.text());
    let wrong = name::dns_subdomain(text);
    if !wrong.is_empty() {
        domain.invalid_value(errors, text, wrong.join(","));
    } else if !text.contains('.') {
        let detail = "should be a domain with at least two segments separated by dots";
        domain.invalid_value(errors, text, detail);
    }
}

fn warn_of_slice(new: &Value, old: Option<&Value>) -> Vec<String> {
    let mut warnings = Vec::new();
    if old.is_none() && new.text("addressType") == "FQDN" {
        warnings.push("spec.addressType: FQDN endpoints are deprecated".to_owned());
    }
    let managers = ["endpointslice-controller.k8s.io", "endpointslicemirroring-controller.k8s.io"];
    if !is_managed(new, "endpointslice.kubernetes.io/managed-by", &managers) {
        for endpoint in Place::field_of(new, "endpoints").items() {
            warnings.extend(endpoint.field("addresses").items().filter_map(|item| address::warning(&item)));
        }
    }
    warnings
}

#[cfg(test)]
mod tests {

    use crate::strategy::check::{each_change_has_its_message, each_mistake_has_its_message};
    use object::json;

    #[test]
    fn endpoints_have_addresses_that_can_be_reached() {
        let good = json!({ "subsets": [{ "addresses": [{ "ip": "10.0.0.1" }], "ports": [{ "port": 80 }] }] });
        each_mistake_has_its_message(
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
            "discovery.v1.EndpointSlice",
            &good,
            &[("addressType", json!("IPv6"), &["addressType: Invalid value: \"IPv6\": field is immutable"])],
        );
    }
}
