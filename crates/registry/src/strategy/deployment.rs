//! Deployments.

use crate::strategy::place::Place;
use crate::strategy::workload::{self, Words};
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
    generation_of_annotations: true,
    ..PLAIN
};

/// A deployment speaks of its pods as its replica sets do.
pub(super) const WORDS: Words = Words {
    empty_selector: "empty selector is invalid for deployment",
    deadline: "activeDeadlineSeconds in ReplicaSet is not Supported",
};

fn default(object: &mut Value) {
    let Some(spec) = object.object("spec") else { return };
    spec.set_default("replicas", 1);
    spec.set_default("revisionHistoryLimit", 10);
    spec.set_default("progressDeadlineSeconds", 600);
    let strategy = spec.object_or_new("strategy");
    if strategy.text("type").is_empty() {
        strategy.set("type", "RollingUpdate");
    }
    if strategy.text("type") == "RollingUpdate" {
        let update = strategy.object_or_new("rollingUpdate");
        update.set_default("maxUnavailable", "25%");
        update.set_default("maxSurge", "25%");
    }
    if let Some(template) = spec.object("template") {
        pod::default_template(template);
    }
}

fn validate(new: &Value, old: Option<&Value>, errors: &mut Errors) {
    let object = Place::object(new);
    let spec = object.field("spec");
    spec.field("replicas").not_negative(errors);
    workload::validate_selector(&spec, &WORDS, errors);
    workload::validate_template(&spec.field("template"), &WORDS, errors);
    validate_strategy(&spec.field("strategy"), errors);
    spec.field("minReadySeconds").not_negative(errors);
    spec.field("revisionHistoryLimit").not_negative(errors);
    let deadline = spec.field("progressDeadlineSeconds");
    deadline.not_negative(errors);
    if deadline.is_set() && deadline.int() <= spec.field("minReadySeconds").int() {
        deadline.invalid(errors, "must be greater than minReadySeconds");
    }
    if let Some(old) = old {
        spec.field("selector").unchanged(errors, old.at("spec").at("selector"));
    }
}

fn validate_strategy(strategy: &Place, errors: &mut Errors) {
    let update = strategy.field("rollingUpdate");
    match strategy.field("type").text() {
        "Recreate" if update.is_set() => {
            update.forbidden(errors, "may not be specified when strategy `type` is 'Recreate'");
        }
        "Recreate" => {}
        "RollingUpdate" => {
            let (unavailable, surge) = (update.field("maxUnavailable"), update.field("maxSurge"));
            workload::number_or_percent(&unavailable, errors);
            workload::number_or_percent(&surge, errors);
            if workload::number(&unavailable) == 0 && workload::number(&surge) == 0 {
                unavailable.invalid(errors, "may not be 0 when `maxSurge` is 0");
            }
            workload::at_most_all(&unavailable, errors);
        }
        _ => strategy.not_supported(errors, &["Recreate", "RollingUpdate"]),
    }
}

fn validate_status(new: &Value, old: &Value, errors: &mut Errors) {
    const COUNTERS: [&str; 8] = [
        "observedGeneration",
        "replicas",
        "updatedReplicas",
        "readyReplicas",
        "availableReplicas",
        "unavailableReplicas",
        "terminatingReplicas",
        "collisionCount",
    ];
    const TOO_MANY: &str = "cannot be greater than status.replicas";
    const PARTS: [(&str, &str, &str); 4] = [
        ("updatedReplicas", "replicas", TOO_MANY),
        ("readyReplicas", "replicas", TOO_MANY),
        ("availableReplicas", "replicas", TOO_MANY),
        ("availableReplicas", "readyReplicas", "cannot be greater than readyReplicas"),
    ];
    workload::validate_counters(&Place::object(new).field("status"), &COUNTERS, &PARTS, errors);
    workload::validate_collisions(new, old, errors);
}
