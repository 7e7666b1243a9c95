//! A whole cluster in the process of the test, on a store in memory.

use crate::https::Client;
use ambient::Ambient;
use setpoint::{Options, StoreChoice};
use tempfile::TempDir;

/// A cluster that serves on loopback until it is dropped.
#[derive(Debug)]
pub struct Cluster {
    pub running: setpoint::Cluster,
    ambient: Ambient,
    /// Its keys and its kubeconfig.
    dir: TempDir,
}

impl Cluster {
    pub async fn start() -> Self {
        Cluster::serving("").await
    }

    /// Serves versions of the API besides those that always are, as `--runtime-config` wants them.
    pub async fn serving(versions: &str) -> Self {
        let dir = tempfile::Builder::new().prefix("cluster-").tempdir().expect("a temporary directory can be made");
        let served = versions.parse().expect("the versions are known");
        let options = Options { served, ..Options::new(dir.path().to_owned(), StoreChoice::Memory) };
        let ambient = Ambient::real();
        let running = setpoint::Cluster::start(&options, ambient.clone(), |_| {}).await.expect("the cluster starts");
        Cluster { running, ambient, dir }
    }

    pub fn client(&self) -> Client {
        Client::new(&self.dir.path().join("kubeconfig"))
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        self.ambient.tasks.cancel();
    }
}
