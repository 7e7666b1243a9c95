//! Server-side apply and managed fields.

mod element;
mod set;
mod wire;

pub use element::{Element, Key};
pub use set::{FieldSet, MAX_DEPTH};
pub use wire::FieldsError;
