//! Parts that many objects have alike, kept in memory once: pods of one template differ in little but their names.
//!
//! A part that has just been read is looked up among those read lately, and given up for the one that is there. Only
//! views do that: they are computed with and never written back, so quantities that are equal count as the same,
//! however they were written.

use crate::Dict;
use serde::de::{Deserialize, Deserializer};
use serde::ser::{Serialize, Serializer};
use std::any::{Any, TypeId};
use std::cell::RefCell;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::ops::{Deref, DerefMut};
use std::sync::Arc;

/// So many parts are remembered by each thread that reads objects. One takes the place of another, whatever its type.
const REMEMBERED: usize = 2048;

thread_local! {
    static RECENT: RefCell<Vec<Option<Arc<dyn Any + Send + Sync>>>> = const { RefCell::new(Vec::new()) };
}

/// The same part, shared with whoever has read an equal one lately.
pub(crate) fn share<T: Eq + Hash + Send + Sync + 'static>(part: T) -> Arc<T> {
    let mut hasher = DefaultHasher::new();
    (TypeId::of::<T>(), &part).hash(&mut hasher);
    let place = hasher.finish() as usize % REMEMBERED;
    RECENT.with_borrow_mut(|recent| {
        recent.resize(REMEMBERED, None);
        if let Some(known) = recent[place].as_ref().and_then(|known| known.clone().downcast::<T>().ok())
            && *known == part
        {
            return known;
        }
        let part = Arc::new(part);
        recent[place] = Some(part.clone());
        part
    })
}

/// What may have nothing in it, and then takes no memory.
pub trait Empty: Sized + 'static {
    const EMPTY: &'static Self;
    fn is_empty(&self) -> bool;
}

impl<T: 'static> Empty for Vec<T> {
    const EMPTY: &'static Self = &Vec::new();
    fn is_empty(&self) -> bool {
        Vec::is_empty(self)
    }
}

impl<T: 'static> Empty for Dict<T> {
    const EMPTY: &'static Self = &Dict::new();
    fn is_empty(&self) -> bool {
        Dict::is_empty(self)
    }
}

/// A list or a map that other objects have too. Changing it changes a copy.
#[derive(Debug)]
pub struct Shared<T>(Option<Arc<T>>);

impl<T> Shared<T> {
    pub const fn new() -> Self {
        Shared(None)
    }
}

impl<T> Clone for Shared<T> {
    fn clone(&self) -> Self {
        Shared(self.0.clone())
    }
}

impl<T> Default for Shared<T> {
    fn default() -> Self {
        Shared::new()
    }
}

impl<T: Empty> Deref for Shared<T> {
    type Target = T;
    fn deref(&self) -> &T {
        self.0.as_deref().unwrap_or(T::EMPTY)
    }
}

impl<T: Empty + Clone + Default> DerefMut for Shared<T> {
    fn deref_mut(&mut self) -> &mut T {
        Arc::make_mut(self.0.get_or_insert_default())
    }
}

impl<T: Empty + PartialEq> PartialEq for Shared<T> {
    fn eq(&self, other: &Self) -> bool {
        match (&self.0, &other.0) {
            (Some(one), Some(other)) if Arc::ptr_eq(one, other) => true,
            _ => **self == **other,
        }
    }
}

impl<T: Empty + Eq> Eq for Shared<T> {}

impl<T: Empty + Hash> Hash for Shared<T> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (**self).hash(state);
    }
}

impl<T: Empty> From<T> for Shared<T> {
    fn from(part: T) -> Self {
        Shared((!part.is_empty()).then(|| Arc::new(part)))
    }
}

impl<T: Empty + FromIterator<I>, I, const N: usize> From<[I; N]> for Shared<T> {
    fn from(parts: [I; N]) -> Self {
        parts.into_iter().collect()
    }
}

