//! A cluster in this process: the same wiring for the program, for tests, and for whoever embeds it.

mod cluster;
mod kubeconfig;

pub use cluster::{Cluster, Options, StoreChoice};
