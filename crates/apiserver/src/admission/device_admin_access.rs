//! Devices that others have, looked at with the rights of an administrator: only from namespaces with a label that says
//! so. Upstream has this in the strategies of claims and their templates.

use super::{Operation, Review};
use object::field::{Error, Path};
use object::{ApiError, Value, View};

const LABEL: &str = "resource.kubernetes.io/admin-access";

pub(super) fn validate(review: &mut Review<'_>) -> Result<(), ApiError> {
    let Some(path) = asked(review) else { return Ok(()) };
    let namespace = review.find(&format!("namespaces/{}", review.namespace()));
    let labels = namespace.map(|namespace| namespace.decode().path(&["metadata", "labels"]).clone());
    if labels.is_some_and(|labels| labels.text(LABEL) == "true") {
        return Ok(());
    }
    let detail = format!("admin access to devices requires the `{LABEL}: true` label on the containing namespace");
    let kind = &review.ctx.resource.kind;
    Err(ApiError::invalid(&review.ctx.resource.group, kind, review.name(), &[Error::forbidden(&path, detail)]))
}

/// Where it is asked for, or has been granted just now. What is asked for does not change, so it is looked at once.
fn asked(review: &Review<'_>) -> Option<Path> {
    let (object, of_spec) = (&*review.object, Path::new("spec").child("devices").child("requests"));
    match (review.table(), review.operation, review.subresource()) {
        ("resourceclaims.resource.k8s.io", Operation::Create, "") => {
            of_requests(object.path(&["spec", "devices"])).map(|at| of_spec.index(at).child("adminAccess"))
        }
        ("resourceclaimtemplates.resource.k8s.io", Operation::Create, "") => {
            of_requests(object.path(&["spec", "spec", "devices"])).map(|at| of_spec.index(at).child("adminAccess"))
        }
        ("resourceclaims.resource.k8s.io", Operation::Update, "status") => {
            let granted = |claim: &Value| {
                let results = claim.path(&["status", "allocation", "devices"]).items("results").to_vec();
                results.iter().position(|result| result.flag("adminAccess"))
            };
            let at = granted(object).filter(|_| review.old.is_none_or(|old| granted(old).is_none()))?;
            let results = Path::new("status").child("allocation").child("devices").child("results");
            Some(results.index(at).child("adminAccess"))
        }
        _ => None,
    }
}

fn of_requests(devices: &Value) -> Option<usize> {
    devices.items("requests").iter().position(|request| request.at("exactly").flag("adminAccess"))
}
