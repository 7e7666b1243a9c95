//! Services: what they may look like. What a change carries over and may not touch is in [`super::service_change`].
//!
//! Addresses and node ports are allocated by the server, between preparing and validating; an address or port that
//! is still missing here is no mistake.

use crate::strategy::place::Place;
use crate::strategy::value::{is_empty, set_if_empty};
use crate::strategy::{PLAIN, Strategy, address, service_change};
use object::field::Errors;
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
    let service = Place::object(new);
    let spec = service.field("spec");
    if let Some(old) = old {
        service_change::validate(&spec, old.at("spec"), errors);
    }
    validate_topology(&service, errors);
    validate_type(&spec, errors);
    validate_ports(&spec, errors);
    spec.field("selector").labels(errors);
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
    if mode.is_set() && hints.is_set() && mode.value() != hints.value() {
        mode.invalid(errors, format!("must match annotations[{TOPOLOGY_HINTS}] when both are specified"));
    }
}

fn validate_type(spec: &Place, errors: &mut Errors) {
    if !is_headless(spec.value()) && !is_external_name(spec.value()) {
        spec.field("ports").require(errors);
    }
    match spec.field("type").text() {
        kind @ ("LoadBalancer" | "NodePort") if is_headless(spec.value()) => {
            let detail = format!("may not be set to 'None' for {kind} services");
            spec.field("clusterIPs").item(0).invalid_value(errors, "None", detail);
        }
        "ExternalName" => {
            for field in ["clusterIPs", "ipFamilies", "ipFamilyPolicy"] {
                spec.field(field).forbid(errors, NOT_EXTERNAL_NAME);
            }
            let target = spec.field("externalName");
            // A fully qualified name may say so with a dot at its end.
            let name = target.text().strip_suffix('.').unwrap_or(target.text());
            if name.is_empty() {
                target.required(errors, "");
            } else {
                target.text_follows(errors, name, name::dns_subdomain);
            }
        }
        _ => {}
    }
    spec.field("type").require_one_of(errors, &TYPES);
}

fn validate_ports(spec: &Place, errors: &mut Errors) {
    let several = spec.field("ports").values().len() > 1;
    for port in spec.field("ports").items() {
        let name = port.field("name");
        if several {
            name.require_follows(errors, name::dns_label);
        } else {
            name.follows_if_set(errors, name::dns_label);
        }
        port.field("port").port(errors);
        port.field("protocol").require_one_of(errors, &PROTOCOLS);
        port.field("targetPort").port_or_name(errors);
        let application = port.field("appProtocol");
        if application.is_set() {
            application.follows(errors, name::qualified_name);
        }
    }
    spec.field("ports").unique_by(errors, "name");
}

fn validate_affinity(spec: &Place, errors: &mut Errors) {
    spec.field("sessionAffinity").require_one_of(errors, &["ClientIP", "None"]);
    let config = spec.field("sessionAffinityConfig");
    match spec.field("sessionAffinity").text() {
        "ClientIP" => {
            let timeout = config.descend(&["clientIP", "timeoutSeconds"]);
            match timeout.number() {
                None => timeout.required(errors, "when session affinity type is ClientIP"),
                Some(1..=MAX_AFFINITY_SECONDS) => {}
                Some(_) => {
                    timeout.invalid(errors, format!("must be greater than 0 and less than {MAX_AFFINITY_SECONDS}"));
                }
            }
        }
        "None" => config.forbid(errors, "must not be set when session affinity is None"),
        _ => {}
    }
}

fn validate_cluster_addresses(spec: &Place, old: Option<&Value>, errors: &mut Errors) {
    if is_external_name(spec.value()) {
        return;
    }
    let all = spec.field("clusterIPs");
    let addresses: Vec<&str> = spec.field("clusterIPs").values().iter().filter_map(Value::as_str).collect();
    match (spec.field("clusterIP").text(), addresses.first()) {
        ("", Some(_)) => all.invalid(errors, "must be empty when `clusterIP` is not specified"),
        ("", None) => {}
        (_, None) => all.required(errors, ""),
        (one, Some(first)) if one != *first => all.invalid(errors, "first value must match `clusterIP`"),
        _ => {}
    }
    spec.field("ipFamilies").items().for_each(|family| family.one_of(errors, &FAMILIES));
    spec.field("ipFamilies").unique(errors);
    spec.field("ipFamilyPolicy").one_of_if_set(errors, &["PreferDualStack", "RequireDualStack", "SingleStack"]);

    let before = errors.len();
    let kept = old.map(|old| old.at("spec").items("clusterIPs"));
    let none_among_others = addresses.first() == Some(&"None") && addresses.len() > 1;
    if none_among_others {
        all.invalid(errors, "'None' must be the first and only value");
    }
    for (index, item) in spec.field("clusterIPs").items().enumerate() {
        let is_kept = kept.is_some_and(|kept| kept.contains(item.value()));
        if !(is_kept || (index == 0 && item.text() == "None")) {
            item.follows(errors, address::address);
        }
    }
    let all_valid = errors.len() == before;
    if addresses.len() > 2 {
        all.invalid(errors, "may only hold up to 2 values");
    }
    if all_valid {
        validate_families(spec, &addresses, errors);
    }
}

