//! What a pod contributes to a service: addresses, ports, a name; and which services a pod concerns.

use kinds::{Key, Object, Pod, Service, ServicePort};
use runtime::{Caches, Change};
use std::net::IpAddr;
use std::sync::Arc;

/// The pods that a service selects.
pub(crate) fn selected(caches: &Caches, service: &Service) -> impl Iterator<Item = Arc<Object<Pod>>> {
    let pods = caches.of::<Pod>().in_namespace(&service.metadata.namespace);
    pods.into_iter().filter(|pod| service.selects(&pod.metadata.labels))
}

/// The services that select a pod.
pub(crate) fn services_of_pod(pod: &Pod, caches: &Caches) -> Vec<Key> {
    let services = caches.of::<Service>().in_namespace(&pod.metadata.namespace);
    services.iter().filter(|service| service.selects(&pod.metadata.labels)).map(|service| service.key()).collect()
}

/// The services that a pod concerned or concerns now. Most changes of pods concern none.
pub(crate) fn services_of_change(change: &Change<Pod>, caches: &Caches) -> Vec<Key> {
    if let (Some(old), Some(new)) = (&change.old, &change.new)
        && facts(old) == facts(new)
    {
        return Vec::new();
    }
    change.sides().flat_map(|pod| services_of_pod(pod, caches)).collect()
}

/// Everything of a pod that endpoints are made of.
fn facts(pod: &Pod) -> impl PartialEq {
    let (kinds::PodSpec { node_name, hostname, .. }, subdomain) = (&pod.spec, &pod.spec.subdomain);
    let meta = &pod.metadata;
    let state = (meta.is_being_deleted(), pod.is_ready(), pod.is_finished());
    (&meta.uid, &meta.labels, node_name, hostname, subdomain, &pod.status.pod_ip, &pod.status.pod_ips, state)
}

/// Whether there is somebody at its address, or will be.
pub(crate) fn has_address(pod: &Pod) -> bool {
    !pod.is_finished() && (!pod.status.pod_ip.is_empty() || !pod.status.pod_ips.is_empty())
}

/// The family of an address, and the address as it is usually written.
pub(crate) fn family(address: &str) -> Option<(&'static str, String)> {
    let address: IpAddr = address.parse().ok()?;
    Some((if address.is_ipv6() { "IPv6" } else { "IPv4" }, address.to_string()))
}

/// The addresses of a pod in a family.
pub(crate) fn addresses(pod: &Pod, wanted: &str) -> Vec<String> {
    let addresses = pod.status.pod_ips.iter().filter_map(|address| family(&address.ip));
    addresses.filter(|(family, _)| *family == wanted).map(|(_, address)| address).collect()
}

/// The name by which a pod can be found beneath the service.
pub(crate) fn hostname<'a>(service: &Service, pod: &'a Pod) -> Option<&'a str> {
    let is_named = !pod.spec.hostname.is_empty() && pod.spec.subdomain == service.metadata.name;
    is_named.then_some(pod.spec.hostname.as_str())
}

/// The ports of a service that a pod has, and their numbers there.
pub(crate) fn ports<'a>(service: &'a Service, pod: &Pod) -> impl Iterator<Item = (&'a ServicePort, i32)> {
    service.spec.ports.iter().filter_map(|port| Some((port, number(port, pod)?)))
}

fn number(port: &ServicePort, pod: &Pod) -> Option<i32> {
    let Some(name) = port.target_port.as_str() else {
        return Some(port.target_port.as_i64().and_then(|number| i32::try_from(number).ok()).unwrap_or(port.port));
    };
    let sidecars = pod.spec.init_containers.iter().filter(|container| container.is_sidecar());
    let mut ports = pod.spec.containers.iter().chain(sidecars).flat_map(|container| &container.ports);
    let found = ports.find(|own| own.name == name && protocol(&own.protocol) == protocol(&port.protocol));
    found.map(|own| own.container_port)
}

pub(crate) fn protocol(text: &str) -> &str {
    if text.is_empty() { "TCP" } else { text }
}
