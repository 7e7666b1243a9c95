//! StorageObjectInUseProtection and PodGroupProtection: volumes, claims, attribute classes and groups of pods carry a
//! finalizer, so that they do not go while something uses them.

use super::{Operation, Review};
use object::{ApiError, Edit, View, json};

const FINALIZERS: [(&str, &str); 4] = [
    ("persistentvolumes", "kubernetes.io/pv-protection"),
    ("persistentvolumeclaims", "kubernetes.io/pvc-protection"),
    ("volumeattributesclasses.storage.k8s.io", "kubernetes.io/vac-protection"),
    ("podgroups.scheduling.k8s.io", "scheduling.k8s.io/podgroup-protection"),
];

pub(super) fn mutate(review: &mut Review<'_>) -> Result<(), ApiError> {
    let Some((_, finalizer)) = FINALIZERS.iter().find(|(table, _)| review.is(table, Operation::Create)) else {
        return Ok(());
    };
    let metadata = review.object.object_or_new("metadata");
    let mut finalizers = metadata.items("finalizers").to_vec();
    if !finalizers.iter().any(|present| present == finalizer) {
        finalizers.push(json!(finalizer));
        metadata.set("finalizers", finalizers);
    }
    Ok(())
}
