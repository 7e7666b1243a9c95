//! Annotations that mean something to a pod: mirror pods, deletion cost, and profiles from before they were fields.

use super::default::CONTAINER_LISTS;
use crate::strategy::place::Place;
use object::field::Errors;
use object::{Value, View, name};

pub(super) const MIRROR: &str = "kubernetes.io/config.mirror";
const DELETION_COST: &str = "controller.kubernetes.io/pod-deletion-cost";
pub(super) const APP_ARMOR: &str = "container.apparmor.security.beta.kubernetes.io/";
pub(super) const SECCOMP_POD: &str = "seccomp.security.alpha.kubernetes.io/pod";
pub(super) const SECCOMP_CONTAINER: &str = "container.seccomp.security.alpha.kubernetes.io/";
const LOCALHOST: &str = "localhost/";
const TOTAL_MAX_BYTES: usize = 256 * 1024;

/// The rules of any annotations, which templates have to follow too.
pub(super) fn validate_keys(annotations: &Place, errors: &mut Errors) {
    let mut total = 0;
    for (key, value) in annotations.entries() {
        for message in name::qualified_name(&key.to_lowercase()) {
            annotations.invalid_value(errors, key, message);
        }
        total += key.len() + value.text().len();
    }
    if total > TOTAL_MAX_BYTES {
        annotations.too_long(errors, TOTAL_MAX_BYTES);
    }
}

pub(super) fn validate(annotations: &Place, spec: &Value, errors: &mut Errors) {
    for (key, value) in annotations.entries() {
        let text = value.text();
        if key == MIRROR && spec.text("nodeName").is_empty() {
            value.invalid(errors, "must set spec.nodeName if mirror pod annotation is set");
        }
        if key == DELETION_COST && !is_deletion_cost(text) {
            value.invalid(errors, "must be a 32bit integer");
        }
        if key == SECCOMP_POD || key.starts_with(SECCOMP_CONTAINER) {
            let known = matches!(text, "runtime/default" | "docker/default" | "unconfined");
            if !known && !text.starts_with(LOCALHOST) {
                annotations.field(key).invalid(errors, "must be a valid seccomp profile");
            }
        }
        if let Some(container) = key.strip_prefix(APP_ARMOR) {
            if !has_container(spec, container) {
                value.invalid_value(errors, container, "container not found");
            }
            if !matches!(text, "" | "runtime/default" | "unconfined") && !text.starts_with(LOCALHOST) {
                value.invalid(errors, format!("invalid AppArmor profile name: {text:?}"));
            }
        }
    }
}

/// A whole number without a plus or leading zeros.
fn is_deletion_cost(text: &str) -> bool {
    text.parse::<i32>().is_ok_and(|cost| cost.to_string() == text)
}

fn has_container(spec: &Value, name: &str) -> bool {
    CONTAINER_LISTS.iter().any(|list| spec.items(list).iter().any(|container| container.text("name") == name))
}

/// Where a profile is given as an annotation and as a field, both must say the same.
pub(super) fn validate_match(annotations: &Value, spec: &Place, errors: &mut Errors) {
    if annotations.as_object().is_none_or(|annotations| annotations.is_empty()) {
        return;
    }
    let context = spec.field("securityContext");
    match_one(annotations.at(SECCOMP_POD), &context.field("seccompProfile"), "seccomp", errors);
    let windows = spec.value().at("os").text("name") == "windows";
    for list in CONTAINER_LISTS {
        for container in spec.field(list).items() {
            let name = container.field("name").text();
            let own = container.field("securityContext");
            let seccomp = annotations.at(&format!("{SECCOMP_CONTAINER}{name}"));
            match_one(seccomp, &own.field("seccompProfile"), "seccomp", errors);
            let app_armor = annotations.at(&format!("{APP_ARMOR}{name}"));
            if windows || app_armor.is_null() {
                continue;
            }
            // A container without a profile of its own has that of the pod.
            let field = own.field("appArmorProfile");
            let inherited = context.field("appArmorProfile");
            let profile = if field.is_set() { field.value() } else { inherited.value() };
            match_one(app_armor, &field.with(profile), "apparmor", errors);
        }
    }
}

fn match_one(annotation: &Value, profile: &Place, what: &str, errors: &mut Errors) {
    let (Some(annotation), true) = (annotation.as_str(), profile.is_set()) else { return };
    let kind = profile.field("type");
    let local = annotation.strip_prefix(LOCALHOST);
    let matches = match kind.text() {
        "Unconfined" => annotation == "unconfined",
        "RuntimeDefault" => annotation == "runtime/default" || (what == "seccomp" && annotation == "docker/default"),
        "Localhost" => local.is_some(),
        _ => true,
    };
    let name = profile.field("localhostProfile");
    if !matches {
        kind.forbidden(errors, format!("{what} type in annotation and field must match"));
    } else if kind.text() == "Localhost" && local != Some(name.text()) {
        name.forbidden(errors, format!("{what} profile in annotation and field must match"));
    }
}

/// What of a pod's annotations cannot change once it is there.
pub(super) fn validate_update(new: &Value, old: &Value, errors: &mut Errors) {
    let annotations = |object| Place::named(View::path(object, &["metadata", "annotations"]), "metadata.annotations");
    let (new, old) = (annotations(new), annotations(old));
    let refuse = |at: &Place, verb: &str, key: &str, errors: &mut Errors| {
        if key.starts_with(APP_ARMOR) {
            at.forbidden(errors, format!("may not {verb} AppArmor annotations"));
        }
        if key == MIRROR {
            at.forbidden(errors, format!("may not {verb} mirror pod annotation"));
        }
    };
    for (key, at) in old.entries() {
        if new.key(key).value() != at.value() {
            refuse(&at, "remove or update", key, errors);
        }
    }
    for (key, at) in new.entries() {
        if !old.key(key).is_set() {
            refuse(&at, "add", key, errors);
        }
    }
}