fn validate_families(spec: &Place, addresses: &[&str], errors: &mut Errors) {
    if addresses.len() > 1 && !address::is_dual_stack(addresses.iter().copied()) {
        spec.field("clusterIPs").invalid(errors, "may specify no more than one IP for each IP family");
    }
    if is_headless(spec.value()) {
        return;
    }
    let families = spec.field("ipFamilies").values().iter().filter_map(Value::as_str);
    for (index, (item, family)) in spec.field("clusterIPs").items().zip(families).enumerate() {
        let found = if item.text().contains(':') { "IPv6" } else { "IPv4" };
        if FAMILIES.contains(&family) && family != found {
            item.invalid(errors, format!("expected an {family} value as indicated by `ipFamilies[{index}]`"));
        }
    }
}

fn validate_external_addresses(spec: &Place, old: Option<&Value>, errors: &mut Errors) {
    let kept = old.map(|old| old.at("spec").items("externalIPs"));
    for item in spec.field("externalIPs").items() {
        let before = errors.len();
        if !kept.is_some_and(|kept| kept.contains(item.value())) {
            item.follows(errors, address::address);
        }
        if errors.len() == before {
            address::reachable(&item, errors);
        }
    }
}

fn validate_node_ports(spec: &Place, errors: &mut Errors) {
    let (mut node_ports, mut ports) = (Vec::new(), Vec::new());
    for port in spec.field("ports").items() {
        let (protocol, number) = (port.field("protocol").text(), port.field("port").number());
        let node_port = port.field("nodePort");
        if let Some(chosen @ 1..) = node_port.number() {
            if spec.field("type").text() == "ClusterIP" {
                node_port.forbidden(errors, "may not be used when `type` is 'ClusterIP'");
            }
            if node_ports.contains(&(protocol, chosen)) {
                node_port.duplicate(errors, chosen);
            }
            node_ports.push((protocol, chosen));
        }
        if ports.contains(&(protocol, number)) {
            port.duplicate(errors, json!({ "port": number, "protocol": protocol }));
        }
        ports.push((protocol, number));
    }
}

fn validate_load_balancer(service: &Place, old: Option<&Value>, errors: &mut Errors) {
    let spec = service.field("spec");
    let (is_balancer, ranges) = (
        is_load_balancer(spec.value()),
        // Kubernetes gives the field a name it does not have.
        spec.field("LoadBalancerSourceRanges").with(spec.field("loadBalancerSourceRanges").value()),
    );
    let annotations = service.descend(&["metadata", "annotations"]);
    let annotation = annotations.key(SOURCE_RANGES);
    let old_annotation = old.map(|old| old.path(&["metadata", "annotations"]).text(SOURCE_RANGES));
    // Blanks around a range have always been allowed.
    let mut check = |place: &Place, text: &str| {
        place.text_follows(errors, text.trim(), address::subnet);
    };
    let place = if !ranges.is_empty() {
        let kept = old.map_or(&[][..], |old| old.at("spec").items("loadBalancerSourceRanges"));
        let changed = ranges.items().filter(|range| !kept.contains(range.value()));
        changed.for_each(|range| check(&range, range.text()));
        ranges
    } else {
        let changed = old_annotation != Some(annotation.text()) && !annotation.text().trim().is_empty();
        let ranges = Some(annotation.text()).filter(|_| changed).into_iter().flat_map(|text| text.split(','));
        ranges.for_each(|range| check(&annotation, range));
        annotation
    };
    if place.is_set() && !is_balancer {
        place.forbidden(errors, ONLY_LOAD_BALANCER);
    }
    let class = spec.field("loadBalancerClass");
    if !is_balancer {
        spec.field("allocateLoadBalancerNodePorts").forbid(errors, ONLY_LOAD_BALANCER);
        class.forbid(errors, ONLY_LOAD_BALANCER);
    } else if class.is_set() {
        class.follows(errors, name::qualified_name);
    }
}

