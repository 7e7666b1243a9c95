//! A value that is watched: whoever waits for a change is woken in the order in which they came.
//!
//! It is `tokio::sync::watch` but for that order, which tokio leaves to chance to spare a lock, and which would make two
//! runs from one seed differ. Only the last value counts; what was there in between may never be seen.

use parking_lot::{RwLock, RwLockReadGuard};
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use tokio::sync::Notify;

/// Changes the value; clones change the same one.
pub struct Sender<T>(Arc<Shared<T>>);

/// Sees the value, and waits for it to change.
pub struct Receiver<T> {
    shared: Arc<Shared<T>>,
    /// The version that was last seen.
    seen: u64,
}

struct Shared<T> {
    value: RwLock<T>,
    /// Counts the changes.
    version: AtomicU64,
    senders: AtomicUsize,
    receivers: AtomicUsize,
    changed: Notify,
}

/// Nobody is left who could change the value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Closed;

pub fn channel<T>(value: T) -> (Sender<T>, Receiver<T>) {
    let sender = Sender::new(value);
    let receiver = sender.subscribe();
    (sender, receiver)
}

impl<T> Sender<T> {
    pub fn new(value: T) -> Self {
        Sender(Arc::new(Shared {
            value: RwLock::new(value),
            version: AtomicU64::new(0),
            senders: AtomicUsize::new(1),
            receivers: AtomicUsize::new(0),
            changed: Notify::new(),
        }))
    }

    /// The value as it is now counts as seen.
    pub fn subscribe(&self) -> Receiver<T> {
        self.0.receivers.fetch_add(1, Ordering::Relaxed);
        Receiver { shared: self.0.clone(), seen: self.0.version.load(Ordering::Acquire) }
    }

    /// How many may be waiting.
    pub fn receivers(&self) -> usize {
        self.0.receivers.load(Ordering::Relaxed)
    }

    pub fn borrow(&self) -> RwLockReadGuard<'_, T> {
        self.0.value.read()
    }

    /// Whether both change the same value.
    pub fn same_channel(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    pub fn send_replace(&self, value: T) -> T {
        let mut value = value;
        self.send_modify(|current| std::mem::swap(current, &mut value));
        value
    }

    pub fn send_modify(&self, modify: impl FnOnce(&mut T)) {
        self.send_if_modified(|value| {
            modify(value);
            true
        });
    }

    /// Wakes only if `modify` says that it has changed something.
    pub fn send_if_modified(&self, modify: impl FnOnce(&mut T) -> bool) -> bool {
        let modified = {
            let mut value = self.0.value.write();
            let modified = modify(&mut value);
            if modified {
                self.0.version.fetch_add(1, Ordering::Release);
            }
            modified
        };
        if modified {
            self.0.changed.notify_waiters();
        }
        modified
    }
}

impl<T> Receiver<T> {
    pub fn borrow(&self) -> RwLockReadGuard<'_, T> {
        self.shared.value.read()
    }

    /// The value, which counts as seen from now on.
    pub fn borrow_and_update(&mut self) -> RwLockReadGuard<'_, T> {
        let value = self.shared.value.read();
        self.seen = self.shared.version.load(Ordering::Acquire);
        value
    }

    /// Waits until there is a value that was not seen yet, which then counts as seen.
    pub async fn changed(&mut self) -> Result<(), Closed> {
        loop {
            let notified = self.shared.changed.notified();
            tokio::pin!(notified);
            // From here on no change is missed, whatever happens after the look below.
            notified.as_mut().enable();
            let version = self.shared.version.load(Ordering::Acquire);
            if version != self.seen {
                self.seen = version;
                return Ok(());
            }
            if self.shared.senders.load(Ordering::Acquire) == 0 {
                return Err(Closed);
            }
            notified.await;
        }
    }

    /// Waits until the value is as wanted.
    pub async fn wait_for(&mut self, wanted: impl Fn(&T) -> bool) -> Result<(), Closed> {
        loop {
            if wanted(&self.borrow_and_update()) {
                return Ok(());
            }
            self.changed().await?;
        }
    }
}

impl<T> Clone for Sender<T> {
    fn clone(&self) -> Self {
        self.0.senders.fetch_add(1, Ordering::AcqRel);
        Sender(self.0.clone())
    }
}

impl<T> Drop for Sender<T> {
    fn drop(&mut self) {
        if self.0.senders.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.0.changed.notify_waiters();
        }
    }
}

impl<T> Drop for Receiver<T> {
    fn drop(&mut self) {
        self.shared.receivers.fetch_sub(1, Ordering::Relaxed);
    }
}

impl<T> Clone for Receiver<T> {
    fn clone(&self) -> Self {
        self.shared.receivers.fetch_add(1, Ordering::Relaxed);
        Receiver { shared: self.shared.clone(), seen: self.seen }
    }
}

impl<T: fmt::Debug> fmt::Debug for Sender<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Sender").field(&*self.borrow()).finish()
    }
}

impl<T: fmt::Debug> fmt::Debug for Receiver<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Receiver").field(&*self.borrow()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::future::FutureExt;

    #[tokio::test]
    async fn a_change_is_seen_once_and_the_last_value_counts() {
        let (sender, mut receiver) = channel(0);
        assert!(receiver.changed().now_or_never().is_none());
        sender.send_replace(1);
        sender.send_replace(2);
        receiver.changed().await.unwrap();
        assert_eq!(*receiver.borrow(), 2);
        assert!(receiver.changed().now_or_never().is_none());
        receiver.wait_for(|value| *value == 2).await.unwrap();
        assert!(!sender.send_if_modified(|_| false));
        assert!(receiver.changed().now_or_never().is_none());
    }

    #[tokio::test]
    async fn those_who_wait_learn_that_nobody_is_left() {
        let (sender, mut receiver) = channel(0);
        let other = sender.clone();
        assert_eq!(sender.receivers(), 1);
        drop(sender);
        assert!(receiver.changed().now_or_never().is_none());
        other.send_replace(1);
        drop(other);
        assert_eq!(receiver.changed().await, Ok(()));
        assert_eq!(receiver.changed().await, Err(Closed));
    }
}
