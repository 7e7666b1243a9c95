//! Sets of fields, as trees that share the beginnings of their paths.
//!
//! A path and its extensions are members independently of each other: owning `spec.template` says nothing about
//! owning `spec.template.spec`. Every operation but [`FieldSet::without`] follows that.

use super::element::Element;
use std::fmt;

/// No set is deeper, whoever wrote it: below this, what an object holds counts as one value. It keeps recursion
/// bounded, and an object with its managed fields within the depth that decoders accept.
pub const MAX_DEPTH: usize = 100;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FieldSet {
    /// Sorted by element, each of which occurs once.
    pub(super) entries: Vec<Entry>,
}

/// All paths of a set that begin with one element. It is a member itself, or some longer path is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) element: Element,
    pub(super) member: bool,
    pub(super) children: FieldSet,
}

impl Entry {
    pub(super) fn leaf(element: Element) -> Self {
        Entry { element, member: true, children: FieldSet::EMPTY }
    }

    fn holds_anything(&self) -> bool {
        self.member || !self.children.is_empty()
    }
}

impl FieldSet {
    pub(super) const EMPTY: FieldSet = FieldSet { entries: Vec::new() };

    /// A set of fields that are reached through fields only, each path written with dots: `metadata.labels`.
    pub fn of_fields<'a>(paths: impl IntoIterator<Item = &'a str>) -> Self {
        let mut set = FieldSet::default();
        for path in paths {
            set.insert(&path.split('.').map(Element::field).collect::<Vec<_>>());
        }
        set
    }

    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// How many paths are members.
    pub fn len(&self) -> usize {
        self.entries.iter().map(|entry| usize::from(entry.member) + entry.children.len()).sum()
    }

    fn position(&self, element: &Element) -> Result<usize, usize> {
        self.entries.binary_search_by(|entry| entry.element.cmp(element))
    }

    pub(super) fn child(&self, element: &Element) -> Option<&Entry> {
        self.position(element).ok().map(|at| &self.entries[at])
    }

    pub(super) fn field(&self, name: &str) -> Option<&Entry> {
        let at = self.entries.binary_search_by(|entry| match &entry.element {
            Element::Field(field) => field.as_ref().cmp(name),
            Element::Key(_) | Element::Value(_) | Element::Index(_) => std::cmp::Ordering::Greater,
        });
        at.ok().map(|at| &self.entries[at])
    }

    /// Adds a path, but not those it extends. The empty path is the object itself, which nobody owns.
    pub fn insert(&mut self, path: &[Element]) {
        let Some((first, rest)) = path.split_first() else { return };
        let at = self.position(first).unwrap_or_else(|at| {
            let entry = Entry { element: first.clone(), member: false, children: FieldSet::EMPTY };
            self.entries.insert(at, entry);
            at
        });
        let entry = &mut self.entries[at];
        match rest {
            [] => entry.member = true,
            rest => entry.children.insert(rest),
        }
    }

    pub fn contains(&self, path: &[Element]) -> bool {
        let Some((first, rest)) = path.split_first() else { return false };
        self.child(first).is_some_and(|entry| match rest {
            [] => entry.member,
            rest => entry.children.contains(rest),
        })
    }

    /// Adds an entry that usually is the last one.
    pub(super) fn add(&mut self, entry: Entry) {
        if self.entries.last().is_none_or(|last| last.element < entry.element) {
            self.entries.push(entry);
            return;
        }
        match self.position(&entry.element) {
            Ok(at) => self.entries[at].absorb(entry),
            Err(at) => self.entries.insert(at, entry),
        }
    }

    pub fn union(self, other: FieldSet) -> FieldSet {
        if self.is_empty() {
            return other;
        }
        let mut entries = Vec::with_capacity(self.entries.len().max(other.entries.len()));
        let mut theirs = other.entries.into_iter().peekable();
        for mut entry in self.entries {
            while let Some(their) = theirs.next_if(|their| their.element < entry.element) {
                entries.push(their);
            }
            if let Some(their) = theirs.next_if(|their| their.element == entry.element) {
                entry.absorb(their);
            }
            entries.push(entry);
        }
        entries.extend(theirs);
        FieldSet { entries }
    }

    /// The paths of this set that are not in the other.
    pub fn difference(mut self, other: &FieldSet) -> FieldSet {
        if other.is_empty() {
            return self;
        }
        self.against(other, |entry, other| {
            let Some(other) = other else { return };
            entry.member &= !other.member;
            entry.children = std::mem::take(&mut entry.children).difference(&other.children);
        });
        self
    }

    /// The paths of this set that neither are in the other nor extend one that is.
    pub fn without(mut self, other: &FieldSet) -> FieldSet {
        if other.is_empty() {
            return self;
        }
        self.against(other, |entry, other| match other {
            None => {}
            Some(Entry { member: true, .. }) => {
                entry.member = false;
                entry.children = FieldSet::default();
            }
            Some(other) => entry.children = std::mem::take(&mut entry.children).without(&other.children),
        });
        self
    }

    pub fn intersection(mut self, other: &FieldSet) -> FieldSet {
        self.against(other, |entry, other| match other {
            None => {
                entry.member = false;
                entry.children = FieldSet::default();
            }
            Some(other) => {
                entry.member &= other.member;
                entry.children = std::mem::take(&mut entry.children).intersection(&other.children);
            }
        });
        self
    }

    /// Changes each entry in view of the one with the same element in `other`, and drops what is left empty.
    fn against(&mut self, other: &FieldSet, mut change: impl FnMut(&mut Entry, Option<&Entry>)) {
        let mut theirs = other.entries.as_slice();
        self.entries.retain_mut(|entry| {
            while let [first, rest @ ..] = theirs
                && first.element < entry.element
            {
                theirs = rest;
            }
            change(entry, theirs.first().filter(|first| first.element == entry.element));
            entry.holds_anything()
        });
    }

    /// The members that no other member extends.
    pub fn leaves(mut self) -> FieldSet {
        for entry in &mut self.entries {
            entry.children = std::mem::take(&mut entry.children).leaves();
            entry.member &= entry.children.is_empty();
        }
        self
    }

    /// Calls `visit` with every path, in order; a path comes before those that extend it.
    pub fn visit<'a>(&'a self, mut visit: impl FnMut(&[&'a Element])) {
        self.visit_below(&mut Vec::new(), &mut visit);
    }

    fn visit_below<'a>(&'a self, path: &mut Vec<&'a Element>, visit: &mut impl FnMut(&[&'a Element])) {
        for entry in &self.entries {
            path.push(&entry.element);
            if entry.member {
                visit(path);
            }
            entry.children.visit_below(path, visit);
            path.pop();
        }
    }
}

