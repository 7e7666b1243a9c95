//! Endpoints: the same as the slices of a service, in the older form that some clients still read.
//!
//! There is one object for a service, in the first of its families, with at most a thousand addresses. Addresses with
//! the same ports are together in a subset, and everything is in order, so that equal means equal.

use crate::endpoint_slice::arrange::{HEADLESS, TRIGGER, reference_json, without_nulls};
use crate::endpoint_slice::{backends, reference};
use kinds::{EndpointAddress, EndpointSubset, Endpoints, EndpointsPort, Labels, Meta, Object, Pod, Service, Time};
use object::{Edit, Value, json};
use runtime::{Caches, Change, Controller, Note, Plan, Request};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

const MANAGED_BY: &str = "endpoints.kubernetes.io/managed-by";
const NAME: &str = "endpoint-controller";
const OVER_CAPACITY: &str = "endpoints.kubernetes.io/over-capacity";
const LEADER: &str = "control-plane.alpha.kubernetes.io/leader";
/// Addresses in one object.
const LIMIT: usize = 1000;

pub(crate) fn controller() -> Controller {
    Controller::new(NAME)
        .primary::<Service>()
        .watches_changes::<Pod>(backends::services_of_change)
        .watches_changes::<Endpoints>(services_of_endpoints)
        .plans(|caches, request| plan(&observe(caches, request)))
}

/// Endpoints of services are looked at whenever they change; those that nobody but this loop can have left behind, too.
fn services_of_endpoints(change: &Change<Endpoints>, caches: &Caches) -> Vec<kinds::Key> {
    let Some(endpoints) = change.sides().last() else { return Vec::new() };
    let is_own = endpoints.metadata.label(MANAGED_BY) == NAME;
    let key = endpoints.key();
    if is_own || caches.of::<Service>().get(&key).is_some() { vec![key] } else { Vec::new() }
}

struct Observed {
    service: Option<Arc<Object<Service>>>,
    pods: Vec<Arc<Object<Pod>>>,
    endpoints: Option<Arc<Object<Endpoints>>>,
}

fn observe(caches: &Caches, request: &Request) -> Observed {
    let service = caches.of::<Service>().get(&request.key);
    let pods = service.iter().flat_map(|service| backends::selected(caches, service)).collect();
    Observed { pods, endpoints: caches.of::<Endpoints>().get(&request.key), service }
}

fn plan(observed: &Observed) -> Plan {
    let mut plan = Plan::default();
    match (&observed.service, &observed.endpoints) {
        (None, Some(endpoints)) if !endpoints.metadata.annotations.contains_key(LEADER) => {
            plan.delete(endpoints);
        }
        (Some(service), current) if service.has_selector() && service.spec.kind != "ExternalName" => {
            keep(&mut plan, service, &observed.pods, current.as_deref());
        }
        _ => {}
    }
    plan
}

fn keep(plan: &mut Plan, service: &Object<Service>, pods: &[Arc<Object<Pod>>], current: Option<&Object<Endpoints>>) {
    let mut packer = Packer::default();
    pods.iter().for_each(|pod| packer.add(service, pod));
    let trigger = packer.trigger(service, current);
    let mut subsets = packer.subsets();
    let over_capacity = truncate(&mut subsets);
    let labels = labels(service);
    let name = &service.metadata.name;
    let Meta { namespace, .. } = &service.metadata;
    if let Some(current) = current {
        let is_marked = current.metadata.annotations.contains_key(OVER_CAPACITY);
        let is_right = current.subsets == subsets && current.metadata.labels == labels && is_marked == over_capacity;
        if !is_right {
            let object = filled(current.json(), &labels, &subsets, trigger, over_capacity);
            let message = format!("Failed to update endpoint {namespace}/{name}: {{error}}");
            plan.update(current, object).on_failure(Note::warning(current, "FailedToUpdateEndpoint", message));
        }
    } else if !service.metadata.is_being_deleted() {
        let object = json!({ "metadata": { "name": name, "namespace": namespace } });
        let message = format!("Failed to create endpoint for service {namespace}/{name}: {{error}}");
        plan.create::<Endpoints>(filled(object, &labels, &subsets, trigger, over_capacity)).on_failure(Note::warning(
            service,
            "FailedToCreateEndpoint",
            message,
        ));
    }
}

