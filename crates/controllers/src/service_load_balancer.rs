//! Services of type LoadBalancer: this machine is the load balancer, so they get its address.
//!
//! What sends their traffic on is not this loop's business. Services that name a class are left to whoever is that
//! class.

use crate::Settings;
use kinds::{Object, Service};
use object::{Edit, Value, View, json};
use runtime::{Controller, Note, Plan};
use std::net::IpAddr;

/// Keeps a service until its load balancer is gone.
const FINALIZER: &str = "service.kubernetes.io/load-balancer-cleanup";

pub(crate) fn controller(settings: &Settings) -> Controller {
    let address = settings.address;
    Controller::new("service-controller").primary::<Service>().plans(move |caches, request| {
        caches.of::<Service>().get(&request.key).map(|service| plan(&service, address)).unwrap_or_default()
    })
}

fn plan(service: &Object<Service>, address: IpAddr) -> Plan {
    let is_balanced = service.spec.kind == "LoadBalancer" && !service.metadata.is_being_deleted();
    if is_balanced && service.spec.load_balancer_class.is_some() {
        return Plan::default();
    }
    match (is_balanced, service.metadata.has_finalizer(FINALIZER)) {
        (true, has_finalizer) => balance(service, address, has_finalizer),
        (false, true) => release(service),
        (false, false) => Plan::default(),
    }
}

fn balance(service: &Object<Service>, address: IpAddr, has_finalizer: bool) -> Plan {
    let mut object = service.json();
    if !has_finalizer {
        object.object_or_new("metadata").push("finalizers", json!(FINALIZER));
    }
    let ingress = json!({ "ingress": [{ "ip": address, "ipMode": "VIP" }] });
    let mut plan = Plan::default();
    plan.status_with(service, object, with_balancer(service, ingress));
    if !plan.writes.is_empty() {
        plan.event(Note::normal(service, "EnsuringLoadBalancer", "Ensuring load balancer"));
        plan.on_success(Note::normal(service, "EnsuredLoadBalancer", "Ensured load balancer"));
    }
    plan
}

fn release(service: &Object<Service>) -> Plan {
    let mut object = service.json();
    let metadata = object.object_or_new("metadata");
    let kept: Vec<Value> = metadata.items("finalizers").iter().filter(|name| **name != FINALIZER).cloned().collect();
    metadata.set("finalizers", kept);
    let mut plan = Plan::default();
    plan.status_with(service, object, with_balancer(service, json!({})));
    plan.event(Note::normal(service, "DeletingLoadBalancer", "Deleting load balancer"));
    plan.on_success(Note::normal(service, "DeletedLoadBalancer", "Deleted load balancer"));
    plan
}

/// The status with another load balancer in it.
fn with_balancer(service: &Object<Service>, balancer: Value) -> Value {
    let mut status = service.json().object_or_new("status").clone();
    status.set("loadBalancer", balancer);
    status
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{NOW, World};
    use runtime::{Caches, Request};

    fn planned(caches: &Caches, request: &Request) -> Plan {
        let address = IpAddr::from([192, 0, 2, 1]);
        caches.of::<Service>().get(&request.key).map(|service| plan(&service, address)).unwrap_or_default()
    }

    fn world(spec: &Value) -> World {
        let mut world = World::new();
        world.create::<Service>(json!({ "metadata": { "name": "web" }, "spec": spec }));
        world
    }

    #[test]
    fn a_service_gets_an_address_and_gives_it_back() {
        let mut world = world(&json!({ "type": "LoadBalancer" }));
        world.settle("web", &planned);
        let service = world.get::<Service>("web");
        assert_eq!(service["status"]["loadBalancer"]["ingress"], json!([{ "ip": "192.0.2.1", "ipMode": "VIP" }]));
        assert_eq!(service["metadata"]["finalizers"], json!([FINALIZER]));
        world.edit::<Service>("web", |service| service["spec"]["type"] = json!("ClusterIP"));
        world.settle("web", &planned);
        let service = world.get::<Service>("web");
        assert_eq!((&service["status"]["loadBalancer"], &service["metadata"]["finalizers"]), (&json!({}), &json!([])));
        assert_eq!(
            world.events,
            [
                "Normal EnsuringLoadBalancer Ensuring load balancer",
                "Normal EnsuredLoadBalancer Ensured load balancer",
                "Normal DeletingLoadBalancer Deleting load balancer",
                "Normal DeletedLoadBalancer Deleted load balancer",
            ]
        );
    }

    #[test]
    fn a_service_on_its_way_out_is_let_go() {
        let mut world = world(&json!({ "type": "LoadBalancer" }));
        world.settle("web", &planned);
        world.edit::<Service>("web", |service| service["metadata"]["deletionTimestamp"] = json!(NOW));
        world.settle("web", &planned);
        assert!(world.names::<Service>().is_empty());
    }

    #[test]
    fn other_types_and_other_classes_are_left_alone() {
        for spec in
            [json!({ "type": "ClusterIP" }), json!({ "type": "LoadBalancer", "loadBalancerClass": "example.com/x" })]
        {
            let mut world = world(&spec);
            world.settle("web", &planned);
            assert_eq!(world.writes, [""; 0]);
        }
    }
}
