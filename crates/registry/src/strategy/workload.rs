//! What the kinds that keep pods running have in common: a selector, a template it matches, numbers that count.

#[cfg(test)]
mod tests;

use crate::strategy::place::Place;
use crate::strategy::value::same;
use crate::strategy::{label_selector, pod};
use object::field::Errors;
use object::selector::LabelSelector;
use object::{Edit, Value, View, name};

pub(super) const MISMATCH: &str = "`selector` does not match template `labels`";

/// How a kind speaks of its own rules.
pub(super) struct Words {
    /// In the message that its selector is empty.
    pub empty_selector: &'static str,
    /// In the message that its pods cannot have a deadline.
    pub deadline: &'static str,
}

/// Whether a selector in the object form selects these labels; none if it cannot be understood. A selector that is not
/// there selects nothing.
pub(super) fn selects(selector: &Value, labels: &Value) -> Option<bool> {
    if selector.is_null() {
        return Some(false);
    }
    let selector = LabelSelector::from_object(selector).ok()?;
    Some(selector.matches(|key| labels.at(key).as_str()))
}

/// The rules of a selector that has to be there and match the template.
pub(super) fn validate_selector(spec: &Place, words: &Words, errors: &mut Errors) {
    let selector = spec.field("selector");
    selector.require_set(errors);
    label_selector::validate(&selector, errors);
    if selector.is_set() && is_empty(selector.value()) {
        selector.invalid(errors, words.empty_selector);
    } else {
        validate_match(spec, errors);
    }
}

pub(super) fn is_empty(selector: &Value) -> bool {
    selector.entries("matchLabels").next().is_none() && selector.items("matchExpressions").is_empty()
}

/// The labels of a template, if they are wrong, are shown as they are.
pub(super) fn validate_match(spec: &Place, errors: &mut Errors) {
    let labels = spec.descend(&["template", "metadata", "labels"]);
    match selects(spec.field("selector").value(), labels.value()) {
        Some(true) => {}
        Some(false) => labels.invalid(errors, MISMATCH),
        None => spec.field("selector").invalid(errors, "invalid label selector"),
    }
}

/// A template whose pods never end by themselves.
pub(super) fn validate_template(template: &Place, words: &Words, errors: &mut Errors) {
    pod::validate_template(template, errors);
    validate_endless(template, words, errors);
}

pub(super) fn validate_endless(template: &Place, words: &Words, errors: &mut Errors) {
    let spec = template.field("spec");
    spec.field("restartPolicy").one_of(errors, &["Always"]);
    spec.field("activeDeadlineSeconds").forbid(errors, words.deadline);
}

/// A number, or a share written as a percentage.
pub(super) fn number_or_percent(at: &Place, errors: &mut Errors) {
    match at.value() {
        Value::String(text) if percent(text).is_none() => at.invalid(
            errors,
            "a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or '93%', regex \
             used for validation is '[0-9]+%')",
        ),
        Value::String(_) => {}
        _ => at.not_negative(errors),
    }
}

fn percent(text: &str) -> Option<i64> {
    let digits = text.strip_suffix('%')?;
    let good = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    // More digits than fit are more than anything they are compared with.
    good.then(|| digits.parse().unwrap_or(i64::MAX))
}

pub(super) fn at_most_all(at: &Place, errors: &mut Errors) {
    if percent(at.text()).is_some_and(|share| share > 100) {
        at.invalid(errors, "must not be greater than 100%");
    }
}

/// The number, whether it is a share or not; zero if it is neither.
pub(super) fn number(at: &Place) -> i64 {
    percent(at.text()).unwrap_or_else(|| at.int())
}

/// Counters of a status: none is negative, and some are parts of others.
pub(super) fn validate_counters(
    status: &Place,
    counters: &[&'static str],
    parts: &[(&'static str, &'static str, &str)],
    errors: &mut Errors,
) {
    for counter in counters {
        status.field(counter).not_negative(errors);
    }
    for (part, whole, message) in parts {
        if status.field(part).int() > status.field(whole).int() {
            status.field(part).invalid(errors, *message);
        }
    }
}

/// The number of name collisions only grows.
pub(super) fn validate_collisions(new: &Value, old: &Value, errors: &mut Errors) {
    let count = |object: &Value| object.at("status").int("collisionCount");
    if let Some(before) = count(old)
        && count(new).is_none_or(|after| after < before)
    {
        let status = Place::field_of(new, "status");
        let at = status.field("collisionCount");
        at.invalid_value(errors, at.int(), "cannot be decremented");
    }
}

/// Fields of features that are off stay out of the template at this path.
pub(super) fn drop_disabled(new: &mut Value, path: &[&str]) {
    let Some((last, parents)) = path.split_last() else { return };
    let mut template = Some(new);
    for field in parents.iter().chain([last]) {
        template = template.and_then(|value| value.object(field));
    }
    if let Some(spec) = template.and_then(|template| template.object("spec")) {
        pod::drop_disabled(spec);
    }
}

pub(super) fn prepare_template(new: &mut Value, _old: Option<&Value>) {
    drop_disabled(new, &["spec", "template"]);
}

/// The warnings of a template at `spec.template`; on update only if something has changed.
pub(super) fn warn_template(new: &Value, old: Option<&Value>) -> Vec<String> {
    let mut warnings = Vec::new();
    if old.is_none_or(|old| !same(old.at("spec"), new.at("spec"))) {
        pod::warn_template(&Place::field_of(new, "spec").field("template"), &mut warnings);
    }
    warnings
}

/// The same for kinds whose name becomes part of the names of their pods.
pub(super) fn warn_name_and_template(new: &Value, old: Option<&Value>) -> Vec<String> {
    let mut warnings: Vec<_> = name_warning(new).filter(|_| old.is_none()).into_iter().collect();
    warnings.extend(warn_template(new, old));
    warnings
}

/// Names become parts of the names and host names of pods.
pub(super) fn name_warning(object: &Value) -> Option<String> {
    let messages = name::dns_label(object.at("metadata").text("name"));
    (!messages.is_empty()).then(|| {
        let messages = messages.join(" ");
        format!(
            "metadata.name: this is used in Pod names and hostnames, which can result in surprising behavior; a DNS \
             label is recommended: [{messages}]"
        )
    })
}
