//! Services: what they may look like. What a change carries over and may not touch is in [`super::service_change`].
//!
//! Addresses and node ports are allocated by the server, between preparing and validating; an address or port that
//! is still missing here is no mistake.

use crate::strategy::place::{Place, is_empty, set_if_empty};
use crate::strategy::{PLAIN, Strategy, address, service_change};
use object::field::{Error, Errors};
use object::{Edit, Value, View, json, name};

pub const STRATEGY: Strategy = Strategy {
    name: name::dns_label,
    default: Some(default),
    prepare: Some(service_change::prepare),
    validate: Some(validate),
    validate_status: Some(validate_status),
    warn: Some(warn),
    create_on_update: true,
    ..PLAIN
};

pub const PROTOCOLS: [&str; 3] = ["SCTP", "TCP", "UDP"];
const TYPES: [&str; 4] = ["ClusterIP", "ExternalName", "LoadBalancer", "NodePort"];
const FAMILIES: [&str; 2] = ["IPv4", "IPv6"];
const POLICIES: [&str; 2] = ["Cluster", "Local"];
const DEFAULT_AFFINITY_SECONDS: i64 = 3 * 60 * 60;
const MAX_AFFINITY_SECONDS: i64 = 24 * 60 * 60;
const TOPOLOGY_MODE: &str = "service.kubernetes.io/topology-mode";
const TOPOLOGY_HINTS: &str = "service.kubernetes.io/topology-aware-hints";
const SOURCE_RANGES: &str = "service.beta.kubernetes.io/load-balancer-source-ranges";
const ONLY_LOAD_BALANCER: &str = "may only be used when `type` is 'LoadBalancer'";
const NOT_EXTERNAL_NAME: &str = "may not be set for ExternalName services";

pub fn is_external_name(spec: &Value) -> bool {
    spec.text("type") == "ExternalName"
}

pub fn is_load_balancer(spec: &Value) -> bool {
    spec.text("type") == "LoadBalancer"
}

pub fn is_headless(spec: &Value) -> bool {
    matches!(spec.items("clusterIPs"), [only] if only == "None")
}

pub fn is_externally_accessible(spec: &Value) -> bool {
    match spec.text("type") {
        "LoadBalancer" | "NodePort" => true,
        "ClusterIP" => !spec.items("externalIPs").is_empty(),
        _ => false,
    }
}

/// Whether a load balancer has to ask nodes if they have endpoints.
pub fn needs_health_check(spec: &Value) -> bool {
    is_load_balancer(spec) && spec.text("externalTrafficPolicy") == "Local"
}

fn default(service: &mut Value) {
    let spec = service.object_or_new("spec");
    set_if_empty(spec, "sessionAffinity", "None");
    match spec.text("sessionAffinity") {
        "None" => drop(spec.remove("sessionAffinityConfig")),
        "ClientIP" if spec.path(&["sessionAffinityConfig", "clientIP", "timeoutSeconds"]).is_null() => {
            spec.set("sessionAffinityConfig", json!({ "clientIP": { "timeoutSeconds": DEFAULT_AFFINITY_SECONDS } }));
        }
        _ => {}
    }
    set_if_empty(spec, "type", "ClusterIP");
    for port in spec.each("ports") {
        set_if_empty(port, "protocol", "TCP");
        if is_empty(port.at("targetPort")) || port.at("targetPort") == 0 {
            port.set("targetPort", port.at("port").clone());
        }
    }
    if is_externally_accessible(spec) {
        set_if_empty(spec, "externalTrafficPolicy", "Cluster");
    }
    if !is_external_name(spec) && TYPES.contains(&spec.text("type")) {
        spec.set_default("internalTrafficPolicy", "Cluster");
    }
    if is_load_balancer(spec) {
        spec.set_default("allocateLoadBalancerNodePorts", true);
        let balancer = service.object_or_new("status").object_or_new("loadBalancer");
        balancer.each("ingress").filter(|ingress| !ingress.text("ip").is_empty()).for_each(|ingress| {
            ingress.set_default("ipMode", "VIP");
        });
    }
}

fn validate(new: &Value, old: Option<&Value>, errors: &mut Errors) {
    let service = Place::root(new);
    let spec = service.child("spec");
    if let Some(old) = old {
        service_change::validate(&spec, old.at("spec"), errors);
    }
    validate_topology(&service, errors);
    validate_type(&spec, errors);
    validate_ports(&spec, errors);
    spec.child("selector").labels(errors);
    validate_affinity(&spec, errors);
    validate_cluster_addresses(&spec, old, errors);
    validate_external_addresses(&spec, old, errors);
    validate_node_ports(&spec, errors);
    validate_load_balancer(&service, old, errors);
    validate_traffic(&spec, errors);
}

