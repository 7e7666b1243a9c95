//! Tables of objects, followed from what is there to every change: how authorization and flow control come to know
//! theirs. What is made of an object is up to who follows.

use crate::api::Api;
use ambient::watch;
use object::Value;
use parking_lot::RwLock;
use registry::Object;
use registry::cache::{Cache, EventKind};
use store::Revision;

/// After so many objects whoever reads them lets others work.
const BREATH: usize = 100;

/// The tables that are followed.
#[derive(Debug, Default)]
pub(crate) struct Feeds(RwLock<Vec<Follower>>);

/// A table that is followed, and how far.
#[derive(Clone, Debug)]
struct Follower {
    table: &'static str,
    seen: watch::Receiver<Revision>,
}

/// What is done with an object. The second argument reads it, and is none if it is gone; reading costs more than all the
/// rest, and is not always needed.
pub(crate) trait Apply: Fn(&Object, Option<&dyn Fn() -> Value>) + Send + Sync + 'static {}

impl<F: Fn(&Object, Option<&dyn Fn() -> Value>) + Send + Sync + 'static> Apply for F {}

impl Feeds {
    /// Calls `apply` with every object of a table, then with every change. Those that are there are known on return.
    pub(crate) fn follow(&self, api: &Api, table: &'static str, apply: impl Apply) {
        let feed = self.feed(api, table, apply);
        let snapshot = feed.cache.snapshot(table);
        snapshot.under(b"", b"").for_each(|object| feed.read(object));
        api.ambient.tasks.spawn_until_stopped("feed", feed.go_on(snapshot.revision));
    }

    /// The same for a table that may be long: it is read in the background. Whoever would be refused waits for it.
    pub(crate) fn follow_in_background(&self, api: &Api, table: &'static str, apply: impl Apply) {
        let feed = self.feed(api, table, apply);
        api.ambient.tasks.spawn_until_stopped("feed", async move {
            let snapshot = feed.cache.snapshot(table);
            for (count, object) in snapshot.under(b"", b"").enumerate() {
                feed.read(object);
                if count % BREATH == 0 {
                    tokio::task::yield_now().await;
                }
            }
            feed.go_on(snapshot.revision).await;
        });
    }

    fn feed<A: Apply>(&self, api: &Api, table: &'static str, apply: A) -> Feed<A> {
        let (sender, seen) = watch::channel(Revision::ZERO);
        self.0.write().push(Follower { table, seen });
        Feed { table, cache: api.registry.cache.clone(), apply, seen: sender }
    }

    /// Waits until every change that the cache shows now is known here.
    pub(crate) async fn caught_up(&self, cache: &Cache) {
        let followers = self.0.read().clone();
        for mut follower in followers {
            let last = cache.last_change(follower.table);
            // A follower that has ended will never catch up; the decision stands on what is known.
            let _ = follower.seen.wait_for(|seen| *seen >= last).await;
        }
    }
}

/// What a follower is told through.
struct Feed<A> {
    table: &'static str,
    cache: Cache,
    apply: A,
    seen: watch::Sender<Revision>,
}

impl<A: Apply> Feed<A> {
    fn read(&self, object: &Object) {
        (self.apply)(object, Some(&|| object.tree()));
    }

    /// Everything up to a revision is known; from now on what changes.
    async fn go_on(self, known: Revision) {
        self.seen.send_replace(known);
        let mut watch = self.cache.watch(self.table, known);
        while let Ok(events) = watch.next().await {
            for event in &events {
                match event.kind {
                    EventKind::Deleted => (self.apply)(&event.object, None),
                    _ => self.read(&event.object),
                }
            }
            if let Some(last) = events.last() {
                self.seen.send_replace(last.revision());
            }
        }
        tracing::error!(table = self.table, "a table is no longer followed");
    }
}
