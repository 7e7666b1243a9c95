//! Cluster addresses and node ports of services: handed out, checked, and given back.
//!
//! Each address in use is an `IPAddress` object and each node port a record beside it. Both are written in the same
//! transaction as the service, so nothing is ever handed out twice or lost.

use super::{NONE, Operation, Plugin, Review};
use bytes::Bytes;
use object::field::{Error, Path};
use object::{ApiError, Edit, Value, View, json};
use registry::Write;
use registry::strategy::{address, service};
use std::collections::BTreeSet;
use std::net::IpAddr;

pub(super) const PLUGIN: Plugin =
    Plugin { name: "ServiceAddresses", allocate: Some(allocate), release: Some(release), ..NONE };

const ADDRESSES: &str = "ipaddresses.networking.k8s.io";
const RANGES: &str = "servicecidrs.networking.k8s.io";
/// Not served: it only keeps two services from having one port.
const PORTS: &str = "nodeports";
const FIRST_PORT: u16 = 30_000;
const LAST_PORT: u16 = 32_767;

fn allocate(review: &mut Review<'_>) -> Result<(), ApiError> {
    if review.table() != "services" || !review.subresource().is_empty() || review.operation == Operation::Delete {
        return Ok(());
    }
    let mut errors = Vec::new();
    let held = Held::of(review.old);
    default_families(review, &mut errors);
    if errors.is_empty() {
        allocate_addresses(review, &held, &mut errors);
    }
    if errors.is_empty() {
        allocate_ports(review, &held, &mut errors);
    }
    if !errors.is_empty() {
        return Err(ApiError::invalid("", "Service", review.name(), &errors));
    }
    give_back(review, &held, &Held::of(Some(review.object)));
    Ok(())
}

fn release(review: &mut Review<'_>) -> Result<(), ApiError> {
    if review.table() == "services" && review.subresource().is_empty() {
        give_back(review, &Held::of(review.old), &Held::default());
    }
    Ok(())
}

/// What a service has.
#[derive(Debug, Default)]
struct Held {
    addresses: BTreeSet<String>,
    ports: BTreeSet<i64>,
}

impl Held {
    fn of(service: Option<&Value>) -> Self {
        let Some(spec) = service.map(|service| service.at("spec")) else { return Held::default() };
        if service::is_external_name(spec) {
            return Held::default();
        }
        let addresses = spec.items("clusterIPs").iter().filter_map(Value::as_str);
        let ports = spec.items("ports").iter().filter_map(|port| port.int("nodePort"));
        Held {
            addresses: addresses.filter(|address| !matches!(*address, "" | "None")).map(str::to_owned).collect(),
            ports: ports.chain(spec.int("healthCheckNodePort")).filter(|port| *port != 0).collect(),
        }
    }
}

fn give_back(review: &mut Review<'_>, before: &Held, after: &Held) {
    let addresses = before.addresses.difference(&after.addresses).map(|address| format!("{ADDRESSES}/{address}"));
    let ports = before.ports.difference(&after.ports).map(|port| format!("{PORTS}/{port}"));
    for key in addresses.chain(ports).collect::<Vec<_>>() {
        if let Some(record) = review.ctx.api.registry.cache.get(key.as_bytes()) {
            review.also(Write { key: key.into(), expected: Some(record.revision), body: None, ttl: None });
        }
    }
}

/// The ranges that addresses come from, those of IPv4 first.
fn ranges(review: &Review<'_>) -> Vec<(IpAddr, u32)> {
    let snapshot = review.ctx.api.registry.cache.snapshot(RANGES);
    let mut ranges: Vec<_> = snapshot
        .under(b"", b"")
        .map(|object| object.decode())
        .filter(|range| !range.at("metadata").has("deletionTimestamp"))
        .flat_map(|range| {
            let texts = range.at("spec").items("cidrs").iter().filter_map(Value::as_str);
            texts.filter_map(address::parse_subnet).collect::<Vec<_>>()
        })
        .collect();
    ranges.sort_by_key(|(address, _)| address.is_ipv6());
    ranges
}