fn validate_topology(service: &Place, errors: &mut Errors) {
    let annotations = service.descend(&["metadata", "annotations"]);
    let (mode, hints) = (annotations.key(TOPOLOGY_MODE), annotations.key(TOPOLOGY_HINTS));
    if !mode.is_null() && !hints.is_null() && mode.value != hints.value {
        errors.push(mode.invalid(format!("must match annotations[{TOPOLOGY_HINTS}] when both are specified")));
    }
}

fn validate_type(spec: &Place, errors: &mut Errors) {
    if !is_headless(spec) && !is_external_name(spec) {
        spec.child("ports").required("", errors);
    }
    match spec.text("type") {
        kind @ ("LoadBalancer" | "NodePort") if is_headless(spec) => {
            let path = spec.child("clusterIPs").path.index(0);
            errors.push(Error::invalid(&path, "None", format!("may not be set to 'None' for {kind} services")));
        }
        "ExternalName" => {
            for field in ["clusterIPs", "ipFamilies", "ipFamilyPolicy"] {
                spec.child(field).forbidden(NOT_EXTERNAL_NAME, errors);
            }
            let target = spec.child("externalName");
            // A fully qualified name may say so with a dot at its end.
            let name = target.string().strip_suffix('.').unwrap_or(target.string());
            if name.is_empty() {
                errors.push(Error::required(&target.path, ""));
            } else {
                let wrong = name::dns_subdomain(name).into_iter();
                errors.extend(wrong.map(|message| Error::invalid(&target.path, name, message)));
            }
        }
        _ => {}
    }
    spec.child("type").required_one_of(&TYPES, errors);
}

fn validate_ports(spec: &Place, errors: &mut Errors) {
    let several = spec.items("ports").len() > 1;
    for port in spec.list("ports") {
        let name = port.child("name");
        if several {
            name.required_follows(name::dns_label, errors);
        } else {
            name.optional_follows(name::dns_label, errors);
        }
        port.child("port").port(errors);
        port.child("protocol").required_one_of(&PROTOCOLS, errors);
        port.child("targetPort").port_or_name(errors);
        let application = port.child("appProtocol");
        if !application.is_null() {
            application.follows(name::qualified_name, errors);
        }
    }
    spec.unique_by("ports", "name", errors);
}

fn validate_affinity(spec: &Place, errors: &mut Errors) {
    spec.child("sessionAffinity").required_one_of(&["ClientIP", "None"], errors);
    let config = spec.child("sessionAffinityConfig");
    match spec.text("sessionAffinity") {
        "ClientIP" => {
            let timeout = config.descend(&["clientIP", "timeoutSeconds"]);
            match timeout.as_i64() {
                None => errors.push(Error::required(&timeout.path, "when session affinity type is ClientIP")),
                Some(1..=MAX_AFFINITY_SECONDS) => {}
                Some(_) => {
                    errors
                        .push(timeout.invalid(format!("must be greater than 0 and less than {MAX_AFFINITY_SECONDS}")));
                }
            }
        }
        "None" => config.forbidden("must not be set when session affinity is None", errors),
        _ => {}
    }
}

fn validate_cluster_addresses(spec: &Place, old: Option<&Value>, errors: &mut Errors) {
    if is_external_name(spec) {
        return;
    }
    let all = spec.child("clusterIPs");
    let addresses: Vec<&str> = spec.items("clusterIPs").iter().filter_map(Value::as_str).collect();
    match (spec.text("clusterIP"), addresses.first()) {
        ("", Some(_)) => errors.push(all.invalid("must be empty when `clusterIP` is not specified")),
        ("", None) => {}
        (_, None) => errors.push(Error::required(&all.path, "")),
        (one, Some(first)) if one != *first => errors.push(all.invalid("first value must match `clusterIP`")),
        _ => {}
    }
    spec.list("ipFamilies").for_each(|family| family.one_of(&FAMILIES, errors));
    spec.unique("ipFamilies", errors);
    spec.child("ipFamilyPolicy").optional_one_of(&["PreferDualStack", "RequireDualStack", "SingleStack"], errors);

    let before = errors.len();
    let kept = old.map(|old| old.at("spec").items("clusterIPs"));
    let none_among_others = addresses.first() == Some(&"None") && addresses.len() > 1;
    if none_among_others {
        errors.push(all.invalid("'None' must be the first and only value"));
    }
    for (index, item) in spec.list("clusterIPs").enumerate() {
        let is_kept = kept.is_some_and(|kept| kept.contains(item.value));
        if !(is_kept || (index == 0 && item.string() == "None")) {
            item.follows(address::address, errors);
        }
    }
    let all_valid = errors.len() == before;
    if addresses.len() > 2 {
        errors.push(all.invalid("may only hold up to 2 values"));
    }
    if all_valid {
        validate_families(spec, &addresses, errors);
    }
}

