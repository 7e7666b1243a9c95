//! What is particular to a kind: its defaults, its rules, its warnings. Pure functions, one file per kind or family.
//!
//! The order is the same for all kinds and stands in one place, the generic CRUD: conform to the schema, fill the
//! schema's defaults, `default`, admission, `prepare`, `validate`, `warn`. Create and update share each hook; `old` is
//! none on create. What is the same for every kind is done there and not here: the rules of metadata, status being
//! cleared on create and kept on update, the generation.

pub mod address;
pub mod admission_policy;
pub mod api_service;
pub mod autoscaler;
pub mod binding;
pub mod certificate;
#[cfg(test)]
mod check;
pub mod condition;
pub mod config_map;
pub mod cron_job;
pub mod custom_resource;
pub mod custom_resource_schema;
pub mod custom_resource_version;
pub mod daemon_set;
pub mod deployment;
pub mod device;
pub mod device_capacity;
pub mod device_taint;
pub mod disruption_budget;
pub mod endpoints;
pub mod event;
pub mod flow_control;
pub mod ingress;
pub mod job;
pub mod label_selector;
pub mod lease;
pub mod limit_range;
pub mod metadata;
pub mod namespace;
pub mod network_policy;
pub mod node;
pub mod node_selector;
pub mod place;
pub mod pod;
pub mod pod_group;
pub mod pod_template;
pub mod priority_class;
pub mod rbac;
pub mod replica_set;
pub mod resource_name;
pub mod resource_quota;
pub mod resource_slice;
pub mod rule;
pub mod runtime_class;
pub mod secret;
pub mod service;
pub mod service_account;
pub mod service_change;
pub mod service_cidr;
pub mod stateful_set;
pub mod storage;
pub mod value;
pub mod volume;
pub mod volume_claim;
pub mod webhook;
mod workload;

use object::field::Errors;
use object::{Value, name};

/// What to tell a client about an object, or about changing `old` into it.
pub type Warn = fn(new: &Value, old: Option<&Value>) -> Vec<String>;

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
    /// What a write to the status cannot change.
    pub prepare_status: Option<fn(new: &mut Value, old: &Value)>,
    /// Subresources other than the status through which a part of an object is written.
    pub parts: &'static [Part],
    /// What is allowed and unwise.
    pub warn: Option<Warn>,
    /// How many seconds an object lives on once it is deleted, given what was asked for.
    pub grace: Option<fn(object: &Value, asked_seconds: Option<i64>) -> i64>,
    /// Whether an object that is deleted has to stay, besides for its finalizers.
    pub holds: Option<fn(object: &Value) -> bool>,
    /// What else changes in an object that is deleted and has to stay.
    pub mark_deleted: Option<fn(object: &mut Value)>,
    /// Whether `metadata.generation` counts the changes of what is neither metadata nor status.
    pub generation: bool,
    /// Whether it counts the changes of annotations too.
    pub generation_of_annotations: bool,
    /// Whether an object may come with its status. Of all others the status begins empty.
    pub created_with_status: bool,
    /// Whether an update may leave out the resource version.
    pub unconditional_update: bool,
    /// Whether an update of what is not there creates it.
    pub create_on_update: bool,
}

/// A part of an object that has a URL of its own and shows the whole object.
#[derive(Clone, Copy, Debug)]
pub struct Part {
    /// The name of the subresource.
    pub name: &'static str,
    /// Takes only this part from `new` and the rest from `old`.
    pub prepare: fn(new: &mut Value, old: &Value),
    pub validate: fn(new: &Value, old: &Value, errors: &mut Errors),
}

impl Strategy {
    pub fn part(&self, subresource: &str) -> Option<&'static Part> {
        self.parts.iter().find(|part| part.name == subresource)
    }
}

/// A kind without rules of its own.
pub const PLAIN: Strategy = Strategy {
    name: name::dns_subdomain,
    default: None,
    prepare: None,
    validate: None,
    validate_status: None,
    prepare_status: None,
    parts: &[],
    warn: None,
    grace: None,
    holds: None,
    mark_deleted: None,
    generation: false,
    generation_of_annotations: false,
    created_with_status: false,
    unconditional_update: true,
    create_on_update: false,
};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::builtin;
    use object::json;

    /// Nothing, nonsense, and an object with only what the schema fills in.
    fn odd_objects(kind: &str) -> Vec<Value> {
        let schema = schema::builtin();
        let mut filled = json!({});
        schema::fill(schema, schema.named(kind).unwrap(), &mut filled);
        let nonsense = json!({ "metadata": [], "spec": "x", "status": 1, "rules": {}, "webhooks": [null], "data": [] });
        let names =
            json!({ "metadata": { "name": "a", "namespace": "b" }, "spec": { "ports": [1], "versions": [{}] } });
        vec![json!(null), json!({}), nonsense, names, filled]
    }

    #[test]
    fn no_rule_trips_over_what_it_does_not_expect() {
        for resource in builtin() {
            let strategy = resource.strategy;
            for object in odd_objects(&resource.schema_type) {
                let mut defaulted = object.clone();
                strategy.default.iter().for_each(|default| default(&mut defaulted));
                let mut prepared = defaulted.clone();
                strategy.prepare.iter().for_each(|prepare| prepare(&mut prepared, None));
                strategy.prepare.iter().for_each(|prepare| prepare(&mut prepared, Some(&object)));
                let mut errors = Errors::new();
                strategy.validate.iter().for_each(|validate| validate(&prepared, None, &mut errors));
                strategy.validate.iter().for_each(|validate| validate(&prepared, Some(&object), &mut errors));
                strategy.validate_status.iter().for_each(|validate| validate(&prepared, &object, &mut errors));
                strategy.warn.iter().for_each(|warn| drop(warn(&prepared, Some(&object))));
            }
        }
    }

    #[test]
    fn defaults_that_are_set_stay_as_they_are() {
        for resource in builtin() {
            let Some(default) = resource.strategy.default else { continue };
            for mut object in odd_objects(&resource.schema_type) {
                default(&mut object);
                let once = object.clone();
                default(&mut object);
                assert_eq!(object, once, "{}", resource.kind);
            }
        }
    }
}
