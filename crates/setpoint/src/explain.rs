//! `/debug/scheduling/<namespace>/<pod>`: what stands in the way of a pod that waits for a node.

use apiserver::DebugSource;
use async_trait::async_trait;
use kinds::{Key, Lease, Pod};
use object::{ApiError, Reason, Value, json};
use runtime::Caches;
use scheduler::{Desk, NotLeading};

#[derive(Debug)]
pub struct SchedulingDesk {
    pub desk: Desk,
    pub caches: Caches,
    /// Whoever holds it leads.
    pub lease: Key,
}

#[async_trait]
impl DebugSource for SchedulingDesk {
    async fn answer(&self, path: &[&str]) -> Result<Value, ApiError> {
        let [namespace, name] = path else {
            return Err(ApiError::bad_request("expected /debug/scheduling/NAMESPACE/POD"));
        };
        // A server that has just started answers before its caches know anything.
        self.caches.synced().await;
        let key = Key::new(*namespace, *name);
        let pod = self.caches.of::<Pod>().get(&key).ok_or_else(|| ApiError::not_found("", "pods", name))?;
        let explained = self.desk.explain(key.clone()).await.map_err(|NotLeading| self.elsewhere())?;
        let mut answer = match explained {
            Some(explanation) => explanation.json(),
            None if !pod.spec.node_name.is_empty() => json!({ "node": pod.spec.node_name }),
            None if !pod.is_active() => json!({ "phase": pod.status.phase }),
            None => {
                json!({ "schedulerName": pod.spec.scheduler_name, "reason": "no profile of this scheduler has that name" })
            }
        };
        answer["pod"] = json!(key.to_string());
        Ok(answer)
    }
}

impl SchedulingDesk {
    fn elsewhere(&self) -> ApiError {
        let lease = self.caches.of::<Lease>().get(&self.lease);
        let holder = lease.map(|lease| lease.spec.holder_identity.clone()).filter(|holder| !holder.is_empty());
        let where_to = match holder {
            Some(holder) => format!("ask the server {holder}, which holds the lease {}", self.lease),
            None => format!("nobody holds the lease {} yet", self.lease),
        };
        ApiError::new(Reason::ServiceUnavailable, format!("the scheduler of this server does not lead: {where_to}"))
    }
}
