//! Pod templates that stand by themselves, and the revisions that workloads keep of theirs.

use crate::strategy::place::Place;
use crate::strategy::{PLAIN, Strategy, pod, workload};
use object::field::Errors;
use object::{Edit, Value, View};

pub const STRATEGY: Strategy = Strategy {
    default: Some(default),
    prepare: Some(|new, _| workload::drop_disabled(new, &["template"])),
    validate: Some(validate),
    warn: Some(warn),
    generation: true,
    ..PLAIN
};

pub const CONTROLLER_REVISION: Strategy = Strategy { validate: Some(validate_revision), ..PLAIN };

fn default(object: &mut Value) {
    if let Some(template) = object.object("template") {
        pod::default_template(template);
    }
}

fn validate(new: &Value, _: Option<&Value>, errors: &mut Errors) {
    pod::validate_template(&Place::object(new).field("template"), errors);
}

fn warn(new: &Value, old: Option<&Value>) -> Vec<String> {
    let mut warnings = Vec::new();
    if old.is_none_or(|old| old.at("template") != new.at("template")) {
        pod::warn_template(&Place::object(new).field("template"), &mut warnings);
    }
    warnings
}

/// A revision says what a template was at a time, so it does not change.
fn validate_revision(new: &Value, old: Option<&Value>, errors: &mut Errors) {
    let object = Place::object(new);
    object.field("revision").not_negative(errors);
    let data = object.field("data");
    match old {
        Some(old) => data.unchanged(errors, old.at("data")),
        None if !data.is_set() => data.required(errors, "data is mandatory"),
        None if !data.value().is_object() => data.required(errors, "data must be a valid JSON object"),
        None => {}
    }
}
