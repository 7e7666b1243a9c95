//! How endpoints are spread over slices, so that few slices change and none is kept for little.
//!
//! Endpoints stay in the slice they are in. What is new goes into slices that change anyway, the fullest first; then
//! into the one slice that it fills best; then into new ones. A slice that is no longer needed becomes a new one where
//! one is needed, which is a write less.

use kinds::{Endpoint, EndpointSlice, Key, Kind, Labels, Object, ObjectReference, SlicePort, Time};
use object::{Edit, Value, json};
use runtime::{Caches, Plan};
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;

pub(crate) const HEADLESS: &str = "service.kubernetes.io/headless";
const SERVICE: &str = "kubernetes.io/service-name";
const MANAGED_BY: &str = "endpointslice.kubernetes.io/managed-by";
pub(crate) const TRIGGER: &str = "endpoints.kubernetes.io/last-change-trigger-time";

type Slice = Arc<Object<EndpointSlice>>;

/// An endpoint that there should be.
#[derive(Clone, Debug)]
pub(crate) struct Backend {
    pub(crate) endpoint: Endpoint,
    /// When what it comes from became as it is.
    pub(crate) trigger: Option<Time>,
}

/// What is the same about an endpoint before and after it changes: addresses, name, and what it refers to.
type Identity = (Vec<String>, Option<String>, String, String);
/// Endpoints of one group share slices: the type of their addresses, and their ports in order.
type Group = (String, Vec<SlicePort>);

/// The endpoints that there should be, by what they can share slices with.
#[derive(Debug, Default)]
pub(crate) struct Groups(BTreeMap<Group, BTreeMap<Identity, Backend>>);

impl Groups {
    pub(crate) fn add(&mut self, address_type: &str, ports: &[SlicePort], backend: Backend) {
        let group = self.0.entry(group(address_type, ports)).or_default();
        group.insert(identity(&backend.endpoint), backend);
    }
}

fn group(address_type: &str, ports: &[SlicePort]) -> Group {
    let mut ports = ports.to_vec();
    ports.sort();
    (address_type.to_owned(), ports)
}

fn identity(endpoint: &Endpoint) -> Identity {
    let mut addresses = endpoint.addresses.clone();
    addresses.sort();
    let ObjectReference { namespace, name, .. } = endpoint.target_ref.clone().unwrap_or_default();
    (addresses, endpoint.hostname.clone(), namespace, name)
}

/// Which annotations slices have.
pub(crate) enum Annotations {
    /// Whatever they have, and when the change happened that led to the last one of them. In new slices that may be
    /// when their owner was made.
    Trigger(Option<Time>),
    Exactly(Labels),
}

/// What all slices of an owner have in common.
pub(crate) struct Frame {
    namespace: String,
    name: String,
    uid: String,
    reference: Value,
    labels: Labels,
    annotations: Annotations,
    is_going: bool,
}

impl Frame {
    pub(crate) fn new<Owner: Kind>(
        owner: &Object<Owner>,
        mut labels: Labels,
        manager: &str,
        annotations: Annotations,
    ) -> Self {
        let meta = owner.meta();
        labels.insert(SERVICE.into(), meta.name.clone());
        labels.insert(MANAGED_BY.into(), manager.into());
        Frame {
            namespace: meta.namespace.clone(),
            name: meta.name.clone(),
            uid: meta.uid.clone(),
            reference: meta.controller_reference(&Owner::ID),
            labels,
            annotations,
            is_going: meta.is_being_deleted(),
        }
    }
}

/// The service that a slice is of, if it is managed by this manager.
pub(crate) fn service_of(slice: &EndpointSlice, manager: &str) -> Option<Key> {
    let service = slice.metadata.labels.get(SERVICE)?;
    (slice.metadata.label(MANAGED_BY) == manager).then(|| Key::new(slice.metadata.namespace.as_str(), service.as_str()))
}

/// The slices of a service that are managed by this manager and not on their way out.
pub(crate) fn slices_of(caches: &Caches, service: &Key, manager: &str) -> Vec<Slice> {
    let mut slices = caches.of::<EndpointSlice>().by("service", &service.to_string());
    slices.retain(|slice| slice.metadata.label(MANAGED_BY) == manager && !slice.metadata.is_being_deleted());
    slices
}

