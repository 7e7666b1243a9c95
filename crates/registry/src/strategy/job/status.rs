//! The rules of a job's status: once it has ended it stays ended, and its counters do not go back.
//!
//! A rule speaks up only if what it is about has changed, so that a status from before the rule can still be written.

use super::policies::count_indexes;
use crate::strategy::place::Place;
use object::field::Errors;
use object::{Value, View, time};
use std::collections::BTreeSet;

pub(super) fn has_condition(status: &Value, kind: &str) -> bool {
    let conditions = status.items("conditions").iter();
    conditions.filter(|condition| condition.text("type") == kind).any(|condition| condition.text("status") == "True")
}

/// Conditions that cannot both be true.
const CONTRADICTIONS: [(&str, &str, &str); 4] = [
    ("Complete", "Failed", "cannot set Complete=True and Failed=true conditions"),
    ("Complete", "FailureTarget", "cannot set Complete=True and FailureTarget=true conditions"),
    ("SuccessCriteriaMet", "Failed", "cannot set SuccessCriteriaMet=True and Failed=true conditions"),
    ("SuccessCriteriaMet", "FailureTarget", "cannot set SuccessCriteriaMet=True and FailureTarget=true conditions"),
];
/// Conditions that need another one first.
const PRECONDITIONS: [(&str, &str, &str); 2] = [
    ("Failed", "FailureTarget", "cannot set Failed=True condition without the FailureTarget=true condition"),
    (
        "Complete",
        "SuccessCriteriaMet",
        "cannot set Complete=True condition without the SuccessCriteriaMet=true condition",
    ),
];
const FINAL: [&str; 3] = ["Failed", "Complete", "FailureTarget"];

pub(super) fn validate(new: &Value, old: &Value, errors: &mut Errors) {
    let object = Place::object(new);
    let (status, before) = (object.field("status"), old.at("status"));
    for counter in ["active", "succeeded", "failed", "ready", "terminating"] {
        status.field(counter).not_negative(errors);
    }
    validate_uncounted(&status.field("uncountedTerminatedPods"), errors);
    validate_conditions(&status, before, errors);
    validate_times(&status, before, new.at("spec"), errors);
    validate_counters(&status, before, new.at("spec"), errors);
    validate_indexes(&status, before, new.at("spec"), errors);
}

fn validate_uncounted(uncounted: &Place, errors: &mut Errors) {
    let mut seen = BTreeSet::new();
    for list in ["succeeded", "failed"] {
        for uid in uncounted.field(list).items() {
            if uid.is_empty() {
                uid.invalid(errors, "must not be empty");
            } else if !seen.insert(uid.text()) {
                uid.duplicate(errors, uid.text());
            }
        }
    }
}

fn validate_conditions(status: &Place, before: &Value, errors: &mut Errors) {
    let conditions = status.field("conditions");
    let mut refuse = |detail: String| conditions.invalid_whole(errors, detail);
    let is = |kind| has_condition(status.value(), kind);
    let was = |kind| has_condition(before, kind);
    for (one, other, message) in CONTRADICTIONS {
        let changed = is(one) != was(one) || is(other) != was(other);
        if changed && is(one) && is(other) {
            refuse(message.to_owned());
        }
    }
    for (one, first, message) in PRECONDITIONS {
        if is(one) != was(one) && is(one) && !is(first) {
            refuse(message.to_owned());
        }
    }
    for kind in FINAL.into_iter().filter(|kind| was(kind) && !is(kind)) {
        refuse(format!("cannot disable the terminal {kind}=True condition"));
    }
    if was("SuccessCriteriaMet") && !is("SuccessCriteriaMet") {
        refuse("cannot disable the SuccessCriteriaMet=True condition".to_owned());
    }
    if was("Complete") && !was("SuccessCriteriaMet") && is("SuccessCriteriaMet") {
        refuse("cannot set SuccessCriteriaMet=True for Job already has Complete=true conditions".to_owned());
    }
}

fn is_finished(status: &Value) -> bool {
    has_condition(status, "Complete") || has_condition(status, "Failed")
}

