//! EndpointSlice: where the traffic of each service with a selector goes.
//!
//! Every pod that is selected and has an address is an endpoint, with what it can be used for: ready, serving,
//! terminating. How endpoints are spread over slices, with as few writes as possible, is [`arrange`]'s business.
//! Services without a selector are left to whoever gives them endpoints.

use arrange::{Annotations, Backend, Frame, Groups, arrange};
use kinds::{Endpoint, EndpointConditions, EndpointSlice, Node, Object, ObjectReference, Pod, Service, SlicePort};
use object::{Value, json};
use runtime::{Caches, Change, Controller, Plan, Request};
use std::sync::Arc;

pub(crate) mod arrange;
pub(crate) mod backends;
#[cfg(test)]
mod tests;
mod topology;

const MANAGER: &str = "endpointslice-controller.k8s.io";
/// Endpoints in one slice.
const LIMIT: usize = 100;
const ZONE: &str = "topology.kubernetes.io/zone";

pub(crate) fn controller() -> Controller {
    Controller::new("endpointslice-controller")
        .reports_as("endpoint-slice-controller")
        .primary::<Service>()
        .watches_changes::<Pod>(backends::services_of_change)
        .watches_changes::<Node>(services_of_node)
        .watches::<EndpointSlice>(|slice, _| arrange::service_of(slice, MANAGER).into_iter().collect())
        .plans(|caches, request| observe(caches, request).map(|observed| plan(&observed)).unwrap_or_default())
}

/// A node matters to the services of its pods when it comes, goes, or moves to another zone; and to those that share
/// their endpoints out by zone when it adds something else to its own.
fn services_of_node(change: &Change<Node>, caches: &Caches) -> Vec<kinds::Key> {
    let added = |node: &Option<Arc<Object<Node>>>| node.as_ref().and_then(|node| topology::counted(node));
    let mut keys = Vec::new();
    if added(&change.old) != added(&change.new) {
        let services = caches.of::<Service>().all();
        keys.extend(services.iter().filter(|service| topology::is_wanted(service)).map(|service| service.key()));
    }
    let zone = |node: &Arc<Object<Node>>| node.metadata.labels.get(ZONE).cloned();
    if let (Some(old), Some(new)) = (&change.old, &change.new)
        && zone(old) == zone(new)
    {
        return keys;
    }
    let Some(node) = change.sides().next() else { return keys };
    let pods = caches.of::<Pod>().by("node", &node.metadata.name);
    keys.extend(pods.iter().flat_map(|pod| backends::services_of_pod(pod, caches)));
    keys
}

/// A pod that is selected, with its node if that is known.
type Selected = (Arc<Object<Pod>>, Option<Arc<Object<Node>>>);

struct Observed {
    service: Arc<Object<Service>>,
    pods: Vec<Selected>,
    slices: Vec<Arc<Object<EndpointSlice>>>,
    /// For services that share their endpoints out by zone.
    shares: Option<topology::Shares>,
}

fn observe(caches: &Caches, request: &Request) -> Option<Observed> {
    let service = caches.of::<Service>().get(&request.key)?;
    if service.spec.kind == "ExternalName" || !service.has_selector() {
        return None;
    }
    let nodes = caches.of::<Node>();
    let pods = backends::selected(caches, &service).map(|pod| {
        let node = nodes.named("", &pod.spec.node_name);
        (pod, node)
    });
    let slices = arrange::slices_of(caches, &request.key, MANAGER);
    let shares = topology::is_wanted(&service).then(|| topology::shares(&nodes.all())).flatten();
    Some(Observed { pods: pods.collect(), slices, shares, service })
}

