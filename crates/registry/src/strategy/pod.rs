//! Pods: what a pod is when nothing is said, what may be said, and what may change.
//!
//! The kinds that hold a template of a pod use the same functions; their paths begin with that of the template.

mod affinity;
mod annotations;
#[cfg(test)]
mod change_tests;
mod container;
mod container_state;
mod default;
mod diff;
mod env;
mod mounts;
mod network;
mod paths;
mod prepare;
mod probe;
mod projection;
mod requirements;
mod resize;
mod resources;
mod security;
mod spec;
mod status;
#[cfg(test)]
mod tests;
mod update;
mod volume;
mod warn;
mod warn_volumes;
mod windows;

pub use default::{default_spec, default_template};
pub use resources::qos_class;

pub(in crate::strategy) use affinity::validate_tolerations;
pub(in crate::strategy) use default::claim_spec;
pub(in crate::strategy) use prepare::drop_disabled;
pub(in crate::strategy) use spec::validate_template;
pub(in crate::strategy) use warn::template as warn_template;

use crate::strategy::place::Place;
use crate::strategy::{PLAIN, Part, Strategy};
use object::field::Errors;
use object::{Edit, Value, View};

pub const STRATEGY: Strategy = Strategy {
    default: Some(default::pod),
    prepare: Some(prepare::prepare),
    validate: Some(validate),
    prepare_status: Some(prepare_status),
    grace: Some(grace),
    parts: &[
        Part {
            name: "ephemeralcontainers",
            prepare: prepare_ephemeral_containers,
            validate: validate_ephemeral_containers,
        },
        Part { name: "resize", prepare: prepare_resize, validate: validate_resize },
    ],
    validate_status: Some(status::validate),
    warn: Some(warn::pod),
    generation: true,
    ..PLAIN
};

/// The class of a pod follows from its spec, whatever a node says.
fn prepare_status(new: &mut Value, old: &Value) {
    let class = old.at("status").at("qosClass");
    if !class.is_null() {
        new.object_or_new("status").set("qosClass", class.clone());
    }
}

/// How long a pod may take to end: what was asked for, or what it says itself. One that runs nowhere, or no more, goes
/// at once.
fn grace(pod: &Value, asked_seconds: Option<i64>) -> i64 {
    const DEFAULT_SECONDS: i64 = 30;
    let (spec, status) = (pod.at("spec"), pod.at("status"));
    if spec.text("nodeName").is_empty() || matches!(status.text("phase"), "Succeeded" | "Failed") {
        return 0;
    }
    let seconds = asked_seconds.or(spec.int("terminationGracePeriodSeconds")).unwrap_or(DEFAULT_SECONDS);
    // Less than nothing means as fast as is decent.
    if seconds < 0 { 1 } else { seconds }
}

fn validate(new: &Value, old: Option<&Value>, errors: &mut Errors) {
    validate_object(new, errors);
    match old {
        None => validate_create(new, errors),
        Some(old) => update::validate(new, old, errors),
    }
}

/// Of a request to the subresource `ephemeralcontainers`, only those containers count.
pub fn prepare_ephemeral_containers(new: &mut Value, old: &Value) {
    let containers = new.at("spec").at("ephemeralContainers").clone();
    let mut spec = old.at("spec").clone();
    match containers {
        Value::Null => drop(spec.remove("ephemeralContainers")),
        containers => spec.set("ephemeralContainers", containers),
    }
    prepare::drop_disabled(&mut spec);
    new.set("spec", spec);
    update::restore(new, old, "status");
}

pub fn validate_ephemeral_containers(new: &Value, old: &Value, errors: &mut Errors) {
    validate_object(new, errors);
    update::validate_ephemeral(new, old, errors);
}

/// Of a request to the subresource `resize`, only resources and resize policies count.
pub fn prepare_resize(new: &mut Value, old: &Value) {
    resize::prepare(new, old);
}

pub fn validate_resize(new: &Value, old: &Value, errors: &mut Errors) {
    validate_object(new, errors);
    resize::validate(new, old, errors);
}

/// What must hold of a pod at all times.
fn validate_object(pod: &Value, errors: &mut Errors) {
    let object = Place::object(pod);
    let (metadata, spec) = (object.field("metadata"), object.field("spec"));
    annotations::validate(&metadata.field("annotations"), spec.value(), errors);
    let owner = volume::Owner { name: metadata.field("name").text(), is_pod: true };
    spec::validate(&spec, owner, errors);
    if spec.field("serviceAccountName").is_empty() {
        for volume in spec.field("volumes").items() {
            for source in volume.field("projected").field("sources").items() {
                let token = source.field("serviceAccountToken");
                if token.is_set() {
                    token.forbidden(errors, "must not be specified when serviceAccountName is not set");
                }
            }
        }
    }
    for list in ["containers", "initContainers"] {
        spec.field(list).items().for_each(|container| container::image_is_trimmed(&container, errors));
    }
}

fn validate_create(pod: &Value, errors: &mut Errors) {
    let object = Place::object(pod);
    let spec = object.field("spec");
    if !spec.field("ephemeralContainers").is_empty() {
        spec.field("ephemeralContainers").forbidden(errors, "cannot be set on create");
    }
    if !spec.field("nodeName").is_empty() && !spec.field("schedulingGates").is_empty() {
        spec.field("nodeName").forbidden(errors, "cannot be set until all schedulingGates have been cleared");
    }
    annotations::validate_match(pod.path(&["metadata", "annotations"]), &spec, errors);
}
