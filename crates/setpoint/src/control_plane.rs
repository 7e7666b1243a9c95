//! The loops of a cluster: which run, and as whom.

use crate::in_process;
use ambient::Ambient;
use apiserver::Api;
use runtime::{Client, Identity, Manager, Note, Tell};
use std::sync::Arc;

/// Starts all loops; they work once their caches are filled.
pub(crate) fn start(api: &Api, nodes: usize, ambient: &Ambient) -> Manager {
    let reader = user_client(api, "system:kube-controller-manager", "kube-controller-manager");
    let mut loops: Vec<_> = controllers::ALL.iter().map(|controller| controller()).collect();
    loops.push(scheduler::controller());
    if nodes > 0 {
        let api = api.clone();
        let as_node = move |name: &str| {
            let user = apiserver::user(&format!("system:node:{name}"), &["system:nodes", "system:authenticated"]);
            in_process::client(&api, user, "kubelet")
        };
        loops.extend(node::simulated::controllers(nodes, Arc::new(as_node), &ambient.clock));
    }
    let identity = |name: &'static str| {
        let client = match name {
            "default-scheduler" => user_client(api, "system:kube-scheduler", "kube-scheduler"),
            name => in_process::controller_client(api, name),
        };
        let tell: Tell = Arc::new(|note: Note| tracing::info!(reason = note.reason, message = note.message, "event"));
        Identity { client, tell }
    };
    Manager::start(loops, &reader, identity, ambient, &api.metrics.registry)
}

fn user_client(api: &Api, name: &str, agent: &str) -> Client {
    in_process::client(api, apiserver::user(name, &["system:authenticated"]), agent)
}
