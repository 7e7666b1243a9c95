//! EndpointSlice mirroring: Endpoints that somebody wrote for a service without a selector are shown as slices too.
//!
//! Endpoints of services with a selector are left to the loops that make both from pods, as are those that ask for it
//! with a label.

use crate::endpoint_slice::arrange::{self, Annotations, Backend, Frame, Groups};
use crate::endpoint_slice::backends;
use kinds::{Endpoint, EndpointAddress, EndpointConditions, EndpointSlice, Endpoints, Object, Service, SlicePort};
use runtime::{Caches, Controller, Note, Plan, Request};
use std::sync::Arc;

const MANAGER: &str = "endpointslicemirroring-controller.k8s.io";
/// Addresses of one subset that are mirrored; each has a slice of its own.
const LIMIT: usize = 1000;
/// Annotations that say something about the Endpoints alone.
const NOT_MIRRORED: [&str; 2] = [arrange::TRIGGER, "kubectl.kubernetes.io/last-applied-configuration"];

pub(crate) fn controller() -> Controller {
    Controller::new("endpointslicemirroring-controller")
        .reports_as("endpoint-slice-mirroring-controller")
        .primary::<Endpoints>()
        .watches::<Service>(|service, _| vec![service.key()])
        .watches::<EndpointSlice>(|slice, _| arrange::service_of(slice, MANAGER).into_iter().collect())
        .plans(|caches, request| plan(&observe(caches, request)))
}

struct Observed {
    /// If they are to be mirrored.
    endpoints: Option<Arc<Object<Endpoints>>>,
    slices: Vec<Arc<Object<EndpointSlice>>>,
}

fn observe(caches: &Caches, request: &Request) -> Observed {
    let service = caches.of::<Service>().get(&request.key);
    let endpoints = caches.of::<Endpoints>().get(&request.key);
    let is_left_to_others = service.is_none_or(|service| service.has_selector());
    Observed {
        endpoints: endpoints.filter(|endpoints| !is_left_to_others && !asks_to_be_skipped(endpoints)),
        slices: arrange::slices_of(caches, &request.key, MANAGER),
    }
}

fn asks_to_be_skipped(endpoints: &Endpoints) -> bool {
    endpoints.metadata.label("endpointslice.kubernetes.io/skip-mirror") == "true"
        || endpoints.metadata.annotations.contains_key("control-plane.alpha.kubernetes.io/leader")
}

fn plan(observed: &Observed) -> Plan {
    let mut plan = Plan::default();
    let Some(endpoints) = &observed.endpoints else {
        observed.slices.iter().for_each(|slice| {
            plan.delete(slice);
        });
        return plan;
    };
    let mut groups = Groups::default();
    let (mut invalid, mut too_many) = (0, 0);
    for subset in &endpoints.subsets {
        let ports: Vec<SlicePort> = subset.ports.iter().map(port).collect();
        let ready = subset.addresses.iter().map(|address| (address, true));
        let all = ready.chain(subset.not_ready_addresses.iter().map(|address| (address, false)));
        let mut mirrored = 0;
        for (address, ready) in all {
            match backends::family(&address.ip) {
                _ if mirrored == LIMIT => too_many += 1,
                None => invalid += 1,
                Some((family, text)) => {
                    groups.add(family, &ports, Backend { endpoint: endpoint(address, text, ready), trigger: None });
                    mirrored += 1;
                }
            }
        }
    }
    let mut annotations = endpoints.metadata.annotations.clone();
    annotations.retain(|name, _| !NOT_MIRRORED.contains(&name.as_str()));
    let labels = endpoints.metadata.labels.clone();
    let frame = Frame::new(endpoints, labels, MANAGER, Annotations::Exactly(annotations));
    arrange::arrange(&mut plan, &frame, groups, &observed.slices, &[], LIMIT);
    // Told when something is written, and not again and again.
    if !plan.writes.is_empty() && invalid > 0 {
        let message = format!("Skipped {invalid} invalid IP addresses when mirroring to EndpointSlices");
        plan.event(Note::warning(endpoints, "InvalidIPAddress", message));
    }
    if !plan.writes.is_empty() && too_many > 0 {
        let message = format!(
            "A max of {LIMIT} addresses can be mirrored to EndpointSlices per Endpoints subset. {} addresses were skipped",
            too_many + invalid
        );
        plan.event(Note::warning(endpoints, "TooManyAddressesToMirror", message));
    }
    plan
}

