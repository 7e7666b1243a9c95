//! Namespaces: a finalizer that holds them until they are empty, and a label with their name.

use crate::strategy::place::Place;
use crate::strategy::value::set_if_empty;
use crate::strategy::{PLAIN, Part, Strategy};
use object::field::Errors;
use object::{Edit, Value, View, json, name};

pub const STRATEGY: Strategy = Strategy {
    name: name::dns_label,
    default: Some(default),
    prepare: Some(prepare),
    validate: Some(validate),
    validate_status: Some(validate_status),
    holds: Some(|namespace| !namespace.at("spec").items("finalizers").is_empty()),
    mark_deleted: Some(|namespace| namespace.object_or_new("status").set("phase", "Terminating")),
    parts: &[Part { name: "finalize", prepare: prepare_finalize, validate: validate_finalize }],
    ..PLAIN
};

const FINALIZER: &str = "kubernetes";
/// Finalizers that need no domain.
const STANDARD_FINALIZERS: [&str; 3] = [FINALIZER, "orphan", "foregroundDeletion"];
const NAME_LABEL: &str = "kubernetes.io/metadata.name";

fn default(namespace: &mut Value) {
    label_with_name(namespace);
    set_if_empty(namespace.object_or_new("status"), "phase", "Active");
}

fn label_with_name(namespace: &mut Value) {
    let name = namespace.at("metadata").text("name").to_owned();
    if !name.is_empty() {
        namespace.object_or_new("metadata").object_or_new("labels").set(NAME_LABEL, name);
    }
}

fn prepare(new: &mut Value, old: Option<&Value>) {
    // A name that was generated was not there when the defaults were set.
    label_with_name(new);
    match old {
        None => {
            new.object_or_new("status").set("phase", "Active");
            let mut finalizers = new.at("spec").items("finalizers").to_vec();
            if !finalizers.iter().any(|finalizer| finalizer == FINALIZER) {
                finalizers.push(json!(FINALIZER));
            }
            new.object_or_new("spec").set("finalizers", finalizers);
        }
        // Only the finalize subresource removes them.
        Some(old) => match old.path(&["spec", "finalizers"]) {
            Value::Null => drop(new.object_or_new("spec").remove("finalizers")),
            finalizers => new.object_or_new("spec").set("finalizers", finalizers.clone()),
        },
    }
}

fn validate(new: &Value, _old: Option<&Value>, errors: &mut Errors) {
    let spec = Place::field_of(new, "spec");
    for finalizer in spec.field("finalizers").values() {
        // Kubernetes names the list and not the item.
        validate_finalizer(&spec.field("finalizers").with(finalizer), errors);
    }
}

/// Of a request to the subresource `finalize`, only the finalizers in the spec count.
fn prepare_finalize(new: &mut Value, old: &Value) {
    let finalizers = new.at("spec").at("finalizers").clone();
    ["spec", "status"].into_iter().for_each(|field| new.set(field, old.at(field).clone()));
    let spec = new.object_or_new("spec");
    match finalizers {
        Value::Null => drop(spec.remove("finalizers")),
        finalizers => spec.set("finalizers", finalizers),
    }
}

fn validate_finalize(new: &Value, _: &Value, errors: &mut Errors) {
    Place::field_of(new, "spec")
        .field("finalizers")
        .items()
        .for_each(|finalizer| validate_finalizer(&finalizer, errors));
}

fn validate_finalizer(finalizer: &Place, errors: &mut Errors) {
    finalizer.follows(errors, name::qualified_name);
    if !finalizer.text().contains('/') && !STANDARD_FINALIZERS.contains(&finalizer.text()) {
        finalizer.invalid(errors, "name is neither a standard finalizer name nor is it fully qualified");
    }
}

fn validate_status(new: &Value, _old: &Value, errors: &mut Errors) {
    let phase = new.at("status").text("phase");
    let (expected, detail) = match new.at("metadata").has("deletionTimestamp") {
        false => ("Active", "may only be 'Active' if `deletionTimestamp` is empty"),
        true => ("Terminating", "may only be 'Terminating' if `deletionTimestamp` is not empty"),
    };
    if phase != expected {
        Place::field_of(new, "status").field("Phase").invalid_value(errors, phase, detail);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::strategy::check::{filled, messages};

    #[test]
    fn a_new_namespace_is_active_held_and_labelled() {
        let mut namespace = filled("core.v1.Namespace", &json!({ "metadata": { "name": "a" } }));
        prepare(&mut namespace, None);
        assert_eq!(namespace["metadata"]["labels"], json!({ NAME_LABEL: "a" }));
        assert_eq!(namespace["spec"]["finalizers"], json!(["kubernetes"]));
        assert_eq!(namespace["status"]["phase"], "Active");
        let mut emptied = namespace.clone();
        emptied["spec"]["finalizers"] = json!([]);
        prepare(&mut emptied, Some(&namespace));
        assert_eq!(emptied, namespace);
    }

    #[test]
    fn finalizers_are_standard_or_have_a_domain() {
        let namespace = json!({ "spec": { "finalizers": ["kubernetes", "example.com/x", "mine"] } });
        assert_eq!(
            messages("core.v1.Namespace", &namespace, None),
            [
                "spec.finalizers: Invalid value: \"mine\": name is neither a standard finalizer name nor is it fully qualified"
            ]
        );
    }

    #[test]
    fn the_phase_follows_from_the_deletion() {
        let mut errors = Errors::new();
        let active = json!({ "metadata": {}, "status": { "phase": "Terminating" } });
        validate_status(&active, &active, &mut errors);
        let deleted = json!({ "metadata": { "deletionTimestamp": "t" }, "status": { "phase": "Active" } });
        validate_status(&deleted, &deleted, &mut errors);
        assert_eq!(
            errors.iter().map(ToString::to_string).collect::<Vec<_>>(),
            [
                "status.Phase: Invalid value: \"Terminating\": may only be 'Active' if `deletionTimestamp` is empty",
                "status.Phase: Invalid value: \"Active\": may only be 'Terminating' if `deletionTimestamp` is not empty",
            ]
        );
    }
}
