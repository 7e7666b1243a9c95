//! Time, chance and concurrency: everything a program takes from its surroundings that would make two runs differ.
//!
//! Each of the three has one module here, and nothing else in the workspace may call the clock, the random source or
//! `spawn` (clippy's disallowed lists enforce it). That is what lets the whole control plane run on one thread under
//! virtual time from a seed, and what makes a failing seed replay exactly.
//!
//! Left out on purpose: files and sockets. They are real in tests too.

mod clock;
mod random;
mod tasks;
pub mod watch;

pub use clock::{Clock, Timestamp};
pub use random::Random;
pub use tasks::{Stopped, Tasks};

/// What a component needs from its surroundings, handed down from `main` or from a test.
#[derive(Clone, Debug)]
pub struct Ambient {
    pub clock: Clock,
    pub random: Random,
    pub tasks: Tasks,
}

impl Ambient {
    /// The real world: the system's clock and entropy, tasks on the current tokio runtime.
    pub fn real() -> Self {
        Self { clock: Clock::system(), random: Random::from_entropy(), tasks: Tasks::new() }
    }

    /// A reproducible world: everything follows from `seed`, and time is tokio's, so it can be paused.
    pub fn seeded(seed: u64) -> Self {
        Self { clock: Clock::simulated(Timestamp::EPOCH_2026), random: Random::seeded(seed), tasks: Tasks::new() }
    }
}