fn family(address: IpAddr) -> &'static str {
    if address.is_ipv4() { "IPv4" } else { "IPv6" }
}

/// Which families a service has addresses of, where it does not say so itself.
fn default_families(review: &mut Review<'_>, errors: &mut Vec<Error>) {
    let configured: BTreeSet<&str> = ranges(review).into_iter().map(|(address, _)| family(address)).collect();
    let spec = review.object.object_or_new("spec");
    if service::is_external_name(spec) {
        return;
    }
    let path = Path::new("spec");
    let policy = spec.text("ipFamilyPolicy").to_owned();
    if policy == "RequireDualStack" && configured.len() < 2 {
        let detail = "this cluster is not configured for dual-stack services";
        errors.push(Error::invalid(&path.child("ipFamilyPolicy"), policy.as_str(), detail));
    }
    let mut families: Vec<String> =
        spec.items("ipFamilies").iter().filter_map(Value::as_str).map(str::to_owned).collect();
    for (at, wanted) in families.iter().enumerate() {
        if !configured.contains(wanted.as_str()) {
            let path = path.child("ipFamilies").index(at);
            errors.push(Error::invalid(&path, wanted.as_str(), "not configured on this cluster"));
        }
    }
    if families.is_empty() {
        let given = spec.items("clusterIPs").iter().filter_map(Value::as_str).chain([spec.text("clusterIP")]);
        let given: Vec<&str> = given.filter_map(address::parse).map(family).collect();
        let first = given.first().copied().or(configured.iter().next().copied()).unwrap_or("IPv4");
        families.push(first.to_owned());
    }
    if matches!(policy.as_str(), "PreferDualStack" | "RequireDualStack") && families.len() < 2 {
        families
            .extend(configured.iter().find(|family| !families.iter().any(|f| f == *family)).map(|f| (*f).to_owned()));
    }
    spec.set("ipFamilies", families);
    spec.set_default("ipFamilyPolicy", "SingleStack");
}

fn allocate_addresses(review: &mut Review<'_>, held: &Held, errors: &mut Vec<Error>) {
    let spec = review.object.at("spec");
    if service::is_external_name(spec) || service::is_headless(spec) {
        return;
    }
    let ranges = ranges(review);
    let families: Vec<String> = spec.items("ipFamilies").iter().filter_map(Value::as_str).map(str::to_owned).collect();
    let mut addresses: Vec<String> =
        spec.items("clusterIPs").iter().filter_map(Value::as_str).map(str::to_owned).collect();
    if addresses.is_empty() && !spec.text("clusterIP").is_empty() {
        addresses.push(spec.text("clusterIP").to_owned());
    }
    addresses.truncate(families.len());
    for (at, wanted) in families.iter().enumerate() {
        let of_family: Vec<_> = ranges.iter().filter(|(address, _)| family(*address) == wanted).copied().collect();
        let found = match addresses.get(at).filter(|address| !address.is_empty()) {
            Some(address) if held.addresses.contains(address) => continue,
            Some(address) => claim(review, address, &of_family),
            None => choose(review, &of_family),
        };
        match found {
            Ok(address) => {
                record_address(review, &address, wanted);
                if at < addresses.len() { addresses[at] = address } else { addresses.push(address) }
            }
            Err(why) => {
                let value = json!(review.object.at("spec").at("clusterIPs"));
                errors.push(Error::invalid(&Path::new("spec.clusterIPs"), value, why));
            }
        }
    }
    let spec = review.object.object_or_new("spec");
    spec.set("clusterIP", addresses.first().cloned().unwrap_or_default());
    spec.set("clusterIPs", addresses);
}

