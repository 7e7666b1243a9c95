//! Services lead to the pods they select, in both forms in which that is said.

use super::{Gaps, Observed};
use kinds::{EndpointSlice, Endpoints, Labels, Object, ObjectReference, Pod, Service, ServicePort};

/// An address: where, whose, and whether it is ready.
type Address<'a> = (&'a str, &'a str, bool);

pub(super) fn service(all: &Observed, service: &Object<Service>, gaps: &mut Gaps) {
    if !service.has_selector() {
        return;
    }
    let (namespace, name) = (&service.metadata.namespace, &service.metadata.name);
    let pods: Vec<_> = selected(all, namespace, &service.spec.selector).collect();
    let mut addresses: Vec<Address> = pods.iter().map(|pod| address(pod)).collect();
    addresses.sort_unstable();
    let ports: Vec<i32> = match pods.first() {
        Some(pod) => service.spec.ports.iter().filter_map(|port| number(port, pod)).collect(),
        None => Vec::new(),
    };
    gaps.same("its slices", (addresses.clone(), ports.clone()), in_slices(all, namespace, name));
    let endpoints = all.named::<Endpoints>(namespace, name);
    gaps.same("its endpoints", Some((addresses, ports)), endpoints.map(|endpoints| in_endpoints(endpoints)));
}

/// Endpoints that a loop has made are of a service that is there.
pub(super) fn endpoints(all: &Observed, endpoints: &Object<Endpoints>, gaps: &mut Gaps) {
    let meta = &endpoints.metadata;
    gaps.expect("has no service", all.named::<Service>(&meta.namespace, &meta.name).is_some());
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
    addresses.sort_unstable();
    ports.dedup();
    (addresses, ports)
}

fn in_endpoints(endpoints: &Endpoints) -> (Vec<Address<'_>>, Vec<i32>) {
    let (mut addresses, mut ports) = (Vec::new(), Vec::new());
    for subset in &endpoints.subsets {
        for (of, ready) in [(&subset.addresses, true), (&subset.not_ready_addresses, false)] {
            addresses.extend(of.iter().map(|address| (address.ip.as_str(), whose(&address.target_ref), ready)));
        }
        ports.extend(subset.ports.iter().map(|port| port.port));
    }
    addresses.sort_unstable();
    (addresses, ports)
}