fn labels(service: &Service) -> Labels {
    let mut labels = service.metadata.labels.clone();
    labels.remove(HEADLESS);
    if service.is_headless() {
        labels.insert(HEADLESS.into(), String::new());
    }
    labels.insert(MANAGED_BY.into(), NAME.into());
    labels
}

/// What tells one address from another: the address, and whose it is.
type Address = (String, String);

/// For each port, who has it, and whether they are ready. Port none: a service without ports.
#[derive(Default)]
struct Packer {
    addresses: BTreeMap<Address, EndpointAddress>,
    ports: BTreeMap<Option<EndpointsPort>, BTreeMap<Address, bool>>,
    /// When each became as it is.
    triggers: BTreeMap<(Address, bool), Time>,
}

impl Packer {
    fn add(&mut self, service: &Service, pod: &Pod) {
        let publish = service.spec.publish_not_ready_addresses;
        if !backends::has_address(pod) || pod.metadata.is_being_deleted() && !publish {
            return;
        }
        let Some(ip) = backends::addresses(pod, family(service, pod)).into_iter().next() else { return };
        let address = EndpointAddress {
            ip: ip.clone(),
            hostname: backends::hostname(service, pod).unwrap_or_default().to_owned(),
            node_name: Some(pod.spec.node_name.clone()).filter(|name| !name.is_empty()),
            target_ref: Some(reference(pod)),
        };
        let key = (ip, pod.metadata.uid.clone());
        let ready = publish || pod.is_ready();
        if service.spec.ports.is_empty() && service.spec.cluster_ip == "None" {
            self.ports.entry(None).or_default().insert(key.clone(), ready);
        }
        for (port, number) in backends::ports(service, pod) {
            let port = EndpointsPort {
                name: port.name.clone(),
                port: number,
                protocol: backends::protocol(&port.protocol).to_owned(),
                app_protocol: port.app_protocol.clone(),
            };
            self.ports.entry(Some(port)).or_default().insert(key.clone(), ready);
        }
        if let Some(since) = pod.condition("Ready").and_then(|ready| ready.last_transition_time) {
            self.triggers.insert((key.clone(), ready), since);
        }
        self.addresses.insert(key, address);
    }

    /// Ports that the same pods have are in one subset.
    fn subsets(&self) -> Vec<EndpointSubset> {
        let mut together: BTreeMap<&BTreeMap<Address, bool>, Vec<EndpointsPort>> = BTreeMap::new();
        for (port, addresses) in &self.ports {
            together.entry(addresses).or_default().extend(port.clone());
        }
        let of = |keys: &BTreeMap<Address, bool>, wanted: bool| {
            let keys = keys.iter().filter(|(_, ready)| **ready == wanted);
            keys.map(|(key, _)| self.addresses[key].clone()).collect()
        };
        let subsets = together.into_iter().map(|(keys, ports)| EndpointSubset {
            addresses: of(keys, true),
            not_ready_addresses: of(keys, false),
            ports,
        });
        subsets.collect()
    }

    /// When the earliest of what is new happened.
    fn trigger(&self, service: &Service, current: Option<&Object<Endpoints>>) -> Option<Time> {
        let mut known = BTreeSet::new();
        for subset in current.iter().flat_map(|endpoints| &endpoints.subsets) {
            let sides = [(&subset.addresses, true), (&subset.not_ready_addresses, false)];
            for (addresses, ready) in sides {
                known.extend(addresses.iter().map(|address| (key(address), ready)));
            }
        }
        let new = self.triggers.iter().filter(|(key, _)| !known.contains(*key)).map(|(_, since)| *since);
        new.chain(service.metadata.creation_timestamp.filter(|_| current.is_none())).min()
    }
}

fn key(address: &EndpointAddress) -> Address {
    (address.ip.clone(), address.target_ref.as_ref().map(|target| target.uid.clone()).unwrap_or_default())
}

