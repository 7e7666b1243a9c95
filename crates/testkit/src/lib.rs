//! What tests are made with: stores of every kind, real servers, checkers of histories.
//!
//! Only tests, benchmarks and the torture program depend on this crate; the product never does.

pub mod backend;
pub mod cluster;
pub mod etcd;
pub mod history;
pub mod https;
pub mod process;
pub mod proxy;
pub mod server;
pub mod simulation;
pub mod torture;
pub mod transcript;