/// An address that was asked for, if it can be had.
fn claim(review: &Review<'_>, text: &str, ranges: &[(IpAddr, u32)]) -> Result<String, String> {
    let failed = |why: &str| Err(format!("failed to allocate IP {text}: {why}"));
    let Some(asked) = address::parse(text) else { return failed("the provided IP is not valid") };
    let inside = |(network, length): &&(IpAddr, u32)| {
        network.is_ipv4() == asked.is_ipv4() && address::network(asked, *length) == address::network(*network, *length)
    };
    if !ranges.iter().any(|range| inside(&range)) {
        let texts: Vec<_> = ranges.iter().map(|(network, length)| format!("{network}/{length}")).collect();
        let why = format!(
            "the provided network does not match the current range: the range of valid IPs is {}",
            texts.join(", ")
        );
        return failed(&why);
    }
    if is_taken(review, &asked.to_string()) {
        return failed("provided IP is already allocated");
    }
    Ok(asked.to_string())
}

fn is_taken(review: &Review<'_>, address: &str) -> bool {
    review.ctx.api.registry.cache.get(format!("{ADDRESSES}/{address}").as_bytes()).is_some()
}

/// Any free address. The lower part of a range is left to those who ask for an address, as long as there are others.
fn choose(review: &Review<'_>, ranges: &[(IpAddr, u32)]) -> Result<String, String> {
    for (network, length) in ranges {
        let (first, size) = numbers(*network, *length);
        if size < 3 {
            continue;
        }
        // Neither the address of the network nor the last one.
        let usable = size - 2;
        let reserved = (usable / 16).clamp(16, 256).min(usable - 1);
        let upper = usable - reserved;
        let start = u128::from(review.ctx.api.ambient.random.below(u64::try_from(upper).unwrap_or(u64::MAX)));
        let offsets = (0..upper).map(|step| reserved + (start + step) % upper).chain(0..reserved);
        const MAX_PROBES: usize = 1 << 20;
        for offset in offsets.take(MAX_PROBES) {
            let address = from_number(first + 1 + offset, network.is_ipv4()).to_string();
            if !is_taken(review, &address) {
                return Ok(address);
            }
        }
    }
    Err("failed to allocate a serviceIP: range is full".to_owned())
}

/// The first address of a network as a number, and how many there are.
fn numbers(network: IpAddr, length: u32) -> (u128, u128) {
    match address::network(network, length) {
        IpAddr::V4(address) => (u128::from(u32::from(address)), 1 << (32 - length.min(32))),
        IpAddr::V6(address) => (u128::from(address), 1 << (128 - length.clamp(64, 128))),
    }
}

fn from_number(number: u128, v4: bool) -> IpAddr {
    match u32::try_from(number) {
        Ok(number) if v4 => IpAddr::V4(number.into()),
        _ => IpAddr::V6(number.into()),
    }
}

fn record_address(review: &mut Review<'_>, address: &str, family: &str) {
    let object = json!({
        "metadata": {
            "name": address, "uid": crate::naming::uid(&review.ctx.api.ambient.random),
            "creationTimestamp": review.ctx.now(),
            "labels": {
                "ipaddress.kubernetes.io/ip-family": family, "ipaddress.kubernetes.io/managed-by": "ipallocator.k8s.io",
            },
        },
        "spec": {
            "parentRef": {
                "resource": "services", "namespace": review.namespace(), "name": review.name(),
            },
        },
    });
    record(review, format!("{ADDRESSES}/{address}").into(), "networking.k8s.io/v1", "IPAddress", &object);
}

fn record(review: &mut Review<'_>, key: Bytes, api_version: &str, kind: &str, object: &Value) {
    let Some(fields) = object.as_object() else { return };
    let body = registry::encode(api_version, kind, fields);
    review.also(Write { key, expected: None, body: Some(body), ttl: None });
}

