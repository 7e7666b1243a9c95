//! Which objects of a resource a list or watch is about.

use crate::{Object, Resource, convert};
use bytes::Bytes;
use object::ApiError;
use object::selector::{FieldSelector, LabelSelector};
use std::sync::Arc;

#[derive(Clone, Debug)]
pub struct Selection {
    /// In the version that is stored: objects know only that one.
    pub resource: Arc<Resource>,
    /// What the keys start with. Whole names only: `pods/default/web` does not select `pods/default/web-1`.
    prefix: Bytes,
    exact: bool,
    labels: LabelSelector,
    fields: FieldSelector,
}

/// Kinds with selectable fields of their own have their own words for those they have not.
fn not_selectable(resource: &Resource, field: &str) -> String {
    match resource.selectable.is_empty() {
        true => format!("{field:?} is not a known field selector: only \"metadata.name\", \"metadata.namespace\""),
        false => format!("field label not supported: {field}"),
    }
}

impl Selection {
    /// What is selected in the version `resource` of what is stored as `hub`. An empty namespace means all of them.
    pub fn new(
        resource: &Resource,
        hub: Arc<Resource>,
        namespace: &str,
        labels: LabelSelector,
        fields: FieldSelector,
    ) -> Result<Self, ApiError> {
        let known = |field: &str| {
            field == "metadata.name"
                || field == "metadata.namespace" && resource.is_namespaced()
                || resource.selectable.iter().any(|selectable| selectable == field)
        };
        if let Some(term) = fields.terms().iter().find(|term| !known(&term.field)) {
            return Err(ApiError::bad_request(not_selectable(resource, &term.field)));
        }
        let fields = fields.renamed(|field| convert::stored_field(resource, field));
        let namespace = match fields.requires("metadata.namespace") {
            Some(required) if namespace.is_empty() => required,
            _ => namespace,
        };
        let name = fields.requires("metadata.name").filter(|_| !namespace.is_empty() || !resource.is_namespaced());
        let prefix = match name {
            Some(name) => resource.key(namespace, name),
            None => resource.key_prefix(namespace),
        };
        Ok(Selection { prefix, exact: name.is_some(), resource: hub, labels, fields })
    }

    pub fn everything(resource: Arc<Resource>, namespace: &str) -> Self {
        let prefix = resource.key_prefix(namespace);
        let (labels, fields) = (LabelSelector::everything(), FieldSelector::everything());
        Selection { resource, prefix, exact: false, labels, fields }
    }

    pub fn prefix(&self) -> &Bytes {
        &self.prefix
    }

    /// Whether every key with the prefix is selected, so that nothing has to be looked at.
    pub fn is_prefix(&self) -> bool {
        !self.exact && self.labels.is_everything() && self.fields.is_everything()
    }

    pub fn has_selector(&self) -> bool {
        !self.labels.is_everything() || !self.fields.is_everything()
    }

    pub fn contains(&self, object: &Object) -> bool {
        let in_range = match self.exact {
            true => object.key == self.prefix,
            false => object.key.starts_with(&self.prefix),
        };
        in_range
            && (self.labels.is_everything() || self.labels.matches(|key| object.label(&self.resource, key)))
            && (self.fields.is_everything() || self.fields.matches(|field| object.field(&self.resource, field)))
    }
}