impl Entry {
    fn absorb(&mut self, other: Entry) {
        self.member |= other.member;
        self.children = std::mem::take(&mut self.children).union(other.children);
    }
}

/// One path in a line.
impl fmt::Display for FieldSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut lines = Vec::new();
        self.visit(|path| lines.push(path.iter().map(ToString::to_string).collect::<String>()));
        f.write_str(&lines.join("\n"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use object::json;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    type Paths = BTreeSet<Vec<Element>>;

    fn element() -> impl Strategy<Value = Element> {
        prop_oneof![
            prop::sample::select(vec!["a", "b", "c"]).prop_map(Element::field),
            (0..3).prop_map(|port| Element::key([("port", json!(port))])),
            (0..2).prop_map(|value| Element::Value(json!(value))),
        ]
    }

    fn paths() -> impl Strategy<Value = Paths> {
        prop::collection::btree_set(prop::collection::vec(element(), 1..5), 0..12)
    }

    fn set(paths: &Paths) -> FieldSet {
        let mut set = FieldSet::default();
        paths.iter().for_each(|path| set.insert(path));
        set
    }

    /// The members of a set, after a look at its invariants.
    fn members(set: &FieldSet) -> Paths {
        fn check(set: &FieldSet) {
            assert!(set.entries.is_sorted_by(|a, b| a.element < b.element), "{set:?}");
            assert!(set.entries.iter().all(Entry::holds_anything), "{set:?}");
            set.entries.iter().for_each(|entry| check(&entry.children));
        }
        check(set);
        let mut members = Paths::new();
        set.visit(|path| {
            members.insert(path.iter().map(|element| (*element).clone()).collect());
        });
        members
    }

    proptest! {
        #[test]
        fn the_algebra_is_that_of_sets_of_paths(a in paths(), b in paths()) {
            let (left, right) = (set(&a), set(&b));
            prop_assert_eq!(&members(&left), &a);
            prop_assert_eq!(left.len(), a.len());
            prop_assert_eq!(members(&left.clone().union(right.clone())), &a | &b);
            prop_assert_eq!(members(&left.clone().difference(&right)), &a - &b);
            prop_assert_eq!(members(&left.clone().intersection(&right)), &a & &b);
            let extends_one = |path: &Vec<Element>| (1..=path.len()).any(|length| b.contains(&path[..length]));
            let without: Paths = a.iter().filter(|path| !extends_one(path)).cloned().collect();
            prop_assert_eq!(members(&left.clone().without(&right)), without);
            let extended = |path: &Vec<Element>| a.iter().any(|other| other.len() > path.len() && other.starts_with(path));
            let leaves: Paths = a.iter().filter(|path| !extended(path)).cloned().collect();
            prop_assert_eq!(members(&left.clone().leaves()), leaves);
            prop_assert!(a.iter().all(|path| left.contains(path)));
            prop_assert!(b.iter().all(|path| left.contains(path) == a.contains(path)));
        }
    }

    #[test]
    fn a_set_is_shown_as_its_paths() {
        let mut shown = FieldSet::of_fields(["spec.replicas", "metadata.labels"]);
        shown.insert(&[Element::field("spec"), Element::key([("name", json!("c"))])]);
        shown.insert(&[]);
        assert_eq!(shown.to_string(), ".metadata.labels\n.spec.replicas\n.spec[name=\"c\"]");
    }
}
