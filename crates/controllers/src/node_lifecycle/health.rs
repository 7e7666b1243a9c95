//! Whether a node is heard of. Pure, but for what it remembers: when something last came from the node, by the clock
//! of this process. The times that nodes write are never compared with it.

use kinds::{Condition, Lease, Node, Time};
use object::{Value, json};
use std::time::Duration;

/// A node that is silent for so long is unknown; one that has just come may take longer.
pub(super) const GRACE: Duration = Duration::from_secs(50);
pub(super) const STARTUP_GRACE: Duration = Duration::from_secs(60);

/// The conditions a node reports about itself.
const REPORTED: [&str; 4] = ["Ready", "MemoryPressure", "DiskPressure", "PIDPressure"];

#[derive(Debug)]
pub(super) struct Health {
    pub(super) uid: String,
    /// What came last, and when it was seen first.
    heartbeat: (Option<Time>, Option<Time>),
    heard: Time,
    /// Whether it was ready when it was last looked at.
    was_ready: bool,
}

/// What is to be thought of a node.
#[derive(Debug)]
pub(super) struct Verdict {
    /// The status of its condition `Ready`: `True`, `False` or `Unknown`.
    pub(super) ready: &'static str,
    pub(super) was_ready: bool,
    /// How long until it counts as silent, if nothing comes from it; none if it does.
    pub(super) patience: Option<Duration>,
    /// What its conditions are to be, if it is silent and they say otherwise.
    pub(super) conditions: Option<Vec<Value>>,
}

impl Health {
    pub(super) fn new(node: &Node, now: Time) -> Self {
        Health { uid: node.metadata.uid.clone(), heartbeat: (None, None), heard: now, was_ready: node.is_ready() }
    }

    pub(super) fn look(&mut self, node: &Node, lease: Option<&kinds::Object<Lease>>, now: Time) -> Verdict {
        let ready = node.condition("Ready");
        let renewed = lease.and_then(|lease| lease.spec.renew_time);
        let posted = ready.and_then(|ready| ready.last_heartbeat_time);
        if (renewed, posted) != self.heartbeat {
            self.heartbeat = (renewed, posted);
            self.heard = now;
        }
        let grace = if ready.is_none() { STARTUP_GRACE } else { GRACE };
        let patience = (self.heard + grace).since(now);
        let is_silent = patience.is_zero();
        let status = match ready.map(|ready| ready.status.as_str()) {
            _ if is_silent => "Unknown",
            Some("True") => "True",
            Some("False") => "False",
            _ => "Unknown",
        };
        let was_ready = std::mem::replace(&mut self.was_ready, status == "True");
        let conditions = is_silent.then(|| unknown(node, now)).filter(|conditions| !conditions.is_empty());
        Verdict { ready: status, was_ready, patience: (!is_silent).then_some(patience), conditions }
    }
}

/// The conditions that have to become unknown.
fn unknown(node: &Node, now: Time) -> Vec<Value> {
    let stale =
        REPORTED.iter().filter(|kind| node.condition(kind).is_none_or(|condition| condition.status != "Unknown"));
    stale
        .map(|kind| match node.condition(kind) {
            Some(Condition { last_heartbeat_time, .. }) => json!({
                "type": kind, "status": "Unknown", "reason": "NodeStatusUnknown",
                "message": "Kubelet stopped posting node status.",
                "lastHeartbeatTime": last_heartbeat_time, "lastTransitionTime": now,
            }),
            None => json!({
                "type": kind, "status": "Unknown", "reason": "NodeStatusNeverUpdated",
                "message": "Kubelet never posted node status.",
                "lastHeartbeatTime": node.metadata.creation_timestamp, "lastTransitionTime": now,
            }),
        })
        .collect()
}
