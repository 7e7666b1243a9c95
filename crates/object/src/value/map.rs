//! A JSON object: entries in one list, sorted by key.

use super::{FieldName, Value};
use std::fmt;

/// The fields of an object.
#[derive(Clone, Default, PartialEq)]
pub struct Map {
    entries: Vec<(FieldName, Value)>,
}

/// Up to so many entries are looked through one after the other: most differ in length already.
const FEW: usize = 12;

impl Map {
    pub const fn new() -> Self {
        Map { entries: Vec::new() }
    }

    pub fn with_capacity(capacity: usize) -> Self {
        Map { entries: Vec::with_capacity(capacity) }
    }

    pub fn len(&self) -> usize {
        self.entries.len()
    }

    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    pub fn clear(&mut self) {
        self.entries.clear();
    }

    /// Where a key is.
    fn find(&self, key: &str) -> Option<usize> {
        if self.entries.len() <= FEW {
            return self.entries.iter().position(|(name, _)| name.len() == key.len() && name.as_str() == key);
        }
        self.search(key).ok()
    }

    /// Where a key is, or belongs.
    fn search(&self, key: &str) -> Result<usize, usize> {
        // Whoever fills a map mostly does so in order.
        match self.entries.last() {
            Some((last, _)) if last.as_str() < key => Err(self.entries.len()),
            None => Err(0),
            Some(_) => self.entries.binary_search_by(|(name, _)| name.as_str().cmp(key)),
        }
    }

    pub fn get(&self, key: &str) -> Option<&Value> {
        self.find(key).map(|at| &self.entries[at].1)
    }

    pub fn get_mut(&mut self, key: &str) -> Option<&mut Value> {
        self.find(key).map(|at| &mut self.entries[at].1)
    }

    pub fn get_key_value(&self, key: &str) -> Option<(&FieldName, &Value)> {
        self.find(key).map(|at| (&self.entries[at].0, &self.entries[at].1))
    }

    pub fn contains_key(&self, key: &str) -> bool {
        self.find(key).is_some()
    }

    /// Sets a field, and returns what was there.
    pub fn insert(&mut self, key: impl Into<FieldName>, value: Value) -> Option<Value> {
        let key = key.into();
        match self.search(&key) {
            Ok(at) => Some(std::mem::replace(&mut self.entries[at].1, value)),
            Err(at) => {
                self.entries.insert(at, (key, value));
                None
            }
        }
    }

    /// The value of a key; null is put there first if there is none.
    pub(super) fn get_or_null(&mut self, key: &str) -> &mut Value {
        let at = match self.search(key) {
            Ok(at) => at,
            Err(at) => {
                self.entries.insert(at, (key.into(), Value::Null));
                at
            }
        };
        &mut self.entries[at].1
    }

    pub fn entry(&mut self, key: impl Into<FieldName>) -> Entry<'_> {
        let key = key.into();
        Entry { place: self.search(&key), key, map: self }
    }

    pub fn remove(&mut self, key: &str) -> Option<Value> {
        self.find(key).map(|at| self.entries.remove(at).1)
    }

    pub fn retain(&mut self, mut keep: impl FnMut(&FieldName, &mut Value) -> bool) {
        self.entries.retain_mut(|(key, value)| keep(key, value));
    }

    pub fn append(&mut self, other: &mut Map) {
        self.extend(std::mem::take(other));
    }

    pub fn iter(&self) -> Iter<'_> {
        self.entries.iter().map(|(key, value)| (key, value))
    }

    pub fn iter_mut(&mut self) -> IterMut<'_> {
        self.entries.iter_mut().map(|(key, value)| (&*key, value))
    }

    pub fn keys(&self) -> impl ExactSizeIterator<Item = &FieldName> + DoubleEndedIterator + Clone {
        self.entries.iter().map(|(key, _)| key)
    }

    pub fn values(&self) -> impl ExactSizeIterator<Item = &Value> + DoubleEndedIterator + Clone {
        self.entries.iter().map(|(_, value)| value)
    }

    pub fn values_mut(&mut self) -> impl ExactSizeIterator<Item = &mut Value> + DoubleEndedIterator {
        self.entries.iter_mut().map(|(_, value)| value)
    }

    pub fn into_values(self) -> impl ExactSizeIterator<Item = Value> {
        self.entries.into_iter().map(|(_, value)| value)
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
    place: Result<usize, usize>,
}

impl<'a> Entry<'a> {
    pub fn or_insert_with(self, make: impl FnOnce() -> Value) -> &'a mut Value {
        let at = match self.place {
            Ok(at) => at,
            Err(at) => {
                self.map.entries.insert(at, (self.key, make()));
                at
            }
        };
        &mut self.map.entries[at].1
    }

    pub fn or_insert(self, value: Value) -> &'a mut Value {
        self.or_insert_with(|| value)
    }
}

impl fmt::Debug for Map {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

impl<K: Into<FieldName>, V: Into<Value>> FromIterator<(K, V)> for Map {
    fn from_iter<I: IntoIterator<Item = (K, V)>>(entries: I) -> Self {
        let mut map = Map::new();
        map.extend(entries);
        map
    }
}

impl<K: Into<FieldName>, V: Into<Value>> Extend<(K, V)> for Map {
    fn extend<I: IntoIterator<Item = (K, V)>>(&mut self, entries: I) {
        for (key, value) in entries {
            self.insert(key, value.into());
        }
    }
}

impl IntoIterator for Map {
    type Item = (FieldName, Value);
    type IntoIter = std::vec::IntoIter<(FieldName, Value)>;

    fn into_iter(self) -> Self::IntoIter {
        self.entries.into_iter()
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