fn validate_times(status: &Place, before: &Value, spec: &Value, errors: &mut Errors) {
    let (start, completion) = (status.field("startTime"), status.field("completionTime"));
    let changed = |field: &str| status.field(field).value() != before.at(field);
    let complete = has_condition(status.value(), "Complete");
    if complete != has_condition(before, "Complete") || changed("completionTime") {
        if completion.is_set() && !complete {
            completion.invalid(errors, "cannot set completionTime when there is no Complete=True condition");
        }
        if complete && !completion.is_set() {
            completion.required(errors, "completionTime is required for Complete jobs");
        }
    }
    let earlier = time::parse(completion.text()).zip(time::parse(start.text())).is_some_and(|(end, start)| end < start);
    if earlier && (changed("startTime") || changed("completionTime")) {
        completion.invalid(errors, "must be equal to or after `startTime`");
    }
    if completion.is_set() && before.has("completionTime") && changed("completionTime") {
        completion.invalid(errors, "field is immutable");
    }
    let finished = is_finished(status.value());
    let never_ran = spec.flag("suspend") && spec.int("completions") == Some(0);
    if finished && !start.is_set() && (finished != is_finished(before) || changed("startTime")) && !never_ran {
        start.required(errors, "startTime is required for finished job");
    }
    let resumes = has_condition(before, "Suspended") && !has_condition(status.value(), "Suspended");
    if before.has("startTime") && changed("startTime") && !spec.flag("suspend") && !resumes {
        start.invalid(errors, "field is immutable for unsuspended job once set");
    }
}

fn validate_counters(status: &Place, before: &Value, spec: &Value, errors: &mut Errors) {
    let count = |field: &str| before.int(field).unwrap_or_default();
    let (active, ready) = (status.field("active"), status.field("ready"));
    let finished = is_finished(status.value());
    let changed = |field: &str| finished != is_finished(before) || status.field(field).value() != before.at(field);
    if finished && active.int() > 0 && changed("active") {
        active.invalid(errors, "active>0 is invalid for finished job");
    }
    let terminating = status.field("terminating");
    if finished && terminating.int() > 0 && changed("terminating") {
        terminating.invalid(errors, "terminating>0 is invalid for finished job");
    }
    let uncounted = status.field("uncountedTerminatedPods");
    let some = ["succeeded", "failed"].iter().any(|list| !uncounted.field(list).is_empty());
    if finished && some && changed("uncountedTerminatedPods") {
        uncounted.invalid(errors, "must be empty for finished job");
    }
    if ready.int() > active.int() && (ready.int() != count("ready") || active.int() != count("active")) {
        ready.invalid(errors, "cannot set more ready pods than active");
    }
    if status.field("failed").int() < count("failed") {
        status.field("failed").invalid_value(
            errors,
            status.field("failed").int(),
            "cannot decrease the failed counter",
        );
    }
    // An indexed job whose completions follow its parallelism can be scaled down.
    let scalable = spec.text("completionMode") == "Indexed" && spec.at("completions") == spec.at("parallelism");
    let succeeded = status.field("succeeded");
    if !scalable && succeeded.int() < count("succeeded") {
        succeeded.invalid_value(errors, succeeded.int(), "cannot decrease the succeeded counter");
    }
}

fn validate_indexes(status: &Place, before: &Value, spec: &Value, errors: &mut Errors) {
    let (completed, failed) = (status.field("completedIndexes"), status.field("failedIndexes"));
    let completions = spec.int("completions");
    for (indexes, what) in [(&completed, "completedIndexes"), (&failed, "failedIndexes")] {
        let changed = indexes.value() != before.at(what);
        if let Some(completions) = completions.filter(|_| changed)
            && let Err(message) = count_indexes(indexes.text(), completions)
        {
            indexes.invalid(errors, format!("error parsing {what}: {message}"));
        }
    }
    if completed.value() != before.at("completedIndexes")
        && !completed.is_empty()
        && spec.text("completionMode") != "Indexed"
    {
        completed.invalid(errors, "cannot set non-empty completedIndexes when non-indexed completion mode");
    }
    if failed.value() != before.at("failedIndexes") && failed.is_set() && !spec.has("backoffLimitPerIndex") {
        failed.invalid(errors, "cannot set non-null failedIndexes when backoffLimitPerIndex is null");
    }
}
