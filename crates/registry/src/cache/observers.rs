//! Observers: told of every event of a resource by whoever brings it, before anybody hears that the cache has come so far.
//!
//! For what is made of few objects and has to be as current as they are: the roles that decide who may do what, the
//! levels that decide who waits. The store waits for an observer, so it is for small tables and quick work.

use super::{Cache, Event, EventKind, State};
use parking_lot::RwLock;
use std::sync::Arc;

type Observe = Box<dyn Fn(&Event) + Send + Sync>;

/// Locked before the state, and for as long as something is being told: whoever begins to observe sees all of it or none.
#[derive(Default)]
pub(super) struct Observers(pub(super) RwLock<Vec<(&'static str, Observe)>>);

impl Cache {
    /// Calls `observe` with every object of a table, as if it had just been added, and then with every event.
    pub fn observe(&self, table: &'static str, observe: impl Fn(&Event) + Send + Sync + 'static) {
        let mut observers = self.0.observers.0.write();
        for object in self.snapshot(table).objects.values() {
            observe(&Event::new(EventKind::Added, object.clone(), None));
        }
        observers.push((table, Box::new(observe)));
    }
}

impl Observers {
    /// Tells of events in their order.
    pub(super) fn tell(observers: &[(&'static str, Observe)], events: &[(&'static str, Arc<Event>)]) {
        for (table, event) in events {
            observers.iter().filter(|(observed, _)| observed == table).for_each(|(_, observe)| observe(event));
        }
    }

    /// Tells of what is different after the cache has started over.
    pub(super) fn tell_differences(observers: &[(&'static str, Observe)], old: &State, new: &State) {
        for (table, observe) in observers {
            let objects =
                |state: &State| state.tables.get(*table).map(|table| table.objects.clone()).unwrap_or_default();
            let (old, current) = (objects(old), objects(new));
            for (_, gone) in old.iter().filter(|(key, _)| !current.contains_key(*key)) {
                let last = Arc::new(gone.at(new.revision));
                observe(&Event::new(EventKind::Deleted, last, Some(gone.clone())));
            }
            for (key, object) in &current {
                let previous = old.get(key).cloned();
                let kind = if previous.is_some() { EventKind::Modified } else { EventKind::Added };
                if previous.as_ref().is_none_or(|previous| previous.revision != object.revision) {
                    observe(&Event::new(kind, object.clone(), previous));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::seal::Plain;
    use ambient::{Ambient, Tasks};
    use parking_lot::Mutex;
    use store::{Memory, Retention, Store, Txn};

    fn body(name: &str) -> String {
        format!("{{\"metadata\":{{\"name\":\"{name}\"}}}}")
    }

    async fn put(store: &dyn Store, name: &str) {
        store.commit(Txn::put(format!("roles/{name}"), body(name))).await.unwrap();
    }

    #[tokio::test]
    async fn an_observer_knows_what_is_there_and_every_change_before_its_author_does() {
        let ambient = Ambient::real();
        let store = Arc::new(Memory::new(&ambient, Retention::default()));
        put(&*store, "a").await;
        let tasks = Tasks::new();
        let cache = Cache::start(store.clone(), Arc::new(Plain), &tasks).await.unwrap();
        let seen: Arc<Mutex<Vec<String>>> = Arc::default();
        let notes = seen.clone();
        cache.observe("roles", move |event| notes.lock().push(format!("{:?} {}", event.kind, event.object.name())));
        let news = || std::mem::take(&mut *seen.lock());
        assert_eq!(news(), ["Added a"]);
        put(&*store, "b").await;
        put(&*store, "a").await;
        store.commit(Txn::put("others/x", body("x"))).await.unwrap();
        store.commit(Txn::delete("roles/b")).await.unwrap();
        assert_eq!(news(), ["Added b", "Modified a", "Deleted b"]);

        // From here on the store hands nothing over.
        put(&*store, "stays").await;
        tasks.stop().await;
        news();
        put(&*store, "c").await;
        put(&*store, "a").await;
        store.commit(Txn::delete("roles/stays")).await.unwrap();
        assert!(news().is_empty());
        cache.load().await.unwrap();
        assert_eq!(news(), ["Deleted stays", "Modified a", "Added c"]);
        cache.load().await.unwrap();
        assert!(news().is_empty(), "nothing is different");
        ambient.tasks.stop().await;
    }
}
