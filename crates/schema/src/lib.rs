//! What objects look like, and the pure algorithms over (object, schema).
//!
//! A schema is a graph of [`Node`]s. Those of the built-in kinds come from the tables in `facts/`, those of custom
//! resources from their definitions; every algorithm works on the graph and cannot tell the two apart.

pub mod apply;
mod conform;
mod descriptions;
mod facts;
mod fill;
mod node;
pub mod openapi;
pub mod patch;
pub mod protobuf;

pub use conform::{Mismatch, conform, conform_changed};
pub use facts::builtin;
pub use fill::{default_of, fill, fill_changed};
pub use node::{Field, List, ListMerge, Map, Node, NodeId, Patch, Scalar, Schema, Shape, Struct};
