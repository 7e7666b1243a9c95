//! Changing a Service: what an update that leaves something out keeps, what goes with a change of type, and what may
//! not change.

use crate::strategy::place::Place;
use crate::strategy::service::{
    is_external_name, is_externally_accessible, is_headless, is_load_balancer, needs_health_check,
};
use crate::strategy::value::same;
use object::field::Errors;
use object::{Edit, Value, View, json};

const MAY_NOT_CHANGE: &str = "may not change once set";

pub fn prepare(new: &mut Value, old: Option<&Value>) {
    let spec = new.object_or_new("spec");
    match old {
        None => {
            if !spec.text("clusterIP").is_empty() && spec.items("clusterIPs").is_empty() {
                spec.set("clusterIPs", json!([spec.text("clusterIP")]));
            }
        }
        Some(old) => {
            let before = old.at("spec");
            keep_allocated(spec, before);
            align_cluster_addresses(spec, before);
            drop_what_the_type_had(spec, before);
            if !is_load_balancer(spec) {
                new.object_or_new("status").set("loadBalancer", json!({}));
            }
        }
    }
}

fn has_node_ports(spec: &Value) -> bool {
    matches!(spec.text("type"), "NodePort" | "LoadBalancer")
}

/// What the system has chosen stays, if the client does not mention it.
fn keep_allocated(spec: &mut Value, before: &Value) {
    if !is_external_name(spec) && !is_external_name(before) {
        if spec.text("clusterIP").is_empty() && !before.text("clusterIP").is_empty() {
            spec.set("clusterIP", before.at("clusterIP").clone());
        }
        if spec.items("clusterIPs").is_empty() && !before.items("clusterIPs").is_empty() {
            spec.set("clusterIPs", before.at("clusterIPs").clone());
        }
    }
    if has_node_ports(spec) && has_node_ports(before) {
        let mentioned = node_ports(spec);
        let chosen = |name: &str| {
            let port = before.items("ports").iter().rev().find(|port| port.text("name") == name);
            port.and_then(|port| port.int("nodePort")).filter(|chosen| *chosen != 0 && !mentioned.contains(chosen))
        };
        for port in spec.each("ports").filter(|port| port.int("nodePort").unwrap_or_default() == 0) {
            if let Some(chosen) = chosen(port.text("name")) {
                port.set("nodePort", chosen);
            }
        }
    }
    let mentioned = spec.int("healthCheckNodePort").unwrap_or_default() != 0;
    if needs_health_check(spec) && needs_health_check(before) && !mentioned && before.has("healthCheckNodePort") {
        spec.set("healthCheckNodePort", before.at("healthCheckNodePort").clone());
    }
}

fn node_ports(spec: &Value) -> Vec<i64> {
    spec.items("ports").iter().filter_map(|port| port.int("nodePort")).filter(|port| *port != 0).collect()
}

/// The single address and the list say the same; a client that changes one of them means both.
fn align_cluster_addresses(spec: &mut Value, before: &Value) {
    let (one, was) = (spec.text("clusterIP").to_owned(), before.text("clusterIP"));
    if one != was && same(spec.at("clusterIPs"), before.at("clusterIPs")) {
        if one.is_empty() {
            spec.remove("clusterIPs");
        } else {
            spec.set("clusterIPs", json!([one]));
        }
    }
}

/// Fields that only the old type had go with it, unless the client has changed them: then they are its mistake.
fn drop_what_the_type_had(spec: &mut Value, before: &Value) {
    type Has = fn(&Value) -> bool;
    let gone = |has: Has, spec: &Value| has(before) && !has(spec);
    let dependent: [(Has, &[&str]); 4] = [
        (|spec| !is_external_name(spec), &["clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"]),
        (needs_health_check, &["healthCheckNodePort"]),
        (is_load_balancer, &["allocateLoadBalancerNodePorts", "loadBalancerClass"]),
        (is_externally_accessible, &["externalTrafficPolicy"]),
    ];
    if gone(has_node_ports, spec) {
        let known = node_ports(before);
        if node_ports(spec).iter().all(|port| known.contains(port)) {
            spec.each("ports").for_each(|port| drop(port.remove("nodePort")));
        }
    }
    for (has, fields) in dependent {
        if gone(has, spec) {
            for field in fields.iter().filter(|field| same(spec.at(field), before.at(field))).collect::<Vec<_>>() {
                spec.remove(field);
            }
        }
    }
}