/// A slice as it should be.
struct Draft {
    group: Group,
    base: Option<Slice>,
    backends: Vec<Backend>,
}

impl Draft {
    fn matches(&self, slice: &EndpointSlice, frame: &Frame) -> bool {
        let annotations = match &frame.annotations {
            Annotations::Trigger(_) => true,
            Annotations::Exactly(annotations) => slice.metadata.annotations == *annotations,
        };
        annotations
            && slice.metadata.labels == frame.labels
            && group(&slice.address_type, &slice.ports) == self.group
            && self.backends.iter().map(|backend| &backend.endpoint).eq(&slice.endpoints)
    }

    fn is_as_it_was(&self, frame: &Frame) -> bool {
        self.base.as_ref().is_some_and(|slice| self.matches(slice, frame))
    }

    /// When the earliest of the changes in it happened.
    fn trigger(&self) -> Option<Time> {
        let is_new =
            |backend: &&Backend| !self.base.as_ref().is_some_and(|slice| slice.endpoints.contains(&backend.endpoint));
        self.backends.iter().filter(is_new).filter_map(|backend| backend.trigger).min()
    }
}

/// Plans what makes the slices of an owner those that there should be. Of each of the types `always` there is at least
/// one, if an empty one: that tells "nothing" from "not yet".
pub(crate) fn arrange(
    plan: &mut Plan,
    frame: &Frame,
    groups: Groups,
    existing: &[Slice],
    always: &[&str],
    limit: usize,
) {
    let is_own = |slice: &&Slice| slice.metadata.owner_references.iter().any(|owner| owner.uid == frame.uid);
    let (own, foreign): (Vec<&Slice>, Vec<&Slice>) = existing.iter().partition(is_own);
    let is_first = own.is_empty();
    let mut slices: BTreeMap<Group, Vec<&Slice>> = BTreeMap::new();
    for slice in own {
        slices.entry(group(&slice.address_type, &slice.ports)).or_default().push(slice);
    }
    let (mut drafts, mut spare) = (Vec::new(), Vec::new());
    for (group, wanted) in groups.0 {
        let slices = slices.remove(&group).unwrap_or_default();
        pack(&mut drafts, &mut spare, frame, &group, wanted, &slices, limit);
    }
    spare.extend(slices.into_values().flatten().cloned());
    for address_type in always {
        if !drafts.iter().any(|draft| draft.group.0 == *address_type) {
            drafts.push(Draft { group: group(address_type, &[]), base: None, backends: Vec::new() });
        }
    }
    for draft in drafts.iter_mut().filter(|draft| draft.base.is_none()) {
        let fits = |slice: &Slice| slice.address_type == draft.group.0;
        let same = spare.iter().position(|slice| draft.matches(slice, frame));
        if let Some(at) = same.or_else(|| spare.iter().position(fits)) {
            draft.base = Some(spare.remove(at));
        }
    }
    drafts.retain(|draft| !draft.is_as_it_was(frame));
    write(plan, frame, &drafts, is_first);
    for slice in spare.iter().chain(foreign) {
        plan.delete(slice);
    }
}

/// Puts the endpoints of one group into slices; those that are left with none become spare.
fn pack(
    drafts: &mut Vec<Draft>,
    spare: &mut Vec<Slice>,
    frame: &Frame,
    group: &Group,
    mut wanted: BTreeMap<Identity, Backend>,
    slices: &[&Slice],
    limit: usize,
) {
    let (mut changed, mut unchanged) = (Vec::new(), Vec::new());
    for slice in slices {
        let kept = slice.endpoints.iter().filter_map(|endpoint| wanted.remove(&identity(endpoint)));
        let draft = Draft { group: group.clone(), base: Some((*slice).clone()), backends: kept.collect() };
        match draft.backends.len() {
            0 => spare.push((*slice).clone()),
            _ if draft.is_as_it_was(frame) => unchanged.push(draft),
            _ => changed.push(draft),
        }
    }
    let mut rest = wanted.into_values();
    changed.sort_by_key(|draft| Reverse(draft.backends.len()));
    for draft in &mut changed {
        let room = limit.saturating_sub(draft.backends.len());
        draft.backends.extend(rest.by_ref().take(room));
    }
    while rest.len() > 0 {
        let room = |draft: &Draft| (limit - rest.len().min(limit)).checked_sub(draft.backends.len());
        let fitting = unchanged.iter_mut().filter(|draft| rest.len() < limit && room(draft).is_some());
        match fitting.max_by_key(|draft| draft.backends.len()) {
            Some(draft) => draft.backends.extend(rest.by_ref()),
            None => {
                changed.push(Draft { group: group.clone(), base: None, backends: rest.by_ref().take(limit).collect() });
            }
        }
    }
    drafts.extend(changed.into_iter().chain(unchanged));
}

