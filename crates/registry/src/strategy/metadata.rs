//! The rules of metadata, which are the same for every kind. Managed fields have theirs in server-side apply.

use crate::strategy::place::Place;
use crate::strategy::rule::Rule;
use object::field::Errors;
use object::{Value, View, name};

const ANNOTATIONS_MAX_BYTES: usize = 256 * 1024;
const ORPHAN: &str = "orphan";
const FOREGROUND: &str = "foregroundDeletion";
/// What an update may not touch.
const IMMUTABLE: [&str; 6] =
    ["name", "namespace", "uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds"];

/// Everything that is wrong with metadata, or with changing `old` into it.
///
/// The name has been generated before, if it was to be. An update of a kind that allows leaving out the resource
/// version has been given the one of the object, so one that is still missing is missing.
pub fn validate(metadata: &Value, namespaced: bool, name_rule: Rule, old: Option<&Value>, errors: &mut Errors) {
    let metadata = Place::named(metadata, "metadata");
    match old {
        Some(old) => validate_change(&metadata, old, errors),
        None => validate_identity(&metadata, namespaced, name_rule, errors),
    }
    metadata.field("generation").not_negative(errors);
    metadata.field("labels").labels(errors);
    validate_annotations(&metadata.field("annotations"), errors);
    validate_owners(&metadata, errors);
    validate_finalizers(&metadata, errors);
}

fn validate_identity(metadata: &Place, namespaced: bool, name_rule: Rule, errors: &mut Errors) {
    let prefix = metadata.field("generateName");
    if !prefix.is_empty() {
        let wrong = name_rule(&without_trailing_dash(prefix.text()));
        wrong.into_iter().for_each(|message| prefix.invalid(errors, message));
    }
    let name = metadata.field("name");
    if name.require_because(errors, "name or generateName is required") {
        name.follows(errors, name_rule);
    }
    let namespace = metadata.field("namespace");
    if namespaced {
        namespace.require_follows(errors, name::dns_label);
    } else {
        namespace.forbid(errors, "not allowed on this type");
    }
}

/// A prefix may end in a dash, since something follows it.
fn without_trailing_dash(prefix: &str) -> String {
    match prefix.strip_suffix('-') {
        Some("") | None => prefix.to_owned(),
        Some(rest) => {
            let mut characters = rest.chars();
            characters.next_back();
            format!("{}a", characters.as_str())
        }
    }
}

fn validate_change(metadata: &Place, old: &Value, errors: &mut Errors) {
    if old.has("deletionTimestamp") {
        let before = old.items("finalizers");
        let added = metadata.field("finalizers").values().iter().filter(|finalizer| !before.contains(finalizer));
        let mut added: Vec<&str> = added.filter_map(Value::as_str).collect();
        added.sort_unstable();
        if !added.is_empty() {
            let added: Vec<_> = added.iter().map(|finalizer| format!("{finalizer:?}")).collect();
            let detail = format!(
                "no new finalizers can be added if the object is being deleted, found new finalizers []string{{{}}}",
                added.join(", ")
            );
            metadata.field("finalizers").forbidden(errors, detail);
        }
    }
    let version = metadata.field("resourceVersion");
    if version.is_empty() {
        version.invalid_value(errors, 0, "must be specified for an update");
    }
    let generation = metadata.field("generation");
    if generation.number() < old.int("generation") {
        generation.invalid_value(errors, generation.int(), "must not be decremented");
    }
    for field in IMMUTABLE {
        metadata.field(field).unchanged(errors, old.at(field));
    }
}

fn validate_annotations(annotations: &Place, errors: &mut Errors) {
    let mut bytes = 0;
    for (key, value) in annotations.value().as_object().into_iter().flatten() {
        let wrong = name::qualified_name(&key.to_lowercase());
        wrong.into_iter().for_each(|message| annotations.invalid_value(errors, key.as_str(), message));
        bytes += key.len() + value.as_str().map_or(0, str::len);
    }
    if bytes > ANNOTATIONS_MAX_BYTES {
        annotations.too_long(errors, ANNOTATIONS_MAX_BYTES);
    }
}

fn validate_owners(metadata: &Place, errors: &mut Errors) {
    let owners = metadata.field("ownerReferences");
    let mut controller: Option<String> = None;
    for owner in metadata.field("ownerReferences").values() {
        // Kubernetes names the list and not the item.
        let owner = owners.with(owner);
        let not_empty = [("apiVersion", "version must not be empty"), ("kind", EMPTY), ("name", EMPTY), ("uid", EMPTY)];
        for (field, message) in not_empty {
            let text = owner.field(field).text();
            if text.is_empty() || (field == "apiVersion" && text.ends_with('/')) {
                owners.field(field).invalid_value(errors, text, message);
            }
        }
        if owner.field("apiVersion").text() == "v1" && owner.field("kind").text() == "Event" {
            owner.invalid(errors, "/v1, Kind=Event is disallowed from being an owner");
        }
        if owner.field("controller").flag() {
            let this = format!("{}/{}", owner.field("kind").text(), owner.field("name").text());
            match &controller {
                None => controller = Some(this),
                Some(first) => owners.invalid(errors, format!(
                    "Only one reference can have Controller set to true. Found \"true\" in references for {first} and {this}"
                )),
            }
        }
    }
}

const EMPTY: &str = "must not be empty";