impl<T: Empty + FromIterator<I>, I> FromIterator<I> for Shared<T> {
    fn from_iter<P: IntoIterator<Item = I>>(parts: P) -> Self {
        T::from_iter(parts).into()
    }
}

impl<'a, T> IntoIterator for &'a Shared<T>
where
    T: Empty,
    &'a T: IntoIterator,
{
    type Item = <&'a T as IntoIterator>::Item;
    type IntoIter = <&'a T as IntoIterator>::IntoIter;
    fn into_iter(self) -> Self::IntoIter {
        (**self).into_iter()
    }
}

impl<T: Empty + Serialize> Serialize for Shared<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        (**self).serialize(serializer)
    }
}

impl<'de, T: Empty + Deserialize<'de> + Eq + Hash + Send + Sync> Deserialize<'de> for Shared<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let part = T::deserialize(deserializer)?;
        Ok(Shared((!part.is_empty()).then(|| share(part))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Object, Pod};
    use object::{View, json};

    fn pod(name: &str, node: &str, image: &str) -> Object<Pod> {
        Object::of(&json!({
            "metadata": { "name": name, "labels": { "app": "web" }, "ownerReferences": [{ "name": "set", "uid": "u" }] },
            "spec": {
                "nodeName": node, "containers": [{ "name": "web", "image": image }],
                "volumes": [{ "name": name, "projected": {} }, { "name": "data", "persistentVolumeClaim": { "claimName": name } }],
            },
        }))
    }

    #[test]
    fn pods_of_one_template_share_what_they_have_alike_and_nothing_else() {
        let (one, other) = (pod("a", "n1", "web:1"), pod("b", "n2", "web:1"));
        assert!(std::ptr::eq(&*one.spec.containers, &*other.spec.containers));
        assert!(std::ptr::eq(&*one.metadata.labels, &*other.metadata.labels));
        assert!(std::ptr::eq(&*one.metadata.owner_references, &*other.metadata.owner_references));
        assert_eq!((one.spec.node_name.as_str(), other.spec.node_name.as_str()), ("n1", "n2"));
        assert_eq!(
            (Vec::from_iter(one.claims()), Vec::from_iter(other.claims())),
            (vec!["a".into()], vec!["b".into()])
        );
        let changed = pod("a", "n1", "web:2");
        assert_eq!(
            (one.spec.containers[0].image.as_str(), changed.spec.containers[0].image.as_str()),
            ("web:1", "web:2")
        );
    }

    #[test]
    fn what_a_pod_has_for_itself_takes_half_a_kilobyte_at_most() {
        let counts = 2 * size_of::<usize>();
        assert!(size_of::<Object<Pod>>() + counts <= 512, "{} bytes", size_of::<Object<Pod>>());
    }

    #[test]
    fn changing_what_is_shared_changes_a_copy() {
        let one: Shared<Dict<i32>> = serde_json::from_str(r#"{"a":1}"#).unwrap();
        let mut other: Shared<Dict<i32>> = serde_json::from_str(r#"{"a":1}"#).unwrap();
        assert!(std::ptr::eq(&*one, &*other));
        other.insert("b".to_owned(), 2);
        assert_eq!((one.len(), other.len()), (1, 2));
    }

    #[test]
    fn parts_of_different_types_are_never_taken_for_each_other() {
        let texts: Shared<Vec<String>> = serde_json::from_str("[]").unwrap();
        let numbers: Shared<Vec<i32>> = serde_json::from_str("[1]").unwrap();
        assert_eq!((texts.len(), numbers.len()), (0, 1));
        assert_eq!(*share(1_u32), *share(1_u32));
        assert!(Arc::ptr_eq(&share(7_u64), &share(7_u64)));
    }

    #[test]
    fn a_part_that_reads_as_text_is_written_as_it_was_read() {
        let labels: Shared<Dict<String>> = serde_json::from_str(r#"{"b":"2","a":"1"}"#).unwrap();
        assert_eq!(object::to_value(&labels).text("b"), "2");
    }
}