/// Creations first: while endpoints move, it is better to have one twice than not at all.
fn write(plan: &mut Plan, frame: &Frame, drafts: &[Draft], is_first: bool) {
    let mut trigger = drafts.iter().filter_map(Draft::trigger).min();
    if let Annotations::Trigger(Some(made)) = frame.annotations
        && is_first
    {
        trigger = Some(trigger.map_or(made, |trigger| trigger.min(made)));
    }
    for draft in drafts.iter().filter(|draft| draft.base.is_none() && !frame.is_going) {
        let metadata = json!({
            "generateName": crate::workload::generate_name(&frame.name),
            "namespace": frame.namespace,
            "ownerReferences": [frame.reference],
        });
        let object = json!({ "metadata": metadata, "addressType": draft.group.0 });
        plan.create::<EndpointSlice>(filled(object, frame, draft, trigger));
    }
    for draft in drafts {
        if let Some(slice) = &draft.base {
            plan.update(slice, filled(slice.json(), frame, draft, trigger));
        }
    }
}

fn filled(mut object: Value, frame: &Frame, draft: &Draft, trigger: Option<Time>) -> Value {
    let metadata = object.object_or_new("metadata");
    metadata.set("labels", json!(frame.labels));
    match (&frame.annotations, trigger) {
        (Annotations::Exactly(annotations), _) => metadata.set("annotations", json!(annotations)),
        (Annotations::Trigger(_), Some(trigger)) => metadata.object_or_new("annotations").set(TRIGGER, trigger),
        (Annotations::Trigger(_), None) => {
            if let Some(annotations) = metadata.object("annotations") {
                annotations.remove(TRIGGER);
            }
        }
    }
    let endpoints = draft.backends.iter().map(|backend| endpoint_json(&backend.endpoint));
    object.set("endpoints", endpoints.collect::<Vec<_>>());
    object.set("ports", draft.group.1.iter().map(port_json).collect::<Vec<_>>());
    object
}

fn endpoint_json(endpoint: &Endpoint) -> Value {
    let conditions = &endpoint.conditions;
    let conditions =
        json!({ "ready": conditions.ready, "serving": conditions.serving, "terminating": conditions.terminating });
    without_nulls(json!({
        "addresses": endpoint.addresses,
        "conditions": without_nulls(conditions),
        "hostname": endpoint.hostname,
        "targetRef": endpoint.target_ref.as_ref().map(reference_json),
        "nodeName": endpoint.node_name,
        "zone": endpoint.zone,
        "hints": endpoint.hints,
    }))
}

pub(crate) fn reference_json(reference: &ObjectReference) -> Value {
    let some = |text: &String| Some(text.clone()).filter(|text| !text.is_empty());
    without_nulls(json!({
        "apiVersion": some(&reference.api_version),
        "kind": some(&reference.kind),
        "namespace": some(&reference.namespace),
        "name": some(&reference.name),
        "uid": some(&reference.uid),
        "fieldPath": some(&reference.field_path),
    }))
}

fn port_json(port: &SlicePort) -> Value {
    let SlicePort { name, protocol, port, app_protocol } = port;
    without_nulls(json!({ "name": name, "protocol": protocol, "port": port, "appProtocol": app_protocol }))
}

pub(crate) fn without_nulls(mut value: Value) -> Value {
    if let Value::Object(fields) = &mut value {
        fields.retain(|_, field| !field.is_null());
    }
    value
}
