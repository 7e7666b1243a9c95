//! DefaultStorageClass: a claim that names no class gets the one that is marked as default, the newest if several are.

use super::{Operation, Review, mentions};
use object::{ApiError, Edit, Value, View};
use quota::CLASS_ANNOTATION;
use registry::Object;
use std::cmp::Reverse;
use std::sync::Arc;

const MARKS: [&str; 2] =
    ["storageclass.kubernetes.io/is-default-class", "storageclass.beta.kubernetes.io/is-default-class"];

pub(super) fn mutate(review: &mut Review<'_>) -> Result<(), ApiError> {
    if !review.is("persistentvolumeclaims", Operation::Create) || has_class(review.object) {
        return Ok(());
    }
    if let Some(class) = newest_marked(&review.all("storageclasses.storage.k8s.io"), &MARKS) {
        review.object.object_or_new("spec").set("storageClassName", class);
    }
    Ok(())
}

/// Naming the empty class is naming one.
fn has_class(claim: &Value) -> bool {
    claim.at("metadata").at("annotations").has(CLASS_ANNOTATION) || claim.at("spec").has("storageClassName")
}

/// The name of the newest of those objects that one of the annotations marks as default.
pub(super) fn newest_marked(objects: &[Arc<Object>], annotations: &[&str]) -> Option<String> {
    let candidates = objects.iter().filter(|object| mentions(object, "is-default-class\":\"true\""));
    let marked = candidates.map(|object| object.decode()).filter(|object| {
        let given = object.at("metadata").at("annotations");
        annotations.iter().any(|annotation| given.text(annotation) == "true")
    });
    let newest = marked.min_by_key(|object| {
        let metadata = object.at("metadata");
        (Reverse(metadata.text("creationTimestamp").to_owned()), metadata.text("name").to_owned())
    });
    newest.map(|object| object.at("metadata").text("name").to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;
    use object::json;

    fn class(name: &str, created: &str, mark: &str) -> Arc<Object> {
        let metadata = json!({ "name": name, "creationTimestamp": created, "annotations": { mark: "true" } });
        let value = json!({ "metadata": metadata });
        let body = registry::encode("storage.k8s.io/v1", "StorageClass", value.as_object().unwrap());
        Arc::new(Object::new(Bytes::from(format!("x/{name}")), store::Revision(1), body).unwrap())
    }

    #[test]
    fn of_several_defaults_the_newest_is_taken_and_then_the_first_by_name() {
        let (old, new) = ("2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z");
        let classes = [class("a", old, MARKS[0]), class("c", new, MARKS[1]), class("b", new, MARKS[0])];
        assert_eq!(newest_marked(&classes, &MARKS).as_deref(), Some("b"));
        assert_eq!(newest_marked(&classes[..1], &MARKS).as_deref(), Some("a"));
        assert_eq!(newest_marked(&[class("d", new, "other/is-default-class")], &MARKS), None);
    }

    #[test]
    fn the_empty_class_is_a_class() {
        assert!(has_class(&json!({ "spec": { "storageClassName": "" } })));
        assert!(!has_class(&json!({ "spec": {} })));
    }
}
