//! A reflector: makes something reflect what the API has of one resource.
//!
//! It starts with a streaming list, goes on from where a watch ended, and starts over when the server has forgotten
//! that place. What is different then is worked out against what is there, so nobody sees a change twice.

use crate::client::{Client, ListOptions};
use crate::transport::{Event, Events};
use ambient::Random;
use kinds::{Id, Key, Kind, Meta, Object, Partial, Raw};
use object::{ApiError, Reason};
use std::collections::BTreeSet;
use std::time::Duration;

/// Waits between two attempts, doubling from the first to the last, each up to twice as long by chance.
const MIN_BACKOFF: Duration = Duration::from_millis(100);
const MAX_BACKOFF: Duration = Duration::from_secs(30);

/// What reflects a resource.
pub trait Sink: Send + Sync {
    /// An object, as much of it as is kept.
    type Item: Item;
    fn read(&self, raw: Raw) -> Result<Self::Item, ApiError>;
    fn put(&self, item: Self::Item);
    fn remove(&self, key: &Key);
    /// The version in which an object is there.
    fn version_of(&self, key: &Key) -> Option<String>;
    /// What is there besides `seen`.
    fn others(&self, seen: &BTreeSet<Key>) -> Vec<Key>;
    /// Everything up to a version has been seen; `synced` says that a whole list has.
    fn advance(&self, version: u64, synced: bool);
}

/// What is read of an object has metadata.
pub trait Item: Send {
    fn meta(&self) -> &Meta;

    fn key(&self) -> Key {
        Key::new(self.meta().namespace.as_str(), self.meta().name.as_str())
    }
}

impl<K: Kind> Item for Object<K> {
    fn meta(&self) -> &Meta {
        (**self).meta()
    }
}

impl Item for Partial {
    fn meta(&self) -> &Meta {
        &self.metadata
    }
}

/// Keeps `sink` up to date for as long as it is polled.
pub async fn reflect<S: Sink>(client: &Client, id: &Id, sink: &S, random: &Random) {
    let mut after: Option<String> = None;
    let mut backoff = MIN_BACKOFF;
    loop {
        match follow(client, id, sink, &mut after).await {
            Ok(Followed::Something) => backoff = MIN_BACKOFF,
            // A server that is stopping ends every watch at once, and would be asked for ever.
            Ok(Followed::Nothing) => tracing::debug!(resource = %id.plural, "watch ended with nothing"),
            Err(error) => {
                if matches!(error.reason(), Reason::Expired | Reason::Gone) {
                    after = None;
                }
                tracing::debug!(resource = %id.plural, %error, "watch ended");
            }
        }
        let jitter = random.below(1 + u64::try_from(backoff.as_millis()).unwrap_or(u64::MAX));
        tokio::time::sleep(backoff + Duration::from_millis(jitter)).await;
        backoff = (backoff * 2).min(MAX_BACKOFF);
    }
}

/// Whether a watch brought anything before it ended.
enum Followed {
    Something,
    Nothing,
}

/// Follows one watch to its end.
async fn follow<S: Sink>(client: &Client, id: &Id, sink: &S, after: &mut Option<String>) -> Result<Followed, ApiError> {
    let mut events = client.watch(id, "", &ListOptions::default(), after.as_deref()).await?;
    let mut followed = Followed::Nothing;
    if after.is_none() {
        *after = Some(sync(sink, &mut *events).await?);
        followed = Followed::Something;
    }
    while let Some(batch) = events.next().await {
        for event in batch? {
            *after = Some(apply(sink, event)?);
            followed = Followed::Something;
        }
    }
    Ok(followed)
}

/// Reads the list that a watch starts with, and makes the sink that.
async fn sync<S: Sink>(sink: &S, events: &mut dyn Events) -> Result<String, ApiError> {
    let mut seen = BTreeSet::new();
    while let Some(batch) = events.next().await {
        for event in batch? {
            match event {
                Event::Added(raw) | Event::Modified(raw) => {
                    let item = sink.read(raw)?;
                    let key = item.key();
                    if sink.version_of(&key).as_ref() != Some(&item.meta().resource_version) {
                        sink.put(item);
                    }
                    seen.insert(key);
                }
                Event::Deleted(raw) => {
                    seen.remove(&gone(&raw)?.key());
                }
                Event::Bookmark { version, initial_end: true } => {
                    sink.others(&seen).iter().for_each(|key| sink.remove(key));
                    sink.advance(number(&version), true);
                    return Ok(version);
                }
                Event::Bookmark { .. } => {}
            }
        }
    }
    Err(ApiError::new(Reason::InternalError, "the watch ended within the list it starts with"))
}

/// Takes an event in; returns the version up to which everything has been seen.
fn apply<S: Sink>(sink: &S, event: Event) -> Result<String, ApiError> {
    let version = match event {
        Event::Added(raw) | Event::Modified(raw) => {
            let item = sink.read(raw)?;
            let version = item.meta().resource_version.clone();
            sink.put(item);
            version
        }
        Event::Deleted(raw) => {
            let item = gone(&raw)?;
            sink.remove(&item.key());
            item.metadata.resource_version
        }
        Event::Bookmark { version, .. } => version,
    };
    sink.advance(number(&version), false);
    Ok(version)
}

/// Which object is gone: nobody reads more of it.
fn gone(raw: &Raw) -> Result<Partial, ApiError> {
    Partial::read(raw).map_err(ApiError::internal)
}

fn number(version: &str) -> u64 {
    version.parse().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::informer::Informer;
    use bytes::Bytes;
    use kinds::Pod;
    use object::{Value, json};

    fn raw(version: &str, spec: &Value) -> Raw {
        let metadata = json!({ "namespace": "a", "name": "x", "resourceVersion": version });
        Raw::from(Bytes::from(json!({ "metadata": metadata, "spec": spec }).to_string()))
    }

    #[test]
    fn what_is_gone_leaves_the_cache_even_if_nobody_can_read_it() {
        let pods = Informer::<Pod>::default();
        let unreadable = json!("from a later version");
        assert!(apply(&pods, Event::Added(raw("5", &unreadable))).is_err());
        assert_eq!(apply(&pods, Event::Added(raw("5", &json!({})))).unwrap(), "5");
        assert!(pods.cache.named("a", "x").is_some());
        assert_eq!(apply(&pods, Event::Deleted(raw("7", &unreadable))).unwrap(), "7");
        assert!(pods.cache.is_empty());
        assert_eq!(pods.cache.progress().borrow().version, 7);
    }
}