fn plan(observed: &Observed) -> Plan {
    let Observed { service, pods, slices, shares } = observed;
    let types = address_types(service);
    let mut backends = Vec::new();
    for (pod, node) in pods {
        // A pod on a node that is gone is about to go too; only those who ask for whatever there is still get it.
        if !backends::has_address(pod) || node.is_none() && !service.spec.publish_not_ready_addresses {
            continue;
        }
        let ports = ports(service, pod);
        for address_type in &types {
            let addresses = backends::addresses(pod, address_type);
            if !addresses.is_empty() {
                let endpoint = endpoint(service, pod, node.as_deref(), addresses);
                let trigger = pod.condition("Ready").and_then(|ready| ready.last_transition_time);
                backends.push((*address_type, ports.clone(), Backend { endpoint, trigger }));
            }
        }
    }
    let mut labels = service.metadata.labels.clone();
    labels.remove(arrange::HEADLESS);
    if service.is_headless() {
        labels.insert(arrange::HEADLESS.into(), String::new());
    }
    let frame = Frame::new(service, labels, MANAGER, Annotations::Trigger(service.metadata.creation_timestamp));
    let (mut plan, mut told) = (Plan::default(), Plan::default());
    for address_type in types.iter().filter(|_| topology::is_wanted(service)) {
        let mine = backends.iter_mut().filter(|(own, ..)| own == address_type);
        let endpoints = mine.map(|(_, _, backend)| &mut backend.endpoint).collect();
        topology::hint(&mut told, service, (address_type, shares.as_ref()), endpoints, slices);
    }
    let mut groups = Groups::default();
    for (address_type, ports, backend) in backends {
        groups.add(address_type, &ports, backend);
    }
    arrange(&mut plan, &frame, groups, slices, &types, LIMIT);
    // Said again only when something has changed.
    if !plan.writes.is_empty() {
        plan.events.extend(told.events);
    }
    plan
}

/// The families that a service has addresses in; where it does not say, that of its own, or both.
fn address_types(service: &Service) -> Vec<&'static str> {
    let families = &service.spec.ip_families;
    let all = ["IPv4", "IPv6"];
    let named: Vec<_> = all.into_iter().filter(|family| families.iter().any(|name| name == family)).collect();
    match backends::family(&service.spec.cluster_ip) {
        _ if !named.is_empty() => named,
        Some((family, _)) => vec![family],
        None => all.to_vec(),
    }
}

fn ports(service: &Service, pod: &Pod) -> Vec<SlicePort> {
    let ports = backends::ports(service, pod).map(|(port, number)| SlicePort {
        name: Some(port.name.clone()),
        protocol: Some(backends::protocol(&port.protocol).to_owned()),
        port: Some(number),
        app_protocol: port.app_protocol.clone(),
    });
    ports.collect()
}

fn endpoint(service: &Service, pod: &Pod, node: Option<&Object<Node>>, addresses: Vec<String>) -> Endpoint {
    let (serving, terminating) = (pod.is_ready(), pod.metadata.is_being_deleted());
    let ready = service.spec.publish_not_ready_addresses || serving && !terminating;
    let zone = node.map(|node| node.metadata.label(ZONE)).filter(|zone| !zone.is_empty()).map(str::to_owned);
    let node_name = Some(pod.spec.node_name.clone()).filter(|name| !name.is_empty());
    Endpoint {
        addresses,
        conditions: EndpointConditions { ready: Some(ready), serving: Some(serving), terminating: Some(terminating) },
        hostname: backends::hostname(service, pod).map(str::to_owned),
        target_ref: Some(reference(pod)),
        hints: hints(service, zone.as_deref(), node_name.as_deref()).filter(|_| ready),
        node_name,
        zone,
    }
}

pub(crate) fn reference(pod: &Pod) -> ObjectReference {
    let kinds::Meta { namespace, name, uid, .. } = pod.metadata.clone();
    ObjectReference { kind: "Pod".into(), namespace, name, uid, ..ObjectReference::default() }
}

/// From where the endpoint is to be used, if the service wants its traffic to stay near.
fn hints(service: &Service, zone: Option<&str>, node: Option<&str>) -> Option<Value> {
    if topology::is_wanted(service) {
        return None;
    }
    let same_node = match service.spec.traffic_distribution.as_deref()? {
        "PreferClose" | "PreferSameZone" => false,
        "PreferSameNode" => true,
        _ => return None,
    };
    let mut hints = object::Map::new();
    if let Some(zone) = zone {
        hints.insert("forZones", json!([{ "name": zone }]));
    }
    if let Some(node) = node.filter(|_| same_node) {
        hints.insert("forNodes", json!([{ "name": node }]));
    }
    (!hints.is_empty()).then_some(Value::Object(hints))
}
