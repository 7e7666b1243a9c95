//! DefaultIngressClass: an ingress that names no class gets the one that is marked as default.

use super::default_storage_class::newest_marked;
use super::{Operation, Review};
use object::{ApiError, Edit, View};

const MARK: &str = "ingressclass.kubernetes.io/is-default-class";
/// How an ingress named its class before there was a field for it.
const CLASS_ANNOTATION: &str = "kubernetes.io/ingress.class";

pub(super) fn mutate(review: &mut Review<'_>) -> Result<(), ApiError> {
    if !review.is("ingresses.networking.k8s.io", Operation::Create) {
        return Ok(());
    }
    let annotated = review.object.at("metadata").at("annotations").has(CLASS_ANNOTATION);
    if annotated || review.object.at("spec").has("ingressClassName") {
        return Ok(());
    }
    if let Some(class) = newest_marked(&review.all("ingressclasses.networking.k8s.io"), &[MARK]) {
        review.object.object_or_new("spec").set("ingressClassName", class);
    }
    Ok(())
}
