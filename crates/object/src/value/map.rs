//! A JSON object: entries in one list, sorted by key, and shared between copies until one of them is changed.
//!
//! A write of the API makes a new object from an old one and changes little. So copying costs a count, comparing stops
//! where two copies still share, and a change copies the maps on the way to it and nothing else.

use super::{FieldName, Value};
use std::fmt;
use std::sync::Arc;

/// The fields of an object.
#[derive(Clone, Default)]
pub struct Map {
    /// None: it is empty.
    shared: Option<Arc<Entries>>,
}

/// Entries, each key once, sorted by it: a map in the making, or what a map is made of.
#[derive(Clone, Default, PartialEq, Eq, Hash)]
pub(super) struct Entries(Vec<(FieldName, Value)>);

/// Up to so many entries are looked through one after the other: most differ in length already.
const FEW: usize = 12;

impl Entries {
    pub(super) fn with_capacity(capacity: usize) -> Self {
        Entries(Vec::with_capacity(capacity))
    }

    /// Where a key is, or belongs.
    fn search(&self, key: &str) -> Result<usize, usize> {
        // Whoever fills a map mostly does so in order.
        match self.0.last() {
            Some((last, _)) if last.as_str() < key => Err(self.0.len()),
            None => Err(0),
            Some(_) => self.0.binary_search_by(|(name, _)| name.as_str().cmp(key)),
        }
    }

    /// Sets a field, and returns what was there.
    pub(super) fn insert(&mut self, key: impl Into<FieldName>, value: Value) -> Option<Value> {
        let key = key.into();
        match self.search(&key) {
            Ok(at) => Some(std::mem::replace(&mut self.0[at].1, value)),
            Err(at) => {
                self.0.insert(at, (key, value));
                None
            }
        }
    }

    /// The value of a key, made first if there is none.
    fn get_or_make(&mut self, key: FieldName, make: impl FnOnce() -> Value) -> &mut Value {
        let at = self.search(&key).unwrap_or_else(|at| {
            self.0.insert(at, (key, make()));
            at
        });
        &mut self.0[at].1
    }
}

impl From<Entries> for Map {
    fn from(entries: Entries) -> Self {
        Map { shared: (!entries.0.is_empty()).then(|| Arc::new(entries)) }
    }
}

impl Map {
    pub const fn new() -> Self {
        Map { shared: None }
    }

    /// Entries as they are.
    fn entries(&self) -> &[(FieldName, Value)] {
        self.shared.as_deref().map_or(&[], |entries| entries.0.as_slice())
    }

    /// Entries to be changed: from here on they are this map's own.
    fn own(&mut self) -> &mut Entries {
        Arc::make_mut(self.shared.get_or_insert_default())
    }

    /// The same, where nothing is added.
    fn entries_mut(&mut self) -> &mut [(FieldName, Value)] {
        self.shared.as_mut().map_or(&mut [], |shared| Arc::make_mut(shared).0.as_mut_slice())
    }

    /// Whether two maps are copies of each other that nobody has changed. Maps that are equal need not be.
    pub fn is_same(&self, other: &Map) -> bool {
        match (&self.shared, &other.shared) {
            (Some(one), Some(other)) => Arc::ptr_eq(one, other),
            (one, other) => one.is_none() && other.is_none(),
        }
    }

    pub fn len(&self) -> usize {
        self.entries().len()
    }

    pub fn is_empty(&self) -> bool {
        self.entries().is_empty()
    }

    pub fn clear(&mut self) {
        self.shared = None;
    }

    /// Where a key is.
    fn find(&self, key: &str) -> Option<usize> {
        let shared = self.shared.as_ref()?;
        if shared.0.len() <= FEW {
            return shared.0.iter().position(|(name, _)| name.len() == key.len() && name.as_str() == key);
        }
        shared.search(key).ok()
    }

    pub fn get(&self, key: &str) -> Option<&Value> {
        self.find(key).map(|at| &self.entries()[at].1)
    }

    pub fn get_mut(&mut self, key: &str) -> Option<&mut Value> {
        self.find(key).map(|at| &mut self.entries_mut()[at].1)
    }

    pub fn get_key_value(&self, key: &str) -> Option<(&FieldName, &Value)> {
        self.find(key).map(|at| (&self.entries()[at].0, &self.entries()[at].1))
    }

    pub fn contains_key(&self, key: &str) -> bool {
        self.find(key).is_some()
    }

    /// Sets a field, and returns what was there.
    pub fn insert(&mut self, key: impl Into<FieldName>, value: Value) -> Option<Value> {
        self.own().insert(key, value)
    }

