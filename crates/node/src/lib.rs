//! Nodes: what is bound to one is started and stopped, and its state reported.

pub mod admission;
pub mod simulated;