fn validate_finalizers(metadata: &Place, errors: &mut Errors) {
    let finalizers = metadata.field("finalizers");
    for finalizer in metadata.field("finalizers").values() {
        finalizers.with(finalizer).follows(errors, name::qualified_name);
    }
    let has = |name: &str| metadata.field("finalizers").values().iter().any(|finalizer| finalizer == name);
    if has(ORPHAN) && has(FOREGROUND) {
        finalizers.invalid(errors, format!("finalizer {ORPHAN} and {FOREGROUND} cannot be both set"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use object::json;

    fn messages(metadata: &Value, namespaced: bool, old: Option<&Value>) -> Vec<String> {
        let mut errors = Errors::new();
        validate(metadata, namespaced, name::dns_label, old, &mut errors);
        errors.iter().map(ToString::to_string).collect()
    }

    const LABEL: &str = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must \
                         start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for \
                         validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')";

    #[test]
    fn a_new_object_needs_a_name_and_the_namespace_its_scope_asks_for() {
        let namespaced = json!({ "name": "a", "namespace": "b" });
        assert_eq!(messages(&namespaced, true, None), [""; 0]);
        assert_eq!(messages(&namespaced, false, None), ["metadata.namespace: Forbidden: not allowed on this type"]);
        assert_eq!(
            messages(&json!({}), true, None),
            ["metadata.name: Required value: name or generateName is required", "metadata.namespace: Required value"]
        );
        assert_eq!(messages(&json!({ "name": "a-x", "generateName": "a-" }), false, None), [""; 0]);
        assert_eq!(
            messages(&json!({ "name": "A", "generateName": "Bb-" }), false, None),
            [
                format!("metadata.generateName: Invalid value: \"Bb-\": {LABEL}"),
                format!("metadata.name: Invalid value: \"A\": {LABEL}"),
            ]
        );
    }

    #[test]
    fn labels_annotations_owners_and_finalizers_follow_their_rules() {
        let qualified = "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with \
                         an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for \
                         validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";
        let owner =
            json!({ "apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "1", "controller": true });
        let event = json!({ "apiVersion": "v1", "kind": "Event", "name": "e", "uid": "2" });
        let cases = [
            (json!({ "labels": { "a b": "c" } }), format!("metadata.labels: Invalid value: \"a b\": {qualified}")),
            (json!({ "annotations": { "-": "" } }), format!("metadata.annotations: Invalid value: \"-\": {qualified}")),
            (json!({ "annotations": { "A.B/c": "x" } }), String::new()),
            (
                json!({ "annotations": { "a": "x".repeat(262_144) } }),
                "metadata.annotations: Too long: may not be more than 262144 bytes".to_owned(),
            ),
            (
                json!({ "finalizers": ["orphan", "foregroundDeletion"] }),
                "metadata.finalizers: Invalid value: [\"orphan\",\"foregroundDeletion\"]: finalizer orphan and \
                 foregroundDeletion cannot be both set"
                    .to_owned(),
            ),
            (json!({ "finalizers": ["a b"] }), format!("metadata.finalizers: Invalid value: \"a b\": {qualified}")),
            (
                json!({ "ownerReferences": [owner, owner] }),
                format!(
                    "metadata.ownerReferences: Invalid value: [{owner},{owner}]: Only one reference can have Controller \
                     set to true. Found \"true\" in references for ReplicaSet/web and ReplicaSet/web"
                ),
            ),
            (
                json!({ "ownerReferences": [event] }),
                format!(
                    "metadata.ownerReferences: Invalid value: {event}: /v1, Kind=Event is disallowed from being an owner"
                ),
            ),
            (
                json!({ "ownerReferences": [{ "apiVersion": "v1", "kind": "Pod", "name": "a", "uid": "" }] }),
                "metadata.ownerReferences.uid: Invalid value: \"\": must not be empty".to_owned(),
            ),
        ];
        for (mut metadata, message) in cases {
            metadata["name"] = json!("a");
            let expected: Vec<String> = Some(message).filter(|message| !message.is_empty()).into_iter().collect();
            assert_eq!(messages(&metadata, false, None), expected, "{metadata}");
        }
    }

    #[test]
    fn an_update_keeps_what_the_system_has_set() {
        let old = json!({
            "name": "a", "uid": "1", "resourceVersion": "7", "generation": 2, "deletionTimestamp": "2026-01-02T03:04:05Z",
            "finalizers": ["x/y"],
        });
        assert_eq!(messages(&old, false, Some(&old)), [""; 0]);
        let cases = [
            ("uid", json!("2"), "metadata.uid: Invalid value: \"2\": field is immutable"),
            ("name", json!("b"), "metadata.name: Invalid value: \"b\": field is immutable"),
            ("generation", json!(1), "metadata.generation: Invalid value: 1: must not be decremented"),
            (
                "resourceVersion",
                json!(""),
                "metadata.resourceVersion: Invalid value: 0: must be specified for an update",
            ),
            ("deletionTimestamp", json!(null), "metadata.deletionTimestamp: Invalid value: null: field is immutable"),
            (
                "finalizers",
                json!(["x/y", "a/b"]),
                "metadata.finalizers: Forbidden: no new finalizers can be added if the object is being deleted, found new \
                 finalizers []string{\"a/b\"}",
            ),
        ];
        for (field, value, message) in cases {
            let mut new = old.clone();
            new[field] = value;
            assert_eq!(messages(&new, false, Some(&old)), [message]);
        }
    }
}