fn validate_families(spec: &Place, addresses: &[&str], errors: &mut Errors) {
    if addresses.len() > 1 && !address::is_dual_stack(addresses.iter().copied()) {
        errors.push(spec.child("clusterIPs").invalid("may specify no more than one IP for each IP family"));
    }
    if is_headless(spec) {
        return;
    }
    let families = spec.items("ipFamilies").iter().filter_map(Value::as_str);
    for (index, (item, family)) in spec.list("clusterIPs").zip(families).enumerate() {
        let found = if item.string().contains(':') { "IPv6" } else { "IPv4" };
        if FAMILIES.contains(&family) && family != found {
            errors.push(item.invalid(format!("expected an {family} value as indicated by `ipFamilies[{index}]`")));
        }
    }
}

fn validate_external_addresses(spec: &Place, old: Option<&Value>, errors: &mut Errors) {
    let kept = old.map(|old| old.at("spec").items("externalIPs"));
    for item in spec.list("externalIPs") {
        let before = errors.len();
        if !kept.is_some_and(|kept| kept.contains(item.value)) {
            item.follows(address::address, errors);
        }
        if errors.len() == before {
            address::reachable(&item, errors);
        }
    }
}

fn validate_node_ports(spec: &Place, errors: &mut Errors) {
    let (mut node_ports, mut ports) = (Vec::new(), Vec::new());
    for port in spec.list("ports") {
        let (protocol, number) = (port.value.text("protocol"), port.int("port"));
        let node_port = port.child("nodePort");
        if let Some(chosen @ 1..) = node_port.as_i64() {
            if spec.text("type") == "ClusterIP" {
                errors.push(Error::forbidden(&node_port.path, "may not be used when `type` is 'ClusterIP'"));
            }
            if node_ports.contains(&(protocol, chosen)) {
                errors.push(Error::duplicate(&node_port.path, chosen));
            }
            node_ports.push((protocol, chosen));
        }
        if ports.contains(&(protocol, number)) {
            errors.push(Error::duplicate(&port.path, json!({ "port": number, "protocol": protocol })));
        }
        ports.push((protocol, number));
    }
}

fn validate_load_balancer(service: &Place, old: Option<&Value>, errors: &mut Errors) {
    let spec = service.child("spec");
    let (is_balancer, ranges) = (is_load_balancer(&spec), spec.items("loadBalancerSourceRanges"));
    let annotation = service.descend(&["metadata", "annotations"]).key(SOURCE_RANGES);
    let old_annotation = old.map(|old| old.path(&["metadata", "annotations"]).text(SOURCE_RANGES));
    // Blanks around a range have always been allowed.
    let mut check = |path: &object::field::Path, text: &str| {
        let wrong = address::subnet(text.trim()).into_iter();
        errors.extend(wrong.map(|message| Error::invalid(path, text.trim(), message)));
    };
    let (given, path) = if !ranges.is_empty() {
        let path = spec.path.child("LoadBalancerSourceRanges");
        let kept = old.map_or(&[][..], |old| old.at("spec").items("loadBalancerSourceRanges"));
        let changed = ranges.iter().enumerate().filter(|(_, range)| !kept.contains(range));
        changed.for_each(|(index, range)| check(&path.index(index), range.as_str().unwrap_or_default()));
        (true, path)
    } else {
        let changed = old_annotation != Some(annotation.string()) && !annotation.string().trim().is_empty();
        let ranges = Some(annotation.string()).filter(|_| changed).into_iter().flat_map(|text| text.split(','));
        ranges.for_each(|range| check(&annotation.path, range));
        (!annotation.is_null(), annotation.path)
    };
    if given && !is_balancer {
        errors.push(Error::forbidden(&path, ONLY_LOAD_BALANCER));
    }
    let class = spec.child("loadBalancerClass");
    if !is_balancer {
        spec.child("allocateLoadBalancerNodePorts").forbidden(ONLY_LOAD_BALANCER, errors);
        class.forbidden(ONLY_LOAD_BALANCER, errors);
    } else if !class.is_null() {
        class.follows(name::qualified_name, errors);
    }
}

