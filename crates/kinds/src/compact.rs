//! Lists and maps of views, in as little memory as they need: caches hold hundreds of thousands of mostly short ones.

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde::ser::{Serialize, Serializer};
use std::fmt;
use std::marker::PhantomData;

/// A list of a view: as long as it was read.
pub type List<T> = Box<[T]>;

/// A map of a view, by name: sorted entries. Inserting costs its length, which is some ten at most where that is done.
#[derive(Clone, Debug, Eq, Hash, PartialEq, PartialOrd, Ord)]
pub struct Dict<T>(Vec<(String, T)>);

impl<T> Dict<T> {
    pub const fn new() -> Self {
        Dict(Vec::new())
    }

    fn find(&self, name: &str) -> Result<usize, usize> {
        self.0.binary_search_by(|(key, _)| key.as_str().cmp(name))
    }

    pub fn get(&self, name: &str) -> Option<&T> {
        self.find(name).ok().map(|index| &self.0[index].1)
    }

    pub fn contains_key(&self, name: &str) -> bool {
        self.find(name).is_ok()
    }

    pub fn insert(&mut self, name: String, value: T) {
        match self.find(&name) {
            Ok(index) => self.0[index].1 = value,
            Err(index) => self.0.insert(index, (name, value)),
        }
    }

    pub fn remove(&mut self, name: &str) -> Option<T> {
        self.find(name).ok().map(|index| self.0.remove(index).1)
    }

    pub fn retain(&mut self, keep: impl Fn(&String, &T) -> bool) {
        self.0.retain(|(name, value)| keep(name, value));
    }

    pub fn len(&self) -> usize {
        self.0.len()
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn iter(&self) -> Iter<'_, T> {
        self.0.iter().map(|(name, value)| (name, value))
    }

    pub fn keys(&self) -> impl Iterator<Item = &String> {
        self.0.iter().map(|(name, _)| name)
    }

    pub fn values(&self) -> impl Iterator<Item = &T> {
        self.0.iter().map(|(_, value)| value)
    }
}

impl<T> Default for Dict<T> {
    fn default() -> Self {
        Dict::new()
    }
}

/// The entries of a map, by name.
pub(crate) type Iter<'a, T> =
    std::iter::Map<std::slice::Iter<'a, (String, T)>, fn(&'a (String, T)) -> (&'a String, &'a T)>;

impl<'a, T> IntoIterator for &'a Dict<T> {
    type Item = (&'a String, &'a T);
    type IntoIter = Iter<'a, T>;
    fn into_iter(self) -> Iter<'a, T> {
        self.iter()
    }
}

impl<T> IntoIterator for Dict<T> {
    type Item = (String, T);
    type IntoIter = std::vec::IntoIter<(String, T)>;
    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

impl<T> Extend<(String, T)> for Dict<T> {
    fn extend<I: IntoIterator<Item = (String, T)>>(&mut self, entries: I) {
        entries.into_iter().for_each(|(name, value)| self.insert(name, value));
    }
}

impl<T> FromIterator<(String, T)> for Dict<T> {
    fn from_iter<I: IntoIterator<Item = (String, T)>>(entries: I) -> Self {
        let mut dict = Dict::new();
        dict.extend(entries);
        dict.0.shrink_to_fit();
        dict
    }
}

impl<T, const N: usize> From<[(String, T); N]> for Dict<T> {
    fn from(entries: [(String, T); N]) -> Self {
        entries.into_iter().collect()
    }
}

impl<T: Serialize> Serialize for Dict<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.iter())
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Dict<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(Entries(PhantomData))
    }
}

struct Entries<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for Entries<T> {
    type Value = Dict<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a map")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Dict<T>, A::Error> {
        let mut dict = Dict::new();
        while let Some((name, value)) = access.next_entry()? {
            dict.insert(name, value);
        }
        dict.0.shrink_to_fit();
        Ok(dict)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_map_is_sorted_keeps_the_last_of_a_name_and_takes_no_more_than_it_needs() {
        let read: Dict<i32> = serde_json::from_str(r#"{"b":1,"a":2,"c":3,"b":4}"#).unwrap();
        assert_eq!(read, Dict::from([("a".to_owned(), 2), ("b".to_owned(), 4), ("c".to_owned(), 3)]));
        assert_eq!((read.get("b"), read.get("d"), read.0.capacity()), (Some(&4), None, 3));
        assert_eq!(serde_json::to_string(&read).unwrap(), r#"{"a":2,"b":4,"c":3}"#);
    }
}
