//! A cluster in this process: the same wiring for the program, for tests, and for whoever embeds it.

mod certifier;
mod cluster;
mod control_plane;
mod explain;
pub mod in_process;
mod kubeconfig;
mod logs;
mod usage;

pub use cluster::{Cluster, Options, StoreChoice};
pub use control_plane::{Clients, ControlPlane, Loops};
pub use controllers::Settings;
pub use explain::SchedulingDesk;
pub use logs::SimulatedLogs;
pub use node::simulated::{Fleet, Group};
pub use registry::Served;
pub use scheduler::Configuration;
pub use usage::SimulatedUsage;