pub fn validate(spec: &Place, before: &Value, errors: &mut Errors) {
    if !is_external_name(spec.value()) && !is_external_name(before) {
        let (headless, was_headless) = (is_headless(spec.value()), is_headless(before));
        if !(headless && was_headless) {
            validate_addresses(spec, before, errors);
        }
        if !headless && !was_headless {
            validate_families(spec, before, errors);
        }
    }
    let class = spec.field("loadBalancerClass");
    if is_load_balancer(spec.value()) && is_load_balancer(before) && class.value() != before.at("loadBalancerClass") {
        class.invalid(errors, MAY_NOT_CHANGE);
    }
    let port = spec.field("healthCheckNodePort");
    if needs_health_check(spec.value())
        && needs_health_check(before)
        && port.value() != before.at("healthCheckNodePort")
    {
        port.forbidden(errors, "field is immutable");
    }
}

fn validate_addresses(spec: &Place, before: &Value, errors: &mut Errors) {
    let (all, addresses) = (spec.field("clusterIPs"), spec.field("clusterIPs").values());
    let was = before.items("clusterIPs");
    if !was.is_empty() && addresses.is_empty() {
        all.item(0).with(all.value()).invalid(errors, "primary clusterIP can not be unset");
    }
    // The second address may come and go; whatever is in both lists has to stay.
    let compared = if addresses.len() == was.len() { was.len() } else { 1 };
    let changed = was.iter().zip(addresses).take(compared).enumerate().filter(|(_, (was, now))| was != now);
    changed.for_each(|(index, _)| all.item(index).with(all.value()).invalid(errors, MAY_NOT_CHANGE));
    if was.len() > addresses.len() && addresses.len() == 1 {
        require_single_stack(spec, "clusterIP", errors);
    }
}

fn validate_families(spec: &Place, before: &Value, errors: &mut Errors) {
    let (all, families) = (spec.field("ipFamilies"), spec.field("ipFamilies").values());
    let was = before.items("ipFamilies");
    let first = all.item(0).with(all.value());
    if was.len() > families.len() && spec.field("clusterIPs").is_empty() {
        first.invalid(errors, "primary ipFamily can not be unset");
    }
    let compared = if families.len() == was.len() { was.len() } else { 1 };
    let changed = was.iter().zip(families).take(compared).filter(|(was, now)| was != now);
    changed.for_each(|_| first.invalid(errors, MAY_NOT_CHANGE));
    if was.len() > families.len() && families.len() == 1 {
        require_single_stack(spec, "ipFamily", errors);
    }
}

