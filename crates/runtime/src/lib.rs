//! What control loops are made with.
//!
//! A loop declares what it watches, observes from caches, and plans: a pure function whose result is data. This crate
//! does the rest: it keeps the caches, wakes the loop, carries the plan out, waits until the caches have seen what was
//! written, backs off, counts, and elects a leader. Nothing here knows whether the API is in the same process.
//!
//! **Deliberately absent:** expectations. A loop is woken again only when its caches have seen its own writes.

mod cache;
mod client;
mod controller;
mod discovery;
mod executor;
mod https;
mod informer;
mod leader;
mod manager;
mod plan;
mod queue;
mod recorder;
mod reflector;
mod transport;

pub use cache::{Cache, Change, Progress};
pub use client::{Client, DeleteOptions, List, ListOptions, PatchType, Propagation, Target, refusal, with_query};
pub use controller::{Context, Controller, Request, controller_key};
pub use discovery::Discovered;
pub use executor::Tell;
pub use https::{Access, AccessError, Https};
pub use informer::{Caches, split_key};
pub use leader::{Election, Timing};
pub use manager::{Identity, Manager};
pub use plan::{Announce, Note, Plan, Write};
pub use queue::{Bucket, Claim, Limits, Queue};
pub use recorder::Recorder;
pub use reflector::{Item, Sink, reflect};
pub use transport::{Event, Events, Transport};
