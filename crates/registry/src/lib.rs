//! What a resource is: one row of one table, and everything that is the same for all of them.
//!
//! Routing, discovery, authorization, printing, patching and apply read the row and nothing else. A custom resource
//! definition yields such a row at run time.

pub mod convert;
pub mod discovery;
pub mod print;
mod resource;
pub mod strategy;
mod table;

pub use resource::{Resource, Scope, Subresource, Verb, Verbs};
pub use table::builtin;
