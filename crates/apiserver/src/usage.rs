//! What nodes and pods use, as somebody else has measured it.

use std::fmt::Debug;
use std::time::Duration;

/// Who knows. Asked for each node and pod whenever a client asks, so it answers from memory.
pub trait UsageSource: Debug + Send + Sync {
    fn node(&self, name: &str) -> Option<Sample<Usage>>;
    /// Of each container, by name.
    fn pod(&self, namespace: &str, name: &str) -> Option<Sample<Vec<(String, Usage)>>>;
}

#[derive(Clone, Debug, PartialEq)]
pub struct Sample<T> {
    /// When it was taken, in seconds since 1970.
    pub at: i64,
    /// Over how long it was measured.
    pub window: Duration,
    pub usage: T,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Thousandths of a processor.
    pub cpu_millis: i64,
    pub memory_bytes: i64,
}
