//! The rules of metadata, which are the same for every kind. Managed fields have theirs in server-side apply.

use crate::strategy::place::{Place, Rule};
use object::field::{Error, Errors, Path};
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
pub fn validate(
    metadata: &Value,
    namespaced: bool,
    name_rule: Rule,
    old: Option<&Value>,
    path: &Path,
    errors: &mut Errors,
) {
    let metadata = Place::new(metadata, path);
    match old {
        Some(old) => validate_change(&metadata, old, errors),
        None => validate_identity(&metadata, namespaced, name_rule, errors),
    }
    metadata.child("generation").non_negative(errors);
    metadata.child("labels").labels(errors);
    validate_annotations(&metadata.child("annotations"), errors);
    validate_owners(&metadata, errors);
    validate_finalizers(&metadata, errors);
}

fn validate_identity(metadata: &Place, namespaced: bool, name_rule: Rule, errors: &mut Errors) {
    let prefix = metadata.child("generateName");
    if !prefix.is_empty() {
        let wrong = name_rule(&without_trailing_dash(prefix.string())).into_iter();
        errors.extend(wrong.map(|message| prefix.invalid(message)));
    }
    let name = metadata.child("name");
    if name.required("name or generateName is required", errors) {
        name.follows(name_rule, errors);
    }
    let namespace = metadata.child("namespace");
    if namespaced {
        namespace.required_follows(name::dns_label, errors);
    } else {
        namespace.forbidden("not allowed on this type", errors);
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
        let added = metadata.items("finalizers").iter().filter(|finalizer| !before.contains(finalizer));
        let mut added: Vec<&str> = added.filter_map(Value::as_str).collect();
        added.sort_unstable();
        if !added.is_empty() {
            let added: Vec<_> = added.iter().map(|finalizer| format!("{finalizer:?}")).collect();
            errors.push(Error::forbidden(
                &metadata.child("finalizers").path,
                format!(
                    "no new finalizers can be added if the object is being deleted, found new finalizers []string{{{}}}",
                    added.join(", ")
                ),
            ));
        }
    }
    let version = metadata.child("resourceVersion");
    if version.is_empty() {
        errors.push(Error::invalid(&version.path, 0, "must be specified for an update"));
    }
    if metadata.int("generation") < old.int("generation") {
        errors.push(Error::invalid(
            &metadata.child("generation").path,
            metadata.int("generation").unwrap_or_default(),
            "must not be decremented",
        ));
    }
    for field in IMMUTABLE {
        metadata.child(field).unchanged(old.at(field), errors);
    }
}

fn validate_annotations(annotations: &Place, errors: &mut Errors) {
    let mut bytes = 0;
    for (key, value) in annotations.as_object().into_iter().flatten() {
        let wrong = name::qualified_name(&key.to_lowercase()).into_iter();
        errors.extend(wrong.map(|message| Error::invalid(&annotations.path, key.as_str(), message)));
        bytes += key.len() + value.as_str().map_or(0, str::len);
    }
    if bytes > ANNOTATIONS_MAX_BYTES {
        errors.push(Error::too_long(&annotations.path, ANNOTATIONS_MAX_BYTES));
    }
}

fn validate_owners(metadata: &Place, errors: &mut Errors) {
    let owners = metadata.child("ownerReferences");
    let mut controller: Option<String> = None;
    for owner in metadata.items("ownerReferences") {
        // Kubernetes names the list and not the item.
        let owner = Place::new(owner, &owners.path);
        let not_empty = [("apiVersion", "version must not be empty"), ("kind", EMPTY), ("name", EMPTY), ("uid", EMPTY)];
        for (field, message) in not_empty {
            let text = owner.text(field);
            if text.is_empty() || (field == "apiVersion" && text.ends_with('/')) {
                errors.push(Error::invalid(&owners.path.child(field), text, message));
            }
        }
        if owner.text("apiVersion") == "v1" && owner.text("kind") == "Event" {
            errors.push(owner.invalid("/v1, Kind=Event is disallowed from being an owner"));
        }
        if owner.flag("controller") {
            let this = format!("{}/{}", owner.text("kind"), owner.text("name"));
            match &controller {
                None => controller = Some(this),
                Some(first) => errors.push(owners.invalid(format!(
                    "Only one reference can have Controller set to true. Found \"true\" in references for {first} and {this}"
                ))),
            }
        }
    }
}

const EMPTY: &str = "must not be empty";

fn validate_finalizers(metadata: &Place, errors: &mut Errors) {
    let finalizers = metadata.child("finalizers");
    for finalizer in metadata.items("finalizers") {
        Place::new(finalizer, &finalizers.path).follows(name::qualified_name, errors);
    }
    let has = |name: &str| metadata.items("finalizers").iter().any(|finalizer| finalizer == name);
    if has(ORPHAN) && has(FOREGROUND) {
        errors.push(finalizers.invalid(format!("finalizer {ORPHAN} and {FOREGROUND} cannot be both set")));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use object::json;

    fn messages(metadata: &Value, namespaced: bool, old: Option<&Value>) -> Vec<String> {
        let mut errors = Errors::new();
        validate(metadata, namespaced, name::dns_label, old, &Path::new("metadata"), &mut errors);
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
