//! Events.

use crate::{Meta, ObjectReference, Time, kind};
use serde::Deserialize;

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Event {
    pub metadata: Meta,
    pub involved_object: ObjectReference,
    pub reason: String,
    pub message: String,
    #[serde(rename = "type")]
    pub kind: String,
    pub count: i32,
    pub first_timestamp: Option<Time>,
    pub last_timestamp: Option<Time>,
}

kind!(Event, "v1", "events", namespaced);
