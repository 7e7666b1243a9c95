//! Who owns whom, among all objects of all kinds. Pure: events in, answers out.
//!
//! An owner that is not there needs no stand-in: what depends on it is indexed under its UID whether it is there or not.

use kinds::{Id, Key, OwnerReference, Partial, Shared};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

/// Told apart by that alone. Shared, as are names and kinds: the graph knows every object there is.
pub(super) type Uid = Arc<str>;

/// So many owners that were seen to go are remembered, so that their dependents need not ask.
const MAX_GONE: usize = 10_000;

#[derive(Debug, Default)]
pub(super) struct Graph {
    nodes: BTreeMap<Uid, Arc<Node>>,
    /// What is behind each name, for deletions, which name what is gone.
    names: BTreeMap<Arc<Id>, BTreeMap<Arc<Key>, Uid>>,
    /// Whatever names a UID as an owner, whether that is there or not.
    dependents: BTreeMap<Uid, BTreeSet<Uid>>,
    gone: BTreeSet<Uid>,
    /// In the order in which they went.
    gone_order: VecDeque<Uid>,
}

/// An object, as far as its owners and dependents care.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Node {
    pub(super) id: Arc<Id>,
    pub(super) key: Arc<Key>,
    pub(super) uid: Uid,
    pub(super) version: Box<str>,
    pub(super) owners: Shared<Vec<OwnerReference>>,
    pub(super) is_being_deleted: bool,
    /// It waits for its dependents to go.
    pub(super) foreground: bool,
    /// Its dependents are to be let go of first.
    pub(super) orphan: bool,
}

