//! Devices that a pod asks for by the name of a resource, as if they were a number of a node. Where a node has no such
//! number and a class answers to the name, they are claimed for the pod by a claim that is made when it is bound.

use crate::cluster::Spot;
use crate::needs::Needs;
use kinds::{Container, DeviceClaim, DeviceClass, DeviceRequest, ExactDeviceRequest, Key, Object, Pod, ResourceClaim};
use object::{Value, json};
use runtime::Caches;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Marks the claim that was made for a pod.
pub(crate) const ANNOTATION: &str = "resource.kubernetes.io/extended-resource-claim";

#[derive(Debug)]
pub(crate) struct Extended {
    /// One that an attempt before this has left behind: it has to go first.
    pub stale: Option<Arc<Object<ResourceClaim>>>,
    /// Classes by the names of resources that the pod asks for.
    classes: BTreeMap<String, Arc<Object<DeviceClass>>>,
    containers: Vec<Asker>,
}

/// A container that asks for resources.
#[derive(Debug)]
struct Asker {
    name: String,
    /// Whether it has ended when others start: they can have its devices.
    ends: bool,
    /// Every resource it asks for, by name.
    requests: BTreeMap<String, i64>,
}

/// The claim for a node: what it asks for, and which container has which request.
#[derive(Debug, Default)]
pub(crate) struct ForNode {
    pub spec: DeviceClaim,
    pub mappings: Vec<Value>,
}

impl Extended {
    /// None if no class answers to what a pod asks for.
    pub(crate) fn of(pod: &Pod, needs: &Needs, caches: &Caches) -> Option<Self> {
        let asked = needs.requests.others.iter().filter(|(_, amount)| *amount > 0);
        let answered = asked.filter_map(|(name, _)| Some((name.clone(), class_for(name, caches)?)));
        let classes: BTreeMap<String, Arc<Object<DeviceClass>>> = answered.collect();
        if classes.is_empty() {
            return None;
        }
        let own = caches.of::<ResourceClaim>().owned_by(&pod.metadata.uid);
        let stale = own.into_iter().find(|claim| claim.metadata.annotation(ANNOTATION) == "true");
        let first = pod.spec.init_containers.iter().map(|one| asker(one, !one.is_sidecar()));
        let containers = first.chain(pod.spec.containers.iter().map(|one| asker(one, false))).collect();
        Some(Extended { stale, classes, containers })
    }

    /// Whether a class answers to the name of a resource.
    pub(crate) fn answers_to(&self, resource: &str) -> bool {
        self.classes.contains_key(resource)
    }

    /// What has to be claimed on a node; none if the node has it all itself.
    pub(crate) fn on(&self, spot: &Spot) -> Option<ForNode> {
        let mut claim = ForNode::default();
        for (resource, class) in self.classes.iter().filter(|(resource, _)| spot.capacity.other(resource) == 0) {
            self.ask(&mut claim, resource, &class.metadata.name);
        }
        claim.spec.requests.sort_by(|one, other| one.name.cmp(&other.name));
        (!claim.spec.requests.is_empty()).then_some(claim)
    }

    /// A request for each container that stays, and one more where those that end before need more than that.
    fn ask(&self, claim: &mut ForNode, resource: &str, class: &str) {
        let mut staying: BTreeMap<usize, (String, i64)> = BTreeMap::new();
        let asking = || self.containers.iter().enumerate().filter(|(_, one)| one.amount(resource) > 0);
        let mapping = |container: &Asker, request: &str| json!({ "containerName": container.name, "resourceName": resource, "requestName": request });
        for (at, container) in asking().filter(|(_, one)| !one.ends) {
            let name = container.request_name(at, resource);
            claim.mappings.push(mapping(container, &name));
            staying.insert(at, (name, container.amount(resource)));
        }
        // The largest of what the others need besides; they take turns.
        let mut besides: Option<(String, i64)> = None;
        let mut turns = Vec::new();
        for (at, container) in asking().filter(|(_, one)| one.ends) {
            let mut missing = container.amount(resource);
            for (name, amount) in staying.range(at..).map(|(_, request)| request) {
                if missing > 0 {
                    claim.mappings.push(mapping(container, name));
                    missing -= amount;
                }
            }
            if missing > 0 {
                turns.push(container);
                if besides.as_ref().is_none_or(|(_, most)| *most < missing) {
                    besides = Some((container.request_name(at, resource), missing));
                }
            }
        }
        if let Some((name, _)) = &besides {
            claim.mappings.extend(turns.into_iter().map(|container| mapping(container, name)));
        }
        let requests = staying.into_values().chain(besides);
        claim.spec.requests.extend(requests.map(|(name, count)| request(name, class, count)));
    }
}

fn request(name: String, class: &str, count: i64) -> DeviceRequest {
    let exactly = ExactDeviceRequest {
        device_class_name: class.to_owned(),
        allocation_mode: "ExactCount".to_owned(),
        count,
        ..ExactDeviceRequest::default()
    };
    DeviceRequest { name, exactly: Some(exactly), first_available: Vec::new() }
}

impl ForNode {
    /// As the spec of the claim has it.
    pub(crate) fn requests(&self) -> Vec<Value> {
        let written = |request: &DeviceRequest| {
            let exactly = request.exactly.as_ref().map(|asked| {
                json!({ "deviceClassName": asked.device_class_name, "allocationMode": "ExactCount", "count": asked.count })
            });
            json!({ "name": request.name, "exactly": exactly })
        };
        self.spec.requests.iter().map(written).collect()
    }
}

impl Asker {
    fn amount(&self, resource: &str) -> i64 {
        self.requests.get(resource).copied().unwrap_or(0)
    }

    /// By the places of the container and of the resource in it.
    fn request_name(&self, at: usize, resource: &str) -> String {
        let place = self.requests.keys().position(|name| name == resource).unwrap_or(0);
        format!("container-{at}-request-{place}")
    }
}

fn asker(container: &Container, ends: bool) -> Asker {
    let requests = container.resources.requests.iter().map(|(name, amount)| (name.clone(), amount.units())).collect();
    Asker { name: container.name.clone(), ends, requests }
}

/// The class that answers to the name of a resource: the newest, if several do.
fn class_for(resource: &str, caches: &Caches) -> Option<Arc<Object<DeviceClass>>> {
    let classes = caches.of::<DeviceClass>().by("resource", resource);
    let order =
        |class: &Arc<Object<DeviceClass>>| (Reverse(class.metadata.creation_timestamp), class.metadata.name.clone());
    classes.into_iter().min_by_key(order)
}

/// Names the claim while it is not made yet.
pub(crate) fn placeholder() -> Key {
    Key::cluster("<extended-resources>")
}