fn port(port: &kinds::EndpointsPort) -> SlicePort {
    SlicePort {
        name: Some(port.name.clone()),
        protocol: Some(backends::protocol(&port.protocol).to_owned()),
        port: Some(port.port),
        app_protocol: port.app_protocol.clone(),
    }
}

fn endpoint(address: &EndpointAddress, text: String, ready: bool) -> Endpoint {
    Endpoint {
        addresses: vec![text],
        conditions: EndpointConditions { ready: Some(ready), ..EndpointConditions::default() },
        hostname: Some(address.hostname.clone()).filter(|name| !name.is_empty()),
        target_ref: address.target_ref.clone(),
        node_name: address.node_name.clone(),
        ..Endpoint::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::World;
    use object::{Edit, Value, View, json};

    fn planned(caches: &Caches, request: &Request) -> Plan {
        plan(&observe(caches, request))
    }

    fn world(subsets: &Value) -> World {
        let mut world = World::new();
        world.create::<Service>(json!({ "metadata": { "name": "db" }, "spec": { "clusterIP": "10.0.0.1" } }));
        let metadata =
            json!({ "name": "db", "labels": { "a": "b" }, "annotations": { "c": "d", (NOT_MIRRORED[1]): "" } });
        world.create::<Endpoints>(json!({ "metadata": metadata, "subsets": subsets }));
        world
    }

    #[test]
    fn endpoints_are_shown_as_one_slice_for_each_subset_and_family() {
        let mut world = world(&json!([{
            "addresses": [{ "ip": "192.0.2.1", "hostname": "x" }, { "ip": "fd00::1" }, { "ip": "nonsense" }],
            "notReadyAddresses": [{ "ip": "192.0.2.2", "nodeName": "n" }],
            "ports": [{ "name": "sql", "port": 5432, "protocol": "TCP" }],
        }]));
        world.settle("db", &planned);
        assert_eq!(
            world.events,
            ["Warning InvalidIPAddress Skipped 1 invalid IP addresses when mirroring to EndpointSlices"]
        );
        let slices = world.all::<EndpointSlice>();
        let [v4, v6] = slices.as_slice() else { panic!("{slices:?}") };
        assert_eq!(
            v4["endpoints"],
            json!([
                { "addresses": ["192.0.2.1"], "conditions": { "ready": true }, "hostname": "x" },
                { "addresses": ["192.0.2.2"], "conditions": { "ready": false }, "nodeName": "n" },
            ])
        );
        assert_eq!(v6["addressType"], "IPv6");
        assert_eq!(v4["metadata"]["annotations"], json!({ "c": "d" }));
        assert_eq!(v4.path(&["metadata", "labels", "endpointslice.kubernetes.io/managed-by"]), MANAGER);
        assert_eq!(v4["metadata"]["ownerReferences"][0]["kind"], "Endpoints");
    }

    #[test]
    fn what_is_left_to_others_is_not_mirrored_or_no_longer() {
        let subsets = json!([{ "addresses": [{ "ip": "192.0.2.1" }], "ports": [{ "port": 1 }] }]);
        let mut labeled = world(&subsets);
        labeled.settle("db", &planned);
        assert_eq!(labeled.names::<EndpointSlice>().len(), 1);
        labeled.edit::<Endpoints>("db", |endpoints| {
            endpoints["metadata"].object_or_new("labels").set("endpointslice.kubernetes.io/skip-mirror", "true");
        });
        labeled.settle("db", &planned);
        assert!(labeled.names::<EndpointSlice>().is_empty());
        let mut selecting = world(&subsets);
        selecting.settle("db", &planned);
        selecting.edit::<Service>("db", |service| service["spec"]["selector"] = json!({ "a": "b" }));
        selecting.settle("db", &planned);
        assert!(selecting.names::<EndpointSlice>().is_empty());
    }

    #[test]
    fn labels_and_annotations_follow_and_nothing_else_is_written() {
        let mut world = world(&json!([{ "addresses": [{ "ip": "192.0.2.1" }], "ports": [{ "port": 1 }] }]));
        world.settle("db", &planned);
        world.edit::<Endpoints>("db", |endpoints| endpoints["metadata"]["annotations"] = json!({}));
        world.writes.clear();
        world.settle("db", &planned);
        assert_eq!(world.writes.len(), 1);
        assert!(world.writes[0].starts_with("update endpointslices"));
    }
}
