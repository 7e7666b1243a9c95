//! How services, their endpoints, ingresses and policies look.

use super::text::{
    NONE, UNKNOWN, UNSET, age, count, first, join, labels, more, name, or, plain, selector_cell, strings, text_or,
};
use super::{AGE, NAME, SELECTOR, printer, string};
use object::{Value, View};
use std::collections::BTreeSet;

/// How many addresses, ports or hosts of one object a cell shows.
const SHOWN: usize = 3;

printer!(SERVICE = |object, now| {
    NAME => name(object),
    string("Type", "How the service can be reached") => object.at("spec").text("type"),
    string("Cluster-IP", "Address inside the cluster") => cluster_ip(object.at("spec")),
    string("External-IP", "Addresses outside the cluster") => external_ip(object),
    string("Port(s)", "Ports of the service, and of the nodes for it") => service_ports(object.at("spec")),
    AGE => age(object, now),
    SELECTOR => labels(object.at("spec"), "selector"),
});

fn cluster_ip(spec: &Value) -> &str {
    strings(spec, "clusterIPs").next().unwrap_or_else(|| or(spec.text("clusterIP"), NONE))
}

fn external_ip(service: &Value) -> String {
    let spec = service.at("spec");
    let given = strings(spec, "externalIPs").map(str::to_owned);
    match spec.text("type") {
        "ClusterIP" | "NodePort" => or(&join(given, ","), NONE).to_owned(),
        "LoadBalancer" => or(&join(load_balancers(service).into_iter().chain(given), ","), "<pending>").to_owned(),
        "ExternalName" => spec.text("externalName").to_owned(),
        _ => UNKNOWN.to_owned(),
    }
}

/// The addresses or names of the load balancers in front of a service or an ingress.
fn load_balancers(object: &Value) -> BTreeSet<String> {
    let ingress = object.path(&["status", "loadBalancer"]).items("ingress").iter();
    let texts = ingress.map(|ingress| or(ingress.text("ip"), ingress.text("hostname")).to_owned());
    texts.filter(|text| !text.is_empty()).collect()
}

fn service_ports(spec: &Value) -> String {
    let texts = spec.items("ports").iter().map(|port| match count(port, "nodePort") {
        1.. => format!("{}:{}/{}", count(port, "port"), count(port, "nodePort"), port.text("protocol")),
        _ => format!("{}/{}", count(port, "port"), port.text("protocol")),
    });
    or(&join(texts, ","), NONE).to_owned()
}

printer!(ENDPOINTS = |object, now| {
    NAME => name(object),
    string("Endpoints", "Addresses and ports behind the service") => endpoints(object.items("subsets")),
    AGE => age(object, now),
});

fn endpoints(subsets: &[Value]) -> String {
    if subsets.is_empty() {
        return NONE.to_owned();
    }
    let mut texts = Vec::new();
    for subset in subsets {
        let addresses = subset.items("addresses").iter().map(|address| address.text("ip"));
        match subset.items("ports") {
            [] => texts.extend(addresses.map(str::to_owned)),
            ports => {
                for port in ports {
                    texts.extend(addresses.clone().map(|ip| host_and_port(ip, count(port, "port"))));
                }
            }
        }
    }
    first(SHOWN, &texts, ",")
}

fn host_and_port(host: &str, port: i64) -> String {
    if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") }
}

printer!(ENDPOINT_SLICE = |object, now| {
    NAME => name(object),
    string("AddressType", "Kind of the addresses") => object.text("addressType"),
    string("Ports", "Ports of the endpoints") => slice_ports(object),
    string("Endpoints", "Addresses of the endpoints") => slice_addresses(object),
    AGE => age(object, now),
});

fn slice_ports(slice: &Value) -> String {
    let texts = slice.items("ports").iter().map(|port| match port.at("port") {
        Value::Null => text_or(port, "name", "*").to_owned(),
        number => plain(number),
    });
    or(&first(SHOWN, &texts.collect::<Vec<_>>(), ","), UNSET).to_owned()
}

fn slice_addresses(slice: &Value) -> String {
    let addresses = slice.items("endpoints").iter().flat_map(|endpoint| strings(endpoint, "addresses"));
    or(&first(SHOWN, &addresses.collect::<Vec<_>>(), ","), UNSET).to_owned()
}

printer!(INGRESS = |object, now| {
    NAME => name(object),
    string("Class", "Who serves it") => text_or(object.at("spec"), "ingressClassName", NONE),
    string("Hosts", "Names it is for") => hosts(object.at("spec").items("rules")),
    string("Address", "Where it can be reached") => join(load_balancers(object), ","),
    string("Ports", "Ports it is served on") => ingress_ports(object.at("spec")),
    AGE => age(object, now),
});