/// The first family of a service; where it does not say, that of its address, or of the pod's.
fn family<'a>(service: &'a Service, pod: &Pod) -> &'a str {
    let of = |address: &str| backends::family(address).map(|(family, _)| family);
    match service.spec.ip_families.first() {
        Some(family) => family,
        None => of(&service.spec.cluster_ip).or_else(|| of(&pod.status.pod_ip)).unwrap_or("IPv4"),
    }
}

/// Leaves at most as many addresses as are allowed: the ready ones rather than the others, and of each subset its
/// share. Tells whether there were more.
fn truncate(subsets: &mut [EndpointSubset]) -> bool {
    let ready: usize = subsets.iter().map(|subset| subset.addresses.len()).sum();
    let others: usize = subsets.iter().map(|subset| subset.not_ready_addresses.len()).sum();
    if ready + others <= LIMIT {
        return false;
    }
    let cuts_ready = ready > LIMIT;
    let (room, total) = if cuts_ready { (LIMIT, ready) } else { (LIMIT - ready, others) };
    let mut left = room;
    for subset in subsets {
        if cuts_ready {
            subset.not_ready_addresses.clear();
        }
        let addresses = if cuts_ready { &mut subset.addresses } else { &mut subset.not_ready_addresses };
        addresses.truncate((addresses.len() * room).div_ceil(total).min(left));
        left -= addresses.len();
    }
    true
}

fn filled(
    mut object: Value,
    labels: &Labels,
    subsets: &[EndpointSubset],
    trigger: Option<Time>,
    over_capacity: bool,
) -> Value {
    let metadata = object.object_or_new("metadata");
    metadata.set("labels", json!(labels));
    let annotations = metadata.object_or_new("annotations");
    annotations.remove(TRIGGER);
    annotations.remove(OVER_CAPACITY);
    if let Some(trigger) = trigger {
        annotations.set(TRIGGER, trigger);
    }
    if over_capacity {
        annotations.set(OVER_CAPACITY, "truncated");
    }
    if *annotations == json!({}) {
        metadata.remove("annotations");
    }
    object.set("subsets", subsets.iter().map(subset_json).collect::<Vec<_>>());
    object
}

fn subset_json(subset: &EndpointSubset) -> Value {
    fn list<T>(items: &[T], write: fn(&T) -> Value) -> Option<Vec<Value>> {
        (!items.is_empty()).then(|| items.iter().map(write).collect())
    }
    without_nulls(json!({
        "addresses": list(&subset.addresses, address_json),
        "notReadyAddresses": list(&subset.not_ready_addresses, address_json),
        "ports": list(&subset.ports, port_json),
    }))
}

fn address_json(address: &EndpointAddress) -> Value {
    without_nulls(json!({
        "ip": address.ip,
        "hostname": Some(&address.hostname).filter(|name| !name.is_empty()),
        "nodeName": address.node_name,
        "targetRef": address.target_ref.as_ref().map(reference_json),
    }))
}

