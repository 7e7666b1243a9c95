//! The vocabulary of the Kubernetes API: names, selectors, quantities, field errors, statuses. Pure, no I/O.
//!
//! Everything here follows the words and messages of Kubernetes, because clients match on them.

pub mod base64;
pub mod cron;
pub mod field;
pub mod json;
pub mod name;
pub mod quantity;
pub mod selector;
mod status;
pub mod time;
mod view;

pub use quantity::Quantity;
pub use status::{ApiError, Cause, Reason};
pub use view::{Edit, View};

/// Objects on the generic path: a tree whose maps are sorted by key.
pub use serde_json::{Map, Value, json};
