//! The rules of where a pod may run: affinity, tolerations, spread.

use crate::strategy::node::TAINT_EFFECTS;
use crate::strategy::place::Place;
use crate::strategy::{label_selector, node_selector};
use object::field::Errors;
use object::{View, name};

const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";
const PREFERRED: &str = "preferredDuringSchedulingIgnoredDuringExecution";

pub(super) fn validate(affinity: &Place, errors: &mut Errors) {
    if !affinity.is_set() {
        return;
    }
    let node = affinity.field("nodeAffinity");
    let required = node.field(REQUIRED);
    if required.is_set() {
        node_selector::validate(&required, errors);
    }
    for term in node.field(PREFERRED).items() {
        weight(&term, errors);
        node_selector::validate_term(&term.field("preference"), false, errors);
    }
    for field in ["podAffinity", "podAntiAffinity"] {
        let pods = affinity.field(field);
        pods.field(REQUIRED).items().for_each(|term| pod_term(&term, errors));
        for term in pods.field(PREFERRED).items() {
            weight(&term, errors);
            pod_term(&term.field("podAffinityTerm"), errors);
        }
    }
}

fn weight(term: &Place, errors: &mut Errors) {
    let weight = term.field("weight");
    if !(1..=100).contains(&weight.int()) {
        weight.invalid_value(errors, weight.int(), "must be in the range 1-100");
    }
}

fn pod_term(term: &Place, errors: &mut Errors) {
    label_selector::validate(&term.field("labelSelector"), errors);
    label_selector::validate(&term.field("namespaceSelector"), errors);
    for namespace in term.field("namespaces").items() {
        term.field("namespace").text_follows(errors, namespace.text(), name::dns_label);
    }
    label_keys(term, errors);
    let key = term.field("topologyKey");
    key.require_because(errors, "can not be empty");
    key.follows(errors, name::qualified_name);
}

/// Keys whose values are taken from the pod's own labels and joined to the selector.
fn label_keys(term: &Place, errors: &mut Errors) {
    let (matching, differing) = (term.field("matchLabelKeys"), term.field("mismatchLabelKeys"));
    if matching.is_empty() && differing.is_empty() {
        return;
    }
    let selector = term.field("labelSelector");
    for keys in [&matching, &differing] {
        if !keys.is_empty() && !selector.is_set() {
            keys.forbidden(errors, "must not be specified when labelSelector is not set");
        } else {
            keys.items().for_each(|key| key.follows(errors, name::qualified_name));
        }
    }
    // The keys have been joined to the selector by now, so a key the author gave too is there twice.
    let mut selected: Vec<_> = selector.value().entries("matchLabels").map(|(key, _)| key).collect();
    for expression in selector.field("matchExpressions").values() {
        let key = expression.text("key");
        let index = matching.items().position(|matching| matching.text() == key);
        if let Some(index) = index.filter(|_| selected.contains(&key)) {
            term.item(index).invalid_value(errors, key, "exists in both matchLabelKeys and labelSelector");
        }
        selected.push(key);
    }
    for key in matching.items() {
        if differing.items().any(|other| other.text() == key.text()) {
            key.invalid(errors, "exists in both matchLabelKeys and mismatchLabelKeys");
        }
    }
}

pub(in crate::strategy) fn validate_tolerations(tolerations: &Place, errors: &mut Errors) {
    for toleration in tolerations.items() {
        let (key, operator) = (toleration.field("key"), toleration.field("operator"));
        let (value, effect) = (toleration.field("value"), toleration.field("effect"));
        key.follows_if_set(errors, name::qualified_name);
        if key.is_empty() && operator.text() != "Exists" {
            let detail = "operator must be Exists when `key` is empty, which means \"match all values and all keys\"";
            operator.invalid_value(errors, operator.text(), detail);
        }
        if toleration.field("tolerationSeconds").is_set() && effect.text() != "NoExecute" {
            let detail = "effect must be 'NoExecute' when `tolerationSeconds` is set";
            effect.invalid_value(errors, effect.text(), detail);
        }
        match operator.text() {
            "" | "Equal" => {
                let messages = name::label_value(value.text());
                if !messages.is_empty() {
                    operator.invalid_value(errors, value.text(), messages.join(";"));
                }
            }
            "Exists" if !value.is_empty() => {
                operator.invalid_value(errors, value.text(), "value must be empty when `operator` is 'Exists'");
            }
            "Exists" => {}
            "Lt" | "Gt" => operator.not_supported(errors, &["Equal", "Exists", "Lt", "Gt"]),
            _ => operator.not_supported(errors, &["Equal", "Exists"]),
        }
        if !effect.is_empty() {
            effect.one_of(errors, &TAINT_EFFECTS);
        }
    }
}

pub(super) fn validate_spread(constraints: &Place, errors: &mut Errors) {
    for (index, constraint) in constraints.items().enumerate() {
        let (key, action) = (constraint.field("topologyKey"), constraint.field("whenUnsatisfiable"));
        constraint.field("maxSkew").positive(errors);
        if key.is_empty() {
            key.required(errors, "can not be empty");
        }
        action.one_of(errors, &["DoNotSchedule", "ScheduleAnyway"]);
        let same = |other: &Place| {
            other.field("topologyKey").text() == key.text() && other.field("whenUnsatisfiable").text() == action.text()
        };
        if constraints.items().skip(index + 1).any(|other| same(&other)) {
            let pair = constraint.field("{topologyKey, whenUnsatisfiable}");
            pair.duplicate(errors, format!("{{{}, {}}}", key.text(), action.text()));
        }
        let domains = constraint.field("minDomains");
        if domains.is_set() {
            domains.positive(errors);
            if action.text() != "DoNotSchedule" {
                let found = action.text();
                let detail = format!("can only use minDomains if whenUnsatisfiable=DoNotSchedule, not {found}");
                domains.invalid(errors, detail);
            }
        }
        constraint.field("nodeAffinityPolicy").one_of_if_set(errors, &["Honor", "Ignore"]);
        constraint.field("nodeTaintsPolicy").one_of_if_set(errors, &["Honor", "Ignore"]);
        label_keys(&constraint, errors);
        label_selector::validate(&constraint.field("labelSelector"), errors);
    }
}