fn require_single_stack(spec: &Place, released: &str, errors: &mut Errors) {
    let policy = spec.field("ipFamilyPolicy");
    if policy.text() != "SingleStack" {
        policy.invalid(errors, format!("must be set to 'SingleStack' when releasing the secondary {released}"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::strategy::check::{each_change_has_its_message, each_mistake_has_its_message, filled, messages};
    use crate::strategy::service::STRATEGY;

    const KIND: &str = "core.v1.Service";

    fn service() -> Value {
        json!({ "spec": { "ports": [{ "port": 80 }], "selector": { "a": "b" } } })
    }

    #[test]
    fn a_plain_service_gets_the_usual_settings() {
        assert_eq!(
            filled(KIND, &service())["spec"],
            json!({
                "type": "ClusterIP", "sessionAffinity": "None", "internalTrafficPolicy": "Cluster", "selector": { "a": "b" },
                "ports": [{ "port": 80, "protocol": "TCP", "targetPort": 80 }],
            })
        );
    }

    #[test]
    fn each_mistake_is_reported() {
        each_mistake_has_its_message(
            KIND,
            &service(),
            &[
                ("spec.ports", json!([]), &["spec.ports: Required value"]),
                (
                    "spec.ports.0.port",
                    json!(70000),
                    &[
                        "spec.ports[0].port: Invalid value: 70000: must be between 1 and 65535, inclusive",
                        "spec.ports[0].targetPort: Invalid value: 70000: must be between 1 and 65535, inclusive",
                    ],
                ),
                (
                    "spec.ports.1",
                    json!({ "port": 80, "name": "http" }),
                    &[
                        "spec.ports[0].name: Required value",
                        "spec.ports[1]: Duplicate value: {\"port\":80,\"protocol\":\"TCP\"}",
                    ],
                ),
                (
                    "spec.ports.0.protocol",
                    json!("HTTP"),
                    &[
                        "spec.ports[0].protocol: Unsupported value: \"HTTP\": supported values: \"SCTP\", \"TCP\", \"UDP\"",
                    ],
                ),
                (
                    "spec.ports.0.nodePort",
                    json!(30000),
                    &["spec.ports[0].nodePort: Forbidden: may not be used when `type` is 'ClusterIP'"],
                ),
                (
                    "spec.type",
                    json!("Cluster"),
                    &["spec.type: Unsupported value: \"Cluster\": supported values: \"ClusterIP\", \"ExternalName\", \
                   \"LoadBalancer\", \"NodePort\""],
                ),
                ("spec.type", json!("ExternalName"), &["spec.externalName: Required value"]),
                (
                    "spec.externalTrafficPolicy",
                    json!("Local"),
                    &[
                        "spec.externalTrafficPolicy: Invalid value: \"Local\": may only be set for externally-accessible services",
                    ],
                ),
                (
                    "spec.sessionAffinity",
                    json!("Sticky"),
                    &["spec.sessionAffinity: Unsupported value: \"Sticky\": supported values: \"ClientIP\", \"None\""],
                ),
                (
                    "spec.ipFamilies",
                    json!(["IPv5"]),
                    &["spec.ipFamilies[0]: Unsupported value: \"IPv5\": supported values: \"IPv4\", \"IPv6\""],
                ),
                (
                    "spec.externalIPs",
                    json!(["127.0.0.1"]),
                    &[
                        "spec.externalIPs[0]: Invalid value: \"127.0.0.1\": may not be in the loopback range (127.0.0.0/8, ::1/128)",
                    ],
                ),
                (
                    "spec.loadBalancerSourceRanges",
                    json!(["10.0.0.0"]),
                    &[
                        "spec.LoadBalancerSourceRanges[0]: Invalid value: \"10.0.0.0\": must be a valid CIDR value, (e.g. \
                     10.9.8.0/24 or 2001:db8::/64)",
                        "spec.LoadBalancerSourceRanges: Forbidden: may only be used when `type` is 'LoadBalancer'",
                    ],
                ),
            ],
        );
    }

    /// What happens to a change in a request: defaults, then preparing.
    fn changed(old: &Value, new: &Value) -> Value {
        let mut new = filled(KIND, new);
        prepare(&mut new, Some(old));
        new
    }

    #[test]
    fn what_was_allocated_stays_with_a_client_that_does_not_know_it() {
        let allocated = json!({ "spec": {
            "type": "NodePort", "clusterIP": "10.0.0.1", "clusterIPs": ["10.0.0.1"], "ipFamilies": ["IPv4"],
            "ports": [{ "port": 80, "nodePort": 30000 }],
        } });
        let old = filled(KIND, &allocated);
        let new = changed(&old, &json!({ "spec": { "type": "NodePort", "ports": [{ "port": 81 }] } }));
        assert_eq!(new["spec"]["clusterIPs"], json!(["10.0.0.1"]));
        assert_eq!(new["spec"]["ports"][0]["nodePort"], 30000);
        assert_eq!(messages(KIND, &new, Some(&old)), [""; 0]);
        each_change_has_its_message(
            KIND,
            &allocated,
            &[(
                "spec",
                json!({ "clusterIP": "10.0.0.2", "clusterIPs": ["10.0.0.2"], "ports": [{ "port": 80 }] }),
                &["spec.clusterIPs[0]: Invalid value: [\"10.0.0.2\"]: may not change once set"],
            )],
        );
    }

    #[test]
    fn a_change_of_type_takes_its_fields_along() {
        let balancer = json!({ "spec": {
            "type": "LoadBalancer", "clusterIP": "10.0.0.1", "clusterIPs": ["10.0.0.1"], "ipFamilies": ["IPv4"],
            "ipFamilyPolicy": "SingleStack", "ports": [{ "port": 80, "nodePort": 30000 }],
        } });
        let old = filled(KIND, &balancer);
        let mut new = old.clone();
        new["spec"]["type"] = json!("ClusterIP");
        prepare(&mut new, Some(&old));
        assert_eq!(messages(KIND, &new, Some(&old)), [""; 0]);
        assert_eq!(new["spec"]["clusterIP"], "10.0.0.1");
        new["spec"]["type"] = json!("ExternalName");
        new["spec"]["externalName"] = json!("example.com.");
        prepare(&mut new, Some(&old));
        assert_eq!(messages(KIND, &new, Some(&old)), [""; 0]);
        assert_eq!((new["spec"].has("clusterIP"), new["spec"].has("ipFamilyPolicy")), (false, false));
    }

    #[test]
    fn unwise_settings_are_warned_of() {
        let warn = STRATEGY.warn.unwrap();
        let mut headless = filled(KIND, &service());
        headless["spec"]["clusterIP"] = json!("None");
        headless["spec"]["externalIPs"] = json!(["10.0.0.1"]);
        headless["spec"]["externalName"] = json!("x");
        assert_eq!(
            warn(&headless, None),
            [
                "spec.externalIPs is ignored for headless services",
                "spec.externalName is ignored when spec.type is not \"ExternalName\"",
            ]
        );
    }
}