fn validate_traffic(spec: &Place, errors: &mut Errors) {
    let external = spec.child("externalTrafficPolicy");
    if is_externally_accessible(spec) {
        external.required_one_of(&POLICIES, errors);
    } else if !external.is_empty() {
        errors.push(external.invalid("may only be set for externally-accessible services"));
    }
    let health_check = spec.child("healthCheckNodePort");
    match (needs_health_check(spec), health_check.as_i64().unwrap_or_default()) {
        (_, 0) => {}
        (true, _) => health_check.port(errors),
        (false, _) => errors.push(
            health_check
                .invalid("may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'"),
        ),
    }
    spec.child("internalTrafficPolicy").optional_one_of(&POLICIES, errors);
    let distributions = ["PreferClose", "PreferSameZone", "PreferSameNode"];
    spec.child("trafficDistribution").optional_one_of(&distributions, errors);
}

fn validate_status(new: &Value, old: &Value, errors: &mut Errors) {
    let balancer = Place::root(new).descend(&["status", "loadBalancer"]);
    if !is_load_balancer(new.at("spec")) {
        let detail = "may only be used when `spec.type` is 'LoadBalancer'";
        balancer.child("ingress").forbidden(detail, errors);
        return;
    }
    let kept = old.path(&["status", "loadBalancer"]).items("ingress");
    for ingress in balancer.list("ingress") {
        let (ip, mode) = (ingress.child("ip"), ingress.child("ipMode"));
        if !ip.is_empty() && !kept.iter().any(|kept| kept.at("ip") == ip.value) {
            ip.follows(address::address, errors);
        }
        match (ip.is_empty(), mode.is_null()) {
            (false, true) => errors.push(Error::required(&mode.path, "must be specified when `ip` is set")),
            (true, false) => errors.push(Error::forbidden(&mode.path, "may not be specified when `ip` is not set")),
            (false, false) => mode.one_of(&["Proxy", "VIP"], errors),
            (true, true) => {}
        }
        let host = ingress.child("hostname");
        host.optional_follows(name::dns_subdomain, errors);
        if address::parse(host.string()).is_some() {
            errors.push(host.invalid("must be a DNS name, not an IP address"));
        }
    }
}

fn warn(new: &Value, _old: Option<&Value>) -> Vec<String> {
    let spec = Place::root(new).child("spec");
    let headless = spec.text("type") == "ClusterIP" && spec.text("clusterIP") == "None";
    let (external_name, external_ips) = (is_external_name(&spec), !spec.items("externalIPs").is_empty());
    let mut warnings = Vec::new();
    let mut warn_if = |wrong: bool, text: &str| warnings.extend(wrong.then(|| text.to_owned()));
    warn_if(
        new.path(&["metadata", "annotations"]).has(TOPOLOGY_HINTS),
        &format!("annotation {TOPOLOGY_HINTS} is deprecated, please use {TOPOLOGY_MODE} instead"),
    );
    warn_if(
        headless && !spec.text("loadBalancerIP").is_empty(),
        "spec.loadBalancerIP is ignored for headless services",
    );
    warn_if(headless && external_ips, "spec.externalIPs is ignored for headless services");
    warn_if(
        headless && spec.text("sessionAffinity") != "None",
        "spec.SessionAffinity is ignored for headless services",
    );
    warn_if(
        external_ips && !headless && !external_name,
        "spec.externalIPs is deprecated and may no longer be implemented in some clusters",
    );
    warn_if(external_name && external_ips, "spec.externalIPs is ignored when spec.type is \"ExternalName\"");
    warn_if(
        !external_name && !spec.text("externalName").is_empty(),
        "spec.externalName is ignored when spec.type is not \"ExternalName\"",
    );
    warn_if(
        spec.text("trafficDistribution") == "PreferClose",
        "spec.trafficDistribution: \"PreferClose\" is deprecated; use \"PreferSameZone\"",
    );
    ["clusterIPs", "externalIPs"].iter().for_each(|field| warnings.extend(address::warnings_in(&spec, field)));
    let balancer = spec.child("loadBalancerIP");
    warnings.extend(address::warning(&balancer.path, balancer.string()));
    let ranges = spec.list("loadBalancerSourceRanges");
    warnings.extend(ranges.flat_map(|range| address::subnet_warnings(&range.path, range.string())));
    warnings
}