impl Node {
    pub(super) fn new(id: &Arc<Id>, object: &Partial) -> Self {
        let meta = &object.metadata;
        Node {
            id: id.clone(),
            key: Arc::new(Key::new(meta.namespace.as_str(), meta.name.as_str())),
            uid: meta.uid.as_str().into(),
            version: meta.resource_version.as_str().into(),
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

    /// Whether an owner that waits has to wait for this one.
    fn blocks(&self, owner: &str) -> bool {
        self.owners.iter().any(|reference| reference.uid == owner && reference.block_owner_deletion)
    }
}

impl Graph {
    /// Takes an object in; returns the UIDs of those that may have something to do now.
    pub(super) fn put(&mut self, node: Node) -> Vec<Uid> {
        let mut woken = Vec::new();
        // Most changes are none to the graph.
        let before = self.nodes.get(&node.uid).cloned();
        if !before.as_ref().is_some_and(|before| before.is_placed_like(&node)) {
            woken.extend(self.place(&node, before.as_deref()));
        }
        for owner in &node.owners {
            match self.nodes.get(owner.uid.as_str()) {
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
    fn place(&mut self, node: &Node, before: Option<&Node>) -> Vec<Uid> {
        let woken = match self.named(&node.id, &node.key) {
            Some(other) if *other != node.uid => self.remove(&node.id, &node.key),
            _ => Vec::new(),
        };
        if let Some(before) = before {
            self.unlink(before);
        }
        for owner in &node.owners {
            self.dependents.entry(owner.uid.as_str().into()).or_default().insert(node.uid.clone());
        }
        self.names.entry(node.id.clone()).or_default().insert(node.key.clone(), node.uid.clone());
        woken
    }

    /// Forgets an object; returns the UIDs of those that may have something to do now.
    pub(super) fn remove(&mut self, id: &Id, key: &Key) -> Vec<Uid> {
        let named = self.names.get_mut(id).and_then(|names| names.remove(key));
        let Some(uid) = named else { return Vec::new() };
        let Some(node) = self.nodes.remove(&uid) else { return Vec::new() };
        self.unlink(&node);
        self.remember_gone(&uid);
        let mut woken = self.dependents(&uid);
        // An owner that waits for it may have waited for nothing else.
        let waiting = |owner: &&OwnerReference| {
            self.nodes.get(owner.uid.as_str()).is_some_and(|owner| owner.waits_for_dependents())
        };
        woken.extend(node.owners.iter().filter(waiting).map(|owner| owner.uid.as_str().into()));
        woken
    }

    fn named(&self, id: &Id, key: &Key) -> Option<&Uid> {
        self.names.get(id)?.get(key)
    }

    pub(super) fn get(&self, uid: &str) -> Option<Arc<Node>> {
        self.nodes.get(uid).cloned()
    }

    /// The UIDs of whatever names this one as an owner.
    pub(super) fn dependents(&self, uid: &str) -> Vec<Uid> {
        self.dependents.get(uid).into_iter().flatten().cloned().collect()
    }

    /// Those that have to go before one that waits for its dependents can.
    fn blockers(&self, uid: &str) -> impl Iterator<Item = &Arc<Node>> {
        let dependents = self.dependents.get(uid).into_iter().flatten();
        dependents.filter_map(|dependent| self.nodes.get(dependent)).filter(move |dependent| dependent.blocks(uid))
    }

    /// Whether one that waits for its dependents has to go on waiting. One that waits for itself, through others that do the
    /// same, would do so for ever, and is let go.
    pub(super) fn is_blocked(&self, uid: &str) -> bool {
        self.blockers(uid).any(|blocker| !self.waits_for(blocker, uid))
    }

    /// Whether one waits for another, through whatever waits in between.
    fn waits_for(&self, one: &Arc<Node>, other: &str) -> bool {
        let (mut seen, mut open) = (BTreeSet::new(), vec![one]);
        while let Some(node) = open.pop() {
            if *node.uid == *other {
                return true;
            }
            if node.waits_for_dependents() && seen.insert(&node.uid) {
                open.extend(self.blockers(&node.uid));
            }
        }
        false
    }

    /// Whether it was seen to go.
    pub(super) fn is_gone(&self, uid: &str) -> bool {
        self.gone.contains(uid)
    }

    pub(super) fn remember_gone(&mut self, uid: &str) {
        let uid = Uid::from(uid);
        if self.gone.insert(uid.clone()) {
            self.gone_order.push_back(uid);
        }
        if self.gone_order.len() > MAX_GONE
            && let Some(oldest) = self.gone_order.pop_front()
        {
            self.gone.remove(&oldest);
        }
    }

    /// Everything that may have something to do: for a start in the middle of things.
    pub(super) fn unfinished(&self) -> Vec<Uid> {
        let unfinished = |node: &&Arc<Node>| {
            let missing = |owner: &OwnerReference| match self.nodes.get(owner.uid.as_str()) {
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
        self.names.get(id).into_iter().flatten().map(|(key, _)| key.as_ref().clone()).collect()
    }

    pub(super) fn version_of(&self, id: &Id, key: &Key) -> Option<String> {
        self.nodes.get(self.named(id, key)?).map(|node| node.version.to_string())
    }

    fn unlink(&mut self, node: &Node) {
        for owner in &node.owners {
            if let Some(dependents) = self.dependents.get_mut(owner.uid.as_str()) {
                dependents.remove(&node.uid);
                if dependents.is_empty() {
                    self.dependents.remove(owner.uid.as_str());
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
            "" => Shared::default(),
            uid => [OwnerReference { uid: uid.to_owned(), ..OwnerReference::default() }].into(),
        };
        Node {
            id: Arc::new(ID),
            key: Arc::new(Key::new("a", name)),
            uid: name.into(),
            version: "1".into(),
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
        assert_eq!(graph.remove(&ID, &Key::new("a", "owner")), [Uid::from("child")]);
        assert!(graph.is_gone("owner"));
        assert_eq!(graph.unfinished(), [Uid::from("child")]);
    }

    #[test]
    fn one_whose_owner_is_unknown_is_looked_into() {
        let mut graph = Graph::default();
        assert_eq!(graph.put(node("child", "owner")), [Uid::from("child")]);
        graph.put(node("owner", ""));
        assert_eq!(graph.dependents("owner"), [Uid::from("child")]);
        assert!(graph.put(node("child", "")).is_empty() && graph.dependents("owner").is_empty());
    }

    #[test]
    fn another_object_of_the_same_name_replaces_the_first() {
        let mut graph = Graph::default();
        graph.put(node("owner", ""));
        graph.put(node("child", "owner"));
        let again = Node { uid: "second".into(), ..node("owner", "") };
        assert_eq!(graph.put(again), [Uid::from("child")]);
        assert!(graph.get("owner").is_none() && graph.get("second").is_some());
    }

    #[test]
    fn an_owner_that_waits_wakes_its_dependents_and_is_woken_by_each_that_goes() {
        let mut graph = Graph::default();
        graph.put(node("owner", ""));
        graph.put(node("child", "owner"));
        let waiting = Node { is_being_deleted: true, foreground: true, ..node("owner", "") };
        assert_eq!(graph.put(waiting), ["owner", "child"].map(Uid::from));
        assert_eq!(graph.remove(&ID, &Key::new("a", "child")), [Uid::from("owner")]);
    }

    #[test]
    fn what_waits_for_itself_in_a_circle_waits_no_longer() {
        let mut graph = Graph::default();
        let blocking = |name: &str, owner: &str| {
            let owner =
                OwnerReference { uid: owner.to_owned(), block_owner_deletion: true, ..OwnerReference::default() };
            Node { owners: [owner].into(), is_being_deleted: true, foreground: true, ..node(name, "") }
        };
        let on_its_way = |node: Node| Node { is_being_deleted: false, foreground: false, ..node };
        graph.put(blocking("a", "c"));
        graph.put(blocking("b", "a"));
        graph.put(on_its_way(blocking("c", "b")));
        assert!(
            graph.is_blocked("a") && graph.is_blocked("b"),
            "the circle is not closed as long as one has yet to wait"
        );
        assert!(graph.put(blocking("c", "b")).contains(&Uid::from("c")), "who closes it is looked at");
        assert!(!graph.is_blocked("c"));
        graph.put(on_its_way(blocking("d", "c")));
        assert!(graph.is_blocked("c"), "there may be others to wait for");
    }
}
