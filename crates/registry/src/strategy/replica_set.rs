//! Replica sets, and replication controllers, which are the same with a simpler selector.

use crate::strategy::deployment::WORDS;
use crate::strategy::place::Place;
use crate::strategy::workload::{self, MISMATCH, Words};
use crate::strategy::{PLAIN, Strategy, pod};
use object::field::Errors;
use object::{Edit, Value, View};

pub const STRATEGY: Strategy = Strategy {
    default: Some(default),
    prepare: Some(workload::prepare_template),
    validate: Some(validate),
    validate_status: Some(validate_status),
    warn: Some(workload::warn_name_and_template),
    generation: true,
    ..PLAIN
};

pub const REPLICATION_CONTROLLER: Strategy =
    Strategy { default: Some(default_controller), validate: Some(validate_controller), ..STRATEGY };

fn default(object: &mut Value) {
    let Some(spec) = object.object("spec") else { return };
    spec.set_default("replicas", 1);
    if let Some(template) = spec.object("template") {
        pod::default_template(template);
    }
}

/// A controller without labels or a selector takes those of its pods.
fn default_controller(object: &mut Value) {
    default(object);
    let labels = object.path(&["spec", "template", "metadata", "labels"]);
    let Some(labels) = labels.as_object().cloned() else { return };
    let Some(spec) = object.object("spec") else { return };
    if spec.entries("selector").next().is_none() && !labels.is_empty() {
        spec.set("selector", labels.clone());
    }
    if object.at("metadata").entries("labels").next().is_none() && !labels.is_empty() {
        object.object_or_new("metadata").set("labels", labels);
    }
}

fn validate(new: &Value, old: Option<&Value>, errors: &mut Errors) {
    let object = Place::object(new);
    let spec = object.field("spec");
    spec.field("replicas").not_negative(errors);
    spec.field("minReadySeconds").not_negative(errors);
    workload::validate_selector(&spec, &WORDS, errors);
    workload::validate_template(&spec.field("template"), &WORDS, errors);
    if let Some(old) = old {
        spec.field("selector").unchanged(errors, old.at("spec").at("selector"));
    }
}

fn validate_controller(new: &Value, _: Option<&Value>, errors: &mut Errors) {
    const CONTROLLER: Words =
        Words { empty_selector: "", deadline: "activeDeadlineSeconds in ReplicationController is not Supported" };
    let object = Place::object(new);
    let spec = object.field("spec");
    spec.field("minReadySeconds").not_negative(errors);
    spec.field("selector").require(errors);
    spec.field("replicas").not_negative(errors);
    let template = spec.field("template");
    if !template.is_set() {
        return template.required(errors, "");
    }
    let labels = template.field("metadata");
    let labels = labels.field("labels");
    if !spec.value().entries("selector").all(|(key, value)| labels.key(key).value() == value) {
        labels.invalid(errors, MISMATCH);
    }
    workload::validate_template(&template, &CONTROLLER, errors);
}

fn validate_status(new: &Value, _: &Value, errors: &mut Errors) {
    const COUNTERS: [&str; 6] = [
        "replicas",
        "fullyLabeledReplicas",
        "readyReplicas",
        "availableReplicas",
        "observedGeneration",
        "terminatingReplicas",
    ];
    const TOO_MANY: &str = "cannot be greater than status.replicas";
    const PARTS: [(&str, &str, &str); 4] = [
        ("fullyLabeledReplicas", "replicas", TOO_MANY),
        ("readyReplicas", "replicas", TOO_MANY),
        ("availableReplicas", "replicas", TOO_MANY),
        ("availableReplicas", "readyReplicas", "cannot be greater than readyReplicas"),
    ];
    workload::validate_counters(&Place::object(new).field("status"), &COUNTERS, &PARTS, errors);
}
