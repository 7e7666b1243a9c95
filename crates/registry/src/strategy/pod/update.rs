//! What may change of a pod once it is there: its image, its deadline, its gates, and little else.

use super::annotations;
use super::diff::diff;
use crate::strategy::place::Place;
use crate::strategy::value::same;
use object::field::Errors;
use object::{Edit, Value, View};

const UPDATABLE: &str = "`spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,\
                         `spec.tolerations` (only additions to existing tolerations),\
                         `spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)";
const DEADLINE_MAX: i64 = i32::MAX as i64;
const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";

pub(super) fn validate(new: &Value, old: &Value, errors: &mut Errors) {
    annotations::validate_update(new, old, errors);
    let object = Place::object(new);
    let (spec, before) = (object.field("spec"), old.at("spec"));
    for list in ["containers", "initContainers"] {
        let containers = spec.field(list);
        if containers.items().count() != before.items(list).len() {
            return containers.forbidden(errors, "pod updates may not add or remove containers");
        }
    }
    if !validate_deadline(&spec.field("activeDeadlineSeconds"), before.at("activeDeadlineSeconds"), errors) {
        return;
    }
    tolerations(&spec.field("tolerations"), before.items("tolerations"), errors);
    gates(&spec.field("schedulingGates"), before.items("schedulingGates"), errors);
    if !same(spec.value(), before) {
        validate_rest(&spec, before, errors);
    }
}

/// A deadline may be set, and then only come closer. Returns whether there is more to say.
fn validate_deadline(deadline: &Place, before: &Value, errors: &mut Errors) -> bool {
    if !deadline.is_set() {
        if !before.is_null() {
            deadline.invalid(errors, "must not update from a positive integer to nil value");
        }
        return true;
    }
    if !(0..=DEADLINE_MAX).contains(&deadline.int()) {
        deadline.invalid(errors, format!("must be between 0 and {DEADLINE_MAX}, inclusive"));
        return false;
    }
    let later = before.as_i64().is_some_and(|before| before < deadline.int());
    if later {
        deadline.invalid(errors, "must be less than or equal to previous value");
    }
    !later
}

fn tolerations(tolerations: &Place, before: &[Value], errors: &mut Errors) {
    let same = |one: &Value, other: &Value| {
        ["key", "operator", "value", "effect"].iter().all(|field| one.at(field) == other.at(field))
    };
    let kept = |old: &Value| tolerations.items().any(|new| same(new.value(), old));
    if !before.iter().all(kept) {
        let detail = "existing toleration can not be modified except its tolerationSeconds";
        tolerations.forbidden(errors, detail);
    }
}

fn gates(gates: &Place, before: &[Value], errors: &mut Errors) {
    for gate in gates.items() {
        let name = gate.field("name");
        if !before.iter().any(|old| old.text("name") == name.text()) {
            let detail = format!("only deletion is allowed, but found new scheduling gate '{}'", name.text());
            name.forbidden(errors, detail);
        }
    }
}

/// Sets what may change back to what it was; then nothing may differ.
fn validate_rest(spec: &Place, before: &Value, errors: &mut Errors) {
    let mut masked = spec.value().clone();
    for list in ["containers", "initContainers"] {
        for (container, old) in masked.each(list).zip(before.items(list)) {
            restore(container, old, "image");
        }
    }
    for field in ["activeDeadlineSeconds", "schedulingGates", "tolerations"] {
        restore(&mut masked, before, field);
    }
    let grace = |spec: &Value| spec.int("terminationGracePeriodSeconds");
    if grace(before).is_some_and(|seconds| seconds < 0) && grace(&masked) == Some(1) {
        restore(&mut masked, before, "terminationGracePeriodSeconds");
    }
    if !before.items("schedulingGates").is_empty() {
        validate_gated(spec, before, errors);
        restore(&mut masked, before, "nodeSelector");
        restore_node_affinity(&mut masked, before);
    }
    if !same(&masked, before) {
        let detail = format!("pod updates may not change fields other than {UPDATABLE}\n{}", diff(before, &masked));
        spec.forbidden(errors, detail);
    }
}

pub(super) fn restore(target: &mut Value, old: &Value, field: &str) {
    match old.at(field) {
        Value::Null => drop(target.remove(field)),
        value => target.set(field, value.clone()),
    }
}

fn restore_node_affinity(masked: &mut Value, before: &Value) {
    let old = before.at("affinity");
    if masked.at("affinity").at("nodeAffinity") == old.at("nodeAffinity") {
        return;
    }
    restore(masked.object_or_new("affinity"), old, "nodeAffinity");
    let empty = masked.entries("affinity").next().is_none();
    if old.is_null() && empty {
        masked.remove("affinity");
    }
}

/// While it waits at a gate, a pod may be told more of where to run, and nothing else than before.
fn validate_gated(spec: &Place, before: &Value, errors: &mut Errors) {
    let selector = spec.field("nodeSelector");
    if before.entries("nodeSelector").any(|(key, value)| selector.key(key).value() != value) {
        selector.invalid(errors, "only additions to spec.nodeSelector are allowed (no mutations or deletions)");
    }
    let path = ["affinity", "nodeAffinity", REQUIRED];
    let old_terms = before.path(&path).items("nodeSelectorTerms");
    let affinity = spec.field("affinity");
    let nodes = affinity.field("nodeAffinity");
    let required = nodes.field(REQUIRED);
    let terms = required.field("nodeSelectorTerms");
    if old_terms.is_empty() {
        return;
    }
    if terms.items().count() != old_terms.len() {
        return terms.invalid(errors, "no additions/deletions to non-empty NodeSelectorTerms list are allowed");
    }
    for (term, old) in terms.items().zip(old_terms) {
        if !only_adds(term.value(), old) {
            term.invalid(errors, "only additions are allowed (no mutations or deletions)");
        }
    }
}

fn only_adds(term: &Value, old: &Value) -> bool {
    let lists = ["matchExpressions", "matchFields"];
    let was_empty = lists.iter().all(|list| old.items(list).is_empty());
    // A term without requirements matches nothing, so anything added to it is another term.
    let is_empty = lists.iter().all(|list| term.items(list).is_empty());
    if was_empty {
        return is_empty;
    }
    lists.iter().all(|list| term.items(list).starts_with(old.items(list)))
}

/// An ephemeral container is there for good and stays what it is.
pub(super) fn validate_ephemeral(new: &Value, old: &Value, errors: &mut Errors) {
    if old.path(&["metadata", "annotations"]).has(annotations::MIRROR) {
        errors.clear();
        return Place::object(new).forbidden(errors, "static pods do not support ephemeral containers");
    }
    annotations::validate_update(new, old, errors);
    let object = Place::object(new);
    let spec = object.field("spec");
    let containers = spec.field("ephemeralContainers");
    for old in old.at("spec").items("ephemeralContainers") {
        let name = old.text("name");
        match containers.items().find(|container| container.field("name").text() == name) {
            None => {
                containers.forbidden(errors, format!("existing ephemeral containers {name:?} may not be removed\n"));
            }
            Some(container) if !same(container.value(), old) => {
                let change = diff(old, container.value());
                let detail = format!("existing ephemeral containers {name:?} may not be changed\n{change}");
                containers.forbidden(errors, detail);
            }
            Some(_) => {}
        }
    }
}