/// The first hosts, and how many rules there are beyond as many as are shown, hosts or not.
fn hosts(rules: &[Value]) -> String {
    let named = rules.iter().enumerate().map(|(at, rule)| (at, rule.text("host"))).filter(|(_, host)| !host.is_empty());
    let shown: Vec<_> = named.take(SHOWN).collect();
    let Some((last, _)) = shown.last() else { return "*".to_owned() };
    let others = if shown.len() == SHOWN && last + 1 < rules.len() { rules.len() - SHOWN } else { 0 };
    more(join(shown.iter().map(|(_, host)| host), ","), others)
}

fn ingress_ports(spec: &Value) -> &'static str {
    if spec.items("tls").is_empty() { "80" } else { "80, 443" }
}

printer!(INGRESS_CLASS = |object, now| {
    NAME => default_name(object, &["ingressclass.kubernetes.io/is-default-class"]),
    string("Controller", "Who serves ingresses of this class") => object.at("spec").text("controller"),
    string("Parameters", "Where its settings are") => parameters(object.at("spec").at("parameters")),
    AGE => age(object, now),
});

/// The name of an object, and whether one of the annotations makes it the default of its kind.
pub(super) fn default_name(object: &Value, annotations: &[&str]) -> String {
    let set = object.path(&["metadata", "annotations"]);
    let is_default = annotations.iter().any(|annotation| set.text(annotation) == "true");
    format!("{}{}", name(object), if is_default { " (default)" } else { "" })
}

fn parameters(parameters: &Value) -> String {
    if parameters.is_null() {
        return NONE.to_owned();
    }
    let (kind, name) = (parameters.text("kind"), parameters.text("name"));
    if parameters.has("apiGroup") {
        format!("{kind}.{}/{name}", parameters.text("apiGroup"))
    } else {
        format!("{kind}/{name}")
    }
}

printer!(NETWORK_POLICY = |object, now| {
    NAME => name(object),
    string("Pod-Selector", "Labels of the pods it is about") => selector_cell(object.at("spec").at("podSelector")),
    AGE => age(object, now),
});

printer!(SERVICE_CIDR = |object, now| {
    NAME => name(object),
    string("CIDRs", "Ranges services take their addresses from") => join(strings(object.at("spec"), "cidrs"), ","),
    AGE => age(object, now),
});

printer!(IP_ADDRESS = |object, _now| {
    NAME => name(object),
    string("ParentRef", "What uses the address") => parent(object.at("spec").at("parentRef")),
});

fn parent(parent: &Value) -> String {
    if parent.is_null() {
        return NONE.to_owned();
    }
    let resource = match parent.text("group") {
        "" => parent.text("resource").to_lowercase(),
        group => format!("{}.{group}", parent.text("resource")).to_lowercase(),
    };
    let parts = [&*resource, parent.text("namespace"), parent.text("name")];
    // A parent without a namespace leaves that part out.
    join(parts.iter().enumerate().filter(|(at, part)| *at != 1 || !part.is_empty()).map(|(_, part)| part), "/")
}

#[cfg(test)]
mod tests {
    use super::super::tests::{cells, check};
    use super::*;
    use object::json;

    #[test]
    fn services_show_where_they_can_be_reached() {
        let port = json!({ "port": 80, "protocol": "TCP" });
        check(
            &SERVICE,
            &[
                (
                    json!({ "spec": {
                    "type": "ClusterIP", "clusterIPs": ["10.0.0.1", "fd00::1"], "selector": { "a": "b" },
                    "ports": [port, { "port": 53, "protocol": "UDP", "nodePort": 30053 }],
                } }),
                    json!(["ClusterIP", "10.0.0.1", NONE, "80/TCP,53:30053/UDP", "a=b"]),
                ),
                (
                    json!({ "spec": { "type": "NodePort", "clusterIP": "None", "externalIPs": ["1.1.1.1", "2.2.2.2"] } }),
                    json!(["NodePort", "None", "1.1.1.1,2.2.2.2", NONE, NONE]),
                ),
                (json!({ "spec": { "type": "LoadBalancer" } }), json!(["LoadBalancer", NONE, "<pending>", NONE, NONE])),
                (
                    json!({
                        "spec": { "type": "LoadBalancer", "externalIPs": ["9.9.9.9"] },
                        "status": { "loadBalancer": { "ingress": [{ "hostname": "lb.example" }, { "ip": "1.2.3.4" }, {}] } },
                    }),
                    json!(["LoadBalancer", NONE, "1.2.3.4,lb.example,9.9.9.9", NONE, NONE]),
                ),
                (
                    json!({ "spec": { "type": "ExternalName", "externalName": "example.com" } }),
                    json!(["ExternalName", NONE, "example.com", NONE, NONE]),
                ),
            ],
        );
    }

