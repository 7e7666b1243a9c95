//! Admission: what the cluster has to say about a write before it is stored. One file per plugin, one table.
//!
//! Plugins run in the order of the table, all mutating ones first. They read the cache and may add writes that are
//! committed together with the object, so that a quota or an address is never counted twice.

use crate::context::Context;
use object::{ApiError, Value, View};
use registry::Write;

/// What is being done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operation {
    Create,
    Update,
    Delete,
}

/// A write under review.
pub(crate) struct Review<'a> {
    pub(crate) ctx: &'a Context,
    pub(crate) operation: Operation,
    /// The object in the stored version; as it was, for a deletion.
    pub(crate) object: &'a mut Value,
    pub(crate) old: Option<&'a Value>,
    pub(crate) dry_run: bool,
    writes: Option<&'a mut Vec<Write>>,
}

impl<'a> Review<'a> {
    pub(crate) fn new(
        ctx: &'a Context,
        operation: Operation,
        object: &'a mut Value,
        old: Option<&'a Value>,
        dry_run: bool,
    ) -> Self {
        Review { ctx, operation, object, old, dry_run, writes: None }
    }

    pub(crate) fn with_writes(self, writes: &'a mut Vec<Write>) -> Self {
        Review { writes: Some(writes), ..self }
    }

    /// `pods`, `deployments.apps`: what is written.
    pub(crate) fn table(&self) -> &str {
        &self.ctx.hub.table
    }

    pub(crate) fn subresource(&self) -> &str {
        &self.ctx.target.subresource
    }

    /// Whether an object itself of this resource is written, not a part of it.
    pub(crate) fn is(&self, table: &str, operation: Operation) -> bool {
        self.table() == table && self.operation == operation && self.subresource().is_empty()
    }

    pub(crate) fn namespace(&self) -> &str {
        match self.object.at("metadata").text("namespace") {
            "" => &self.ctx.target.namespace,
            namespace => namespace,
        }
    }

    pub(crate) fn name(&self) -> &str {
        match self.object.at("metadata").text("name") {
            "" => &self.ctx.target.name,
            name => name,
        }
    }

    /// Adds a change that is made together with this one, or not at all.
    pub(crate) fn also(&mut self, write: Write) {
        if let Some(writes) = &mut self.writes {
            writes.push(write);
        }
    }

    /// Says no, in the words of all plugins.
    pub(crate) fn forbid(&self, cause: &str) -> ApiError {
        ApiError::forbidden(&self.ctx.resource.group, &self.ctx.resource.plural, self.name(), cause)
    }
}

type Hook = fn(&mut Review<'_>) -> Result<(), ApiError>;

pub(crate) struct Plugin {
    /// As upstream calls it.
    #[allow(dead_code, reason = "the name documents the row")]
    pub(crate) name: &'static str,
    pub(crate) mutate: Option<Hook>,
    pub(crate) validate: Option<Hook>,
    /// Called when an object goes for good.
    pub(crate) release: Option<Hook>,
}

/// All plugins, in upstream's order. Webhooks and policies will stand behind `RuntimeClass` and before
/// `ResourceQuota`.
const ALL: &[Plugin] = &[];

pub(crate) fn mutate(review: &mut Review<'_>) -> Result<(), ApiError> {
    ALL.iter().filter_map(|plugin| plugin.mutate).try_for_each(|hook| hook(review))
}

pub(crate) fn validate(review: &mut Review<'_>) -> Result<(), ApiError> {
    ALL.iter().filter_map(|plugin| plugin.validate).try_for_each(|hook| hook(review))
}

pub(crate) fn release(review: &mut Review<'_>) -> Result<(), ApiError> {
    ALL.iter().filter_map(|plugin| plugin.release).try_for_each(|hook| hook(review))
}