fn validate_traffic(spec: &Place, errors: &mut Errors) {
    let external = spec.field("externalTrafficPolicy");
    if is_externally_accessible(spec.value()) {
        external.require_one_of(errors, &POLICIES);
    } else if !external.is_empty() {
        external.invalid(errors, "may only be set for externally-accessible services");
    }
    let health_check = spec.field("healthCheckNodePort");
    match (needs_health_check(spec.value()), health_check.int()) {
        (_, 0) => {}
        (true, _) => health_check.port(errors),
        (false, _) => health_check
            .invalid(errors, "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'"),
    }
    spec.field("internalTrafficPolicy").one_of_if_set(errors, &POLICIES);
    let distributions = ["PreferClose", "PreferSameZone", "PreferSameNode"];
    spec.field("trafficDistribution").one_of_if_set(errors, &distributions);
}

fn validate_status(new: &Value, old: &Value, errors: &mut Errors) {
    let balancer = Place::named(new.path(&["status", "loadBalancer"]), "status.loadBalancer");
    if !is_load_balancer(new.at("spec")) {
        let detail = "may only be used when `spec.type` is 'LoadBalancer'";
        balancer.field("ingress").forbid(errors, detail);
        return;
    }
    let kept = old.path(&["status", "loadBalancer"]).items("ingress");
    for ingress in balancer.field("ingress").items() {
        let (ip, mode) = (ingress.field("ip"), ingress.field("ipMode"));
        if !ip.is_empty() && !kept.iter().any(|kept| kept.at("ip") == ip.value()) {
            ip.follows(errors, address::address);
        }
        match (ip.is_empty(), !mode.is_set()) {
            (false, true) => mode.required(errors, "must be specified when `ip` is set"),
            (true, false) => mode.forbidden(errors, "may not be specified when `ip` is not set"),
            (false, false) => mode.one_of(errors, &["Proxy", "VIP"]),
            (true, true) => {}
        }
        let host = ingress.field("hostname");
        host.follows_if_set(errors, name::dns_subdomain);
        if address::parse(host.text()).is_some() {
            host.invalid(errors, "must be a DNS name, not an IP address");
        }
    }
}

fn warn(new: &Value, _old: Option<&Value>) -> Vec<String> {
    let spec = Place::field_of(new, "spec");
    let headless = spec.field("type").text() == "ClusterIP" && spec.field("clusterIP").text() == "None";
    let (external_name, external_ips) = (is_external_name(spec.value()), !spec.field("externalIPs").is_empty());
    let mut warnings = Vec::new();
    let mut warn_if = |wrong: bool, text: &str| warnings.extend(wrong.then(|| text.to_owned()));
    warn_if(
        new.path(&["metadata", "annotations"]).has(TOPOLOGY_HINTS),
        &format!("annotation {TOPOLOGY_HINTS} is deprecated, please use {TOPOLOGY_MODE} instead"),
    );
    warn_if(
        headless && !spec.field("loadBalancerIP").text().is_empty(),
        "spec.loadBalancerIP is ignored for headless services",
    );
    warn_if(headless && external_ips, "spec.externalIPs is ignored for headless services");
    warn_if(
        headless && spec.field("sessionAffinity").text() != "None",
        "spec.SessionAffinity is ignored for headless services",
    );
    warn_if(
        external_ips && !headless && !external_name,
        "spec.externalIPs is deprecated and may no longer be implemented in some clusters",
    );
    warn_if(external_name && external_ips, "spec.externalIPs is ignored when spec.type is \"ExternalName\"");
    warn_if(
        !external_name && !spec.field("externalName").text().is_empty(),
        "spec.externalName is ignored when spec.type is not \"ExternalName\"",
    );
    warn_if(
        spec.field("trafficDistribution").text() == "PreferClose",
        "spec.trafficDistribution: \"PreferClose\" is deprecated; use \"PreferSameZone\"",
    );
    for field in ["clusterIPs", "externalIPs"] {
        warnings.extend(spec.field(field).items().filter_map(|item| address::warning(&item)));
    }
    warnings.extend(address::warning(&spec.field("loadBalancerIP")));
    let ranges = spec.field("loadBalancerSourceRanges");
    warnings.extend(ranges.items().flat_map(|range| address::subnet_warnings(&range)));
    warnings
}
