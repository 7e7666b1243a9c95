//! A pod that waits, and how often and how long it has.

use crate::needs::Shape;
use crate::verdict::Plugin;
use kinds::{Key, Object, Pod};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// The wait after a failure; it doubles with each one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Backoff {
    pub first: Duration,
    pub most: Duration,
}

impl Default for Backoff {
    fn default() -> Self {
        Backoff { first: Duration::from_secs(1), most: Duration::from_secs(10) }
    }
}

impl Backoff {
    fn after(self, failures: u32) -> Duration {
        self.first.saturating_mul(2_u32.saturating_pow(failures)).min(self.most)
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(super) key: Arc<Key>,
    pub pod: Arc<Object<Pod>>,
    pub shape: Shape,
    /// Where it is to go once those in its way are gone.
    pub nominated: Option<String>,
    /// How often it was not placed in a row.
    pub failures: u32,
    /// When it was first tried.
    pub since: Option<Instant>,
    /// Who refused nodes when it was tried last.
    pub(super) refused_by: Vec<Plugin>,
    /// Until when it has to wait in any case.
    pub(super) until: Option<Instant>,
    /// When it is tried again at the latest, once it has been parked.
    pub(super) deadline: Option<Instant>,
    /// Its place among pods of the same priority: who waits longer comes first.
    pub(super) turn: u64,
    pub(super) place: Place,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Place {
    InHand,
    Active,
    /// Whether it may come earlier if nobody else is waiting.
    Backoff {
        until: Instant,
        may_jump: bool,
    },
    Parked,
}

impl Entry {
    /// Whether nothing but room on the nodes decides about it: then it gets the same answer as others of its shape.
    pub(super) fn is_alike(&self) -> bool {
        let decides = |plugin: &Plugin| matches!(plugin, Plugin::GangScheduling | Plugin::DynamicResources);
        let claims = !self.shape.claims.is_empty() || !self.shape.device_claims.is_empty();
        self.nominated.is_none() && !claims && !self.refused_by.iter().any(decides)
    }

    /// Its place among pods of the same priority.
    pub(crate) fn turn(&self) -> u64 {
        self.turn
    }

    /// Counts a failure; returns until when it has to wait.
    pub(super) fn fail(&mut self, now: Instant, waits: Backoff) -> Instant {
        let backoff = waits.after(self.failures);
        self.failures = (self.failures + 1).min(32);
        *self.until.insert(now + backoff)
    }
}
