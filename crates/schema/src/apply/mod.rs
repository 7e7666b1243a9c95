//! Server-side apply and managed fields: who owns which field, and what follows from it.
//!
//! Everyone who writes an object owns the fields that they wrote ([`Managers`], in `metadata.managedFields`). An
//! [`update()`] takes fields from their owners without asking; an [`apply()`] is refused with [`Conflicts`] where it
//! would change a field of somebody else, and takes back what its author applied before and does not apply any more.
//!
//! ```text
//! element, set, wire   paths, sets of them, and their JSON
//! form                 how a value is taken apart, from its schema
//! fields, compare      what an object sets; what has changed
//! check, merge         what may be applied; the result of applying it
//! managers, conflict   owners and their quarrels
//! packed               owners as they are stored
//! update, server_side  the two ways to write
//! last_applied         coming from client-side apply
//! ```
//!
//! **Versions.** All functions work in one version of the API. An entry of another version that is not listed in
//! [`Kind::alike`] is kept as it is: it neither conflicts nor loses fields, but what it owns is not given up either.
//!
//! **Deliberately absent:** the clock (the time of a write is passed in), defaulting and validation (the caller's),
//! conversion between versions, and system fields of `metadata`, which the caller restores after an apply.

mod check;
mod compare;
mod conflict;
mod element;
mod fields;
mod form;
mod last_applied;
mod managers;
mod merge;
mod packed;
mod server_side;
mod set;
mod update;
mod wire;

pub use compare::{Changes, compare};
pub use conflict::{Conflict, Conflicts};
pub use element::{Element, Key};
pub use fields::fields_of;
pub use managers::{Identity, Managed, Managers, ManagersError, Operation};
pub use packed::{Damaged, write_json};
pub use server_side::{ApplyError, apply, check_applied};
pub use set::{FieldSet, MAX_DEPTH};
pub use update::{update, zero};
pub use wire::FieldsError;

use crate::node::{NodeId, Schema};
use std::fmt;

/// What an object is, seen from one endpoint.
#[derive(Clone, Copy, Debug)]
pub struct Kind<'a> {
    pub schema: &'a Schema,
    pub node: NodeId,
    /// The version of the request, such as `apps/v1`.
    pub api_version: &'a str,
    /// Other versions whose fields are the same, so that entries in them are treated as entries in this one.
    pub alike: &'a [&'a str],
    /// Fields that this endpoint does not write, with all below them: `status` at the resource itself, `spec` at its
    /// status. Nobody comes to own them here.
    pub reset: &'a FieldSet,
}

impl Kind<'_> {
    fn comparable(&self, api_version: &str) -> bool {
        api_version == self.api_version || self.alike.contains(&api_version)
    }
}

/// Who writes, through which subresource, and when.
#[derive(Clone, Copy, Debug)]
pub struct Author<'a> {
    /// Empty: `unknown`.
    pub manager: &'a str,
    /// Empty: the resource itself.
    pub subresource: &'a str,
    /// RFC 3339 in UTC, in seconds.
    pub time: &'a str,
}

impl Author<'_> {
    fn identity(&self, kind: &Kind<'_>, operation: Operation) -> Identity {
        Identity {
            manager: if self.manager.is_empty() { "unknown" } else { self.manager }.to_owned(),
            operation,
            api_version: kind.api_version.to_owned(),
            subresource: self.subresource.to_owned(),
        }
    }
}

/// A value that does not fit its schema so badly that its fields cannot be told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Invalid {
    path: String,
    message: String,
}

impl Invalid {
    fn new(message: impl Into<String>) -> Self {
        Invalid { path: String::new(), message: message.into() }
    }

    fn at_item(self, at: usize) -> Self {
        Invalid { message: format!("element {at}: {}", self.message), ..self }
    }

    fn below(self, element: &Element) -> Self {
        Invalid { path: format!("{element}{}", self.path), ..self }
    }
}

impl fmt::Display for Invalid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.path.as_str() {
            "" => f.write_str(&self.message),
            path => write!(f, "{path}: {}", self.message),
        }
    }
}

impl std::error::Error for Invalid {}
