//! Names of fields, which are few and come again and again.
//!
//! The first some thousand that are seen are kept for good, each once, so that reading an object makes no text for the
//! names in it. Each thread remembers where those are that it has met lately; only what is new asks for the lock.

use parking_lot::Mutex;
use serde::de::{Deserialize, Deserializer, Visitor};
use serde::{Serialize, Serializer};
use std::borrow::{Borrow, Cow};
use std::cell::RefCell;
use std::collections::HashSet;
use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

/// The key of an entry of a map.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FieldName(Cow<'static, str>);

/// So many names are kept at most, and none that is longer: keys of labels and annotations may be anything.
const MAX_NAMES: usize = 8_192;
const MAX_LENGTH: usize = 64;
/// How many a thread remembers, in places of two.
const PLACES: usize = 2_048;

static NAMES: Mutex<Option<HashSet<&'static str>>> = Mutex::new(None);

thread_local! {
    static LATELY: RefCell<Vec<[&'static str; 2]>> = const { RefCell::new(Vec::new()) };
}

impl FieldName {
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// From a text that need not be kept.
    fn new(text: &str) -> Self {
        if text.is_empty() || text.len() > MAX_LENGTH {
            return FieldName(Cow::Owned(text.to_owned()));
        }
        LATELY.with_borrow_mut(|places| {
            if places.is_empty() {
                places.resize(PLACES, [""; 2]);
            }
            let place = &mut places[place_of(text)];
            if let Some(known) = place.iter().find(|known| **known == text) {
                return FieldName(Cow::Borrowed(known));
            }
            match keep(text) {
                Some(kept) => {
                    *place = [kept, place[0]];
                    FieldName(Cow::Borrowed(kept))
                }
                None => FieldName(Cow::Owned(text.to_owned())),
            }
        })
    }
}

/// Names that begin and end alike and are equally long share a place; there are two in each.
fn place_of(text: &str) -> usize {
    let bytes = text.as_bytes();
    let word = |part: &[u8]| part.iter().fold(0_u64, |word, byte| word << 8 | u64::from(*byte));
    let half = bytes.len().min(8);
    let mixed = word(&bytes[..half]) ^ word(&bytes[bytes.len() - half..]).rotate_left(29) ^ bytes.len() as u64;
    (mixed.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40) as usize % PLACES
}

/// Keeps a name for good, if there is room.
fn keep(text: &str) -> Option<&'static str> {
    let mut names = NAMES.lock();
    let names = names.get_or_insert_default();
    if let Some(known) = names.get(text) {
        return Some(known);
    }
    if names.len() == MAX_NAMES {
        return None;
    }
    let kept: &'static str = Box::leak(text.into());
    names.insert(kept);
    Some(kept)
}

impl Deref for FieldName {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl Borrow<str> for FieldName {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl AsRef<str> for FieldName {
    fn as_ref(&self) -> &str {
        &self.0
    }
}

impl From<&str> for FieldName {
    fn from(text: &str) -> Self {
        FieldName::new(text)
    }
}

impl From<&String> for FieldName {
    fn from(text: &String) -> Self {
        FieldName::new(text)
    }
}

impl From<String> for FieldName {
    fn from(text: String) -> Self {
        FieldName(Cow::Owned(text))
    }
}

impl From<&FieldName> for FieldName {
    fn from(name: &FieldName) -> Self {
        name.clone()
    }
}

impl From<FieldName> for String {
    fn from(name: FieldName) -> Self {
        name.0.into_owned()
    }
}

impl From<FieldName> for Arc<str> {
    fn from(name: FieldName) -> Self {
        name.as_str().into()
    }
}

impl PartialEq<str> for FieldName {
    fn eq(&self, other: &str) -> bool {
        self.0 == other
    }
}

impl PartialEq<&str> for FieldName {
    fn eq(&self, other: &&str) -> bool {
        self.0 == *other
    }
}

impl PartialEq<String> for FieldName {
    fn eq(&self, other: &String) -> bool {
        self.0 == other.as_str()
    }
}

impl fmt::Debug for FieldName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&*self.0, f)
    }
}

impl fmt::Display for FieldName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&*self.0, f)
    }
}

impl Serialize for FieldName {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for FieldName {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Text;

        impl Visitor<'_> for Text {
            type Value = FieldName;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string")
            }

            fn visit_str<E>(self, text: &str) -> Result<FieldName, E> {
                Ok(FieldName::new(text))
            }
        }

        deserializer.deserialize_str(Text)
    }
}
