//! What every cluster has from its first moment on: made at start where it is missing, through the API.

use crate::api::Api;
use crate::identity::{AUTHENTICATED, user};
use crate::local::Local;
use authz::MASTERS;
use object::{ApiError, Reason, Value, json};

/// Namespaces that the system needs.
const NAMESPACES: [&str; 4] = ["default", "kube-system", "kube-public", "kube-node-lease"];
/// The system's own priorities; no other class may have such a value.
const PRIORITIES: [(&str, i64); 2] =
    [("system-cluster-critical", 2_000_000_000), ("system-node-critical", 2_000_001_000)];

/// Makes what is missing. What is there stays as it is.
pub async fn bootstrap(api: &Api) -> Result<(), ApiError> {
    let client = Local::new(api.clone(), user("system:apiserver", &[MASTERS, AUTHENTICATED]), "kube-apiserver");
    let namespaces = NAMESPACES.map(|name| ("/api/v1/namespaces".to_owned(), json!({ "metadata": { "name": name } })));
    ensure(&client, namespaces.into()).await?;
    let priorities = PRIORITIES.map(|(name, value)| {
        let description = "Used for system critical pods that must run in the cluster.";
        let class = json!({ "metadata": { "name": name }, "value": value, "description": description });
        ("/apis/scheduling.k8s.io/v1/priorityclasses".to_owned(), class)
    });
    ensure(&client, priorities.into()).await
}

async fn ensure(client: &Local, objects: Vec<(String, Value)>) -> Result<(), ApiError> {
    let creations = objects.iter().map(|(path, object)| client.create(path, object));
    for created in futures::future::join_all(creations).await {
        match created {
            Err(error) if error.reason() != Reason::AlreadyExists => return Err(error),
            _ => {}
        }
    }
    Ok(())
}
