//! Jobs.

mod policies;
mod status;
#[cfg(test)]
mod tests;

use crate::strategy::place::Place;
use crate::strategy::value::same;
use crate::strategy::{PLAIN, Strategy, label_selector, pod, workload};
use object::field::Errors;
use object::{Edit, Value, View, json, name};

pub const STRATEGY: Strategy = Strategy {
    default: Some(default),
    prepare: Some(prepare),
    validate: Some(validate),
    validate_status: Some(status::validate),
    warn: Some(warn),
    generation: true,
    ..PLAIN
};

/// Labels of a job's pods: by the name and by the uid of the job, each with the name it had once.
const NAME_LABELS: [&str; 2] = ["job-name", "batch.kubernetes.io/job-name"];
const UID_LABELS: [&str; 2] = ["controller-uid", UID_LABEL];
const UID_LABEL: &str = "batch.kubernetes.io/controller-uid";
const BACKOFF_LIMIT: i64 = 6;
const MANAGED_BY_MAX: usize = 63;
/// Indexes are kept in the status, which must stay small enough to be stored.
const INDEXED_PARALLELISM_MAX: i64 = 100_000;
const FAILED_INDEXES_MAX: i64 = 100_000;
const MANY_COMPLETIONS: i64 = 100_000;
const PARALLELISM_MAX_FOR_MANY: i64 = 10_000;
const FAILED_INDEXES_MAX_FOR_MANY: i64 = 10_000;
const NOT_NEGATIVE: [&str; 7] = [
    "parallelism",
    "completions",
    "activeDeadlineSeconds",
    "backoffLimit",
    "ttlSecondsAfterFinished",
    "backoffLimitPerIndex",
    "maxFailedIndexes",
];
/// What says how a job goes on, and cannot change while it does.
const IMMUTABLE: [&str; 5] =
    ["completionMode", "podFailurePolicy", "backoffLimitPerIndex", "managedBy", "successPolicy"];

fn default(object: &mut Value) {
    let labels = object.path(&["spec", "template", "metadata", "labels"]).clone();
    let Some(spec) = object.object("spec") else { return };
    if !spec.has("completions") && !spec.has("parallelism") {
        spec.set("completions", 1);
    }
    spec.set_default("parallelism", 1);
    let limit = if spec.has("backoffLimitPerIndex") { i32::MAX.into() } else { BACKOFF_LIMIT };
    spec.set_default("backoffLimit", limit);
    spec.set_default("completionMode", "NonIndexed");
    spec.set_default("suspend", false);
    spec.set_default("manualSelector", false);
    let replacement = if spec.has("podFailurePolicy") { "Failed" } else { "TerminatingOrFailed" };
    spec.set_default("podReplacementPolicy", replacement);
    default_template(spec);
    let unlabelled = object.at("metadata").entries("labels").next().is_none();
    if unlabelled && labels.as_object().is_some_and(|labels| !labels.is_empty()) {
        object.object_or_new("metadata").set("labels", labels);
    }
}

/// The defaults of a job's spec that its template in a cron job has too.
pub(super) fn default_template(spec: &mut Value) {
    if let Some(policy) = spec.object("podFailurePolicy") {
        for rule in policy.each("rules") {
            for pattern in rule.each("onPodConditions").filter(|pattern| pattern.text("status").is_empty()) {
                pattern.set("status", "True");
            }
        }
    }
    if let Some(template) = spec.object("template") {
        pod::default_template(template);
    }
}

fn prepare(new: &mut Value, old: Option<&Value>) {
    workload::prepare_template(new, old);
    if old.is_some() || new.at("spec").flag("manualSelector") {
        return;
    }
    // A selector by the uid cannot take over the pods of anything else.
    let metadata = new.at("metadata");
    let (name, uid) = (metadata.text("name").to_owned(), metadata.text("uid").to_owned());
    let spec = new.object_or_new("spec");
    let labels = spec.object_or_new("template").object_or_new("metadata").object_or_new("labels");
    for (keys, value) in [(NAME_LABELS, &name), (UID_LABELS, &uid)] {
        keys.iter().for_each(|key| labels.set_default(key, value.as_str()));
    }
    spec.object_or_new("selector").object_or_new("matchLabels").set_default(UID_LABEL, uid);
}

