//! What is particular to a kind: its defaults, its rules, its warnings. Pure functions, one file per kind or family.
//!
//! The order is the same for all kinds and stands in one place, the generic CRUD: conform to the schema, fill the
//! schema's defaults, `default`, admission, `prepare`, `validate`, `warn`. Create and update share each hook; `old` is
//! none on create. What is the same for every kind is done there and not here: the rules of metadata, status being
//! cleared on create and kept on update, the generation.

pub mod at;
mod check;
mod claim;
pub mod cron_job;
pub mod daemon_set;
pub mod deployment;
pub mod job;
pub mod label_selector;
pub mod pod;
pub mod pod_template;
pub mod replica_set;
pub mod stateful_set;
mod workload;

use object::field::Errors;
use object::{Value, name};

type Warn = fn(new: &Value, old: Option<&Value>) -> Vec<String>;

#[derive(Clone, Copy, Debug)]
pub struct Strategy {
    /// What is wrong with a name.
    pub name: fn(&str) -> Vec<String>,
    /// Sets what the user left out. Runs on every decoded object, so doing it twice must change nothing.
    pub default: Option<fn(&mut Value)>,
    /// Sets and clears what clients do not decide. The system's metadata (name, uid, creation time) is there already.
    pub prepare: Option<fn(new: &mut Value, old: Option<&Value>)>,
    /// Everything that is wrong with an object, or with changing `old` into it.
    pub validate: Option<fn(new: &Value, old: Option<&Value>, errors: &mut Errors)>,
    /// The same for a write to its status.
    pub validate_status: Option<fn(new: &Value, old: &Value, errors: &mut Errors)>,
    /// What is allowed and unwise.
    pub warn: Option<Warn>,
    /// Whether `metadata.generation` counts the changes of what is neither metadata nor status.
    pub generation: bool,
    /// Whether an update may leave out the resource version.
    pub unconditional_update: bool,
    /// Whether an update of what is not there creates it.
    pub create_on_update: bool,
}

/// A kind without rules of its own.
pub const PLAIN: Strategy = Strategy {
    name: name::dns_subdomain,
    default: None,
    prepare: None,
    validate: None,
    validate_status: None,
    warn: None,
    generation: false,
    unconditional_update: true,
    create_on_update: false,
};