    /// The value of a key; null is put there first if there is none.
    pub(super) fn get_or_null(&mut self, key: &str) -> &mut Value {
        self.own().get_or_make(key.into(), Value::default)
    }

    pub fn entry(&mut self, key: impl Into<FieldName>) -> Entry<'_> {
        Entry { key: key.into(), map: self }
    }

    pub fn remove(&mut self, key: &str) -> Option<Value> {
        self.find(key).map(|at| self.own().0.remove(at).1)
    }

    pub fn retain(&mut self, mut keep: impl FnMut(&FieldName, &mut Value) -> bool) {
        if let Some(shared) = &mut self.shared {
            Arc::make_mut(shared).0.retain_mut(|(key, value)| keep(key, value));
        }
    }

    pub fn append(&mut self, other: &mut Map) {
        self.extend(std::mem::take(other));
    }

    pub fn iter(&self) -> Iter<'_> {
        self.entries().iter().map(|(key, value)| (key, value))
    }

    pub fn iter_mut(&mut self) -> IterMut<'_> {
        self.entries_mut().iter_mut().map(|(key, value)| (&*key, value))
    }

    pub fn keys(&self) -> impl ExactSizeIterator<Item = &FieldName> + DoubleEndedIterator + Clone {
        self.entries().iter().map(|(key, _)| key)
    }

    pub fn values(&self) -> impl ExactSizeIterator<Item = &Value> + DoubleEndedIterator + Clone {
        self.entries().iter().map(|(_, value)| value)
    }

    pub fn values_mut(&mut self) -> impl ExactSizeIterator<Item = &mut Value> + DoubleEndedIterator {
        self.entries_mut().iter_mut().map(|(_, value)| value)
    }

    pub fn into_values(self) -> impl ExactSizeIterator<Item = Value> {
        self.into_iter().map(|(_, value)| value)
    }
}

/// Entries in the order of their keys.
pub(super) type Iter<'a> =
    std::iter::Map<std::slice::Iter<'a, (FieldName, Value)>, fn(&'a (FieldName, Value)) -> (&'a FieldName, &'a Value)>;
pub(super) type IterMut<'a> = std::iter::Map<
    std::slice::IterMut<'a, (FieldName, Value)>,
    fn(&'a mut (FieldName, Value)) -> (&'a FieldName, &'a mut Value),
>;

/// The place of a key, taken or free.
#[derive(Debug)]
pub struct Entry<'a> {
    map: &'a mut Map,
    key: FieldName,
}

impl<'a> Entry<'a> {
    pub fn or_insert_with(self, make: impl FnOnce() -> Value) -> &'a mut Value {
        self.map.own().get_or_make(self.key, make)
    }

    pub fn or_insert(self, value: Value) -> &'a mut Value {
        self.or_insert_with(|| value)
    }
}

impl PartialEq for Map {
    fn eq(&self, other: &Self) -> bool {
        self.is_same(other) || self.entries() == other.entries()
    }
}

impl Eq for Map {}

impl std::hash::Hash for Map {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.entries().hash(state);
    }
}

impl fmt::Debug for Map {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

impl<K: Into<FieldName>, V: Into<Value>> FromIterator<(K, V)> for Map {
    fn from_iter<I: IntoIterator<Item = (K, V)>>(entries: I) -> Self {
        let mut made = Entries::default();
        for (key, value) in entries {
            made.insert(key, value.into());
        }
        made.into()
    }
}

impl<K: Into<FieldName>, V: Into<Value>> Extend<(K, V)> for Map {
    fn extend<I: IntoIterator<Item = (K, V)>>(&mut self, entries: I) {
        let own = self.own();
        for (key, value) in entries {
            own.insert(key, value.into());
        }
    }
}

impl IntoIterator for Map {
    type Item = (FieldName, Value);
    type IntoIter = std::vec::IntoIter<(FieldName, Value)>;

    fn into_iter(self) -> Self::IntoIter {
        self.shared.map(Arc::unwrap_or_clone).unwrap_or_default().0.into_iter()
    }
}

impl<'a> IntoIterator for &'a Map {
    type Item = (&'a FieldName, &'a Value);
    type IntoIter = Iter<'a>;

    fn into_iter(self) -> Iter<'a> {
        self.iter()
    }
}

impl<'a> IntoIterator for &'a mut Map {
    type Item = (&'a FieldName, &'a mut Value);
    type IntoIter = IterMut<'a>;

    fn into_iter(self) -> IterMut<'a> {
        self.iter_mut()
    }
}

impl std::ops::Index<&str> for Map {
    type Output = Value;

    fn index(&self, key: &str) -> &Value {
        self.get(key).expect("the key is there")
    }
}
