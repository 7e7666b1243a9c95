//! What objects use of what a namespace is granted. The API server charges with it, and the controller of quotas counts
//! with it, so that both come to the same.

mod amounts;
pub mod pod_resources;
mod usage;

pub use amounts::Amounts;
pub use usage::{CLASS_ANNOTATION, Counted, applies, class_of, used};
