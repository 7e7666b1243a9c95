//! Which pod runs on which node.
//!
//! [`scheduler`] decides, from what it is told and without waiting for anything; [`driver`] tells it what has changed
//! and [`actions`] carry its decisions out. What a pod asks for is read once ([`needs`]) and shared by all pods that ask the
//! same; the nodes and their pods are kept change by change ([`cluster`]); for each shape of pods a [`ranking`] knows
//! every node, by [`filters`] and [`scores`] that look at one node, and sums over [`relation`]s that look around. Pods
//! that claim devices are given those of a node along with it ([`devices`]); those of a gang are placed together or not at
//! all ([`groups`]); and pods that fit nowhere wait in the [`queue`] for what may help them. How all this is done is up to
//! [`profile`]s, which a file may say ([`config`]).
//!
//! Left out on purpose: extenders, which would ask another program over HTTP about every pod.

mod actions;
mod cluster;
mod config;
mod devices;
mod driver;
mod explanation;
mod figures;
mod filters;
mod groups;
mod needs;
mod preemption;
mod profile;
mod queue;
mod ranking;
mod relation;
mod resources;
mod scheduler;
mod scores;
mod siblings;
#[cfg(test)]
mod tests;
mod verdict;
mod volumes;

pub use actions::Outcome;
pub use config::Configuration;
pub use devices::{Release, Reservation};
pub use driver::{Desk, NotLeading, caches, controller};
pub use explanation::Explanation;
pub use preemption::Room;
pub use profile::{DEFAULT, Profile, Weights};
pub use scheduler::{Decision, Scheduler, Tries};
pub use verdict::{Diagnosis, GroupVerdict, Plugin};
pub use volumes::Preparation;
