//! Services lead to the pods they select, in both forms in which that is said.

use super::{Gaps, Observed};
use kinds::{EndpointSlice, EndpointSubset, Endpoints, Labels, Object, ObjectReference, Pod, Service, ServicePort};
use object::{Edit, View};

/// Endpoints with this label are shown as they are, and not as slices.
const SKIPS_MIRROR: &str = "endpointslice.kubernetes.io/skip-mirror";

/// An address: where, whose, and whether it is ready.
type Address<'a> = (&'a str, &'a str, bool);

pub(super) fn service(all: &Observed, service: &Object<Service>, gaps: &mut Gaps) {
    balancer(service, gaps);
    if !service.has_selector() {
        return mirrored(all, service, gaps);
    }
    let (namespace, name) = (&service.metadata.namespace, &service.metadata.name);
    let pods: Vec<_> = selected(all, namespace, &service.spec.selector).collect();
    let addresses: Vec<Address> = pods.iter().map(|pod| address(pod)).collect();
    let ports: Vec<i32> = match pods.first() {
        Some(pod) => service.spec.ports.iter().filter_map(|port| number(port, pod)).collect(),
        None => Vec::new(),
    };
    let (addresses, ports) = in_order(addresses, ports);
    gaps.same("its slices", (addresses.clone(), ports.clone()), in_slices(all, namespace, name));
    let endpoints = all.named::<Endpoints>(namespace, name);
    gaps.same("its endpoints", Some((addresses, ports)), endpoints.map(|endpoints| in_endpoints(endpoints)));
}

/// A service has the address of a load balancer if it asks for one, and is then not let go of without a word.
fn balancer(service: &Object<Service>, gaps: &mut Gaps) {
    let is_balanced = service.spec.kind == "LoadBalancer";
    let status = service.json().remove("status");
    let has_address = !status.at("loadBalancer").items("ingress").is_empty();
    let is_held = service.metadata.has_finalizer("service.kubernetes.io/load-balancer-cleanup");
    gaps.same("whether it has a load balancer, and is held", (is_balanced, is_balanced), (has_address, is_held));
}

/// Where a service without a selector leads is what somebody wrote down, unless that is not to be mirrored.
fn mirrored(all: &Observed, service: &Object<Service>, gaps: &mut Gaps) {
    let (namespace, name) = (&service.metadata.namespace, &service.metadata.name);
    let endpoints = all.named::<Endpoints>(namespace, name);
    if endpoints.is_some_and(|endpoints| endpoints.metadata.labels.contains_key(SKIPS_MIRROR)) {
        return;
    }
    let wanted = endpoints.map_or_else(Default::default, |endpoints| {
        let (addresses, ports) = in_endpoints(endpoints);
        if addresses.is_empty() { Default::default() } else { (addresses, ports) }
    });
    gaps.same("its mirrored slices", wanted, in_slices(all, namespace, name));
}

/// Endpoints that a loop has made are of a service that is there.
pub(super) fn endpoints(all: &Observed, endpoints: &Object<Endpoints>, gaps: &mut Gaps) {
    let meta = &endpoints.metadata;
    let is_made = meta.labels.contains_key("endpoints.kubernetes.io/managed-by");
    gaps.expect("has no service", !is_made || all.named::<Service>(&meta.namespace, &meta.name).is_some());
}

fn selected<'a>(all: &'a Observed, namespace: &str, selector: &Labels) -> impl Iterator<Item = &'a Object<Pod>> {
    all.of::<Pod>().iter().filter(move |pod| {
        let meta = &pod.metadata;
        let has_labels = selector.iter().all(|(key, value)| meta.labels.get(key) == Some(value));
        meta.namespace == namespace && has_labels && !pod.is_finished() && !pod.status.pod_ip.is_empty()
    })
}

fn address(pod: &Object<Pod>) -> Address<'_> {
    (&pod.status.pod_ip, &pod.metadata.uid, pod.is_ready())
}

fn whose(target: &Option<ObjectReference>) -> &str {
    target.as_ref().map_or("", |target| target.uid.as_str())
}

fn number(port: &ServicePort, pod: &Pod) -> Option<i32> {
    match port.target_port.as_str() {
        None => port.target_port.as_i64().and_then(|number| i32::try_from(number).ok()),
        Some(name) => {
            let mut ports = pod.spec.containers.iter().flat_map(|container| &container.ports);
            ports.find(|own| own.name == name).map(|own| own.container_port)
        }
    }
}

fn in_slices<'a>(all: &'a Observed, namespace: &str, service: &str) -> (Vec<Address<'a>>, Vec<i32>) {
    let (mut addresses, mut ports) = (Vec::new(), Vec::new());
    let own = all.of::<EndpointSlice>().iter().filter(|slice| {
        let meta = &slice.metadata;
        meta.namespace == namespace && meta.label("kubernetes.io/service-name") == service
    });
    for slice in own.filter(|slice| !slice.endpoints.is_empty()) {
        for endpoint in &slice.endpoints {
            let ready = endpoint.conditions.ready.unwrap_or(true);
            addresses.extend(endpoint.addresses.iter().map(|ip| (ip.as_str(), whose(&endpoint.target_ref), ready)));
        }
        ports.extend(slice.ports.iter().filter_map(|port| port.port));
    }
    in_order(addresses, ports)
}

fn in_order(mut addresses: Vec<Address<'_>>, mut ports: Vec<i32>) -> (Vec<Address<'_>>, Vec<i32>) {
    addresses.sort_unstable();
    ports.sort_unstable();
    ports.dedup();
    (addresses, ports)
}

fn in_endpoints(endpoints: &Endpoints) -> (Vec<Address<'_>>, Vec<i32>) {
    let (mut addresses, mut ports) = (Vec::new(), Vec::new());
    let used = |subset: &&EndpointSubset| subset.addresses.len() + subset.not_ready_addresses.len() > 0;
    for subset in endpoints.subsets.iter().filter(used) {
        for (of, ready) in [(&subset.addresses, true), (&subset.not_ready_addresses, false)] {
            addresses.extend(of.iter().map(|address| (address.ip.as_str(), whose(&address.target_ref), ready)));
        }
        ports.extend(subset.ports.iter().map(|port| port.port));
    }
    in_order(addresses, ports)
}
