//! What is to become of an object, from how its owners and dependents stand. Pure.

use super::graph::Node;
use kinds::{Id, Key, OwnerReference, Raw};
use object::{Value, View, json};
use runtime::{DeleteOptions, Note, Plan, Propagation, Target, Write};
use std::sync::Arc;
use std::time::Duration;

/// What is known about an object when it is decided upon.
pub(super) enum Observed {
    /// It lets go of its dependents: they, and itself, as they are now.
    Orphaning { dependents: Vec<(Arc<Node>, Raw)>, own: Option<Raw> },
    /// It waits for its dependents; itself as it is now, if none is left that it has to wait for.
    Waiting { own: Option<Raw> },
    /// It depends on its owners; itself as it is now, if only some of them are left.
    Owned { owners: Owners, dependents: Vec<Arc<Node>>, own: Option<Raw> },
}

pub(super) struct Owners(pub(super) Vec<(OwnerReference, Standing)>);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Standing {
    /// It is there.
    Solid,
    /// It is being deleted and waits for its dependents.
    Waiting,
    Gone,
    /// It is in another namespace, where it cannot own anything here.
    Elsewhere,
}

impl Owners {
    pub(super) fn any(&self, standing: Standing) -> bool {
        self.0.iter().any(|(_, other)| *other == standing)
    }

    pub(super) fn any_but(&self, standing: Standing) -> bool {
        self.0.iter().any(|(_, other)| *other != standing)
    }
}

pub(super) fn plan(node: &Node, observed: &Observed) -> Plan {
    let mut plan = Plan::default();
    match observed {
        Observed::Orphaning { dependents, own } => {
            for (dependent, raw) in dependents {
                plan.writes.extend(release(dependent, raw, &node.uid));
            }
            // Patches go out side by side: if this one went with them and another failed, the owner would be gone, and
            // what still names it collected.
            if plan.writes.is_empty() {
                plan.writes.extend(own.as_ref().and_then(|raw| drop_finalizer(node, raw, "orphan")));
            } else {
                plan.requeue_after(Duration::ZERO);
            }
        }
        Observed::Waiting { own } => {
            plan.writes.extend(own.as_ref().and_then(|raw| drop_finalizer(node, raw, "foregroundDeletion")));
        }
        Observed::Owned { owners, dependents, own } => plan_owned(&mut plan, node, owners, dependents, own.as_ref()),
    }
    plan
}

fn plan_owned(plan: &mut Plan, node: &Node, owners: &Owners, dependents: &[Arc<Node>], own: Option<&Raw>) {
    for (reference, _) in owners.0.iter().filter(|(_, standing)| *standing == Standing::Elsewhere) {
        let message = format!(
            "ownerRef [{}/{}, namespace: {}, name: {}, uid: {}] does not exist in namespace {:?}",
            reference.api_version,
            reference.kind,
            node.key.namespace,
            reference.name,
            reference.uid,
            node.key.namespace
        );
        plan.event(Note { warning: true, ..Note::about(target(node), "OwnerRefInvalidNamespace", message) });
    }
    if owners.0.is_empty() {
        return;
    }
    if owners.any(Standing::Solid) {
        let solid =
            |uid: &str| owners.0.iter().any(|(owner, standing)| owner.uid == uid && *standing == Standing::Solid);
        plan.writes.extend(own.and_then(|raw| keep_owners(node, raw, solid)));
        return;
    }
    if node.is_being_deleted {
        return;
    }
    // An owner that waits wants to see all of what is below it gone first.
    let policy = match owners.any(Standing::Waiting) && !dependents.is_empty() {
        true => Propagation::Foreground,
        false => own_policy(node),
    };
    plan.writes.push(delete(node, policy));
}

/// What its finalizers say is to become of its own dependents.
fn own_policy(node: &Node) -> Propagation {
    match (node.orphan, node.foreground) {
        (true, _) => Propagation::Orphan,
        (false, true) => Propagation::Foreground,
        (false, false) => Propagation::Background,
    }
}

fn target(node: &Node) -> Target {
    let (id, key) = (Id::clone(&node.id), Key::clone(&node.key));
    Target { id, key, uid: node.uid.to_string(), version: node.version.to_string() }
}

fn delete(node: &Node, propagation: Propagation) -> Write {
    let options = DeleteOptions { grace_seconds: None, propagation, unchanged: true };
    Write::Delete { target: target(node), options, announce: None }
}

/// Lets go of a dependent, if it is one.
pub(super) fn release(dependent: &Node, raw: &Raw, owner: &str) -> Option<Write> {
    keep_owners(dependent, raw, |other| other != owner)
}

/// Removes references to owners from an object as it is now; none if there are none of them.
fn keep_owners(node: &Node, raw: &Raw, keep: impl Fn(&str) -> bool) -> Option<Write> {
    let metadata = metadata(node, raw)?;
    let owners = metadata.items("ownerReferences");
    let kept: Vec<&Value> = owners.iter().filter(|owner| keep(owner.text("uid"))).collect();
    (kept.len() < owners.len()).then(|| patch(node, &metadata, "ownerReferences", json!(kept)))
}

fn drop_finalizer(node: &Node, raw: &Raw, name: &str) -> Option<Write> {
    let metadata = metadata(node, raw)?;
    let finalizers = metadata.items("finalizers");
    let kept: Vec<&Value> = finalizers.iter().filter(|finalizer| *finalizer != name).collect();
    (kept.len() < finalizers.len()).then(|| patch(node, &metadata, "finalizers", json!(kept)))
}

/// The metadata of an object, unless another has its name by now.
fn metadata(node: &Node, raw: &Raw) -> Option<Value> {
    let object = object::json::parse(&raw.json).ok()?;
    let metadata = object.at("metadata");
    (*metadata.text("uid") == *node.uid).then(|| metadata.clone())
}

fn patch(node: &Node, metadata: &Value, field: &str, value: Value) -> Write {
    let mut patch = json!({ "uid": &*node.uid, "resourceVersion": metadata.text("resourceVersion") });
    patch[field] = value;
    let patch = json!({ "metadata": patch });
    Write::Patch { target: target(node), subresource: "", patch, owner: None, announce: None }
}

#[cfg(test)]
mod tests;