fn validate(new: &Value, old: Option<&Value>, errors: &mut Errors) {
    let object = Place::object(new);
    let (metadata, spec) = (object.field("metadata"), object.field("spec"));
    validate_generated(&metadata, &spec, errors);
    validate_spec(&spec, errors);
    let selector = spec.field("selector");
    selector.require_set(errors);
    label_selector::validate(&selector, errors);
    let labels = spec.descend(&["template", "metadata", "labels"]);
    if workload::selects(selector.value(), labels.value()) == Some(false) {
        labels.invalid(errors, workload::MISMATCH);
    }
    let completions = spec.field("completions").int();
    if spec.field("completionMode").text() == "Indexed" && completions > 0 {
        let host_name = format!("{}-{}", metadata.field("name").text(), completions - 1);
        if !name::dns_label(&host_name).is_empty() {
            let detail = format!("will not able to create pod with invalid DNS label: {host_name}");
            metadata.field("name").invalid(errors, detail);
        }
    }
    if let Some(old) = old {
        validate_change(&spec, old, errors);
    }
}

/// Where the server makes the selector, the labels it relies on must be the job's own.
fn validate_generated(metadata: &Place, spec: &Place, errors: &mut Errors) {
    if spec.field("manualSelector").flag() || !spec.field("selector").is_set() {
        return;
    }
    metadata.field("uid").require(errors);
    let (name, uid) = (metadata.field("name").text(), metadata.field("uid").text());
    let labels = spec.descend(&["template", "metadata", "labels"]);
    let mut expected = json!({});
    for (index, _) in NAME_LABELS.iter().enumerate() {
        for (key, value) in [(UID_LABELS[index], uid), (NAME_LABELS[index], name)] {
            expected.set(key, value);
            let found = labels.key(key);
            if !found.is_set() {
                found.required(errors, format!("must be '{value}'"));
            } else if found.value() != value {
                found.invalid_value(errors, labels.value().clone(), format!("must be '{value}'"));
            }
        }
    }
    if workload::selects(spec.field("selector").value(), &expected) == Some(false) {
        spec.field("selector").invalid(errors, "`selector` not auto-generated");
    }
}

/// The rules of a job's spec, which its template in a cron job follows too.
pub(super) fn validate_spec(spec: &Place, errors: &mut Errors) {
    for field in NOT_NEGATIVE {
        spec.field(field).not_negative(errors);
    }
    if spec.field("maxFailedIndexes").is_set() && !spec.field("backoffLimitPerIndex").is_set() {
        spec.field("backoffLimitPerIndex").required(errors, "when maxFailedIndexes is specified");
    }
    if spec.field("managedBy").is_set() {
        validate_manager(&spec.field("managedBy"), errors);
    }
    spec.field("completionMode").one_of_if_set(errors, &["NonIndexed", "Indexed"]);
    match spec.field("completionMode").text() {
        "Indexed" => validate_indexed(spec, errors),
        "NonIndexed" | "" => {
            for field in ["backoffLimitPerIndex", "maxFailedIndexes", "successPolicy"] {
                if spec.field(field).is_set() {
                    spec.field(field).invalid(errors, "requires indexed completion mode");
                }
            }
        }
        _ => {}
    }
    policies::validate(spec, errors);
    pod::validate_template(&spec.field("template"), errors);
    let template = spec.field("template");
    let template = template.field("spec");
    let restart = template.field("restartPolicy");
    match restart.text() {
        "Always" | "" => restart.required(errors, "valid values: \"OnFailure\", \"Never\""),
        "OnFailure" if spec.field("podFailurePolicy").is_set() => {
            restart.invalid(errors, "only \"Never\" is supported when podFailurePolicy is specified");
        }
        "OnFailure" | "Never" => {}
        _ => restart.not_supported(errors, &["OnFailure", "Never"]),
    }
}

fn validate_manager(manager: &Place, errors: &mut Errors) {
    match manager.text().split_once('/') {
        None if manager.is_empty() => manager.required(errors, ""),
        Some((domain, path)) if !domain.is_empty() && !path.is_empty() => {
            for message in name::dns_subdomain(domain) {
                manager.invalid_value(errors, domain, message);
            }
        }
        _ => manager.invalid(errors, "must be a domain-prefixed path (such as \"acme.io/foo\")"),
    }
    if manager.text().len() > MANAGED_BY_MAX {
        manager.too_long(errors, MANAGED_BY_MAX);
    }
}

