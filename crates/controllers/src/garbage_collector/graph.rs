//! Who owns whom, among all objects of all kinds. Pure: events in, answers out.
//!
//! An owner that is not there needs no stand-in: what depends on it is indexed under its UID whether it is there or not.

use kinds::{Id, Key, OwnerReference, Partial};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

/// So many owners that were seen to go are remembered, so that their dependents need not ask.
const MAX_GONE: usize = 10_000;

#[derive(Debug, Default)]
pub(super) struct Graph {
    /// By UID.
    nodes: BTreeMap<String, Arc<Node>>,
    /// The UID behind each name, for deletions, which name what is gone.
    names: BTreeMap<(Id, Key), String>,
    /// Whatever names a UID as an owner, whether that is there or not.
    dependents: BTreeMap<String, BTreeSet<String>>,
    gone: BTreeSet<String>,
    /// In the order in which they went.
    gone_order: VecDeque<String>,
}

/// An object, as far as its owners and dependents care.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Node {
    pub(super) id: Id,
    pub(super) key: Key,
    pub(super) uid: String,
    pub(super) version: String,
    pub(super) owners: Vec<OwnerReference>,
    pub(super) is_being_deleted: bool,
    /// It waits for its dependents to go.
    pub(super) foreground: bool,
    /// Its dependents are to be let go of first.
    pub(super) orphan: bool,
}

impl Node {
    pub(super) fn new(id: &Id, object: &Partial) -> Self {
        let meta = &object.metadata;
        Node {
            id: id.clone(),
            key: Key::new(meta.namespace.as_str(), meta.name.as_str()),
            uid: meta.uid.clone(),
            version: meta.resource_version.clone(),
            owners: meta.owner_references.clone(),
            is_being_deleted: meta.is_being_deleted(),
            foreground: meta.has_finalizer("foregroundDeletion"),
            orphan: meta.has_finalizer("orphan"),
        }
    }

    fn is_placed_like(&self, other: &Node) -> bool {
        self.id == other.id && self.key == other.key && self.owners == other.owners
    }

    /// Whether it is on its way out and takes its dependents along first.
    pub(super) fn waits_for_dependents(&self) -> bool {
        self.is_being_deleted && self.foreground
    }

    pub(super) fn waits_to_orphan(&self) -> bool {
        self.is_being_deleted && self.orphan
    }
}

impl Graph {
    /// Takes an object in; returns the UIDs of those that may have something to do now.
    pub(super) fn put(&mut self, node: Node) -> Vec<String> {
        let mut woken = Vec::new();
        // Most changes are none to the graph.
        let before = self.nodes.get(&node.uid).cloned();
        if !before.as_ref().is_some_and(|before| before.is_placed_like(&node)) {
            woken.extend(self.place(&node, before.as_deref()));
        }
        for owner in &node.owners {
            match self.nodes.get(&owner.uid) {
                Some(owner) if owner.waits_for_dependents() => woken.extend([node.uid.clone(), owner.uid.clone()]),
                Some(owner) if owner.key.namespace.is_empty() || owner.key.namespace == node.key.namespace => {}
                _ => woken.push(node.uid.clone()),
            }
        }
        if node.waits_for_dependents() || node.waits_to_orphan() {
            woken.push(node.uid.clone());
        }
        if node.waits_for_dependents() {
            woken.extend(self.dependents(&node.uid));
        }
        self.nodes.insert(node.uid.clone(), Arc::new(node));
        woken
    }

    /// Notes the name and the owners of an object, in place of those it had before.
    fn place(&mut self, node: &Node, before: Option<&Node>) -> Vec<String> {
        let named = (node.id.clone(), node.key.clone());
        let woken = match self.names.get(&named) {
            Some(other) if *other != node.uid => self.remove(&node.id, &node.key),
            _ => Vec::new(),
        };
        if let Some(before) = before {
            self.unlink(before);
        }
        for owner in &node.owners {
            self.dependents.entry(owner.uid.clone()).or_default().insert(node.uid.clone());
        }
        self.names.insert(named, node.uid.clone());
        woken
    }

    /// Forgets an object; returns the UIDs of those that may have something to do now.
    pub(super) fn remove(&mut self, id: &Id, key: &Key) -> Vec<String> {
        let Some(uid) = self.names.remove(&(id.clone(), key.clone())) else { return Vec::new() };
        let Some(node) = self.nodes.remove(&uid) else { return Vec::new() };
        self.unlink(&node);
        self.remember_gone(&uid);
        let mut woken = self.dependents(&uid);
        // An owner that waits for it may have waited for nothing else.
        let waiting =
            |owner: &&OwnerReference| self.nodes.get(&owner.uid).is_some_and(|owner| owner.waits_for_dependents());
        woken.extend(node.owners.iter().filter(waiting).map(|owner| owner.uid.clone()));
        woken
    }