    #[test]
    fn endpoints_show_the_first_three() {
        let addresses = json!([{ "ip": "10.0.0.1" }, { "ip": "fd00::1" }]);
        let ports = json!([{ "port": 80 }, { "port": 443 }]);
        check(
            &ENDPOINTS,
            &[
                (json!({}), json!([NONE])),
                (json!({ "subsets": [{}] }), json!([""])),
                (json!({ "subsets": [{ "addresses": addresses }] }), json!(["10.0.0.1,fd00::1"])),
                (
                    json!({ "subsets": [{ "addresses": addresses, "ports": ports }] }),
                    json!(["10.0.0.1:80,[fd00::1]:80,10.0.0.1:443 + 1 more..."]),
                ),
            ],
        );
        check(
            &ENDPOINT_SLICE,
            &[
                (
                    json!({
                        "addressType": "IPv4", "ports": [{ "port": 80 }, { "name": "web" }, {}],
                        "endpoints": [{ "addresses": ["1.1.1.1", "2.2.2.2"] }, { "addresses": ["3.3.3.3", "4.4.4.4"] }],
                    }),
                    json!(["IPv4", "80,web,*", "1.1.1.1,2.2.2.2,3.3.3.3 + 1 more..."]),
                ),
                (json!({ "addressType": "IPv6" }), json!(["IPv6", UNSET, UNSET])),
            ],
        );
    }

    #[test]
    fn ingresses_show_hosts_and_addresses() {
        let rules = |hosts: &[&str]| -> Value { hosts.iter().map(|host| json!({ "host": host })).collect() };
        for (named, text) in [
            (&[][..], "*"),
            (&[""], "*"),
            (&["a", "b", "c"], "a,b,c"),
            (&["", "a", "b", "c"], "a,b,c"),
            (&["a", "b", "c", ""], "a,b,c + 1 more..."),
            (&["", "a", "b", "c", "d"], "a,b,c + 2 more..."),
        ] {
            assert_eq!(hosts(rules(named).as_array().unwrap()), text, "{named:?}");
        }
        check(
            &INGRESS,
            &[
                (json!({}), json!([NONE, "*", "", "80"])),
                (
                    json!({
                        "spec": { "ingressClassName": "c", "rules": rules(&["a"]), "tls": [{}] },
                        "status": { "loadBalancer": { "ingress": [{ "ip": "1.2.3.4" }] } },
                    }),
                    json!(["c", "a", "1.2.3.4", "80, 443"]),
                ),
            ],
        );
    }

    #[test]
    fn a_default_class_says_so() {
        let annotations = json!({ "ingressclass.kubernetes.io/is-default-class": "true" });
        let class = json!({
            "metadata": { "annotations": annotations },
            "spec": { "controller": "a/b", "parameters": { "apiGroup": "g", "kind": "K", "name": "n" } },
        });
        assert_eq!(cells(&INGRESS_CLASS, class)[..3], [json!("x (default)"), json!("a/b"), json!("K.g/n")]);
        let parameters = json!({ "kind": "K", "name": "n" });
        check(
            &INGRESS_CLASS,
            &[(json!({ "spec": { "parameters": parameters } }), json!(["", "K/n"])), (json!({}), json!(["", NONE]))],
        );
    }

    #[test]
    fn policies_ranges_and_addresses_name_what_they_are_about() {
        check(
            &NETWORK_POLICY,
            &[
                (json!({ "spec": { "podSelector": {} } }), json!([NONE])),
                (json!({ "spec": { "podSelector": { "matchLabels": { "a": "b" } } } }), json!(["a=b"])),
            ],
        );
        check(
            &SERVICE_CIDR,
            &[(json!({ "spec": { "cidrs": ["10.0.0.0/8", "fd00::/64"] } }), json!(["10.0.0.0/8,fd00::/64"]))],
        );
        let parent = |group: &str, namespace: &str| json!({ "spec": { "parentRef": { "group": group, "resource": "Services", "namespace": namespace, "name": "n" } } });
        check(
            &IP_ADDRESS,
            &[
                (parent("", "ns"), json!(["services/ns/n"])),
                (parent("g", ""), json!(["services.g/n"])),
                (json!({}), json!([NONE])),
            ],
        );
    }
}