fn validate_indexed(spec: &Place, errors: &mut Errors) {
    let (completions, parallelism) = (spec.field("completions"), spec.field("parallelism"));
    let failed = spec.field("maxFailedIndexes");
    if !completions.is_set() {
        completions.required(errors, "when completion mode is Indexed");
    }
    if parallelism.int() > INDEXED_PARALLELISM_MAX {
        let detail = format!("must be less than or equal to {INDEXED_PARALLELISM_MAX} when completion mode is Indexed");
        parallelism.invalid(errors, detail);
    }
    if completions.is_set() && failed.int() > completions.int() {
        failed.invalid(errors, "must be less than or equal to completions");
    }
    if failed.int() > FAILED_INDEXES_MAX {
        failed.invalid(errors, format!("must be less than or equal to {FAILED_INDEXES_MAX}"));
    }
    if completions.int() <= MANY_COMPLETIONS || !spec.field("backoffLimitPerIndex").is_set() {
        return;
    }
    if !failed.is_set() {
        failed.required(errors, format!("must be specified when completions is above {MANY_COMPLETIONS}"));
    }
    for (field, most) in [(&parallelism, PARALLELISM_MAX_FOR_MANY), (&failed, FAILED_INDEXES_MAX_FOR_MANY)] {
        if field.int() > most {
            let detail = format!(
                "must be less than or equal to {most} when completions are above {MANY_COMPLETIONS} and used with \
                 backoff limit per index"
            );
            field.invalid(errors, detail);
        }
    }
}

fn validate_change(spec: &Place, old: &Value, errors: &mut Errors) {
    let old_spec = old.at("spec");
    let (completions, before) = (spec.field("completions"), old_spec.at("completions"));
    if spec.field("completionMode").text() != "Indexed" {
        completions.unchanged(errors, before);
    } else if completions.is_set()
        && completions.value() != before
        && completions.int() != spec.field("parallelism").int()
    {
        completions.invalid(errors, "can only be modified in tandem with spec.parallelism");
    }
    spec.field("selector").unchanged(errors, old_spec.at("selector"));
    validate_template_change(spec, old, errors);
    for field in IMMUTABLE {
        spec.field(field).unchanged(errors, old_spec.at(field));
    }
}

/// A job that is suspended and runs nothing may be told anew where to run and with how much.
fn validate_template_change(spec: &Place, old: &Value, errors: &mut Errors) {
    let (old_spec, status) = (old.at("spec"), old.at("status"));
    let idle = old_spec.flag("suspend")
        && status::has_condition(status, "Suspended")
        && status.int("active").unwrap_or_default() == 0;
    let template = spec.field("template");
    if !idle {
        return template.unchanged(errors, old_spec.at("template"));
    }
    let (new, mut allowed) = (template.value(), old_spec.at("template").clone());
    let new_spec = new.at("spec");
    for field in ["labels", "annotations"] {
        copy(allowed.object_or_new("metadata"), new.at("metadata"), field);
    }
    let target = allowed.object_or_new("spec");
    for field in ["nodeSelector", "tolerations", "schedulingGates"] {
        copy(target, new_spec, field);
    }
    let node_affinity = new_spec.path(&["affinity", "nodeAffinity"]);
    if new_spec.has("affinity") || target.has("affinity") {
        copy(target.object_or_new("affinity"), &json!({ "nodeAffinity": node_affinity }), "nodeAffinity");
        if !new_spec.has("affinity") && target.at("affinity") == &json!({}) {
            target.remove("affinity");
        }
    }
    for list in ["containers", "initContainers"] {
        let changed = new_spec.items(list);
        if changed.len() != target.items(list).len() {
            continue;
        }
        for (container, changed) in target.each(list).zip(changed) {
            if container.at("name") == changed.at("name") {
                copy(container, changed, "resources");
            }
        }
    }
    if !same(new, &allowed) {
        template.field("spec").invalid(errors, "field is immutable");
    }
}

/// Makes a field what it is in another object.
fn copy(target: &mut Value, source: &Value, field: &str) {
    match source.at(field) {
        Value::Null => drop(target.remove(field)),
        value => target.set(field, value.clone()),
    }
}

fn warn(new: &Value, old: Option<&Value>) -> Vec<String> {
    let mut warnings = Vec::new();
    if old.is_none() {
        warnings.extend(workload::name_warning(new));
    }
    let object = Place::object(new);
    warn_spec(&object.field("spec"), &mut warnings);
    warnings
}

pub(super) fn warn_spec(spec: &Place, warnings: &mut Vec<String>) {
    let many = spec.field("completions").int() > MANY_COMPLETIONS
        && spec.field("parallelism").int() > PARALLELISM_MAX_FOR_MANY;
    if spec.field("completionMode").text() == "Indexed" && many {
        warnings.push(format!(
            "{spec}: In Indexed Jobs with a number of completions higher than 10^5 and a parallelism higher than 10^4, \
             Kubernetes might not be able to track completedIndexes when a big number of indexes fail"
        ));
    }
    pod::warn_template(&spec.field("template"), warnings);
}
