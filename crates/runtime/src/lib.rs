//! What control loops are made with.
//!
//! A loop declares what it watches, observes from caches, and plans: a pure function whose result is data. This crate
//! does the rest: it keeps the caches, wakes the loop, carries the plan out, waits until the caches have seen what was
//! written, backs off, counts, and elects a leader. Nothing here knows whether the API is in the same process.
//!
//! **Deliberately absent:** expectations. A loop is woken again only when its caches have seen its own writes.

mod client;
mod https;
mod leader;
mod plan;
mod queue;
mod recorder;
mod transport;

pub use client::{Client, DeleteOptions, List, ListOptions, PatchType, Propagation, Target, refusal};
pub use https::{Access, AccessError, Https};
pub use leader::{Election, Timing};
pub use plan::{Announce, Note, Plan, Write};
pub use queue::{Bucket, Claim, Limits, Queue};
pub use recorder::Recorder;
pub use transport::{Event, Events, Transport};
