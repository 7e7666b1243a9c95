//! What a resource is: one row of one table, and everything that is the same for all of them.
//!
//! Routing, discovery, authorization, printing, patching and apply read the row and nothing else. A custom resource
//! definition yields such a row at run time.

pub mod cache;
pub mod convert;
pub mod discovery;
pub mod print;
mod pruned;
mod registry;
mod resource;
mod seal;
mod selection;
mod served;
mod stored;
pub mod strategy;
mod table;

pub use registry::{Committed, Registry, Resources, Write};
pub use resource::{Resource, SchemaRef, Scope, Subresource, Verb, Verbs, Withheld};
pub use seal::{Plain, Seal};
pub use selection::Selection;
pub use served::Served;
pub use stored::{Object, Unreadable, encode, encode_owned, selectable_text};
pub use table::builtin;
