//! Who may say what in the status of a claim of devices: whoever allocates needs a right to that beside the one to write
//! the status, and whoever reports on devices one for each driver. Upstream has this in the strategy of claims.

use super::{Operation, Review};
use crate::authorization::Question;
use object::field::{Error, Path};
use object::{ApiError, Value, View};
use std::collections::BTreeSet;

const GROUP: &str = "resource.k8s.io";
/// Which node a service account's token is for.
const NODE_NAME: &str = "authentication.kubernetes.io/node-name";

pub(super) fn validate(review: &mut Review<'_>) -> Result<(), ApiError> {
    let is_status = review.table() == "resourceclaims.resource.k8s.io" && review.subresource() == "status";
    let Some(old) = review.old.filter(|_| is_status && review.operation == Operation::Update) else { return Ok(()) };
    let (new, old) = (review.object.at("status"), old.at("status"));
    let verb = review.ctx.info.verb;
    let mut errors = Vec::new();
    let binds = ["allocation", "reservedFor"].iter().any(|field| new.at(field) != old.at(field));
    let refusal = if binds { check(review, verb, "binding", "", "").err() } else { None };
    if let Some(refusal) = refusal {
        let detail = format!(
            "changing status.allocation or status.reservedFor requires resource=\"resourceclaims/binding\", \
             verb=\"{verb}\" permission: {refusal}"
        );
        errors.push(Error::forbidden(&Path::new("status").child("allocation"), detail));
    }
    // What is said of devices goes with them.
    let drivers = if new.has("allocation") { reporting(new, old) } else { BTreeSet::new() };
    let verbs = verbs(review, new);
    for driver in drivers {
        let mut refusals = Vec::new();
        for verb in &verbs {
            refusals.extend(check(review, verb, "driver", driver, review.namespace()).err());
        }
        // One of them is enough.
        if let Some(refusal) = refusals.first().filter(|_| refusals.len() == verbs.len()) {
            let verbs = verbs.join(" ");
            let detail = format!(
                "changing status.devices requires resource=\"resourceclaims/driver\", verb=\"[{verbs}]\" permission: \
                 {refusal}"
            );
            errors.push(Error::forbidden(&Path::new("status").child("devices"), detail));
        }
    }
    match errors.is_empty() {
        true => Ok(()),
        false => Err(ApiError::invalid(GROUP, "ResourceClaim", review.name(), &errors)),
    }
}

fn check(review: &Review<'_>, verb: &str, part: &str, name: &str, namespace: &str) -> Result<(), ApiError> {
    let question = Question {
        verb: verb.to_owned(),
        group: GROUP.to_owned(),
        resource: "resourceclaims".to_owned(),
        subresource: part.to_owned(),
        name: name.to_owned(),
        namespace: namespace.to_owned(),
        ..Question::default()
    };
    review.ctx.api.authorization.answer(&review.ctx.user, &question)
}

/// The drivers whose devices something else is said of.
fn reporting<'a>(new: &'a Value, old: &'a Value) -> BTreeSet<&'a str> {
    let (new, old) = (new.items("devices"), old.items("devices"));
    let changed = new.iter().filter(|device| !old.contains(device));
    let gone = old.iter().filter(|device| !new.contains(device));
    changed.chain(gone).map(|device| device.text("driver")).collect()
}

/// What of it is enough: a right for claims of any node, or for those of the node that the user's token is for.
fn verbs(review: &Review<'_>, status: &Value) -> Vec<String> {
    let (verb, user) = (review.ctx.info.verb, &review.ctx.user);
    let any = format!("arbitrary-node:{verb}");
    let own = user.extra.get(NODE_NAME).filter(|_| user.name.starts_with("system:serviceaccount:"));
    match (own.map(Vec::as_slice), node_of(status)) {
        (Some([own]), Some(node)) if own == node => vec![format!("associated-node:{verb}"), any],
        _ => vec![any],
    }
}

/// The only node that a claim's devices are for.
fn node_of(status: &Value) -> Option<&str> {
    let [term] = status.path(&["allocation", "nodeSelector"]).items("nodeSelectorTerms") else { return None };
    let [field] = term.items("matchFields") else { return None };
    let is_name = field.text("key") == "metadata.name" && field.text("operator") == "In";
    match field.items("values") {
        [name] if is_name && term.items("matchExpressions").is_empty() => name.as_str(),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use object::json;

    #[test]
    fn who_reports_something_else_is_known_by_driver() {
        let said = |devices: Value| json!({ "devices": devices });
        let device =
            |driver: &str, data: i64| json!({ "driver": driver, "pool": "p", "device": "d", "data": { "x": data } });
        let old = said(json!([device("a", 1), device("b", 1), device("c", 1)]));
        let new = said(json!([device("c", 1), device("b", 2), device("d", 1)]));
        assert_eq!(reporting(&new, &old).into_iter().collect::<Vec<_>>(), ["a", "b", "d"]);
    }

    #[test]
    fn a_claim_is_of_a_node_if_its_devices_are_for_no_other() {
        let status = |terms: Value| json!({ "allocation": { "nodeSelector": { "nodeSelectorTerms": terms } } });
        let named = |names: &[&str]| json!({ "key": "metadata.name", "operator": "In", "values": names });
        for (terms, expected) in [
            (json!([]), None),
            (json!([{ "matchFields": [named(&["n"])] }]), Some("n")),
            (json!([{ "matchFields": [named(&["n", "m"])] }]), None),
            (json!([{ "matchFields": [named(&["n"])] }, {}]), None),
            (json!([{ "matchFields": [named(&["n"])], "matchExpressions": [{ "key": "a" }] }]), None),
        ] {
            assert_eq!(node_of(&status(terms.clone())), expected, "{terms}");
        }
    }
}
