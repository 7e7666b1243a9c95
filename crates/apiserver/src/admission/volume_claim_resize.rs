//! PersistentVolumeClaimResize: a claim may grow once it is bound, if its class can make volumes grow.

use super::{Operation, Review};
use object::{ApiError, View};
use quota::{Amounts, class_of};

pub(super) fn validate(review: &mut Review<'_>) -> Result<(), ApiError> {
    let Some(old) = review.old.filter(|_| review.is("persistentvolumeclaims", Operation::Update)) else {
        return Ok(());
    };
    let new_size = Amounts::read(review.object.at("spec").at("resources").at("requests"))?.get("storage");
    if new_size <= Amounts::read(old.at("spec").at("resources").at("requests"))?.get("storage") {
        return Ok(());
    }
    if old.at("status").text("phase") != "Bound" {
        return Err(review.forbid("Only bound persistent volume claims can be expanded"));
    }
    let class = class_of(review.object);
    let grows = review
        .find(&format!("storageclasses.storage.k8s.io/{class}"))
        .is_some_and(|class| class.decode().flag("allowVolumeExpansion"));
    if !class.is_empty() && class == class_of(old) && grows {
        return Ok(());
    }
    Err(review.forbid(
        "only dynamically provisioned pvc can be resized and the storageclass that provisions the pvc must support resize",
    ))
}