    pub(super) fn get(&self, uid: &str) -> Option<Arc<Node>> {
        self.nodes.get(uid).cloned()
    }

    /// The UIDs of whatever names this one as an owner.
    pub(super) fn dependents(&self, uid: &str) -> Vec<String> {
        self.dependents.get(uid).into_iter().flatten().cloned().collect()
    }

    /// Whether it was seen to go.
    pub(super) fn is_gone(&self, uid: &str) -> bool {
        self.gone.contains(uid)
    }

    pub(super) fn remember_gone(&mut self, uid: &str) {
        if self.gone.insert(uid.to_owned()) {
            self.gone_order.push_back(uid.to_owned());
        }
        if self.gone_order.len() > MAX_GONE
            && let Some(oldest) = self.gone_order.pop_front()
        {
            self.gone.remove(&oldest);
        }
    }

    /// Everything that may have something to do: for a start in the middle of things.
    pub(super) fn unfinished(&self) -> Vec<String> {
        let unfinished = |node: &&Arc<Node>| {
            let missing = |owner: &OwnerReference| match self.nodes.get(&owner.uid) {
                None => true,
                Some(owner) if owner.waits_for_dependents() => true,
                Some(owner) => !owner.key.namespace.is_empty() && owner.key.namespace != node.key.namespace,
            };
            node.waits_for_dependents() || node.waits_to_orphan() || node.owners.iter().any(missing)
        };
        self.nodes.values().filter(unfinished).map(|node| node.uid.clone()).collect()
    }

    /// The names of a resource that are known.
    pub(super) fn keys(&self, id: &Id) -> Vec<Key> {
        let from = (id.clone(), Key::default());
        self.names.range(from..).take_while(|((other, _), _)| other == id).map(|((_, key), _)| key.clone()).collect()
    }

    pub(super) fn version_of(&self, id: &Id, key: &Key) -> Option<String> {
        let uid = self.names.get(&(id.clone(), key.clone()))?;
        self.nodes.get(uid).map(|node| node.version.clone())
    }

    fn unlink(&mut self, node: &Node) {
        for owner in &node.owners {
            if let Some(dependents) = self.dependents.get_mut(&owner.uid) {
                dependents.remove(&node.uid);
                if dependents.is_empty() {
                    self.dependents.remove(&owner.uid);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: Id = Id::new("v1", "ConfigMap", "configmaps", true);

    fn node(name: &str, owner: &str) -> Node {
        let owners = match owner {
            "" => Vec::new(),
            uid => vec![OwnerReference { uid: uid.to_owned(), ..OwnerReference::default() }],
        };
        Node {
            id: ID,
            key: Key::new("a", name),
            uid: name.to_owned(),
            version: "1".to_owned(),
            owners,
            is_being_deleted: false,
            foreground: false,
            orphan: false,
        }
    }

    #[test]
    fn dependents_are_woken_when_their_owner_goes() {
        let mut graph = Graph::default();
        assert!(graph.put(node("owner", "")).is_empty());
        assert!(graph.put(node("child", "owner")).is_empty());
        assert_eq!(graph.remove(&ID, &Key::new("a", "owner")), ["child"]);
        assert!(graph.is_gone("owner"));
        assert_eq!(graph.unfinished(), ["child"]);
    }

    #[test]
    fn one_whose_owner_is_unknown_is_looked_into() {
        let mut graph = Graph::default();
        assert_eq!(graph.put(node("child", "owner")), ["child"]);
        graph.put(node("owner", ""));
        assert_eq!(graph.dependents("owner"), ["child"]);
        assert!(graph.put(node("child", "")).is_empty() && graph.dependents("owner").is_empty());
    }

    #[test]
    fn another_object_of_the_same_name_replaces_the_first() {
        let mut graph = Graph::default();
        graph.put(node("owner", ""));
        graph.put(node("child", "owner"));
        let again = Node { uid: "second".to_owned(), ..node("owner", "") };
        assert_eq!(graph.put(again), ["child"]);
        assert!(graph.get("owner").is_none() && graph.get("second").is_some());
    }

    #[test]
    fn an_owner_that_waits_wakes_its_dependents_and_is_woken_by_each_that_goes() {
        let mut graph = Graph::default();
        graph.put(node("owner", ""));
        graph.put(node("child", "owner"));
        let waiting = Node { is_being_deleted: true, foreground: true, ..node("owner", "") };
        assert_eq!(graph.put(waiting), ["owner", "child"]);
        assert_eq!(graph.remove(&ID, &Key::new("a", "child")), ["owner"]);
    }
}