fn port_json(port: &EndpointsPort) -> Value {
    without_nulls(json!({
        "name": Some(&port.name).filter(|name| !name.is_empty()),
        "port": port.port,
        "protocol": port.protocol,
        "appProtocol": port.app_protocol,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{NOW, World};

    fn planned(caches: &Caches, request: &Request) -> Plan {
        plan(&observe(caches, request))
    }

    fn world(spec: &Value) -> World {
        let mut world = World::new();
        let mut service = json!({ "metadata": { "name": "web" }, "spec": spec });
        service["spec"].set_default("selector", json!({ "app": "web" }));
        service["spec"].set_default("clusterIP", "10.0.0.1");
        world.create::<Service>(service);
        world
    }

    fn pod(number: usize, ready: bool, ports: &Value) -> Value {
        let address = format!("10.1.{}.{}", 100 + number / 100, 100 + number % 100);
        json!({
            "metadata": { "name": format!("web-{number:04}"), "uid": format!("u{number}"), "labels": { "app": "web" } },
            "spec": { "nodeName": "n", "containers": [{ "ports": ports }] },
            "status": {
                "podIP": address, "podIPs": [{ "ip": address }],
                "conditions": [{
                    "type": "Ready", "status": if ready { "True" } else { "False" },
                    "lastTransitionTime": "2025-12-31T00:00:00Z",
                }],
            },
        })
    }

    fn two_ports() -> Value {
        json!({ "ports": [
            { "name": "b", "port": 80, "targetPort": 8080, "protocol": "TCP" },
            { "name": "a", "port": 90, "targetPort": "metrics", "protocol": "TCP" },
        ] })
    }

    #[test]
    fn addresses_with_the_same_ports_are_together_and_in_order() {
        let mut world = world(&two_ports());
        let metrics = json!([{ "name": "metrics", "containerPort": 9000, "protocol": "TCP" }]);
        world.create::<Pod>(pod(2, true, &metrics));
        world.create::<Pod>(pod(1, false, &metrics));
        world.create::<Pod>(pod(3, true, &json!([])));
        world.settle("web", &planned);
        let endpoints = world.get::<Endpoints>("web");
        let shown: Vec<_> = endpoints["subsets"]
            .as_array()
            .unwrap()
            .iter()
            .map(|subset| {
                let list = |field: &str, what: &str| -> Vec<String> {
                    let items = subset[field].as_array().into_iter().flatten();
                    items.map(|item| item[what].to_string()).collect()
                };
                (list("addresses", "ip"), list("notReadyAddresses", "ip"), list("ports", "port"))
            })
            .collect();
        let address = |number: usize| format!("\"10.1.100.10{number}\"");
        assert_eq!(
            shown,
            [
                (vec![address(2)], vec![address(1)], vec!["9000".to_owned()]),
                (vec![address(2), address(3)], vec![address(1)], vec!["8080".to_owned()]),
            ]
        );
        assert_eq!(endpoints["metadata"]["labels"], json!({ MANAGED_BY: NAME }));
        assert_eq!(endpoints["metadata"]["annotations"], json!({ TRIGGER: "2025-12-31T00:00:00Z" }));
        assert_eq!(
            endpoints["subsets"][0]["addresses"][0],
            json!({
                "ip": "10.1.100.102", "nodeName": "n",
                "targetRef": { "kind": "Pod", "namespace": "default", "name": "web-0002", "uid": "u2" },
            })
        );
    }

    #[test]
    fn pods_on_their_way_out_are_left_out_unless_asked_for() {
        for (publish, expected) in [(false, 0), (true, 1)] {
            let mut world = world(&json!({ "publishNotReadyAddresses": publish, "clusterIP": "None" }));
            let mut going = pod(1, false, &json!([]));
            going["metadata"]["deletionTimestamp"] = json!(NOW);
            world.create::<Pod>(going);
            world.settle("web", &planned);
            let endpoints = world.get::<Endpoints>("web");
            assert_eq!(endpoints["subsets"].as_array().unwrap().len(), expected);
            assert_eq!(endpoints["metadata"]["labels"][HEADLESS], "");
        }
    }

    #[test]
    fn no_more_than_a_thousand_addresses_are_kept_and_the_ready_ones_first() {
        for (ready, others, expected) in [(900, 50, (900, 50)), (900, 200, (900, 100)), (1200, 10, (1000, 0))] {
            let mut world = world(&two_ports());
            (0..ready + others).for_each(|number| drop(world.create::<Pod>(pod(number, number < ready, &json!([])))));
            world.settle("web", &planned);
            let endpoints = world.get::<Endpoints>("web");
            let count = |field: &str| endpoints["subsets"][0][field].as_array().map_or(0, Vec::len);
            assert_eq!((count("addresses"), count("notReadyAddresses")), expected);
            let marked = &endpoints["metadata"]["annotations"][OVER_CAPACITY];
            assert_eq!(*marked == "truncated", ready + others > LIMIT);
        }
    }

    #[test]
    fn endpoints_go_with_their_service_and_without_a_selector_are_somebody_elses() {
        let mut world = world(&two_ports());
        world.settle("web", &planned);
        world.remove::<Service>("web");
        world.settle("web", &planned);
        assert!(world.names::<Endpoints>().is_empty());
        let mut foreign = World::new();
        foreign.create::<Service>(json!({ "metadata": { "name": "web" }, "spec": {} }));
        foreign.create::<Endpoints>(json!({ "metadata": { "name": "web" } }));
        foreign.settle("web", &planned);
        assert_eq!(foreign.writes, [""; 0]);
    }
}
