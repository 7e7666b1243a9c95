//! NamespaceLifecycle: nothing is made in a namespace that is not there or is going, and some namespaces never go.

use super::{NAMESPACES, Operation, Review};
use object::ApiError;

const IMMORTAL: [&str; 3] = ["default", "kube-system", "kube-public"];

pub(super) fn admit(review: &mut Review<'_>) -> Result<(), ApiError> {
    match review.operation {
        Operation::Create if review.ctx.hub.is_namespaced() => check_namespace(review),
        Operation::Delete if review.table() == "namespaces" && IMMORTAL.contains(&review.name()) => {
            Err(review.forbid("this namespace may not be deleted"))
        }
        _ => Ok(()),
    }
}

fn check_namespace(review: &Review<'_>) -> Result<(), ApiError> {
    let name = review.namespace();
    let Some(namespace) = review.find(&format!("namespaces/{name}")) else {
        return Err(ApiError::not_found("", "namespaces", name));
    };
    if namespace.field(&NAMESPACES, "status.phase") != "Terminating" {
        return Ok(());
    }
    let cause = format!("unable to create new content in namespace {name} because it is being terminated");
    let detail = format!("namespace {name} is being terminated");
    Err(review.forbid(&cause).with_cause("NamespaceTerminating", detail, "metadata.namespace"))
}
