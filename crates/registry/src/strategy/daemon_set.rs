//! Daemon sets.

use crate::strategy::place::Place;
use crate::strategy::value::same;
use crate::strategy::workload::{self, MISMATCH, Words};
use crate::strategy::{PLAIN, Strategy, label_selector, pod};
use object::field::Errors;
use object::{Edit, Value, View};

pub const STRATEGY: Strategy = Strategy {
    default: Some(default),
    prepare: Some(prepare),
    validate: Some(validate),
    validate_status: Some(validate_status),
    warn: Some(workload::warn_template),
    generation: true,
    ..PLAIN
};

const WORDS: Words = Words {
    empty_selector: "empty selector is invalid for daemonset",
    deadline: "activeDeadlineSeconds in DaemonSet is not Supported",
};
/// How often the template has changed, which was a field once; old clients still look here.
const TEMPLATE_GENERATION: &str = "deprecated.daemonset.template.generation";

fn default(object: &mut Value) {
    let Some(spec) = object.object("spec") else { return };
    spec.set_default("revisionHistoryLimit", 10);
    let strategy = spec.object_or_new("updateStrategy");
    if strategy.text("type").is_empty() {
        strategy.set("type", "RollingUpdate");
    }
    if strategy.text("type") == "RollingUpdate" {
        let update = strategy.object_or_new("rollingUpdate");
        update.set_default("maxUnavailable", 1);
        update.set_default("maxSurge", 0);
    }
    if let Some(template) = spec.object("template") {
        pod::default_template(template);
    }
}

fn prepare(new: &mut Value, old: Option<&Value>) {
    workload::prepare_template(new, old);
    let counted = |object: &Value| -> Option<i64> {
        object.path(&["metadata", "annotations"]).text(TEMPLATE_GENERATION).parse().ok()
    };
    let generation = match old {
        None => counted(new).unwrap_or_default().max(1),
        Some(old) => {
            let changed = !same(new.path(&["spec", "template"]), old.path(&["spec", "template"]));
            counted(old).unwrap_or(1) + i64::from(changed)
        }
    };
    let annotations = new.object_or_new("metadata").object_or_new("annotations");
    annotations.set(TEMPLATE_GENERATION, generation.to_string());
}

fn validate(new: &Value, old: Option<&Value>, errors: &mut Errors) {
    let object = Place::object(new);
    let spec = object.field("spec");
    if let Some(old) = old {
        spec.field("selector").unchanged(errors, old.at("spec").at("selector"));
    }
    let (selector, template) = (spec.field("selector"), spec.field("template"));
    label_selector::validate(&selector, errors);
    let labels = template.field("metadata");
    let labels = labels.field("labels");
    if workload::selects(selector.value(), labels.value()) == Some(false) {
        labels.invalid(errors, MISMATCH);
    }
    if selector.is_set() && workload::is_empty(selector.value()) {
        selector.invalid(errors, WORDS.empty_selector);
    }
    workload::validate_template(&template, &WORDS, errors);
    spec.field("minReadySeconds").not_negative(errors);
    validate_strategy(&spec.field("updateStrategy"), errors);
    spec.field("revisionHistoryLimit").not_negative(errors);
}

fn validate_strategy(strategy: &Place, errors: &mut Errors) {
    let update = strategy.field("rollingUpdate");
    match strategy.field("type").text() {
        "OnDelete" => return,
        "RollingUpdate" if !update.is_set() => return update.required(errors, ""),
        "RollingUpdate" => {}
        _ => return strategy.not_supported(errors, &["RollingUpdate", "OnDelete"]),
    }
    let (unavailable, surge) = (update.field("maxUnavailable"), update.field("maxSurge"));
    for number in [&unavailable, &surge] {
        workload::number_or_percent(number, errors);
        workload::at_most_all(number, errors);
    }
    match (workload::number(&unavailable) != 0, workload::number(&surge) != 0) {
        (true, true) => surge.invalid(errors, "may not be set when maxUnavailable is non-zero"),
        (false, false) => unavailable.required(errors, "cannot be 0 when maxSurge is 0"),
        _ => {}
    }
}

fn validate_status(new: &Value, old: &Value, errors: &mut Errors) {
    const COUNTERS: [&str; 9] = [
        "currentNumberScheduled",
        "numberMisscheduled",
        "desiredNumberScheduled",
        "numberReady",
        "observedGeneration",
        "updatedNumberScheduled",
        "numberAvailable",
        "numberUnavailable",
        "collisionCount",
    ];
    workload::validate_counters(&Place::object(new).field("status"), &COUNTERS, &[], errors);
    workload::validate_collisions(new, old, errors);
}