fn allocate_ports(review: &mut Review<'_>, held: &Held, errors: &mut Vec<Error>) {
    let spec = review.object.at("spec").clone();
    let wants_ports = match spec.text("type") {
        "NodePort" => true,
        "LoadBalancer" => spec.at("allocateLoadBalancerNodePorts").as_bool().unwrap_or(true),
        _ => false,
    };
    // Ports of one service may share a number if their protocols differ.
    let mut own: Vec<(i64, String)> = Vec::new();
    let mut fresh = BTreeSet::new();
    let mut ports = spec.items("ports").to_vec();
    for (at, port) in ports.iter_mut().enumerate() {
        let path = Path::new("spec.ports").index(at).child("nodePort");
        let protocol = port.text("protocol").to_owned();
        let asked = port.int("nodePort").unwrap_or(0);
        let number = match asked {
            0 if !wants_ports => continue,
            0 => match own.iter().find(|(_, other)| *other != protocol && shares(port, &spec, at)) {
                Some((number, _)) => *number,
                None => match free_port(review, &fresh) {
                    Some(number) => number,
                    None => {
                        errors.push(Error::invalid(&path, 0, "failed to allocate a nodePort: range is full"));
                        continue;
                    }
                },
            },
            number if held.ports.contains(&number) || fresh.contains(&number) => number,
            number => match check_port(review, number) {
                Ok(()) => number,
                Err(why) => {
                    errors.push(Error::invalid(&path, number, why));
                    continue;
                }
            },
        };
        if !held.ports.contains(&number) && fresh.insert(number) {
            record_port(review, number);
        }
        own.push((number, protocol));
        port.set("nodePort", number);
    }
    if spec.has("ports") {
        review.object.object_or_new("spec").set("ports", ports);
    }
    allocate_health_port(review, held, &fresh, errors);
}

/// Whether a port has the number of another port of the same service, in another protocol: DNS over TCP and UDP.
fn shares(port: &Value, spec: &Value, at: usize) -> bool {
    spec.items("ports")[..at]
        .iter()
        .any(|other| other.int("port") == port.int("port") && other.text("protocol") != port.text("protocol"))
}

fn allocate_health_port(review: &mut Review<'_>, held: &Held, fresh: &BTreeSet<i64>, errors: &mut Vec<Error>) {
    let spec = review.object.at("spec");
    if !service::needs_health_check(spec) {
        return;
    }
    let path = Path::new("spec.healthCheckNodePort");
    let number = match spec.int("healthCheckNodePort").unwrap_or(0) {
        0 => free_port(review, fresh),
        number if held.ports.contains(&number) => return,
        number => match check_port(review, number) {
            Ok(()) => Some(number),
            Err(why) => return errors.push(Error::invalid(&path, number, why)),
        },
    };
    match number {
        Some(number) => {
            record_port(review, number);
            review.object.object_or_new("spec").set("healthCheckNodePort", number);
        }
        None => errors.push(Error::invalid(&path, 0, "failed to allocate a nodePort: range is full")),
    }
}

fn port_is_taken(review: &Review<'_>, number: i64) -> bool {
    review.ctx.api.registry.cache.get(format!("{PORTS}/{number}").as_bytes()).is_some()
}

fn check_port(review: &Review<'_>, number: i64) -> Result<(), String> {
    if !(i64::from(FIRST_PORT)..=i64::from(LAST_PORT)).contains(&number) {
        return Err(format!(
            "provided port is not in the valid range. The range of valid ports is {FIRST_PORT}-{LAST_PORT}"
        ));
    }
    if port_is_taken(review, number) {
        return Err("provided port is already allocated".to_owned());
    }
    Ok(())
}

fn free_port(review: &Review<'_>, fresh: &BTreeSet<i64>) -> Option<i64> {
    let size = u64::from(LAST_PORT - FIRST_PORT) + 1;
    let start = review.ctx.api.ambient.random.below(size);
    let numbers = (0..size).map(|step| i64::from(FIRST_PORT) + i64::try_from((start + step) % size).unwrap_or(0));
    numbers.into_iter().find(|number| !fresh.contains(number) && !port_is_taken(review, *number))
}

fn record_port(review: &mut Review<'_>, number: i64) {
    let owner = format!("{}/{}", review.namespace(), review.name());
    let object = json!({ "metadata": { "name": number.to_string() }, "service": owner });
    record(review, format!("{PORTS}/{number}").into(), "setpoint/v1", "NodePort", &object);
}
